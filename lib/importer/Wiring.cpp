// Names are looked up from the innermost to the outermost: variables, facts of the layer, values, weights.
#include "lib/importer/Wiring.h"
#include "lib/importer/FunctionScope.h"
#include "lib/importer/Rope.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr int maxBlockDepth = 32;
constexpr size_t maxNodes = 1 << 16;      // of one function
constexpr size_t maxStatements = 1 << 16; // that one function takes

using Variables = std::map<std::string, Operand>;
using ValueKind = GraphValue::Kind;

class Wiring {
public:
  Wiring(const ModelDescription &description, ValueReader &values, const LayerFacts &facts, ModelSpec &spec)
      : description_(description), values_(values), facts_(facts), spec_(spec), catalog_(values, spec),
        lookup_([this](const std::string &name) { return scalarOf(name); }) {}

  // Where the wiring asked for a fact adds nothing to what is wrong with the config.
  Status run(int64_t layers) {
    Status status = wire(layers);
    return !status.ok() && !configStatus_.ok() ? configStatus_ : status;
  }

private:
  Status wire(int64_t layers) {
    FunctionScope step(catalog_, lookup_, -1);
    step.makeRopeTable = [&](const std::string &name, int64_t every) { return ropeTable(step, name, every); };
    step.graph.name = "step";
    step.graph.inputs = {step.batch()};
    scope_ = step_ = &step;
    LLMC_ASSIGN_OR_RETURN(Operand begun, callEntry("begin", {}, &globals_));
    LLMC_ASSIGN_OR_RETURN(std::vector<int> carried, rowsOf(begun, "begin"));
    record(carried);
    for (int64_t i = 0; i < layers; ++i) {
      StatusOr<std::vector<int>> next = wireLayer(i, carried);
      if (!next.ok())
        return next.status().inside("layer " + std::to_string(i));
      carried = std::move(*next);
      record(carried);
    }
    layer_ = -1;
    std::vector<Operand> arguments;
    for (int each : carried)
      arguments.push_back(Operand::ofRows(each));
    LLMC_ASSIGN_OR_RETURN(Operand finished, callEntry("finish", std::move(arguments)));
    LLMC_ASSIGN_OR_RETURN(step.graph.results, rowsOf(finished, "finish"));
    const GraphValue &logits = step.value(step.graph.results.front());
    if (step.graph.results.size() != 1 || logits.heads != 0 || logits.channels != spec_.vocabulary)
      return Status::error("block 'finish' gives " + std::to_string(logits.channels) +
                           " channels, expected the vocabulary of " + std::to_string(spec_.vocabulary));
    spec_.graph.step = std::move(step.graph);
    return {};
  }

  //===-- layers
  //----------------------------------------------------------------------------------------------------===//

  StatusOr<std::vector<int>> wireLayer(int64_t layer, const std::vector<int> &carried) {
    layer_ = layer;
    statements_ = 0;
    FunctionScope function(catalog_, lookup_, layer);
    function.step = step_;
    function.states = &states_;
    scope_ = &function;
    std::vector<Operand> arguments;
    for (int each : carried)
      arguments.push_back(Operand::ofRows(function.parameter(step_->value(each), each)));
    StatusOr<Operand> result = callEntry("layer", std::move(arguments));
    StatusOr<std::string> kind = result.ok() ? kindName() : StatusOr<std::string>(result.status());
    scope_ = step_;
    if (!kind.ok())
      return kind.status();
    LLMC_ASSIGN_OR_RETURN(function.graph.results, rowsOf(*result, "layer"));
    copyParameters(function);
    function.batch();
    function.orderInputs();
    return callLayer(function, *kind, layer);
  }

  // A stream that a layer only hands on becomes a value of its own: a function returns no argument of its own.
  static void copyParameters(FunctionScope &function) {
    for (int &result : function.graph.results)
      if (function.outer.count(result)) {
        GraphNode copy;
        copy.op = copy.name = "scale";
        copy.operands = {result};
        copy.attributes["factor"] = 1.0;
        result =
            function.emit(std::move(copy), {{function.value(result).heads, function.value(result).channels}}).front();
      }
  }

  StatusOr<std::string> kindName() {
    LLMC_ASSIGN_OR_RETURN(Operand name, callEntry("kind", {}));
    if (name.kind != Operand::Kind::Scalar || name.scalar.kind != Scalar::Kind::Word)
      return Status::error("block 'kind' gives no word");
    return name.scalar.word;
  }

