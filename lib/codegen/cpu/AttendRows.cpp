#include "lib/codegen/cpu/AttendRows.h"
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kPointerBytes = 8;

// Sixteen vectors become the columns of what they were the rows of.
void transpose(KernelBuilder &k, MutableArrayRef<Value> rows) {
  for (int64_t step = kLanes / 2; step >= 1; step /= 2)
    for (int64_t low = 0; low < kLanes; ++low) {
      if (low & step)
        continue;
      Value a = rows[low], b = rows[low | step];
      SmallVector<int64_t> first, second; // lanes of (a, b)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        first.push_back(lane & step ? kLanes + (lane ^ step) : lane);
        second.push_back(lane & step ? kLanes + lane : lane | step);
      }
      rows[low] = vector::ShuffleOp::create(k.b, a, b, first);
      rows[low | step] = vector::ShuffleOp::create(k.b, a, b, second);
    }
}

// One element of a cache as f32.
Value scalarAsF32(KernelBuilder &k, Type element, Value pointer) {
  Value loaded = k.load(element.isBF16() ? k.i16Type : element, pointer);
  if (element.isF32())
    return loaded;
  if (element.isF16())
    return arith::ExtFOp::create(k.b, k.f32Type, loaded);
  if (element.isInteger(8))
    return arith::SIToFPOp::create(k.b, k.f32Type, loaded);
  Value bits = arith::ShLIOp::create(k.b, arith::ExtUIOp::create(k.b, k.i32Type, loaded), k.i32(16));
  return arith::BitcastOp::create(k.b, k.f32Type, bits);
}

} // namespace

RowProducts::RowProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
    : PlainProducts(kernel, kv, maxRows, schedule), rowElement(copies() ? k.f32Type : kv.getElementType()) {
  keyElement = k.f32Type;
  if (copies())
    valueElement = k.f32Type;
  valueWidth = kv.getLatent() ? depth : kv.getValueDim();
  // An entry that names nothing is written too, and overwritten by the next.
  keyRows = k.allocate((page + 1) * kPointerBytes);
  valueRows = kv.getLatent() ? keyRows : k.allocate((page + 1) * kPointerBytes);
  positions = k.allocate((page + 1) * 4);
  panels = k.allocate(page * depth * 4);
  if (kv.getElementType().isInteger(8)) {
    keyScales = k.allocate((page + 1) * 4);
    valueScales = k.allocate((page + 1) * 4);
  }
  if (copies()) {
    copiedKeys = k.allocate((page + 1) * depth * 4);
    copiedValues = k.allocate((page + 1) * kv.getValueDim() * 4);
  }
}

Value RowProducts::valueAt(const AttendPage &, Value j) {
  return k.load(k.pointerType, k.at(valueRows, k.mul(j, kPointerBytes)));
}

void RowProducts::emitScores(Value queryRows, const AttendPage &current) {
  if (!current.isGathered)
    pointRows(current);
  makePanels(current.valid);
  AttendPage inPanels = current;
  inPanels.keys = panels;
  PlainProducts::emitScores(queryRows, inPanels);
}

// Places past the last valid one repeat it: whole panels are read.
void RowProducts::pointRows(const AttendPage &current) {
  int64_t bytes = kv.getElementType().getIntOrFloatBitWidth() / 8;
  k.loop(k.i64(0), k.i64(page), 1, [&](Value j) {
    Value place = k.min(j, k.add(current.valid, -1)), pointer = k.mul(j, kPointerBytes);
    k.store(k.at(current.keys, k.mul(place, depth * bytes)), k.at(keyRows, pointer));
    if (valueRows != keyRows)
      k.store(k.at(current.values, k.mul(place, kv.getValueDim() * bytes)), k.at(valueRows, pointer));
  });
}

void RowProducts::makePanels(Value valid) {
  k.loop(k.i64(0), valid, kLanes, [&](Value first) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < kLanes; ++i)
      rows.push_back(k.load(k.pointerType, k.at(keyRows, k.mul(first, kPointerBytes)), i * kPointerBytes));
    Value panel = k.at(panels, k.mul(first, depth * 4));
    int64_t whole = depth / kLanes * kLanes;
    k.loop(k.i64(0), k.i64(whole), kLanes, [&](Value channel) { makePanelBlock(rows, channel, kLanes, panel); });
    if (whole < depth)
      makePanelBlock(rows, k.i64(whole), depth - whole, panel);
  });
}

void RowProducts::makePanelBlock(ArrayRef<Value> rows, Value firstChannel, int64_t channels, Value to) {
  int64_t bytes = rowElement.getIntOrFloatBitWidth() / 8;
  SmallVector<Value> block;
  for (Value row : rows)
    block.push_back(loadAsF32(k, rowElement, k.at(row, k.mul(firstChannel, bytes)), 0, channels));
  transpose(k, block);
  Value target = k.at(to, k.mul(firstChannel, kLanes * 4));
  for (int64_t channel = 0; channel < channels; ++channel)
    k.store(block[channel], target, channel * kLanes * 4);
}

//===-- selected positions --===//

