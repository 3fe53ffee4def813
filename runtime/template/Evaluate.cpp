// Expressions and calls.
#include "runtime/template/Interpreter.h"
#include "runtime/template/Methods.h"
#include "runtime/template/PythonFormat.h"
#include <algorithm>

namespace llmc::jinja {

ValueOr Interpreter::evaluate(const Expression &e, const ScopePtr &scope) {
  Nested nested(depth_);
  LLMC_RETURN_IF_ERROR(nested.check());
  LLMC_RETURN_IF_ERROR(runtime_.budget.spend(1));
  line_ = e.line;
  return evaluateNode(e, scope);
}

ValueOr Interpreter::evaluateNode(const Expression &e, const ScopePtr &scope) {
  switch (e.kind) {
  case Expression::Kind::Constant:
    return e.constant;
  case Expression::Kind::Name:
    return lookUp(e.name, scope);
  case Expression::Kind::List:
  case Expression::Kind::Tuple:
    return evaluateItems(e, scope);
  case Expression::Kind::Dict:
    return evaluateDict(e, scope);
  case Expression::Kind::Attribute: {
    LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*e.operands[0], scope));
    line_ = e.line;
    return getAttribute(runtime_.budget, object, e.name);
  }
  case Expression::Kind::Item: {
    LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*e.operands[0], scope));
    LLMC_ASSIGN_OR_RETURN(Value key, evaluate(*e.operands[1], scope));
    line_ = e.line;
    return getItem(runtime_.budget, object, key);
  }
  case Expression::Kind::Slice:
    return evaluateSlice(e, scope);
  case Expression::Kind::Call: {
    LLMC_ASSIGN_OR_RETURN(Value callee, evaluate(*e.operands[0], scope));
    LLMC_ASSIGN_OR_RETURN(Arguments arguments, evaluateArguments(e.arguments, scope));
    line_ = e.line;
    return call(callee, arguments);
  }
  case Expression::Kind::Filter:
    return evaluateFilter(e, scope, nullptr);
  case Expression::Kind::Test: {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*e.operands[0], scope));
    LLMC_ASSIGN_OR_RETURN(Arguments arguments, evaluateArguments(e.arguments, scope));
    line_ = e.line;
    LLMC_ASSIGN_OR_RETURN(bool answer, applyPredicate(runtime_, e.name, value, arguments));
    return Value::boolean(answer);
  }
  case Expression::Kind::Arithmetic:
    return evaluateArithmetic(e, scope);
  case Expression::Kind::Concat:
    return evaluateConcat(e, scope);
  case Expression::Kind::Compare:
    return evaluateCompare(e, scope);
  case Expression::Kind::Conditional:
    return evaluateConditional(e, scope);
  default:
    return evaluateLogic(e, scope);
  }
}

ValueOr Interpreter::evaluateItems(const Expression &e, const ScopePtr &scope) {
  std::vector<Value> items;
  items.reserve(e.operands.size());
  for (const ExpressionPtr &operand : e.operands) {
    LLMC_ASSIGN_OR_RETURN(Value item, evaluate(*operand, scope));
    items.push_back(std::move(item));
  }
  return makeList(std::move(items), e.kind == Expression::Kind::List ? Kind::List : Kind::Tuple);
}

ValueOr Interpreter::evaluateDict(const Expression &e, const ScopePtr &scope) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i + 1 < e.operands.size(); i += 2) {
    LLMC_ASSIGN_OR_RETURN(Value key, evaluate(*e.operands[i], scope));
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*e.operands[i + 1], scope));
    LLMC_RETURN_IF_ERROR(dict->set(key, std::move(value)));
  }
  return makeDict(std::move(dict));
}

ValueOr Interpreter::evaluateSlice(const Expression &e, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*e.operands[0], scope));
  Slice slice;
  std::optional<Value> *bounds[] = {&slice.start, &slice.stop, &slice.step};
  for (size_t i = 0; i < 3; ++i) {
    if (!e.operands[i + 1])
      continue;
    LLMC_ASSIGN_OR_RETURN(Value bound, evaluate(*e.operands[i + 1], scope));
    *bounds[i] = std::move(bound);
  }
  return getSlice(runtime_.budget, object, slice);
}

ValueOr Interpreter::evaluateFilter(const Expression &e, const ScopePtr &scope, const Value *blockText) {
  Nested nested(depth_);
  LLMC_RETURN_IF_ERROR(nested.check());
  Value input;
  const Expression *operand = e.operands[0].get();
  if (!operand) {
    input = blockText ? *blockText : Value();
  } else if (blockText && operand->kind == Expression::Kind::Filter) {
    LLMC_ASSIGN_OR_RETURN(input, evaluateFilter(*operand, scope, blockText));
  } else {
    LLMC_ASSIGN_OR_RETURN(input, evaluate(*operand, scope));
  }
  LLMC_ASSIGN_OR_RETURN(Arguments arguments, evaluateArguments(e.arguments, scope));
  line_ = e.line;
  return applyFilter(runtime_, e.name, input, arguments);
}

