// The first source that is stated decides; others that the config states too are compared with it.
#include "lib/importer/LayerFacts.h"
#include <algorithm>

namespace llmc {
namespace {

using Kind = LayerChoice::Kind;
using Row = std::vector<Scalar>;

class Reader {
public:
  Reader(ValueReader &values, int64_t layers, ModelSpec &spec) : values_(values), layers_(layers), spec_(spec) {}

  StatusOr<LayerFacts> run() {
    for (const auto &entry : values_.rules().perLayer) {
      LLMC_ASSIGN_OR_RETURN([[maybe_unused]] const Row *row, resolve(entry.first));
    }
    return std::move(facts_);
  }

private:
  StatusOr<const Row *> resolve(const std::string &name) {
    if (auto known = facts_.find(name); known != facts_.end())
      return &known->second;
    if (!resolving_.insert(name).second)
      return Status::error("the description takes the layers that " + name + " from themselves");
    auto rules = values_.rules().perLayer.find(name);
    if (rules == values_.rules().perLayer.end())
      return Status::error("the description has no '" + name + "' per layer");
    std::optional<Row> decided;
    std::string decidedBy;
    for (const LayerChoice &choice : rules->second) {
      if (decided && !statedInConfig(choice))
        continue;
      LLMC_ASSIGN_OR_RETURN(std::optional<Row> row, apply(choice));
      if (!row)
        continue;
      if (!decided) {
        decided = std::move(*row);
        decidedBy = describe(choice);
        values_.record(name + " layers", print(*decided), decidedBy);
      } else if (*row != *decided) {
        spec_.notes.push_back(describe(choice) + " disagrees with " + decidedBy + ", which counts");
      }
    }
    resolving_.erase(name);
    if (!decided)
      return Status::error("nothing says '" + name + "' of a layer; the description needs a source that always does");
    return &(facts_[name] = std::move(*decided));
  }

  bool statedInConfig(const LayerChoice &choice) const {
    if (choice.kind == Kind::List || choice.kind == Kind::Letters)
      return values_.stated(choice.name).json != nullptr;
    auto rule = values_.rules().values.find(choice.name);
    return choice.kind == Kind::Period && rule != values_.rules().values.end() &&
           values_.firstStated(rule->second.keys).json != nullptr &&
           values_.firstStated(rule->second.keys).json->is_number();
  }

  std::string describe(const LayerChoice &choice) const {
    if (choice.kind == Kind::List || choice.kind == Kind::Letters)
      return "stated as " + values_.stated(choice.name).pointer;
    if (choice.kind == Kind::Period || choice.kind == Kind::From)
      return "computed: by " + values_.label(choice.name);
    if (choice.kind == Kind::Expression)
      return "computed: " + choice.name;
    return "fixed by the family";
  }

  // "6 of 24", or the words with their numbers.
  static std::string print(const Row &row) {
    std::map<std::string, int64_t> counts;
    bool flags = true;
    for (const Scalar &scalar : row) {
      flags &= scalar.kind == Scalar::Kind::Number && (scalar.number == 0.0 || scalar.number == 1.0);
      ++counts[scalar.print()];
    }
    if (flags)
      return std::to_string(counts["1"]) + " of " + std::to_string(row.size());
    std::string text;
    for (const auto &[value, count] : counts)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + value;
    return text;
  }

  static Scalar flag(bool yes) { return Scalar::of(yes ? 1.0 : 0.0); }

  StatusOr<std::optional<Row>> apply(const LayerChoice &choice) {
    if (!choice.when.empty()) {
      LLMC_ASSIGN_OR_RETURN(Scalar counts, values_.scalar(choice.when));
      if (!counts.isTrue())
        return std::optional<Row>();
    }
    switch (choice.kind) {
    case Kind::List:
      return fromList(choice);
    case Kind::Letters:
      return fromLetters(choice);
    case Kind::Period: {
      LLMC_ASSIGN_OR_RETURN(int64_t period, values_.integer(choice.name));
      if (period < 1)
        return Status::error(values_.label(choice.name) + " is " + std::to_string(period) + ", expected at least 1");
      return each([&](int64_t i) { return flag(((i + 1) % period == 0) == choice.last); });
    }
    case Kind::From: {
      LLMC_ASSIGN_OR_RETURN(int64_t first, values_.integer(choice.name));
      return each([&](int64_t i) { return flag(i >= first); });
    }
    case Kind::As:
    case Kind::Not: {
      LLMC_ASSIGN_OR_RETURN(const Row *other, resolve(choice.name));
      return each([&](int64_t i) { return flag((*other)[static_cast<size_t>(i)].isTrue() == (choice.kind == Kind::As)); });
    }
    case Kind::Expression:
      return fromExpression(choice);
    case Kind::All:
      break;
    }
    return each([&](int64_t) { return flag(choice.all); });
  }

  template <typename F> std::optional<Row> each(F f) const {
    Row row;
    for (int64_t i = 0; i < layers_; ++i)
      row.push_back(f(i));
    return row;
  }

  StatusOr<std::optional<Row>> fromExpression(const LayerChoice &choice) {
    LLMC_ASSIGN_OR_RETURN(Expression expression, parseExpression(choice.name));
    Row row;
    for (int64_t i = 0; i < layers_; ++i) {
      auto lookup = [&](const std::string &name) -> StatusOr<Scalar> {
        if (name == "layer")
          return Scalar::of(static_cast<double>(i));
        if (!values_.rules().perLayer.count(name))
          return values_.scalar(name);
        LLMC_ASSIGN_OR_RETURN(const Row *other, resolve(name));
        return (*other)[static_cast<size_t>(i)];
      };
      StatusOr<Scalar> scalar = evaluateScalar(expression, lookup);
      if (!scalar.ok())
        return scalar.status().inside("layer " + std::to_string(i));
      row.push_back(std::move(*scalar));
    }
    return std::optional<Row>(std::move(row));
  }

