// manifest.json as text: one table of fields per struct serves both directions, so that neither forgets a field. What
// the fields must satisfy together is in ManifestCheck.cpp.
#include "runtime/artifact/Manifest.h"
#include "runtime/support/Hash.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <concepts>
#include <limits>

namespace llmc {
namespace {

constexpr std::string_view formatName = "llmc-artifact";
// The text starts with this, then 32 hex digits: the hash of the text in which these digits are zeros.
constexpr std::string_view hashPrefix = "{\n \"hash\": \"";
constexpr size_t hashDigits = 32;
constexpr std::string_view kindNames[] = {"weights", "activations", "scratch", "kv",
                                          "state",   "logits",      "staging", "collectives"};
constexpr int64_t maxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t maxInt64 = std::numeric_limits<int64_t>::max();

// Puts fields into a JSON object.
class ObjectWriter {
public:
  Json object = Json::object();

  template <typename T> void field(const char *key, const T &value, int64_t = 0, int64_t = 0) { object[key] = value; }
  template <typename T> void optionalField(const char *key, const std::optional<T> &value, int64_t = 0, int64_t = 0) {
    if (value)
      object[key] = *value;
  }
  void field(const char *key, MemoryKind kind) { object[key] = memoryKindName(kind); }
  template <typename T> void child(const char *key, const T &value) {
    ObjectWriter writer;
    describe(writer, value);
    object[key] = std::move(writer.object);
  }
  template <typename T> void optionalChild(const char *key, const std::optional<T> &value) {
    if (value)
      child(key, *value);
  }
  template <typename T> void children(const char *key, const std::vector<T> &values, uint64_t) {
    Json list = Json::array();
    for (const T &value : values) {
      ObjectWriter writer;
      describe(writer, value);
      list.push_back(std::move(writer.object));
    }
    object[key] = std::move(list);
  }
};

// Takes fields out of a JSON object; the first failure stays, later calls do nothing.
class ObjectReader {
public:
  ObjectReader(const Json &object, std::string pointer, Status &status)
      : object_(object), pointer_(std::move(pointer)), status_(status) {
    if (status_.ok() && !object.is_object())
      status_ = Status::error((pointer_.empty() ? "/" : pointer_) + " is " + brief(object) + ", expected an object");
  }
  // Fails when the object holds a key that no field took: a reader that skips what it does not know runs half an
  // artifact.
  void finish() {
    if (!status_.ok())
      return;
    for (auto it = object_.begin(); it != object_.end(); ++it)
      if (std::find(seen_.begin(), seen_.end(), it.key()) == seen_.end()) {
        status_ = Status::error(pointer_ + "/" + it.key() + " is unknown to this runtime");
        return;
      }
  }

