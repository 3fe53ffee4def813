// Packing by the letter of docs/weight-layouts.md (PackedWeight.h), then three ways to run.
#include "test/lib/codegen/cpu/LoweredModule.h"
#include "dialects/tile/TileDialect.h"
#include "lib/reference/LlmInterpreter.h"
#include "lib/reference/TileInterpreter.h"
#include "lib/weights/PackedLayout.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipelines.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;
using reference::Matrix;

namespace {

constexpr int32_t pagePositions = 64;

mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  cpu::registerCodegenDialects(registry);
  return registry;
}

Batch batchOf(const std::vector<int> &lengths) {
  std::vector<Sequence> sequences;
  for (int length : lengths)
    sequences.push_back({0, length});
  return Batch(sequences, pagePositions);
}

// What a packed matrix stands for, row by row.
std::vector<float> valuesOf(const PackedWeight &weight) {
  if (!weight.values.empty())
    return weight.values;
  std::vector<float> values;
  for (int64_t n = 0; n < weight.rows; ++n)
    for (int64_t k = 0; k < weight.columns; ++k) {
      auto group = static_cast<size_t>(n * weight.groups() + k / 32);
      bool second = weight.form == "f4" && k % 32 >= 16;
      float value = static_cast<float>(weight.codes[static_cast<size_t>(n * weight.groups() * 32 + k)]) *
                    (second ? weight.minima : weight.scales)[group];
      if (weight.form == "f8")
        value = fromF8E4M3(static_cast<uint8_t>(weight.codes[static_cast<size_t>(n * weight.groups() * 32 + k)])) *
                weight.scales[group];
      values.push_back(weight.form == "i4m" ? value + weight.minima[group] : value);
    }
  return values;
}

} // namespace

