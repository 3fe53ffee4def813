#include "tools/llmc/RankPlan.h"
#include "lib/importer/Inspect.h"
#include "lib/importer/StoredForms.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/RankCosts.h"
#include <cmath>
#include <map>

namespace llmc {
namespace {

using sharding::Candidate;
using sharding::Grid;
using sharding::RankMemory;

// As the files hold them where a device multiplies what is published; in the form of --weights on CPUs.
llvm::StringMap<double> bytesOfWeights(const Model &model, const std::vector<double> &stored,
                                       const CompileOptions &options, bool isCpu) {
  llvm::StringMap<double> bytes;
  for (size_t i = 0; i < model.spec.weights.size(); ++i) {
    const WeightSpec &weight = model.spec.weights[i];
    bytes[weight.name] = isCpu ? static_cast<double>(weightBytes(model.spec, weight, options.weights)) : stored[i];
  }
  return bytes;
}

double publishedBytes(const Model &model) {
  if (model.stored.empty())
    return static_cast<double>(storedTotals(model.spec).bytes);
  double bytes = 0;
  for (const StoredTensor &tensor : model.stored)
    bytes += static_cast<double>(tensor.bytes);
  return bytes;
}

// What `llmc compile` would allocate for each rank; an error where it has no kernel for something.
Status takeExactMemory(const Model &model, const CompileOptions &options, int64_t batch, Candidate &candidate) {
  CompileOptions own = options;
  own.grid = candidate.grid;
  own.maxSequences = batch;
  LLMC_ASSIGN_OR_RETURN(const RankKinds ranks, rankKinds(model, own));
  std::vector<RankMemory> kinds;
  for (int64_t rank : ranks.first) {
    own.rank = rank;
    LLMC_ASSIGN_OR_RETURN(MemoryPlan plan, planMemoryOf(model, own, 1));
    if (!plan.estimatedBecause.empty())
      return Status::error(plan.estimatedBecause);
    RankMemory &memory = kinds.emplace_back();
    memory.experts = static_cast<double>(plan.experts);
    memory.matrices = static_cast<double>(plan.weights - plan.experts);
    memory.activations = static_cast<double>(plan.activations);
    memory.scratch = static_cast<double>(plan.scratch);
    memory.collectives = static_cast<double>(plan.collectives);
    memory.kv = static_cast<double>(plan.kv);
    memory.state = static_cast<double>(plan.state);
    memory.logits = static_cast<double>(plan.logits);
    memory.staging = static_cast<double>(plan.staging);
  }
  for (size_t rank = 0; rank < candidate.ranks.size(); ++rank)
    candidate.ranks[rank] = kinds[ranks.kindOf[rank]];
  return {};
}

} // namespace

StatusOr<RankPlan> planRanks(const Model &model, const CompileOptions &options, const RankPlanOptions &wanted) {
  const Machine &machine = *wanted.machine;
  RankPlan plan;
  plan.machine = &machine;
  plan.model = model.files.path();
  plan.ranks = wanted.ranks > 0 ? wanted.ranks : machine.devicesPerNode;
  CompileOptions untilImport = options;
  untilImport.stopAfter = "verify";
  untilImport.grid = {};
  LLMC_ASSIGN_OR_RETURN(plan.workload.context, contextOf(model, options));
  plan.workload.batch = wanted.batch;
  plan.workload.prefillRows = std::min(options.maxTokens, plan.workload.context);
  plan.workload.cacheElementBytes = cacheElementBytes(options);
  LLMC_ASSIGN_OR_RETURN(CompiledModule imported, buildAndLower(model, untilImport));
  const std::vector<double> stored = storedWeightBytes(model.spec, model.stored);
  RankCosts costs(*imported.module, bytesOfWeights(model, stored, options, machine.isCpu),
                  {plan.workload.context, std::max<int64_t>(1, plan.workload.context / 2)});
  // A grid that cannot be is none of the candidates; nobody needs to hear why.
  mlir::ScopedDiagnosticHandler quiet(imported.context.get(), [](mlir::Diagnostic &) { return mlir::success(); });
  sharding::CostsOf costsOf = [&](const Grid &grid) -> std::optional<sharding::GridCosts> {
    mlir::FailureOr<sharding::GridCosts> known = costs.of(grid);
    return mlir::succeeded(known) ? std::optional(std::move(*known)) : std::nullopt;
  };
  plan.candidates = sharding::search(plan.ranks, costs.layers(), costs.experts(), costsOf, machine, plan.workload);
  plan.isGiven = options.grid.ranks() > 1;
  if (plan.isGiven)
    std::erase_if(plan.candidates, [&](const Candidate &other) { return nameOf(other.grid) != nameOf(options.grid); });
  if (plan.isGiven && plan.candidates.empty())
    return Status::error(plan.model + ": " + nameOf(options.grid) + " cannot share its " +
                         std::to_string(costs.layers()) + " layers and " + std::to_string(costs.experts()) +
                         " experts; leave the grid out and give --ranks to see which can");
  if (plan.candidates.empty())
    return Status::error(plan.model + ": no grid of " + std::to_string(plan.ranks) + " ranks can share its " +
                         std::to_string(costs.layers()) + " layers");
  plan.costs = *costsOf(plan.best().grid);
  if (!plan.best().fits())
    plan.remedies = sharding::remediesFor(plan.ranks, costs.layers(), costs.experts(), costsOf, machine, plan.workload);
  plan.publishedBytes = publishedBytes(model);
  plan.notRunBytes = plan.publishedBytes;
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::vector<WeightSource> &sources = model.spec.weights[i].sources;
    if (!std::all_of(sources.begin(), sources.end(), [](const WeightSource &source) { return source.isConstant(); }))
      plan.notRunBytes -= stored[i];
  }
  plan.notRunBytes = std::max(0.0, plan.notRunBytes);
  if (model.stored.empty())
    plan.estimatedBecause = StoredForms(model.spec).unknown();
  constexpr int64_t mostExactRanks = 16; // each is planned as it is compiled, in up to a second
  if (machine.isCpu && plan.best().fits() && plan.ranks <= mostExactRanks) {
    Status exact = takeExactMemory(model, options, plan.workload.batch, plan.candidates.front());
    plan.isExact = exact.ok();
    plan.estimatedBecause = exact.ok() ? "" : exact.message();
  }
  return plan;
}

