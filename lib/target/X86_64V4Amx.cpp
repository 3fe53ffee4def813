// x86-64-v4 with AMX tiles: Sapphire Rapids (2023) and later. Caches as there.
#include "lib/target/CpuTarget.h"

llmc::CpuTarget llmc::makeX86_64V4Amx() {
  CpuTarget target = makeX86_64V4();
  target.name = "x86-64-v4-amx";
  target.llvmFeatures += ",+amx-tile,+amx-int8,+amx-bf16";
  target.requiredFeatures.insert(target.requiredFeatures.end(), {"amx-bf16", "amx-int8", "amx-tile"});
  // vdpbf16ps exists, but two fused multiply-adds take half its time here: 243 against 120 GFLOP/s a core.
  target.hasBf16Dot = false;
  target.hasInt8Tiles = true;
  target.hasBf16Tiles = true;
  // A core reads 13 instead of 10 GB/s from memory, 25 instead of 15 where pages are huge.
  target.prefetchBytes = 8192;
  target.cachePrefetchBytes = 2048;
  target.l1Bytes = 48 << 10;
  target.l2Bytes = 2 << 20;
  return target;
}
