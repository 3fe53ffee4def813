// What a published tiktoken file lacks, gathered from the files beside it and the descriptions in models/text/.
#pragma once
#include "runtime/tokenizer/Tokenizer.h"

namespace llmc {

// `path` is the file of ranks and `ranks` its text; tokenizer_config.json, about.json and `config` (the model's
// config.json, may not exist) say the rest. A `pattern` that is given wins over any that is stated.
StatusOr<TiktokenOptions> tiktokenOptionsFor(std::string_view ranks, const std::string &path, const std::string &config,
                                             const std::string &pattern = "");

} // namespace llmc
