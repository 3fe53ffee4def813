// The handles of Open MPI are addresses of symbols of its library, which is all that its mpi.h says of them too.
#include "runtime/collective/MpiTransport.h"
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char libraryName[] = "libmpi.so.40";
// Ranks that fail have this long to tell the others.
constexpr std::chrono::milliseconds farewell(1000);
// Looks for messages in a row before the core is given to others, and before it is left alone for a while.
constexpr int looksBeforeYield = 100, looksBeforeSleep = 10000;
constexpr std::chrono::microseconds sleep(50);

using Handle = void *;
struct MpiStatus {
  int source, tag, error;
  char more[52]; // as large as any version's
};

constexpr int success = 0, anySource = -1, anyTag = -1, threadSerialized = 2;
// Labels are tags, from 1 on.
constexpr int failureTag = 0;
int tagOf(int32_t label) { return label + 1; }

// The functions and handles that are used, by their names in the library.
struct Mpi {
  int (*initThread)(int *, char ***, int, int *);
  int (*finalize)();
  int (*commSize)(Handle, int *);
  int (*commRank)(Handle, int *);
  int (*commSetErrhandler)(Handle, Handle);
  int (*commDup)(Handle, Handle *);
  int (*isend)(const void *, int, Handle, int, int, Handle, Handle *);
  int (*improbe)(int, int, Handle, int *, Handle *, MpiStatus *);
  int (*getCount)(const MpiStatus *, Handle, int *);
  int (*imrecv)(void *, int, Handle, Handle *, Handle *);
  int (*test)(Handle *, int *, MpiStatus *);
  Handle world, byte, errorsReturn;
};

StatusOr<Mpi> loadMpi() {
  // Its parts look for its symbols among those that everybody sees.
  void *library = ::dlopen(libraryName, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return Status::error("mpirun started this process, but " + std::string(::dlerror()) +
                         "; install Open MPI 4 or 5 (Debian: libopenmpi3)");
  std::string missing;
  auto address = [&](const char *name) {
    void *found = ::dlsym(library, name);
    if (!found && missing.empty())
      missing = name;
    return found;
  };
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address(name));
  };
  Mpi mpi;
  find(mpi.initThread, "MPI_Init_thread");
  find(mpi.finalize, "MPI_Finalize");
  find(mpi.commSize, "MPI_Comm_size");
  find(mpi.commRank, "MPI_Comm_rank");
  find(mpi.commSetErrhandler, "MPI_Comm_set_errhandler");
  find(mpi.commDup, "MPI_Comm_dup");
  find(mpi.isend, "MPI_Isend");
  find(mpi.improbe, "MPI_Improbe");
  find(mpi.getCount, "MPI_Get_count");
  find(mpi.imrecv, "MPI_Imrecv");
  find(mpi.test, "MPI_Test");
  mpi.world = address("ompi_mpi_comm_world");
  mpi.byte = address("ompi_mpi_byte");
  mpi.errorsReturn = address("ompi_mpi_errors_return");
  if (!missing.empty())
    return Status::error(std::string(libraryName) + " has no " + missing + "; install Open MPI 4 or 5");
  return mpi;
}

// What the ends of this rank share. MPI is called by one of their threads at a time.
struct MpiWorld {
  Mpi mpi;
  std::mutex mutex; // of the calls, and of:
  std::optional<std::string> failure = {};
};

class MpiEnd final : public Transport {
public:
  MpiEnd(std::shared_ptr<MpiWorld> world, Handle communicator, RankGrid grid, int32_t number,
         std::chrono::milliseconds patience)
      : Transport(grid, number), world_(std::move(world)), mpi_(world_->mpi), communicator_(communicator),
        failure_(world_->failure), patience_(patience) {
    sends_.reserve(static_cast<size_t>(grid.size()));
    receives_.reserve(static_cast<size_t>(grid.size()));
  }
  // After a failure the others may never come to finalize; mpirun ends them when this process does.
  ~MpiEnd() override {
    if (communicator_ == mpi_.world && !failure_)
      mpi_.finalize();
  }

  Status exchange(int32_t label, std::span<const OutgoingMessage> outgoing,
                  std::span<const IncomingMessage> incoming) override;
  void fail(const std::string &why) override;
  StatusOr<std::unique_ptr<Transport>> openChannel() override;

private:
  struct Receive {
    const IncomingMessage *message;
    Handle request = nullptr;
    enum class State { Expected, Arriving, Done } state = State::Expected;
  };
  struct Send {
    int32_t to;
    Handle request;
    bool isDone = false;
  };

