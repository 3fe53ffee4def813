// Checks across the sections of a description: every name that is used is defined somewhere.
#include "lib/importer/ModelDescription.h"
#include "lib/importer/OpCall.h"
#include <set>

namespace llmc {
namespace {

using Names = std::set<std::string>;

// Functions that a wiring may call beside the blocks.
const Names &knownFunctions() {
  static const Names names = [] {
    Names all = {"if"};
    for (const std::string &signature : graphOpSignatures())
      all.insert(signature.substr(0, signature.find('(')));
    all.insert(activationNames().begin(), activationNames().end());
    return all;
  }();
  return names;
}

void callsIn(const Expression &expression, Names &calls) {
  if (expression.kind == Expression::Kind::Call)
    calls.insert(expression.text);
  for (const Expression &operand : expression.operands)
    callsIn(operand, calls);
  for (const Expression &argument : expression.named)
    callsIn(argument, calls);
}

class Checker {
public:
  Checker(const ModelDescription &description, const FormatRules &rules, std::string pointer)
      : description_(description), rules_(rules), pointer_(std::move(pointer)) {}

  std::vector<std::string> run() {
    for (const std::string &name : requiredValues())
      if (!rules_.values.count(name))
        error(pointer_ + "/values", "has no '" + name + "'");
    // A description without blocks is of a model that is known and not run.
    bool isWired = !description_.blocks.empty() || rules_.parts.empty();
    for (const char *name : {"begin", "layer", "finish", "kind"})
      if (isWired && !description_.blocks.count(name))
        error("/blocks", "has no block '" + std::string(name) + "'");
    checkValues();
    checkWeights();
    for (const auto &[name, part] : rules_.parts)
      checkPart(part, pointer_ + "/parts/" + name);
    for (const auto &[name, choices] : rules_.perLayer)
      for (size_t i = 0; i < choices.size(); ++i)
        checkChoice(name, choices[i], pointer_ + "/per_layer/" + name + "/" + std::to_string(i));
    for (const auto &[name, block] : description_.blocks)
      checkBlock(name, block);
    return std::move(problems_);
  }

private:
  void error(const std::string &pointer, const std::string &what) { problems_.push_back(pointer + " " + what); }

  bool isValue(const std::string &name) const {
    const ValueDefinition *definition = findValueDefinition(name);
    return rules_.values.count(name) || (definition && definition->fallback);
  }
  bool isLayerFact(const std::string &name) const {
    return name == "layer" || name == "window" || rules_.perLayer.count(name);
  }

  void checkValueName(const std::string &name, const std::string &at) {
    if (!isValue(name))
      error(at, "uses '" + name + "', which is no entry of values");
  }

  void checkExpression(const std::string &text, const std::string &at, bool layerFacts) {
    StatusOr<Expression> expression = parseExpression(text);
    if (!expression.ok())
      return error(at, expression.status().message());
    for (const std::string &name : namesOf(*expression))
      if (!isValue(name) && !(layerFacts && isLayerFact(name)))
        error(at, "uses '" + name + "', which is no entry of values");
  }

  void checkValues() {
    for (const auto &[name, rule] : rules_.values) {
      const ValueDefinition *definition = findValueDefinition(name);
      if (definition && definition->kind == ValueDefinition::Kind::Word)
        continue;
      std::string at = pointer_ + "/values/" + name;
      for (const std::optional<Json> &literal : {rule.fallback, rule.onNull, rule.value})
        if (literal && literal->is_string())
          checkExpression(literal->get<std::string>(), at, false);
      if (!rule.enabledBy.empty())
        checkValueName(rule.enabledBy, at + "/enabled_by");
    }
    for (const auto &[key, value] : rules_.mustEqual)
      if (value.is_string())
        checkExpression(value.get<std::string>(), pointer_ + "/must_equal/" + key, false);
  }

  void checkWeights() {
    for (const auto &[name, rule] : rules_.weights)
      for (const WeightRule::Source &source : rule.sources) {
        std::string at = pointer_ + "/weights/" + name;
        std::vector<std::string> expressions = source.dims;
        for (const std::string &text : {source.unpermute, source.stack, source.constant, source.times})
          if (!text.empty())
            expressions.push_back(text);
        std::vector<std::optional<std::pair<std::string, std::string>>> ranges = source.take;
        ranges.push_back(source.rows);
        for (const auto &range : ranges)
          if (range)
            expressions.insert(expressions.end(), {range->first, range->second});
        for (const std::string &text : expressions)
          checkExpression(text, at, true);
      }
  }

