// Access to an open model. How folders and files are found and cross-checked is in ModelFolder.cpp.
#include "lib/importer/files/ModelFiles.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/ModelFolder.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <filesystem>
#include <mutex>

namespace llmc {

namespace fs = std::filesystem;

struct ModelFiles::State {
  ModelListing listing;
  // One per weight file; mapped on first use and never unmapped before the end, so that spans stay valid.
  std::mutex mutex;
  std::vector<std::unique_ptr<MappedFile>> maps;

  // Found on first use, under a lock of their own: finding them maps files.
  std::mutex logicalMutex;
  std::optional<StatusOr<LogicalTensors>> logical;

  StatusOr<const MappedFile *> map(uint32_t file);
};

StatusOr<const MappedFile *> ModelFiles::State::map(uint32_t file) {
  std::lock_guard lock(mutex);
  if (!maps[file]) {
    LLMC_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(listing.weightFiles[file]));
    LLMC_RETURN_IF_ERROR(listing.identities[file].checkSame(mapped.identity(), mapped.path()));
    maps[file] = std::make_unique<MappedFile>(std::move(mapped));
  }
  return maps[file].get();
}

uint64_t ModelTensor::numRows() const {
  uint64_t rows = 1; // the parsers have checked the whole product
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

ModelFiles::ModelFiles(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelFiles::ModelFiles(ModelFiles &&) noexcept = default;
ModelFiles &ModelFiles::operator=(ModelFiles &&) noexcept = default;
ModelFiles::~ModelFiles() = default;

StatusOr<ModelFiles> ModelFiles::open(const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(ModelListing listing, listModel(path));
  auto state = std::make_unique<State>();
  state->maps.resize(listing.weightFiles.size());
  state->listing = std::move(listing);
  return ModelFiles(std::move(state));
}

const std::string &ModelFiles::path() const { return state_->listing.path; }
const std::vector<std::string> &ModelFiles::weightFiles() const { return state_->listing.weightFiles; }
const std::vector<ModelTensor> &ModelFiles::tensors() const { return state_->listing.tensors; }
const std::vector<std::string> &ModelFiles::warnings() const { return state_->listing.warnings; }
const GgufMetadata *ModelFiles::gguf() const { return state_->listing.gguf ? &*state_->listing.gguf : nullptr; }

StatusOr<const LogicalTensors *> ModelFiles::logical() const {
  std::lock_guard lock(state_->logicalMutex);
  if (!state_->logical)
    state_->logical.emplace(LogicalTensors::of(*this));
  if (!state_->logical->ok())
    return state_->logical->status();
  return &**state_->logical;
}

Status ModelFiles::requireWeights() const {
  if (hasWeights() || !state_->listing.weights.ok())
    return state_->listing.weights;
  return Status::error(path() + ": holds no weights, which this needs");
}

std::vector<std::string> ModelFiles::tensorNames() const {
  std::vector<std::string> names = state_->listing.namesWithoutWeights;
  for (const ModelTensor &tensor : tensors())
    names.push_back(tensor.name);
  return names;
}

const ModelTensor *ModelFiles::find(std::string_view name) const {
  const std::vector<ModelTensor> &all = tensors();
  auto it = std::lower_bound(all.begin(), all.end(), name,
                             [](const ModelTensor &tensor, std::string_view key) { return tensor.name < key; });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

std::string ModelFiles::sideFile(std::string_view name) const {
  const ModelListing &listing = state_->listing;
  if (name == "config.json" && !listing.configPath.empty())
    return listing.configPath;
  if (listing.folder.empty())
    return "";
  std::string path = listing.folder + "/" + std::string(name);
  return fileExists(path) ? path : "";
}

std::vector<std::string> ModelFiles::additionalChatTemplates() const {
  std::vector<std::string> paths;
  if (state_->listing.folder.empty())
    return paths;
  std::error_code error; // no such folder, no templates
  for (fs::directory_iterator it(state_->listing.folder + "/additional_chat_templates", error), end;
       !error && it != end; it.increment(error))
    if (it->path().extension() == ".jinja" && fileExists(it->path().string()))
      paths.push_back(it->path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

StatusOr<std::span<const uint8_t>> ModelFiles::bytes(const ModelTensor &tensor) const {
  LLMC_ASSIGN_OR_RETURN(const MappedFile *mapped, state_->map(tensor.file));
  LLMC_RETURN_IF_ERROR(mapped->checkUnchanged());
  // The listing has checked this; a tensor made by hand has not been.
  CheckedSize end = CheckedSize(tensor.offset) + tensor.bytes;
  if (!end.fits(mapped->bytes().size()))
    return Status::error(mapped->path() + ": tensor " + inQuotes(tensor.name) + " ends behind the file");
  return mapped->bytes().subspan(tensor.offset, tensor.bytes);
}

void ModelFiles::release(const ModelTensor &tensor) const {
  std::lock_guard lock(state_->mutex);
  if (const auto &mapped = state_->maps[tensor.file])
    mapped->dropPages(tensor.offset, tensor.bytes);
}

Status ModelFiles::checkUnchanged() const {
  std::lock_guard lock(state_->mutex);
  for (const auto &mapped : state_->maps)
    if (mapped)
      LLMC_RETURN_IF_ERROR(mapped->checkUnchanged());
  return {};
}

Status ModelFiles::readRows(const ModelTensor &tensor, uint64_t firstRow, uint64_t numRows,
                            std::span<float> out) const {
  std::string which = "tensor " + inQuotes(tensor.name);
  uint64_t rows = tensor.numRows();
  if (firstRow > rows || numRows > rows - firstRow)
    return Status::error(which + " has " + std::to_string(rows) + " rows, rows " + std::to_string(firstRow) + " to " +
                         std::to_string(firstRow + numRows) + " were asked for");
  if (out.size() != numRows * tensor.rowValues())
    return Status::error(which + ": " + std::to_string(numRows) + " rows take " +
                         std::to_string(numRows * tensor.rowValues()) + " values, there is room for " +
                         std::to_string(out.size()));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> stored, bytes(tensor));
  if (Status status = dequantize(tensor.type, stored, firstRow * tensor.rowValues(), out); !status.ok())
    return status.inside(which);
  return {};
}

} // namespace llmc
