// What the code generator refuses, in its own words: each message once.
#include "lib/codegen/cpu/CompileProgram.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

const char *kPlan = "llmc.max_tokens = 64 : i64, llmc.page_bytes = 4096 : i64";

std::string moduleOf(const std::string &body, const std::string &plan = kPlan) {
  return "module attributes {" + plan + "} {\n" + body + "\n}";
}

// The errors of compiling, joined; "" when it compiles.
std::string errorsOf(const std::string &text, const CpuTarget &target = makeX86_64V3(),
                     const cpu::CompileOptions &options = {}) {
  mlir::DialectRegistry registry;
  cpu::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    errors += (errors.empty() ? "" : "\n") + diagnostic.str();
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return "does not parse: " + errors;
  bool compiles = mlir::succeeded(cpu::compileProgram(*module, target, options));
  EXPECT_EQ(compiles, errors.empty()) << errors;
  return errors;
}

// A task of %x, a weight, a cache and %y, launched once by @step; rows are of 64 channels.
const char *kTask = R"mlir(
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  llm.state @kv : ${KV} {offset = 0 : i64}
  tile.task @work ${SPACE}(%row, %column of ${C}) (%x: !tile.rows<64>, %w: ${W}, %kv: ${KV}, %batch: !llm.batch, %y: !tile.rows<64>) ${SCHEDULE} {
    %c0 = arith.constant 0 : index
    ${BODY}
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %kv = llm.use_state @kv : ${KV}
    %x = tile.alloc at 0 : !tile.rows<64>
    %y = tile.alloc at 256 : !tile.rows<64>
    tile.launch @work(%x, %w, %kv, %batch, %y) : !tile.rows<64>, ${W}, ${KV}, !llm.batch, !tile.rows<64>
    return
  })mlir";

struct Task {
  std::string body;
  std::string columns = "1";
  std::string schedule = "";
  std::string weight = "!llm.weight<128x64, f32, tile = 64, panel = 64>";
  std::string cache = "!llm.kv<2x16xf32, page = 16, panel = 16>";
  std::string space = "rows";
};

std::string errorsOf(const Task &task, const CpuTarget &target = makeX86_64V3()) {
  return errorsOf(moduleOf(fill(kTask, {{"BODY", task.body},
                                        {"C", task.columns},
                                        {"SCHEDULE", task.schedule},
                                        {"W", task.weight},
                                        {"KV", task.cache},
                                        {"SPACE", task.space}})),
                  target);
}

const std::string kLoad = "%v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>\n";
const std::string kDot = "%d = tile.dot %v, %w[%column] : tensor<64xf32>, ${W} -> tensor<64xf32>\n";
const std::string kStore = "tile.store %d, %y[%row, %c0] : tensor<64xf32>, !tile.rows<64>\n";

std::string attendOf(const std::string &name, int64_t channels) {
  std::string type = "tensor<" + std::to_string(channels) + "xf32>";
  return "%q" + name + " = tile.load %x[%row, %c0] : !tile.rows<64> -> " + type + "\n%" + name + " = tile.attend %q" +
         name + ", %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : " + type +
         ", ${KV}\n";
}

const char *kEmptyStep = "func.func @step(%batch: !llm.batch) {\n return\n }";

void expectError(const std::string &errors, const std::string &wanted) {
  EXPECT_NE(errors.find(wanted), std::string::npos) << "wanted: " << wanted << "\nerrors: " << errors;
}

} // namespace

TEST(CodegenErrors, CorrectModulesCompile) {
  EXPECT_EQ(errorsOf(moduleOf(kEmptyStep)), "");
  EXPECT_EQ(errorsOf({.body = kLoad + kDot + kStore, .columns = "2"}), "");
  EXPECT_EQ(errorsOf({.body = attendOf("o", 32), .columns = "2"}), "");
}

TEST(CodegenErrors, MemoryPlan) {
  for (const char *plan : {"", "llmc.page_bytes = 0 : i64", "llmc.max_tokens = 64 : i64",
                           "llmc.max_tokens = 0 : i64, llmc.page_bytes = 0 : i64",
                           "llmc.max_tokens = 1 : i64, llmc.page_bytes = -1 : i64"})
    EXPECT_EQ(errorsOf(moduleOf(kEmptyStep, plan)), "module has no memory plan (llmc.max_tokens >= 1 and "
                                                    "llmc.page_bytes >= 0); run llmc-plan-memory first");
}