// not, and, or, signs. "and" and "or" give an operand back.
ValueOr Interpreter::evaluateLogic(const Expression &e, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*e.operands[0], scope));
  switch (e.kind) {
  case Expression::Kind::Not:
    return Value::boolean(!isTrue(value));
  case Expression::Kind::Negate:
    return negate(value);
  case Expression::Kind::Plus:
    LLMC_RETURN_IF_ERROR(negate(value).status());
    return value.is(Kind::Bool) ? Value::integer(value.asInt()) : value;
  default:
    break;
  }
  bool stopAt = e.kind == Expression::Kind::Or;
  for (size_t i = 1; i < e.operands.size() && isTrue(value) != stopAt; ++i) {
    LLMC_ASSIGN_OR_RETURN(value, evaluate(*e.operands[i], scope));
  }
  return value;
}

ValueOr Interpreter::evaluateArithmetic(const Expression &e, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value result, evaluate(*e.operands[0], scope));
  for (size_t i = 0; i < e.operators.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Value next, evaluate(*e.operands[i + 1], scope));
    LLMC_ASSIGN_OR_RETURN(result, arithmetic(runtime_.budget, e.operators[i], result, next));
  }
  return result;
}

ValueOr Interpreter::evaluateConcat(const Expression &e, const ScopePtr &scope) {
  std::vector<Value> parts;
  bool anySafe = false;
  for (const ExpressionPtr &operand : e.operands) {
    LLMC_ASSIGN_OR_RETURN(Value part, evaluate(*operand, scope));
    anySafe |= part.isSafe();
    parts.push_back(std::move(part));
  }
  bool escapes = anySafe && runtime_.autoescape;
  std::string out;
  for (const Value &part : parts) {
    LLMC_ASSIGN_OR_RETURN(std::string text,
                          escapes ? escaped(runtime_.budget, part) : pythonStr(runtime_.budget, part));
    out += text;
    LLMC_RETURN_IF_ERROR(
        runtime_.budget.spendBytes(out.size() > runtime_.budget.limits().outputBytes ? out.size() : 0));
  }
  return Value::string(std::move(out), escapes);
}

StatusOr<bool> Interpreter::compare(CompareOp op, const Value &a, const Value &b) {
  if (op == CompareOp::In || op == CompareOp::NotIn) {
    LLMC_ASSIGN_OR_RETURN(bool in, contains(runtime_.budget, b, a));
    return in == (op == CompareOp::In);
  }
  Status failure;
  bool answer = false;
  if (op == CompareOp::Equal || op == CompareOp::NotEqual)
    answer = isEqual(runtime_.budget, a, b, failure) == (op == CompareOp::Equal);
  else if (op == CompareOp::Less || op == CompareOp::LessEqual)
    answer = isLess(runtime_.budget, a, b, failure);
  else
    answer = isLess(runtime_.budget, b, a, failure);
  LLMC_RETURN_IF_ERROR(failure);
  if (!answer && (op == CompareOp::LessEqual || op == CompareOp::GreaterEqual)) {
    answer = isEqual(runtime_.budget, a, b, failure);
    LLMC_RETURN_IF_ERROR(failure);
  }
  return answer;
}

ValueOr Interpreter::evaluateCompare(const Expression &e, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value left, evaluate(*e.operands[0], scope));
  for (size_t i = 0; i < e.comparisons.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Value right, evaluate(*e.operands[i + 1], scope));
    LLMC_ASSIGN_OR_RETURN(bool holds, compare(e.comparisons[i], left, right));
    if (!holds)
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

ValueOr Interpreter::evaluateConditional(const Expression &e, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value condition, evaluate(*e.operands[1], scope));
  if (isTrue(condition))
    return evaluate(*e.operands[0], scope);
  if (e.operands[2])
    return evaluate(*e.operands[2], scope);
  return Value::undefined("the conditional of line " + std::to_string(e.line) + " has no else");
}

ValueOr Interpreter::lookUp(const std::string &name, const ScopePtr &scope) const {
  for (const Scope *s = scope.get(); s; s = s->parent.get()) {
    auto found = s->names.find(name);
    if (found != s->names.end())
      return found->second;
  }
  if (findGlobal(name)) {
    auto function = std::make_shared<Function>();
    function->name = name;
    return Value::object(Kind::Function, std::move(function));
  }
  return Value::undefined("'" + name + "' is undefined");
}

StatusOr<Arguments> Interpreter::evaluateArguments(const CallArguments &given, const ScopePtr &scope) {
  Arguments out;
  for (const ExpressionPtr &e : given.positional) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*e, scope));
    out.positional.push_back(std::move(value));
  }
  if (given.listed) {
    LLMC_ASSIGN_OR_RETURN(Value list, evaluate(*given.listed, scope));
    LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime_.budget, list));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  for (const auto &[name, e] : given.keyword) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*e, scope));
    out.keyword.emplace_back(name, std::move(value));
  }
  if (given.mapped) {
    LLMC_ASSIGN_OR_RETURN(Value map, evaluate(*given.mapped, scope));
    if (!map.is(Kind::Dict))
      return Status::error("the argument after ** must be a mapping, not " + typeName(map));
    for (const auto &[key, value] : map.dict().entries) {
      if (!key.isString())
        return Status::error("keywords must be strings, not " + typeName(key));
      out.keyword.emplace_back(key.text(), value);
    }
  }
  return out;
}