  // The call of a layer in the step; the function itself is kept when no earlier layer has an equal one.
  std::vector<int> callLayer(FunctionScope &function, const std::string &name, int64_t layer) {
    auto [known, isNew] = kinds_.emplace(signatureOf(function.graph), spec_.graph.kinds.size());
    int kind = static_cast<int>(known->second);
    if (isNew) {
      int earlier = sameName_[name]++;
      function.graph.name = earlier == 0 ? name : name + "_" + std::to_string(earlier + 1);
      spec_.graph.kinds.push_back(function.graph);
    }
    spec_.graph.kindOfLayer.push_back(kind);
    GraphNode call;
    call.op = "call";
    call.name = "layers." + std::to_string(layer);
    call.attributes["kind"] = static_cast<int64_t>(kind);
    for (int input : function.graph.inputs)
      call.operands.push_back(outerValue(function, input));
    std::vector<RowShape> shapes;
    for (int result : function.graph.results)
      shapes.push_back({function.value(result).heads, function.value(result).channels});
    return step_->emit(std::move(call), shapes);
  }

  int outerValue(FunctionScope &function, int input) {
    const GraphValue &value = function.value(input);
    if (value.kind == ValueKind::Batch)
      return step_->batch();
    const FunctionScope::Outer &outer = function.outer.at(input);
    if (value.kind == ValueKind::Rows)
      return outer.rows;
    GraphValue named = value;
    named.name = outer.name;
    return step_->named(std::move(named), outer.name);
  }

  // What a debugger sees of the stream: the first of what layers carry.
  void record(const std::vector<int> &carried) {
    CallArguments arguments;
    arguments.positional = {Operand::ofRows(carried.front())};
    (void)callGraphOp(*step_, "record", arguments);
  }

  StatusOr<int> ropeTable(FunctionScope &step, const std::string &name, int64_t every) {
    if (auto known = tables_.find({name, every}); known != tables_.end())
      return known->second;
    auto rule = values_.rules().ropes.find(name);
    if (rule == values_.rules().ropes.end())
      return Status::error("the description has no rope '" + name + "'");
    StatusOr<RopeSpec> rope = resolveRope(rule->second, name, values_, spec_.ignorableTensors);
    if (!rope.ok())
      return configStatus_ = rope.status();
    int64_t channels = 2 * static_cast<int64_t>(rope->frequencies.size());
    spec_.ropes[name] = std::move(*rope);
    GraphNode node;
    node.op = "rope_table";
    node.name = "rope";
    node.operands = {step.batch()};
    node.attributes["rope"] = name;
    if (every > 1)
      node.attributes["step"] = every;
    return tables_[{name, every}] = step.emit(std::move(node), {{0, channels}}).front();
  }

  //===-- blocks
  //----------------------------------------------------------------------------------------------------===//

  StatusOr<Operand> callEntry(const std::string &name, std::vector<Operand> arguments, Variables *keep = nullptr) {
    CallArguments call;
    call.positional = std::move(arguments);
    return callBlock(name, call, keep);
  }

  StatusOr<Operand> callBlock(const std::string &name, const CallArguments &call, Variables *keep) {
    auto found = description_.blocks.find(name);
    if (found == description_.blocks.end())
      return Status::error("the description has no block '" + name + "'");
    const Block &block = found->second;
    if (++depth_ > maxBlockDepth)
      return Status::error("block '" + name + "' is nested deeper than " + std::to_string(maxBlockDepth));
    Variables local;
    LLMC_RETURN_IF_ERROR(bindParameters(name, block, call, local));
    Variables *caller = variables_;
    variables_ = &local;
    StatusOr<Operand> result = runStatements(name, block);
    variables_ = caller;
    --depth_;
    if (result.ok())
      noteVariable(name, *result);
    if (keep)
      *keep = std::move(local);
    return result;
  }

  static Status bindParameters(const std::string &name, const Block &block, const CallArguments &call,
                               Variables &local) {
    if (call.positional.size() > block.parameters.size())
      return Status::error("block '" + name + "' takes " + std::to_string(block.parameters.size()) +
                           " arguments, not " + std::to_string(call.positional.size()));
    for (size_t i = 0; i < call.positional.size(); ++i)
      local[block.parameters[i]] = call.positional[i];
    for (const auto &[parameter, operand] : call.named) {
      bool known = std::find(block.parameters.begin(), block.parameters.end(), parameter) != block.parameters.end();
      if (!known || !local.emplace(parameter, operand).second)
        return Status::error("block '" + name + "' " +
                             (known ? "is given '" + parameter + "' twice" : "has no '" + parameter + "'"));
    }
    for (const std::string &parameter : block.parameters)
      if (!local.count(parameter))
        return Status::error("block '" + name + "' is called without '" + parameter + "'");
    return {};
  }