//===-- JSON
//--------------------------------------------------------------------------------------------------------===//

namespace {

uint64_t whole(double bytes) { return static_cast<uint64_t>(std::ceil(bytes)); }

Json jsonOf(const Grid &grid) {
  return {{"stages", grid.stages}, {"experts", grid.group.experts}, {"tensor", grid.group.tensor}};
}

Json jsonOf(const sharding::StepTime &time) {
  return {{"seconds", time.total()},         {"compute", time.compute},
          {"memory", time.memory},           {"launches", time.launches},
          {"collectives", time.collectives}, {"hidden", time.hidden},
          {"hand_over", time.handOver},      {"limit", time.limit()}};
}

Json jsonOf(const RankMemory &memory, double limit) {
  Json rank;
  uint64_t total = 0;
  auto add = [&](const char *name, double bytes) {
    rank[name] = whole(bytes);
    total += whole(bytes);
  };
  add("weights", memory.weights());
  add("activations", memory.activations);
  add("scratch", memory.scratch);
  add("collectives", memory.collectives);
  add("kv", memory.kv);
  add("state", memory.state);
  add("logits", memory.logits);
  add("staging", memory.staging);
  rank["total"] = total;
  rank["limit"] = whole(limit);
  rank["experts"] = whole(memory.experts);
  return rank;
}

} // namespace

