// Manifest text from anywhere: it is refused or it round-trips. The stored hash would stop nearly every mutation, so
// the text is also tried with the right one put in.
#include "runtime/artifact/Manifest.h"
#include "runtime/support/Hash.h"
#include <cstdlib>
#include <string>

using namespace llmc;

static void check(const std::string &text) {
  StatusOr<Manifest> manifest = parseManifest(text, "m");
  if (!manifest.ok())
    return;
  std::string again = manifestText(*manifest);
  StatusOr<Manifest> second = parseManifest(again, "m");
  if (!second.ok() || manifestText(*second) != again)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  check(text);
  if (text.size() >= 44) {
    text.replace(12, 32, std::string(32, '0'));
    check(text.replace(12, 32, hashHex(text)));
  }
  return 0;
}
