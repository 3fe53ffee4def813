// Three dialects: flat keys (fp8, gptq, awq, modelopt), groups of layers (compressed-tensors), one entry a layer
// (modelopt's mixed precision). All are searched for the same few keys.
#include "lib/importer/files/quantized/QuantizationConfig.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr int64_t largestGroup = 1 << 20;

class ConfigReader {
public:
  ConfigReader(QuantizationConfig &config, std::string pointer) : config_(config), pointer_(std::move(pointer)) {}

  Status read(const Json &object) {
    LLMC_RETURN_IF_ERROR(word(object, "quant_method", config_.method));
    LLMC_RETURN_IF_ERROR(word(object, "checkpoint_format", config_.format));
    if (config_.format.empty())
      LLMC_RETURN_IF_ERROR(word(object, "version", config_.format));
    config_.storesZerosMinusOne = config_.format != "gptq_v2";
    if (const Json *bits = stated(object, "bits"); bits && bits->is_number_integer()) {
      LLMC_ASSIGN_OR_RETURN(config_.bits, asInteger(*bits, pointer_ + "/bits", 1, 16));
    }
    if (const Json *symmetric = stated(object, "sym")) {
      LLMC_ASSIGN_OR_RETURN(config_.isSymmetric, asBool(*symmetric, pointer_ + "/sym"));
    }
    return sizes(object, pointer_, 0);
  }

private:
  static const Json *stated(const Json &object, std::string_view key) {
    const Json *found = find(object, key);
    return found && !found->is_null() ? found : nullptr;
  }

  Status word(const Json &object, std::string_view key, std::string &into) {
    const Json *found = stated(object, key);
    if (found && found->is_string())
      into = found->get<std::string>();
    return {};
  }

  // Group and block sizes wherever they stand in the object; those of activations say nothing about weights.
  Status sizes(const Json &value, const std::string &pointer, int depth) {
    if (depth > 4 || !value.is_object())
      return {};
    for (const auto &[key, inner] : value.items()) {
      std::string at = pointer + "/" + key;
      if (key == "group_size" && inner.is_number()) {
        LLMC_ASSIGN_OR_RETURN(int64_t size, asInteger(inner, at, -1, largestGroup));
        if (size == 0)
          return Status::error(at + " is 0, expected a number of inputs, or -1 for all");
        if (std::find(config_.groupSizes.begin(), config_.groupSizes.end(), size) == config_.groupSizes.end())
          config_.groupSizes.push_back(size);
      } else if ((key == "weight_block_size" || key == "block_structure") && inner.is_array()) {
        LLMC_RETURN_IF_ERROR(block(inner, at));
      } else if (key != "input_activations" && key != "output_activations") {
        LLMC_RETURN_IF_ERROR(sizes(inner, at, depth + 1));
      }
    }
    return {};
  }

  Status block(const Json &list, const std::string &at) {
    if (list.size() != 2)
      return Status::error(at + " is " + brief(list) + ", expected outputs and inputs of a block");
    LLMC_ASSIGN_OR_RETURN(int64_t outputs, asInteger(list[0], at + "/0", 1, largestGroup));
    LLMC_ASSIGN_OR_RETURN(int64_t inputs, asInteger(list[1], at + "/1", 1, largestGroup));
    config_.blockSize = {outputs, inputs};
    return {};
  }

  QuantizationConfig &config_;
  const std::string pointer_;
};

Status readFrom(const std::string &path, QuantizationConfig &config) {
  if (path.empty())
    return {};
  LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(path, limits::configBytes));
  for (const char *outer : {"", "text_config"}) {
    const Json *model = *outer ? find(json, outer) : &json;
    if (!model || !model->is_object())
      continue;
    for (const char *key : {"quantization_config", "compression_config", "quantization"})
      if (const Json *object = find(*model, key); object && object->is_object()) {
        config.file = path;
        std::string pointer = std::string(*outer ? "/text_config/" : "/") + key;
        return ConfigReader(config, pointer).read(*object).inside(path);
      }
  }
  return {};
}

} // namespace

StatusOr<QuantizationConfig> readQuantizationConfig(const std::string &config, const std::string &separate) {
  QuantizationConfig read;
  LLMC_RETURN_IF_ERROR(readFrom(separate, read));
  LLMC_RETURN_IF_ERROR(readFrom(config, read));
  return read;
}

} // namespace llmc