  // A word of `yes` or `no`, or, where the choice has neither, the entry itself.
  static StatusOr<Scalar> among(const LayerChoice &choice, const Json &word, const std::string &pointer) {
    if (choice.yes.empty() && choice.no.empty())
      return Scalar::ofJson(word, pointer);
    if (std::find(choice.yes.begin(), choice.yes.end(), word) != choice.yes.end())
      return flag(true);
    if (std::find(choice.no.begin(), choice.no.end(), word) != choice.no.end())
      return flag(false);
    std::string known;
    for (const auto *words : {&choice.yes, &choice.no})
      for (const Json &each : *words)
        known += (known.empty() ? "" : ", ") + (each.is_string() ? each.get<std::string>() : each.dump());
    return Status::error(pointer + " is " + brief(word) + ", which is unknown (known = " + known + ")");
  }

  // `pointer` becomes the member's. nullptr: it is not there.
  static const Json *memberOf(const Json &entry, std::string path, std::string &pointer) {
    const Json *value = &entry;
    while (value && !path.empty()) {
      std::string key = path.substr(0, path.find('/'));
      path = key.size() == path.size() ? "" : path.substr(key.size() + 1);
      pointer += "/" + key;
      value = find(*value, key);
    }
    return value;
  }

  StatusOr<std::optional<Row>> fromList(const LayerChoice &choice) {
    Stated found = values_.stated(choice.name);
    // The same key may hold letters or a period instead, and an empty list says nothing.
    if (!found.json || (!found.json->is_array() && choice.other) || (found.json->is_array() && found.json->empty()))
      return std::optional<Row>();
    if (!found.json->is_array())
      return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a list with an entry per layer");
    int64_t size = static_cast<int64_t>(found.json->size());
    if (size < layers_ || size > layers_ + choice.extra)
      return Status::error(found.pointer + " has " + std::to_string(found.json->size()) + " entries, but " +
                           values_.label("layers") + " is " + std::to_string(layers_));
    Row row;
    for (size_t i = 0; i < static_cast<size_t>(layers_); ++i) {
      std::string pointer = found.pointer + "/" + std::to_string(i);
      const Json *word = memberOf((*found.json)[i], choice.member, pointer);
      if (!word)
        return Status::error(pointer + " is absent, expected it in every entry");
      LLMC_ASSIGN_OR_RETURN(Scalar entry, among(choice, *word, pointer));
      row.push_back(std::move(entry));
    }
    return std::optional<Row>(std::move(row));
  }

  StatusOr<std::optional<Row>> fromLetters(const LayerChoice &choice) {
    Stated found = values_.stated(choice.name);
    if (!found.json || !found.json->is_string())
      return std::optional<Row>(); // the same key may hold a period instead
    std::string letters = found.json->get<std::string>();
    if (letters.empty() || letters.size() > static_cast<size_t>(layers_))
      return Status::error(found.pointer + " has " + std::to_string(letters.size()) + " letters, expected 1 to " +
                           std::to_string(layers_) + ", the layers");
    Row period;
    for (char letter : letters) {
      LLMC_ASSIGN_OR_RETURN(Scalar entry, among(choice, Json(std::string(1, letter)), found.pointer));
      period.push_back(std::move(entry));
    }
    return each([&](int64_t i) { return period[static_cast<size_t>(i) % period.size()]; });
  }

  ValueReader &values_;
  int64_t layers_;
  ModelSpec &spec_;
  LayerFacts facts_;
  std::set<std::string> resolving_;
};

bool slidingIsListed(const ValueReader &values) {
  auto rules = values.rules().perLayer.find("sliding");
  return rules != values.rules().perLayer.end() &&
         std::any_of(rules->second.begin(), rules->second.end(), [&](const LayerChoice &choice) {
           return choice.kind == Kind::List && values.stated(choice.name).json;
         });
}

// Every layer gets `window`: how many positions it sees, 0 for all, from the window of the model and the layers that slide.
Status addWindows(ValueReader &values, int64_t layers, LayerFacts &facts, ModelSpec &spec) {
  if (facts.count("window"))
    return {};
  LLMC_ASSIGN_OR_RETURN(int64_t window, values.integer("window"));
  std::vector<Scalar> sliding = facts.count("sliding") ? facts["sliding"] : std::vector<Scalar>(layers, Scalar::of(0.0));
  auto first = std::find_if(sliding.begin(), sliding.end(), [](const Scalar &each) { return each.isTrue(); });
  if (window == 0 && slidingIsListed(values) && first != sliding.end())
    return Status::error("layer " + std::to_string(first - sliding.begin()) + " of " + std::to_string(layers) +
                         " slides, but there is no " + values.label("window"));
  if (window >= spec.context) {
    spec.notes.push_back(values.label("window") + " " + std::to_string(window) + " is not below the context " +
                         std::to_string(spec.context) + ": no layer slides");
    window = 0;
  }
  for (const Scalar &slides : sliding)
    facts["window"].push_back(Scalar::of(slides.isTrue() ? static_cast<double>(window) : 0.0));
  return {};
}

} // namespace

StatusOr<LayerFacts> resolveLayerFacts(ValueReader &values, int64_t layers, ModelSpec &spec) {
  LLMC_ASSIGN_OR_RETURN(LayerFacts facts, Reader(values, layers, spec).run());
  LLMC_RETURN_IF_ERROR(addWindows(values, layers, facts, spec));
  return facts;
}

} // namespace llmc
