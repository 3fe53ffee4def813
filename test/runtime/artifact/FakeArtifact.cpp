#include "test/runtime/artifact/FakeArtifact.h"
#include "runtime/llmc_abi.h"
#include "runtime/support/Hash.h"
#include "runtime/support/Json.h"
#include "test/runtime/artifact/FakeModel.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace llmc::test {

std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void writeAll(const std::string &path, const std::string &bytes) {
  // A new file, not new bytes in the old one: an engine may have that one mapped.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Manifest fakeManifest() {
  Manifest m;
  m.writer = "llmc test";
  m.abiVersion = LLMC_ABI_VERSION;
  m.family = "fake";
  m.architecture = "FakeForCausalLM";
  m.target = "host";
  m.vocabulary = fakeVocabulary;
  m.hidden = fakeHidden;
  m.recordChannels = fakeHidden;
  m.numLayers = fakeLayers;
  m.context = 100; // not a multiple of the page
  m.maxTokens = 16;
  m.maxSequences = 4;
  m.maxLogitRows = 6;
  m.maxWorkers = 8;
  m.pageTokens = fakePageTokens;
  m.pageBytes = fakePageBytes;
  m.numPages = 26; // two whole contexts of 13 pages
  m.stateBytes = fakeStateBytes;
  m.arenaBytes = static_cast<uint64_t>(m.maxTokens) * fakeArenaBytesPerToken;
  m.scratchBytesPerWorker = fakeScratchBytes;
  m.weightsBytes = fakeWeightBytes;
  m.memoryPlan = {{"weights", MemoryKind::Weights, fakeWeightBytes, "128"},
                  {"rows", MemoryKind::Activations, m.arenaBytes, "max_tokens * 64"}};
  m.weights = {{"first", 0, 60}, {"key", 64, 8}};
  m.tokenizer.kind = "none";
  m.specialIds.eos = {7};
  return m;
}

Manifest fakeRecurrentManifest() {
  Manifest m = fakeManifest();
  m.pageTokens = m.numPages = 0;
  m.pageBytes = 0;
  return m;
}

std::string fakeProgram() { return readAll(LLMC_FAKE_PROGRAM); }
std::string otherAbiProgram() { return readAll(LLMC_OTHER_ABI_PROGRAM); }

std::string fakeWeights() {
  std::string bytes(fakeWeightBytes, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 37 + 11);
  return bytes;
}

uint64_t fakeKey() {
  uint64_t key = 0;
  std::memcpy(&key, fakeWeights().data() + 64, sizeof key);
  return key;
}

uint64_t fakeStateAfter(const std::vector<int32_t> &tokens) {
  static const uint64_t key = fakeKey();
  uint64_t state = 0;
  for (size_t p = 0; p < tokens.size(); ++p)
    state = fakeMix(state, fakeEntry(key, tokens[p], static_cast<int32_t>(p)));
  return state;
}

std::vector<float> fakeLogitsAfter(const std::vector<int32_t> &tokens) {
  uint64_t state = fakeStateAfter(tokens);
  std::vector<float> logits(fakeVocabulary);
  for (int32_t v = 0; v < fakeVocabulary; ++v)
    logits[static_cast<size_t>(v)] = fakeLogit(state, v);
  return logits;
}

Files fakeFiles() { return {{programFile, fakeProgram()}, {weightsFile, fakeWeights()}, {dispatchFile, "[]\n"}}; }

std::string fakeTokenizerJson() {
  Json vocabulary = Json::object();
  for (int32_t id = 0; id < 95; ++id)
    vocabulary[std::string(1, static_cast<char>(32 + id))] = id;
  Json added = Json::array();
  for (int32_t id : {95, 96}) {
    std::string content = id == 95 ? "<s>" : "</s>";
    vocabulary[content] = id;
    added.push_back({{"id", id},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json root = {{"version", "1.0"},
               {"added_tokens", added},
               {"normalizer", nullptr},
               {"pre_tokenizer", nullptr},
               {"post_processor", nullptr},
               {"decoder", {{"type", "Fuse"}}},
               {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  return root.dump();
}

std::string fakeText(const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids)
    if (id < 95)
      text += static_cast<char>(32 + id);
  return text;
}

Manifest fakeTextManifest() {
  Manifest m = fakeManifest();
  m.tokenizer = {tokenizerJsonKind, {"tokenizer.json"}, /*addBos=*/true, false};
  m.specialIds.bos = 95;
  return m;
}

Files fakeTextFiles() {
  Files files = fakeFiles();
  files["tokenizer.json"] = fakeTokenizerJson();
  files[chatTemplateFile] = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}"
                            "{% if add_generation_prompt %}:{% endif %}";
  return files;
}

void writeFakeArtifact(const std::string &folder, Manifest manifest, const Files &files) {
  std::filesystem::create_directories(folder);
  manifest.sections.clear();
  for (const auto &[name, bytes] : files) {
    writeAll(folder + "/" + name, bytes);
    manifest.sections.push_back({name, bytes.size(), hashHex(bytes)});
    if (name == weightsFile)
      manifest.weightsBytes = bytes.size();
  }
  writeAll(folder + "/" + manifestFile, manifestText(manifest));
}

} // namespace llmc::test