TEST(CodegenErrors, PlacesOfBuffersWeightsAndStates) {
  expectError(
      errorsOf(moduleOf("func.func @step(%batch: !llm.batch) {\n %x = tile.alloc : !tile.rows<64>\n return\n }")),
      "'tile.alloc' op has no place in the arena yet; run llmc-plan-memory first");
  expectError(errorsOf(moduleOf("llm.weight @w : !llm.weight<64, plain> from [{tensor = \"w\"}]\n"
                                "func.func @step(%batch: !llm.batch) {\n"
                                " %w = llm.use_weight @w : !llm.weight<64, plain>\n return\n }")),
              "'llm.use_weight' op uses @w, which has no offset yet; run llmc-plan-memory first");
  expectError(errorsOf(moduleOf("llm.state @kv : !llm.kv<2x16xf32, page = 16, panel = 16>\n"
                                "func.func @step(%batch: !llm.batch) {\n"
                                " %kv = llm.use_state @kv : !llm.kv<2x16xf32, page = 16, panel = 16>\n return\n }")),
              "'llm.use_state' op uses @kv, which has no offset yet; run llmc-plan-memory first");
}

TEST(CodegenErrors, StepAndLayerFunctions) {
  expectError(errorsOf(moduleOf("")), "module has no function @step");
  expectError(errorsOf(moduleOf("func.func @step(%x: !tile.rows<64>) {\n return\n }")),
              "@step takes '!tile.rows<64>', expected the batch alone");
  expectError(
      errorsOf(moduleOf("func.func @step(%batch: !llm.batch) {\n %c = arith.constant 0 : index\n return\n }")),
      "'arith.constant' op cannot be in a step program when code is generated (known = tile.alloc tile.logits "
      "tile.launch tile.all_reduce tile.all_gather tile.send tile.receive tile.wait llm.use_weight llm.use_state "
      "func.call)");
  expectError(errorsOf(moduleOf("func.func @step(%batch: !llm.batch) {\n %x = tile.logits : !tile.rows<64>\n"
                                " tile.send rows %x to stage 1 {tile.block = 1 : i64} : !tile.rows<64>\n return\n }")),
              "'tile.send' op is about block 1 of the rows, but takes the logits, which have none");
  expectError(errorsOf(moduleOf("func.func @layer(%x: !tile.rows<64>) -> !tile.rows<64> {\n"
                                " return %x : !tile.rows<64>\n }\n"
                                "func.func @step(%batch: !llm.batch) {\n %x = tile.alloc at 0 : !tile.rows<64>\n"
                                " %y = func.call @layer(%x) : (!tile.rows<64>) -> !tile.rows<64>\n return\n }")),
              "'func.return' op cannot be in a step program");
}

TEST(CodegenErrors, CallsOfOtherFunctions) {
  const std::string step = "func.func @step(%batch: !llm.batch) {\n return\n }\n";
  expectError(errorsOf(moduleOf("func.func @first(%x: !tile.rows<64>) {\n"
                                " %y = func.call @second(%x) : (!tile.rows<64>) -> !tile.rows<64>\n return\n }\n"
                                "func.func @second(%x: !tile.rows<64>) -> !tile.rows<64> {\n"
                                " return %x : !tile.rows<64>\n }\n" +
                                step)),
              "'func.call' op must call a function of this module that returns nothing");
  expectError(errorsOf(moduleOf("func.func private @elsewhere(!tile.rows<64>)\n" + step)),
              "'func.func' op @elsewhere has no body; a step program calls nothing outside of its module");
}

TEST(CodegenErrors, TaskLaunchedWithAndWithoutLogits) {
  expectError(errorsOf(moduleOf("tile.task @work rows(%row, %column of 1) (%y: !tile.rows<64>) {\n }\n"
                                "func.func @step(%batch: !llm.batch) {\n %x = tile.alloc at 0 : !tile.rows<64>\n"
                                " %l = tile.logits : !tile.rows<64>\n tile.launch @work(%x) : !tile.rows<64>\n"
                                " tile.launch @work(%l) : !tile.rows<64>\n return\n }")),
              "'tile.launch' op passes the logits where another launch of @work passes a buffer");
}

