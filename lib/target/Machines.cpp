// The table of machines. Rates are those of data sheets, dense (without 2:4 sparsity); memory is what NVML reports
// where that is known, else the smaller of the published figures. What kernels reach and what a launch takes are no
// data sheet's: the fractions are those that published kernels reach (78 % of the bandwidth in a whole step on an H100,
// 740 of 989 TFLOP/s in FlashAttention-3), and 1.3 us is what a kernel costs in a CUDA graph (HazyResearch, "Look Ma,
// No Bubbles!", 2025).
#include "lib/target/Machine.h"

using namespace llmc;

namespace {

constexpr uint64_t MiB = uint64_t(1) << 20, GB = 1000 * 1000 * 1000;
constexpr double tera = 1e12, giga = 1e9, micro = 1e-6;

Machine gpu() {
  Machine machine;
  machine.usable = 0.95; // a context, communication buffers and captured graphs take 4 to 8 GB of a device
  machine.reachedMemory = 0.8;
  machine.reachedFlops = 0.7;
  machine.launchSeconds = 1.3 * micro;
  machine.devicesPerNode = 8;
  // Seconds: a small message between devices of a switch and over InfiniBand with GPUDirect, as NCCL's and NVSHMEM's
  // tests print them.
  machine.inside.seconds = 3 * micro;
  machine.between.seconds = 8 * micro;
  return machine;
}

Machine h100() {
  Machine machine = gpu();
  machine.name = "h100";
  machine.title = "8 x H100 SXM nodes";
  machine.source = "NVIDIA H100 data sheet (SXM), DGX H100 data sheet";
  machine.memoryBytes = 81559 * MiB;
  machine.memoryBytesPerSecond = 3.35 * tera;
  machine.flops16 = 989 * tera;
  machine.flops8 = 1979 * tera;
  machine.flops4 = machine.flops16;           // codes are widened to bf16 in registers
  machine.inside.bytesPerSecond = 450 * giga; // NVLink 4: 900 GB/s, both directions together
  machine.between.bytesPerSecond = 50 * giga; // a 400 Gb/s adapter for each device
  return machine;
}

Machine h200() {
  Machine machine = h100();
  machine.name = "h200";
  machine.title = "8 x H200 SXM nodes";
  machine.source = "NVIDIA H200 data sheet (SXM), DGX H200 data sheet";
  machine.memoryBytes = 143771 * MiB;
  machine.memoryBytesPerSecond = 4.8 * tera;
  return machine;
}

Machine b200() {
  Machine machine = gpu();
  machine.name = "b200";
  machine.title = "8 x B200 nodes";
  machine.source = "NVIDIA DGX B200 data sheet (72 PFLOP/s FP8 and 36 PFLOP/s BF16 sparse, 64 TB/s, 14.4 TB/s NVLink)";
  machine.memoryBytes = 183359 * MiB;
  machine.memoryBytesPerSecond = 8 * tera;
  machine.flops16 = 2250 * tera;
  machine.flops8 = 4500 * tera;
  machine.flops4 = machine.flops8; // MXFP4 weights against 8-bit activations run at the rate of 8 bits
  machine.inside.bytesPerSecond = 900 * giga;
  machine.between.bytesPerSecond = 50 * giga;
  return machine;
}

Machine b300() {
  Machine machine = b200();
  machine.name = "b300";
  machine.title = "8 x B300 nodes";
  machine.source = "NVIDIA HGX B300 data sheet (2.1 TB, 64 TB/s; ConnectX-8)";
  machine.memoryBytes = 270 * GB;
  machine.between.bytesPerSecond = 100 * giga; // 800 Gb/s for each device
  return machine;
}

Machine gb300() {
  Machine machine = b300();
  machine.name = "gb300-nvl72";
  machine.title = "GB300 NVL72 rack";
  machine.source =
      "NVIDIA GB300 NVL72 data sheet (20 TB, 576 TB/s, 360 PFLOP/s FP8 and 180 PFLOP/s BF16 dense, 130 TB/s NVLink)";
  machine.memoryBytes = 279 * GB;
  machine.flops16 = 2500 * tera;
  machine.flops8 = machine.flops4 = 5000 * tera;
  machine.devicesPerNode = 72; // one NVLink domain
  return machine;
}

Machine cpuCluster() {
  Machine machine;
  machine.name = "cpu-cluster";
  machine.title = "EPYC 9654 nodes, one socket each";
  machine.source = "AMD EPYC 9654 data sheet (12 channels of DDR5-4800, 96 cores at 2.4 GHz), 200 Gb/s InfiniBand";
  machine.isCpu = true;
  machine.memoryBytes = uint64_t(768) << 30; // 12 modules of 64 GiB
  machine.usable = 0.95;
  machine.memoryBytesPerSecond = 460.8 * giga;
  machine.flops16 = 96 * 2.4 * giga * 64;                // a core: vdpbf16ps of 32 multiply-adds a cycle
  machine.flops8 = machine.flops4 = 2 * machine.flops16; // vpdpbusd
  machine.reachedMemory = 0.8;
  machine.reachedFlops = 0.6;
  machine.launchSeconds = 5 * micro; // a barrier of all workers
  machine.devicesPerNode = 1;
  machine.inside = machine.between = {25 * giga, 3 * micro};
  return machine;
}

} // namespace

const std::vector<Machine> &llmc::knownMachines() {
  static const std::vector<Machine> machines = {h100(), h200(), b200(), b300(), gb300(), cpuCluster()};
  return machines;
}

const Machine *llmc::findMachine(const std::string &name) {
  for (const Machine &machine : knownMachines())
    if (machine.name == name)
      return &machine;
  return nullptr;
}

std::string llmc::machineNames() {
  std::string names;
  for (const Machine &machine : knownMachines())
    names += (names.empty() ? "" : ", ") + machine.name;
  return names;
}

const Machine &llmc::cpuClusterMachine() { return knownMachines().back(); }
