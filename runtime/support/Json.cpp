// The SAX side of nlohmann_json with our limits. Nothing deep ever exists: a pass over the text before the lexer sees
// it checks depth, UTF-8 and NUL, and replaces the bare NaN and Infinity that the lexer cannot be taught.
#include "runtime/support/Json.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace llmc {
namespace {

// A bare NaN or Infinity becomes a number of the same length. Which number of the text it is says that it is no number.
struct NonFinite {
  std::string_view spelling;
  std::string_view standIn;
  double value;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
const NonFinite nonFinites[] = {{"-Infinity", "-1234.5e6", -infinity},
                                {"Infinity", "1234.5e6", infinity},
                                {"NaN", "1e1", std::numeric_limits<double>::quiet_NaN()}};

bool isNumberByte(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }
bool isWordByte(char c) { return c == '_' || isNumberByte(c) || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// " at line 2, column 8, near '...'" for messages.
std::string place(std::string_view text, size_t at) {
  at = std::min(at, text.size());
  size_t line = 1, column = 1;
  for (char c : text.substr(0, at)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n';
  }
  std::string around;
  for (char c : text.substr(at > 20 ? at - 20 : 0, 40))
    around += (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) ? '?' : c;
  std::string out = " at line " + std::to_string(line) + ", column " + std::to_string(column);
  return at >= text.size() ? out + ": the text ends too early" : out + ", near '" + around + "'";
}

// The n-th number of the text stands for `value`; ascending in n.
struct Replaced {
  size_t number;
  double value;
};

// The pass before the lexer. Tokens are told apart just far enough: in a text that is valid JSON up to some byte, the
// numbers before that byte are counted as the lexer will count them.
class PrePass {
public:
  PrePass(std::string_view text, const std::string &file) : plain(text), text_(text), file_(file) {}
  std::string plain;
  std::vector<Replaced> replaced;

  Status run() {
    if (std::optional<size_t> bad = findInvalidUtf8(text_))
      return Status::error(file_ + ": not valid UTF-8 at byte " + std::to_string(*bad) + place(text_, *bad));
    int depth = 0;
    for (size_t i = 0; i < text_.size();) {
      char c = text_[i];
      if (c == '\0') // The lexer would take it for the end and ignore what follows.
        return Status::error(file_ + ": NUL byte" + place(text_, i));
      if ((c == '[' || c == '{') && ++depth > limits::jsonDepth)
        return Status::error(file_ + ": nested deeper than " + std::to_string(limits::jsonDepth) + place(text_, i));
      if ((c == ']' || c == '}') && depth > 0)
        --depth;
      i = c == '"' ? afterString(i) : isWordByte(c) ? afterWord(i) : i + 1;
    }
    return {};
  }

private:
  size_t afterString(size_t i) const {
    for (++i; i < text_.size() && text_[i] != '"'; ++i)
      if (text_[i] == '\\')
        ++i;
    return i + 1;
  }
  size_t afterWord(size_t begin) {
    size_t end = begin;
    while (end < text_.size() && isWordByte(text_[end]))
      ++end;
    std::string_view word = text_.substr(begin, end - begin);
    for (const NonFinite &nonFinite : nonFinites)
      if (word == nonFinite.spelling) {
        plain.replace(begin, word.size(), nonFinite.standIn);
        replaced.push_back({numbers_, nonFinite.value});
      }
    if (plain[begin] == '-' || (plain[begin] >= '0' && plain[begin] <= '9'))
      ++numbers_;
    return end;
  }

  std::string_view text_;
  const std::string &file_;
  size_t numbers_ = 0;
};

class Reader : public nlohmann::json_sax<Json> {
public:
  Reader(std::string_view text, const std::string &file, const std::vector<Replaced> &replaced, std::string_view noun)
      : text_(text), file_(file), replaced_(replaced), rootKeyNoun_(noun) {}

  Json root;
  Status failure;

  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool v) override { return add(Json(v)); }
  bool number_integer(number_integer_t v) override { return ++numbers_, add(Json(v)); }
  bool number_unsigned(number_unsigned_t v) override { return ++numbers_, add(Json(v)); }
  bool number_float(number_float_t v, const string_t &) override {
    if (nextReplaced_ < replaced_.size() && replaced_[nextReplaced_].number == numbers_)
      v = replaced_[nextReplaced_++].value;
    ++numbers_;
    return add(Json(v));
  }
  bool string(string_t &v) override { return add(Json(std::move(v))); }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return keysDiffer() && close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    stack_.back().key = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &e) override {
    // nlohmann counts the bytes read, so the offending one is before `position`.
    size_t at = position > 0 ? position - 1 : 0;
    if (e.id == 406)
      failure = Status::error(file_ + ": " + pointer() + ": number does not fit a double" + place(text_, at));
    else
      failure = Status::error(file_ + ": not valid JSON" + place(text_, at));
    return false;
  }

private:
  struct Open {
    Json value;
    std::string key;
  };

