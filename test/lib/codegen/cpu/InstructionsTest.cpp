// Every row of the instruction table against its own expansion, bit for bit, on random and special inputs, where this
// machine has the instruction; and the conversions that are integer arithmetic everywhere.
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/Link.h"
#include "lib/codegen/cpu/LowerToObject.h"
#include "lib/codegen/cpu/MatrixTiles.h"
#include "mlir/IR/MLIRContext.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <cstdio>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;
using namespace llmc::test;

namespace {

using Body = llvm::function_ref<Value(KernelBuilder &, Value)>;

// `void f(const uint8_t *in, uint8_t *out)` whose body makes one vector of what is at `in`.
class Function {
public:
  Function(const CpuTarget &target, bool emulate, Body body) {
    DialectRegistry registry;
    registerCodegenDialects(registry);
    MLIRContext context(registry);
    context.loadAllAvailableDialects();
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    ImplicitLocOpBuilder b(module->getLoc(), &context);
    b.setInsertionPointToEnd(module->getBody());
    auto pointer = LLVM::LLVMPointerType::get(&context);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context), {pointer, pointer});
    auto function = LLVM::LLVMFuncOp::create(b, "f", type);
    b.setInsertionPointToEnd(function.addEntryBlock(b));
    KernelBuilder kernel(b, function, target, emulate);
    kernel.store(body(kernel, function.getArgument(0)), function.getArgument(1));
    LLVM::ReturnOp::create(b, ValueRange{});
    auto unit = lowerToLlvm(*module);
    EXPECT_TRUE(succeeded(unit));
    // Expansions are compiled for the target too: only the instruction itself differs.
    StatusOr<std::string> object = emitObject(**unit, target, {});
    EXPECT_TRUE(object.ok());
    StatusOr<std::string> shared = linkSharedObject({*object}, {}, "");
    EXPECT_TRUE(shared.ok());
    char path[] = "/tmp/llmc-instruction-XXXXXX";
    int file = mkstemp(path);
    EXPECT_EQ(write(file, shared->data(), shared->size()), static_cast<ssize_t>(shared->size()));
    close(file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    EXPECT_NE(library, nullptr);
    call = reinterpret_cast<void (*)(const uint8_t *, uint8_t *)>(dlsym(library, "f"));
  }
  ~Function() { dlclose(library); }
  std::vector<uint8_t> operator()(const uint8_t *in) const {
    AlignedBytes out(64);
    call(in, out.data());
    return {out.data(), out.data() + 64};
  }

private:
  void *library = nullptr;
  void (*call)(const uint8_t *, uint8_t *) = nullptr;
};

Value emitOn(KernelBuilder &k, Instruction instruction, Value in) {
  auto bytes = [&](int64_t at, int64_t lanes) { return k.load(k.vectorOf(lanes, k.i8Type), in, at); };
  switch (instruction) {
  case Instruction::DotBf16: {
    VectorType pairs = k.vectorOf(32, k.b.getBF16Type());
    return emitInstruction(k, instruction, {k.load(k.vf, in), k.load(pairs, in, 64), k.load(pairs, in, 128)});
  }
  case Instruction::DotU8S8:
    return emitInstruction(k, instruction, {k.load(k.vi, in), bytes(64, 64), bytes(128, 64)});
  case Instruction::MaddU8S8:
  case Instruction::SignS8:
    return emitInstruction(k, instruction, {bytes(64, 32), bytes(128, 32)});
  case Instruction::Lookup64:
  case Instruction::Lookup32: {
    int64_t lanes = instruction == Instruction::Lookup64 ? 64 : 32;
    Value nibble =
        arith::ConstantOp::create(k.b, DenseElementsAttr::get(k.vectorOf(lanes, k.i8Type), static_cast<int8_t>(15)));
    constexpr int8_t table[] = {0, 1, 2, 3, 4, 6, 8, 12, 100, -1, -2, -3, -4, -6, -8, -128};
    return lookup(k, table, arith::AndIOp::create(k.b, bytes(64, lanes), nibble));
  }
  case Instruction::MaddS16: {
    VectorType shorts = k.vectorOf(16, k.i16Type);
    return emitInstruction(k, instruction, {k.load(shorts, in, 64), k.load(shorts, in, 128)});
  }
  case Instruction::TileDotS8:
  case Instruction::TileDotBf16:
    break; // have tests of their own
  }
  return {};
}