  void field(const char *key, std::string &out) {
    take(key, out, [&](const Json &v, const std::string &p) { return asString(v, p); });
  }
  void field(const char *key, bool &out) {
    take(key, out, [&](const Json &v, const std::string &p) { return asBool(v, p); });
  }
  void field(const char *key, double &out) {
    take(key, out, [&](const Json &v, const std::string &p) { return asNumber(v, p); });
  }
  void field(const char *key, int32_t &out, int64_t min, int64_t max) { integer(key, out, min, max); }
  void field(const char *key, uint64_t &out, int64_t min, int64_t max) { integer(key, out, min, max); }
  void field(const char *key, MemoryKind &out) {
    std::string name;
    field(key, name);
    auto at = std::find(std::begin(kindNames), std::end(kindNames), name);
    if (status_.ok() && at == std::end(kindNames))
      status_ = Status::error(pointer_ + "/" + key + " '" + name + "' is unknown");
    else if (status_.ok())
      out = static_cast<MemoryKind>(at - std::begin(kindNames));
  }
  void field(const char *key, std::vector<std::string> &out) {
    list(key, limits::artifactListEntries, [&](const Json &v, const std::string &at) {
      out.emplace_back();
      assign(out.back(), asString(v, at));
    });
  }
  void field(const char *key, std::vector<int32_t> &out, int64_t min, int64_t max) {
    list(key, limits::artifactListEntries, [&](const Json &v, const std::string &at) {
      out.emplace_back();
      assign(out.back(), asInteger(v, at, min, max));
    });
  }
  template <typename T> void optionalField(const char *key, std::optional<T> &out, int64_t min, int64_t max) {
    if (!status_.ok() || !find(object_, key))
      return;
    out.emplace();
    integer(key, *out, min, max);
  }
  void optionalField(const char *key, std::optional<double> &out) {
    if (!status_.ok() || !find(object_, key))
      return;
    out.emplace();
    take(key, *out, [&](const Json &v, const std::string &p) { return asNumber(v, p); });
  }
  template <typename T> void child(const char *key, T &out) {
    if (const Json *v = required(key)) {
      ObjectReader reader(*v, pointer_ + "/" + key, status_);
      describe(reader, out);
      reader.finish();
    }
  }
  template <typename T> void optionalChild(const char *key, std::optional<T> &out) {
    if (status_.ok() && find(object_, key))
      child(key, out.emplace());
  }
  template <typename T> void children(const char *key, std::vector<T> &out, uint64_t limit) {
    list(key, limit, [&](const Json &v, const std::string &at) {
      out.emplace_back();
      ObjectReader reader(v, at, status_);
      describe(reader, out.back());
      reader.finish();
    });
  }

private:
  const Json *required(const char *key) {
    if (!status_.ok())
      return nullptr;
    seen_.push_back(key);
    const Json *v = find(object_, key);
    if (!v)
      status_ = Status::error(pointer_ + "/" + key + " is missing");
    return v;
  }
  template <typename T, typename V> void assign(T &out, StatusOr<V> value) {
    if (!value.ok())
      status_ = value.status();
    else
      out = static_cast<T>(std::move(*value));
  }
  template <typename T, typename Read> void take(const char *key, T &out, Read read) {
    if (const Json *v = required(key))
      assign(out, read(*v, pointer_ + "/" + key));
  }
  template <typename T> void integer(const char *key, T &out, int64_t min, int64_t max) {
    take(key, out, [&](const Json &v, const std::string &p) { return asInteger(v, p, min, max); });
  }
  template <typename Each> void list(const char *key, uint64_t limit, Each each) {
    const Json *v = required(key);
    if (!v)
      return;
    std::string at = pointer_ + "/" + key;
    if (!v->is_array()) {
      status_ = Status::error(at + " is " + brief(*v) + ", expected a list");
      return;
    }
    if (v->size() > limit) {
      status_ = Status::error(at + " has " + std::to_string(v->size()) + " entries, limit " + std::to_string(limit));
      return;
    }
    for (size_t i = 0; i < v->size() && status_.ok(); ++i)
      each((*v)[i], at + "/" + std::to_string(i));
  }

