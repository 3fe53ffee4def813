// x86-64-v4 with VNNI but without BF16: Cascade Lake, Ice Lake, and virtual machines that hide BF16 and AMX of later
// CPUs. LLVM's x86-64-v4 has no VNNI, so it is spelled out. Caches as on Cascade Lake, the smallest of them.
#include "lib/target/CpuTarget.h"

llmc::CpuTarget llmc::makeX86_64V4Vnni() {
  CpuTarget target;
  target.name = "x86-64-v4-vnni";
  target.llvmCpu = "x86-64-v4";
  // Without prefer-256-bit off LLVM may split 512-bit vectors of generic CPUs.
  target.llvmFeatures = "+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512vnni,-prefer-256-bit";
  target.requiredFeatures = makeX86_64V3().requiredFeatures;
  for (const char *feature : {"avx512_vnni", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"})
    target.requiredFeatures.push_back(feature);
  target.vectorBits = 512;
  target.vectorRegisters = 32;
  target.hasVnni = true;
  target.l1Bytes = 32 << 10;
  target.l2Bytes = 1 << 20;
  return target;
}
