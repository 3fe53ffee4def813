#include "lib/importer/CompareNames.h"
#include "lib/importer/CheckWeights.h"
#include <algorithm>
#include <cctype>
#include <map>

namespace llmc {
namespace {

// What packed files store in place of "x.weight", or beside it.
constexpr const char *packedEndings[] = {".weight_packed",
                                         ".weight_scale",
                                         ".weight_scale_2",
                                         ".weight_scale_inv",
                                         ".weight_global_scale",
                                         ".weight_shape",
                                         ".weight_zero_point",
                                         ".weight_g_idx",
                                         ".input_scale",
                                         ".input_global_scale",
                                         ".qweight",
                                         ".qzeros",
                                         ".scales",
                                         ".g_idx",
                                         "_blocks",
                                         "_scales"};

std::string withoutNumbers(const std::string &name) {
  std::string pattern;
  for (size_t i = 0; i < name.size(); ++i) {
    bool isDigit = std::isdigit(static_cast<unsigned char>(name[i])) != 0;
    bool startsPart = i == 0 || name[i - 1] == '.' || (isDigit && !pattern.empty() && pattern.back() == '*');
    if (isDigit && startsPart) {
      if (pattern.empty() || pattern.back() != '*')
        pattern += '*';
    } else {
      pattern += name[i];
    }
  }
  return pattern;
}

bool endsWith(const std::string &name, const std::string &ending) {
  return name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

// The plain tensors that a stored one may stand for; itself first.
std::vector<std::string> plainNames(const ModelSpec &spec, const std::string &name) {
  std::vector<std::string> names = {name};
  if (!spec.quantization.empty())
    for (const std::string ending : packedEndings)
      if (endsWith(name, ending)) {
        std::string base = name.substr(0, name.size() - ending.size());
        names.insert(names.end(), {base + ".weight", base});
      }
  for (size_t i = names.size(); i-- > 0;)
    for (const auto &[prefix, other] : spec.otherPrefixes)
      if (names[i].rfind(other, 0) == 0)
        names.push_back(prefix + names[i].substr(other.size()));
  return names;
}

// Whether it belongs to a part that lists its tensors.
bool listsPart(const ModelSpec &spec, const std::string &name) {
  return std::any_of(spec.parts.begin(), spec.parts.end(), [&](const ModelPart &part) {
    return !part.tensors.empty() && !part.prefix.empty() && name.rfind(part.prefix, 0) == 0;
  });
}

class Differences {
public:
  void add(bool isExpected, const std::string &name) {
    NameDifference &known = byPattern_[{!isExpected, withoutNumbers(name)}];
    if (known.count++ == 0)
      known = {isExpected, withoutNumbers(name), name, 1};
  }
  std::vector<NameDifference> take() {
    std::vector<NameDifference> all;
    for (auto &[pattern, difference] : byPattern_)
      all.push_back(std::move(difference));
    return all;
  }

private:
  std::map<std::pair<bool, std::string>, NameDifference> byPattern_;
};

} // namespace

std::vector<NameDifference> compareNames(const ModelSpec &spec, const std::set<std::string> &stored) {
  std::set<std::string> expected, found;
  for (ExpectedTensor &tensor : expectedTensors(spec))
    expected.insert(std::move(tensor.name));
  for (const ModelPart &part : spec.parts)
    for (const PartTensor &tensor : part.tensors)
      expected.insert(tensor.name);
  Differences differences;
  for (const std::string &name : stored) {
    std::vector<std::string> plain = plainNames(spec, name);
    auto known = std::find_if(plain.begin(), plain.end(), [&](const auto &each) { return expected.count(each) != 0; });
    if (known != plain.end()) {
      found.insert(*known);
      continue;
    }
    // Of a part whose tensors are known, one more is a difference.
    bool ignorable = name == spec.tiedHeadTensor || (!listsPart(spec, name) && std::any_of(spec.ignorableTensors.begin(), spec.ignorableTensors.end(),
                                 [&](const std::string &pattern) { return matchesPattern(pattern, name); }));
    if (!ignorable)
      differences.add(/*isExpected=*/false, name);
  }
  for (const std::string &name : expected)
    if (!found.count(name))
      differences.add(/*isExpected=*/true, name);
  return differences.take();
}

} // namespace llmc
