// Compile, load, run; a spin barrier as the runtime has.
#include "test/lib/codegen/cpu/StepRunner.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/support/CpuFeatures.h"
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace llmc;
using namespace llmc::test;

AlignedBytes::AlignedBytes(size_t size, uint8_t fill) : storage(size + 128, fill), bytes(size) {
  auto address = reinterpret_cast<uintptr_t>(storage.data());
  start = storage.data() + (64 - address % 64) % 64;
}

Batch::Batch(const std::vector<Sequence> &sequences, int32_t pagePositions) {
  queryStart.push_back(0);
  for (const Sequence &sequence : sequences) {
    int32_t total = sequence.cached + sequence.rows, index = static_cast<int32_t>(length.size());
    pageTableStride = std::max(pageTableStride, (total + pagePositions - 1) / pagePositions + 1);
    for (int32_t row = 0; row < sequence.rows; ++row) {
      logitRows.push_back(rows());
      tokens.push_back(rows() % 7);
      positions.push_back(sequence.cached + row);
      tokenSequence.push_back(index);
    }
    length.push_back(total);
    stateSlots.push_back(index);
    queryStart.push_back(rows());
  }
  numPages = pageTableStride * static_cast<int32_t>(sequences.size());
  for (int32_t page = numPages; page > 0; --page)
    pageTable.push_back(page - 1);
}

std::unique_ptr<StepProgram> StepProgram::compile(const std::string &mlir, const std::string &target, bool emulate) {
  mlir::DialectRegistry registry;
  cpu::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(mlir, &context);
  if (!module) {
    ADD_FAILURE() << "module does not parse:\n" << mlir;
    return nullptr;
  }
  StatusOr<CpuTarget> found = findCpuTarget(target);
  if (!found.ok()) {
    ADD_FAILURE() << found.status().message();
    return nullptr;
  }
  cpu::CompileOptions options;
  options.emulate = emulate;
  if (const char *folder = getenv("LLMC_TEST_DUMP"))
    options.dumpDir = folder;
  mlir::FailureOr<cpu::CompiledProgram> compiled = cpu::compileProgram(*module, *found, options);
  if (mlir::failed(compiled)) {
    ADD_FAILURE() << "does not compile for " << target;
    return nullptr;
  }
  auto result = std::make_unique<StepProgram>();
  result->program = std::move(*compiled);
  char path[] = "/tmp/llmc-step-XXXXXX";
  int file = mkstemp(path);
  const std::string &bytes = result->program.sharedObject;
  bool written = write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  close(file);
  result->library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  if (!result->library) {
    ADD_FAILURE() << "cannot be loaded: " << dlerror();
    return nullptr;
  }
  result->step = reinterpret_cast<llmc_step_function>(dlsym(result->library, "llmc_step"));
  auto *version = static_cast<const int32_t *>(dlsym(result->library, "llmc_abi_version"));
  EXPECT_TRUE(result->step && version && *version == LLMC_ABI_VERSION);
  return result;
}

StepProgram::~StepProgram() {
  if (library)
    dlclose(library);
}

void StepProgram::run(const Batch &batch, const Memory &memory, int workers) {
  llmc_batch view = batch.view();
  std::barrier barrier(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      AlignedBytes scratch(static_cast<size_t>(program.scratchBytes) + 64, 0xff); // NaN: nothing may rely on zeros
      llmc_step_context context = {};
      context.batch = &view;
      context.weights = memory.weights;
      context.arena = memory.arena;
      context.kv = memory.kv;
      context.state = memory.state;
      context.scratch = scratch.data();
      context.logits = memory.logits;
      context.record = memory.record;
      context.record_rows = memory.recordRows;
      context.record_channels = memory.recordChannels;
      context.worker = worker;
      context.num_workers = workers;
      context.barrier = [](void *state, int32_t) { static_cast<std::barrier<> *>(state)->arrive_and_wait(); };
      context.barrier_state = &barrier;
      step(&context);
    });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<Way> llmc::test::runnableWays() {
  std::vector<Way> ways;
  for (const CpuTarget &target : knownCpuTargets()) {
    ways.push_back({target.name, /*emulate=*/true});
    if (checkCpuFeatures(target.requiredFeatures, hostCpuFeatures()).ok() &&
        requestCpuState(target.requiredFeatures).ok())
      ways.push_back({target.name, /*emulate=*/false});
  }
  return ways;
}

std::vector<Way> llmc::test::eachTarget() {
  std::vector<Way> ways;
  for (const Way &way : runnableWays()) // the expansions come first
    if (!ways.empty() && ways.back().target == way.target)
      ways.back() = way;
    else
      ways.push_back(way);
  return ways;
}

float llmc::test::randomFloat(uint64_t &state) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<float>(static_cast<int32_t>(state >> 32)) / 2147483648.0f;
}

std::string llmc::test::fill(std::string text, const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values) {
    std::string key = "${" + name + "}";
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key))
      text.replace(at, key.size(), value);
  }
  return text;
}
