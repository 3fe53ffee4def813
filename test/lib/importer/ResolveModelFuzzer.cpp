// Any config resolves or is refused with a message; none crashes.
#include "lib/importer/CheckWeights.h"
#include "lib/importer/Inspect.h"
#include "lib/importer/ResolveModel.h"
#include <cstdlib>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const StatusOr<ModelDescriptions> descriptions = loadModelDescriptions();
  StatusOr<Json> config = parseJson(std::string_view(reinterpret_cast<const char *>(data), size), "config.json");
  if (!descriptions.ok() || !config.ok())
    return 0;
  StatusOr<ModelSpec> spec = resolveModel(*descriptions, HuggingFaceConfig(*config), UnknownKeys::Report);
  if (!spec.ok())
    return spec.status().message().empty() ? std::abort(), 0 : 0;
  std::vector<StoredTensor> stored;
  for (const ExpectedTensor &expected : expectedTensors(*spec))
    stored.push_back({expected.name, expected.shape, "BF16", 2});
  if (!checkWeights(*spec, stored).ok())
    std::abort(); // what a model expects is what it accepts
  return inspectToJson(*spec, stored).empty() ? 1 : 0;
}
