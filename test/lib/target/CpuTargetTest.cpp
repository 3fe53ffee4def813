// The table of CPU targets: names, the choice for this machine, and features that the runtime can check.
#include "lib/target/CpuTarget.h"
#include "runtime/support/CpuFeatures.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace llmc;

TEST(CpuTarget, UnknownNameListsTheKnownOnes) {
  StatusOr<CpuTarget> target = findCpuTarget("x86-64-v9");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().message(),
            "unknown CPU target 'x86-64-v9' (known = host x86-64-v3 x86-64-v4-vnni x86-64-v4 x86-64-v4-amx)");
}

TEST(CpuTarget, EveryKnownNameIsFound) {
  for (const CpuTarget &known : knownCpuTargets()) {
    StatusOr<CpuTarget> target = findCpuTarget(known.name);
    ASSERT_TRUE(target.ok()) << known.name;
    EXPECT_EQ(target->name, known.name);
    EXPECT_EQ(target->llvmFeatures, known.llvmFeatures);
  }
}

// The compiler asks LLVM for the features of this machine, the runtime asks the processor: a target that the first
// chooses must load with the second.
TEST(CpuTarget, HostResolvesToTheBestThatTheRuntimeAccepts) {
  const CpuTarget *best = nullptr;
  for (const CpuTarget &known : knownCpuTargets())
    if (checkCpuFeatures(known.requiredFeatures, hostCpuFeatures()).ok())
      best = &known;
  StatusOr<CpuTarget> host = findCpuTarget("host");
  if (!best) {
    ASSERT_FALSE(host.ok());
    EXPECT_TRUE(host.status().message().starts_with("this machine has no known CPU target: x86-64-v3 needs "));
    return;
  }
  ASSERT_TRUE(host.ok()) << host.status().message();
  EXPECT_EQ(host->name, best->name);
}

TEST(CpuTarget, RequiresFeaturesThatTheRuntimeKnows) {
  std::vector<std::string_view> known = knownCpuFeatures();
  for (const CpuTarget &target : knownCpuTargets()) {
    EXPECT_FALSE(target.requiredFeatures.empty()) << target.name;
    for (const std::string &feature : target.requiredFeatures)
      EXPECT_NE(std::ranges::find(known, feature), known.end()) << target.name << " needs " << feature;
  }
}

// Kernels are written for what a target has; a machine that loads them must have been asked for it.
TEST(CpuTarget, ClaimsNoInstructionThatItDoesNotRequire) {
  for (const CpuTarget &target : knownCpuTargets()) {
    SCOPED_TRACE(target.name);
    EXPECT_TRUE(!target.hasBf16Dot || target.needs("avx512_bf16"));
    EXPECT_TRUE(!target.hasVnni || target.needs("avx512_vnni"));
    EXPECT_TRUE(!target.hasBf16Tiles || (target.needs("amx-tile") && target.needs("amx-bf16")));
    EXPECT_TRUE(!target.hasInt8Tiles || (target.needs("amx-tile") && target.needs("amx-int8")));
    EXPECT_EQ(target.vectorBits, target.needs("avx512f") ? 512 : 256);
    EXPECT_EQ(target.vectorRegisters, target.needs("avx512f") ? 32 : 16);
    EXPECT_EQ(target.lanes() * 32, target.vectorBits);
    EXPECT_LT(target.l1Bytes, target.l2Bytes);
  }
}

// LLVM takes any instruction of the CPU it is told, lzcnt for a count of zeros: what the runtime can check, it must.
TEST(CpuTarget, RequiresExactlyWhatLlvmMayUse) {
  for (const CpuTarget &target : knownCpuTargets()) {
    SCOPED_TRACE(target.name);
    llvm::SmallVector<llvm::StringRef> features, added;
    llvm::X86::getFeaturesForCPU(target.llvmCpu, features);
    llvm::StringRef(target.llvmFeatures).split(added, ',');
    for (llvm::StringRef feature : added)
      if (feature.consume_front("+"))
        features.push_back(feature);
    llvm::StringMap<bool> used;
    for (llvm::StringRef feature : features) {
      used[feature] = true;
      llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, used);
    }
    for (std::string_view feature : knownCpuFeatures()) {
      std::string name(feature == "bmi1" ? "bmi" : feature);
      if (feature.starts_with("sse4_"))
        std::ranges::replace(name, '_', '.');
      std::erase(name, '_');
      EXPECT_EQ(target.needs(std::string(feature)), used.lookup(name)) << feature;
    }
  }
}

// The table is best last: whatever a target requires, the better ones require too.
TEST(CpuTarget, BetterTargetsRequireMore) {
  const std::vector<CpuTarget> &known = knownCpuTargets();
  for (size_t i = 1; i < known.size(); ++i) {
    EXPECT_GT(known[i].requiredFeatures.size(), known[i - 1].requiredFeatures.size());
    for (const std::string &feature : known[i - 1].requiredFeatures)
      EXPECT_TRUE(known[i].needs(feature)) << known[i].name << " lacks " << feature;
  }
}
