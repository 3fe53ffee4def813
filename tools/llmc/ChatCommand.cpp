// A conversation in the terminal. The whole history is rendered and computed anew for every answer.
#include "runtime/engine/ArtifactText.h"
#include "runtime/engine/TextGeneration.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace llmc {
namespace {

// The writing end of what CatchInterrupt::descriptor() reads.
volatile int wakeUp = -1;
void noteInterrupt(int) {
  int before = errno;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(wakeUp, &one, sizeof one);
  errno = before;
}

// While it lives, Ctrl-C is noted until somebody takes it. The note is a descriptor, so that waiting for input and for
// Ctrl-C is one poll: a flag alone would be missed when it comes just before a blocking read.
class CatchInterrupt {
public:
  CatchInterrupt() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    wakeUp = descriptor_;
    struct sigaction action = {};
    action.sa_handler = noteInterrupt;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~CatchInterrupt() {
    ::sigaction(SIGINT, &before_, nullptr);
    wakeUp = -1;
    ::close(descriptor_);
  }
  CatchInterrupt(const CatchInterrupt &) = delete;
  CatchInterrupt &operator=(const CatchInterrupt &) = delete;

  // Readable once Ctrl-C came.
  int descriptor() const { return descriptor_; }
  // Whether Ctrl-C came since the last call.
  bool take() {
    uint64_t count = 0;
    return ::read(descriptor_, &count, sizeof count) > 0;
  }

private:
  int descriptor_;
  struct sigaction before_ = {};
};

// Lines of standard input. Not a stream: those hide an interrupted read.
class LineReader {
public:
  enum class Result { Line, End, Interrupted, TooLong };
  explicit LineReader(CatchInterrupt &interrupt) : interrupt_(interrupt) {}

  Result read(std::string &line) {
    for (;;) {
      if (size_t end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Result::Line;
      }
      if (buffer_.size() > mostBytes)
        return Result::TooLong;
      pollfd waited[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_.descriptor(), POLLIN, 0}};
      ::poll(waited, 2, -1);
      if (interrupt_.take()) {
        buffer_.clear(); // the half line is given up, as in a shell
        return Result::Interrupted;
      }
      if (waited[0].revents == 0)
        continue;
      char bytes[4096];
      ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0) {
        line = std::move(buffer_);
        buffer_.clear();
        return line.empty() ? Result::End : Result::Line;
      }
      buffer_.append(bytes, static_cast<size_t>(count));
    }
  }
  static constexpr size_t mostBytes = 4 << 20;

private:
  CatchInterrupt &interrupt_;
  std::string buffer_;
};

class Chat {
public:
  Chat(const ChatCommand &command, Engine &engine, const ArtifactText &text, Tokenizer tokenizer)
      : command_(command), engine_(engine), text_(text), generation_(engine, std::move(tokenizer)),
        terminal_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {
    clear();
  }
  // The exit code.
  int talk();

private:
  void clear();
  // False ends the conversation.
  bool takeLine(const std::string &line);
  Status answer(const std::string &question);
  // The prompt, with as much of the history as leaves room for an answer.
  StatusOr<std::vector<int32_t>> fittingIds();
  Status generate(std::vector<int32_t> ids, std::string &said);

  const ChatCommand &command_;
  Engine &engine_;
  const ArtifactText &text_;
  TextGeneration generation_;
  CatchInterrupt interrupt_;
  bool terminal_;
  bool failed_ = false;
  Json messages_;
  size_t systemMessages_ = 0; // at the front, never dropped
  uint64_t turn_ = 0;
};

void Chat::clear() {
  messages_ = Json::array();
  if (!command_.system.empty())
    messages_.push_back({{"role", "system"}, {"content", command_.system}});
  systemMessages_ = messages_.size();
}

