// Shards: tensors one after another until the limit, each piece made by some thread and appended in order.
#include "lib/synth/WriteCheckpoint.h"
#include "lib/importer/files/Safetensors.h"
#include "lib/weights/OrderedWork.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

namespace llmc {
namespace {

// Values that one thread makes at a time: enough to hide the hand-over, little beside any cache that matters.
constexpr uint64_t pieceValues = 1 << 18;
// Values in float32 between drawing and rounding.
constexpr size_t scratchValues = 4096;

struct Shard {
  std::string file;
  std::vector<SafetensorsTensor> tensors;
  std::vector<const RandomTensor *> sources; // of the same index
};

StatusOr<std::vector<Shard>> planShards(const CheckpointContents &contents, uint64_t shardBytes) {
  std::vector<Shard> shards(1);
  uint64_t filled = 0;
  for (const RandomTensor &tensor : contents.tensors) {
    LLMC_ASSIGN_OR_RETURN(uint64_t bytes, tensorBytes(contents.type, tensor.shape));
    if (filled > 0 && !(CheckedSize(filled) + CheckedSize(bytes)).fits(shardBytes)) {
      shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    shards.back().tensors.push_back({tensor.name, contents.type, tensor.shape, 0, bytes});
    shards.back().sources.push_back(&tensor);
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64] = "model.safetensors";
    if (shards.size() > 1)
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].file = name;
  }
  return shards;
}

std::string indexText(const std::vector<Shard> &shards, uint64_t totalBytes) {
  Json files = Json::object();
  for (const Shard &shard : shards)
    for (const SafetensorsTensor &tensor : shard.tensors)
      files[tensor.name] = shard.file;
  Json index = {{"metadata", {{"total_size", totalBytes}}}, {"weight_map", std::move(files)}};
  return index.dump(2) + "\n";
}

struct Piece {
  size_t tensor; // of the shard
  uint64_t first, values;
};

std::vector<Piece> piecesOf(const Shard &shard, uint32_t valueBytes) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < shard.tensors.size(); ++i) {
    uint64_t values = shard.tensors[i].bytes / valueBytes;
    for (uint64_t first = 0; first < values; first += pieceValues)
      pieces.push_back({i, first, std::min(pieceValues, values - first)});
  }
  return pieces;
}

class CheckpointWriter {
public:
  CheckpointWriter(const CheckpointContents &contents, const CheckpointWriting &writing, AtomicFolder &folder)
      : contents_(contents), writing_(writing), folder_(folder), valueBytes_(infoOf(contents.type).blockBytes) {}

  Status writeShard(const Shard &shard) {
    LLMC_ASSIGN_OR_RETURN(OutputFile file, folder_.openFile(shard.file));
    LLMC_RETURN_IF_ERROR(file.append(safetensorsHead(shard.tensors, {{"format", "pt"}})));
    std::vector<RandomValues> values;
    for (const RandomTensor *tensor : shard.sources)
      values.emplace_back(*tensor, contents_.seed);
    const std::vector<Piece> pieces = piecesOf(shard, valueBytes_);
    auto produce = [&](int64_t i, std::vector<uint8_t> &buffer) {
      const Piece &piece = pieces[static_cast<size_t>(i)];
      draw(values[piece.tensor], piece, buffer);
      return Status();
    };
    auto consume = [&](std::span<const uint8_t> bytes) {
      written_ += bytes.size();
      if (writing_.progress)
        writing_.progress(written_);
      return file.append(bytes);
    };
    LLMC_RETURN_IF_ERROR(runInOrder(static_cast<int64_t>(pieces.size()), writing_.threads, produce, consume));
    return file.close();
  }

private:
  void draw(const RandomValues &values, const Piece &piece, std::vector<uint8_t> &buffer) const {
    buffer.resize(piece.values * valueBytes_);
    std::array<float, scratchValues> scratch;
    for (uint64_t done = 0; done < piece.values; done += scratchValues) {
      std::span<float> some(scratch.data(), std::min<uint64_t>(scratchValues, piece.values - done));
      values.fill(piece.first + done, some);
      encode(some, contents_.type, buffer.data() + done * valueBytes_);
    }
  }

  const CheckpointContents &contents_;
  const CheckpointWriting &writing_;
  AtomicFolder &folder_;
  const uint32_t valueBytes_;
  uint64_t written_ = 0;
};

// A disk whose free space cannot be asked for is left to the writes.
Status checkRoom(const std::string &folder, uint64_t bytes) {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::absolute(folder, error).parent_path();
  std::filesystem::space_info space = std::filesystem::space(parent, error);
  if (error || space.available >= bytes)
    return {};
  return Status::error("cannot write " + folder + ": the weights take " + std::to_string(bytes) +
                       " bytes, the disk has " + std::to_string(space.available) + " free; ask for fewer layers");
}

} // namespace

StatusOr<uint64_t> checkpointBytes(const CheckpointContents &contents) {
  CheckedSize total = 0;
  for (const RandomTensor &tensor : contents.tensors) {
    StatusOr<uint64_t> bytes = tensorBytes(contents.type, tensor.shape);
    if (!bytes.ok())
      return bytes.status().inside("tensor '" + tensor.name + "'");
    total = total + CheckedSize(*bytes);
  }
  if (!total.ok())
    return Status::error("the weights take more than 64 bits of bytes; ask for fewer layers");
  return *total.value();
}

Status writeCheckpoint(const CheckpointContents &contents, const CheckpointWriting &writing,
                       const std::string &folder) {
  LLMC_ASSIGN_OR_RETURN(uint64_t bytes, checkpointBytes(contents));
  LLMC_RETURN_IF_ERROR(checkRoom(folder, bytes));
  LLMC_ASSIGN_OR_RETURN(std::vector<Shard> shards, planShards(contents, writing.shardBytes));
  LLMC_ASSIGN_OR_RETURN(AtomicFolder output, AtomicFolder::create(folder, synthMarkerFile, bytes));
  CheckpointWriter writer(contents, writing, output);
  for (const Shard &shard : shards)
    LLMC_RETURN_IF_ERROR(writer.writeShard(shard));
  if (shards.size() > 1)
    LLMC_RETURN_IF_ERROR(output.writeFile("model.safetensors.index.json", indexText(shards, bytes)));
  LLMC_RETURN_IF_ERROR(output.writeFile("config.json", contents.config));
  LLMC_RETURN_IF_ERROR(output.writeFile(synthMarkerFile, contents.marker));
  for (const auto &[name, path] : contents.sideFiles) {
    LLMC_ASSIGN_OR_RETURN(std::string text, readFile(path, limits::tokenizerBytes));
    LLMC_RETURN_IF_ERROR(output.writeFile(name, text));
  }
  return output.commit();
}

} // namespace llmc
