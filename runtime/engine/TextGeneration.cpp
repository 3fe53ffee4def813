#include "runtime/engine/TextGeneration.h"

namespace llmc {

StatusOr<SequenceId> TextGeneration::add(TextRequest request) {
  if (!tokenizer_ && !request.stopStrings.empty())
    return Status::error("stop strings need a tokenizer, and the artifact has none");
  LLMC_ASSIGN_OR_RETURN(StopStrings stops, StopStrings::create(std::move(request.stopStrings)));
  LLMC_ASSIGN_OR_RETURN(SequenceId id, engine_.add(std::move(request.generation)));
  std::optional<StreamDecoder> decoder;
  if (tokenizer_)
    decoder.emplace(*tokenizer_, /*skipSpecial=*/true);
  streams_.emplace(id, Stream{std::move(decoder), std::move(stops)});
  return id;
}

bool TextGeneration::cancel(SequenceId sequence) {
  streams_.erase(sequence);
  return engine_.cancel(sequence);
}

std::vector<TextEvent> TextGeneration::step() {
  std::vector<TextEvent> out;
  for (const Event &event : engine_.step()) {
    auto at = streams_.find(event.sequence);
    if (at == streams_.end())
      continue;
    TextEvent &text = out.emplace_back(TextEvent{event.sequence, event.token, {}, event.finish, {}});
    if (event.finish == Finish::Failed)
      text.failure = engine_.failure(event);
    else
      decode(at->second, event, text);
    if (text.finish == Finish::None)
      continue;
    if (event.finish == Finish::None) // ended by its text: the engine does not know yet
      engine_.cancel(event.sequence);
    streams_.erase(at);
  }
  return out;
}

void TextGeneration::decode(Stream &stream, const Event &event, TextEvent &out) {
  if (!stream.decoder)
    return;
  auto show = [&](StatusOr<std::string> piece) {
    if (piece.ok()) {
      out.text += stream.stops.push(*piece);
      return;
    }
    out.finish = Finish::Failed;
    out.failure = "sequence " + std::to_string(event.sequence) + ": " + piece.status().message();
  };
  // The token that ends the sequence is no part of its text.
  if (event.finish != Finish::End && event.finish != Finish::Stop)
    show(stream.decoder->push(event.token));
  if (event.finish != Finish::None && out.finish != Finish::Failed)
    show(stream.decoder->flush());
  if (out.finish == Finish::Failed)
    return;
  if (stream.stops.stopped())
    out.finish = Finish::Stop;
  if (out.finish != Finish::None)
    out.text += stream.stops.flush();
}

std::string_view finishName(Finish finish) {
  switch (finish) {
  case Finish::None:
    return "none";
  case Finish::Length:
    return "length";
  case Finish::Stop:
    return "stop";
  case Finish::End:
    return "end";
  case Finish::Failed:
    return "failed";
  }
  return "none";
}

} // namespace llmc
