// The part of RowProgram that writes rows, caches and records, and that gathers rows of packed weights.
#include "lib/codegen/cpu/CachePages.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/importer/files/Dequantize.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {
int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }
} // namespace

Value RowProgram::rowPointer(Value rows, Value row) {
  return k.at(task.operands.lookup(rows), k.mul(scalar(row), 4 * task.rowStride.lookup(rows)));
}

void RowProgram::writeVector(Value vector, Value pointer, Position position, int64_t lanes, Value limit) {
  Value target = elementAt(pointer, position, 4);
  if (limit) {
    Value left = k.add(limit, -position.offset);
    if (position.base)
      left = k.sub(left, position.base);
    k.maskedStore(vector, target, k.laneMask(lanes < kLanes ? k.min(left, k.i64(lanes)) : left));
    return;
  }
  // Never past the tile: what follows may be another worker's.
  if (lanes < kLanes)
    k.maskedStore(vector, target, k.laneMask(lanes));
  else
    k.store(vector, target);
}

void RowProgram::emitStore(tile::StoreOp op) {
  prepare(op.getValue());
  int64_t size = sizeOf(op.getValue());
  Value pointer = k.at(rowPointer(op.getRows(), op.getRow()), k.mul(scalar(op.getColumn()), 4));
  Value limit = limitOf(op.getColumn(), size, task.rowStride.lookup(op.getRows()));
  elementLoop(size, [&](Position position, int64_t lanes) {
    writeVector(evaluate(op.getValue(), position, lanes), pointer, position, lanes, limit);
  });
}

void RowProgram::emitRecord(tile::RecordOp op) {
  Value record = k.load(k.pointerType, task.context, offsetof(llmc_step_context, record));
  Value wanted = LLVM::ICmpOp::create(k.b, LLVM::ICmpPredicate::ne, record, LLVM::ZeroOp::create(k.b, k.pointerType));
  auto savedScalars = scalars;
  auto savedLeaves = leaves;
  k.when(wanted, [&] {
    prepare(op.getValue());
    int64_t size = sizeOf(op.getValue());
    Value rows = k.load(k.i64Type, task.context, offsetof(llmc_step_context, record_rows));
    int64_t behindFirst = static_cast<int64_t>(op.getIndex()) - *firstRecordOf(task.task);
    Value index = k.add(k.mul(rows, k.add(task.firstRecord, k.i64(behindFirst))), scalar(op.getRow()));
    Value channels = k.load(k.i64Type, task.context, offsetof(llmc_step_context, record_channels));
    Value pointer = k.at(record, k.mul(k.mul(index, channels), 4));
    elementLoop(size, [&](Position position, int64_t lanes) {
      writeVector(evaluate(op.getValue(), position, lanes), pointer, position, lanes, {});
    });
  });
  scalars = std::move(savedScalars);
  leaves = std::move(savedLeaves);
}

void RowProgram::emitWhen(tile::WhenOp op) {
  int64_t begin = static_cast<int64_t>(op.getBegin()), end = static_cast<int64_t>(op.getEnd());
  Value column = scalar(op.getColumn());
  Value inside = arith::AndIOp::create(k.b, k.less(k.i64(begin - 1), column), k.less(column, k.i64(end)));
  auto savedScalars = scalars;
  auto savedLeaves = leaves;
  int64_t savedLargest = largestColumn;
  if (op.getColumn() == task.task.getColumn())
    largestColumn = std::min(largestColumn, end - 1);
  k.when(inside, [&] {
    if (mlir::failed(emitBlock(op.getBody().front())))
      hasFailed = true;
  });
  largestColumn = savedLargest;
  scalars = std::move(savedScalars);
  leaves = std::move(savedLeaves);
}

