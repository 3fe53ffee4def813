// What the names in a GGUF vocabulary mean. All of them stand in one table, GgufRecipes.inc.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace llmc {

enum class GgufModelKind { ByteLevelBpe, ScoredBpe };

// How text is prepared for a byte-level vocabulary whose pre-tokenizer goes by one of `names`.
struct GgufRecipe {
  const char *names;        // separated by blanks
  const char *preTokenizer; // as in tokenizer.json
  bool normalizeNfc = false;
  bool ignoreMerges = false;
  bool addBos = false; // when the file does not say
};

std::optional<GgufModelKind> findGgufModelKind(std::string_view name);
std::string knownGgufModelKinds();
// Null when no recipe has the name.
const GgufRecipe *findGgufRecipe(std::string_view name);
std::string knownGgufRecipes();

} // namespace llmc
