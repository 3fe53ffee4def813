// Dots with plain and quantised weights against loops in the documented order, to the bit: every form, target and
// number of workers, at shapes around the sizes of kernels, panels and row blocks.
#include "test/lib/codegen/cpu/PackedWeight.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

const char *kPlainDot = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = 0 : i64} {
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  tile.task @product rows(%row, %column of ${C}) (%x: !tile.rows<${K}>, %w: ${W}, %y: !tile.rows<${N}>) {
    %c0 = arith.constant 0 : index
    %width = arith.constant ${TN} : index
    %at = arith.muli %column, %width : index
    %v = tile.load %x[%row, %c0] : !tile.rows<${K}> -> tensor<${K}xf32>
    ${PREPARE}
    %d = ${DOT} -> tensor<${TN}xf32>
    tile.store %d, %y[%row, %at] : tensor<${TN}xf32>, !tile.rows<${N}>
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %x = tile.alloc at 0 : !tile.rows<${K}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${N}>
    tile.launch @product(%x, %w, %y) : !tile.rows<${K}>, ${W}, !tile.rows<${N}>
    return
  }
})mlir";

constexpr int64_t kMaxTokens = 256;
int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

struct Shape {
  std::string form;
  int64_t rows, columns; // N, K
  int64_t tile, panel;
  int codeBits = 16;
};

std::string moduleOf(const Shape &s) {
  std::string k = std::to_string(s.columns), groups = std::to_string((s.columns + 63) / 64 * 2);
  std::string codes = std::to_string((s.columns + 63) / 64 * 64), prepare, dot;
  if (s.form == "f32" || s.form == "f8") {
    dot = "tile.dot %v, %w[%column] : tensor<" + k + "xf32>, ${W}";
  } else if (s.form == "bf16") {
    prepare = "%b = arith.truncf %v : tensor<" + k + "xf32> to tensor<" + k + "xbf16>";
    dot = "tile.dot %b, %w[%column] : tensor<" + k + "xbf16>, ${W}";
  } else {
    std::string types = "tensor<" + codes + "xi" + std::to_string(s.codeBits) + ">, tensor<" + groups + "xf32>";
    prepare = "%q, %s = tile.quantize %v : tensor<" + k + "xf32> -> " + types;
    dot = "tile.scaled_dot %q, %s, %w[%column] : " + types + ", ${W}";
  }
  std::string weight = "!llm.weight<" + std::to_string(s.rows) + "x" + k + ", " + s.form +
                       ", tile = " + std::to_string(s.tile) + ", panel = " + std::to_string(s.panel) + ">";
  return fill(kPlainDot, {{"PREPARE", prepare},
                          {"DOT", dot},
                          {"W", weight},
                          {"C", std::to_string((s.rows + s.tile - 1) / s.tile)},
                          {"K", k},
                          {"N", std::to_string(s.rows)},
                          {"TN", std::to_string(s.tile)},
                          {"XBYTES", std::to_string(strideOf(s.columns) * 4)}});
}

// Runs the product for the first `tokens` rows of `x` and returns [tokens][N].
std::vector<float> runProduct(StepProgram &program, const Shape &s, const PackedWeight &weight,
                              const std::vector<float> &x, int64_t tokens, int workers) {
  AlignedBytes arena(static_cast<size_t>(kMaxTokens * (strideOf(s.columns) + strideOf(s.rows)) * 4));
  for (int64_t t = 0; t < tokens; ++t)
    std::copy_n(x.begin() + t * s.columns, s.columns, arena.floats() + t * strideOf(s.columns));
  AlignedBytes bytes(weight.bytes.size());
  std::copy(weight.bytes.begin(), weight.bytes.end(), bytes.data());
  StepProgram::Memory memory;
  memory.weights = bytes.data();
  memory.arena = arena.data();
  program.run(Batch({{0, static_cast<int32_t>(tokens)}}, 64), memory, workers);
  std::vector<float> y;
  float *out = arena.floats() + kMaxTokens * strideOf(s.columns);
  for (int64_t t = 0; t < tokens; ++t)
    y.insert(y.end(), out + t * strideOf(s.rows), out + t * strideOf(s.rows) + s.rows);
  return y;
}

enum class Ways { All, Native }; // emulation is the same code path for every shape: a few of them show it