  bool add(Json v) {
    if (++values_ > limits::jsonValues) {
      failure = Status::error(file_ + ": more than " + std::to_string(limits::jsonValues) + " values");
      return false;
    }
    if (stack_.empty()) {
      root = std::move(v);
      return true;
    }
    Open &top = stack_.back();
    if (top.value.is_array())
      top.value.push_back(std::move(v));
    else // Not operator[]: its look-up is linear. The closing brace finds the repeats.
      top.value.get_ref<Json::object_t &>().Json::object_t::Container::emplace_back(top.key, std::move(v));
    return true;
  }
  bool open(Json v) {
    if (stack_.size() >= static_cast<size_t>(limits::jsonDepth)) {
      failure = Status::error(file_ + ": nested deeper than " + std::to_string(limits::jsonDepth));
      return false;
    }
    stack_.push_back({std::move(v), {}});
    return true;
  }
  bool close() {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(done));
  }
  // Sorting, not hashing: no choice of keys makes it slow.
  bool keysDiffer() {
    const Json::object_t::Container &members = stack_.back().value.get_ref<const Json::object_t &>();
    std::vector<uint32_t> order(members.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      int c = members[a].first.compare(members[b].first);
      return c != 0 ? c < 0 : a < b;
    });
    size_t repeat = members.size(); // the first repeat in the order of the text
    for (size_t i = 1; i < order.size(); ++i)
      if (members[order[i]].first == members[order[i - 1]].first)
        repeat = std::min<size_t>(repeat, order[i]);
    if (repeat == members.size())
      return true;
    stack_.back().key = members[repeat].first;
    if (stack_.size() == 1 && !rootKeyNoun_.empty())
      failure = Status::error(file_ + ": " + std::string(rootKeyNoun_) + " " + inQuotes(stack_.back().key) +
                              " appears twice in the header");
    else
      failure = Status::error(file_ + ": " + pointer() + " has the key " + inQuotes(stack_.back().key) + " twice");
    return false;
  }
  std::string pointer() const {
    std::string out;
    for (const Open &open : stack_) {
      std::string key = inQuotes(open.key);
      out += "/" + (open.value.is_array() ? std::to_string(open.value.size()) : key.substr(1, key.size() - 2));
    }
    return out.empty() ? "/" : out;
  }

  std::string_view text_;
  const std::string &file_;
  const std::vector<Replaced> &replaced_;
  std::string_view rootKeyNoun_;
  size_t nextReplaced_ = 0;
  size_t numbers_ = 0;
  uint64_t values_ = 0;
  std::vector<Open> stack_;
};

Status expected(const Json &value, const std::string &pointer, const std::string &what) {
  return Status::error(pointer + " is " + brief(value) + ", expected " + what);
}

// Length of the UTF-8 sequence at the start of `text`, 0 when there is none.
size_t utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    bool overlong = lead == 0xF0 && byte(1) < 0x90;
    bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

} // namespace

