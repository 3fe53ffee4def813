// Any tensors under any config: what is listed as a parameter reads to its end, by numbers and by codes, or one line
// says why there is none. Input is a line of config, then a line per tensor ("w.qweight I32 8 64"), whose bytes repeat
// what the input holds.
#include "lib/importer/files/quantized/LogicalTensors.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace llmc;

namespace {

constexpr uint64_t mostBytes = 1 << 20;

const std::string &workFolder() {
  static const std::string folder = [] {
    std::string made = std::filesystem::temp_directory_path() / ("llmc-quantized-fuzzer-" + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  return folder;
}

// A safetensors file of the tensors, or nothing where a line is none.
std::string modelBytes(std::istream &lines, std::string_view contents) {
  std::string header, line;
  uint64_t end = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, type, shape;
    words >> name >> type;
    std::vector<uint64_t> sizes;
    for (uint64_t size; words >> size; sizes.push_back(size))
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    std::optional<TensorType> known = safetensorsType(type);
    if (!known || name.find_first_of("\"\\") != std::string::npos)
      return "";
    StatusOr<uint64_t> bytes = tensorBytes(*known, sizes);
    if (!bytes.ok() || *bytes > mostBytes - end)
      return "";
    header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":")" + type + R"(","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(end) + "," + std::to_string(end + *bytes) + "]}";
    end += *bytes;
  }
  header += "}";
  uint64_t size = header.size();
  std::string file(reinterpret_cast<const char *>(&size), sizeof size);
  file += header;
  for (uint64_t i = 0; i < end; ++i)
    file += contents[i % contents.size()];
  return file;
}

void checkLine(const Status &status) {
  if (status.message().empty() || status.message().find('\n') != std::string::npos)
    std::abort();
}

// Groups of inputs may name what is not there, which shows when they are read.
void readAll(const ModelFiles &files, const LogicalTensor &tensor) {
  std::vector<float> values(*numElements(tensor.shape));
  if (Status read = readLogical(files, tensor, 0, values); !read.ok())
    checkLine(read);
  const TensorTypeInfo &type = infoOf(tensor.type);
  if (type.blockBytes != sizeof(CodedGroup))
    return;
  std::vector<uint8_t> codes(values.size() / type.blockValues * type.blockBytes);
  if (Status read = readLogicalBlocks(files, tensor, 0, values.size(), codes); !read.ok())
    checkLine(read);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size), config;
  std::istringstream lines(text);
  if (!std::getline(lines, config))
    return 0;
  std::string model = modelBytes(lines, text);
  if (model.empty())
    return 0;
  std::ofstream(workFolder() + "/config.json") << config;
  std::ofstream(workFolder() + "/model.safetensors", std::ios::binary) << model;
  StatusOr<ModelFiles> files = ModelFiles::open(workFolder());
  if (!files.ok())
    return checkLine(files.status()), 0;
  StatusOr<LogicalTensors> tensors = LogicalTensors::of(*files);
  if (!tensors.ok())
    return checkLine(tensors.status()), 0;
  for (const LogicalTensor &tensor : tensors->all())
    if (tensor.quantized)
      readAll(*files, tensor);
  return 0;
}
