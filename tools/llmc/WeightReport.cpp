#include "tools/llmc/WeightReport.h"
#include "lib/target/CpuTarget.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

constexpr std::string_view weightPrefix = "weight:";

// The embedding is read a row a token; where there is no head of its own it is the head too, and read whole.
enum class Use { Vector, Lookup, Head, Product };

std::string textOf(const Json &entry, const char *key) {
  const Json *value = find(entry, key);
  return value && value->is_string() ? value->get<std::string>() : "";
}

uint64_t elementsOf(const Json &entry) {
  const Json *shape = find(entry, "shape");
  if (!shape || !shape->is_array() || shape->size() != 2)
    return 0;
  StatusOr<uint64_t> rows = asUnsigned((*shape)[0], "shape", UINT32_MAX);
  StatusOr<uint64_t> columns = asUnsigned((*shape)[1], "shape", UINT32_MAX / 4);
  return rows.ok() && columns.ok() ? *rows * *columns : 0;
}

// The first kernel of a shape: all of one shape use one instruction.
std::string instructionOf(const Json &list, const std::string &shape) {
  for (const Json &entry : list)
    if (std::string kernel = textOf(entry, "kernel"); kernel.starts_with(shape + ":"))
      return kernel.substr(shape.size() + 1);
  return "";
}

std::string nameOfForm(const std::string &form) {
  return form == "i8" ? "int8" : form == "i4" || form == "i4m" ? "int4" : form;
}

} // namespace

StatusOr<WeightReport> reportWeights(const LoadedArtifact &artifact) {
  const Manifest &manifest = artifact.manifest();
  LLMC_ASSIGN_OR_RETURN(std::string text, artifact.readSection(dispatchFile));
  LLMC_ASSIGN_OR_RETURN(Json list, parseJson(text, artifact.folder() + "/" + dispatchFile, JsonRoot::Any));
  std::map<std::string, const Json *> weights;
  for (const Json &entry : list)
    if (textOf(entry, "kernel").starts_with(weightPrefix))
      weights[textOf(entry, "op")] = &entry;
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
    if (use != Use::Head && use != Use::Product)
      continue;
    (use == Use::Head ? report.operationsPerLogitRow : report.operationsPerToken) +=
        2 * elementsOf(*weights[place.name]);
    if (use == Use::Product)
      bytesOfForm[textOf(*weights[place.name], "kernel").substr(weightPrefix.size())] += place.bytes;
  }
  auto most = std::max_element(bytesOfForm.begin(), bytesOfForm.end(),
                               [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most == bytesOfForm.end())
    return Status::error(artifact.folder() + "/" + dispatchFile +
                         ": names no weight with a shape; compile the model again");
  report.form = nameOfForm(most->first);
  report.instruction = instructionOf(list, report.form.starts_with("int") ? "quantized_dot" : "dot");
  StatusOr<CpuTarget> target = findCpuTarget(manifest.target);
  report.vectorBits = target.ok() ? static_cast<int>(target->vectorBits) : 256;
  return report;
}

} // namespace llmc
