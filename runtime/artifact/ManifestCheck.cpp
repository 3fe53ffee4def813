// What the fields of a manifest must satisfy together. Shared by reader and writer: neither can produce what the other
// refuses.
#include "runtime/artifact/Manifest.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <initializer_list>

namespace llmc {
namespace {

std::string str(uint64_t n) { return std::to_string(n); }

Status checkFileName(const std::string &name, const std::string &where) {
  bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." && name != manifestFile &&
               name.rfind("manifest-", 0) != 0 &&
               std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > 32 && c < 127 && c != '/'; });
  return plain ? Status() : Status::error(where + ": '" + name + "' is no plain file name inside the artifact");
}

Status checkTokenizer(const TokenizerFacts &tokenizer) {
  size_t files = 1;
  if (tokenizer.kind == noTokenizerKind)
    files = 0;
  else if (tokenizer.kind == tiktokenKind)
    files = 2;
  else if (tokenizer.kind != tokenizerJsonKind && tokenizer.kind != sentencePieceKind && tokenizer.kind != ggufKind)
    return Status::error("/tokenizer/kind '" + tokenizer.kind +
                         "' is unknown (known = none, tokenizer.json, sentencepiece, gguf, tiktoken)");
  if (tokenizer.files.size() == files)
    return {};
  return Status::error("/tokenizer/files has " + str(tokenizer.files.size()) + " entries, kind '" + tokenizer.kind +
                       "' takes " + str(files));
}