  StatusOr<Operand> runStatements(const std::string &name, const Block &block) {
    std::optional<Operand> result;
    for (const Statement &statement : block.statements) {
      if (++statements_ > maxStatements)
        return Status::error("block '" + name + "' takes more than " + std::to_string(maxStatements) + " statements");
      StatusOr<std::optional<Operand>> value = runStatement(name, statement);
      if (!value.ok())
        return value.status().inside(name + ": " + statement.text);
      if (*value)
        result = std::move(**value);
      if (scope_->graph.nodes.size() > maxNodes)
        return Status::error("block '" + name + "' makes more than " + std::to_string(maxNodes) + " operators");
    }
    if (!result)
      return Status::error("block '" + name + "' gives nothing: its last statement has to be a value");
    return *result;
  }

  StatusOr<std::optional<Operand>> runStatement(const std::string &block, const Statement &statement) {
    if (statement.condition) {
      LLMC_ASSIGN_OR_RETURN(Operand condition, evaluate(*statement.condition));
      if (condition.kind != Operand::Kind::Scalar)
        return Status::error("the condition is no number or word");
      if (!condition.scalar.isTrue())
        return std::optional<Operand>();
    }
    std::vector<Operand> results;
    for (const Expression &expression : statement.values) {
      LLMC_ASSIGN_OR_RETURN(Operand value, evaluate(expression));
      results.push_back(std::move(value));
    }
    if (statement.targets.empty()) {
      if (results.size() == 1)
        return std::optional<Operand>(std::move(results.front()));
      Operand several;
      several.kind = Operand::Kind::Several;
      several.several = std::move(results);
      return std::optional<Operand>(std::move(several));
    }
    Operand &value = results.front();
    if (statement.targets.size() == 1) {
      noteVariable(block + "." + statement.targets.front(), value);
      (*variables_)[statement.targets.front()] = std::move(value);
      return std::optional<Operand>();
    }
    if (value.kind != Operand::Kind::Several || value.several.size() != statement.targets.size())
      return Status::error("there are " + std::to_string(statement.targets.size()) + " names for " +
                           std::to_string(value.kind == Operand::Kind::Several ? value.several.size() : 1) +
                           " results");
    for (size_t i = 0; i < statement.targets.size(); ++i) {
      noteVariable(block + "." + statement.targets[i], value.several[i]);
      (*variables_)[statement.targets[i]] = value.several[i];
    }
    return std::optional<Operand>();
  }

  void noteVariable(const std::string &name, const Operand &value) {
    if (value.kind == Operand::Kind::Rows)
      scope_->graph.variables.emplace_back(name, value.rows);
  }

  static StatusOr<std::vector<int>> rowsOf(const Operand &operand, const std::string &block) {
    std::vector<int> rows;
    for (const Operand &each :
         operand.kind == Operand::Kind::Several ? operand.several : std::vector<Operand>{operand}) {
      if (each.kind != Operand::Kind::Rows)
        return Status::error("block '" + block + "' gives something that is no activation");
      rows.push_back(each.rows);
    }
    return rows;
  }

  //===-- expressions
  //-----------------------------------------------------------------------------------------------===//

  StatusOr<Operand> evaluate(const Expression &expression) {
    using Kind = Expression::Kind;
    switch (expression.kind) {
    case Kind::Number:
      return Operand::of(Scalar::of(expression.number));
    case Kind::Word:
      return Operand::of(Scalar::of(expression.text));
    case Kind::Name:
      return named(expression.text);
    case Kind::Call:
      return call(expression);
    case Kind::Operator:
      break;
    }
    std::vector<Operand> operands;
    bool anyRows = false;
    for (const Expression &operand : expression.operands) {
      LLMC_ASSIGN_OR_RETURN(Operand value, evaluate(operand));
      anyRows |= value.kind == Operand::Kind::Rows;
      operands.push_back(std::move(value));
      // `and` and `or` compute only what they need.
      if (operands.size() == 1 && operands[0].kind == Operand::Kind::Scalar &&
          (expression.text == "and" || expression.text == "or") &&
          operands[0].scalar.isTrue() == (expression.text == "or"))
        return Operand::of(Scalar::of(operands[0].scalar.isTrue() ? 1.0 : 0.0));
    }
    if (anyRows)
      return applyRowOperator(*scope_, expression.text, operands);
    std::vector<Scalar> scalars;
    for (const Operand &operand : operands) {
      if (operand.kind != Operand::Kind::Scalar)
        return Status::error("operator " + expression.text + " takes numbers, words and activations");
      scalars.push_back(operand.scalar);
    }
    if (expression.text == "and" || expression.text == "or")
      return Operand::of(Scalar::of(scalars[1].isTrue() ? 1.0 : 0.0));
    LLMC_ASSIGN_OR_RETURN(Scalar result, applyOperator(expression.text, scalars));
    return Operand::of(std::move(result));
  }