  void checkPart(const PartRule &part, const std::string &at) {
    auto check = [&](const std::string &text, const std::string &where) {
      StatusOr<Expression> expression = parseExpression(text);
      if (!expression.ok())
        return error(where, expression.status().message());
      for (const std::string &name : namesOf(*expression))
        if (!part.values.count(name) && !isValue(name))
          error(where, "uses '" + name + "', which is no value of the part and none of the model");
    };
    if (!part.when.empty())
      check(part.when, at + "/when");
    for (const auto &[name, rule] : part.values)
      for (const std::optional<Json> &literal : {rule.fallback, rule.onNull, rule.value})
        if (literal && literal->is_string())
          check(literal->get<std::string>(), at + "/values/" + name);
    for (const auto &[name, tensor] : part.tensors) {
      std::string where = at + "/tensors/" + name;
      for (const std::string &size : tensor.shape)
        check(size, where);
      for (size_t open = name.find('{'); open != std::string::npos; open = name.find('{', open + 1)) {
        std::string range = name.substr(open + 1, name.find('}', open) - open - 1);
        size_t dots = range.find("..");
        if (dots != std::string::npos)
          check(range.substr(0, dots), where);
        check(dots == std::string::npos ? range : range.substr(dots + 2), where);
      }
    }
  }

  void checkChoice(const std::string &self, const LayerChoice &choice, const std::string &at) {
    using Kind = LayerChoice::Kind;
    if (choice.kind == Kind::Period || choice.kind == Kind::From)
      checkValueName(choice.name, at);
    if (choice.kind == Kind::Expression)
      checkExpression(choice.name, at, true);
    if (!choice.when.empty())
      checkValueName(choice.when, at + "/when");
    if ((choice.kind == Kind::As || choice.kind == Kind::Not) &&
        (choice.name == self || !rules_.perLayer.count(choice.name)))
      error(at, "refers to '" + choice.name + "', expected another choice");
    bool fromWords = choice.kind == Kind::List || choice.kind == Kind::Letters;
    if (fromWords && choice.yes.empty() != choice.no.empty())
      error(at, "needs the words of both 'yes' and 'no', or neither");
  }

  void checkBlock(const std::string &name, const Block &block) {
    Names variables(block.parameters.begin(), block.parameters.end());
    auto addTargets = [&](const Block &from) {
      for (const Statement &statement : from.statements)
        variables.insert(statement.targets.begin(), statement.targets.end());
    };
    addTargets(block);
    if (auto begin = description_.blocks.find("begin"); begin != description_.blocks.end())
      addTargets(begin->second);
    for (size_t i = 0; i < block.statements.size(); ++i) {
      const Statement &statement = block.statements[i];
      std::string at = "/blocks/" + name + "/" + std::to_string(i);
      std::vector<const Expression *> expressions;
      for (const Expression &value : statement.values)
        expressions.push_back(&value);
      if (statement.condition)
        expressions.push_back(statement.condition.get());
      for (const Expression *expression : expressions)
        checkUses(*expression, variables, at);
    }
    if (block.statements.empty() || !block.statements.back().targets.empty())
      error("/blocks/" + name, "gives nothing: its last statement has to be a value");
  }

  void checkUses(const Expression &expression, const Names &variables, const std::string &at) {
    for (const std::string &name : namesOf(expression))
      if (!variables.count(name) && !isValue(name) && !isLayerFact(name) && !isWeight(name))
        error(at, "uses '" + name + "', which is no variable, value, fact per layer or weight of " + pointer_);
    Names calls;
    callsIn(expression, calls);
    for (const std::string &call : calls)
      if (!description_.blocks.count(call) && !knownFunctions().count(call) && !isScalarFunction(call))
        error(at, "calls '" + call + "', which is no block and no function");
  }

  bool isWeight(const std::string &name) const {
    return rules_.weights.count(name) || name.find('.') != std::string::npos;
  }
  static bool isScalarFunction(const std::string &name) { return applyFunction(name, {}).has_value(); }

  const ModelDescription &description_;
  const FormatRules &rules_;
  std::string pointer_;
  std::vector<std::string> problems_;
};

} // namespace

std::vector<std::string> problemsOf(const ModelDescription &description) {
  std::vector<std::string> problems;
  for (ConfigFormat format : {ConfigFormat::HuggingFace, ConfigFormat::Gguf}) {
    const FormatRules &rules = description.rules(format);
    if (rules.architectures.empty() && rules.modelTypes.empty() && rules.recognisedBy.empty())
      continue;
    for (const std::string &problem :
         Checker(description, rules, format == ConfigFormat::Gguf ? "/gguf" : "/config").run())
      problems.push_back(problem);
  }
  return problems;
}

} // namespace llmc
