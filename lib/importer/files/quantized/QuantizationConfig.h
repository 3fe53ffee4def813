// What the files beside the weights say about how those are quantised. Which tensors are, the weights themselves say:
// only sizes that shapes leave open, and conventions that no tensor shows, are read here.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

struct QuantizationConfig {
  std::string file;                                     // where it was stated, for messages; empty: nowhere
  std::vector<int64_t> groupSizes;                      // inputs per scale, of all groups of layers; -1: a whole row
  std::optional<std::pair<int64_t, int64_t>> blockSize; // outputs, inputs per scale
  int64_t bits = 4;                                     // of GPTQ and AWQ codes
  bool isSymmetric = false;                             // GPTQ: every zero point is the middle
  bool storesZerosMinusOne = true;                      // GPTQ, but not of version 2
  std::string method, format;                           // "gptq" "gptq_v2", "awq" "gemm"
};

// `config` and `separate` are the paths of config.json and hf_quant_config.json, empty where there is none.
StatusOr<QuantizationConfig> readQuantizationConfig(const std::string &config, const std::string &separate);

} // namespace llmc
