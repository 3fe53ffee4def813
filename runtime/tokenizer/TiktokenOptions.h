// What a tiktoken file does not hold, as the JSON that an artifact stores beside it.
#pragma once
#include "runtime/tokenizer/Tokenizer.h"

namespace llmc {

// Everything but the ids of BOS and EOS and whether BOS is added: an artifact has those in its manifest.
std::string tiktokenOptionsToJson(const TiktokenOptions &options);
// `file` names the source in messages. Ids that clash are found by Tokenizer::fromTiktoken, not here.
StatusOr<TiktokenOptions> tiktokenOptionsFromJson(std::string_view json, const std::string &file);

// Whether the bytes are a file of ranks, whatever its name: some are published as tokenizer.model.
bool looksLikeTiktoken(std::string_view bytes);

} // namespace llmc
