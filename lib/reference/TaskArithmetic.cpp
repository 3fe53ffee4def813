// What tasks do with arith and math: elementwise on tiles of f32, on indices, and casts of the kinds that tasks make.
#include "lib/reference/Formulas.h"
#include "lib/reference/TaskCompiler.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

FailureOr<TaskCompiler::Instruction> TaskCompiler::division(Operation &op, bool remainder) {
  Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
  return Instruction([=, at = &op] {
    for (int64_t i = 0; i < out.size; ++i) {
      auto dividend = static_cast<uint64_t>(a.integers[i]), divisor = static_cast<uint64_t>(b.integers[i]);
      if (divisor == 0) {
        at->emitOpError() << "divides by zero";
        return false;
      }
      out.integers[i] = static_cast<int64_t>(remainder ? dividend % divisor : dividend / divisor);
    }
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compileArith(Operation &op) {
  auto all = [&](auto predicate) {
    return llvm::all_of(op.getOperandTypes(), predicate) && llvm::all_of(op.getResultTypes(), predicate);
  };
  const bool floats = all([](Type type) { return getElementTypeOrSelf(type).isF32(); });
  const bool wide = all([](Type type) { return type.isIndex() || type.isSignlessInteger(64); });
  using R = FailureOr<Instruction>;
  // Casts of the kinds that tasks make.
  if (isa<arith::TruncFOp>(op) && getElementTypeOrSelf(op.getResult(0).getType()).isBF16() &&
      getElementTypeOrSelf(op.getOperand(0).getType()).isF32())
    return unary(op, roundToBf16);
  if (isa<arith::ExtFOp>(op) && all([](Type type) { return isFloatLike(type); }))
    return unary(op, [](float x) { return x; });
  if (isa<arith::IndexCastOp>(op) && !isa<ShapedType>(op.getResult(0).getType())) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    const bool narrow = op.getResult(0).getType().isSignlessInteger(32);
    if (in.integers && out.integers)
      return Instruction([=] {
        *out.integers = narrow ? static_cast<int32_t>(*in.integers) : *in.integers;
        return true;
      });
  }
  if (isa<arith::SIToFPOp>(op) && getElementTypeOrSelf(op.getResult(0).getType()).isF32() &&
      slot(op.getOperand(0)).integers) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    return Instruction([=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = static_cast<float>(in.integers[i]);
      return true;
    });
  }
  // Of a number that an index holds.
  if (isa<arith::FPToSIOp>(op) && op.getOperand(0).getType().isF32() && slot(op.getResult(0)).integers) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    return Instruction([=] {
      *out.integers = static_cast<int64_t>(std::fmin(std::fmax(*in.floats, -2147483648.0f), 2147483520.0f));
      return true;
    });
  }
  // The dialect's maximum and minimum hand NaN on.
  auto maximum = [](float a, float b) {
    return std::isnan(a) || a > b ? a : std::isnan(b) ? b : a == b && std::signbit(b) ? a : b;
  };
  auto minimum = [](float a, float b) {
    return std::isnan(a) || a < b ? a : std::isnan(b) ? b : a == b && std::signbit(a) ? a : b;
  };
  R result = failure();
  if (floats)
    result =
        llvm::TypeSwitch<Operation *, R>(&op)
            .Case([&](arith::AddFOp) -> R { return binary(op, [](float a, float b) { return a + b; }); })
            .Case([&](arith::SubFOp) -> R { return binary(op, [](float a, float b) { return a - b; }); })
            .Case([&](arith::MulFOp) -> R { return binary(op, [](float a, float b) { return a * b; }); })
            .Case([&](arith::DivFOp) -> R { return binary(op, [](float a, float b) { return a / b; }); })
            .Case([&](arith::MaximumFOp) -> R { return binary(op, maximum); })
            .Case([&](arith::MinimumFOp) -> R { return binary(op, minimum); })
            .Case([&](arith::MaxNumFOp) -> R { return binary(op, [](float a, float b) { return std::fmax(a, b); }); })
            .Case([&](arith::MinNumFOp) -> R { return binary(op, [](float a, float b) { return std::fmin(a, b); }); })
            .Case([&](arith::NegFOp) -> R { return unary(op, [](float x) { return -x; }); })
            .Default(R(failure()));
  if (wide)
    result = llvm::TypeSwitch<Operation *, R>(&op)
                 .Case([&](arith::AddIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a + b; }); })
                 .Case([&](arith::SubIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a - b; }); })
                 .Case([&](arith::MulIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a * b; }); })
                 .Case([&](arith::MinUIOp) -> R {
                   return integers(op, [](uint64_t a, uint64_t b) { return std::min(a, b); });
                 })
                 .Case([&](arith::DivUIOp) { return division(op, /*remainder=*/false); })
                 .Case([&](arith::RemUIOp) { return division(op, /*remainder=*/true); })
                 .Default(R(failure()));
  if (failed(result))
    return op.emitOpError() << "has no reference implementation in a task for these types";
  return result;
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compileMath(Operation &op) {
  using R = FailureOr<Instruction>;
  R result = failure();
  if (op.getNumResults() == 1 && getElementTypeOrSelf(op.getResult(0).getType()).isF32())
    result = llvm::TypeSwitch<Operation *, R>(&op)
                 .Case([&](math::ExpOp) -> R { return unary(op, [](float x) { return std::exp(x); }); })
                 .Case([&](math::ExpM1Op) -> R { return unary(op, [](float x) { return std::expm1(x); }); })
                 .Case([&](math::LogOp) -> R { return unary(op, [](float x) { return std::log(x); }); })
                 .Case([&](math::Log1pOp) -> R { return unary(op, [](float x) { return std::log1p(x); }); })
                 .Case([&](math::AbsFOp) -> R { return unary(op, [](float x) { return std::fabs(x); }); })
                 .Case([&](math::Exp2Op) -> R { return unary(op, [](float x) { return std::exp2(x); }); })
                 .Case([&](math::TanhOp) -> R { return unary(op, [](float x) { return std::tanh(x); }); })
                 .Case([&](math::ErfOp) -> R { return unary(op, [](float x) { return std::erf(x); }); })
                 .Case([&](math::RsqrtOp) -> R { return unary(op, [](float x) { return 1 / std::sqrt(x); }); })
                 .Case([&](math::SqrtOp) -> R { return unary(op, [](float x) { return std::sqrt(x); }); })
                 .Case([&](math::CosOp) -> R { return unary(op, [](float x) { return std::cos(x); }); })
                 .Case([&](math::SinOp) -> R { return unary(op, [](float x) { return std::sin(x); }); })
                 .Default(R(failure()));
  if (failed(result))
    return op.emitOpError() << "has no reference implementation in a task for these types";
  return result;
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::ConstantOp op) {
  Slot out = slot(op);
  auto set = [&](int64_t i, Attribute value) {
    if (auto number = dyn_cast<FloatAttr>(value); number && out.floats)
      out.floats[i] = static_cast<float>(number.getValueAsDouble());
    else if (auto integer = dyn_cast<IntegerAttr>(value); integer && out.integers)
      out.integers[i] = integer.getType().isIndex() ? integer.getInt() : integer.getValue().getSExtValue();
    else
      return false;
    return true;
  };
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    for (auto [i, value] : llvm::enumerate(dense.getValues<Attribute>()))
      if (!set(static_cast<int64_t>(i), value))
        return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
    return Instruction();
  }
  if (!set(0, op.getValue()))
    return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
  return Instruction();
}

