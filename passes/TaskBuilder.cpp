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

Value TaskBuilder::columnStart(int64_t width, int64_t first) {
  Value start = column();
  if (first != 0)
    start = arith::SubIOp::create(body_, location_, start, index(first));
  return arith::MulIOp::create(body_, location_, start, index(width));
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
  return arith::ConstantOp::create(body_, location_,
                                   DenseElementsAttr::get(tileType(size), static_cast<float>(value)));
}

Value TaskBuilder::add(Value a, Value b) { return arith::AddFOp::create(body_, location_, a, b); }
Value TaskBuilder::multiply(Value a, Value b) { return arith::MulFOp::create(body_, location_, a, b); }
Value TaskBuilder::scale(Value a, double factor) { return multiply(a, constant(factor, sizeOf(a))); }

Value TaskBuilder::rmsNorm(Value input, Value gain, double eps) {
  auto scalar = [&](double value) -> Value {
    return arith::ConstantOp::create(body_, location_, body_.getF32FloatAttr(static_cast<float>(value)));
  };
  Value sum = tile::ReduceOp::create(
      body_, location_, body_.getF32Type(),
      tile::ReductionAttr::get(body_.getContext(), tile::Reduction::Add), multiply(input, input));
  Value mean = arith::DivFOp::create(body_, location_, sum, scalar(static_cast<double>(sizeOf(input))));
  Value shifted = arith::AddFOp::create(body_, location_, mean, scalar(eps));
  Value inverse = math::RsqrtOp::create(body_, location_, shifted);
  Value spread = tile::SplatOp::create(body_, location_, input.getType(), inverse);
  return multiply(multiply(input, spread), gain);
}

Value TaskBuilder::rope(Value head, Value table) {
  int64_t n = sizeOf(table) / 2, size = sizeOf(head);
  Value cosine = slice(table, 0, n), sine = slice(table, n, n);
  Value low = slice(head, 0, n), high = slice(head, n, n);
  Value turnedLow =
      arith::SubFOp::create(body_, location_, multiply(low, cosine), multiply(high, sine));
  Value turnedHigh = add(multiply(high, cosine), multiply(low, sine));
  SmallVector<Value> parts = {turnedLow, turnedHigh};
  if (size > 2 * n)
    parts.push_back(slice(head, 2 * n, size - 2 * n));
  return concat(parts);
}

Value TaskBuilder::softcap(Value input, double cap) {
  Value small = arith::DivFOp::create(body_, location_, input, constant(cap, sizeOf(input)));
  return scale(math::TanhOp::create(body_, location_, small), cap);
}

Value TaskBuilder::gatedActivation(llm::Activation activation, Value gate, Value up) {
  int64_t size = sizeOf(gate);
  auto half = [&](Value inner) { return multiply(scale(gate, 0.5), add(constant(1.0, size), inner)); };
  Value activated;
  switch (activation) {
  case llm::Activation::Silu: {
    Value exp = math::ExpOp::create(body_, location_, arith::NegFOp::create(body_, location_, gate));
    activated = arith::DivFOp::create(body_, location_, gate, add(constant(1.0, size), exp));
    break;
  }
  case llm::Activation::GeluTanh: {
    Value cube = multiply(multiply(gate, gate), gate);
    Value inner = scale(add(gate, scale(cube, 0.044715)), 0.7978845608028654); // sqrt(2 / pi)
    activated = half(math::TanhOp::create(body_, location_, inner));
    break;
  }
  case llm::Activation::Gelu:
    activated = half(math::ErfOp::create(body_, location_, scale(gate, 0.7071067811865476))); // 1 / sqrt(2)
    break;
  default:
    llvm_unreachable("checkTileForms refuses other activations");
  }
  return multiply(activated, up);
}

Value TaskBuilder::ropeTable(Value position, ArrayRef<float> frequencies, double magnitude) {
  auto type = tileType(static_cast<int64_t>(frequencies.size()));
  Value integer = arith::IndexCastOp::create(body_, location_, body_.getI32Type(), position);
  Value number = arith::SIToFPOp::create(body_, location_, body_.getF32Type(), integer);
  Value angle = multiply(
      tile::SplatOp::create(body_, location_, type, number),
      arith::ConstantOp::create(body_, location_, DenseElementsAttr::get(type, frequencies)));
  Value table = concat({math::CosOp::create(body_, location_, angle).getResult(),
                        math::SinOp::create(body_, location_, angle).getResult()});
  return magnitude == 1.0 ? table : scale(table, magnitude);
}

Value TaskBuilder::dot(Value input, Value outerWeight) {
  auto type = cast<llm::WeightType>(outerWeight.getType());
  Type result = tileType(type.getTile());
  switch (type.getForm()) {
  case llm::WeightForm::BF16:
    input = arith::TruncFOp::create(body_, location_, tileType(sizeOf(input), body_.getBF16Type()), input);
    [[fallthrough]];
  case llm::WeightForm::F32:
    return tile::DotOp::create(body_, location_, result, input, argument(outerWeight), column());
  case llm::WeightForm::I8:
  case llm::WeightForm::I4:
  case llm::WeightForm::I4M: {
    int64_t groups = (sizeOf(input) + 63) / 64 * 2;
    auto quantized = tile::QuantizeOp::create(body_, location_, tileType(32 * groups, body_.getI16Type()),
                                              tileType(groups), input);
    return tile::ScaledDotOp::create(body_, location_, result, quantized.getCodes(), quantized.getScales(),
                                     argument(outerWeight), column());
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