StatusOr<Json> parseJson(std::string_view text, const std::string &file, JsonRoot root, std::string_view rootKeyNoun) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Status::error(file + ": file is empty");
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    return Status::error(file + ": starts with a byte order mark; save it as plain UTF-8");
  PrePass pre(text, file);
  LLMC_RETURN_IF_ERROR(pre.run());
  Reader reader(text, file, pre.replaced, rootKeyNoun);
  if (!Json::sax_parse(pre.plain, &reader))
    return reader.failure.ok() ? Status::error(file + ": not valid JSON") : reader.failure;
  if (root == JsonRoot::Object && !reader.root.is_object())
    return Status::error(file + ": holds " + brief(reader.root) + ", expected a JSON object");
  return std::move(reader.root);
}

StatusOr<Json> readJsonFile(const std::string &path, uint64_t maxBytes, JsonRoot root) {
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(path, maxBytes));
  return parseJson(text, path, root);
}

StatusOr<int64_t> asInteger(const Json &value, const std::string &pointer, int64_t min, int64_t max) {
  std::string range = "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  int64_t v = 0;
  if (value.is_number_unsigned()) {
    auto u = value.get<uint64_t>();
    if (u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return expected(value, pointer, range);
    v = static_cast<int64_t>(u);
  } else if (value.is_number_integer()) {
    v = value.get<int64_t>();
  } else if (value.is_number_float()) {
    // Published configs write whole numbers as floats, and back.
    double d = value.get<double>();
    if (!(std::fabs(d) < 9.0e15) || d != std::floor(d))
      return expected(value, pointer, range);
    v = static_cast<int64_t>(d);
  } else {
    return expected(value, pointer, range);
  }
  if (v < min || v > max)
    return expected(value, pointer, range);
  return v;
}

StatusOr<uint64_t> asUnsigned(const Json &value, const std::string &pointer, uint64_t max) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > max)
    return expected(value, pointer, "an integer from 0 to " + std::to_string(max));
  return value.get<uint64_t>();
}

StatusOr<double> asNumber(const Json &value, const std::string &pointer) {
  // Newer writers of configs spell what JSON lacks as {"__float__": "Infinity"}.
  const Json *tagged = value.is_object() && value.size() == 1 ? find(value, "__float__") : nullptr;
  for (const NonFinite &nonFinite : nonFinites)
    if (tagged && tagged->is_string() && tagged->get_ref<const std::string &>() == nonFinite.spelling)
      return nonFinite.value;
  if (!value.is_number())
    return expected(value, pointer, "a number");
  return value.get<double>();
}

StatusOr<bool> asBool(const Json &value, const std::string &pointer) {
  if (!value.is_boolean())
    return expected(value, pointer, "true or false");
  return value.get<bool>();
}

StatusOr<std::string> asString(const Json &value, const std::string &pointer) {
  if (!value.is_string())
    return expected(value, pointer, "a string");
  return value.get<std::string>();
}

const Json *find(const Json &object, std::string_view key) {
  if (!object.is_object())
    return nullptr;
  for (auto it = object.begin(); it != object.end(); ++it)
    if (it.key() == key)
      return &it.value();
  return nullptr;
}

std::string brief(const Json &value) {
  if (value.is_structured() && value.size() > 64)
    return (value.is_array() ? "an array of " : "an object of ") + std::to_string(value.size()) + " values";
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return std::isnan(value.get<double>()) ? "NaN" : value.get<double>() > 0 ? "Infinity" : "-Infinity";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string inQuotes(std::string_view text) {
  constexpr size_t longest = 160;
  std::string out = "'";
  size_t i = 0;
  while (i < text.size() && out.size() <= longest) {
    size_t n = utf8Length(text.substr(i));
    auto byte = static_cast<unsigned char>(text[i]);
    if (n == 0 || byte < 32 || byte == 127) {
      const char *digits = "0123456789abcdef";
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      ++i;
      continue;
    }
    out += text.substr(i, n);
    i += n;
  }
  return out + (i < text.size() ? "...'" : "'");
}

std::optional<size_t> findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t n = utf8Length(text.substr(i));
    if (n == 0)
      return i;
    i += n;
  }
  return std::nullopt;
}

} // namespace llmc
