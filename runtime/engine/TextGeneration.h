// TextGeneration: an engine whose answers come as text, piece by piece, with stop strings. One thread, that of the
// engine.
#pragma once
#include "runtime/engine/Engine.h"
#include "runtime/engine/StopStrings.h"
#include "runtime/tokenizer/Tokenizer.h"
#include <map>
#include <optional>

namespace llmc {

struct TextRequest {
  GenerationRequest generation;
  std::vector<std::string> stopStrings;
};

// What one step gave one sequence. `text` holds whole characters and ends before a stop string.
struct TextEvent {
  SequenceId sequence;
  int32_t token; // -1 after Failed
  std::string text;
  Finish finish;
  std::string failure; // the sentence, after Failed
};

class TextGeneration {
public:
  // Without a tokenizer the texts are empty and stop strings are refused. The engine must outlive this object.
  TextGeneration(Engine &engine, std::optional<Tokenizer> tokenizer)
      : engine_(engine), tokenizer_(std::move(tokenizer)) {}

  StatusOr<SequenceId> add(TextRequest request);
  bool cancel(SequenceId sequence);
  bool idle() const { return engine_.idle(); }
  // One step of the engine. A token that completes a stop string finishes its sequence with Finish::Stop.
  std::vector<TextEvent> step();

private:
  struct Stream {
    std::optional<StreamDecoder> decoder;
    StopStrings stops;
  };
  void decode(Stream &stream, const Event &event, TextEvent &out);

  Engine &engine_;
  std::optional<Tokenizer> tokenizer_;
  std::map<SequenceId, Stream> streams_;
};

std::string_view finishName(Finish finish); // "length", "stop", "end", "failed"

} // namespace llmc