Json jsonOf(const RankPlan &plan) {
  const Candidate &best = plan.best();
  Json ranks = Json::array(), candidates = Json::array(), duplicates = Json::array();
  for (const RankMemory &memory : best.ranks)
    ranks.push_back(jsonOf(memory, best.limit));
  for (const Candidate &candidate : plan.candidates)
    candidates.push_back({{"grid", jsonOf(candidate.grid)},
                          {"fits", candidate.fits()},
                          {"fullest_rank_bytes", whole(candidate.ranks[candidate.fullest()].total())},
                          {"duplicated", whole(candidate.duplicated)},
                          {"decode", jsonOf(candidate.decodeTime())},
                          {"prefill", jsonOf(candidate.prefillTime())}});
  for (const auto &[name, bytes] : plan.costs.duplicates)
    duplicates.push_back({{"weight", name}, {"bytes", whole(bytes)}});
  auto batch = static_cast<double>(plan.workload.batch), rows = static_cast<double>(plan.workload.prefillRows);
  Json decode = jsonOf(best.decodeTime()), prefill = jsonOf(best.prefillTime());
  decode["tokens_per_second"] = batch / best.decodeTime().total();
  prefill["tokens_per_second"] = rows / best.prefillTime().total();
  Json json = {{"target", plan.machine->name},
               {"ranks", plan.ranks},
               {"fits", best.fits()},
               {"rank", ranks},
               {"grid", jsonOf(best.grid)},
               {"context", plan.workload.context},
               {"batch", plan.workload.batch},
               {"max_tokens", plan.workload.prefillRows},
               {"decode", decode},
               {"prefill", prefill},
               {"weights",
                {{"published", whole(plan.publishedBytes)},
                 {"once", whole(plan.costs.weightBytes)},
                 {"not_run", whole(plan.notRunBytes)},
                 {"duplicated", whole(plan.costs.duplicatedBytes)},
                 {"duplicates", duplicates}}},
               {"candidates", candidates},
               {"exact", plan.isExact},
               {"estimated_because", plan.estimatedBecause}};
  if (plan.remedies) {
    json["lacks"] = whole(best.ranks[best.fullest()].total() - best.limit);
    json["remedies"] = {{"batch", plan.remedies->batch},
                        {"context", plan.remedies->context},
                        {"kv_int8", plan.remedies->withInt8Cache},
                        {"ranks", plan.remedies->ranks},
                        {"machines", plan.remedies->machines}};
  }
  return json;
}

//===-- text
//--------------------------------------------------------------------------------------------------------===//

namespace {

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Small models in MiB.
struct Unit {
  const char *name;
  double bytes;
};
Unit unitFor(const Candidate &candidate) {
  bool isSmall = candidate.ranks[candidate.fullest()].total() < (1 << 30);
  return isSmall ? Unit{"MiB", 1 << 20} : Unit{"GiB", 1 << 30};
}

std::string rateOf(double perSecond) { return format(perSecond < 100 ? "%.1f" : "%.0f", perSecond) + " tokens/s"; }

std::string partsOf(const sharding::StepTime &time) {
  return format("compute %.2f, memory %.2f, launches %.2f, collectives %.2f (%.2f meanwhile), between stages %.2f ms",
                1e3 * time.compute, 1e3 * time.memory, 1e3 * time.launches, 1e3 * time.collectives, 1e3 * time.hidden,
                1e3 * time.handOver);
}

// Ranks with the same numbers, to the byte, in one line.
std::string rankTable(const Candidate &best) {
  const Unit unit = unitFor(best);
  auto gib = [&](double bytes) { return bytes / unit.bytes; };
  std::string text = format("  %s of rank %9s %9s %9s %9s %9s %9s %9s\n", unit.name, "experts", "matrices", "vectors",
                            "kv", "state", "rows", "total");
  auto line = [&](const std::string &name, const RankMemory &own) {
    text += format("  %-11s %9.2f %9.2f %9.3f %9.2f %9.2f %9.2f %9.2f\n", name.c_str(), gib(own.experts),
                   gib(own.matrices), gib(own.vectors), gib(own.kv), gib(own.state),
                   gib(own.activations + own.collectives + own.logits + own.scratch + own.staging), gib(own.total()));
  };
  std::string last;
  for (size_t first = 0, next; first < best.ranks.size(); first = next) {
    next = first + 1;
    const RankMemory &own = best.ranks[first];
    while (next < best.ranks.size() && best.ranks[next].total() == own.total() &&
           best.ranks[next].weights() == own.weights() && best.ranks[next].kv == own.kv)
      ++next;
    line(std::to_string(first) + (next - first > 1 ? " - " + std::to_string(next - 1) : ""), own);
  }
  return text;
}

std::string remedyLines(const RankPlan &plan) {
  const sharding::Remedies &remedies = *plan.remedies;
  std::string text;
  auto add = [&](const std::string &line) { text += "  would fit   " + line + "\n"; };
  if (remedies.batch > 0)
    add("with --batch " + std::to_string(remedies.batch));
  if (remedies.context > 0)
    add("with --context " + std::to_string(remedies.context));
  if (remedies.withInt8Cache)
    add("with --kv int8");
  if (remedies.ranks > 0)
    add("on " + std::to_string(remedies.ranks) + " ranks, no fewer");
  for (const std::string &machine : remedies.machines)
    add("on " + std::to_string(plan.ranks) + " ranks of --machine " + machine);
  if (text.empty())
    text =
        "  nothing of fewer sequences, a shorter context, --kv int8, up to four times as many ranks or another machine "
        "makes it fit\n";
  return text;
}

} // namespace

