// Reading the golden folder: tokenizers with the ids and texts that their reference libraries give.
#pragma once
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/tokenizer/Tokenizer.h"
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace llmc::test {

inline std::string goldenPath(const std::string &name) { return std::string(LLMC_TEST_DATA) + "/golden/" + name; }

inline std::string readText(const std::string &path) {
  StatusOr<std::string> text = readFile(path, 64u << 20);
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.status().message());
  return text.ok() ? *text : std::string();
}

inline Json readJsonText(const std::string &text, const std::string &name) {
  StatusOr<Json> json = parseJson(text, name, JsonRoot::Any);
  EXPECT_TRUE(json.ok()) << (json.ok() ? "" : json.status().message());
  return json.ok() ? std::move(*json) : Json();
}

// One JSON value a line; no lines when there is no such file.
inline std::vector<Json> readLines(const std::string &path) {
  std::vector<Json> out;
  if (!fileExists(path))
    return out;
  std::istringstream lines(readText(path));
  for (std::string line; std::getline(lines, line);)
    out.push_back(readJsonText(line, path));
  return out;
}

inline std::string repeated(const Json &repeat) {
  std::string out;
  for (int64_t i = 0; i < repeat["count"]; ++i)
    out += std::string(repeat["unit"]);
  return out;
}

// The test strings by id.
inline const std::map<std::string, std::string> &strings() {
  static const std::map<std::string, std::string> instance = [] {
    std::map<std::string, std::string> out;
    for (const Json &entry : readJsonText(readText(goldenPath("strings.json")), "strings.json"))
      out[entry["id"]] = entry.contains("text") ? std::string(entry["text"]) : repeated(entry["repeat"]);
    return out;
  }();
  return instance;
}

StatusOr<Tokenizer> loadGolden(const std::string &folder);

} // namespace llmc::test
