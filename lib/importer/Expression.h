// The small arithmetic of model descriptions: numbers, names of values, + - * / == ( ), sqrt(x), if(condition, a, b).
#pragma once
#include "runtime/support/Status.h"
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

using NameLookup = std::function<StatusOr<double>(const std::string &)>;

// The value of `text`; names are asked of `lookup`. A result that is not finite is an error.
StatusOr<double> evaluateExpression(std::string_view text, const NameLookup &lookup);

// The names that `text` uses, or why it does not parse.
StatusOr<std::vector<std::string>> namesInExpression(std::string_view text);

// The two names of "a / b", when `text` is just that: such a quotient gets a message of its own.
std::optional<std::pair<std::string, std::string>> quotientOfNames(std::string_view text);

} // namespace llmc
