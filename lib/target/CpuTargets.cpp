// The table of CPU targets, and the choice of one for the machine we run on.
#include "lib/target/CpuTarget.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>

using namespace llmc;

namespace {

// LLVM's names of features differ from those of /proc/cpuinfo where the latter have an underscore.
std::string llvmNameOf(const std::string &feature) {
  if (feature == "bmi1")
    return "bmi";
  std::string name = feature;
  if (name.starts_with("sse4_"))
    std::replace(name.begin(), name.end(), '_', '.');
  std::erase(name, '_');
  return name;
}

StatusOr<CpuTarget> hostTarget() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::string missing;
  const std::vector<CpuTarget> &known = knownCpuTargets();
  for (auto target = known.rbegin(); target != known.rend(); ++target) {
    missing.clear();
    for (const std::string &feature : target->requiredFeatures)
      if (!features.lookup(llvmNameOf(feature)))
        missing += (missing.empty() ? "" : ", ") + feature;
    if (missing.empty())
      return *target;
  }
  return Status::error("this machine has no known CPU target: " + known.front().name + " needs " + missing +
                       ", which it lacks");
}

} // namespace

bool CpuTarget::needs(const std::string &feature) const {
  return std::find(requiredFeatures.begin(), requiredFeatures.end(), feature) != requiredFeatures.end();
}

const std::vector<CpuTarget> &llmc::knownCpuTargets() {
  static const std::vector<CpuTarget> targets = {makeX86_64V3(), makeX86_64V4Vnni(), makeX86_64V4(), makeX86_64V4Amx()};
  return targets;
}

StatusOr<CpuTarget> llmc::findCpuTarget(const std::string &name) {
  if (name == "host")
    return hostTarget();
  std::string names = "host";
  for (const CpuTarget &target : knownCpuTargets()) {
    if (target.name == name)
      return target;
    names += " " + target.name;
  }
  return Status::error("unknown CPU target '" + name + "' (known = " + names + ")");
}