  // These are called with the lock.
  Status failed(const std::string &why) {
    tellAll(why);
    return Status::error(*failure_);
  }
  void tellAll(const std::string &why);
  // Where the exchange stands: the rank that it waits for, or nothing.
  StatusOr<std::optional<int32_t>> look(int32_t label);
  Status start(int32_t label, std::span<const OutgoingMessage> outgoing);
  Status advance(int32_t label, Receive &receive);
  // What another rank has said as it failed, in the message `matched`.
  std::string read(Handle matched, const MpiStatus &status);
  std::optional<std::string> failureOfOthers();
  static std::string callFailed(const char *call, int error) {
    return std::string(call) + " failed with error " + std::to_string(error);
  }

  std::shared_ptr<MpiWorld> world_;
  const Mpi &mpi_;
  Handle communicator_;
  std::optional<std::string> &failure_;
  std::chrono::milliseconds patience_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

Status MpiEnd::start(int32_t label, std::span<const OutgoingMessage> outgoing) {
  sends_.clear();
  for (const OutgoingMessage &message : outgoing) {
    if (message.bytes.size() > INT_MAX)
      return failed("a message of " + std::to_string(message.bytes.size()) + " bytes is too large for MPI, at most " +
                    std::to_string(INT_MAX) + "; compile with a smaller --max-tokens");
    Handle request = nullptr;
    if (int error = mpi_.isend(message.bytes.data(), static_cast<int>(message.bytes.size()), mpi_.byte, message.to,
                               tagOf(label), communicator_, &request);
        error != success)
      return failed(callFailed("MPI_Isend", error));
    sends_.push_back({message.to, request});
  }
  return {};
}

Status MpiEnd::advance(int32_t label, Receive &receive) {
  const IncomingMessage &message = *receive.message;
  if (receive.state == Receive::State::Expected) {
    int found = 0, count = 0;
    Handle matched = nullptr;
    MpiStatus status;
    if (int error = mpi_.improbe(message.from, anyTag, communicator_, &found, &matched, &status); error != success)
      return failed(callFailed("MPI_Improbe", error));
    if (!found)
      return {};
    if (status.tag == failureTag) {
      failure_ = read(matched, status);
      return Status::error(*failure_);
    }
    if (status.tag != tagOf(label))
      return failed(wrongLabelText(message.from, number()));
    mpi_.getCount(&status, mpi_.byte, &count);
    if (static_cast<size_t>(count) != message.bytes.size())
      return failed(wrongSizeText(message.from, static_cast<size_t>(count), number(), message.bytes.size()));
    if (int error = mpi_.imrecv(message.bytes.data(), count, mpi_.byte, &matched, &receive.request); error != success)
      return failed(callFailed("MPI_Imrecv", error));
    receive.state = Receive::State::Arriving;
  }
  int done = 0;
  MpiStatus status;
  if (int error = mpi_.test(&receive.request, &done, &status); error != success)
    return failed(callFailed("MPI_Test", error));
  if (done)
    receive.state = Receive::State::Done;
  return {};
}

StatusOr<std::optional<int32_t>> MpiEnd::look(int32_t label) {
  std::optional<int32_t> waitsFor;
  for (Receive &receive : receives_) {
    if (receive.state != Receive::State::Done)
      LLMC_RETURN_IF_ERROR(advance(label, receive));
    if (receive.state != Receive::State::Done)
      waitsFor = receive.message->from;
  }
  for (Send &send : sends_) {
    int done = 0;
    MpiStatus status;
    if (!send.isDone && mpi_.test(&send.request, &done, &status) != success)
      return failed("rank " + std::to_string(send.to) + " cannot be reached");
    send.isDone |= done != 0;
    if (!send.isDone)
      waitsFor = send.to;
  }
  return waitsFor;
}

Status MpiEnd::exchange(int32_t label, std::span<const OutgoingMessage> outgoing,
                        std::span<const IncomingMessage> incoming) {
  std::unique_lock lock(world_->mutex);
  if (failure_)
    return Status::error(*failure_);
  LLMC_RETURN_IF_ERROR(start(label, outgoing));
  receives_.clear();
  for (const IncomingMessage &message : incoming)
    receives_.push_back({&message});
  const Clock::time_point end = Clock::now() + patience_;
  for (int looks = 0;; ++looks) {
    LLMC_ASSIGN_OR_RETURN(std::optional<int32_t> waitsFor, look(label));
    if (!waitsFor)
      return {};
    if (looks < looksBeforeYield)
      continue;
    if (!failure_)
      failure_ = failureOfOthers();
    if (failure_)
      return Status::error(*failure_);
    if (Clock::now() > end)
      return failed(lostPatienceText(number(), *waitsFor, patience_));
    lock.unlock();
    if (looks < looksBeforeSleep)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(sleep);
    lock.lock();
  }
}

StatusOr<std::unique_ptr<Transport>> MpiEnd::openChannel() {
  std::lock_guard lock(world_->mutex);
  if (failure_)
    return Status::error(*failure_);
  Handle communicator = nullptr;
  if (int error = mpi_.commDup(mpi_.world, &communicator); error != success)
    return failed(callFailed("MPI_Comm_dup", error));
  mpi_.commSetErrhandler(communicator, mpi_.errorsReturn);
  return std::unique_ptr<Transport>(new MpiEnd(world_, communicator, grid(), number(), patience_));
}

std::optional<std::string> MpiEnd::failureOfOthers() {
  int found = 0;
  Handle matched = nullptr;
  MpiStatus status;
  if (mpi_.improbe(anySource, failureTag, mpi_.world, &found, &matched, &status) != success || !found)
    return std::nullopt;
  return read(matched, status);
}

std::string MpiEnd::read(Handle matched, const MpiStatus &status) {
  int count = 0, done = 0;
  Handle request = nullptr;
  MpiStatus ignored;
  mpi_.getCount(&status, mpi_.byte, &count);
  std::string why(static_cast<size_t>(std::max(count, 0)), '\0');
  if (mpi_.imrecv(why.data(), count, mpi_.byte, &matched, &request) != success)
    return "another rank has failed";
  for (const Clock::time_point end = Clock::now() + farewell; !done && Clock::now() < end;)
    if (mpi_.test(&request, &done, &ignored) != success)
      break;
  return why;
}

void MpiEnd::fail(const std::string &why) {
  std::lock_guard lock(world_->mutex);
  tellAll(why);
}

void MpiEnd::tellAll(const std::string &why) {
  if (failure_)
    return;
  failure_ = why;
  std::vector<Handle> requests;
  for (int32_t to = 0; to < grid().size(); ++to)
    if (to != number()) {
      Handle request = nullptr;
      // Those that are gone cannot be told.
      if (mpi_.isend(failure_->data(), static_cast<int>(failure_->size()), mpi_.byte, to, failureTag, mpi_.world,
                     &request) == success)
        requests.push_back(request);
    }
  for (const Clock::time_point end = Clock::now() + farewell; !requests.empty() && Clock::now() < end;)
    std::erase_if(requests, [&](Handle &request) {
      int done = 0;
      MpiStatus status;
      return mpi_.test(&request, &done, &status) != success || done;
    });
}

} // namespace

bool MpiTransport::isLaunched() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

StatusOr<std::unique_ptr<Transport>> MpiTransport::create(RankGrid grid, std::chrono::milliseconds patience) {
  LLMC_ASSIGN_OR_RETURN(Mpi mpi, loadMpi());
  int provided = 0, size = 0, number = 0;
  // Calls come from one thread at a time (MpiWorld), but not always the same.
  if (int error = mpi.initThread(nullptr, nullptr, threadSerialized, &provided); error != success)
    return Status::error("MPI cannot be started: error " + std::to_string(error));
  mpi.commSetErrhandler(mpi.world, mpi.errorsReturn);
  mpi.commSize(mpi.world, &size);
  mpi.commRank(mpi.world, &number);
  if (size != grid.size()) {
    mpi.finalize();
    return Status::error("mpirun started " + std::to_string(size) + " ranks, the artifact is for " +
                         std::to_string(grid.size()) + "; use mpirun -n " + std::to_string(grid.size()));
  }
  auto world = std::make_shared<MpiWorld>();
  world->mpi = mpi;
  return std::unique_ptr<Transport>(new MpiEnd(world, mpi.world, grid, number, patience));
}

} // namespace llmc