namespace {
// The ordered predicates are bit sets: 1 equal, 2 greater, 4 less. The unordered ones follow in the same order from 8
// on.
bool compares(arith::CmpFPredicate predicate, float a, float b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (predicate == arith::CmpFPredicate::AlwaysTrue || predicate == arith::CmpFPredicate::UNO)
    return unordered || predicate == arith::CmpFPredicate::AlwaysTrue;
  const int number = static_cast<int>(predicate), set = number < 8 ? number : number - 7;
  if (unordered)
    return number >= 8;
  return (set & 1 && a == b) || (set & 2 && a > b) || (set & 4 && a < b);
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::CmpFOp op) {
  Slot a = slot(op.getLhs()), b = slot(op.getRhs()), out = slot(op);
  return Instruction([=, predicate = op.getPredicate()] {
    for (int64_t i = 0; i < out.size; ++i)
      out.integers[i] = compares(predicate, a.floats[i], b.floats[i]);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::SelectOp op) {
  if (!isFloatLike(op.getType()))
    return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
  Slot condition = slot(op.getCondition()), a = slot(op.getTrueValue()), b = slot(op.getFalseValue()), out = slot(op);
  return Instruction([=] {
    for (int64_t i = 0; i < out.size; ++i)
      out.floats[i] = condition.integers[condition.size == 1 ? 0 : i] ? a.floats[i] : b.floats[i];
    return true;
  });
}
