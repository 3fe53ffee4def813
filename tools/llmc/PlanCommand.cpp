// llmc plan: what a model takes in memory, against what there is, and what would make it fit.
#include "lib/target/CpuTarget.h"
#include "runtime/engine/WeightMemory.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/MachineMemory.h"
#include "runtime/support/UsableCores.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/RankPlan.h"
#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace llmc {
namespace {

struct Change {
  std::string flags; // "--weights int4"
  uint64_t total;
  bool weightsAlone = false; // too large already, so the rest was not planned
};

struct Report {
  MemoryPlan plan;
  uint64_t limit = 0;
  std::vector<Change> changes; // that were tried because it does not fit, until one does
  bool fits() const { return plan.total() <= limit; }
  // Too large for memory, but what every token needs is not: experts stay in the file until they are chosen.
  bool runsFromDisk() const { return !fits() && plan.experts > 0 && plan.resident() + plan.expertsPerToken <= limit; }
};

// Options that take less, each on top of those before it, with the flags that say so.
std::vector<std::pair<std::string, CompileOptions>> smallerOptions(const CompileOptions &given,
                                                                   const MemoryPlan &plan) {
  std::vector<std::pair<std::string, CompileOptions>> smaller;
  CompileOptions options = given;
  std::string flags;
  auto add = [&](const std::string &flag) {
    flags += (flags.empty() ? "" : " ") + flag;
    smaller.emplace_back(flags, options);
  };
  if (plan.limits.maxSequences > 1) {
    options.maxSequences = 1;
    add("--max-sequences 1");
  }
  if (plan.limits.context > 2048) {
    options.context = 2048;
    add("--context 2048");
  }
  if (plan.limits.maxTokens > 64) {
    options.maxTokens = 64;
    add("--max-tokens 64");
  }
  for (const char *form : {"int8", "int4"})
    if (given.weights != "int4" && given.weights != form) {
      CompileOptions packed = options;
      packed.weights = form;
      smaller.emplace_back(flags + (flags.empty() ? "" : " ") + "--weights " + form, packed);
    }
  return smaller;
}

StatusOr<Report> reportOf(const PlanCommand &command) {
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(command.model, command.compile.models));
  int64_t workers = command.threads > 0 ? command.threads : usableCores();
  Report report;
  LLMC_ASSIGN_OR_RETURN(report.plan, planMemoryOf(model, command.compile, workers));
  report.limit = command.memory > 0 ? static_cast<uint64_t>(command.memory * (1 << 30)) : machineMemory().totalBytes;
  if (report.fits())
    return report;
  for (const auto &[flags, options] : smallerOptions(command.compile, report.plan)) {
    // What was an estimate stays one: the missing kernel is missing with other options too. The weights are added up at
    // once, so no plan is made to find out what they tell.
    const std::string &reason = report.plan.estimatedBecause;
    LLMC_ASSIGN_OR_RETURN(MemoryPlan plan, estimateMemoryOf(model, options, workers, reason));
    if (plan.weights > report.limit) {
      report.changes.push_back({flags, plan.weights, true});
      continue;
    }
    if (reason.empty()) {
      LLMC_ASSIGN_OR_RETURN(plan, planMemoryOf(model, options, workers));
    }
    report.changes.push_back({flags, plan.total()});
    if (plan.total() <= report.limit)
      break;
  }
  return report;
}

Json jsonOf(const PlanCommand &command, const Report &report) {
  const MemoryPlan &plan = report.plan;
  Json changes = Json::array();
  for (const Change &change : report.changes)
    changes.push_back({{"flags", change.flags},
                       {"total", change.total},
                       {"weights_alone", change.weightsAlone},
                       {"fits", change.total <= report.limit}});
  Json rank = {{"weights", plan.weights}, {"activations", plan.activations},
               {"scratch", plan.scratch}, {"collectives", plan.collectives},
               {"kv", plan.kv},           {"state", plan.state},
               {"logits", plan.logits},   {"staging", plan.staging},
               {"total", plan.total()},   {"limit", report.limit},
               {"experts", plan.experts}, {"experts_per_token", plan.expertsPerToken}};
  return {{"target", command.compile.target},
          {"ranks", 1},
          {"fits", report.fits()},
          {"runs_from_disk", report.runsFromDisk()},
          {"rank", Json::array({rank})},
          {"context", plan.limits.context},
          {"max_tokens", plan.limits.maxTokens},
          {"max_sequences", plan.limits.maxSequences},
          {"workers", plan.workers},
          {"estimated_because", plan.estimatedBecause},
          {"changes", changes}};
}

