#include "tools/llmc/Plan.h"
#include "lib/importer/Inspect.h"
#include "lib/target/CpuTarget.h"
#include "passes/Pipelines.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

uint64_t roundUp(uint64_t bytes) { return (bytes + artifactAlignment - 1) / artifactAlignment * artifactAlignment; }

MemoryPlan planOf(const Manifest &manifest, int64_t workers) {
  MemoryPlan plan;
  for (const MemoryPlanEntry &entry : manifest.memoryPlan) {
    uint64_t *kinds[] = {&plan.weights, &plan.activations, &plan.scratch, &plan.kv,
                         &plan.state,   &plan.logits,      &plan.staging, &plan.collectives};
    *kinds[static_cast<size_t>(entry.kind)] +=
        entry.kind == MemoryKind::Scratch ? entry.bytes * static_cast<uint64_t>(workers) : entry.bytes;
  }
  plan.limits = {manifest.context, manifest.maxTokens, manifest.maxSequences, manifest.maxLogitRows, manifest.numPages};
  plan.workers = workers;
  return plan;
}

//===-- estimates
//---------------------------------------------------------------------------------------------------===//

// Bytes of an element of a matrix: codes of 32 elements share a scale of 16 bits.
double matrixBytes(const ModelSpec &spec, const std::string &form) {
  if (form == "int4")
    return 18.0 / 32;
  if (form == "int8")
    return 34.0 / 32;
  bool isBf16 = form == "bf16" || (form == "stored" && plainTypeOf(spec) == "BF16");
  return isBf16 ? 2 : 4;
}

} // namespace

uint64_t weightBytes(const ModelSpec &spec, const WeightSpec &weight, const std::string &form) {
  auto elements = static_cast<double>(elementsOf(weight.shape));
  return roundUp(static_cast<uint64_t>(elements * (weight.shape.size() > 1 ? matrixBytes(spec, form) : 4)));
}

double cacheElementBytes(const CompileOptions &options) {
  const std::string kv = cacheElementOf(options);
  return kv == "f32" ? 4 : kv == "int8" ? 1 : 2;
}

namespace {

//===-- experts
//-----------------------------------------------------------------------------------------------------===//

// How many of the matrices of each stack of experts a token reads, by the name of the weight.
struct ExpertStack {
  int64_t matrices, read;
};
std::map<std::string, ExpertStack> expertStacks(const ModelSpec &spec) {
  std::map<std::string, ExpertStack> stacks;
  for (const GraphNode &call : spec.graph.step.nodes) {
    if (call.op != "call")
      continue;
    const GraphFunction &kind = spec.graph.kinds[static_cast<size_t>(std::get<int64_t>(call.attributes.at("kind")))];
    for (const GraphNode &node : kind.nodes) {
      if (node.op != "expert_linear")
        continue;
      auto input = std::find(kind.inputs.begin(), kind.inputs.end(), node.operands[1]);
      int weight = call.operands[static_cast<size_t>(input - kind.inputs.begin())];
      const GraphValue &stack = spec.graph.step.values[static_cast<size_t>(weight)];
      const GraphValue &slots = kind.values[static_cast<size_t>(node.results.front())];
      stacks[stack.name] = {stack.shape.front(), std::min(slots.heads, stack.shape.front())};
    }
  }
  return stacks;
}

// `bytesOf`: calls back with name and bytes of every weight. Weights that are joined go by the names of their parts:
// "layers.0.experts.gate+up".
template <typename BytesOf> void countExperts(const ModelSpec &spec, BytesOf bytesOf, MemoryPlan &plan) {
  const std::map<std::string, ExpertStack> stacks = expertStacks(spec);
  bytesOf([&](const std::string &name, uint64_t bytes) {
    auto stack = stacks.find(name.substr(0, name.find('+')));
    if (stack == stacks.end())
      return;
    plan.experts += bytes;
    plan.expertsPerToken +=
        bytes / static_cast<uint64_t>(stack->second.matrices) * static_cast<uint64_t>(stack->second.read);
  });
}

// The most bytes of rows that are needed at once in a function, for one row of the batch.
uint64_t rowBytesAtOnce(const GraphFunction &function) {
  std::vector<size_t> last(function.values.size(), 0);
  for (size_t i = 0; i < function.nodes.size(); ++i)
    for (int operand : function.nodes[i].operands)
      last[static_cast<size_t>(operand)] = i;
  for (int result : function.results)
    last[static_cast<size_t>(result)] = function.nodes.size();
  uint64_t now = 0, most = 0;
  std::vector<std::vector<size_t>> ending(function.nodes.size() + 1);
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    for (int result : function.nodes[i].results) {
      auto value = static_cast<size_t>(result);
      now += 4 * static_cast<uint64_t>(function.values[value].rowElements());
      ending[std::max(last[value], i)].push_back(value);
    }
    most = std::max(most, now);
    for (size_t value : ending[i])
      now -= 4 * static_cast<uint64_t>(function.values[value].rowElements());
  }
  return most;
}

