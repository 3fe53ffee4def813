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
  target.cacheBlock = 32;
  // Decoding SmolLM2 in bf16 reads 14.2 instead of 13.2 GB/s, with quantised weights 13 instead of 10; a plain read 17.
  target.tilePrefetchBytes = 16384;
  target.prefetchBytes = 8192;
  target.cachePrefetchBytes = 2048;
  target.l1Bytes = 48 << 10;
  target.l2Bytes = 2 << 20;
  return target;
}
