// llmc coverage: the operators of a model against the kernels of a target, from its config alone.
#include "lib/target/CpuTarget.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Coverage.h"
#include <algorithm>
#include <cstdio>

namespace llmc {
namespace {

struct Report {
  std::string target;
  std::vector<StepSize> steps; // decode, prefill
  std::vector<OperatorCoverage> operators;
  std::vector<WeightCoverage> weights;
  std::vector<MissingPart> parts;
};

const char *wordOf(TileForm::Status status) {
  switch (status) {
  case TileForm::Status::Native:
    return "native";
  case TileForm::Status::Composed:
    return "composed";
  case TileForm::Status::Missing:
    break;
  }
  return "missing";
}

Json jsonOf(const Report &report) {
  Json operators = Json::array();
  for (const OperatorCoverage &each : report.operators)
    operators.push_back({{"op", each.op},
                         {"count", each.count},
                         {"status", wordOf(each.form.status)},
                         {"kernel", each.form.kernel},
                         {"reason", each.form.reason},
                         {"flops", each.costs[0].flops},
                         {"bytes", each.costs[0].bytes},
                         {"prefill", {{"flops", each.costs[1].flops}, {"bytes", each.costs[1].bytes}}}});
  for (const MissingPart &part : report.parts)
    operators.push_back({{"op", part.name},
                         {"count", 0},
                         {"status", "missing"},
                         {"kernel", ""},
                         {"reason", part.reason},
                         {"flops", 0},
                         {"bytes", 0}});
  Json weights = Json::array();
  for (const WeightCoverage &each : report.weights)
    weights.push_back({{"form", each.form},
                       {"count", each.count},
                       {"elements", each.elements},
                       {"status", wordOf(each.status)},
                       {"reason", each.reason}});
  auto stepJson = [](const StepSize &step) { return Json{{"rows", step.rows}, {"context", step.context}}; };
  return {{"target", report.target},
          {"decode", stepJson(report.steps[0])},
          {"prefill", stepJson(report.steps[1])},
          {"operators", std::move(operators)},
          {"weights", std::move(weights)}};
}

std::string amount(double value) {
  const char *units[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.2f%s", value, units[unit]);
  return text;
}

std::string lineOf(const std::string &op, const std::string &count, const char *status, const std::string &kernel,
                   const std::vector<std::string> &costs, const std::string &reason) {
  char text[512];
  std::snprintf(text, sizeof text, "  %-20.80s %7s  %-9s %-16s %9s %9s  %9s %9s  %.300s", op.c_str(), count.c_str(),
                status, kernel.c_str(), costs[0].c_str(), costs[1].c_str(), costs[2].c_str(), costs[3].c_str(),
                reason.c_str());
  std::string line = text;
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string textOf(const Report &report, const std::string &model) {
  char head[256];
  std::snprintf(head, sizeof head,
                "for %s; decode: %lld rows at %lld positions, prefill: %lld rows at %lld positions\n",
                report.target.c_str(), static_cast<long long>(report.steps[0].rows),
                static_cast<long long>(report.steps[0].context), static_cast<long long>(report.steps[1].rows),
                static_cast<long long>(report.steps[1].context));
  std::string text = model + " " + head;
  text += lineOf("operator", "count", "status", "kernel", {"decode op", "bytes", "prefill op", "bytes"}, "");
  double sums[4] = {};
  size_t missing = report.parts.size();
  for (const OperatorCoverage &each : report.operators) {
    double costs[] = {each.costs[0].flops, each.costs[0].bytes, each.costs[1].flops, each.costs[1].bytes};
    for (size_t i = 0; i < 4; ++i)
      sums[i] += costs[i];
    missing += each.form.status == TileForm::Status::Missing;
    text += lineOf(each.op, std::to_string(each.count), wordOf(each.form.status), each.form.kernel,
                   {amount(costs[0]), amount(costs[1]), amount(costs[2]), amount(costs[3])},
                   each.form.status == TileForm::Status::Missing ? each.form.reason : "");
  }
  text += lineOf("all", "", "", "", {amount(sums[0]), amount(sums[1]), amount(sums[2]), amount(sums[3])}, "");
  for (const WeightCoverage &each : report.weights)
    text += lineOf("weights as " + each.form, std::to_string(each.count), wordOf(each.status), "",
                   {amount(each.elements), "", "", ""}, each.reason);
  for (const MissingPart &part : report.parts)
    text += "  " + part.name + "  missing: " + part.reason + "\n";
  return text + (missing == 0 ? "everything has a kernel\n" : std::to_string(missing) + " missing\n");
}

StatusOr<Report> reportOf(const CoverageCommand &command) {
  LLMC_ASSIGN_OR_RETURN(const CpuTarget target, findCpuTarget(command.compile.target));
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(command.model, command.compile.models));
  CompileOptions options = command.compile;
  options.stopAfter = "forms";
  int64_t depth = command.depth > 0 ? command.depth : std::min<int64_t>(4096, model.spec.context);
  Report report;
  report.target = target.name;
  report.steps = {{command.rows, depth}, {command.prefill, command.prefill}};
  if (model.spec.isWired()) {
    auto countOperators = [&](const std::string &phase, mlir::ModuleOp module) {
      if (phase == "import")
        report.operators = coverageOf(module, report.steps);
    };
    LLMC_ASSIGN_OR_RETURN(CompiledModule formed, buildAndLower(model, options, countOperators));
    report.weights = weightCoverageOf(*formed.module);
  }
  report.parts = model.spec.missing;
  return report;
}

} // namespace

int runCoverage(const CoverageCommand &command) {
  StatusOr<Report> report = reportOf(command);
  if (!report.ok())
    return reportFault(report.status());
  return writeAnswer(command.json ? jsonOf(*report).dump() + "\n" : textOf(*report, command.model));
}

} // namespace llmc
