// Compiles tile modules written as text, loads them, and runs steps with threads as workers.
#pragma once
#include "lib/codegen/cpu/CompileProgram.h"
#include "runtime/engine/BatchArrays.h"
#include "runtime/llmc_abi.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llmc::test {

// Memory that starts at a multiple of 64 bytes.
class AlignedBytes {
public:
  explicit AlignedBytes(size_t size, uint8_t fill = 0);
  uint8_t *data() { return start; }
  float *floats() { return reinterpret_cast<float *>(start); }
  size_t size() const { return bytes; }

private:
  std::vector<uint8_t> storage;
  uint8_t *start;
  size_t bytes;
};

// A sequence of a step: `cached` positions are in its pages already, `rows` tokens are new.
struct Sequence {
  int32_t cached = 0, rows = 1;
};

// A batch of sequences; pages are dealt out backwards, so that none lies where its number would put it.
struct Batch : BatchArrays {
  Batch(const std::vector<Sequence> &sequences, int32_t pagePositions);
  int32_t rows() const { return static_cast<int32_t>(positions.size()); }

  int32_t numPages = 0;
};

class StepProgram {
public:
  // `target` is a name of the table; fails the test (and returns null) on an error.
  static std::unique_ptr<StepProgram> compile(const std::string &mlir, const std::string &target, bool emulate);
  ~StepProgram();

  struct Memory {
    uint8_t *weights = nullptr, *arena = nullptr, *kv = nullptr, *state = nullptr;
    float *logits = nullptr, *record = nullptr;
    int64_t recordRows = 0, recordChannels = 0;
  };
  void run(const Batch &batch, const Memory &memory, int workers);
  const cpu::CompiledProgram &compiled() const { return program; }

private:
  cpu::CompiledProgram program;
  void *library = nullptr;
  llmc_step_function step = nullptr;
};

// Ways to compile that this machine can run: the targets whose features it has, and all of them emulated.
struct Way {
  std::string target;
  bool emulate;
};
std::vector<Way> runnableWays();
// Every target once: as the host runs it, else with expansions.
std::vector<Way> eachTarget();
inline std::string nameOf(const Way &way) { return way.target + (way.emulate ? " emulated" : ""); }

// Small deterministic numbers in -1 .. 1.
float randomFloat(uint64_t &state);

// Replaces every ${NAME} of a text.
std::string fill(std::string text, const std::vector<std::pair<std::string, std::string>> &values);

} // namespace llmc::test
