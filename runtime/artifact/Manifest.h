// Manifest: everything an artifact folder says about itself, as the compiler writes and the runtime reads it. FORMAT.md
// is the byte-level description. Plain data; sizes in bytes unless the name says otherwise.
#pragma once
#include "runtime/collective/Transport.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

inline constexpr int32_t artifactFormatVersion = 3;
inline constexpr char manifestFile[] = "manifest.json";
inline constexpr char programFile[] = "program.so";
inline constexpr char weightsFile[] = "weights.bin";
inline constexpr char dispatchFile[] = "dispatch.json";
inline constexpr char memoryFile[] = "memory.json";
inline constexpr char chatTemplateFile[] = "chat_template.jinja";
inline constexpr char specialTokensFile[] = "special_tokens.json";
// Every weight in weights.bin, every page of the KV cache and every slot of recurrent state starts at a multiple of
// this.
inline constexpr uint64_t artifactAlignment = 64;

// What TokenizerFacts.files hold, by kind; each is one file unless said otherwise.
inline constexpr char noTokenizerKind[] = "none";             // no file: the artifact takes ids only
inline constexpr char tokenizerJsonKind[] = "tokenizer.json"; // Hugging Face's
inline constexpr char sentencePieceKind[] = "sentencepiece";  // tokenizer.model
inline constexpr char ggufKind[] = "gguf";                    // the JSON of runtime/tokenizer/GgufVocabulary.h
inline constexpr char tiktokenKind[] = "tiktoken";            // two files: the ranks, and the JSON of TiktokenOptions.h

enum class MemoryKind { Weights, Activations, Scratch, Kv, State, Logits, Staging, Collectives };
std::string_view memoryKindName(MemoryKind kind);

// One line of the memory plan: `bytes` is the value of `expression` at this artifact's limits.
struct MemoryPlanEntry {
  std::string name;
  MemoryKind kind = MemoryKind::Activations;
  uint64_t bytes = 0;
  std::string expression; // "max_tokens * 576 * 4"
};

// Where a packed weight lies in weights.bin. For tools; the step program holds the offsets itself.
struct WeightPlace {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct TokenizerFacts {
  std::string kind;               // one of the kinds above
  std::vector<std::string> files; // each is a section
  bool addBos = false;
  bool addEos = false;
};

struct SpecialIds {
  std::optional<int32_t> bos;
  std::optional<int32_t> pad;
  std::vector<int32_t> eos; // generation stops at any of them
};

// What the model's authors recommend; absent where they say nothing.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP;
  std::optional<double> minP;
  std::optional<double> repetitionPenalty;
};

// How well the artifact predicts a text, beside the same model with f32 weights; where that was measured.
struct PerplexityFacts {
  std::string textHash; // XXH3-128 of the text
  uint64_t tokens = 0;  // predicted, in windows of `window`
  int32_t window = 0;
  double value = 0, reference = 0;
};

// A section that ranks have each of their own: what this rank's is called.
struct RankFile {
  std::string of; // as it is called in an artifact of one rank
  std::string file;
};

// Which rank of an artifact of several this is the manifest of.
struct RankFacts {
  int32_t number = 0;
  RankGrid grid;
  std::string identity;         // 32 hex digits, the same in the manifests of all ranks and of no other artifact
  uint64_t collectiveBytes = 0; // that the largest exchange of a step needs beside its operands
  int32_t exchanges = 0;        // of a step, at most
  int32_t rowBlocks = 1;        // that a step may be cut into, so that one is computed while another is exchanged
  int32_t rowsPerBlock = 1;     // at least: a smaller step is not cut
  std::vector<RankFile> files;  // where the name differs
};

// Rank 0's is manifestFile.
std::string manifestFileOf(int32_t rank);

struct Section {
  std::string file; // a name in the folder, never a path
  uint64_t bytes = 0;
  std::string hash; // XXH3-128, 32 lower-case hex digits
};

struct Manifest {
  std::string writer; // "llmc 0.1.0"
  int32_t abiVersion = 0;

  std::string family;
  std::string architecture;
  std::string target;                   // as given to --target
  std::vector<std::string> cpuFeatures; // names of runtime/support/CpuFeatures.h

  int32_t vocabulary = 0;     // V
  int32_t hidden = 0;         // C
  int32_t recordChannels = 0; // of the residual stream, all of them where there are several
  int32_t numLayers = 0;      // L
  int32_t context = 0;        // positions a sequence may have

  // Limits of one step and of the engine.
  int32_t maxTokens = 0;
  int32_t maxSequences = 0;
  int32_t maxLogitRows = 0;
  int32_t maxWorkers = 0;

  // The KV cache; all three are 0 where no layer keeps one.
  int32_t pageTokens = 0; // positions per page
  uint64_t pageBytes = 0; // one page, over all layers
  int32_t numPages = 0;
  uint64_t stateBytes = 0; // one slot of recurrent state, over all layers; there are max_sequences of them
  uint64_t arenaBytes = 0;
  uint64_t scratchBytesPerWorker = 0;
  uint64_t weightsBytes = 0; // of weights.bin
  std::vector<MemoryPlanEntry> memoryPlan;
  std::vector<WeightPlace> weights; // ascending by offset; may be empty

  TokenizerFacts tokenizer;
  SpecialIds specialIds;
  GenerationDefaults generation;
  std::optional<PerplexityFacts> perplexity;
  std::optional<RankFacts> rank; // absent where there is one rank
  std::vector<Section> sections; // filled by the writer, ascending by file name

  const Section *findSection(std::string_view file) const;
  // What this rank's `section` is called: of programFile, weightsFile, dispatchFile, memoryFile.
  std::string fileOf(std::string_view section) const;
  RankGrid grid() const { return rank ? rank->grid : RankGrid(); }
};

// The text of manifest.json, its own hash included. The same manifest gives the same bytes.
std::string manifestText(const Manifest &manifest);

// Reads and validates the text; `file` starts every message. Whatever passes is safe to compute with: every number is
// within its range, no product of the plan overflows, every file name stays in the folder.
StatusOr<Manifest> parseManifest(std::string_view text, const std::string &file);

// What parseManifest checks beyond the types; the writer asks it before it writes. `file` starts every message.
Status checkManifest(const Manifest &manifest, const std::string &file);

} // namespace llmc
