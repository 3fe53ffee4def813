// ValueReader: the values of a description for one source, each read once, checked, and recorded with its origin.
#pragma once
#include "lib/importer/ConfigSource.h"
#include "lib/importer/ModelDescription.h"
#include "lib/importer/Scalar.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace llmc {

// A value as the source states it.
struct Stated {
  const Json *json = nullptr; // nullptr: no key present; never a JSON null
  std::string pointer;        // the key, for messages
  bool isNull = false;        // a key is present and null
};

class ValueReader {
public:
  ValueReader(const FormatRules &rules, const ConfigSource &source, std::vector<Fact> &facts);

  // Values of the description. Whole numbers, bools (0, 1) and numbers alike come as double.
  StatusOr<double> number(const std::string &name);
  StatusOr<int64_t> integer(const std::string &name);
  StatusOr<bool> flag(const std::string &name);
  StatusOr<std::string> word(const std::string &name);
  // Of any kind: what expressions work with.
  StatusOr<Scalar> scalar(const std::string &name);
  StatusOr<double> evaluate(const std::string &expression);
  StatusOr<Scalar> evaluateAny(const std::string &expression);
  // Another value than the source states.
  void replace(const std::string &name, const Scalar &value) { values_[name] = value; }

  // Keys of the source, looked up in the nested object first.
  Stated stated(const std::string &key) const;
  // Whether a key or the stored tensors state the value, so that no default was taken.
  bool isStated(const std::string &name) const;
  Stated firstStated(const std::vector<std::string> &keys) const;
  void record(const std::string &name, const std::string &value, const std::string &origin);

  // What messages call a value: its first key, or its name when the family computes it.
  std::string label(const std::string &name) const;
  const FormatRules &rules() const { return rules_; }
  const ConfigSource &source() const { return source_; }
  // Key of the object that holds the text model, empty when nothing is nested.
  const std::string &nested() const { return nested_; }

private:
  using Value = Scalar;
  StatusOr<const Value *> read(const std::string &name);
  StatusOr<Value> readStated(const ValueDefinition &definition, const ValueRule &rule, const Stated &found);
  StatusOr<Value> readLiteral(const ValueDefinition &definition, const ValueRule &rule, const Json &literal,
                              std::string &origin);
  StatusOr<Value> readRule(const ValueDefinition &definition, const ValueRule &rule, std::string &origin);
  StatusOr<Value> readFree(const ValueRule &rule, const Stated &found);
  Status wrongQuotient(const std::string &name, const std::string &expression);
  StatusOr<Value> checked(const ValueDefinition &definition, const Value &value);

  const FormatRules &rules_;
  const ConfigSource &source_;
  std::vector<Fact> &facts_;
  std::string nested_;
  std::map<std::string, Value> values_;
  std::set<std::string> reading_;
};

} // namespace llmc
