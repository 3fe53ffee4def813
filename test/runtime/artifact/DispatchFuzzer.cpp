// Dispatch manifests from anywhere: refused, or the same after a round trip.
#include "runtime/artifact/Dispatch.h"
#include <cstdlib>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StatusOr<DispatchManifest> manifest = parseDispatch({reinterpret_cast<const char *>(data), size}, "d");
  if (!manifest.ok())
    return 0;
  std::string text = formatDispatch(*manifest);
  StatusOr<DispatchManifest> again = parseDispatch(text, "d");
  if (!again.ok() || formatDispatch(*again) != text)
    std::abort();
  for (const KernelEntry &kernel : manifest->kernels)
    for (int64_t rows : {1, 8, 9, 512})
      kernel.instructionFor(rows);
  return 0;
}