  const Json &object_;
  std::string pointer_;
  Status &status_;
  std::vector<std::string> seen_;
};

// The tables. `Io` is an ObjectWriter with a const struct, or an ObjectReader with a mutable one.
template <typename M, typename T>
concept Of = std::same_as<std::remove_const_t<M>, T>;

template <typename Io> void describe(Io &io, Of<MemoryPlanEntry> auto &m) {
  io.field("name", m.name);
  io.field("kind", m.kind);
  io.field("bytes", m.bytes, 0, maxInt64);
  io.field("expression", m.expression);
}

template <typename Io> void describe(Io &io, Of<WeightPlace> auto &m) {
  io.field("name", m.name);
  io.field("offset", m.offset, 0, maxInt64);
  io.field("bytes", m.bytes, 0, maxInt64);
}

template <typename Io> void describe(Io &io, Of<TokenizerFacts> auto &m) {
  io.field("kind", m.kind);
  io.field("files", m.files);
  io.field("add_bos", m.addBos);
  io.field("add_eos", m.addEos);
}

template <typename Io> void describe(Io &io, Of<SpecialIds> auto &m) {
  io.optionalField("bos", m.bos, 0, maxInt32);
  io.optionalField("pad", m.pad, 0, maxInt32);
  io.field("eos", m.eos, 0, maxInt32);
}

template <typename Io> void describe(Io &io, Of<GenerationDefaults> auto &m) {
  io.optionalField("temperature", m.temperature);
  io.optionalField("top_k", m.topK, 0, maxInt32);
  io.optionalField("top_p", m.topP);
  io.optionalField("min_p", m.minP);
  io.optionalField("repetition_penalty", m.repetitionPenalty);
}

template <typename Io> void describe(Io &io, Of<PerplexityFacts> auto &m) {
  io.field("text_hash", m.textHash);
  io.field("tokens", m.tokens, 1, maxInt64);
  io.field("window", m.window, 2, limits::artifactContext);
  io.field("value", m.value);
  io.field("reference", m.reference);
}

template <typename Io> void describe(Io &io, Of<RankFile> auto &m) {
  io.field("of", m.of);
  io.field("file", m.file);
}

template <typename Io> void describe(Io &io, Of<RankFacts> auto &m) {
  io.field("number", m.number, 0, limits::artifactRanks);
  io.field("stages", m.grid.stages, 1, limits::artifactRanks);
  io.field("ranks", m.grid.ranks, 1, limits::artifactRanks);
  io.field("identity", m.identity);
  io.field("collective_bytes", m.collectiveBytes, 0, maxInt64);
  io.field("exchanges", m.exchanges, 0, limits::artifactExchanges);
  io.field("row_blocks", m.rowBlocks, 1, limits::artifactRowBlocks);
  io.field("rows_per_block", m.rowsPerBlock, 1, limits::artifactStepTokens);
  io.children("files", m.files, limits::artifactListEntries);
}

template <typename Io> void describe(Io &io, Of<Section> auto &m) {
  io.field("file", m.file);
  io.field("bytes", m.bytes, 0, maxInt64);
  io.field("hash", m.hash);
}

template <typename Io> void describe(Io &io, Of<Manifest> auto &m) {
  io.field("writer", m.writer);
  io.field("abi_version", m.abiVersion, 0, maxInt32);
  io.field("family", m.family);
  io.field("architecture", m.architecture);
  io.field("target", m.target);
  io.field("cpu_features", m.cpuFeatures);
  io.field("vocabulary", m.vocabulary, 1, maxInt32);
  io.field("hidden", m.hidden, 1, maxInt32);
  io.field("record_channels", m.recordChannels, 1, maxInt32);
  io.field("num_layers", m.numLayers, 1, static_cast<int64_t>(limits::layers));
  io.field("context", m.context, 1, limits::artifactContext);
  io.field("max_tokens", m.maxTokens, 1, limits::artifactStepTokens);
  io.field("max_sequences", m.maxSequences, 1, limits::artifactSequences);
  io.field("max_logit_rows", m.maxLogitRows, 1, limits::artifactStepTokens);
  io.field("max_workers", m.maxWorkers, 1, limits::artifactWorkers);
  io.field("page_tokens", m.pageTokens, 0, limits::artifactContext);
  io.field("page_bytes", m.pageBytes, 0, maxInt64);
  io.field("num_pages", m.numPages, 0, maxInt32);
  io.field("state_bytes", m.stateBytes, 0, maxInt64);
  io.field("arena_bytes", m.arenaBytes, 0, maxInt64);
  io.field("scratch_bytes_per_worker", m.scratchBytesPerWorker, 0, maxInt64);
  io.field("weights_bytes", m.weightsBytes, 0, maxInt64);
  io.children("memory_plan", m.memoryPlan, limits::artifactListEntries);
  io.child("tokenizer", m.tokenizer);
  io.child("special_ids", m.specialIds);
  io.child("generation", m.generation);
  io.optionalChild("perplexity", m.perplexity);
  io.optionalChild("rank", m.rank);
  io.children("sections", m.sections, limits::artifactListEntries);
  io.children("weights", m.weights, limits::tensorsPerModel);
}

std::string hashOfManifest(std::string text) {
  text.replace(hashPrefix.size(), hashDigits, hashDigits, '0');
  return hashHex(text);
}

// Magic and version come before anything else is believed: another version may have other keys and another hash.
Status checkVersion(const Json &root) {
  const Json *name = find(root, "format");
  if (!name || !name->is_string() || name->get_ref<const std::string &>() != formatName)
    return Status::error("/format is " + (name ? brief(*name) : "missing") + ", expected \"" + std::string(formatName) +
                         "\": this is no artifact; write one with llmc compile");
  const Json *version = find(root, "version");
  if (!version)
    return Status::error("/version is missing");
  LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*version, "/version", 0, maxInt32));
  if (number == artifactFormatVersion)
    return {};
  const Json *writer = find(root, "writer");
  return Status::error("format " + std::to_string(number) + ", written by " +
                       (writer && writer->is_string() ? writer->get<std::string>() : "an unknown program") +
                       "; this runtime reads format " + std::to_string(artifactFormatVersion) + "; compile it again");
}

