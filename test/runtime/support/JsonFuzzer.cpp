// Any bytes as JSON: a value within the limits or one line of text, never a crash. What was read prints and reads
// again.
#include "runtime/support/Json.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace llmc;

namespace {

void fail(const std::string &why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// A NaN or Infinity prints as null, and a float may print shorter; texts that hold neither come back the same.
bool holdsFloat(const Json &value) {
  if (value.is_number_float())
    return true;
  if (value.is_structured())
    for (const Json &element : value)
      if (holdsFloat(element))
        return true;
  return false;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  StatusOr<Json> parsed = parseJson(text, "f", JsonRoot::Any);
  if (!parsed.ok()) {
    const std::string &message = parsed.status().message();
    if (message.find('\n') != std::string::npos || message.size() > 20'000 || findInvalidUtf8(message))
      fail("not one line of text: " + message);
    return 0;
  }
  if (brief(*parsed).size() > 60)
    fail("brief is long: " + brief(*parsed));
  std::string printed = parsed->dump();
  StatusOr<Json> again = parseJson(printed, "f", JsonRoot::Any);
  if (!again.ok() || (!holdsFloat(*parsed) && *again != *parsed))
    fail("does not come back: " + printed);
  return 0;
}