Status checkSections(const Manifest &m) {
  for (size_t i = 0; i < m.sections.size(); ++i) {
    const Section &section = m.sections[i];
    std::string where = "/sections/" + str(i);
    LLMC_RETURN_IF_ERROR(checkFileName(section.file, where + "/file"));
    if (i > 0 && !(m.sections[i - 1].file < section.file))
      return Status::error(where + "/file '" + section.file + "' does not come after '" + m.sections[i - 1].file + "'");
    if (section.hash.size() != 32 || section.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
      return Status::error(where + "/hash '" + section.hash + "' is not 32 lower-case hex digits");
  }
  for (const char *file : {programFile, weightsFile})
    if (!m.findSection(m.fileOf(file)))
      return Status::error("/sections has no '" + m.fileOf(file) + "'");
  for (size_t i = 0; i < m.tokenizer.files.size(); ++i)
    if (!m.findSection(m.tokenizer.files[i]))
      return Status::error("/tokenizer/files/" + str(i) + " '" + m.tokenizer.files[i] + "' is not among the sections");
  LLMC_RETURN_IF_ERROR(checkTokenizer(m.tokenizer));
  uint64_t bytes = m.findSection(m.fileOf(weightsFile))->bytes;
  if (bytes != m.weightsBytes)
    return Status::error("/weights_bytes is " + str(m.weightsBytes) + ", section '" + m.fileOf(weightsFile) + "' has " +
                         str(bytes) + " bytes");
  return {};
}

Status checkRank(const Manifest &m) {
  if (!m.rank)
    return {};
  const RankFacts &rank = *m.rank;
  CheckedSize ranks = CheckedSize(static_cast<uint64_t>(rank.grid.stages)) * static_cast<uint64_t>(rank.grid.ranks);
  if (rank.grid.stages < 1 || rank.grid.ranks < 1 || !ranks.fits(limits::artifactRanks) || *ranks.value() < 2)
    return Status::error("/rank has " + std::to_string(rank.grid.stages) + " stages of " +
                         std::to_string(rank.grid.ranks) + " ranks, expected 2 to " +
                         std::to_string(limits::artifactRanks) + " ranks in all");
  if (rank.number < 0 || rank.number >= rank.grid.size())
    return Status::error("/rank/number is " + std::to_string(rank.number) + ", there are " +
                         std::to_string(rank.grid.size()) + " ranks");
  if (rank.identity.size() != 32 || rank.identity.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Status::error("/rank/identity '" + rank.identity + "' is not 32 lower-case hex digits");
  if (rank.rowBlocks < 1 || rank.rowsPerBlock < 1)
    return Status::error("/rank has " + std::to_string(rank.rowBlocks) + " blocks of " +
                         std::to_string(rank.rowsPerBlock) + " rows, expected at least 1 of each");
  for (size_t i = 0; i < rank.files.size(); ++i)
    if (!m.findSection(rank.files[i].file))
      return Status::error("/rank/files/" + str(i) + "/file '" + rank.files[i].file + "' is not among the sections");
  return {};
}

Status checkWeights(const Manifest &m) {
  uint64_t end = 0;
  for (size_t i = 0; i < m.weights.size(); ++i) {
    const WeightPlace &weight = m.weights[i];
    std::string where = "/weights/" + str(i) + " '" + weight.name + "'";
    if (weight.offset % artifactAlignment != 0)
      return Status::error(where + ": offset " + str(weight.offset) + " is not a multiple of " +
                           str(artifactAlignment));
    if (weight.offset < end)
      return Status::error(where + ": starts at byte " + str(weight.offset) + ", the one before ends at " + str(end));
    CheckedSize last = CheckedSize(weight.offset) + weight.bytes;
    if (!last.fits(m.weightsBytes))
      return Status::error(where + ": [" + str(weight.offset) + ", +" + str(weight.bytes) + ") leaves the " +
                           str(m.weightsBytes) + " bytes of " + weightsFile);
    end = *last.value();
  }
  return {};
}

Status checkIds(const Manifest &m) {
  auto check = [&](const std::string &where, int32_t id) {
    return id >= 0 && id < m.vocabulary ? Status()
                                        : Status::error(where + " is " + std::to_string(id) + ", the vocabulary has " +
                                                        std::to_string(m.vocabulary) + " ids");
  };
  if (m.specialIds.bos)
    LLMC_RETURN_IF_ERROR(check("/special_ids/bos", *m.specialIds.bos));
  if (m.specialIds.pad)
    LLMC_RETURN_IF_ERROR(check("/special_ids/pad", *m.specialIds.pad));
  for (size_t i = 0; i < m.specialIds.eos.size(); ++i)
    LLMC_RETURN_IF_ERROR(check("/special_ids/eos/" + str(i), m.specialIds.eos[i]));
  return {};
}

Status checkGeneration(const GenerationDefaults &g) {
  auto check = [](const char *name, const std::optional<double> &value, double min, double max) {
    if (!value || (*value >= min && *value <= max)) // NaN fails both
      return Status();
    return Status::error("/generation/" + std::string(name) + " is " + std::to_string(*value) + ", expected " +
                         std::to_string(min) + " to " + std::to_string(max));
  };
  LLMC_RETURN_IF_ERROR(check("temperature", g.temperature, 0, limits::temperature));
  LLMC_RETURN_IF_ERROR(check("top_p", g.topP, 0, 1));
  LLMC_RETURN_IF_ERROR(check("min_p", g.minP, 0, 1));
  return check("repetition_penalty", g.repetitionPenalty, limits::repetitionPenaltyMin, limits::repetitionPenaltyMax);
}

Status checkPerplexity(const Manifest &m) {
  if (!m.perplexity)
    return {};
  for (auto [name, value] : {std::pair("value", m.perplexity->value), std::pair("reference", m.perplexity->reference)})
    if (!(value >= 1 && value <= limits::perplexity))
      return Status::error("/perplexity/" + std::string(name) + " is " + std::to_string(value) + ", expected 1 to " +
                           std::to_string(limits::perplexity));
  return {};
}

struct Range {
  const char *name;
  int64_t value, max;
};

// Again at the consumer, although the reader had the same ranges: the writer comes here without it.
Status checkRanges(const Manifest &m) {
  for (const Range &r : std::initializer_list<Range>{{"vocabulary", m.vocabulary, INT32_MAX},
                                                     {"hidden", m.hidden, INT32_MAX},
                                                     {"record_channels", m.recordChannels, INT32_MAX},
                                                     {"num_layers", m.numLayers, limits::layers},
                                                     {"context", m.context, limits::artifactContext},
                                                     {"max_tokens", m.maxTokens, limits::artifactStepTokens},
                                                     {"max_sequences", m.maxSequences, limits::artifactSequences},
                                                     {"max_logit_rows", m.maxLogitRows, m.maxTokens},
                                                     {"max_workers", m.maxWorkers, limits::artifactWorkers}})
    if (r.value < 1 || r.value > r.max)
      return Status::error("/" + std::string(r.name) + " is " + std::to_string(r.value) + ", expected 1 to " +
                           std::to_string(r.max));
  for (const Range &r : std::initializer_list<Range>{{"page_tokens", m.pageTokens, limits::artifactContext},
                                                     {"num_pages", m.numPages, INT32_MAX}})
    if (r.value < 0 || r.value > r.max || (r.value > 0) != (m.pageBytes > 0))
      return Status::error("/" + std::string(r.name) + " is " + std::to_string(r.value) + ", expected " +
                           (m.pageBytes > 0 ? "1 to " + std::to_string(r.max) : "0 where /page_bytes is 0"));
  return {};
}

Status checkPlan(const Manifest &m) {
  for (auto [name, bytes] :
       {std::pair("page_bytes", m.pageBytes), std::pair("state_bytes", m.stateBytes),
        std::pair("arena_bytes", m.arenaBytes), std::pair("scratch_bytes_per_worker", m.scratchBytesPerWorker),
        std::pair("rank/collective_bytes", m.rank ? m.rank->collectiveBytes : 0)})
    if (bytes % artifactAlignment != 0)
      return Status::error("/" + std::string(name) + " is " + str(bytes) + ", expected a multiple of " +
                           str(artifactAlignment));
  CheckedSize total = CheckedSize(m.weightsBytes) + m.arenaBytes + (m.rank ? m.rank->collectiveBytes : 0) +
                      CheckedSize(m.numPages) * m.pageBytes + CheckedSize(m.maxSequences) * m.stateBytes +
                      CheckedSize(m.scratchBytesPerWorker) * static_cast<uint64_t>(m.maxWorkers) +
                      CheckedSize(m.maxLogitRows) * static_cast<uint64_t>(m.vocabulary) * sizeof(float) +
                      CheckedSize(m.maxSequences) * static_cast<uint64_t>(m.context) * sizeof(int32_t);
  if (!total.fits(INT64_MAX))
    return Status::error("the memory plan does not fit 63 bits: " + str(static_cast<uint64_t>(m.numPages)) +
                         " pages of " + str(m.pageBytes) + " bytes, " + str(static_cast<uint64_t>(m.maxSequences)) +
                         " states of " + str(m.stateBytes) + " bytes, arena " + str(m.arenaBytes) + ", weights " +
                         str(m.weightsBytes));
  return {};
}

Status checkAll(const Manifest &m) {
  LLMC_RETURN_IF_ERROR(checkRanges(m));
  LLMC_RETURN_IF_ERROR(checkRank(m));
  LLMC_RETURN_IF_ERROR(checkPlan(m));
  LLMC_RETURN_IF_ERROR(checkSections(m));
  LLMC_RETURN_IF_ERROR(checkWeights(m));
  LLMC_RETURN_IF_ERROR(checkIds(m));
  LLMC_RETURN_IF_ERROR(checkGeneration(m.generation));
  return checkPerplexity(m);
}

} // namespace

Status checkManifest(const Manifest &manifest, const std::string &file) { return checkAll(manifest).inside(file); }

} // namespace llmc
