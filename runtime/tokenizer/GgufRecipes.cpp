// Looks names up in the table of GGUF recipes.
#include "runtime/tokenizer/GgufRecipes.h"

namespace llmc {
namespace {

struct ModelKind {
  const char *name;
  GgufModelKind kind;
};

#include "runtime/tokenizer/GgufRecipes.inc"

// Calls `each` with every name of a list separated by blanks, until it returns true.
template <typename Each> bool anyName(std::string_view names, Each each) {
  while (!names.empty()) {
    size_t blank = names.find(' ');
    if (each(names.substr(0, blank)))
      return true;
    names = blank == names.npos ? std::string_view() : names.substr(blank + 1);
  }
  return false;
}

} // namespace

std::optional<GgufModelKind> findGgufModelKind(std::string_view name) {
  for (const ModelKind &kind : modelKinds)
    if (name == kind.name)
      return kind.kind;
  return std::nullopt;
}

std::string knownGgufModelKinds() {
  std::string out;
  for (const ModelKind &kind : modelKinds)
    out += std::string(out.empty() ? "" : ", ") + kind.name;
  return out;
}

const GgufRecipe *findGgufRecipe(std::string_view name) {
  for (const GgufRecipe &recipe : recipes)
    if (anyName(recipe.names, [&](std::string_view candidate) { return candidate == name; }))
      return &recipe;
  return nullptr;
}

std::string knownGgufRecipes() {
  std::string out;
  for (const GgufRecipe &recipe : recipes)
    anyName(recipe.names, [&](std::string_view name) {
      out.append(out.empty() ? "" : ", ").append(name);
      return false;
    });
  return out;
}

} // namespace llmc
