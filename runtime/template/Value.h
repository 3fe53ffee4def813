// The values a template computes with: Python's, as far as templates can tell. All are immutable but namespaces and
// the few objects with a position, so sharing is safe; nothing outside a template can be reached through one.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/support/Status.h"
#include "runtime/template/Budget.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace llmc::jinja {

// Python's integers are unbounded; these stop at 128 bits, with an error instead of a wrapped result.
using Int = __int128;
std::string toString(Int value);

enum class Kind : uint8_t {
  Undefined, // `text` of the object says why, for messages
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Iterator, // a list that can be walked once
  DictView, // of keys, values or items
  Dict,
  Range,
  Namespace,
  Macro,
  Loop,
  Function,
  Method,
  Cycler,
  Joiner,
};

struct Object {
  virtual ~Object() = default;
  // 1 + the depth of the deepest value inside. Bounded, so that walking and freeing values may recurse.
  int depth = 1;
};
struct Text;
struct List;
struct Dict;

class Value {
public:
  Value() : int_(0) {}
  static Value none() { return Value(Kind::None); }
  static Value undefined(std::string why);
  static Value boolean(bool v);
  static Value integer(Int v);
  static Value real(double v);
  static Value string(std::string v, bool safe = false);
  static Value object(Kind kind, std::shared_ptr<Object> object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool isUndefined() const { return kind_ == Kind::Undefined; }
  bool isString() const { return kind_ == Kind::String; }
  // Booleans are integers, as in Python.
  bool isInteger() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  bool isNumber() const { return isInteger() || kind_ == Kind::Float; }
  bool isSafe() const { return safe_; }
  bool asBool() const { return int_ != 0; }
  Int asInt() const { return int_; }
  double asDouble() const { return kind_ == Kind::Float ? float_ : static_cast<double>(int_); }
  const std::string &text() const;
  const Text &textObject() const;
  // Of List, Tuple, Iterator and DictView.
  const std::vector<Value> &items() const;
  const Dict &dict() const;
  template <typename T> T &as() const { return *static_cast<T *>(object_.get()); }
  const std::shared_ptr<Object> &shared() const { return object_; }
  int depth() const { return object_ ? object_->depth : 0; }
  bool sameObject(const Value &other) const { return object_ && object_ == other.object_; }

private:
  explicit Value(Kind kind) : kind_(kind), int_(0) {}
  Kind kind_ = Kind::Undefined;
  bool safe_ = false;
  union {
    Int int_;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

using ValueOr = StatusOr<Value>;

struct Text : Object {
  std::string bytes;
  size_t codePoints = 0;
  bool isAscii() const { return codePoints == bytes.size(); }
};

struct List : Object {
  std::vector<Value> items;
  // Iterator: whether it was walked. DictView: what it shows.
  bool used = false;
  std::string view;
  // A tuple of groupby, whose two items have names.
  bool isGroup = false;
};

// Insertion order; keys compare as in Python (1, 1.0 and true are one key).
struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;
  // The first of repeated keys keeps its place and its spelling, the last its value.
  Status set(const Value &key, Value value);
  void setText(const std::string &key, Value value);
  // nullptr when absent or when the key is of a kind that cannot be one.
  const Value *find(const Value &key) const;
  const Value *findText(std::string_view key) const;

private:
  void setEncoded(std::string encoded, const Value &key, Value value);
  std::unordered_map<std::string, size_t> index_;
};

// Namespaces and scopes can hold themselves: a Runtime empties them when a rendering ends.
struct Clearable : Object {
  virtual void clear() = 0;
};
struct Namespace : Clearable {
  Dict attributes;
  void clear() override { attributes = Dict(); }
};

struct Range : Object {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
};
struct Method : Object {
  Value self;
  std::string name;
};
struct Function : Object {
  std::string name;
};
struct Cycler : Object {
  std::vector<Value> items;
  size_t position = 0;
};
struct Joiner : Object {
  std::string separator;
  bool used = false;
};
struct Loop : Object {
  std::vector<Value> items;
  size_t index = 0;
  int level = 0; // of a recursive loop, 0 outside
  const void *recursiveFor = nullptr;
  std::shared_ptr<Object> scope; // where a recursive call goes on
  std::vector<Value> lastChanged;
  bool hasChanged = false;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

// Containers check the depth of what goes in.
ValueOr makeList(std::vector<Value> items, Kind kind = Kind::List);
ValueOr makeDict(std::shared_ptr<Dict> dict);
ValueOr makeMethod(const Value &self, std::string name);
Value makePair(const Value &a, const Value &b);
ValueOr fromJson(const Json &json, Budget &budget, int depth = 1);
// Python's name of the type, for messages.
std::string typeName(const Value &value);

} // namespace llmc::jinja