std::string textOf(const RankPlan &plan, bool explain) {
  const Candidate &best = plan.best();
  const RankMemory &fullest = best.ranks[best.fullest()];
  const Unit unit = unitFor(best);
  auto gib = [&](double bytes) { return bytes / unit.bytes; };
  int64_t nodes = (plan.ranks + plan.machine->devicesPerNode - 1) / plan.machine->devicesPerNode;
  std::string text = plan.model + " on " + std::to_string(plan.ranks) + " ranks of " + plan.machine->name + " (" +
                     plan.machine->title + (nodes > 1 ? ", " + std::to_string(nodes) + " of them" : "") + ")\n";
  text += format("  %-11s %s: --pipeline %lld --experts %lld --tensor %lld\n",
                 plan.isGiven  ? "as given"
                 : best.fits() ? "best"
                               : "nearest",
                 nameOf(best.grid).c_str(), static_cast<long long>(best.grid.stages),
                 static_cast<long long>(best.grid.group.experts), static_cast<long long>(best.grid.group.tensor));
  double gap = best.limit - fullest.total();
  text += format("  %-11s %.2f %s on rank %zu, which needs %.2f of %.2f %s\n", best.fits() ? "fits, left" : "lacks",
                 gib(std::abs(gap)), unit.name, best.fullest(), gib(fullest.total()), gib(best.limit), unit.name);
  if (double all = best.limit * static_cast<double>(plan.ranks); plan.costs.weightBytes > all)
    text += format("              the weights alone take %.2f of the %.2f %s that all ranks have\n",
                   gib(plan.costs.weightBytes), gib(all), unit.name);
  sharding::StepTime decode = best.decodeTime(), prefill = best.prefillTime();
  text += format("  %-11s %.2f ms, %s: %lld sequences at %lld positions; most of it %s\n", "decode",
                 1e3 * decode.total(), rateOf(static_cast<double>(plan.workload.batch) / decode.total()).c_str(),
                 static_cast<long long>(plan.workload.batch), static_cast<long long>(plan.workload.context),
                 decode.limit().c_str());
  text += "              " + partsOf(decode) + "\n";
  text += format("  %-11s %.2f ms, %s: %lld rows at %lld positions; most of it %s\n", "prefill", 1e3 * prefill.total(),
                 rateOf(static_cast<double>(plan.workload.prefillRows) / prefill.total()).c_str(),
                 static_cast<long long>(plan.workload.prefillRows), static_cast<long long>(plan.workload.context / 2),
                 prefill.limit().c_str());
  text += "              " + partsOf(prefill) + "\n";
  text += format("  %-11s %.2f %s published, %.2f of it not run; %.2f once on ranks, %.2f held more than once\n",
                 "weights", gib(plan.publishedBytes), unit.name, gib(plan.notRunBytes), gib(plan.costs.weightBytes),
                 gib(plan.costs.duplicatedBytes));
  if (!plan.estimatedBecause.empty())
    text += "  estimated   " + plan.estimatedBecause + "\n";
  text += rankTable(best);
  text += plan.isExact ? "  to the byte what llmc compile allocates for each rank\n" : "";
  if (plan.remedies)
    text += remedyLines(plan);
  constexpr size_t runnersUp = 5;
  text += format("  %-38s %9s %12s %12s  %s\n", "grid", unit.name, "decode ms", "prefill ms", "most of decode");
  for (size_t i = 0; i < plan.candidates.size() && (explain || i <= runnersUp); ++i) {
    const Candidate &other = plan.candidates[i];
    text += format("  %-38s %9.2f %12.2f %12.2f  %s%s\n", nameOf(other.grid).c_str(),
                   gib(other.ranks[other.fullest()].total()), 1e3 * other.decodeTime().total(),
                   1e3 * other.prefillTime().total(), other.decodeTime().limit().c_str(),
                   other.fits() ? "" : "; does not fit");
    if (explain && i > 0)
      text += "    " + whyNot(best, other) + "\n";
  }
  if (!explain && plan.candidates.size() > runnersUp + 1)
    text += "  and " + std::to_string(plan.candidates.size() - runnersUp - 1) + " more: --explain\n";
  if (explain && !plan.costs.duplicates.empty()) {
    text += "  held more than once\n";
    for (const auto &[name, bytes] : plan.costs.duplicates)
      text += format("    %-40s %9.3f %s\n", name.c_str(), gib(bytes), unit.name);
  }
  return text;
}

} // namespace llmc