// Random bytes, and for the bf16 dot: subnormals, zeros of both signs, infinities, the largest numbers.
void fillInput(AlignedBytes &in, uint64_t &state, int round, bool floats) {
  for (size_t i = 0; i < in.size(); i += 4) {
    float value = randomFloat(state);
    uint32_t bits = std::bit_cast<uint32_t>(value) ^ static_cast<uint32_t>(state >> 13);
    if (floats && round % 4 == 0)
      bits = std::bit_cast<uint32_t>(value);
    if (floats && round % 4 == 1) // tiny times tiny, subnormal sums
      bits = (bits & 0x807fffff) | ((bits >> 24 & 0x3f) << 23);
    if (floats && round % 4 == 2) {
      const uint32_t special[] = {0x00000000, 0x80000000, 0x00010001, 0x807f807f, 0x7f7f7f7f, 0x3f803f80, 0x00800080};
      bits = special[bits % 7];
    }
    if (floats && round % 4 == 3)
      bits = (bits & 0x8fffffff) | 0x30000000; // anything but infinities and NaN
    std::memcpy(in.data() + i, &bits, 4);
  }
}

bool hasNaN(const std::vector<uint8_t> &lanes, size_t at) {
  float value;
  std::memcpy(&value, &lanes[at], 4);
  return std::isnan(value);
}

} // namespace

TEST(Instructions, ExpansionsAgreeWithTheMachine) {
  StatusOr<CpuTarget> host = findCpuTarget("host");
  ASSERT_TRUE(host.ok()) << host.status().message();
  for (Instruction instruction :
       {Instruction::DotBf16, Instruction::DotU8S8, Instruction::MaddU8S8, Instruction::MaddS16, Instruction::SignS8,
        Instruction::Lookup64, Instruction::Lookup32}) {
    if (!isLegal(instruction, *host))
      continue;
    SCOPED_TRACE(rowOf(instruction).name);
    auto body = [&](KernelBuilder &k, Value in) { return emitOn(k, instruction, in); };
    Function machine(*host, /*emulate=*/false, body), expansion(*host, /*emulate=*/true, body);
    uint64_t state = 5;
    bool floats = instruction == Instruction::DotBf16;
    for (int round = 0; round < 4000; ++round) {
      AlignedBytes in(192);
      fillInput(in, state, round, floats);
      std::vector<uint8_t> a = machine(in.data()), b = expansion(in.data());
      for (size_t at = 0; at < 64; at += 4)
        if (!(floats && hasNaN(a, at) && hasNaN(b, at))) // which NaN is nobody's business
          ASSERT_EQ(std::memcmp(&a[at], &b[at], 4), 0) << "lane " << at / 4 << " of round " << round;
    }
  }
}

// Rows 40 bytes apart, both sets; every row of the product is compared with loops.
TEST(Instructions, TileProductsAreExact) {
  constexpr int64_t rowStride = 40, bAt = 2 * 16 * rowStride;
  for (const Way &way : runnableWays()) {
    SCOPED_TRACE(nameOf(way));
    CpuTarget target = *findCpuTarget(way.target);
    if (way.emulate || !isLegal(Instruction::TileDotS8, target))
      continue;
    for (int64_t test = 0; test < 6; ++test) {
      int64_t row = test / 2 * 7;
      bool emulate = test % 2;
      auto body = [&](KernelBuilder &k, Value in) {
        Value product = k.allocate(2 * kTileProductBytes);
        beginByteTiles(k);
        for (int64_t set : {0, 1})
          emitByteTiles(k, {set, k.at(in, set * 16 * rowStride), rowStride, k.at(in, bAt + set * 512),
                            k.at(product, set * kTileProductBytes)});
        endTiles(k);
        return k.add(k.load(k.vi, product, row * 64), k.load(k.vi, product, kTileProductBytes + row * 64));
      };
      Function sums(target, emulate, body);
      uint64_t state = 7;
      for (int round = 0; round < 20; ++round) {
        AlignedBytes in(bAt + 1024);
        for (size_t i = 0; i < in.size(); ++i)
          in.data()[i] = static_cast<uint8_t>(std::lround(randomFloat(state) * 127));
        auto code = [&](int64_t at) { return static_cast<int32_t>(static_cast<int8_t>(in.data()[at])); };
        std::vector<uint8_t> out = sums(in.data());
        for (int64_t n = 0; n < 16; ++n) {
          int32_t expected = 0, sum;
          for (int64_t set : {0, 1})
            for (int64_t i = 0; i < 32; ++i)
              expected += code((set * 16 + row) * rowStride + i) * code(bAt + set * 512 + i / 4 * 64 + n * 4 + i % 4);
          std::memcpy(&sum, &out[static_cast<size_t>(4 * n)], 4);
          ASSERT_EQ(sum, expected) << "row " << row << " column " << n;
        }
      }
    }
  }
}

