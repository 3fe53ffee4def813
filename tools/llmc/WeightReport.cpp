#include "tools/llmc/WeightReport.h"
#include "lib/target/CpuTarget.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

// The embedding is read a row a token; where there is no head of its own it is the head too, and read whole.
enum class Use { Vector, Lookup, Head, Product };

uint64_t elementsOf(const WeightEntry &weight) {
  return weight.shape.size() == 2 ? static_cast<uint64_t>(weight.shape[0]) * static_cast<uint64_t>(weight.shape[1]) : 0;
}

std::string nameOfForm(const std::string &form) {
  return form == "i8"                    ? "int8"
         : form == "i4" || form == "i4m" ? "int4"
         : form == "f4"                  ? "fp4"
         : form == "f8"                  ? "fp8"
                                         : form;
}

} // namespace

int vectorBitsOf(const Manifest &manifest) {
  StatusOr<CpuTarget> target = findCpuTarget(manifest.target);
  return target.ok() ? static_cast<int>(target->vectorBits) : 256;
}

StatusOr<WeightReport> reportWeights(const LoadedArtifact &artifact, const DispatchManifest &dispatch) {
  const Manifest &manifest = artifact.manifest();
  std::map<std::string, const WeightEntry *> weights;
  for (const WeightEntry &weight : dispatch.weights)
    weights[weight.name] = &weight;
  bool ownHead = weights.contains("head");
  auto useOf = [&](const std::string &name) {
    if (name == "embedding")
      return ownHead ? Use::Lookup : Use::Head;
    if (name == "head")
      return Use::Head;
    return weights.contains(name) && elementsOf(*weights[name]) > 0 ? Use::Product : Use::Vector;
  };
  WeightReport report;
  std::map<std::string, uint64_t> bytesOfForm;
  for (const WeightPlace &place : manifest.weights) {
    Use use = useOf(place.name);
    report.bytesPerStep += use == Use::Lookup ? 0 : place.bytes;
    if ((use != Use::Head && use != Use::Product) || !weights.contains(place.name))
      continue;
    const WeightEntry &weight = *weights[place.name];
    (use == Use::Head ? report.operationsPerLogitRow : report.operationsPerToken) += 2 * elementsOf(weight);
    if (use == Use::Product)
      bytesOfForm[weight.form] += place.bytes;
  }
  auto most = std::max_element(bytesOfForm.begin(), bytesOfForm.end(),
                               [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most == bytesOfForm.end())
    return Status::error(artifact.folder() + "/" + dispatchFile +
                         ": names no weight with a shape; compile the model again");
  report.form = nameOfForm(most->first);
  std::string shape = report.form == "f32" || report.form == "bf16" || report.form == "fp8" ? "dot" : "quantized_dot";
  for (const KernelEntry &kernel : dispatch.kernels)
    if (report.kernel.name.empty() && kernel.shape == shape)
      report.kernel = kernel;
  report.vectorBits = vectorBitsOf(manifest);
  return report;
}

} // namespace llmc
