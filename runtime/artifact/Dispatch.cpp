#include "runtime/artifact/Dispatch.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"

namespace llmc {
namespace {

constexpr char weightPrefix[] = "weight:";
constexpr int64_t mostCount = int64_t(1) << 53; // what a double holds exactly

// The counts of a cost by their keys, for reading and writing.
struct Count {
  const char *key;
  int64_t KernelCost::*member;
};
constexpr Count counts[] = {
    {"products", &KernelCost::products},
    {"passes", &KernelCost::passes},
    {"other_operations", &KernelCost::otherOperations},
    {"position_products", &KernelCost::positionProducts},
    {"weight_bytes", &KernelCost::weightBytes},
    {"row_bytes", &KernelCost::rowBytes},
    {"position_bytes", &KernelCost::positionBytes},
    {"sequence_bytes", &KernelCost::sequenceBytes},
    {"window", &KernelCost::window},
};

Json jsonOf(const KernelCost &cost) {
  Json json = {{"rows", cost.logitRows ? "logit_rows" : "rows"}};
  for (const Count &count : counts)
    json[count.key] = cost.*count.member;
  return json;
}

Json jsonOf(const KernelEntry &kernel) {
  return {{"op", kernel.name},
          {"kernel", kernel.shape + ":" + kernel.instruction},
          {"rows", kernel.kernelRows},
          {"row_block", kernel.rowBlock},
          {"tile_rows", kernel.tileRows},
          {"reason", kernel.reason},
          {"layers", kernel.layers},
          {"cost", jsonOf(kernel.cost)}};
}

// Reads the members of one object; the first failure stays.
class Reader {
public:
  Reader(const Json &object, std::string where) : object_(object), where_(std::move(where)) {}
  std::string text(const char *key) {
    const Json *value = member(key);
    StatusOr<std::string> text = value ? asString(*value, where_ + "/" + key) : status_;
    return take(std::move(text));
  }
  int64_t count(const char *key, int64_t min = 0, int64_t max = mostCount) {
    const Json *value = member(key);
    return value ? integer(*value, std::string("/") + key, min, max) : 0;
  }
  template <typename Integer> std::vector<Integer> list(const char *key, int64_t min, int64_t max) {
    std::vector<Integer> numbers;
    const Json *value = member(key);
    if (!value)
      return numbers;
    if (!value->is_array())
      fail(std::string("/") + key + " is " + brief(*value) + ", expected a list of numbers");
    else
      for (size_t i = 0; i < value->size(); ++i)
        numbers.push_back(
            static_cast<Integer>(integer((*value)[i], "/" + std::string(key) + "/" + std::to_string(i), min, max)));
    return numbers;
  }
  const Json *member(const char *key) {
    const Json *value = find(object_, key);
    if (!value)
      fail(std::string("/") + key + " is missing");
    return value;
  }
  void fail(const std::string &what) {
    if (status_.ok())
      status_ = Status::error(where_ + what + "; compile the model again");
  }
  const Status &status() const { return status_; }
  const std::string &where() const { return where_; }

private:
  int64_t integer(const Json &value, const std::string &pointer, int64_t min, int64_t max) {
    return take(asInteger(value, where_ + pointer, min, max));
  }
  template <typename T> T take(StatusOr<T> value) {
    if (value.ok())
      return std::move(*value);
    if (status_.ok())
      status_ = value.status();
    return {};
  }

  const Json &object_;
  std::string where_;
  Status status_;
};

StatusOr<KernelCost> costOf(const Json &object, const std::string &where) {
  Reader reader(object, where);
  KernelCost cost;
  std::string rows = reader.text("rows");
  cost.logitRows = rows == "logit_rows";
  if (!cost.logitRows && rows != "rows")
    reader.fail("/rows is '" + rows + "', expected rows or logit_rows");
  for (const Count &count : counts)
    cost.*count.member = reader.count(count.key);
  LLMC_RETURN_IF_ERROR(reader.status());
  return cost;
}

StatusOr<KernelEntry> kernelOf(const Json &object, const std::string &kernel, const std::string &where) {
  Reader reader(object, where);
  KernelEntry entry;
  size_t colon = std::min(kernel.find(':'), kernel.size());
  entry.shape = kernel.substr(0, colon);
  entry.instruction = kernel.substr(std::min(colon + 1, kernel.size()));
  entry.name = reader.text("op");
  entry.reason = reader.text("reason");
  entry.kernelRows = reader.count("rows");
  entry.rowBlock = reader.count("row_block");
  entry.tileRows = reader.count("tile_rows");
  entry.layers = reader.list<int32_t>("layers", -1, limits::layers);
  const Json *cost = reader.member("cost");
  LLMC_RETURN_IF_ERROR(reader.status());
  LLMC_ASSIGN_OR_RETURN(entry.cost, costOf(*cost, where + "/cost"));
  return entry;
}

StatusOr<WeightEntry> weightOf(const Json &object, const std::string &kernel, const std::string &where) {
  Reader reader(object, where);
  WeightEntry entry;
  entry.form = kernel.substr(std::size(weightPrefix) - 1);
  entry.name = reader.text("op");
  entry.reason = reader.text("reason");
  entry.shape = reader.list<int64_t>("shape", 1, UINT32_MAX / 4);
  LLMC_RETURN_IF_ERROR(reader.status());
  return entry;
}

} // namespace

std::string KernelEntry::instructionFor(int64_t rows) const {
  size_t plus = instruction.find('+');
  if (tileRows == 0 || plus == std::string::npos)
    return instruction;
  return 2 * rows > tileRows ? instruction.substr(0, plus) : instruction.substr(plus + 1);
}

std::string formatDispatch(const DispatchManifest &manifest) {
  Json list = Json::array();
  for (const KernelEntry &kernel : manifest.kernels)
    list.push_back(jsonOf(kernel));
  for (const WeightEntry &weight : manifest.weights)
    list.push_back({{"op", weight.name},
                    {"kernel", weightPrefix + weight.form},
                    {"shape", weight.shape},
                    {"reason", weight.reason}});
  return list.dump(1) + "\n";
}

StatusOr<DispatchManifest> parseDispatch(std::string_view text, const std::string &file) {
  LLMC_ASSIGN_OR_RETURN(Json list, parseJson(text, file, JsonRoot::Any));
  if (!list.is_array())
    return Status::error(file + ": is " + brief(list) + ", expected a list of kernels and weights");
  DispatchManifest manifest;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string where = file + ": /" + std::to_string(i);
    Reader reader(list[i], where);
    std::string kernel = reader.text("kernel");
    LLMC_RETURN_IF_ERROR(reader.status());
    if (kernel.starts_with(weightPrefix)) {
      LLMC_ASSIGN_OR_RETURN(WeightEntry weight, weightOf(list[i], kernel, where));
      manifest.weights.push_back(std::move(weight));
    } else {
      LLMC_ASSIGN_OR_RETURN(KernelEntry entry, kernelOf(list[i], kernel, where));
      manifest.kernels.push_back(std::move(entry));
    }
  }
  return manifest;
}

} // namespace llmc
