// Statements.
#include "runtime/template/Interpreter.h"
#include "runtime/template/PlainText.h"
#include "runtime/template/PythonFormat.h"

namespace llmc::jinja {

Status Interpreter::Nested::check() const {
  return depth_ <= maxEvaluationDepth
             ? Status()
             : Status::error("evaluation nests deeper than " + std::to_string(maxEvaluationDepth));
}

StatusOr<std::string> Interpreter::render(const Json &variables) {
  auto scope = std::make_shared<Scope>(nullptr);
  runtime_.clearables.push_back(scope);
  out_ = &output_;
  Status status;
  for (auto it = variables.begin(); status.ok() && it != variables.end(); ++it) {
    ValueOr value = fromJson(it.value(), runtime_.budget);
    status = value.status();
    if (value.ok())
      scope->names[it.key()] = *value;
  }
  if (status.ok())
    status = run(ast_.body, scope).status();
  if (status.ok()) {
    StatusOr<ByteRanges> plain = takePlainMarks(output_, options_.generationSpans);
    if (plain.ok() && options_.plainSpans)
      *options_.plainSpans = std::move(*plain);
    status = plain.status();
  }
  if (status.ok())
    return std::move(output_);
  return runtime_.raised ? status : Status::error("line " + std::to_string(line_) + ": " + status.message());
}

Status Interpreter::append(std::string_view text) {
  uint64_t limit = runtime_.budget.limits().outputBytes;
  if (text.size() > limit || out_->size() > limit - text.size())
    return Status::error("output exceeds the limit of " + std::to_string(limit) + " bytes");
  *out_ += text;
  return Status();
}

Status Interpreter::write(const Value &value) {
  if (value.isString() && (value.isSafe() || !runtime_.autoescape))
    return append(value.text());
  LLMC_ASSIGN_OR_RETURN(std::string text,
                        runtime_.autoescape ? escaped(runtime_.budget, value) : pythonStr(runtime_.budget, value));
  return append(text);
}

Interpreter::FlowOr Interpreter::run(const Body &body, const ScopePtr &scope) {
  Nested nested(depth_);
  LLMC_RETURN_IF_ERROR(nested.check());
  for (const StatementPtr &statement : body) {
    line_ = statement->line;
    LLMC_RETURN_IF_ERROR(runtime_.budget.step());
    LLMC_ASSIGN_OR_RETURN(Flow flow, execute(*statement, scope));
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::execute(const Statement &statement, const ScopePtr &scope) {
  switch (statement.kind) {
  case Statement::Kind::Text:
    LLMC_RETURN_IF_ERROR(append(statement.text));
    return Flow::Next;
  case Statement::Kind::Print: {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*statement.value, scope));
    LLMC_RETURN_IF_ERROR(write(value));
    return Flow::Next;
  }
  case Statement::Kind::If:
    return runIf(statement, scope);
  case Statement::Kind::For:
    return runFor(statement, scope);
  case Statement::Kind::Set: {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*statement.value, scope));
    LLMC_RETURN_IF_ERROR(assign(statement.target, value, scope));
    return Flow::Next;
  }
  case Statement::Kind::SetBlock:
    LLMC_RETURN_IF_ERROR(runSetBlock(statement, scope));
    return Flow::Next;
  case Statement::Kind::Macro:
    scope->names[statement.macro.name] = makeMacro(statement, scope);
    return Flow::Next;
  case Statement::Kind::CallBlock:
    LLMC_RETURN_IF_ERROR(runCallBlock(statement, scope));
    return Flow::Next;
  case Statement::Kind::FilterBlock: {
    LLMC_ASSIGN_OR_RETURN(Value text, capture(statement.body, scope));
    LLMC_ASSIGN_OR_RETURN(Value value, evaluateFilter(*statement.value, scope, &text));
    LLMC_RETURN_IF_ERROR(write(value));
    return Flow::Next;
  }
  case Statement::Kind::With:
    return runWith(statement, scope);
  case Statement::Kind::Autoescape:
    return runAutoescape(statement, scope);
  case Statement::Kind::Generation:
    return runGeneration(statement, scope);
  case Statement::Kind::Scope:
    return run(statement.body, std::make_shared<Scope>(scope));
  case Statement::Kind::Break:
    return Flow::Break;
  case Statement::Kind::Continue:
    return Flow::Continue;
  case Statement::Kind::Unsupported:
    return Status::error("'" + statement.text + "' needs another template, and a chat template stands alone");
  }
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::runIf(const Statement &statement, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value condition, evaluate(*statement.value, scope));
  if (isTrue(condition))
    return run(statement.body, scope);
  for (const StatementPtr &branch : statement.branches) {
    LLMC_ASSIGN_OR_RETURN(Value other, evaluate(*branch->value, scope));
    if (isTrue(other))
      return run(branch->body, scope);
  }
  return run(statement.otherwise, scope);
}

Interpreter::FlowOr Interpreter::runFor(const Statement &statement, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*statement.value, scope));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime_.budget, value));
  return runLoop(statement, std::move(items), scope, /*level=*/0);
}