TEST(CodegenErrors, Schedule) {
  auto errors = [](const std::string &schedule, const CpuTarget &target) {
    return errorsOf({.body = kLoad + kDot + kStore, .columns = "2", .schedule = "schedule " + schedule}, target);
  };
  const CpuTarget v3 = makeX86_64V3(), amx = makeX86_64V4Amx();
  EXPECT_EQ(errors("{row_block = 6 : i64, kernel_rows = 6 : i64, instruction = \"fma\"}", v3), "");
  for (const char *bad :
       {"{kernel_rows = 6 : i64, instruction = \"fma\"}", "{row_block = 6 : i64, instruction = \"fma\"}",
        "{row_block = 6 : i64, kernel_rows = 6 : i64}",
        "{row_block = 0 : i64, kernel_rows = 6 : i64, instruction = \"fma\"}",
        "{row_block = 6 : i64, kernel_rows = 0 : i64, instruction = \"fma\"}",
        "{row_block = 6 : i64, kernel_rows = 17 : i64, instruction = \"fma\"}"})
    expectError(errors(bad, v3), ", expected row_block >= 1, kernel_rows 1 to 16 and an instruction");
  expectError(errors("{row_block = 6 : i64, kernel_rows = 6 : i64, instruction = \"fma\", depth_block = 65 : i64}", v3),
              ", expected a depth_block of whole blocks of 64");
  const std::string tiles = "{row_block = 16 : i64, kernel_rows = 4 : i64, instruction = \"fma\", tile_rows = ";
  expectError(errors(tiles + "16 : i64}", v3), ", but matrix tiles of x86-64-v3 have 0 rows");
  expectError(errors(tiles + "8 : i64}", amx), ", but matrix tiles of x86-64-v4-amx have 16 rows");
}

TEST(CodegenErrors, OpsThatNoKernelKnows) {
  expectError(errorsOf({.body = "%sum:2 = arith.addui_extended %row, %column : index, i1"}),
              "task @work holds 'arith.addui_extended', which no CPU kernel knows (known = arith, math, tile)");
  expectError(errorsOf({.body = "%d = arith.constant dense<[1.0, 2.0]> : tensor<2xbf16>\n"
                                "%e = arith.extf %d : tensor<2xbf16> to tensor<2xf32>\n"
                                "tile.store %e, %y[%row, %c0] : tensor<2xf32>, !tile.rows<64>"}),
              "'arith.constant' op has a constant tile that is not f32 (in task @work)");
}

TEST(CodegenErrors, DotsOfATask) {
  const std::string one = ", expected one, on the task's own column and outside of tile.when";
  const std::string second = "%d2 = tile.dot %v, %w[%column] : tensor<64xf32>, ${W} -> tensor<64xf32>\n";
  expectError(errorsOf({.body = kLoad + kDot + second + kStore}), "'tile.task' op holds 2 dots" + one);
  expectError(
      errorsOf({.body = kLoad + "%d = tile.dot %v, %w[%row] : tensor<64xf32>, ${W} -> tensor<64xf32>\n" + kStore}),
      "'tile.task' op holds 1 dots" + one);
  expectError(errorsOf({.body = kLoad + "tile.when %column in 0 to 1 {\n" + kDot + kStore + "}"}),
              "'tile.task' op holds 1 dots" + one);
  expectError(errorsOf({.body = kLoad + kDot + kStore, .columns = "3"}),
              "has 3 column tiles over '!llm.weight<128x64, f32, tile = 64, panel = 64>', which has 2");
  expectError(
      errorsOf({.body = "%v = tile.load %x[%row, %column] : !tile.rows<64> -> tensor<64xf32>\n" + kDot + kStore}),
      "uses the column where it has none yet: what feeds a dot must not depend on the column tile");
  expectError(errorsOf({.body = attendOf("v", 64) + kDot + kStore}),
              "'tile.attend' op is used before it is computed: a task holds one dot, attend, select_positions, recur, "
              "convolve or pool");
}

TEST(CodegenErrors, CodesAndScalesOfTwoRows) {
  expectError(errorsOf({.body = kLoad +
                                "%w2 = arith.addf %v, %v : tensor<64xf32>\n"
                                "%c1, %s1 = tile.quantize %v : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>\n"
                                "%c2, %s2 = tile.quantize %w2 : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>\n"
                                "%d = tile.scaled_dot %c1, %s2, %w[%column] : tensor<64xi16>, tensor<2xf32>, "
                                "${W} -> tensor<64xf32>\n" +
                                kStore,
                        .weight = "!llm.weight<128x64, i8, tile = 64, panel = 16>"}),
              "'tile.scaled_dot' op in task @work takes codes and scales that are not of one tile.quantize");
}

