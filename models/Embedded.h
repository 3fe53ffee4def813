// The model descriptions as compiled into the program; the .cpp is written by models/EmbedDescriptions.cmake.
#pragma once
#include <span>
#include <string_view>

namespace llmc {

struct EmbeddedDescription {
  std::string_view file; // "llama.json"
  std::string_view text;
};
std::span<const EmbeddedDescription> embeddedDescriptions();
// The files of models/text/, descriptions and templates.
std::span<const EmbeddedDescription> embeddedTexts();

} // namespace llmc
