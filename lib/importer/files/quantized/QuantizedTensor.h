// QuantizedTensor: one parameter whose numbers several published tensors give together (codes, scales, zero points, an
// order of groups), under its unquantised name.
#pragma once
#include "lib/importer/files/ModelFiles.h"

namespace llmc {

// How codes lie in their tensor.
enum class CodeLayout {
  Bytes,   // one byte each
  Nibbles, // two a byte, the low one first
  Words,   // in 32-bit words along the inputs, the lowest bits first
  Gptq,    // [in / codes of a word, out]: words along the inputs again, outputs next to each other
  Awq      // [in, out / 8]: words along the outputs, in AWQ's order
};

// What a code stands for.
enum class CodeMeaning {
  E4M3,
  E5M2,
  E2M1,
  Signed,  // a byte
  Unsigned // less a zero point
};

struct QuantizedTensor {
  std::string name;
  std::vector<uint64_t> shape; // [.., out, in], in which the codes are counted
  std::vector<size_t> order; // dimension i of the unquantised parameter is dimension order[i] of `shape`; empty: as is
  std::string format;        // "FP8 block 128x128", "INT4 group 32 (BF16 scales)"
  TensorType type;           // what a packed form can take of it

  CodeLayout layout;
  CodeMeaning meaning;
  unsigned bits = 8;
  uint64_t groupOutputs = 1, groupInputs = 0; // that share a scale; never 0
  ModelTensor codes;
  std::optional<ModelTensor> scales;
  std::optional<ModelTensor> zeros;      // none: the middle
  std::optional<ModelTensor> factor;     // of all scales
  std::optional<ModelTensor> groupIndex; // of every input
  bool dividesByFactor = false;
  bool zerosMinusOne = false;
  uint64_t storedBytes = 0; // of all parts

  uint64_t inputs() const { return shape.back(); }
  uint64_t outputs() const { return shape[shape.size() - 2]; } // of one matrix
  uint64_t numRows() const;                                    // of all matrices
  uint64_t groupsPerRow() const { return (inputs() + groupInputs - 1) / groupInputs; }
};

// The numbers of one tensor; reads the files' bytes where they lie.
class QuantizedReader {
public:
  // `tensor` must outlive the reader.
  static StatusOr<QuantizedReader> open(const QuantizedTensor &tensor, const ModelFiles &files);

  // Values [first, first + out.size()) in the order of `shape`, as the format's definition multiplies them in float32.
  Status read(uint64_t first, std::span<float> out) const;
  // What the tensor's type counts as blocks: CodedGroup for each 32 inputs of a row, or CodedFloat8 for each, as many
  // as `out` holds.
  Status readCodes(uint64_t first, std::span<uint8_t> out) const;

private:
  struct Part {
    std::span<const uint8_t> bytes;
    TensorType type = TensorType::F32;
  };
  StatusOr<uint64_t> groupOf(uint64_t input) const;
  float scale(uint64_t row, uint64_t group) const;
  int zero(uint64_t row, uint64_t group) const;
  void rawCodes(uint64_t row, uint64_t input, std::span<uint8_t> out) const;
  Status readRow(uint64_t row, uint64_t input, std::span<float> out) const;
  Status readFloat8(uint64_t first, std::span<uint8_t> out) const;

  const QuantizedTensor *tensor_ = nullptr;
  Part codes_, scales_, zeros_, groupIndex_;
  bool hasOneScale_ = false; // of all matrices
  float factor_ = 1.0f;
};

// An 8-bit float (e4m3) and its f32 scale, in any place.
struct CodedFloat8 {
  uint8_t code;
  uint8_t scale[4];
};

// 32 inputs of a row as integers: value = code * scale + minimum, with a scale for each half.
struct CodedGroup {
  int8_t codes[32];
  float scale[2];
  float minimum;
};

} // namespace llmc
