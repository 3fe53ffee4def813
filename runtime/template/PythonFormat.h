// How Python writes values: str(), repr(), and the numbers inside formats. Templates show this text to the model.
#pragma once
#include "runtime/template/Value.h"

namespace llmc::jinja {

StatusOr<std::string> pythonStr(Budget &budget, const Value &value);
StatusOr<std::string> pythonRepr(Budget &budget, const Value &value);
std::string formatDouble(double value);
std::string quote(const std::string &text);
std::string escapeHtml(std::string_view text);
// The text of a safe string, any other value's text escaped.
StatusOr<std::string> escaped(Budget &budget, const Value &value);

// "format % values": `values` is a tuple, a dict for %(name)s, or the single value.
StatusOr<std::string> percentFormat(Budget &budget, const std::string &format, const Value &values);
// "format".format(...)
StatusOr<std::string> braceFormat(Budget &budget, const std::string &format, const Arguments &arguments);

} // namespace llmc::jinja
