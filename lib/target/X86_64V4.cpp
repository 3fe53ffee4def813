// x86-64-v4 with BF16 and VNNI: Cooper Lake, Sapphire Rapids, Zen 4 and later. LLVM's x86-64-v4 has neither, so both
// are spelled out. Caches as on Zen 4; Sapphire Rapids has more of both.
#include "lib/target/CpuTarget.h"

llmc::CpuTarget llmc::makeX86_64V4() {
  CpuTarget target = makeX86_64V4Vnni();
  target.name = "x86-64-v4";
  target.llvmFeatures += ",+avx512bf16";
  target.requiredFeatures.push_back("avx512_bf16");
  target.hasBf16Dot = true;
  target.cachePairs = true;
  return target;
}