// Of packed files only the headers tell the form; "" for plain ones.
std::string packedNote(const Model &model, const CompileOptions &options) {
  if (model.spec.quantization.empty() || model.files.hasWeights() || options.weights != "stored")
    return "";
  return "weights that the files pack as '" + model.spec.quantization + "' count as " + plainTypeOf(model.spec) +
         ": without their headers their form is not known";
}

} // namespace

StatusOr<MemoryPlan> estimateMemoryOf(const Model &model, const CompileOptions &options, int64_t workers,
                                      std::string reason) {
  MemoryPlan plan;
  plan.estimatedBecause = std::move(reason);
  plan.workers = workers;
  const int64_t page = PhaseOptions().kvPage;
  LLMC_ASSIGN_OR_RETURN(plan.limits, limitsOf(model, options, page));
  auto bytesOf = [&](auto take) {
    for (const WeightSpec &weight : model.spec.weights)
      take(weight.name, weightBytes(model.spec, weight, options.weights));
  };
  bytesOf([&](const std::string &, uint64_t bytes) { plan.weights += bytes; });
  countExperts(model.spec, bytesOf, plan);
  uint64_t layers = 0;
  for (const GraphFunction &kind : model.spec.graph.kinds)
    layers = std::max(layers, rowBytesAtOnce(kind));
  plan.activations = (rowBytesAtOnce(model.spec.graph.step) + layers) * static_cast<uint64_t>(plan.limits.maxTokens);
  StateBytes state = stateBytes(model.spec); // caches as bfloat16
  plan.kv = static_cast<uint64_t>(static_cast<double>(state.perToken) / 2 * cacheElementBytes(options) *
                                  static_cast<double>(page * plan.limits.numPages));
  plan.state = 4 * state.recurrentElements * static_cast<uint64_t>(plan.limits.maxSequences); // programs keep float32
  plan.logits = static_cast<uint64_t>(plan.limits.maxLogitRows) * static_cast<uint64_t>(model.spec.vocabulary) * 4;
  return plan;
}

StatusOr<MemoryPlan> planMemoryOf(const Model &model, const CompileOptions &options, int64_t workers) {
  LLMC_RETURN_IF_ERROR(findCpuTarget(options.target).status());
  LLMC_RETURN_IF_ERROR(contextOf(model, options).status());
  LLMC_RETURN_IF_ERROR(checkWired(model));
  const std::string packed = packedNote(model, options);
  StatusOr<Manifest> manifest = planModel(model, options);
  if (!manifest.ok())
    return estimateMemoryOf(model, options, workers,
                            manifest.status().message() + (packed.empty() ? "" : "; " + packed));
  MemoryPlan plan = planOf(*manifest, workers);
  plan.estimatedBecause = packed;
  auto bytesOf = [&](auto take) {
    for (const WeightPlace &weight : manifest->weights)
      take(weight.name, weight.bytes);
  };
  countExperts(model.spec, bytesOf, plan);
  return plan;
}

} // namespace llmc
