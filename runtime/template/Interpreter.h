// Walks the tree. One Interpreter renders one template once.
#pragma once
#include "runtime/template/Ast.h"
#include "runtime/template/Runtime.h"

namespace llmc::jinja {

// Names of one block, loop turn or macro call; what is not found here is looked up outside.
struct Scope : Clearable {
  explicit Scope(std::shared_ptr<Scope> outside) : parent(std::move(outside)) {}
  std::shared_ptr<Scope> parent;
  std::unordered_map<std::string, Value> names;
  void clear() override { names.clear(); }
};

struct Macro : Object {
  const Statement *definition = nullptr;
  std::shared_ptr<Scope> scope;
};

class Interpreter {
public:
  Interpreter(const Ast &ast, const RenderOptions &options) : ast_(ast), options_(options), runtime_(options) {}
  // Failures of the template itself carry "line N: "; that of raise_exception is the bare message.
  StatusOr<std::string> render(const Json &variables);
  bool raised() const { return runtime_.raised; }

private:
  enum class Flow { Next, Break, Continue };
  using FlowOr = StatusOr<Flow>;
  using ScopePtr = std::shared_ptr<Scope>;

  // Counts one nested evaluation for as long as it lives.
  class Nested {
  public:
    explicit Nested(int &depth) : depth_(depth) { ++depth_; }
    ~Nested() { --depth_; }
    Status check() const;

  private:
    int &depth_;
  };

  FlowOr run(const Body &body, const ScopePtr &scope);
  FlowOr execute(const Statement &statement, const ScopePtr &scope);
  FlowOr runIf(const Statement &statement, const ScopePtr &scope);
  FlowOr runFor(const Statement &statement, const ScopePtr &scope);
  FlowOr runLoop(const Statement &statement, std::vector<Value> items, const ScopePtr &scope, int level);
  FlowOr runWith(const Statement &statement, const ScopePtr &scope);
  FlowOr runGeneration(const Statement &statement, const ScopePtr &scope);
  FlowOr runAutoescape(const Statement &statement, const ScopePtr &scope);
  Status runSetBlock(const Statement &statement, const ScopePtr &scope);
  Status runCallBlock(const Statement &statement, const ScopePtr &scope);
  StatusOr<std::vector<Value>> filteredItems(const Statement &statement, std::vector<Value> items,
                                             const ScopePtr &scope);
  Status assign(const Target &target, const Value &value, const ScopePtr &scope);
  Status write(const Value &value);
  Status append(std::string_view text);
  // What `body` writes, as a value.
  StatusOr<Value> capture(const Body &body, const ScopePtr &scope);
  Value captured(std::string text) const;
  Value makeMacro(const Statement &definition, const ScopePtr &scope);

  ValueOr evaluate(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateNode(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateItems(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateDict(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateSlice(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateFilter(const Expression &e, const ScopePtr &scope, const Value *blockText);
  ValueOr evaluateLogic(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateArithmetic(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateConcat(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateCompare(const Expression &e, const ScopePtr &scope);
  ValueOr evaluateConditional(const Expression &e, const ScopePtr &scope);
  StatusOr<bool> compare(CompareOp op, const Value &a, const Value &b);
  ValueOr lookUp(const std::string &name, const ScopePtr &scope) const;
  StatusOr<Arguments> evaluateArguments(const CallArguments &arguments, const ScopePtr &scope);
  ValueOr call(const Value &callee, const Arguments &arguments);
  ValueOr callMacro(const Macro &macro, const Arguments &arguments);
  ValueOr callLoop(const Loop &loop, const Arguments &arguments);
  Status bindParameters(const Macro &macro, const Arguments &arguments, const ScopePtr &scope);

  const Ast &ast_;
  const RenderOptions &options_;
  Runtime runtime_;
  std::string *out_ = nullptr;
  std::string output_;
  int line_ = 1;
  int depth_ = 0;
  int calls_ = 0;
};

} // namespace llmc::jinja
