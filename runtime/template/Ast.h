// The parsed template. Trees nest at most maxSyntaxDepth deep: chains of operators are one node with many operands.
#pragma once
#include "runtime/template/Operations.h"
#include <memory>
#include <string>
#include <vector>

namespace llmc::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keyword;
  ExpressionPtr listed; // *arguments
  ExpressionPtr mapped; // **arguments
};

enum class CompareOp : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct Expression {
  enum class Kind : uint8_t {
    Constant,
    Name,      // name
    List,      // operands
    Tuple,     // operands
    Dict,      // operands: key, value, key, value ...
    Attribute, // operands[0] . name
    Item,      // operands[0] [ operands[1] ]
    Slice,     // operands[0] [ operands[1] : operands[2] : operands[3] ], any of which may be null
    Call,      // operands[0] ( arguments )
    Filter,    // operands[0] | name ( arguments ); operands[0] is null for the text of a block
    Test,      // operands[0] is name ( arguments )
    Not,
    Negate,
    Plus,
    And,
    Or,
    Arithmetic,  // operands[0] operators[0] operands[1] operators[1] ..., from the left
    Concat,      // ~
    Compare,     // operands[0] comparisons[0] operands[1] ...
    Conditional, // operands[0] if operands[1] else operands[2], which may be null
  };
  Kind kind = Kind::Constant;
  int line = 1;
  int depth = 1;
  Value constant;
  std::string name;
  std::vector<ExpressionPtr> operands;
  std::vector<BinaryOp> operators;
  std::vector<CompareOp> comparisons;
  CallArguments arguments;
};

// What "set" and "for" assign to: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
  bool isTuple = false;
};

struct MacroSignature {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults; // one per parameter, null where there is none
  bool usesCaller = false, usesVarargs = false, usesKwargs = false;
};

struct Statement {
  enum class Kind : uint8_t {
    Text,        // text
    Print,       // value
    If,          // value, body, otherwise
    For,         // target in value if condition: body else otherwise
    Set,         // target = value
    SetBlock,    // target = body, filtered by value
    Macro,       // macro, body
    CallBlock,   // value is the call; macro and body are its caller
    FilterBlock, // value filters body
    With,        // assignments, body
    Autoescape,  // value, body
    Generation,  // body
    Scope,       // body of a block tag
    Break,
    Continue,
    Unsupported, // text: a tag that names another template
  };
  Kind kind = Kind::Text;
  int line = 1;
  std::string text;
  ExpressionPtr value, condition;
  Target target;
  Body body, otherwise;
  // If: the elif branches, each an If without branches of its own.
  Body branches;
  bool recursive = false;
  MacroSignature macro;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
};

struct Ast {
  Body body;
};

} // namespace llmc::jinja
