#include "lib/codegen/cpu/CachePages.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

Value CachePages::pageOf(Value sequence, Value index) {
  Value table = k.load(k.pointerType, task.batch, offsetof(llmc_batch, page_table));
  Value stride = k.loadInt(task.batch, offsetof(llmc_batch, page_table_stride));
  Value entry = k.loadInt(k.at(table, k.mul(k.add(k.mul(sequence, stride), index), 4)));
  return k.at(task.operands.lookup(operand), k.mul(entry, task.plan.pageBytes));
}

Value CachePages::valuesOf(Value page, Value head) {
  if (type.getLatent())
    return keysOf(page, head);
  return k.at(page, k.add(k.i64(type.getHeads() * keyBytes()), k.mul(head, valueBytes())));
}

Value CachePages::keyScalesOf(Value page, Value head) {
  if (!type.getElementType().isInteger(8))
    return {};
  Value first = k.i64(type.getHeads() * (keyBytes() + valueBytes()));
  return k.at(page, k.add(first, k.mul(head, type.rowsPerPage() * 4)));
}

Value CachePages::valueScalesOf(Value page, Value head) {
  Value ofKeys = keyScalesOf(page, head);
  if (!ofKeys || type.getLatent())
    return ofKeys;
  return k.at(ofKeys, k.i64(type.getHeads() * type.rowsPerPage() * 4));
}

Value CachePages::rowsAt(Value position) {
  Value positions = k.add(position, 1);
  return type.getEvery() == 1 ? positions : k.div(positions, type.getEvery());
}

Value CachePages::lastRowAt(Value position) { return type.getEvery() == 1 ? position : k.add(rowsAt(position), -1); }

std::pair<Value, Value> CachePages::placeOf(Value sequence, Value row) {
  int64_t every = type.getEvery(), page = type.getPage();
  if (every > 1)
    row = k.add(k.mul(row, every), every - 1);
  Value inPage = k.rem(row, page);
  return {pageOf(sequence, k.div(row, page)), every == 1 ? inPage : k.div(inPage, every)};
}

AttendPage CachePages::at(Value sequence, Value head, Value index, Value lastPosition) {
  int64_t positions = type.getPage();
  Value start = pageOf(sequence, index);
  AttendPage result;
  result.keys = keysOf(start, head);
  result.values = valuesOf(start, head);
  result.keyScales = keyScalesOf(start, head);
  result.valueScales = valueScalesOf(start, head);
  Value next = k.min(k.add(index, 1), k.div(lastPosition, positions));
  result.nextKeys = keysOf(pageOf(sequence, next), head);
  result.base = k.mul(index, positions);
  result.valid = k.min(k.sub(k.add(lastPosition, 1), result.base), k.i64(positions));
  return result;
}

LogicalResult llmc::cpu::verifyPanels(Operation *op, llm::KvType kv) {
  int64_t panel = kv.getLatent() ? 1 : kLanes;
  if (kv.getPanel() == panel && kv.getPage() % kLanes == 0)
    return success();
  return op->emitOpError() << "reads " << kv << ", but the CPU kernel takes pages of whole vectors of 16 positions and "
                           << (kv.getLatent() ? "latent" : "key") << " panels of " << panel;
}