TEST(CodegenErrors, Attention) {
  const std::string one = ", expected one, over all rows and outside of tile.when";
  expectError(errorsOf({.body = attendOf("a", 16) + attendOf("b", 16)}), "'tile.task' op holds 2 attends" + one);
  expectError(errorsOf({.body = "tile.when %column in 0 to 1 {\n" + attendOf("a", 16) + "}"}),
              "'tile.task' op holds 1 attends" + one);
  expectError(errorsOf({.body = attendOf("a", 16), .space = "logit_rows"}), "'tile.task' op holds 1 attends" + one);
  expectError(
      errorsOf({.body = attendOf("a", 16), .cache = "!llm.kv<2x16xf32, page = 32, panel = 32>"}),
      "'tile.attend' op reads '!llm.kv<2x16xf32, page = 32, panel = 32>', but the CPU kernel takes pages of whole "
      "vectors of 16 positions and key panels of 16");
  expectError(errorsOf({.body = attendOf("a", 16), .cache = "!llm.kv<1x16xf32, latent = 16, page = 16, panel = 16>"}),
              "but the CPU kernel takes pages of whole vectors of 16 positions and latent panels of 1");
}

TEST(CodegenErrors, SelectedPositions) {
  const std::string select = "%p = tile.select_positions %q, %m, %kv, %batch[%row] : tensor<32xf32>, tensor<2xf32>, "
                             "${KV} -> tensor<4xf32>\n";
  const std::string body = "%q = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<32xf32>\n"
                           "%m = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<2xf32>\n" +
                           select;
  const std::string cache = "!llm.kv<1x16xf32, latent = 16, page = 16, panel = 1>";
  EXPECT_EQ(errorsOf({.body = body, .cache = cache}), "");
  expectError(
      errorsOf({.body = body, .columns = "2", .cache = cache}),
      "'tile.task' op holds 1 select_positions, expected one, over all rows, one column and outside of tile.when");
}

TEST(CodegenErrors, RecurrentState) {
  const char *module = R"mlir(
  llm.state @s : !llm.recurrent<2x16x32> {offset = 0 : i64}
  tile.task @work rows(%row, %column of ${C}) (%x: !tile.rows<64>, %s: !llm.recurrent<2x16x32>, %batch: !llm.batch) {
    %c0 = arith.constant 0 : index
    %q = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<16xf32>
    %v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<32xf32>
    %o = tile.recur %q, %q, %v, %s[${AT}], %batch[%row] : tensor<16xf32>, tensor<32xf32>, !llm.recurrent<2x16x32>
    tile.store %o, %x[%row, %c0] : tensor<32xf32>, !tile.rows<64>
  }
  func.func @step(%batch: !llm.batch) {
    %s = llm.use_state @s : !llm.recurrent<2x16x32>
    %x = tile.alloc at 0 : !tile.rows<64>
    tile.launch @work(%x, %s, %batch) : !tile.rows<64>, !llm.recurrent<2x16x32>, !llm.batch
    return
  })mlir";
  auto errors = [&](const char *columns, const char *at, int64_t slot) {
    std::string plan = std::string(kPlan) + ", llmc.state_bytes = " + std::to_string(slot) + " : i64";
    return errorsOf(moduleOf(fill(module, {{"C", columns}, {"AT", at}}), plan));
  };
  EXPECT_EQ(errors("2", "%column", 4096), "");
  expectError(errors("2", "%c0", 4096), "'tile.task' op holds 1 ops with a state, expected one, on the task's own row "
                                        "and column, over all rows and outside of tile.when");
  expectError(errors("1", "%column", 4096), "'tile.task' op has 1 column tiles, but '!llm.recurrent<2x16x32>' has 2");
  expectError(errors("2", "%column", 4032),
              "'tile.recur' op works on '!llm.recurrent<2x16x32>', which takes 4096 bytes, but a slot has 4032 "
              "(llmc.state_bytes); run llmc-plan-memory first");
}

TEST(CodegenErrors, RowsOfInterleavedWeights) {
  expectError(errorsOf({.body = "%g = tile.gather %w[%row] : ${W} -> tensor<64xf32>\n"
                                "tile.store %g, %y[%row, %c0] : tensor<64xf32>, !tile.rows<64>",
                        .weight = "!llm.weight<80x64, f32, tile = 64, panel = 64, interleave = 32>"}),
              "'tile.gather' op gathers rows of an interleaved weight, which no model needs (in task @work)");
}

TEST(CodegenErrors, LinkerAndMachineCode) {
  cpu::CompileOptions options;
  options.linker = "/no/such/ld.lld";
  expectError(errorsOf(moduleOf(kEmptyStep), makeX86_64V3(), options), "/no/such/ld.lld");
  CpuTarget foreign = makeX86_64V3();
  foreign.llvmTriple = "sparc-unknown-linux-gnu";
  expectError(errorsOf(moduleOf(kEmptyStep), foreign), "LLVM has no code generator for sparc-unknown-linux-gnu: ");
}
