// CpuFeatures: what is missing is named with what is there, and the detection agrees with the kernel's list.
#include "runtime/support/CpuFeatures.h"
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace llmc {
namespace {

TEST(CpuFeatures, MissingFeatureNamesBothSidesAndTheTarget) {
  std::vector<std::string_view> host = {"lzcnt", "movbe", "bmi1", "bmi2", "avx", "f16c", "fma", "avx2"};
  Status status = checkCpuFeatures({"avx2", "avx512_bf16"}, host);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "needs avx512_bf16, this CPU has lzcnt movbe bmi1 bmi2 avx f16c fma avx2; compile with "
                              "--target x86-64-v3");
  EXPECT_TRUE(checkCpuFeatures({"avx2", "fma"}, host).ok());
  EXPECT_NE(checkCpuFeatures({"avx2"}, {}).message().find("--target host"), std::string::npos);
}

TEST(CpuFeatures, UnknownFeatureIsNamed) {
  Status status = checkCpuFeatures({"avx1024"}, hostCpuFeatures());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message().find("needs the CPU feature 'avx1024', which this runtime does not know (known = sse3"),
            0u);
}

// The kernel hides what it does not save, as we do; its names differ for a few.
TEST(CpuFeatures, AgreesWithTheKernel) {
  std::ifstream info("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(info, line);)
    if (line.rfind("flags", 0) == 0) {
      std::istringstream words(line);
      for (std::string word; words >> word;)
        flags.insert(word);
    }
  if (flags.empty())
    GTEST_SKIP() << "no flags in /proc/cpuinfo";
  auto kernelName = [](std::string_view name) -> std::string {
    if (name == "sse3")
      return "pni";
    if (name == "lzcnt")
      return "abm";
    std::string text(name);
    if (text.starts_with("amx-"))
      text[3] = '_';
    return text;
  };
  std::set<std::string_view> host(hostCpuFeatures().begin(), hostCpuFeatures().end());
  for (std::string_view name : knownCpuFeatures())
    EXPECT_EQ(host.count(name) == 1, flags.count(kernelName(name)) == 1) << name;
}

} // namespace
} // namespace llmc