StatusOr<std::vector<Value>> Interpreter::filteredItems(const Statement &statement, std::vector<Value> items,
                                                        const ScopePtr &scope) {
  if (!statement.condition)
    return items;
  std::vector<Value> kept;
  for (Value &item : items) {
    auto inner = std::make_shared<Scope>(scope);
    LLMC_RETURN_IF_ERROR(runtime_.budget.step());
    LLMC_RETURN_IF_ERROR(assign(statement.target, item, inner));
    LLMC_ASSIGN_OR_RETURN(Value keep, evaluate(*statement.condition, inner));
    if (isTrue(keep))
      kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::FlowOr Interpreter::runLoop(const Statement &statement, std::vector<Value> items, const ScopePtr &scope,
                                         int level) {
  LLMC_ASSIGN_OR_RETURN(items, filteredItems(statement, std::move(items), scope));
  if (items.empty())
    return run(statement.otherwise, std::make_shared<Scope>(scope));
  auto loop = std::make_shared<Loop>();
  LLMC_ASSIGN_OR_RETURN(Value list, makeList(std::move(items)));
  loop->depth = list.depth() + 1;
  if (loop->depth > maxValueDepth)
    return Status::error("values nest deeper than " + std::to_string(maxValueDepth));
  // The list has this one owner, so its items can move.
  loop->items = std::move(list.as<List>().items);
  loop->level = level;
  if (statement.recursive) {
    loop->recursiveFor = &statement;
    loop->scope = scope;
    runtime_.clearables.push_back(scope);
  }
  Value loopValue = Value::object(Kind::Loop, loop);
  for (size_t i = 0; i < loop->items.size(); ++i) {
    LLMC_RETURN_IF_ERROR(runtime_.budget.step());
    loop->index = i;
    auto turn = std::make_shared<Scope>(scope);
    turn->names["loop"] = loopValue;
    LLMC_RETURN_IF_ERROR(assign(statement.target, loop->items[i], turn));
    LLMC_ASSIGN_OR_RETURN(Flow flow, run(statement.body, turn));
    if (flow == Flow::Break)
      break;
  }
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::runWith(const Statement &statement, const ScopePtr &scope) {
  auto inner = std::make_shared<Scope>(scope);
  // The values do not see each other's names.
  for (const auto &[target, expression] : statement.assignments) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*expression, scope));
    LLMC_RETURN_IF_ERROR(assign(target, value, inner));
  }
  return run(statement.body, inner);
}

Interpreter::FlowOr Interpreter::runAutoescape(const Statement &statement, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value on, evaluate(*statement.value, scope));
  bool before = runtime_.autoescape;
  runtime_.autoescape = isTrue(on);
  FlowOr flow = run(statement.body, std::make_shared<Scope>(scope));
  runtime_.autoescape = before;
  return flow;
}

Interpreter::FlowOr Interpreter::runGeneration(const Statement &statement, const ScopePtr &scope) {
  size_t begin = out_->size();
  LLMC_ASSIGN_OR_RETURN(Flow flow, run(statement.body, std::make_shared<Scope>(scope)));
  // Inside a macro or another captured block, the place in the whole output is not known.
  if (options_.generationSpans && out_ == &output_)
    options_.generationSpans->emplace_back(begin, out_->size());
  return flow;
}

Value Interpreter::captured(std::string text) const { return Value::string(std::move(text), runtime_.autoescape); }

StatusOr<Value> Interpreter::capture(const Body &body, const ScopePtr &scope) {
  std::string text;
  std::string *before = out_;
  out_ = &text;
  FlowOr flow = run(body, std::make_shared<Scope>(scope));
  out_ = before;
  LLMC_RETURN_IF_ERROR(flow.status());
  LLMC_RETURN_IF_ERROR(runtime_.budget.spendBytes(text.size()));
  return captured(std::move(text));
}

Status Interpreter::runSetBlock(const Statement &statement, const ScopePtr &scope) {
  LLMC_ASSIGN_OR_RETURN(Value text, capture(statement.body, scope));
  if (statement.value) {
    LLMC_ASSIGN_OR_RETURN(text, evaluateFilter(*statement.value, scope, &text));
  }
  return assign(statement.target, text, scope);
}

Status Interpreter::runCallBlock(const Statement &statement, const ScopePtr &scope) {
  const Expression &e = *statement.value;
  LLMC_ASSIGN_OR_RETURN(Value callee, evaluate(*e.operands[0], scope));
  LLMC_ASSIGN_OR_RETURN(Arguments arguments, evaluateArguments(e.arguments, scope));
  arguments.keyword.emplace_back("caller", makeMacro(statement, scope));
  LLMC_ASSIGN_OR_RETURN(Value value, call(callee, arguments));
  return write(value);
}

Value Interpreter::makeMacro(const Statement &definition, const ScopePtr &scope) {
  auto macro = std::make_shared<Macro>();
  macro->definition = &definition;
  macro->scope = scope;
  // The scope holds the macro and the macro the scope: see Runtime.
  runtime_.clearables.push_back(scope);
  return Value::object(Kind::Macro, std::move(macro));
}

Status Interpreter::assign(const Target &target, const Value &value, const ScopePtr &scope) {
  if (target.isTuple) {
    LLMC_ASSIGN_OR_RETURN(std::vector<Value> parts, iterate(runtime_.budget, value));
    if (parts.size() != target.parts.size())
      return Status::error("cannot unpack " + std::to_string(parts.size()) + " values into " +
                           std::to_string(target.parts.size()) + " names");
    for (size_t i = 0; i < parts.size(); ++i)
      LLMC_RETURN_IF_ERROR(assign(target.parts[i], parts[i], scope));
    return Status();
  }
  if (target.attribute.empty()) {
    scope->names[target.name] = value;
    return Status();
  }
  LLMC_ASSIGN_OR_RETURN(Value object, lookUp(target.name, scope));
  if (!object.is(Kind::Namespace))
    return Status::error("cannot assign the attribute '" + target.attribute + "' of '" + target.name +
                         "', which is no namespace");
  if (target.attribute.starts_with("_"))
    return Status::error("a namespace cannot hold '" + target.attribute +
                         "': names with a leading underscore are refused");
  object.as<Namespace>().attributes.setText(target.attribute, value);
  return Status();
}

} // namespace llmc::jinja