  // Variables of the block, those of `begin`, facts of the layer, values of the description, weights.
  StatusOr<Operand> named(const std::string &name) {
    if (variables_)
      if (auto local = variables_->find(name); local != variables_->end())
        return local->second;
    if (auto global = globals_.find(name); global != globals_.end()) {
      if (scope_ == step_ || global->second.kind != Operand::Kind::Rows)
        return global->second;
      return Operand::ofRows(scope_->capture(global->second.rows));
    }
    StatusOr<Scalar> scalar = scalarOf(name);
    if (scalar.ok())
      return Operand::of(std::move(*scalar));
    if (catalog_.knows(name))
      return Operand::ofWeight(name);
    // A name with dots is a weight's.
    return name.find('.') == std::string::npos ? scalar.status() : catalog_.published(name).status();
  }

  StatusOr<Scalar> scalarOf(const std::string &name) {
    if (variables_)
      if (auto local = variables_->find(name);
          local != variables_->end() && local->second.kind == Operand::Kind::Scalar)
        return local->second.scalar;
    if (name == "layer" && layer_ >= 0)
      return Scalar::of(static_cast<double>(layer_));
    if (auto fact = facts_.find(name); fact != facts_.end() && layer_ >= 0)
      return fact->second[static_cast<size_t>(layer_)];
    StatusOr<Scalar> value = values_.scalar(name);
    if (!value.ok() && values_.rules().values.count(name))
      configStatus_ = value.status();
    return value;
  }

  StatusOr<Operand> call(const Expression &expression) {
    if (expression.text == "if" && expression.operands.size() == 3 && expression.named.empty()) {
      LLMC_ASSIGN_OR_RETURN(Operand condition, evaluate(expression.operands[0]));
      if (condition.kind != Operand::Kind::Scalar)
        return Status::error("the condition of if() is no number or word");
      return evaluate(expression.operands[condition.scalar.isTrue() ? 1 : 2]);
    }
    CallArguments arguments;
    std::vector<Scalar> scalars;
    for (const Expression &operand : expression.operands) {
      LLMC_ASSIGN_OR_RETURN(Operand value, evaluate(operand));
      if (value.kind == Operand::Kind::Scalar)
        scalars.push_back(value.scalar);
      arguments.positional.push_back(std::move(value));
    }
    for (size_t i = 0; i < expression.named.size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(Operand operand, evaluate(expression.named[i]));
      arguments.named.emplace_back(expression.keys[i], std::move(operand));
    }
    if (description_.blocks.count(expression.text))
      return callBlock(expression.text, arguments, nullptr);
    if (std::optional<StatusOr<Operand>> result = callGraphOp(*scope_, expression.text, arguments))
      return *result;
    if (scalars.size() == arguments.positional.size() && arguments.named.empty())
      if (std::optional<StatusOr<Scalar>> result = applyFunction(expression.text, scalars)) {
        if (!result->ok())
          return result->status();
        return Operand::of(**result);
      }
    return Status::error("no block and no function is called '" + expression.text + "'");
  }

  const ModelDescription &description_;
  ValueReader &values_;
  const LayerFacts &facts_;
  ModelSpec &spec_;
  WeightCatalog catalog_;
  ScalarLookup lookup_;
  FunctionScope *scope_ = nullptr, *step_ = nullptr;
  Variables globals_;
  Variables *variables_ = nullptr;
  int64_t layer_ = -1;
  int depth_ = 0;
  size_t statements_ = 0;
  Status configStatus_; // what the config fails with, when that is why there is no graph
  std::map<std::pair<std::string, int64_t>, int> tables_; // by the rope's name and the step of its positions
  std::map<int64_t, std::map<std::string, StateShape>> states_;
  std::map<std::string, size_t> kinds_;
  std::map<std::string, int> sameName_;
};

} // namespace

Status wireModel(const ModelDescription &description, ValueReader &values, const LayerFacts &facts, ModelSpec &spec) {
  LLMC_ASSIGN_OR_RETURN(int64_t layers, values.integer("layers"));
  return Wiring(description, values, facts, spec).run(layers);
}

} // namespace llmc
