// A recursive descent evaluator; expressions come from model descriptions, nesting is bounded all the same.
#include "lib/importer/Expression.h"
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace llmc {
namespace {

constexpr int maxNesting = 32;

class Parser {
public:
  Parser(std::string_view text, const NameLookup &lookup) : text_(text), lookup_(lookup) {}

  StatusOr<double> run() {
    LLMC_ASSIGN_OR_RETURN(double value, comparison());
    if (peek() != '\0')
      return fail("unexpected text");
    return value;
  }

private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c)
      return false;
    ++at_;
    return true;
  }
  Status fail(const std::string &why) const {
    return Status::error("expression '" + std::string(text_) + "': " + why + " at column " + std::to_string(at_ + 1));
  }

  StatusOr<double> comparison() {
    LLMC_ASSIGN_OR_RETURN(double left, sum());
    if (peek() != '=')
      return left;
    if (text_.substr(at_, 2) != "==")
      return fail("expected '=='");
    at_ += 2;
    LLMC_ASSIGN_OR_RETURN(double right, sum());
    return left == right ? 1.0 : 0.0;
  }

  StatusOr<double> sum() {
    LLMC_ASSIGN_OR_RETURN(double value, product());
    while (true) {
      if (take('+')) {
        LLMC_ASSIGN_OR_RETURN(double right, product());
        value += right;
      } else if (take('-')) {
        LLMC_ASSIGN_OR_RETURN(double right, product());
        value -= right;
      } else {
        return value;
      }
    }
  }

  StatusOr<double> product() {
    LLMC_ASSIGN_OR_RETURN(double value, primary());
    while (true) {
      if (take('*')) {
        LLMC_ASSIGN_OR_RETURN(double right, primary());
        value *= right;
      } else if (take('/')) {
        LLMC_ASSIGN_OR_RETURN(double right, primary());
        value /= right;
      } else {
        return value;
      }
    }
  }

  StatusOr<double> primary() {
    if (++nesting_ > maxNesting)
      return fail("nested deeper than " + std::to_string(maxNesting));
    StatusOr<double> value = primaryUnchecked();
    --nesting_;
    return value;
  }

  StatusOr<double> primaryUnchecked() {
    char c = peek();
    if (take('(')) {
      LLMC_ASSIGN_OR_RETURN(double value, comparison());
      if (!take(')'))
        return fail("expected ')'");
      return value;
    }
    if (take('-')) {
      LLMC_ASSIGN_OR_RETURN(double value, primary());
      return -value;
    }
    if (std::isdigit(static_cast<unsigned char>(c)))
      return number();
    if (std::isalpha(static_cast<unsigned char>(c)))
      return nameOrCall();
    return fail("expected a number or a name");
  }

  StatusOr<double> number() {
    size_t begin = at_;
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      ++at_;
    return std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr);
  }

  StatusOr<double> nameOrCall() {
    size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    std::string name(text_.substr(begin, at_ - begin));
    if (!take('('))
      return lookup_(name);
    std::vector<double> arguments;
    do {
      LLMC_ASSIGN_OR_RETURN(double argument, comparison());
      arguments.push_back(argument);
    } while (take(','));
    if (!take(')'))
      return fail("expected ')'");
    if (name == "sqrt" && arguments.size() == 1)
      return std::sqrt(arguments[0]);
    if (name == "if" && arguments.size() == 3)
      return arguments[0] != 0.0 ? arguments[1] : arguments[2];
    return fail("unknown function '" + name + "' of " + std::to_string(arguments.size()) +
                " (known = sqrt(x), if(c, a, b))");
  }

  std::string_view text_;
  const NameLookup &lookup_;
  size_t at_ = 0;
  int nesting_ = 0;
};

} // namespace

StatusOr<double> evaluateExpression(std::string_view text, const NameLookup &lookup) {
  LLMC_ASSIGN_OR_RETURN(double value, Parser(text, lookup).run());
  if (!std::isfinite(value))
    return Status::error("expression '" + std::string(text) + "' has no finite value");
  return value;
}

StatusOr<std::vector<std::string>> namesInExpression(std::string_view text) {
  std::vector<std::string> names;
  NameLookup collect = [&](const std::string &name) -> StatusOr<double> {
    names.push_back(name);
    return 1.0;
  };
  LLMC_ASSIGN_OR_RETURN([[maybe_unused]] double value, Parser(text, collect).run());
  return names;
}

std::optional<std::pair<std::string, std::string>> quotientOfNames(std::string_view text) {
  size_t slash = text.find('/');
  StatusOr<std::vector<std::string>> names = namesInExpression(text);
  if (!names.ok() || names->size() != 2 || slash == std::string_view::npos)
    return std::nullopt;
  if (std::string(text) != (*names)[0] + " / " + (*names)[1])
    return std::nullopt;
  return std::pair((*names)[0], (*names)[1]);
}

} // namespace llmc
