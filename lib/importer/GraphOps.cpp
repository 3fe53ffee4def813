// Arguments are bound by position or name and handed to the function; operators between rows are here too.
#include "lib/importer/OpCall.h"

namespace llmc {
namespace {

const FunctionTable &rules() {
  static const FunctionTable table = [] {
    FunctionTable all;
    addRowFunctions(all);
    addProductFunctions(all);
    addStateFunctions(all);
    return all;
  }();
  return table;
}

bool isOptional(const std::string &parameter) { return parameter.back() == '?'; }
std::string plainName(const std::string &parameter) {
  return isOptional(parameter) ? parameter.substr(0, parameter.size() - 1) : parameter;
}

std::string signatureOf(const std::string &name, const FunctionRule &rule) {
  std::string text;
  for (const std::string &parameter : rule.parameters)
    text += (text.empty() ? "" : ", ") + parameter;
  return name + "(" + text + ")";
}

Status bindArguments(OpCall &call, const FunctionRule &rule, const CallArguments &arguments) {
  if (rule.parameters.front() == "parts...") {
    Operand list;
    list.kind = Operand::Kind::Several;
    list.several = arguments.positional;
    call.arguments["parts"] = std::move(list);
    return {};
  }
  size_t next = 0;
  for (const Operand &operand : arguments.positional) {
    if (next == rule.parameters.size())
      return Status::error(signatureOf(call.name, rule) + " is called with " +
                           std::to_string(arguments.positional.size()) + " arguments");
    call.arguments[plainName(rule.parameters[next++])] = operand;
  }
  for (const auto &[name, operand] : arguments.named) {
    bool known = false;
    for (const std::string &parameter : rule.parameters)
      known |= plainName(parameter) == name;
    if (!known || !call.arguments.emplace(name, operand).second)
      return Status::error(signatureOf(call.name, rule) + (known ? " is given '" : " has no '") + name +
                           (known ? "' twice" : "'"));
  }
  for (const std::string &parameter : rule.parameters)
    if (!isOptional(parameter) && !call.has(parameter))
      return Status::error(signatureOf(call.name, rule) + " is called without '" + parameter + "'");
  return {};
}

} // namespace

std::optional<StatusOr<Operand>> callGraphOp(GraphScope &scope, const std::string &name,
                                             const CallArguments &arguments) {
  OpCall call(scope, name);
  if (activationNames().count(name) && arguments.positional.size() == 1 &&
      arguments.positional[0].kind == Operand::Kind::Rows) {
    call.arguments = {{"kind", Operand::of(Scalar::of(name))}, {"x", arguments.positional[0]}};
    return rules().at("activation").build(call);
  }
  auto rule = rules().find(name);
  if (rule == rules().end())
    return std::nullopt;
  if (Status status = bindArguments(call, rule->second, arguments); !status.ok())
    return StatusOr<Operand>(status);
  return rule->second.build(call);
}

StatusOr<Operand> applyRowOperator(GraphScope &scope, const std::string &op, const std::vector<Operand> &operands) {
  OpCall call(scope, "operator " + op);
  auto isRows = [](const Operand &operand) { return operand.kind == Operand::Kind::Rows; };
  auto scaled = [&](int x, double factor, double offset) {
    if (factor == 1.0 && offset == 0.0)
      return Operand::ofRows(x);
    Attributes attributes = {{"factor", factor}};
    if (offset != 0.0)
      attributes["offset"] = offset;
    return Operand::ofRows(call.one("scale", {x}, call.shapeOf(x), attributes));
  };
  for (const Operand &operand : operands)
    if (!isRows(operand) && (operand.kind != Operand::Kind::Scalar || operand.scalar.kind != Scalar::Kind::Number))
      return Status::error("operator " + op + " takes activations and numbers");
  if (operands.size() == 1 && op != "neg")
    return Status::error("operator " + op + " does not take an activation");
  if (op == "neg")
    return scaled(operands[0].rows, -1.0, 0.0);
  if (isRows(operands[0]) && isRows(operands[1])) {
    int left = operands[0].rows, right = operands[1].rows;
    if (op == "*") {
      if (call.value(left).rowElements() < call.value(right).rowElements())
        std::swap(left, right);
      const GraphValue &a = call.value(left), &b = call.value(right);
      bool perRow = b.channels == 1 && (b.heads == 0 || b.heads == a.heads);
      bool perHead = b.heads == 0 && a.heads != 0 && b.channels == a.heads;
      if (!call.sameShape(left, right) && !perRow && !perHead)
        return Status::error("operator *: one side is " + call.print(left) + ", the other " + call.print(right));
      return Operand::ofRows(call.one("multiply", {left, right}, call.shapeOf(left)));
    }
    if (op == "-")
      right = scaled(right, -1.0, 0.0).rows;
    if (op != "+" && op != "-")
      return Status::error("operator " + op + " does not take two activations");
    if (!call.sameShape(left, right))
      return Status::error("operator " + op + ": one side is " + call.print(left) + ", the other " + call.print(right));
    return Operand::ofRows(call.one("add", {left, right}, call.shapeOf(left)));
  }
  bool rowsFirst = isRows(operands[0]);
  int x = operands[rowsFirst ? 0 : 1].rows;
  double number = operands[rowsFirst ? 1 : 0].scalar.number;
  if (op == "*")
    return scaled(x, number, 0.0);
  if (op == "/" && rowsFirst && number != 0.0)
    return scaled(x, 1.0 / number, 0.0);
  if (op == "+")
    return scaled(x, 1.0, number);
  if (op == "-")
    return rowsFirst ? scaled(x, 1.0, -number) : scaled(x, -1.0, number);
  return Status::error("operator " + op + " does not take an activation and a number");
}

std::vector<std::string> graphOpSignatures() {
  std::vector<std::string> signatures;
  for (const auto &[name, rule] : rules())
    signatures.push_back(signatureOf(name, rule));
  return signatures;
}

} // namespace llmc
