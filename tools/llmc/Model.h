// A published model, opened: its files, the facts of its config and what it says about generation. Headers only.
#pragma once
#include "lib/importer/ReadModel.h"

namespace llmc {

struct Model {
  ModelFiles files;
  ModelSpec spec;
  GenerationFacts generation;
  std::vector<StoredTensor> stored; // empty without weights
};

/// Opens a folder, a .gguf file or a config.json. `descriptions`: a folder that overlays the built-in models/, or
/// empty. With UnknownKeys::Report, keys that may change the maths are listed instead of refused: for commands that
/// only look.
StatusOr<Model> openModel(const std::string &path, const std::string &descriptions = "",
                          UnknownKeys unknownKeys = UnknownKeys::Refuse);

/// An error that says why, where the model is known and not run.
Status checkWired(const Model &model);

} // namespace llmc
