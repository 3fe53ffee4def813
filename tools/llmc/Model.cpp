#include "tools/llmc/Model.h"

namespace llmc {

StatusOr<Model> openModel(const std::string &path, const std::string &descriptionsFolder, UnknownKeys unknownKeys) {
  LLMC_ASSIGN_OR_RETURN(ModelDescriptions descriptions, loadModelDescriptions(descriptionsFolder));
  LLMC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(path));
  LLMC_ASSIGN_OR_RETURN(ModelSpec spec, readModel(descriptions, files, unknownKeys));
  LLMC_ASSIGN_OR_RETURN(GenerationFacts generation, readGenerationFacts(files));
  spec.facts.insert(spec.facts.end(), generation.facts.begin(), generation.facts.end());
  std::vector<StoredTensor> stored = storedTensors(files);
  spec.notes.insert(spec.notes.end(), files.warnings().begin(), files.warnings().end());
  return Model{std::move(files), std::move(spec), std::move(generation), std::move(stored)};
}

Status checkWired(const Model &model) {
  const ModelSpec &spec = model.spec;
  if (spec.isWired())
    return {};
  std::string why = spec.missing.empty() ? "" : "; missing first: " + spec.missing.front().name + " (" + spec.missing.front().reason + ")";
  return Status::error(model.files.path() + ": family '" + spec.family + "' is known and not run" + why);
}

} // namespace llmc