void checkShape(const Shape &s, const std::vector<int64_t> &tokenCounts, Ways which = Ways::Native) {
  uint64_t state = static_cast<uint64_t>(s.rows * 1000 + s.columns);
  PackedWeight weight = makeWeight(s.form, s.rows, s.columns, s.tile, s.panel, state);
  int64_t most = *std::max_element(tokenCounts.begin(), tokenCounts.end());
  std::vector<float> x(static_cast<size_t>(most * s.columns));
  for (float &value : x)
    value = randomFloat(state);
  for (const Way &way : runnableWays()) {
    if (way.emulate && which == Ways::Native)
      continue;
    std::vector<float> expected;
    for (int64_t t = 0; t < most; ++t) {
      std::vector<float> row =
          referenceDot(weight, {x.begin() + t * s.columns, x.begin() + (t + 1) * s.columns}, way.target, s.codeBits);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    SCOPED_TRACE(nameOf(way) + ": " + s.form + " " + std::to_string(s.rows) + "x" + std::to_string(s.columns));
    auto program = StepProgram::compile(moduleOf(s), way.target, way.emulate);
    ASSERT_TRUE(program);
    for (int64_t tokens : tokenCounts)
      for (int workers : {1, 3}) {
        std::vector<float> y = runProduct(*program, s, weight, x, tokens, workers);
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_EQ(y[i], expected[i]) << "row " << i / s.rows << " column " << i % s.rows << " of " << tokens
                                       << " rows, " << workers << " workers";
      }
  }
}

} // namespace

// One row, around the rows of kernels and of matrix tiles, two row blocks and one row.
TEST(DotTask, RowCounts) {
  for (const char *form : {"f32", "bf16", "i8", "i4", "i4m", "f4", "f8"})
    checkShape({form, 130, 96, 64, !plainForm(form) ? 16 : 64},
               {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 129, 255}, Ways::All);
}

// Codes of one byte, for every row count of kernels and tiles.
TEST(DotTask, ByteCodes) {
  for (const char *form : {"i8", "i4", "i4m"})
    checkShape({form, 130, 96, 64, 16, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 129}, Ways::All);
}

// K around pairs, vectors and groups.
TEST(DotTask, Depths) {
  for (const char *form : {"f32", "bf16", "i8", "i4", "i4m", "f4", "f8"})
    for (int64_t depth : {1, 15, 16, 17, 33, 63, 65, 576})
      checkShape({form, 64, depth, 64, !plainForm(form) ? 16 : 64}, {1, 7});
}

// Rows too long for the cache: the depth is cut, and not at its end.
TEST(DotTask, CutDepths) {
  for (const char *form : {"f32", "bf16", "i8", "i4m"})
    for (int64_t depth : {2112, 4100})
      checkShape({form, 80, depth, 64, form[0] == 'i' ? 16 : 64}, {1, 7, 129});
}

// N around a tile, tiles that are no power of two, panels narrower than the tile.
TEST(DotTask, Widths) {
  for (int64_t rows : {1, 15, 16, 17, 63, 65})
    for (const char *form : {"f32", "bf16", "i4"})
      checkShape({form, rows, 48, 64, 16}, {1, 6});
  for (int64_t tile : {16, 80, 96, 128})
    for (int64_t panel : {16, 80})
      if (tile % panel == 0)
        for (const char *form : {"f32", "bf16", "i8", "i4m", "f4", "f8"})
          if (plainForm(form) || panel == 16)
            checkShape({form, 2 * tile, 40, tile, panel}, {1, 6});
}

// Same module, same bytes: kernels of many tasks compile in parallel, which must not show.
TEST(DotTask, CompilesToTheSameBytes) {
  Shape shape{"i4m", 96, 96, 48, 16};
  for (const CpuTarget &target : knownCpuTargets()) {
    auto first = StepProgram::compile(moduleOf(shape), target.name, /*emulate=*/true);
    auto second = StepProgram::compile(moduleOf(shape), target.name, /*emulate=*/true);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(first->compiled().sharedObject == second->compiled().sharedObject) << target.name;
  }
}

// The artifact must name what its kernels need, so that the runtime asks the system for tiles.
TEST(DotTask, NamesTheFeaturesOfTiles) {
  const CpuTarget target = makeX86_64V4Amx();
  EXPECT_TRUE(target.needs("amx-bf16"));
  EXPECT_TRUE(target.needs("amx-int8"));
  EXPECT_TRUE(target.needs("amx-tile"));
  auto emulated = StepProgram::compile(moduleOf({"i8", 64, 64, 64, 16}), target.name, /*emulate=*/true);
  ASSERT_TRUE(emulated);
  EXPECT_EQ(emulated->compiled().kernels.front().instruction, "tdpbssd+vpdpbusd");
  EXPECT_EQ(emulated->compiled().requiredFeatures, makeX86_64V3().requiredFeatures);
}
