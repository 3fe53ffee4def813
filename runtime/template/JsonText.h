// tojson: what Python's json.dumps writes, with transformers' defaults.
#pragma once
#include "runtime/template/Value.h"
#include <optional>

namespace llmc::jinja {

struct JsonStyle {
  bool ensureAscii = false;
  bool sortKeys = false;
  // A line per item, indented by this text; on one line when absent.
  std::optional<std::string> indent;
  std::string itemSeparator = ", ";
  std::string keySeparator = ": ";
};

StatusOr<std::string> jsonText(Budget &budget, const Value &value, const JsonStyle &style);

} // namespace llmc::jinja