// Pairs of bf16 on two by two tiles of which the last row is missing, against the expansion, bit for bit.
TEST(Instructions, PairTilesAgreeWithTheirExpansion) {
  constexpr int64_t depth = 2, aStride = 64 * depth + 16, bStep = 128, bAt = 32 * aStride, rows = 31;
  for (const Way &way : runnableWays()) {
    SCOPED_TRACE(nameOf(way));
    CpuTarget target = *findCpuTarget(way.target);
    if (way.emulate || !isLegal(Instruction::TileDotBf16, target))
      continue;
    for (int64_t row : {0, 15, 16, 30}) {
      auto body = [&](KernelBuilder &k, Value in) {
        PairTiles tiles;
        tiles.rows = k.i64(rows);
        tiles.rowTiles = 2;
        tiles.a = in;
        tiles.aStrideBytes = aStride;
        tiles.b = k.at(in, bAt);
        tiles.bStepBytes = bStep;
        const int64_t columns[] = {0, 64};
        tiles.columns = columns;
        tiles.depth = depth;
        tiles.result = k.allocate(32 * 128);
        tiles.resultStrideBytes = 128;
        beginPairTiles(k, k.i64(kTileRows));
        emitPairTiles(k, tiles);
        endTiles(k);
        return k.load(k.vf, k.at(tiles.result, row * 128), row % 2 * 64);
      };
      Function machine(target, /*emulate=*/false, body), expansion(target, /*emulate=*/true, body);
      uint64_t state = 11;
      for (int round = 0; round < 400; ++round) {
        AlignedBytes in(bAt + 16 * depth * bStep);
        fillInput(in, state, round, true);
        std::vector<uint8_t> a = machine(in.data()), b = expansion(in.data());
        for (size_t at = 0; at < 64; at += 4)
          if (!(hasNaN(a, at) && hasNaN(b, at)))
            ASSERT_EQ(std::memcmp(&a[at], &b[at], 4), 0) << "column " << at / 4 << " of row " << row;
      }
    }
  }
}

TEST(Instructions, RoundsToBf16NearestEven) {
  StatusOr<CpuTarget> host = findCpuTarget("host");
  ASSERT_TRUE(host.ok());
  Function round(*host, false, [](KernelBuilder &k, Value in) { return roundToBf16(k, k.load(k.vf, in)); });
  uint64_t state = 3;
  for (int i = 0; i < 2000; ++i) {
    AlignedBytes in(64);
    fillInput(in, state, 4 * i + 4, true);
    in.floats()[0] = std::bit_cast<float>(0x3f808000u); // half way, even below
    in.floats()[1] = std::bit_cast<float>(0x3f818000u); // half way, even above
    in.floats()[2] = std::bit_cast<float>(0x00000001u); // the smallest subnormal
    std::vector<uint8_t> out = round(in.data());
    for (size_t lane = 0; lane < 16; ++lane) {
      uint16_t bits;
      std::memcpy(&bits, &out[2 * lane], 2);
      ASSERT_EQ(bits, bf16Bits(in.floats()[lane])) << in.floats()[lane];
    }
  }
}

TEST(Instructions, Exp2OfNonPositiveNumbers) {
  StatusOr<CpuTarget> host = findCpuTarget("host");
  ASSERT_TRUE(host.ok());
  Function exp2(*host, false, [](KernelBuilder &k, Value in) { return exp2Polynomial(k, k.load(k.vf, in)); });
  for (float x = 0; x > -126; x -= 0.0137f) {
    AlignedBytes in(64);
    for (int i = 0; i < 16; ++i)
      in.floats()[i] = x * static_cast<float>(i) / 15;
    std::vector<uint8_t> out = exp2(in.data());
    for (size_t i = 0; i < 16; ++i) {
      float y;
      std::memcpy(&y, &out[4 * i], 4);
      double expected = std::exp2(static_cast<double>(in.floats()[i]));
      ASSERT_NEAR(y / expected, 1.0, 1.5 * std::ldexp(1, -23)) << in.floats()[i]; // the bound in Instructions.h
    }
  }
  AlignedBytes in(64);
  std::vector<uint8_t> out = exp2(in.data());
  float one;
  std::memcpy(&one, out.data(), 4);
  EXPECT_EQ(one, 1.0f);
}
