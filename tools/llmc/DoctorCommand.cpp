// What the compiler and the programs it makes have on this machine.
#include "lib/target/CpuTarget.h"
#include "runtime/support/CpuFeatures.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include "runtime/support/MachineMemory.h"
#include "runtime/support/UsableCores.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/MachineLimits.h"
#include "tools/llmc/MeasuredLimits.h"
#include "llvm/Config/llvm-config.h"
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace llmc {
namespace {

// The features of `target` that this machine lacks.
std::vector<std::string> missingFeatures(const CpuTarget &target) {
  const std::vector<std::string_view> &host = hostCpuFeatures();
  std::vector<std::string> missing;
  for (const std::string &feature : target.requiredFeatures)
    if (std::find(host.begin(), host.end(), feature) == host.end())
      missing.push_back(feature);
  return missing;
}

std::string cpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(": ") + 2, line.size()));
  return "unknown";
}

// Device files of GPUs; the driver answers for them.
Json devices() {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/dev", error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename();
    if (name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos)
      found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string gpuDriver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line.empty() ? "none" : line;
}

Json limitsTable() {
  return {{"layers", limits::layers},
          {"heads", limits::heads},
          {"experts", limits::experts},
          {"tensors_per_model", limits::tensorsPerModel},
          {"tensor_rank", limits::tensorRank},
          {"config_bytes", limits::configBytes},
          {"safetensors_header_bytes", limits::safetensorsHeaderBytes},
          {"gguf_header_bytes", limits::ggufHeaderBytes},
          {"tokenizer_bytes", limits::tokenizerBytes},
          {"template_source_bytes", limits::templateSourceBytes},
          {"template_steps", limits::templateSteps},
          {"template_output_bytes", limits::templateOutputBytes},
          {"ids_file_bytes", limits::idsFileBytes},
          {"json_depth", limits::jsonDepth},
          {"json_values", limits::jsonValues},
          {"artifact_context", limits::artifactContext},
          {"artifact_step_tokens", limits::artifactStepTokens},
          {"artifact_sequences", limits::artifactSequences},
          {"artifact_workers", limits::artifactWorkers},
          {"stop_strings", limits::stopStrings}};
}

Json examine() {
  Json targets = Json::array();
  for (const CpuTarget &target : knownCpuTargets()) {
    std::vector<std::string> missing = missingFeatures(target);
    targets.push_back({{"name", target.name}, {"runs_here", missing.empty()}, {"missing", missing}});
  }
  StatusOr<CpuTarget> host = findCpuTarget("host");
  StatusOr<std::string> cache = artifactCacheFolder();
  MachineMemory memory = machineMemory();
  bool hasLinker = ::access(LLMC_LINKER, X_OK) == 0;
  return {{"version", llmcVersion},
          {"llvm", LLVM_VERSION_STRING},
          {"mlir", LLVM_VERSION_STRING},
          {"linker", {{"path", LLMC_LINKER}, {"found", hasLinker}}},
          {"cpu", {{"name", cpuName()}, {"usable_cores", usableCores()}, {"features", hostCpuFeatures()}}},
          {"targets", targets},
          {"host_target", host.ok() ? Json(host->name) : Json()},
          {"memory", {{"total_bytes", memory.totalBytes}, {"available_bytes", memory.availableBytes}}},
          {"gpu", {{"driver", gpuDriver()}, {"devices", devices()}}},
          {"cache", cache.ok() ? Json(*cache) : Json()},
          {"limits", limitsTable()}};
}

std::string joined(const Json &list) {
  std::string text;
  for (const Json &item : list)
    text += (text.empty() ? "" : " ") + item.get<std::string>();
  return text.empty() ? "none" : text;
}

std::string gigabytes(const Json &bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes.get<double>() / 1e9);
  return text;
}

std::string asText(const Json &facts) {
  std::string text;
  auto line = [&](const std::string &name, const std::string &value) {
    text += name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + value + "\n";
  };
  line("compiler", facts["version"].get<std::string>() + ", LLVM and MLIR " + facts["llvm"].get<std::string>());
  line("linker", facts["linker"]["path"].get<std::string>() + (facts["linker"]["found"] ? "" : " (missing)"));
  line("cpu", facts["cpu"]["name"].get<std::string>() + ", " + facts["cpu"]["usable_cores"].dump() + " usable cores");
  line("cpu features", joined(facts["cpu"]["features"]));
  for (const Json &target : facts["targets"])
    line("target",
         target["name"].get<std::string>() + (target["name"] == facts["host_target"] ? " (host)" : "") +
             (target["runs_here"] ? ""
                                  : " (runs elsewhere only: this machine lacks " + joined(target["missing"]) + ")"));
  line("memory",
       gigabytes(facts["memory"]["total_bytes"]) + ", " + gigabytes(facts["memory"]["available_bytes"]) + " available");
  line("gpu driver", facts["gpu"]["driver"]);
  line("gpu devices", joined(facts["gpu"]["devices"]));
  line("cache", facts["cache"].is_null() ? "none" : facts["cache"].get<std::string>());
  for (const auto &[name, value] : facts["limits"].items())
    line("limit", name + " " + value.dump());
  if (facts.contains("measured"))
    text += measuredLimitsText(facts["measured"]);
  return text;
}

} // namespace

int runDoctor(const DoctorCommand &command) {
  Json facts = examine();
  if (command.limits)
    facts["measured"] = measureLimits();
  int written =
      writeAnswer(command.json ? facts.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : asText(facts));
  if (written != exitDone)
    return written;
  if (!facts["linker"]["found"])
    return reportFault(
        Status::error(std::string(LLMC_LINKER) + ": the linker is missing, models cannot be compiled; install lld"));
  StatusOr<CpuTarget> host = findCpuTarget("host");
  return host.ok() ? exitDone : reportFault(host.status());
}

} // namespace llmc