struct LoweredModule::State {
  State() : context(allDialects(), mlir::MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> model, tasks;
  std::string lowered;
};

LoweredModule::LoweredModule(const std::string &body, const LoweredOptions &options) : state(new State) {
  state->model = mlir::parseSourceString<mlir::ModuleOp>(body, &state->context);
  if (!state->model) {
    ADD_FAILURE() << "module does not parse:\n" << body;
    return;
  }
  lower(options);
  makeWeights(options.seed);
}

LoweredModule::~LoweredModule() = default;

const std::string &LoweredModule::lowered() const { return state->lowered; }

void LoweredModule::lower(const LoweredOptions &options) {
  state->tasks = mlir::OwningOpRef<mlir::ModuleOp>(state->model->clone());
  PhaseOptions phases;
  phases.weights = options.weights;
  phases.kvElement = "f32";
  phases.kvPage = pagePositions;
  phases.target = knownCpuTargets().front().name;
  phases.maxTokens = options.maxTokens;
  auto keepGoing = [](const std::string &, mlir::ModuleOp) { return mlir::success(); };
  ASSERT_TRUE(mlir::succeeded(runPhases(*state->tasks, phases, "memory", keepGoing)));
  // The schedule is the target's that a program is compiled for.
  for (auto task : state->tasks->getOps<tile::TaskOp>())
    task.removeScheduleAttr();
  llvm::raw_string_ostream(state->lowered) << *state->tasks;
}

void LoweredModule::makeWeights(uint64_t seed) {
  for (auto op : state->tasks->getOps<llm::WeightOp>()) {
    auto type = mlir::cast<llm::WeightType>(op.getType());
    llvm::ArrayRef<int64_t> shape = type.getShape();
    int64_t rows = 1;
    for (int64_t dimension : shape.drop_back())
      rows *= dimension;
    Weight &weight = weights[op.getSymName().str()];
    weight.values = Matrix(rows, shape.back());
    if (type.getForm() == llm::WeightForm::Plain) {
      for (float &value : weight.values.values)
        value = randomFloat(seed);
      weight.packed.assign((weight.values.values.size() * 4 + 255) / 256 * 256, 0);
      std::memcpy(weight.packed.data(), weight.values.values.data(), weight.values.values.size() * 4);
      continue;
    }
    weight.values.values.clear();
    for (int64_t matrix = 0; matrix < type.getNumStacked(); ++matrix) {
      ASSERT_EQ(type.getInterleave(), 0);
      PackedWeight packed = makeWeight(llm::stringifyWeightForm(type.getForm()).str(), type.getNumRows(), shape.back(),
                                       type.getTile(), type.getPanel(), seed);
      weight.packed.insert(weight.packed.end(), packed.bytes.begin(), packed.bytes.end());
      for (float value : valuesOf(packed))
        weight.values.values.push_back(value);
    }
  }
}

Matrix LoweredModule::interpret(const std::vector<int> &lengths) {
  reference::MemoryWeights provider;
  for (auto &[name, weight] : weights)
    provider.add(name, weight.values);
  auto interpreter = reference::LlmInterpreter::create(*state->model, provider);
  reference::StepInput input;
  Batch batch = batchOf(lengths);
  auto token = batch.tokens.begin();
  for (int length : lengths) {
    input.sequences.emplace_back(token, token + length);
    token += length;
  }
  Matrix all;
  if (mlir::failed(interpreter)) {
    ADD_FAILURE();
    return all;
  }
  mlir::FailureOr<reference::StepOutput> output = interpreter->step(input);
  if (mlir::failed(output)) {
    ADD_FAILURE();
    return all;
  }
  for (const Matrix &logits : output->logits) {
    all.rows += logits.rows;
    all.columns = logits.columns;
    all.values.insert(all.values.end(), logits.values.begin(), logits.values.end());
  }
  return all;
}

Matrix LoweredModule::interpretTasks(const std::vector<int> &lengths) {
  reference::MemoryPackedWeights provider;
  for (auto &[name, weight] : weights)
    provider.add(name, weight.packed);
  Batch batch = batchOf(lengths);
  auto interpreter = reference::TileInterpreter::create(*state->tasks, provider, batch.numPages);
  if (mlir::failed(interpreter)) {
    ADD_FAILURE();
    return {};
  }
  mlir::FailureOr<reference::TileOutput> output = (*interpreter)->step(batch.view(), /*records=*/false);
  if (mlir::failed(output)) {
    ADD_FAILURE() << state->lowered;
    return {};
  }
  return output->logits;
}

Matrix LoweredModule::runCompiled(const std::vector<int> &lengths, const Way &way, int workers) {
  std::unique_ptr<StepProgram> &program = programs[nameOf(way)];
  if (!program)
    program = StepProgram::compile(state->lowered, way.target, way.emulate);
  if (!program)
    return {};
  auto fact = [&](llvm::StringRef name) { return (*state->tasks)->getAttrOfType<mlir::IntegerAttr>(name).getInt(); };
  AlignedBytes packed(static_cast<size_t>(fact("llmc.weight_bytes")));
  int64_t columns = 0;
  for (auto op : state->tasks->getOps<llm::WeightOp>())
    std::ranges::copy(weights[op.getSymName().str()].packed,
                      packed.data() + op->getAttrOfType<mlir::IntegerAttr>("offset").getInt());
  state->tasks->walk([&](tile::LogitsOp op) { columns = op.getType().getChannels(); });
  Batch batch = batchOf(lengths);
  AlignedBytes arena(static_cast<size_t>(fact("llmc.arena_bytes_per_row") * fact("llmc.max_tokens")), 0xff);
  AlignedBytes kv(static_cast<size_t>(fact("llmc.page_bytes") * batch.numPages));
  Matrix logits(batch.rows(), columns);
  StepProgram::Memory memory;
  memory.weights = packed.data();
  memory.arena = arena.data();
  memory.kv = kv.data();
  memory.logits = logits.values.data();
  program->run(batch, memory, workers);
  return logits;
}

std::vector<Way> llmc::test::fewWays() {
  std::vector<Way> ways = runnableWays();
  std::erase_if(ways, [](const Way &way) { return way.emulate && way.target != "x86-64-v4"; });
  return ways;
}

void llmc::test::expectClose(const Matrix &actual, const Matrix &expected, float relative, const std::string &what) {
  ASSERT_EQ(actual.rows, expected.rows) << what;
  ASSERT_EQ(actual.columns, expected.columns) << what;
  for (int64_t row = 0; row < expected.rows; ++row) {
    float largest = 1;
    for (float value : expected.row(row))
      largest = std::max(largest, std::fabs(value));
    for (int64_t column = 0; column < expected.columns; ++column) {
      float a = actual.row(row)[static_cast<size_t>(column)], b = expected.row(row)[static_cast<size_t>(column)];
      ASSERT_LE(std::fabs(a - b), relative * largest)
          << what << ": row " << row << ", column " << column << ": " << a << " for " << b;
    }
  }
}