AttendPage RowProducts::gather(CachePages &pages, const Selection &selection) {
  auto placeOf = [&](Value position, Value to) {
    auto [start, slot] = pages.placeOf(selection.sequence, position);
    point(pages, start, selection.head, slot, to);
  };
  // Whole panels are read: what follows the last entry is whatever a copy held before, or the row's own position.
  k.loop(k.i64(0), k.i64(page), 1, [&](Value to) {
    if (!copies())
      return placeOf(selection.position, to);
    k.store(k.at(copiedKeys, k.mul(to, depth * 4)), k.at(keyRows, k.mul(to, kPointerBytes)));
  });
  SmallVector<Value> found =
      k.loop(k.i64(0), selection.count, 1, ValueRange{k.i64(0)}, [&](Value entry, ValueRange before) {
        Value named = k.load(k.f32Type, k.at(selection.list, k.mul(entry, 4)));
        auto compare = [&](arith::CmpFPredicate predicate, Value limit) -> Value {
          return arith::CmpFOp::create(k.b, predicate, named, arith::SIToFPOp::create(k.b, k.f32Type, limit));
        };
        Value isSeen = arith::AndIOp::create(k.b, compare(arith::CmpFPredicate::OGE, selection.oldest),
                                             compare(arith::CmpFPredicate::OLE, selection.position));
        Value known = k.select(isSeen, named, arith::SIToFPOp::create(k.b, k.f32Type, selection.position));
        Value position = arith::FPToSIOp::create(k.b, k.i64Type, known);
        placeOf(position, before[0]);
        Value narrow = arith::TruncIOp::create(k.b, k.i32Type, position);
        k.store(narrow, k.at(positions, k.mul(before[0], 4)));
        return SmallVector<Value>{k.add(before[0], k.select(isSeen, k.i64(1), k.i64(0)))};
      });
  AttendPage current;
  current.keyScales = keyScales;
  current.valueScales = valueScales;
  current.base = k.i64(0);
  current.valid = found[0];
  current.positions = positions;
  current.isGathered = true;
  return current;
}

AttendPage RowProducts::gatherRows(CachePages &pages, Value sequence, Value head, Value index, Value last) {
  AttendPage current;
  current.base = k.mul(index, page);
  current.valid = k.min(k.sub(k.add(last, 1), current.base), k.i64(page));
  current.keyScales = keyScales;
  current.valueScales = valueScales;
  current.isGathered = true;
  // Places past the last valid one repeat it: whole panels are read.
  k.loop(k.i64(0), k.i64(page), 1, [&](Value to) {
    auto [start, slot] = pages.placeOf(sequence, k.min(k.add(current.base, to), last));
    point(pages, start, head, slot, to);
  });
  return current;
}

void RowProducts::point(CachePages &pages, Value start, Value head, Value slot, Value to) {
  Value keys = pages.keysOf(start, head), values = pages.valuesOf(start, head);
  Value key = copies() ? copyKey(keys, slot, to) : k.at(keys, k.mul(slot, depth * pages.elementBytes));
  k.store(key, k.at(keyRows, k.mul(to, kPointerBytes)));
  if (valueRows != keyRows) {
    Value value =
        copies() ? copyValue(values, slot, to) : k.at(values, k.mul(slot, kv.getValueDim() * pages.elementBytes));
    k.store(value, k.at(valueRows, k.mul(to, kPointerBytes)));
  }
  if (!keyScales)
    return;
  for (auto [from, scales] :
       {std::pair(pages.keyScalesOf(start, head), keyScales), std::pair(pages.valueScalesOf(start, head), valueScales)})
    k.store(k.load(k.f32Type, k.at(from, k.mul(slot, 4))), k.at(scales, k.mul(to, 4)));
}

Value RowProducts::copyKey(Value keys, Value slot, Value to) {
  Type element = kv.getElementType();
  int64_t panel = kv.getPanel(), unit = kv.hasPairs() ? 2 : 1, bytes = element.getIntOrFloatBitWidth() / 8;
  Value target = k.at(copiedKeys, k.mul(to, depth * 4));
  Value from =
      k.at(keys, k.mul(k.add(k.mul(k.div(slot, panel), depth * panel), k.mul(k.rem(slot, panel), unit)), bytes));
  k.loop(k.i64(0), k.i64(depth / unit), 1, [&](Value index) {
    for (int64_t i = 0; i < unit; ++i) {
      Value x = scalarAsF32(k, element, k.at(k.at(from, k.mul(index, unit * panel * bytes)), i * bytes));
      k.store(x, k.at(target, k.mul(index, unit * 4)), i * 4);
    }
  });
  return target;
}

Value RowProducts::copyValue(Value values, Value slot, Value to) {
  Type element = kv.getElementType();
  int64_t panel = kv.getPanel(), channels = kv.getValueDim(), bytes = element.getIntOrFloatBitWidth() / 8;
  Value target = k.at(copiedValues, k.mul(to, channels * 4));
  bool pairs = kv.hasPairs();
  Value pair = k.add(k.mul(k.div(slot, 2), 2 * panel), k.rem(slot, 2)), row = k.mul(slot, channels);
  k.loop(k.i64(0), k.i64(channels), 1, [&](Value channel) {
    Value place = pairs
                      ? k.add(k.add(pair, k.mul(k.div(channel, panel), panel * page)), k.mul(k.rem(channel, panel), 2))
                      : k.add(row, channel);
    k.store(scalarAsF32(k, element, k.at(values, k.mul(place, bytes))), k.at(target, k.mul(channel, 4)));
  });
  return target;
}