std::string line(const char *name, uint64_t bytes, const std::string &note = "") {
  char text[256];
  std::snprintf(text, sizeof text, "  %-12s %20" PRIu64 " bytes %12.3f GiB  %s", name, bytes,
                static_cast<double>(bytes) / (1 << 30), note.c_str());
  std::string line = text;
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string textOf(const PlanCommand &command, const Report &report) {
  const MemoryPlan &plan = report.plan;
  std::string text = command.model + " for " + command.compile.target + ", one rank; context " +
                     std::to_string(plan.limits.context) + ", at most " + std::to_string(plan.limits.maxTokens) +
                     " rows and " + std::to_string(plan.limits.maxSequences) + " sequences a step\n";
  text += line("weights", plan.weights, "--weights " + command.compile.weights) + line("activations", plan.activations);
  text += line("scratch", plan.scratch, "of " + std::to_string(plan.workers) + " workers") + line("kv", plan.kv);
  text += line("state", plan.state) + line("logits", plan.logits) + line("staging", plan.staging);
  text += line("total", plan.total()) + line("limit", report.limit);
  if (!plan.estimatedBecause.empty())
    text += "estimated: " + plan.estimatedBecause + "\n";
  uint64_t gap = report.fits() ? report.limit - plan.total() : plan.total() - report.limit;
  text += line(report.fits() ? "fits, left" : "lacks", gap);
  if (report.runsFromDisk()) {
    text += "runs from disk, slowly: the weights stay in their file, and experts are read when they are chosen\n";
    text += line("resident", plan.resident(), "what every token needs");
    text += line("experts", plan.experts, "of which a token reads " + std::to_string(plan.expertsPerToken) + " bytes");
  } else if (report.fits() && !weightsAreCopied(plan.weights, plan.withoutWeights(), report.limit)) {
    text += "weights stay in their file, in small pages: they are few, or a copy leaves too little memory\n";
  }
  for (const Change &change : report.changes)
    text += line(change.total <= report.limit ? "would fit" : "too large", change.total,
                 (change.weightsAlone ? "by the weights alone, with " : "with ") + change.flags);
  return text;
}

//===-- ranks
//-------------------------------------------------------------------------------------------------------===//

// 0 where nothing says.
int64_t ranksOf(const PlanCommand &command) {
  int64_t ofGrid = command.compile.grid.ranks();
  return command.ranks == 0 && ofGrid > 1 ? ofGrid : command.ranks;
}

Status checkRanks(const PlanCommand &command) {
  const sharding::Grid &grid = command.compile.grid;
  if (grid.ranks() == 1 || ranksOf(command) == grid.ranks())
    return {};
  return Status::error("--ranks is " + std::to_string(command.ranks) + ", but --pipeline " +
                       std::to_string(grid.stages) + " --experts " + std::to_string(grid.group.experts) + " --tensor " +
                       std::to_string(grid.group.tensor) + " are " + std::to_string(grid.ranks()) +
                       " ranks; leave --ranks out to plan these, or the others to find the best");
}

// Null where one rank runs on a CPU: the plan of this machine.
StatusOr<const Machine *> machineOf(const PlanCommand &command) {
  const std::string &name = command.machine.empty() ? command.compile.target : command.machine;
  const Machine *machine = findMachine(name);
  if (machine)
    return machine;
  if (!command.machine.empty())
    return Status::error("unknown machine '" + name + "' (known = " + machineNames() + ")");
  StatusOr<CpuTarget> target = findCpuTarget(name);
  if (!target.ok())
    return Status::error(target.status().message() + "; machines = " + machineNames());
  return ranksOf(command) > 1 ? &cpuClusterMachine() : nullptr;
}

StatusOr<std::string> answerOf(const PlanCommand &command, const Machine &machine) {
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(command.model, command.compile.models));
  LLMC_ASSIGN_OR_RETURN(RankPlan plan, planRanks(model, command.compile, {ranksOf(command), command.batch, &machine}));
  if (!command.page.empty())
    LLMC_RETURN_IF_ERROR(writeFileAtomically(command.page, pageOf(plan)));
  return command.json ? jsonOf(plan).dump() + "\n" : textOf(plan, command.explain);
}

} // namespace

int runPlan(const PlanCommand &command) {
  if (Status agree = checkRanks(command); !agree.ok())
    return reportFault(agree);
  StatusOr<const Machine *> machine = machineOf(command);
  if (!machine.ok())
    return reportFault(machine.status());
  if (*machine) {
    StatusOr<std::string> answer = answerOf(command, **machine);
    return answer.ok() ? writeAnswer(*answer) : reportFault(answer.status());
  }
  StatusOr<Report> report = reportOf(command);
  if (!report.ok())
    return reportFault(report.status());
  return writeAnswer(command.json ? jsonOf(command, *report).dump() + "\n" : textOf(command, *report));
}

} // namespace llmc