void RowProgram::emitAppend(tile::AppendOp op) {
  CachePages pages(k, task, op.getKv());
  llm::KvType kv = pages.type;
  int64_t page = kv.getPage(), panel = kv.getPanel(), bytes = pages.elementBytes, channels = sizeOf(op.getValue());
  int64_t every = kv.getEvery();
  bool isKey = op.getHalf() == tile::KvHalf::Key;
  Value row = scalar(op.getRow()), head = scalar(op.getHead());
  Value position = pages.positionOf(row), slot = k.rem(position, page);
  Value base = pages.pageOf(pages.sequenceOf(row), k.div(position, page));
  Value half = isKey ? pages.keysOf(base, head) : pages.valuesOf(base, head);
  bool hasScales = kv.getElementType().isInteger(8);
  Value scales = !hasScales ? Value() : isKey ? pages.keyScalesOf(base, head) : pages.valueScalesOf(base, head);
  if (every > 1) {
    // A row that is not kept goes where nobody reads it.
    Value isKept = k.equal(k.rem(k.add(position, 1), every), k.i64(0));
    slot = k.select(isKept, k.div(slot, every), k.i64(0));
    half = k.select(isKept, half, k.allocate((channels + 2 * kLanes) * bytes));
    if (hasScales)
      scales = k.select(isKept, scales, k.allocate(64));
  }

  Value buffer = k.allocate((channels + 2 * kLanes) * bytes);
  if (hasScales) {
    quantizeForCache(op.getValue(), buffer, k.at(scales, k.mul(slot, 4)));
  } else if (kv.getElementType().isF16()) {
    Value wide = k.allocate((channels + 2 * kLanes) * 4);
    evaluateInto(op.getValue(), wide, k.f32Type, /*paddedSize=*/0);
    for (int64_t at = 0; at < channels; at += kLanes)
      k.store(arith::TruncFOp::create(k.b, k.vectorOf(kLanes, k.b.getF16Type()), k.load(k.vf, wide, at * 4)), buffer,
              at * 2);
  } else {
    evaluateInto(op.getValue(), buffer, kv.getElementType(), /*paddedSize=*/0);
  }
  // `width` bytes at a time, `stride` apart, from element `element` of the half on.
  auto scatter = [&](Value from, Value element, int64_t count, int64_t width, int64_t stride) {
    Value target = k.at(half, k.mul(element, bytes));
    Type stored = width == 1 ? k.i8Type : width == 2 ? k.i16Type : k.i32Type;
    k.loop(k.i64(0), k.i64(count), 1, [&](Value index) {
      k.store(k.load(stored, k.at(from, k.mul(index, width))), k.at(target, k.mul(index, stride)));
    });
  };
  if (!isKey && !kv.hasPairs())
    return scatter(buffer, k.mul(slot, channels), channels, bytes, bytes);
  if (!isKey) {
    // A value is every other element of its pair of positions, in each panel of channels.
    Value element = k.add(k.mul(k.div(slot, 2), 2 * panel), k.rem(slot, 2));
    k.loop(k.i64(0), k.i64(channels / panel), 1, [&](Value block) {
      scatter(k.at(buffer, k.mul(block, panel * bytes)), k.add(element, k.mul(block, panel * page)), panel, bytes,
              2 * bytes);
    });
    return;
  }
  // A key is one column of its panel: its channels, or pairs of them, lie `panel` of those apart.
  int64_t unit = kv.hasPairs() ? 2 : 1;
  Value element = k.add(k.mul(k.div(slot, panel), channels * panel), k.mul(k.rem(slot, panel), unit));
  scatter(buffer, element, channels / unit, unit * bytes, unit * panel * bytes);
}

