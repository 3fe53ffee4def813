// Statements: tags and the text between them.
#include "runtime/template/Parser.h"
#include <initializer_list>

namespace llmc::jinja {
namespace {

class Parser : public ExpressionParser {
public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  StatusOr<std::shared_ptr<const Ast>> run() {
    auto ast = std::make_shared<Ast>();
    Status status = parseBody({}, "", ast->body);
    if (!status.ok())
      return Status::error("line " + std::to_string(current().line) + ": " + status.message());
    if (!unknown_.empty())
      return Status::error(unknown_.front());
    return std::shared_ptr<const Ast>(std::move(ast));
  }

private:
  using ParsedStatement = StatusOr<StatementPtr>;

  static StatementPtr make(Statement::Kind kind, int line) {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  // Up to a tag named in `ends`, whose name is the current token then; to the end of the template without `ends`.
  Status parseBody(std::initializer_list<const char *> ends, const std::string &opened, Body &body) {
    Nested nested(depth_);
    LLMC_RETURN_IF_ERROR(nested.check());
    int openedAt = current().line;
    for (;;) {
      int line = current().line;
      if (current().kind == TokenKind::End)
        return ends.size() == 0 ? Status()
                                : Status::error("the block '" + opened + "' of line " + std::to_string(openedAt) +
                                                " is not closed; expected 'end" + opened + "'");
      if (current().kind == TokenKind::Data) {
        body.push_back(make(Statement::Kind::Text, line));
        body.back()->text = take().text;
        continue;
      }
      bool isBlock = take().kind == TokenKind::BlockBegin;
      if (!isBlock) {
        body.push_back(make(Statement::Kind::Print, line));
        LLMC_ASSIGN_OR_RETURN(body.back()->value, parseTuple());
        if (current().kind != TokenKind::VariableEnd)
          return Status::error("expected '}}', got " + describe(current()));
        take();
        continue;
      }
      if (current().kind != TokenKind::Name)
        return Status::error("a tag needs a name, got " + describe(current()));
      for (const char *end : ends)
        if (isName(end))
          return Status();
      LLMC_ASSIGN_OR_RETURN(StatementPtr statement, parseStatement());
      body.push_back(std::move(statement));
      LLMC_RETURN_IF_ERROR(endTag());
    }
  }

  Status endTag() {
    if (current().kind != TokenKind::BlockEnd)
      return Status::error("expected '%}', got " + describe(current()));
    take();
    return Status();
  }

  // The end of an opening tag, the body, and the name of the closing tag (whose '%}' the caller of parseStatement
  // reads).
  Status parseBlock(std::initializer_list<const char *> ends, const std::string &opened, Body &body) {
    LLMC_RETURN_IF_ERROR(endTag());
    return parseBody(ends, opened, body);
  }
  Status parseWholeBlock(const char *end, const std::string &opened, Body &body) {
    LLMC_RETURN_IF_ERROR(parseBlock({end}, opened, body));
    take();
    return Status();
  }

  // Sets a member for the length of a block.
  template <typename T> class Within {
  public:
    Within(T &place, T value) : place_(place), before_(place) { place = value; }
    ~Within() { place_ = before_; }

  private:
    T &place_;
    T before_;
  };

  ParsedStatement parseStatement() {
    struct Tag {
      const char *name;
      ParsedStatement (Parser::*parse)(int line);
    };
    static const Tag tags[] = {
        {"autoescape", &Parser::parseAutoescape},
        {"block", &Parser::parseScope},
        {"break", &Parser::parseJump},
        {"call", &Parser::parseCall},
        {"continue", &Parser::parseJump},
        {"extends", &Parser::parseUnsupported},
        {"filter", &Parser::parseFilterBlock},
        {"for", &Parser::parseFor},
        {"from", &Parser::parseUnsupported},
        {"generation", &Parser::parseGeneration},
        {"if", &Parser::parseIf},
        {"import", &Parser::parseUnsupported},
        {"include", &Parser::parseUnsupported},
        {"macro", &Parser::parseMacro},
        {"print", &Parser::parsePrint},
        {"set", &Parser::parseSet},
        {"with", &Parser::parseWith},
    };
    for (const Tag &tag : tags)
      if (isName(tag.name))
        return (this->*tag.parse)(current().line);
    return Status::error("unknown tag '" + current().text + "'");
  }

  ParsedStatement parseIf(int line) {
    Within<bool> soft(soft_, true);
    StatementPtr root = make(Statement::Kind::If, line);
    Statement *branch = root.get();
    for (;;) {
      take(); // if, elif
      LLMC_ASSIGN_OR_RETURN(branch->value, parseTuple(Conditionals::Excluded));
      LLMC_RETURN_IF_ERROR(parseBlock({"elif", "else", "endif"}, "if", branch->body));
      if (!isName("elif"))
        break;
      root->branches.push_back(make(Statement::Kind::If, current().line));
      branch = root->branches.back().get();
    }
    if (skipName("else")) {
      LLMC_RETURN_IF_ERROR(parseBlock({"endif"}, "if", root->otherwise));
    }
    take(); // endif
    return root;
  }

  ParsedStatement parseFor(int line) {
    Within<bool> soft(soft_, false);
    StatementPtr node = make(Statement::Kind::For, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->target, parseTarget(/*withNamespace=*/false));
    if (!skipName("in"))
      return Status::error("expected 'in', got " + describe(current()));
    LLMC_ASSIGN_OR_RETURN(node->value, parseTuple(Conditionals::Excluded));
    if (skipName("if")) {
      LLMC_ASSIGN_OR_RETURN(node->condition, parseExpression());
    }
    node->recursive = skipName("recursive");
    {
      Within<int> loop(loops_, loops_ + 1);
      LLMC_RETURN_IF_ERROR(parseBlock({"else", "endfor"}, "for", node->body));
    }
    if (skipName("else")) {
      LLMC_RETURN_IF_ERROR(parseBlock({"endfor"}, "for", node->otherwise));
    }
    take();
    return node;
  }

  ParsedStatement parseJump(int line) {
    bool isBreak = take().text == "break";
    if (loops_ == 0)
      return Status::error(std::string(isBreak ? "'break'" : "'continue'") + " outside a loop");
    return make(isBreak ? Statement::Kind::Break : Statement::Kind::Continue, line);
  }

  ParsedStatement parseSet(int line) {
    StatementPtr node = make(Statement::Kind::Set, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->target, parseTarget(/*withNamespace=*/true));
    if (skipOperator("=")) {
      LLMC_ASSIGN_OR_RETURN(node->value, parseTuple());
      return node;
    }
    Within<bool> soft(soft_, false);
    node->kind = Statement::Kind::SetBlock;
    if (skipOperator("|")) {
      LLMC_ASSIGN_OR_RETURN(node->value, parseFilters(nullptr, /*first=*/true));
    }
    LLMC_RETURN_IF_ERROR(parseWholeBlock("endset", "set", node->body));
    return node;
  }

  StatusOr<Target> parseOneTarget(bool withNamespace) {
    Nested nested(depth_);
    LLMC_RETURN_IF_ERROR(nested.check());
    Target target;
    if (skipOperator("(")) {
      LLMC_ASSIGN_OR_RETURN(target, parseTarget(withNamespace));
      LLMC_RETURN_IF_ERROR(expectOperator(")"));
      return target;
    }
    if (current().kind != TokenKind::Name)
      return unexpected();
    target.name = take().text;
    for (const char *constant : {"true", "True", "false", "False", "none", "None"})
      if (target.name == constant)
        return Status::error("cannot assign to '" + target.name + "'");
    if (withNamespace && skipOperator(".")) {
      LLMC_ASSIGN_OR_RETURN(target.attribute, expectName());
    }
    return target;
  }

  StatusOr<Target> parseTarget(bool withNamespace) {
    LLMC_ASSIGN_OR_RETURN(Target first, parseOneTarget(withNamespace));
    if (!isOperator(","))
      return first;
    Target tuple;
    tuple.isTuple = true;
    tuple.parts.push_back(std::move(first));
    while (skipOperator(",")) {
      bool ends = isName("in") || isOperator("=") || isOperator(")") || current().kind == TokenKind::BlockEnd;
      if (ends)
        break;
      LLMC_ASSIGN_OR_RETURN(Target next, parseOneTarget(withNamespace));
      tuple.parts.push_back(std::move(next));
    }
    return tuple;
  }

  Status parseSignature(MacroSignature &macro) {
    LLMC_RETURN_IF_ERROR(expectOperator("("));
    while (!isOperator(")")) {
      if (!macro.parameters.empty()) {
        LLMC_RETURN_IF_ERROR(expectOperator(","));
      }
      LLMC_ASSIGN_OR_RETURN(std::string name, expectName());
      macro.parameters.push_back(std::move(name));
      ExpressionPtr value;
      if (skipOperator("=")) {
        LLMC_ASSIGN_OR_RETURN(value, parseExpression());
      } else if (!macro.defaults.empty() && macro.defaults.back()) {
        return Status::error("the parameter '" + macro.parameters.back() + "' without a default follows one with");
      }
      macro.defaults.push_back(std::move(value));
    }
    take();
    return Status();
  }

  Status parseMacroBody(Statement &node, const char *end, const std::string &opened) {
    Within<bool> soft(soft_, false);
    Within<int> loop(loops_, 0);
    macros_.push_back(&node.macro);
    Status status = parseWholeBlock(end, opened, node.body);
    macros_.pop_back();
    return status;
  }

  ParsedStatement parseMacro(int line) {
    StatementPtr node = make(Statement::Kind::Macro, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->macro.name, expectName());
    LLMC_RETURN_IF_ERROR(parseSignature(node->macro));
    LLMC_RETURN_IF_ERROR(parseMacroBody(*node, "endmacro", "macro"));
    return node;
  }

  ParsedStatement parseCall(int line) {
    StatementPtr node = make(Statement::Kind::CallBlock, line);
    take();
    node->macro.name = "caller";
    if (isOperator("(")) {
      LLMC_RETURN_IF_ERROR(parseSignature(node->macro));
    }
    LLMC_ASSIGN_OR_RETURN(node->value, parseExpression());
    if (node->value->kind != Expression::Kind::Call)
      return Status::error("expected a call");
    LLMC_RETURN_IF_ERROR(parseMacroBody(*node, "endcall", "call"));
    return node;
  }

  ParsedStatement parseFilterBlock(int line) {
    Within<bool> soft(soft_, false);
    StatementPtr node = make(Statement::Kind::FilterBlock, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->value, parseFilters(nullptr, /*first=*/true));
    LLMC_RETURN_IF_ERROR(parseWholeBlock("endfilter", "filter", node->body));
    return node;
  }

  ParsedStatement parseWith(int line) {
    Within<bool> soft(soft_, false);
    StatementPtr node = make(Statement::Kind::With, line);
    take();
    while (current().kind != TokenKind::BlockEnd) {
      if (!node->assignments.empty()) {
        LLMC_RETURN_IF_ERROR(expectOperator(","));
      }
      LLMC_ASSIGN_OR_RETURN(Target target, parseOneTarget(/*withNamespace=*/false));
      LLMC_RETURN_IF_ERROR(expectOperator("="));
      LLMC_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
      node->assignments.emplace_back(std::move(target), std::move(value));
    }
    LLMC_RETURN_IF_ERROR(parseWholeBlock("endwith", "with", node->body));
    return node;
  }

  ParsedStatement parseAutoescape(int line) {
    Within<bool> soft(soft_, false);
    StatementPtr node = make(Statement::Kind::Autoescape, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->value, parseExpression());
    LLMC_RETURN_IF_ERROR(parseWholeBlock("endautoescape", "autoescape", node->body));
    return node;
  }

  ParsedStatement parseGeneration(int line) {
    Within<bool> soft(soft_, false);
    Within<int> loop(loops_, 0);
    StatementPtr node = make(Statement::Kind::Generation, line);
    take();
    LLMC_RETURN_IF_ERROR(parseWholeBlock("endgeneration", "generation", node->body));
    return node;
  }

  ParsedStatement parseScope(int line) {
    Within<bool> soft(soft_, false);
    Within<int> loop(loops_, 0);
    StatementPtr node = make(Statement::Kind::Scope, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->text, expectName());
    skipName("scoped");
    skipName("required");
    LLMC_RETURN_IF_ERROR(parseBlock({"endblock"}, "block", node->body));
    take();
    skipName(node->text);
    return node;
  }

  ParsedStatement parsePrint(int line) {
    StatementPtr node = make(Statement::Kind::Print, line);
    take();
    LLMC_ASSIGN_OR_RETURN(node->value, parseTuple());
    return node;
  }

  // Reading another template fails when it is reached, as there is nowhere to read it from.
  ParsedStatement parseUnsupported(int line) {
    StatementPtr node = make(Statement::Kind::Unsupported, line);
    node->text = take().text;
    while (current().kind != TokenKind::BlockEnd && current().kind != TokenKind::End)
      take();
    return node;
  }

  int loops_ = 0;
};

} // namespace

StatusOr<std::shared_ptr<const Ast>> parseTemplate(std::string_view source) {
  LLMC_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

} // namespace llmc::jinja
