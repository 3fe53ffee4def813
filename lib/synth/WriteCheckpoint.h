// A Hugging Face folder of random weights, streamed: config, weights in shards with an index, files of the tokenizer.
#pragma once
#include "lib/synth/RandomTensors.h"
#include "runtime/support/Status.h"
#include <functional>

namespace llmc {

// Says that a folder is ours to replace; a real checkpoint has no such file.
inline constexpr char synthMarkerFile[] = "llmc-synth.json";

struct CheckpointContents {
  std::vector<RandomTensor> tensors;
  TensorType type = TensorType::BF16; // or F32, F16
  uint64_t seed = 0;
  std::string config;                                         // text of config.json
  std::string marker;                                         // text of the marker file
  std::vector<std::pair<std::string, std::string>> sideFiles; // name -> path that it is copied from
};

struct CheckpointWriting {
  uint64_t shardBytes = 5'000'000'000; // no shard of several tensors holds more; publishers cut there too
  int threads = 1;
  std::function<void(uint64_t)> progress; // bytes of weights written so far; may be empty
};

// Bytes of all weights.
StatusOr<uint64_t> checkpointBytes(const CheckpointContents &contents);

// Writes `folder`, whole or not at all; an error before the first byte where the disk has no room. Memory is a few MB
// per thread, and the bytes do not depend on the threads.
Status writeCheckpoint(const CheckpointContents &contents, const CheckpointWriting &writing, const std::string &folder);

} // namespace llmc
