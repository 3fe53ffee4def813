// From template source to tokens, white-space control applied.
#pragma once
#include "runtime/support/Status.h"
#include "runtime/template/Value.h"

namespace llmc::jinja {

enum class TokenKind : uint8_t {
  Data, // literal text
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  int line = 1;
  std::string text; // of Data, Name, String (escapes resolved) and Operator
  Int integer = 0;
  double real = 0;
};

// The failure's message starts with "line N: ".
StatusOr<std::vector<Token>> tokenize(std::string_view source);
// What the user sees of a token in a message.
std::string describe(const Token &token);

} // namespace llmc::jinja
