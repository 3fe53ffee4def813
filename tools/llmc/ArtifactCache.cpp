// artifactFor: artifacts of models that were given where an artifact is needed, kept in the user's cache.
#include "lib/target/CpuTarget.h"
#include "runtime/artifact/Loader.h"
#include "runtime/support/File.h"
#include "runtime/support/Hash.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Interrupt.h"
#include "tools/llmc/ModelText.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace llmc {
namespace {

// Name, size and time of change of a file: what tells it from another state of itself without reading it.
void addFile(Json &key, const fs::path &path) {
  std::error_code error;
  uint64_t bytes = fs::file_size(path, error);
  auto changed = fs::last_write_time(path, error).time_since_epoch().count();
  key.push_back({path.string(), bytes, static_cast<int64_t>(changed)});
}

void addFolder(Json &key, const fs::path &folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file(error))
      files.push_back(at->path());
  std::sort(files.begin(), files.end());
  for (const fs::path &file : files)
    addFile(key, file);
}

// Every file that compiling may read.
Json filesOf(const ModelFiles &files) {
  std::error_code error;
  Json key = {fs::canonical(files.path(), error).string()};
  for (const std::string &file : files.weightFiles())
    addFile(key, file);
  if (!files.gguf()) {
    fs::path folder = fs::path(files.configPath()).parent_path();
    addFolder(key, folder);
    addFolder(key, folder / "additional_chat_templates");
  }
  return key;
}

// "llama-3.2-1b" of ".../llama-3.2-1b/": so that people recognise the folders.
std::string readableName(const std::string &model) {
  std::error_code error;
  fs::path path = fs::canonical(model, error);
  std::string name = path.filename() == "config.json" ? path.parent_path().filename() : path.stem();
  if (isFolder(model))
    name = path.filename();
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_')
      c = '_';
  return name.substr(0, 64);
}

void noteUnusedOptions(const std::string &artifact, const CompileOptions &options) {
  const CompileOptions defaults;
  if (options.target != defaults.target || options.weights != defaults.weights ||
      options.activations != defaults.activations || options.kv != defaults.kv ||
      options.maxTokens != defaults.maxTokens || options.maxSequences != defaults.maxSequences ||
      options.context != defaults.context || options.grid.ranks() > 1 || options.emulate || !options.without.empty() ||
      !options.models.empty())
    std::fprintf(stderr, "note: %s is compiled already, the options of compilation change nothing\n", artifact.c_str());
}

} // namespace

StatusOr<std::string> artifactCacheFolder() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path own = variable("LLMC_CACHE"); !own.empty())
    return own.string();
  if (fs::path shared = variable("XDG_CACHE_HOME"); !shared.empty())
    return (shared / "llmc").string();
  if (fs::path home = variable("HOME"); !home.empty())
    return (home / ".cache" / "llmc").string();
  return Status::error("there is no place for compiled models: none of LLMC_CACHE, XDG_CACHE_HOME and HOME is set; set "
                       "LLMC_CACHE to a folder, or compile with -o");
}

StatusOr<std::string> inputsKey(const ModelFiles &files, const CompileOptions &options) {
  LLMC_ASSIGN_OR_RETURN(CpuTarget target, findCpuTarget(options.target));
  Json key = filesOf(files);
  key.push_back({target.name, options.weights, options.activations, options.kv, options.maxTokens, options.maxSequences,
                 options.context, options.emulate, options.without, options.grid.stages, options.grid.group.experts,
                 options.grid.group.tensor});
  if (!options.models.empty())
    addFolder(key, options.models);
  // Another compiler makes another artifact.
  std::error_code error;
  addFile(key, fs::read_symlink("/proc/self/exe", error));
  return hashHex(key.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace));
}

StatusOr<std::string> artifactFor(const std::string &path, const CompileOptions &options, ArtifactNeeds needs) {
  if (fileExists(path + "/" + manifestFile)) {
    noteUnusedOptions(path, options);
    return path;
  }
  // A path that is no model is an error here, before anything is compiled.
  LLMC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(path));
  LLMC_RETURN_IF_ERROR(files.requireWeights());
  LLMC_ASSIGN_OR_RETURN(std::string key, inputsKey(files, options));
  LLMC_ASSIGN_OR_RETURN(std::string cache, artifactCacheFolder());
  std::string artifact = cache + "/" + readableName(path) + "-" + key.substr(0, 16);
  // One that is damaged is compiled again.
  if (fileExists(artifact + "/" + manifestFile) && LoadedArtifact::openForInspection(artifact).ok()) {
    if (options.verbose)
      std::fprintf(stderr, "note: reusing %s\n", artifact.c_str());
    return artifact;
  }
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(path, options.models));
  if (needs == ArtifactNeeds::Tokenizer)
    LLMC_RETURN_IF_ERROR(requireTokenizer(model.files, "give token ids with --ids"));
  std::error_code error;
  fs::create_directories(cache, error);
  if (error)
    return Status::error(cache + ": cannot make the folder for compiled models: " + error.message());
  for (const std::string &note : model.spec.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  std::fprintf(stderr, "note: compiling %s into %s\n", path.c_str(), artifact.c_str());
  CleanUpOnInterrupt cleanUp;
  if (StatusOr<Manifest> compiled = compileModel(model, options, artifact); !compiled.ok())
    return compiled.status();
  return artifact;
}

} // namespace llmc
