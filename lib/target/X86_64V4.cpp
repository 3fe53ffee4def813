// x86-64-v4 with BF16 and VNNI: Cooper Lake, Sapphire Rapids, Zen 4 and later. LLVM's x86-64-v4 has neither, so both
// are spelled out. Caches as on Zen 4; Sapphire Rapids has more of both.
#include "lib/target/CpuTarget.h"

llmc::CpuTarget llmc::makeX86_64V4() {
  CpuTarget target;
  target.name = "x86-64-v4";
  target.llvmCpu = "x86-64-v4";
  // Without prefer-256-bit off LLVM may split 512-bit vectors of generic CPUs.
  target.llvmFeatures = "+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,"
                        "-prefer-256-bit";
  target.requiredFeatures = makeX86_64V3().requiredFeatures;
  for (const char *feature : {"avx512_bf16", "avx512_vnni", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"})
    target.requiredFeatures.push_back(feature);
  target.vectorBits = 512;
  target.vectorRegisters = 32;
  target.hasBf16Dot = true;
  target.hasVnni = true;
  target.l1Bytes = 32 << 10;
  target.l2Bytes = 1 << 20;
  return target;
}
