// What goes before and after the ids of a text: the "post_processor" of tokenizer.json, for single texts.
#pragma once
#include "runtime/support/Json.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct PostProcessor {
  std::vector<int32_t> prefix, suffix;
  static StatusOr<PostProcessor> read(const Json &value, const std::string &pointer, int32_t vocabularySize);
};

} // namespace llmc
