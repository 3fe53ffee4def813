// The SAX side of nlohmann_json with our limits. Nothing deep ever exists: the depth cap holds while reading.
#include "runtime/support/Json.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

namespace llmc {
namespace {

// What a bare NaN or Infinity becomes before the lexer sees it: numbers of the same length that no published file holds.
struct NonFinite {
  std::string_view spelling;
  std::string_view stand_in;
  double value;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
const NonFinite nonFinites[] = {{"-Infinity", "-7.77e301", -infinity},
                                {"Infinity", "7.77e301", infinity},
                                {"NaN", "7e9", std::numeric_limits<double>::quiet_NaN()}};

bool isWordByte(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// Offsets of replaced tokens, ascending, with the value each stands for.
using Replaced = std::vector<std::pair<size_t, double>>;

std::string replaceNonFinite(std::string_view text, Replaced &replaced) {
  std::string out(text);
  bool inString = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (inString) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"')
        inString = false;
      continue;
    }
    if (out[i] == '"') {
      inString = true;
      continue;
    }
    if (out[i] != 'N' && out[i] != 'I' && out[i] != '-')
      continue;
    for (const NonFinite &nonFinite : nonFinites) {
      size_t n = nonFinite.spelling.size();
      if (text.substr(i, n) != nonFinite.spelling || (i + n < out.size() && isWordByte(out[i + n])))
        continue;
      out.replace(i, n, nonFinite.stand_in);
      replaced.emplace_back(i, nonFinite.value);
      i += n - 1;
      break;
    }
  }
  return out;
}

class Reader : public nlohmann::json_sax<Json> {
public:
  Reader(std::string_view text, const std::string &file, const Replaced &replaced)
      : text_(text), file_(file), replaced_(replaced) {}

  Json root;
  Status failure;

  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool v) override { return add(Json(v)); }
  bool number_integer(number_integer_t v) override { return add(Json(v)); }
  bool number_unsigned(number_unsigned_t v) override { return add(Json(v)); }
  bool number_float(number_float_t v, const string_t &spelling) override {
    for (const NonFinite &nonFinite : nonFinites)
      if (nextReplaced_ < replaced_.size() && spelling == nonFinite.stand_in) {
        v = replaced_[nextReplaced_++].second;
        break;
      }
    return add(Json(v));
  }
  bool string(string_t &v) override { return add(Json(std::move(v))); }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    Open &top = stack_.back();
    if (!top.keys.insert(name).second) {
      failure = Status::error(file_ + ": " + pointer() + " has the key '" + name + "' twice");
      return false;
    }
    top.key = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &e) override {
    // nlohmann counts the bytes read, so the offending one is before `position`.
    size_t at = position > 0 ? position - 1 : 0;
    if (e.id == 406) {
      failure = Status::error(file_ + ": " + pointer() + ": number does not fit a double" + place(at));
      return false;
    }
    failure = Status::error(file_ + ": not valid JSON" + place(at));
    return false;
  }

private:
  struct Open {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool add(Json v) {
    if (stack_.empty()) {
      root = std::move(v);
      return true;
    }
    Open &top = stack_.back();
    if (top.value.is_array())
      top.value.push_back(std::move(v));
    else // Not operator[]: its look-up is linear, and `keys` has already refused a repeat.
      top.value.get_ref<Json::object_t &>().Json::object_t::Container::emplace_back(top.key, std::move(v));
    return true;
  }
  bool open(Json v) {
    if (stack_.size() >= static_cast<size_t>(limits::jsonDepth)) {
      failure = Status::error(file_ + ": " + "nested deeper than " + std::to_string(limits::jsonDepth));
      return false;
    }
    stack_.push_back({std::move(v), {}, {}});
    return true;
  }
  bool close() {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(done));
  }
  std::string pointer() const {
    std::string out;
    for (const Open &open : stack_)
      out += "/" + (open.value.is_array() ? std::to_string(open.value.size()) : open.key);
    return out.empty() ? "/" : out;
  }
  std::string place(size_t at) const {
    at = std::min(at, text_.size());
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else {
        ++column;
      }
    }
    std::string around;
    for (char c : text_.substr(at > 20 ? at - 20 : 0, 40))
      around += (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) ? '?' : c;
    std::string out = " at line " + std::to_string(line) + ", column " + std::to_string(column);
    return at >= text_.size() ? out + ": the text ends too early" : out + ", near '" + around + "'";
  }

  std::string_view text_;
  const std::string &file_;
  const Replaced &replaced_;
  size_t nextReplaced_ = 0;
  std::vector<Open> stack_;
};

Status expected(const Json &value, const std::string &pointer, const std::string &what) {
  return Status::error(pointer + " is " + brief(value) + ", expected " + what);
}

} // namespace

StatusOr<Json> parseJson(std::string_view text, const std::string &file, JsonRoot root) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Status::error(file + ": file is empty");
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    return Status::error(file + ": starts with a byte order mark; save it as plain UTF-8");
  Replaced replaced;
  std::string plain = replaceNonFinite(text, replaced);
  Reader reader(text, file, replaced);
  if (!Json::sax_parse(plain, &reader))
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

StatusOr<double> asNumber(const Json &value, const std::string &pointer) {
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
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

} // namespace llmc
