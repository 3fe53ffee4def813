// x86-64-v3: AVX2, FMA and F16C; Haswell (2013), Zen (2017) and later. Caches as on Zen 2 and 3, the smaller of the two
// lines.
#include "lib/target/CpuTarget.h"

llmc::CpuTarget llmc::makeX86_64V3() {
  CpuTarget target;
  target.name = "x86-64-v3";
  target.llvmCpu = "x86-64-v3";
  target.llvmFeatures = "+avx2,+fma,+f16c";
  target.requiredFeatures = {"avx",   "avx2",  "bmi1",   "bmi2", "cx16",   "f16c",   "fma",
                             "lzcnt", "movbe", "popcnt", "sse3", "sse4_1", "sse4_2", "ssse3"};
  target.vectorBits = 256;
  target.vectorRegisters = 16;
  target.l1Bytes = 32 << 10;
  target.l2Bytes = 512 << 10;
  target.prefetchBytes = 2048;
  return target;
}
