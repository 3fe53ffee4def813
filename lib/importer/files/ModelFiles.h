// A model as published: a Hugging Face folder, a GGUF file (or all its splits), or a config.json alone. Opening reads
// headers only; bytes are mapped, file by file, when they are first asked for.
#pragma once
#include "lib/importer/files/Gguf.h"
#include "lib/importer/files/TensorType.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class LogicalTensors;

struct ModelTensor {
  std::string name;
  std::vector<uint64_t> shape; // torch's order: the last dimension is contiguous
  TensorType type;
  uint32_t file;   // into ModelFiles::weightFiles
  uint64_t offset; // in that file
  uint64_t bytes;
  // A row is the last dimension; a scalar is one row of one value.
  uint64_t rowValues() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t numRows() const;
};

class ModelFiles {
public:
  // `path`: a folder, a .gguf file or a config.json. A folder without weights, or with an index but none of its shards,
  // is a model without weights; one with pickled weights only (pytorch_model.bin, *.pt, ...) is refused.
  static StatusOr<ModelFiles> open(const std::string &path);
  ModelFiles(ModelFiles &&) noexcept;
  ModelFiles &operator=(ModelFiles &&) noexcept;
  ~ModelFiles();

  // What `open` was given.
  const std::string &path() const;
  bool hasWeights() const { return !weightFiles().empty(); }
  // Success, or why there are no weights, for those who need them: "... shard 'x' is named for 7 tensors but does not
  // exist".
  Status requireWeights() const;
  // The files that hold tensors, in order of name.
  const std::vector<std::string> &weightFiles() const;
  // Sorted by name.
  const std::vector<ModelTensor> &tensors() const;
  const ModelTensor *find(std::string_view name) const;
  // The parameters that the tensors store, under their unquantised names (quantized/LogicalTensors.h); an error where
  // parts of a quantised one are missing or do not fit. Any thread may ask.
  StatusOr<const LogicalTensors *> logical() const;
  // The names of all tensors, sorted: those of tensors(), or what the index of absent shards says.
  std::vector<std::string> tensorNames() const;
  // Things that are odd but not wrong, each a sentence: a total_size that does not match, tensors that no index names.
  const std::vector<std::string> &warnings() const;

  // The metadata of a GGUF file (the first of its splits), else nullptr.
  const GgufMetadata *gguf() const;
  // The path of "config.json", "tokenizer.json", "chat_template.jinja", ... in the model's folder, or "" when it has
  // none (always for GGUF, whose metadata takes their place). "config.json" also finds the file that `open` was given.
  std::string sideFile(std::string_view name) const;
  std::string configPath() const { return sideFile("config.json"); }
  // Files *.jinja of additional_chat_templates/, sorted.
  std::vector<std::string> additionalChatTemplates() const;

  // The stored bytes of a tensor of this model, valid as long as the ModelFiles. Any thread may ask. An error when the
  // file was cut or replaced since it was opened; one that shrinks later, while the bytes are being read, faults.
  StatusOr<std::span<const uint8_t>> bytes(const ModelTensor &tensor) const;
  // Gives memory that holds a tensor's bytes back; they are read again when they are wanted.
  void release(const ModelTensor &tensor) const;
  // An error when a file of which bytes were asked for was cut or replaced since it was opened.
  Status checkUnchanged() const;
  // Rows [firstRow, firstRow + numRows) as float32, numRows * rowValues() of them.
  Status readRows(const ModelTensor &tensor, uint64_t firstRow, uint64_t numRows, std::span<float> out) const;

private:
  struct State;
  explicit ModelFiles(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace llmc