Status checkOwnHash(const Json &root, std::string_view text) {
  const Json *stored = find(root, "hash");
  if (!stored)
    return Status::error("/hash is missing");
  LLMC_ASSIGN_OR_RETURN(std::string hash, asString(*stored, "/hash"));
  std::string found = "none";
  if (text.size() > hashPrefix.size() + hashDigits && text.substr(0, hashPrefix.size()) == hashPrefix)
    found = hashOfManifest(std::string(text));
  if (hash != found)
    return Status::error("checksum differs: " + brief(*stored) + " stored, " + found + " found; compile it again");
  return {};
}

} // namespace

std::string_view memoryKindName(MemoryKind kind) { return kindNames[static_cast<size_t>(kind)]; }

const Section *Manifest::findSection(std::string_view file) const {
  for (const Section &section : sections)
    if (section.file == file)
      return &section;
  return nullptr;
}

std::string Manifest::fileOf(std::string_view section) const {
  if (rank)
    for (const RankFile &file : rank->files)
      if (file.of == section)
        return file.file;
  return std::string(section);
}

std::string manifestFileOf(int32_t rank) {
  return rank == 0 ? manifestFile : "manifest-" + std::to_string(rank) + ".json";
}

std::string manifestText(const Manifest &manifest) {
  ObjectWriter writer;
  writer.object["hash"] = std::string(hashDigits, '0');
  writer.object["format"] = formatName;
  writer.object["version"] = artifactFormatVersion;
  describe(writer, manifest);
  // Bytes that are no UTF-8 become U+FFFD; checkManifest has refused them where they matter.
  std::string text = writer.object.dump(1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
  text.replace(hashPrefix.size(), hashDigits, hashOfManifest(text));
  return text;
}

StatusOr<Manifest> parseManifest(std::string_view text, const std::string &file) {
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(text, file));
  LLMC_RETURN_IF_ERROR(checkVersion(root).inside(file));
  LLMC_RETURN_IF_ERROR(checkOwnHash(root, text).inside(file));
  for (const char *key : {"hash", "format", "version"})
    root.erase(key);
  Manifest manifest;
  Status status;
  ObjectReader reader(root, "", status);
  describe(reader, manifest);
  reader.finish();
  LLMC_RETURN_IF_ERROR(status.inside(file));
  LLMC_RETURN_IF_ERROR(checkManifest(manifest, file));
  return manifest;
}

} // namespace llmc
