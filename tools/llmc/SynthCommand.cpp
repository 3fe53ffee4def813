// `llmc synth`: a checkpoint of random weights under the published names, for a config whose weights are not at hand.
#include "lib/synth/CheckpointConfig.h"
#include "lib/synth/WriteCheckpoint.h"
#include "runtime/support/Limits.h"
#include "runtime/support/Progress.h"
#include "runtime/support/UsableCores.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Interrupt.h"
#include "tools/llmc/Model.h"
#include <cinttypes>
#include <cstdio>
#include <filesystem>

namespace llmc {
namespace {

// What a program needs besides config and weights; copied where the model has it.
constexpr const char *copiedFiles[] = {"tokenizer.json",          "tokenizer.model",     "tiktoken.model",
                                       "tokenizer_config.json",   "vocab.json",          "merges.txt",
                                       "special_tokens_map.json", "added_tokens.json",   "about.json",
                                       "generation_config.json",  "chat_template.jinja", "chat_template.json"};

struct WeightType {
  const char *flag, *inConfig;
  TensorType type;
};
constexpr WeightType weightTypes[] = {
    {"f32", "float32", TensorType::F32}, {"bf16", "bfloat16", TensorType::BF16}, {"f16", "float16", TensorType::F16}};

// `stored`: the type that the config states; bfloat16 for the packed and 8-bit types, whose weights come out plain.
const WeightType &weightTypeOf(const std::string &flag, const std::string &stated) {
  for (const WeightType &type : weightTypes)
    if (flag == "stored" ? stated == type.inConfig : flag == type.flag)
      return type;
  return weightTypes[1];
}

struct Synthetic {
  ModelSpec spec;
  CheckpointContents contents;
  std::vector<std::string> notes;
};

StatusOr<Json> readConfig(const ModelFiles &files) {
  if (files.gguf())
    return Status::error(files.path() + ": is a GGUF file; a checkpoint is made from a config.json or its folder");
  std::string path = files.configPath();
  if (path.empty())
    return Status::error(files.path() + " has no config.json");
  return readJsonFile(path, limits::configBytes);
}

std::string markerText(const SynthCommand &command, const Synthetic &made, const WeightType &type) {
  Json marker = {
      {"made_by", "llmc synth"}, {"layers", made.spec.layers}, {"seed", command.seed}, {"weights", type.flag}};
  return marker.dump(2) + "\n";
}

void addSideFiles(const ModelFiles &files, CheckpointContents &contents) {
  for (const char *name : copiedFiles)
    if (std::string path = files.sideFile(name); !path.empty())
      contents.sideFiles.emplace_back(name, path);
  for (const std::string &path : files.additionalChatTemplates())
    contents.sideFiles.emplace_back("additional_chat_templates/" + std::filesystem::path(path).filename().string(),
                                    path);
}

StatusOr<Synthetic> prepare(const SynthCommand &command) {
  LLMC_ASSIGN_OR_RETURN(ModelDescriptions descriptions, loadModelDescriptions(command.models));
  LLMC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(command.model));
  LLMC_ASSIGN_OR_RETURN(Json published, readConfig(files));
  auto saidOfConfig = [&](const Status &status) { return status.inside(files.configPath()); };
  HuggingFaceConfig publishedSource(published, files.configPath());
  LLMC_ASSIGN_OR_RETURN(const ModelDescription *family, selectFamily(descriptions, publishedSource));
  // The whole model first: a config that is wrong is so for any number of layers.
  StatusOr<ModelSpec> whole = resolveModel(descriptions, publishedSource);
  if (!whole.ok())
    return saidOfConfig(whole.status());
  const WeightType &type = weightTypeOf(command.weights, whole->weightType);
  StatusOr<CheckpointConfig> config = checkpointConfig(*family, std::move(published), {command.layers, type.inConfig});
  if (!config.ok())
    return saidOfConfig(config.status());
  Synthetic made;
  made.notes = config->notes;
  made.contents.config = config->config.dump(2) + "\n";
  StatusOr<ModelSpec> spec = resolveModel(descriptions, HuggingFaceConfig(std::move(config->config), "config.json"));
  if (!spec.ok())
    return saidOfConfig(spec.status());
  made.spec = std::move(*spec);
  made.contents.tensors = randomTensors(made.spec);
  made.contents.type = type.type;
  made.contents.seed = command.seed;
  made.contents.marker = markerText(command, made, type);
  addSideFiles(files, made.contents);
  return made;
}

void report(const SynthCommand &command, const Synthetic &made, uint64_t bytes) {
  const std::string type(nameOf(made.contents.type));
  const size_t layers = static_cast<size_t>(made.spec.layers), tensors = made.contents.tensors.size();
  if (command.json) {
    Json json = {{"folder", command.output}, {"architecture", made.spec.architecture},
                 {"layers", layers},         {"tensors", tensors},
                 {"bytes", bytes},           {"type", type},
                 {"seed", command.seed}};
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("%s: %s, %zu layers, %zu tensors of %s, %" PRIu64 " bytes, seed %" PRIu64 "\n", command.output.c_str(),
              made.spec.architecture.c_str(), layers, tensors, type.c_str(), bytes, command.seed);
}

Status synthesize(const SynthCommand &command) {
  LLMC_ASSIGN_OR_RETURN(Synthetic made, prepare(command));
  for (const std::string &note : made.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  if (command.verbose)
    for (const auto &file : made.contents.sideFiles)
      std::fprintf(stderr, "note: %s is copied\n", file.first.c_str());
  LLMC_ASSIGN_OR_RETURN(uint64_t bytes, checkpointBytes(made.contents));
  Progress progress("write", "bytes", bytes);
  CheckpointWriting writing;
  writing.threads = command.jobs > 0 ? command.jobs : usableCores();
  writing.progress = [&](uint64_t written) { progress.update(written); };
  LLMC_RETURN_IF_ERROR(writeCheckpoint(made.contents, writing, command.output));
  progress.finish();
  report(command, made, bytes);
  return {};
}

} // namespace

int runSynth(const SynthCommand &command) {
  CleanUpOnInterrupt cleanUp;
  Status done = synthesize(command);
  return done.ok() ? exitDone : reportFault(done);
}

} // namespace llmc
