#include "passes/TaskBuilder.h"

using namespace mlir;

namespace llmc {

TaskBuilder::TaskBuilder(func::FuncOp function, OpBuilder &launches, StringRef name, tile::Space space,
                         Location location)
    : location_(location), launches_(launches), body_(function.getContext()) {
  OpBuilder builder(function);
  task_ = tile::TaskOp::create(builder, location, builder.getStringAttr(name),
                               tile::SpaceAttr::get(builder.getContext(), space), builder.getI64IntegerAttr(1),
                               DictionaryAttr());
  Block &block = task_.getBody().emplaceBlock();
  block.addArguments({builder.getIndexType(), builder.getIndexType()}, {location, location});
  body_.setInsertionPointToEnd(&block);
}

Value TaskBuilder::argument(Value outer) {
  auto known = llvm::find(operands_, outer);
  if (known != operands_.end())
    return task_.getOperandArguments()[known - operands_.begin()];
  operands_.push_back(outer);
  return task_.getBody().addArgument(outer.getType(), location_);
}

RankedTensorType TaskBuilder::tileType(int64_t size, Type element) {
  return RankedTensorType::get({size}, element ? element : body_.getF32Type());
}

Value TaskBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(body_, location_, value); }

Value TaskBuilder::columnFrom(int64_t first) {
  return first == 0 ? column() : arith::SubIOp::create(body_, location_, column(), index(first)).getResult();
}

Value TaskBuilder::columnStart(int64_t width, int64_t first) {
  return arith::MulIOp::create(body_, location_, columnFrom(first), index(width));
}

Value TaskBuilder::multiply(Value value, int64_t by) {
  return by == 1 ? value : arith::MulIOp::create(body_, location_, value, index(by)).getResult();
}

Value TaskBuilder::divide(Value value, int64_t by) {
  return by == 1 ? value : arith::DivUIOp::create(body_, location_, value, index(by)).getResult();
}

Value TaskBuilder::load(Value outerRows, Value row, Value at, int64_t size) {
  return tile::LoadOp::create(body_, location_, tileType(size), argument(outerRows), row, at);
}

void TaskBuilder::store(Value value, Value outerRows, Value at) {
  tile::StoreOp::create(body_, location_, value, argument(outerRows), row(), at);
}

Value TaskBuilder::loadVector(Value outerWeight, Value at, int64_t size) {
  return tile::LoadVectorOp::create(body_, location_, tileType(size), argument(outerWeight), at);
}

Value TaskBuilder::slice(Value input, int64_t offset, int64_t size) {
  if (offset == 0 && size == sizeOf(input))
    return input;
  return tile::SliceOp::create(body_, location_, tileType(size), input, offset);
}

Value TaskBuilder::concat(ValueRange inputs) {
  if (inputs.size() == 1)
    return inputs.front();
  int64_t size = 0;
  for (Value input : inputs)
    size += sizeOf(input);
  return tile::ConcatOp::create(body_, location_, tileType(size), inputs);
}

Value TaskBuilder::constant(double value, int64_t size) {
  return arith::ConstantOp::create(body_, location_, DenseElementsAttr::get(tileType(size), static_cast<float>(value)));
}

Value TaskBuilder::constants(ArrayRef<float> values) {
  auto type = tileType(static_cast<int64_t>(values.size()));
  return arith::ConstantOp::create(body_, location_, DenseElementsAttr::get(type, values));
}

Value TaskBuilder::add(Value a, Value b) { return arith::AddFOp::create(body_, location_, a, b); }
Value TaskBuilder::multiply(Value a, Value b) { return arith::MulFOp::create(body_, location_, a, b); }
Value TaskBuilder::scale(Value a, double factor) { return multiply(a, constant(factor, sizeOf(a))); }

Value TaskBuilder::subtract(Value a, Value b) { return arith::SubFOp::create(body_, location_, a, b); }
Value TaskBuilder::divide(Value a, Value b) { return arith::DivFOp::create(body_, location_, a, b); }
Value TaskBuilder::maximum(Value a, Value b) { return arith::MaximumFOp::create(body_, location_, a, b); }
Value TaskBuilder::minimum(Value a, Value b) { return arith::MinimumFOp::create(body_, location_, a, b); }

Value TaskBuilder::repeat(Value input, int64_t size) {
  if (size == sizeOf(input))
    return input;
  return tile::RepeatOp::create(body_, location_, tileType(size), input);
}

Value TaskBuilder::splat(Value number, int64_t size) {
  return tile::SplatOp::create(body_, location_, tileType(size), number);
}

Value TaskBuilder::reduce(tile::Reduction reduction, Value input) {
  return tile::ReduceOp::create(body_, location_, body_.getF32Type(),
                                tile::ReductionAttr::get(body_.getContext(), reduction), input);
}

Value TaskBuilder::number(double value) {
  return arith::ConstantOp::create(body_, location_, body_.getF32FloatAttr(static_cast<float>(value)));
}

Value TaskBuilder::dot(Value input, Value outerWeight, Value column, Value matrix) {
  auto type = cast<llm::WeightType>(outerWeight.getType());
  Type result = tileType(type.getTile());
  switch (type.getForm()) {
  case llm::WeightForm::BF16:
    input = arith::TruncFOp::create(body_, location_, tileType(sizeOf(input), body_.getBF16Type()), input);
    [[fallthrough]];
  case llm::WeightForm::F32:
  case llm::WeightForm::F8:
    return tile::DotOp::create(body_, location_, result, input, argument(outerWeight), column, matrix);
  case llm::WeightForm::I8:
  case llm::WeightForm::I4:
  case llm::WeightForm::I4M:
  case llm::WeightForm::F4: {
    int64_t groups = (sizeOf(input) + 63) / 64 * 2;
    auto quantized =
        tile::QuantizeOp::create(body_, location_, tileType(32 * groups, body_.getI16Type()), tileType(groups), input);
    return tile::ScaledDotOp::create(body_, location_, result, quantized.getCodes(), quantized.getScales(),
                                     argument(outerWeight), column, matrix);
  }
  case llm::WeightForm::Any:
  case llm::WeightForm::Plain:
    break;
  }
  llvm_unreachable("task formation refuses products with a weight of this form");
}

void TaskBuilder::finish(int64_t columns, bool recording) {
  task_.setColumns(columns);
  tile::LaunchOp::create(launches_, location_, task_.getSymName(), operands_, recording);
}

} // namespace llmc