void RowProgram::quantizeForCache(Value tile, Value codes, Value scale) {
  int64_t depth = sizeOf(tile), whole = (depth + kLanes - 1) / kLanes * kLanes;
  Value wide = k.allocate((whole + kLanes) * 4), largest = k.splat(0.0f);
  evaluateInto(tile, wide, k.f32Type, /*paddedSize=*/0); // whole vectors, zero past the head
  for (int64_t at = 0; at < depth; at += kLanes)
    largest = k.maxF(largest, math::AbsFOp::create(k.b, k.load(k.vf, wide, at * 4)));
  Value magnitude = k.reduceMax(largest), unit = arith::DivFOp::create(k.b, magnitude, k.f32(127.0f));
  Value positive = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OGT, magnitude, k.f32(0.0f));
  Value inverse = k.select(positive, arith::DivFOp::create(k.b, k.f32(1.0f), unit), k.f32(0.0f));
  for (int64_t at = 0; at < depth; at += kLanes) {
    Value code = math::RoundEvenOp::create(k.b, k.mulF(k.load(k.vf, wide, at * 4), k.broadcast(inverse)));
    // Only a subnormal scale, whose reciprocal is infinite, could leave the range.
    code = arith::MinNumFOp::create(k.b, arith::MaxNumFOp::create(k.b, code, k.splat(-127.0f)), k.splat(127.0f));
    Value integer = arith::FPToSIOp::create(k.b, k.vi, code);
    k.store(arith::TruncIOp::create(k.b, k.vectorOf(kLanes, k.i8Type), integer), codes, at);
  }
  k.store(unit, scale);
}

void RowProgram::emitGather(tile::GatherOp op) {
  StatusOr<PackedLayout> layout = layoutOf(op.getWeight().getType());
  if (!layout.ok())
    return error(op, "reads a weight that cannot be addressed: " + layout.status().message());
  const PackedLayout &weight = *layout;
  Value index = scalar(op.getIndex());
  Value buffer = k.allocate((weight.numKBlocks() * 64 + kLanes) * 4);
  bindMemory(op.getResult(), buffer);
  if (weight.interleave != 0)
    return error(op, "gathers rows of an interleaved weight, which no model needs");
  if (weight.form == llm::WeightForm::F8)
    return emitGatherFloat8(op, weight, index, buffer);
  if (weight.isQuantized())
    return emitGatherQuantized(op, weight, index, buffer);
  Value place = k.rem(index, weight.tile);
  int64_t panelRows = weight.panel, stepBytes = panelRows * 4;
  Value offset = k.add(k.mul(k.div(index, weight.tile), tileBytesOf(weight)),
                       k.add(k.mul(k.div(place, panelRows), weight.panelBytes()), k.mul(k.rem(place, panelRows), 4)));
  Value base = k.at(task.operands.lookup(op.getWeight()), offset);
  bool pairs = weight.form == llm::WeightForm::BF16;
  k.loop(k.i64(0), k.i64(weight.numSteps()), 1, [&](Value step) {
    Value word = k.load(k.i32Type, k.at(base, k.mul(step, stepBytes)));
    if (!pairs) {
      k.store(word, k.at(buffer, k.mul(step, 4)));
      return;
    }
    Value target = k.at(buffer, k.mul(step, 8));
    k.store(arith::ShLIOp::create(k.b, word, k.i32(16)), target);
    k.store(arith::AndIOp::create(k.b, word, k.i32(static_cast<int32_t>(0xffff0000))), target, 4);
  });
}

// A lane of whole vectors: rows of this form are products' business, and an embedding in it is rare.
void RowProgram::emitGatherFloat8(tile::GatherOp op, const PackedLayout &weight, Value index, Value buffer) {
  Value place = k.rem(index, weight.tile), lane = k.rem(place, 16);
  Value offset =
      k.add(k.mul(k.div(index, weight.tile), tileBytesOf(weight)), k.mul(k.div(place, 16), weight.blockBytes()));
  Value tile = k.at(task.operands.lookup(op.getWeight()), offset), vector = k.allocate(kLanes * 4);
  k.loop(k.i64(0), k.i64(weight.numGroups()), 1, [&](Value group) {
    Value block = k.at(tile, k.mul(k.div(group, 2), vectorsOf(weight) * weight.blockBytes()));
    Value scaleAt = k.add(k.mul(k.add(k.mul(k.rem(group, 2), 16), lane), 4), weight.scalesAt());
    Value scale = k.mulF(k.load(k.f32Type, k.at(block, scaleAt)), k.f32(float8Factor));
    Value codes = k.at(block, k.mul(k.rem(group, 2), weight.groupBytes())), target = k.at(buffer, k.mul(group, 128));
    k.loop(k.i64(0), k.i64(32), 1, [&](Value element) {
      k.store(loadFloat8(k, k.at(codes, k.mul(element, lanesPerBlock)), 0), vector);
      Value code = k.load(k.f32Type, k.at(vector, k.mul(lane, 4)));
      k.store(k.mulF(code, scale), k.at(target, k.mul(element, 4)));
    });
  });
}