int Chat::talk() {
  LineReader lines(interrupt_);
  if (terminal_)
    std::fprintf(stderr, "/exit or Ctrl-D leaves, /clear forgets the conversation, Ctrl-C stops an answer\n");
  bool asked = false; // Ctrl-C came at an empty prompt
  for (bool going = true; going;) {
    if (terminal_)
      std::fprintf(stderr, "> ");
    std::string line;
    LineReader::Result result = lines.read(line);
    if (result == LineReader::Result::End || (result == LineReader::Result::Interrupted && asked)) {
      if (terminal_)
        std::fprintf(stderr, "\n");
      break;
    }
    if (result == LineReader::Result::TooLong)
      return reportFault(
          Status::error("standard input: a line is longer than " + std::to_string(LineReader::mostBytes) + " bytes"));
    asked = result == LineReader::Result::Interrupted;
    if (asked)
      std::fprintf(stderr, "\nCtrl-C again or Ctrl-D leaves\n");
    else
      going = takeLine(line);
  }
  return failed_ ? exitFault : exitDone;
}

bool Chat::takeLine(const std::string &line) {
  size_t end = line.find_last_not_of(" \t\r");
  std::string question = line.substr(0, end == std::string::npos ? 0 : end + 1);
  if (question == "/exit")
    return false;
  if (question == "/clear") {
    clear();
    return true;
  }
  if (question.empty())
    return true;
  Status status = answer(question);
  if (!status.ok()) {
    // The terminal goes on; a program that wrote into a pipe learns of it at the end.
    failed_ = !terminal_;
    reportFault(status);
    if (std::ferror(stdout))
      return false;
  }
  return true;
}

Status Chat::answer(const std::string &question) {
  messages_.push_back({{"role", "user"}, {"content", question}});
  StatusOr<std::vector<int32_t>> ids = fittingIds();
  std::string said;
  Status status = ids.ok() ? generate(std::move(*ids), said) : ids.status();
  if (!status.ok()) {
    messages_.erase(messages_.size() - 1); // as if it had not been asked
    return status;
  }
  messages_.push_back({{"role", "assistant"}, {"content", said}});
  return {};
}

StatusOr<std::vector<int32_t>> Chat::fittingIds() {
  auto context = static_cast<size_t>(engine_.limits().context);
  size_t room = std::min(static_cast<size_t>(command_.options.maxNewTokens), context / 4);
  for (size_t dropped = 0;; dropped += 2) {
    ChatRequest request;
    request.messages = messages_;
    request.addGenerationPrompt = true;
    LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, text_.idsOfChat(std::move(request)));
    if (ids.size() + room <= context || messages_.size() <= systemMessages_ + 2) {
      if (dropped > 0)
        std::fprintf(stderr,
                     "note: the conversation is longer than the context of %zu tokens, the oldest %zu messages "
                     "were dropped\n",
                     context, dropped);
      return ids;
    }
    // A question and its answer: templates want them to alternate.
    for (int i = 0; i < 2; ++i)
      messages_.erase(systemMessages_);
  }
}

Status Chat::generate(std::vector<int32_t> ids, std::string &said) {
  TextRequest request;
  request.generation.ids = std::move(ids);
  request.generation.maxNewTokens = command_.options.maxNewTokens;
  request.generation.sampling = samplingOf(command_.options, engine_.manifest().generation);
  request.generation.sampling.seed += turn_++;
  request.stopStrings = command_.options.stop;
  LLMC_ASSIGN_OR_RETURN(SequenceId id, generation_.add(std::move(request)));
  Status status;
  while (!generation_.idle() && status.ok()) {
    if (interrupt_.take()) {
      generation_.cancel(id);
      break;
    }
    for (const TextEvent &event : generation_.step()) {
      if (event.finish == Finish::Failed)
        status = Status::error(event.failure);
      said += event.text;
      std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    }
    if (std::fflush(stdout) != 0) {
      generation_.cancel(id);
      status = Status::error("cannot write the answer to standard output");
    }
  }
  std::fputc('\n', stdout);
  std::fflush(stdout);
  return status;
}

StatusOr<int> chat(const ChatCommand &command) {
  LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile, ArtifactNeeds::Tokenizer));
  EngineOptions options;
  options.threads = command.options.threads;
  options.maxSequences = 1;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(engine->artifact()));
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, text.tokenizer());
  if (!text.hasTemplate())
    return Status::error(artifact + ": has no chat template; use llmc run --raw");
  return Chat(command, *engine, text, std::move(tokenizer)).talk();
}

} // namespace

int runChat(const ChatCommand &command) {
  StatusOr<int> code = chat(command);
  return code.ok() ? *code : reportFault(code.status());
}

} // namespace llmc
