// Loads the tokenizer of a golden folder from whatever file lies there.
#include "test/runtime/tokenizer/GoldenFiles.h"

namespace llmc::test {
namespace {

TiktokenOptions tiktokenOptions(const Json &about, const Json &config) {
  TiktokenOptions options;
  options.pattern = about["pattern"];
  // Nothing in the folder says so; see long.jsonl.
  options.maxCharacters = 400'000;
  options.maxRunCharacters = 25'000;
  for (const auto &entry : about["special"].items()) {
    std::string id = std::to_string(static_cast<int32_t>(entry.value()));
    const Json &known = config["added_tokens_decoder"];
    bool special = !known.contains(id) || bool(known[id]["special"]);
    options.specials.push_back({entry.key(), entry.value(), special});
  }
  return options;
}

} // namespace

StatusOr<Tokenizer> loadGolden(const std::string &folder) {
  std::string path = goldenPath(folder);
  if (fileExists(path + "/tokenizer.json"))
    return Tokenizer::fromTokenizerJson(readText(path + "/tokenizer.json"), folder);
  if (fileExists(path + "/tokenizer.model"))
    return Tokenizer::fromSentencePiece(readText(path + "/tokenizer.model"), folder);
  Json about = readJsonText(readText(path + "/about.json"), folder);
  Json config = readJsonText(readText(path + "/tokenizer_config.json"), folder);
  return Tokenizer::fromTiktoken(readText(path + "/tiktoken.model"), tiktokenOptions(about, config), folder);
}

} // namespace llmc::test