// Twice the value of a code of f4: magnitudes are the bytes of a word, the fourth bit is the sign.
static Value doubledFloat4(KernelBuilder &k, Value code) {
  uint64_t magnitudes = 0;
  for (int index = 0; index < 8; ++index)
    magnitudes |= static_cast<uint64_t>(twiceE2M1[index]) << (8 * index);
  Value wide = arith::ExtUIOp::create(k.b, k.i64Type, code);
  Value shift = k.mul(arith::AndIOp::create(k.b, wide, k.i64(7)), 8);
  Value byte = arith::ShRUIOp::create(k.b, k.i64(static_cast<int64_t>(magnitudes)), shift);
  Value magnitude = arith::TruncIOp::create(k.b, k.i32Type, arith::AndIOp::create(k.b, byte, k.i64(255)).getResult());
  return k.select(k.less(code, k.i32(8)), magnitude, k.sub(k.i32(0), magnitude));
}

void RowProgram::emitGatherQuantized(tile::GatherOp op, const PackedLayout &weight, Value index, Value buffer) {
  bool bytes = weight.form == llm::WeightForm::I8;
  Value place = k.rem(index, weight.tile), lane = k.rem(place, 16);
  Value offset =
      k.add(k.mul(k.div(index, weight.tile), tileBytesOf(weight)), k.mul(k.div(place, 16), weight.blockBytes()));
  Value tile = k.at(task.operands.lookup(op.getWeight()), offset);
  auto half = [&](Value block, Value group, int64_t at) -> Value {
    Value pointer = k.at(block, k.add(k.add(k.mul(group, 32), k.mul(lane, 2)), at));
    return arith::ExtFOp::create(k.b, k.f32Type, k.load(k.b.getF16Type(), pointer));
  };
  // One round per group of 32: its scale, then eight words of four codes.
  k.loop(k.i64(0), k.i64(weight.numGroups()), 1, [&](Value groupIndex) {
    Value block = k.at(tile, k.mul(k.div(groupIndex, 2), vectorsOf(weight) * weight.blockBytes()));
    Value group = k.rem(groupIndex, 2);
    bool floats = weight.form == llm::WeightForm::F4;
    Value scale = half(block, group, weight.scalesAt());
    Value minimum, secondScale; // the scale of the second half
    if (weight.form == llm::WeightForm::I4M)
      minimum = half(block, group, weight.minimaAt());
    if (floats)
      secondScale = half(block, group, weight.minimaAt());
    Value codes = k.at(block, k.add(k.mul(group, weight.groupBytes()), k.mul(lane, 4)));
    Value target = k.at(buffer, k.mul(groupIndex, 128));
    k.loop(k.i64(0), k.i64(8), 1, [&](Value quad) {
      Value word = k.load(k.i32Type, k.at(codes, k.mul(bytes ? quad : k.rem(quad, 4), 64)));
      if (!bytes) {
        Value shift = arith::TruncIOp::create(k.b, k.i32Type, k.mul(k.div(quad, 4), 4));
        word = arith::ShRUIOp::create(k.b, word, shift);
      }
      Value factor = floats ? k.select(k.less(quad, k.i64(4)), scale, secondScale) : scale;
      for (int64_t i = 0; i < 4; ++i) {
        Value code =
            arith::AndIOp::create(k.b, arith::ShRUIOp::create(k.b, word, k.i32(8 * i)), k.i32(bytes ? 255 : 15));
        code = floats ? doubledFloat4(k, code) : k.sub(code, k.i32(static_cast<int32_t>(weight.zeroPoint())));
        Value value = k.mulF(arith::SIToFPOp::create(k.b, k.f32Type, code), factor);
        if (minimum)
          value = k.addF(value, minimum);
        k.store(value, k.at(target, k.mul(quad, 16)), 4 * i);
      }
    });
  });
}
