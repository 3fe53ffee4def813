// ConfigSource: where the facts of a model are stated, config.json or GGUF metadata, behind one way to ask.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/support/Status.h"
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llmc {

enum class ConfigFormat { HuggingFace, Gguf };

class ConfigSource {
public:
  virtual ~ConfigSource() = default;
  virtual ConfigFormat format() const = 0;
  // What messages call the whole: "config.json".
  virtual const std::string &file() const = 0;
  // The class the model says it is; empty when it says none.
  virtual std::string architecture() const = 0;
  // Top-level keys, in the order of the file. For GGUF, keys of the architecture come without its name and the dot.
  virtual std::vector<std::string> keys() const = 0;
  // The value, or nullptr when the key is absent. "a/b" is the member b of the object a.
  virtual const Json *get(const std::string &key) const = 0;
  // How messages name a key: "/rope_scaling/factor", "llama.block_count".
  virtual std::string pointer(const std::string &key) const = 0;
  // Whether the files hold this tensor; nothing when only the config is at hand.
  virtual std::optional<bool> hasTensor(const std::string &name) const = 0;
  // Likewise a tensor whose name is what `pattern` says, with `*` for any text.
  virtual std::optional<bool> hasMatch(const std::string &pattern) const = 0;
  // A small float32 tensor that states facts (rope divisors).
  virtual StatusOr<std::vector<float>> readTensor(const std::string &name) const = 0;
};

// A parsed config.json.
class HuggingFaceConfig final : public ConfigSource {
public:
  explicit HuggingFaceConfig(Json config, std::string file = "config.json")
      : config_(std::move(config)), file_(std::move(file)) {}
  // With the names from the weight headers, ties and prefixes are decided by what is stored.
  void setTensors(std::set<std::string> names) { tensors_ = std::move(names); }

  ConfigFormat format() const override { return ConfigFormat::HuggingFace; }
  const std::string &file() const override { return file_; }
  std::string architecture() const override;
  std::vector<std::string> keys() const override;
  const Json *get(const std::string &key) const override;
  std::string pointer(const std::string &key) const override { return "/" + key; }
  std::optional<bool> hasTensor(const std::string &name) const override;
  std::optional<bool> hasMatch(const std::string &pattern) const override;
  StatusOr<std::vector<float>> readTensor(const std::string &name) const override;

private:
  Json config_;
  std::string file_;
  std::optional<std::set<std::string>> tensors_;
};

// GGUF metadata, scalars and arrays as JSON, in the order of the file.
class GgufConfig final : public ConfigSource {
public:
  using TensorReader = std::function<StatusOr<std::vector<float>>(const std::string &)>;
  GgufConfig(std::vector<std::pair<std::string, Json>> metadata, std::set<std::string> tensors, TensorReader reader,
             std::string file);

  ConfigFormat format() const override { return ConfigFormat::Gguf; }
  const std::string &file() const override { return file_; }
  std::string architecture() const override { return architecture_; }
  std::vector<std::string> keys() const override;
  const Json *get(const std::string &key) const override;
  std::string pointer(const std::string &key) const override;
  std::optional<bool> hasTensor(const std::string &name) const override { return tensors_.count(name) != 0; }
  std::optional<bool> hasMatch(const std::string &pattern) const override;
  StatusOr<std::vector<float>> readTensor(const std::string &name) const override { return reader_(name); }

private:
  std::vector<std::string> order_;
  std::map<std::string, Json> metadata_;
  std::set<std::string> tensors_;
  TensorReader reader_;
  std::string file_, architecture_;
};

} // namespace llmc
