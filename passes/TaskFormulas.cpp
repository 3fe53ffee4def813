// The formulas of the llm dialect in arithmetic on tiles. Nothing here chooses: what is computed where is
// RowTasks.cpp's.
#include "passes/TaskBuilder.h"

using namespace mlir;

namespace llmc {

//===-- norms
//-------------------------------------------------------------------------------------------------------===//

Value TaskBuilder::meanOf(Value input) {
  return arith::DivFOp::create(body_, location_, reduce(tile::Reduction::Add, input),
                               number(static_cast<double>(sizeOf(input))));
}

// 1 / sqrt(square + eps) in every element.
Value TaskBuilder::inverseRoot(Value square, double eps, int64_t size) {
  Value shifted = arith::AddFOp::create(body_, location_, square, number(eps));
  return splat(math::RsqrtOp::create(body_, location_, shifted), size);
}

Value TaskBuilder::gainAndOffset(Value input, Value gain, Value offset) {
  if (gain)
    input = multiply(input, gain);
  return offset ? add(input, offset) : input;
}

Value TaskBuilder::rmsNorm(Value input, Value gain, double eps) {
  Value inverse = inverseRoot(meanOf(multiply(input, input)), eps, sizeOf(input));
  return gainAndOffset(multiply(input, inverse), gain, Value());
}

Value TaskBuilder::layerNorm(Value input, Value gain, Value offset, double eps) {
  Value centred = subtract(input, splat(meanOf(input), sizeOf(input)));
  Value inverse = inverseRoot(meanOf(multiply(centred, centred)), eps, sizeOf(input));
  return gainAndOffset(multiply(centred, inverse), gain, offset);
}

Value TaskBuilder::softmax(Value input) {
  Value top = splat(reduce(tile::Reduction::Max, input), sizeOf(input));
  Value powers = math::ExpOp::create(body_, location_, subtract(input, top));
  return divide(powers, splat(reduce(tile::Reduction::Add, powers), sizeOf(input)));
}

//===-- activations
//-------------------------------------------------------------------------------------------------===//

Value TaskBuilder::softcap(Value input, double cap) {
  Value small = divide(input, constant(cap, sizeOf(input)));
  return scale(math::TanhOp::create(body_, location_, small), cap);
}

// factor / (1 + exp(-input)).
Value TaskBuilder::sigmoidTimes(Value factor, Value input) {
  Value power = math::ExpOp::create(body_, location_, arith::NegFOp::create(body_, location_, input));
  return divide(factor, add(constant(1.0, sizeOf(input)), power));
}

// max(x, 0) + log(1 + exp(-abs x)): the same, and no exponential overflows.
Value TaskBuilder::softplus(Value input) {
  Value magnitude = math::AbsFOp::create(body_, location_, input);
  Value power = math::ExpOp::create(body_, location_, arith::NegFOp::create(body_, location_, magnitude));
  return add(maximum(input, constant(0.0, sizeOf(input))), math::Log1pOp::create(body_, location_, power));
}

Value TaskBuilder::activation(llm::Activation activation, Value x) {
  int64_t size = sizeOf(x);
  auto half = [&](Value inner) { return multiply(scale(x, 0.5), add(constant(1.0, size), inner)); };
  switch (activation) {
  case llm::Activation::Silu:
    return sigmoidTimes(x, x);
  case llm::Activation::GeluTanh: {
    Value cube = multiply(multiply(x, x), x);
    Value inner = scale(add(x, scale(cube, 0.044715)), 0.7978845608028654); // sqrt(2 / pi)
    return half(math::TanhOp::create(body_, location_, inner));
  }
  case llm::Activation::Gelu:
    return half(math::ErfOp::create(body_, location_, scale(x, 0.7071067811865476))); // 1 / sqrt(2)
  case llm::Activation::GeluSigmoid:
    return sigmoidTimes(x, scale(x, 1.702));
  case llm::Activation::Relu:
    return maximum(x, constant(0.0, size));
  case llm::Activation::Relu2: {
    Value positive = maximum(x, constant(0.0, size));
    return multiply(positive, positive);
  }
  case llm::Activation::Sigmoid:
    return sigmoidTimes(constant(1.0, size), x);
  case llm::Activation::Tanh:
    return math::TanhOp::create(body_, location_, x);
  case llm::Activation::Exp:
    return math::ExpOp::create(body_, location_, x);
  case llm::Activation::Softplus:
    return softplus(x);
  case llm::Activation::Sqrt:
    return math::SqrtOp::create(body_, location_, x);
  }
  llvm_unreachable("every activation is above");
}

Value TaskBuilder::xielu(Value x, Value sides, double beta, double eps) {
  int64_t size = sizeOf(x);
  Value weights = softplus(sides);
  Value positive = repeat(slice(weights, 0, 1), size);
  Value negative = repeat(add(slice(weights, 1, 1), constant(beta, 1)), size);
  Value bounded = math::ExpM1Op::create(body_, location_, minimum(x, constant(eps, size)));
  Value above = multiply(positive, multiply(x, x)), below = multiply(subtract(bounded, x), negative);
  Value isAbove = arith::CmpFOp::create(body_, location_, arith::CmpFPredicate::OGT, x, constant(0.0, size));
  return add(arith::SelectOp::create(body_, location_, isAbove, above, below), scale(x, beta));
}

//===-- positions
//---------------------------------------------------------------------------------------------------===//

Value TaskBuilder::numberOf(Value index) {
  Value integer = arith::IndexCastOp::create(body_, location_, body_.getI32Type(), index);
  return arith::SIToFPOp::create(body_, location_, body_.getF32Type(), integer);
}

Value TaskBuilder::ropeTable(Value position, ArrayRef<float> frequencies, double magnitude) {
  Value angle = multiply(splat(numberOf(position), static_cast<int64_t>(frequencies.size())), constants(frequencies));
  Value table = concat({math::CosOp::create(body_, location_, angle).getResult(),
                        math::SinOp::create(body_, location_, angle).getResult()});
  return magnitude == 1.0 ? table : scale(table, magnitude);
}

Value TaskBuilder::rope(llm::RopeOp op, Value head, Value table) {
  int64_t n = sizeOf(table) / 2, size = sizeOf(head), first = static_cast<int64_t>(op.getFirst());
  Value cosine = slice(table, 0, n), sine = slice(table, n, n);
  if (op.getInverse())
    sine = arith::NegFOp::create(body_, location_, sine);
  SmallVector<Value> parts;
  if (first > 0)
    parts.push_back(slice(head, 0, first));
  if (op.getPairing() == llm::Pairing::Halves) {
    Value low = slice(head, first, n), high = slice(head, first + n, n);
    parts.push_back(subtract(multiply(low, cosine), multiply(high, sine)));
    parts.push_back(add(multiply(high, cosine), multiply(low, sine)));
  } else {
    // a cos - b sin, b cos + a sin, with neighbours exchanged and every other sine negative.
    SmallVector<float> signs;
    for (int64_t i = 0; i < n; ++i)
      signs.append({-1.0f, 1.0f});
    Value alternating = constants(signs);
    Value pairs = slice(head, first, 2 * n);
    Value others = tile::SwapPairsOp::create(body_, location_, pairs);
    parts.push_back(
        add(multiply(pairs, repeat(cosine, 2 * n)), multiply(others, multiply(repeat(sine, 2 * n), alternating))));
  }
  if (int64_t done = first + 2 * n; done < size)
    parts.push_back(slice(head, done, size - done));
  return concat(parts);
}

Value TaskBuilder::positionScale(Value position, llm::PositionScaleOp op) {
  Value shifted = position;
  if (auto offset = static_cast<int64_t>(op.getOffset()))
    shifted = arith::AddIOp::create(body_, location_, position, index(offset));
  Value periods = arith::DivUIOp::create(body_, location_, shifted, index(static_cast<int64_t>(op.getPeriod())));
  Value count = add(splat(numberOf(periods), 1), constant(1.0, 1));
  Value growth = scale(math::LogOp::create(body_, location_, count), op.getScale().convertToFloat());
  return add(growth, constant(1.0, 1));
}

} // namespace llmc
