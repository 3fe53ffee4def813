// TextDescription: one file of models/text/ as a struct: what a model's makers publish as program text, restated as
// data. models/text/README.md documents the file.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

// What a file of ranks does not hold.
struct TiktokenRules {
  std::string file = "tiktoken.model";
  std::string pattern;
  int64_t specialIds = 0; // ids after the ranks; those without a name of their own are called `filler`, {id} and {n}
  std::string filler;     // standing for the id and for the number of fillers before
  std::vector<std::string> prefix;                 // special tokens before every text
  int64_t cutCharacters = 0, cutRunCharacters = 0; // as in TiktokenOptions
};

struct TextDescription {
  std::string file; // "models/text/....json", for messages
  std::vector<std::string> modelTypes, tokenizerClasses;
  std::optional<TiktokenRules> tiktoken;
  std::map<std::string, int32_t> specialTokens;
  std::string chatTemplateFile, chatTemplate;
};

// Who asks: config.json's model_type and tokenizer_config.json's tokenizer_class, empty where they are not stated.
struct TextOwner {
  std::string modelType, tokenizerClass;
};

class TextDescriptions {
public:
  // Those compiled into the program, overlaid with the files of text/ in `folder` (of the environment's LLMC_MODELS
  // when empty and that is set): same file name replaces, others are added.
  static StatusOr<TextDescriptions> load(const std::string &folder = "");

  // The part of the description that names the owner's model type, else of the one that names its tokenizer class;
  // nullptr when there is none.
  const TiktokenRules *tiktoken(const TextOwner &owner) const;
  const std::map<std::string, int32_t> *specialTokens(const TextOwner &owner) const;
  const TextDescription *chatFormat(const TextOwner &owner) const;
  // All names under which tiktoken files are published, each once.
  std::vector<std::string> tiktokenFiles() const;
  // For messages, with commas between.
  std::string knownTokenizerClasses() const;

private:
  template <typename Has> const TextDescription *find(const TextOwner &owner, Has has) const;
  std::vector<TextDescription> all_;
};

} // namespace llmc
