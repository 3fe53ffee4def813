// The lexer of Jinja with trim_blocks and lstrip_blocks on, which is how chat templates are written.
#include "runtime/template/Lexer.h"
#include "runtime/template/Unicode.h"
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace llmc::jinja {
namespace {

std::string normalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

bool isDigitByte(char c) { return c >= '0' && c <= '9'; }
int hexDigit(char c) {
  return isDigitByte(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : storage_(normalizeLines(source)), source_(storage_) {}

  StatusOr<std::vector<Token>> run() {
    Status status = root();
    if (!status.ok())
      return Status::error("line " + std::to_string(line_) + ": " + status.message());
    push(TokenKind::End);
    return std::move(tokens_);
  }

private:
  enum class Tag { Comment, Raw, Block, Variable };

  void push(TokenKind kind, std::string text = "") {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }
  bool at(std::string_view text) const { return source_.substr(position_, text.size()) == text; }
  void advance(size_t to) {
    for (size_t i = position_; i < to; ++i)
      line_ += source_[i] == '\n' ? 1 : 0;
    // A tag that follows on a fresh line may be stripped of its indentation.
    if (to > position_)
      lineStarting_ = source_[to - 1] == '\n';
    position_ = to;
  }
  size_t skipSpace(size_t from) const {
    std::string_view rest = source_.substr(from);
    return from + (rest.size() - trimSpace(rest, true, false).size());
  }

  Status root() {
    while (position_ < source_.size()) {
      size_t open = source_.find('{', position_);
      while (open != std::string_view::npos &&
             (open + 1 >= source_.size() || std::strchr("{%#", source_[open + 1]) == nullptr))
        open = source_.find('{', open + 1);
      if (open == std::string_view::npos) {
        pushData(source_.substr(position_));
        advance(source_.size());
        break;
      }
      std::string_view text = source_.substr(position_, open - position_);
      LLMC_RETURN_IF_ERROR(tag(text, open));
    }
    return Status();
  }

  void pushData(std::string_view text) {
    if (!text.empty())
      push(TokenKind::Data, std::string(text));
  }

  // The text before a tag, as white-space control leaves it.
  std::string_view strip(std::string_view text, char sign, Tag tag) const {
    if (sign == '-')
      return trimSpace(text, false, true);
    if (sign == '+' || tag == Tag::Variable)
      return text;
    size_t lineStart = text.rfind('\n') + 1; // npos + 1 is 0
    bool startsLine = lineStart > 0 || lineStarting_;
    return startsLine && trimSpace(text.substr(lineStart), true, false).empty() ? text.substr(0, lineStart) : text;
  }

  Status tag(std::string_view text, size_t open) {
    char mark = source_[open + 1];
    size_t after = open + 2;
    char sign = after < source_.size() && (source_[after] == '-' || source_[after] == '+') ? source_[after] : 0;
    // For a variable, "+" is an operator, not a sign; Jinja reads it as a sign that does nothing.
    after += sign != 0 ? 1 : 0;
    size_t rawEnd = mark == '%' ? matchWordTag(after, "raw") : std::string_view::npos;
    Tag tag = mark == '#'                        ? Tag::Comment
              : mark == '{'                      ? Tag::Variable
              : rawEnd != std::string_view::npos ? Tag::Raw
                                                 : Tag::Block;
    pushData(strip(text, sign, tag));
    advance(tag == Tag::Raw ? rawEnd : after);
    if (tag == Tag::Comment)
      return comment();
    if (tag == Tag::Raw)
      return raw();
    push(tag == Tag::Block ? TokenKind::BlockBegin : TokenKind::VariableBegin);
    return inside(tag);
  }

  // Where a tag with nothing but `word` ends; npos when this is another tag. `{% raw %}` keeps the newline after it.
  size_t matchWordTag(size_t from, std::string_view word) const {
    size_t i = skipSpace(from);
    if (source_.substr(i, word.size()) != word)
      return std::string_view::npos;
    i = skipSpace(i + word.size());
    if (source_.substr(i, 3) == "-%}")
      return skipSpace(i + 3);
    if (word == "endraw" && source_.substr(i, 3) == "+%}")
      return i + 3;
    if (source_.substr(i, 2) != "%}")
      return std::string_view::npos;
    return word == "endraw" && source_.substr(i + 2, 1) == "\n" ? i + 3 : i + 2;
  }

  Status comment() {
    size_t close = source_.find("#}", position_);
    if (close == std::string_view::npos)
      return Status::error("missing end of comment tag");
    char sign = close > position_ ? source_[close - 1] : 0;
    size_t end = close + 2;
    if (sign == '-')
      end = skipSpace(end);
    else if (sign != '+' && source_.substr(end, 1) == "\n")
      ++end;
    advance(end);
    return Status();
  }

  Status raw() {
    for (size_t open = source_.find("{%", position_); open != std::string_view::npos;
         open = source_.find("{%", open + 2)) {
      size_t after = open + 2;
      char sign = after < source_.size() && (source_[after] == '-' || source_[after] == '+') ? source_[after] : 0;
      size_t end = matchWordTag(after + (sign != 0 ? 1 : 0), "endraw");
      if (end == std::string_view::npos)
        continue;
      pushData(strip(source_.substr(position_, open - position_), sign, Tag::Raw));
      advance(end);
      return Status();
    }
    return Status::error("missing end of raw directive");
  }

  // Ends the tag here if its closing mark stands here.
  bool close(Tag tag) {
    std::string_view mark = tag == Tag::Block ? "%}" : "}}";
    char sign = source_[position_] == '-' || (source_[position_] == '+' && tag == Tag::Block) ? source_[position_] : 0;
    size_t start = position_ + (sign != 0 ? 1 : 0);
    if (source_.substr(start, 2) != mark)
      return false;
    push(tag == Tag::Block ? TokenKind::BlockEnd : TokenKind::VariableEnd);
    size_t end = start + 2;
    if (sign == '-')
      end = skipSpace(end);
    else if (sign == 0 && tag == Tag::Block && source_.substr(end, 1) == "\n")
      ++end;
    advance(end);
    return true;
  }

  Status inside(Tag tag) {
    open_.clear();
    while (position_ < source_.size()) {
      if (open_.empty() && close(tag))
        return Status();
      size_t spaceEnd = skipSpace(position_);
      if (spaceEnd > position_) {
        advance(spaceEnd);
        continue;
      }
      LLMC_RETURN_IF_ERROR(token());
    }
    return Status(); // The parser says what is missing.
  }

  Status token() {
    char c = source_[position_];
    if (isDigitByte(c))
      return number();
    if (c == '"' || c == '\'')
      return string();
    size_t end = position_;
    for (size_t i = end; i < source_.size() && isNameCharacter(nextCodePoint(source_, i));)
      end = i;
    if (end > position_) {
      push(TokenKind::Name, std::string(source_.substr(position_, end - position_)));
      advance(end);
      return Status();
    }
    return punctuation();
  }

  Status punctuation() {
    for (std::string_view op : {"//", "**", "==", "!=", ">=", "<="})
      if (at(op)) {
        push(TokenKind::Operator, std::string(op));
        advance(position_ + 2);
        return Status();
      }
    char c = source_[position_];
    if (c == '\0' || std::strchr("+-/*%~[](){}><=.:|,;", c) == nullptr) {
      size_t end = position_;
      nextCodePoint(source_, end);
      return Status::error("unexpected character '" + std::string(source_.substr(position_, end - position_)) + "'");
    }
    if (c == '(' || c == '[' || c == '{')
      open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_.empty())
        return Status::error(std::string("unexpected '") + c + "'");
      if (open_.back() != c)
        return Status::error(std::string("unexpected '") + c + "', expected '" + open_.back() + "'");
      open_.pop_back();
    }
    push(TokenKind::Operator, std::string(1, c));
    advance(position_ + 1);
    return Status();
  }

  // digits with single underscores between them
  size_t digitsEnd(size_t i) const {
    while (i < source_.size() &&
           (isDigitByte(source_[i]) || (source_[i] == '_' && i + 1 < source_.size() && isDigitByte(source_[i + 1]))))
      ++i;
    return i;
  }

  Status number() {
    size_t start = position_, end = digitsEnd(start);
    bool afterDot = start > 0 && source_[start - 1] == '.'; // a.1.2 holds no float
    auto digitAt = [&](size_t i) { return i < source_.size() && isDigitByte(source_[i]); };
    size_t realEnd = end;
    if (digitAt(end + 1) && source_[end] == '.')
      realEnd = digitsEnd(end + 1);
    size_t e = realEnd;
    if (e < source_.size() && (source_[e] | 32) == 'e') {
      size_t sign = e + 1 < source_.size() && (source_[e + 1] == '+' || source_[e + 1] == '-') ? e + 2 : e + 1;
      if (digitAt(sign))
        realEnd = digitsEnd(sign);
    }
    if (realEnd > end && !afterDot)
      return realNumber(realEnd);
    return integerNumber(end);
  }

  std::string withoutUnderscores(size_t end) const {
    std::string out;
    for (char c : source_.substr(position_, end - position_))
      if (c != '_')
        out += c;
    return out;
  }

  Status realNumber(size_t end) {
    push(TokenKind::Float);
    tokens_.back().real = std::strtod(withoutUnderscores(end).c_str(), nullptr);
    advance(end);
    return Status();
  }

  Status integerNumber(size_t end) {
    int base = 10;
    if (source_[position_] == '0') {
      char mark = position_ + 1 < source_.size() ? static_cast<char>(source_[position_ + 1] | 32) : ' ';
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
      size_t i = position_ + (base == 10 ? 0 : 2);
      size_t first = i;
      auto isDigitOfBase = [&](char c) {
        int d = hexDigit(c);
        return d >= 0 && d < (base == 10 ? 1 : base);
      };
      while (i < source_.size() && (isDigitOfBase(source_[i]) ||
                                    (source_[i] == '_' && i + 1 < source_.size() && isDigitOfBase(source_[i + 1]))))
        ++i;
      // "08" is the number 0 and the number 8, which no grammar joins; "0x" alone is 0 and the name x.
      end = i > first ? i : position_ + 1;
      base = i > first ? base : 10;
    }
    std::string digits = withoutUnderscores(end).substr(base == 10 ? 0 : 2);
    Int value = 0;
    for (char c : digits)
      if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
          __builtin_add_overflow(value, static_cast<Int>(hexDigit(c)), &value))
        return Status::error("integer of " + std::to_string(digits.size()) + " digits does not fit 128 bits");
    push(TokenKind::Integer);
    tokens_.back().integer = value;
    advance(end);
    return Status();
  }

  Status string() {
    char quote = source_[position_];
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote)
      end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      return Status::error(std::string("the string that starts with ") + quote + " does not end");
    std::string text;
    LLMC_RETURN_IF_ERROR(unescape(source_.substr(position_ + 1, end - position_ - 1), text));
    push(TokenKind::String, std::move(text));
    advance(end + 1);
    return Status();
  }

  // Python's escapes; an unknown one keeps its backslash.
  static Status unescape(std::string_view in, std::string &out) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] != '\\' || i + 1 >= in.size()) {
        out += in[i];
        continue;
      }
      char c = in[++i];
      const char *simple = "n\nt\tr\ra\ab\bf\fv\v\\\\'\'\"\"";
      const char *found = nullptr;
      for (const char *s = simple; *s && !found; s += 2)
        found = *s == c ? s : nullptr;
      if (found) {
        out += found[1];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        for (size_t n = 0; n < 3 && i < in.size() && in[i] >= '0' && in[i] <= '7'; ++n)
          code = code * 8 + static_cast<uint32_t>(in[i++] - '0');
        --i;
        appendCodePoint(out, code);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        LLMC_RETURN_IF_ERROR(unescapeHex(in, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out));
      } else if (c == 'N') {
        return Status::error("character names (\\N{...}) are not supported; write \\uNNNN");
      } else {
        out += '\\';
        out += c;
      }
    }
    return Status();
  }

  static Status unescapeHex(std::string_view in, size_t &i, size_t digits, std::string &out) {
    uint32_t code = 0;
    for (size_t n = 1; n <= digits; ++n) {
      int digit = i + n < in.size() ? hexDigit(in[i + n]) : -1;
      if (digit < 0)
        return Status::error("an escape \\" + std::string(1, in[i]) + " needs " + std::to_string(digits) +
                             " hexadecimal digits");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return Status::error("an escape names no character");
    i += digits;
    appendCodePoint(out, code);
    return Status();
  }

  std::string storage_;
  std::string_view source_;
  size_t position_ = 0;
  int line_ = 1;
  bool lineStarting_ = true;
  std::string open_; // the brackets that must close, innermost last
  std::vector<Token> tokens_;
};

} // namespace

StatusOr<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token &token) {
  switch (token.kind) {
  case TokenKind::Data:
    return "text";
  case TokenKind::BlockBegin:
    return "'{%'";
  case TokenKind::BlockEnd:
    return "'%}'";
  case TokenKind::VariableBegin:
    return "'{{'";
  case TokenKind::VariableEnd:
    return "'}}'";
  case TokenKind::String:
    return "a string";
  case TokenKind::Integer:
    return toString(token.integer);
  case TokenKind::Float:
    return "a number";
  case TokenKind::End:
    return "the end of the template";
  default:
    return "'" + token.text + "'";
  }
}

} // namespace llmc::jinja