ValueOr Interpreter::call(const Value &callee, const Arguments &arguments) {
  LLMC_RETURN_IF_ERROR(runtime_.budget.step());
  switch (callee.kind()) {
  case Kind::Macro:
    return callMacro(callee.as<Macro>(), arguments);
  case Kind::Function:
    return findGlobal(callee.as<Function>().name)(runtime_, arguments);
  case Kind::Method:
    return callMethod(runtime_.budget, callee.as<Method>(), arguments);
  case Kind::Loop:
    return callLoop(callee.as<Loop>(), arguments);
  case Kind::Joiner: {
    auto &joiner = callee.as<Joiner>();
    bool first = !joiner.used;
    joiner.used = true;
    return Value::string(first ? "" : joiner.separator);
  }
  case Kind::Undefined:
    return undefinedError(callee);
  default:
    return Status::error("'" + typeName(callee) + "' object is not callable");
  }
}

ValueOr Interpreter::callLoop(const Loop &loop, const Arguments &arguments) {
  if (!loop.recursiveFor)
    return Status::error("the loop is not recursive; write 'recursive' at its end");
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("loop", arguments, {"iterable"}, 1));
  if (loop.level + 1 >= runtime_.budget.limits().recursion)
    return Status::error("recursive loops nest deeper than " + std::to_string(runtime_.budget.limits().recursion));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime_.budget, *bound[0]));
  std::string text;
  std::string *before = out_;
  out_ = &text;
  FlowOr flow = runLoop(*static_cast<const Statement *>(loop.recursiveFor), std::move(items),
                        std::static_pointer_cast<Scope>(loop.scope), loop.level + 1);
  out_ = before;
  LLMC_RETURN_IF_ERROR(flow.status());
  LLMC_RETURN_IF_ERROR(runtime_.budget.spendBytes(text.size()));
  return captured(std::move(text));
}

ValueOr Interpreter::callMacro(const Macro &macro, const Arguments &arguments) {
  if (calls_ >= runtime_.budget.limits().recursion)
    return Status::error("macro calls nest deeper than " + std::to_string(runtime_.budget.limits().recursion));
  // The macro may replace the name that holds it.
  Macro kept = macro;
  auto scope = std::make_shared<Scope>(kept.scope);
  ++calls_;
  Status bound = bindParameters(kept, arguments, scope);
  ValueOr result = bound.ok() ? capture(kept.definition->body, scope) : ValueOr(bound);
  --calls_;
  return result;
}

Status Interpreter::bindParameters(const Macro &macro, const Arguments &arguments, const ScopePtr &scope) {
  const MacroSignature &signature = macro.definition->macro;
  const std::vector<std::string> &names = signature.parameters;
  std::vector<std::optional<Value>> bound(names.size());
  std::vector<Value> extra;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < names.size())
      bound[i] = arguments.positional[i];
    else
      extra.push_back(arguments.positional[i]);
  }
  if (!extra.empty() && !signature.usesVarargs)
    return Status::error("macro '" + signature.name + "' takes not more than " + std::to_string(names.size()) +
                         " arguments, but " + std::to_string(arguments.positional.size()) + " are given");
  auto named = std::make_shared<Dict>();
  std::optional<Value> caller;
  for (const auto &[key, value] : arguments.keyword) {
    auto place = std::find(names.begin(), names.end(), key);
    if (place != names.end()) {
      std::optional<Value> &slot = bound[static_cast<size_t>(place - names.begin())];
      if (slot)
        return Status::error("macro '" + signature.name + "' got the argument '" + key + "' twice");
      slot = value;
    } else if (key == "caller" && signature.usesCaller) {
      caller = value;
    } else if (signature.usesKwargs) {
      named->setText(key, value);
    } else {
      return Status::error("macro '" + signature.name + "' takes no argument '" + key + "'");
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!bound[i] && signature.defaults[i]) {
      LLMC_ASSIGN_OR_RETURN(bound[i], evaluate(*signature.defaults[i], scope));
    }
    scope->names[names[i]] = bound[i] ? *bound[i] : Value::undefined("parameter '" + names[i] + "' was not provided");
  }
  if (signature.usesCaller && scope->names.count("caller") == 0)
    scope->names["caller"] = caller.value_or(Value::undefined("no caller defined"));
  if (signature.usesVarargs) {
    LLMC_ASSIGN_OR_RETURN(scope->names["varargs"], makeList(std::move(extra), Kind::Tuple));
  }
  if (signature.usesKwargs) {
    LLMC_ASSIGN_OR_RETURN(scope->names["kwargs"], makeDict(std::move(named)));
  }
  return Status();
}

} // namespace llmc::jinja
