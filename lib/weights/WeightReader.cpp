// Concatenation, row ranges, head order and the addend of llm.weight, applied while reading.
#include "lib/weights/WeightReader.h"
#include "runtime/support/CheckedSize.h"
#include <algorithm>

namespace llmc {
namespace {

std::string shapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Elements behind one index of dimension 0, or nothing when the shape is no shape.
std::optional<int64_t> elementsPerRow(std::span<const int64_t> shape) {
  if (shape.empty() || shape[0] < 0)
    return std::nullopt;
  CheckedSize product(1);
  for (int64_t dimension : shape.subspan(1)) {
    if (dimension < 0)
      return std::nullopt;
    product = product * static_cast<uint64_t>(dimension);
  }
  if (!product.fits(INT64_MAX))
    return std::nullopt;
  return static_cast<int64_t>(*product.value());
}

} // namespace

WeightRecipe recipeOf(llm::WeightOp weight) {
  WeightRecipe recipe;
  recipe.name = weight.getSymName().str();
  auto shape = llvm::cast<llm::WeightType>(weight.getType()).getShape();
  recipe.shape.assign(shape.begin(), shape.end());
  recipe.add = weight.getAdd() ? weight.getAdd()->convertToDouble() : 0.0;
  // The verifier has checked names and types of the entries.
  for (auto entries : weight.getSources().getAsRange<mlir::DictionaryAttr>()) {
    WeightSource source;
    source.tensor = entries.getAs<mlir::StringAttr>("tensor").str();
    if (auto rows = entries.getAs<mlir::DenseI64ArrayAttr>("rows"))
      source.rows = {rows[0], rows[1]};
    if (auto unpermute = entries.getAs<mlir::IntegerAttr>("unpermute"))
      source.unpermuteHeadRows = unpermute.getInt();
    recipe.sources.push_back(std::move(source));
  }
  return recipe;
}

StatusOr<WeightReader> WeightReader::open(const WeightRecipe &recipe, const TensorReader &tensors) {
  WeightReader reader;
  reader.tensors_ = &tensors;
  reader.name_ = recipe.name;
  reader.add_ = recipe.add;
  std::string where = "weight '" + recipe.name + "'";
  if (recipe.shape.empty() || recipe.shape.size() > 2)
    return Status::error(where + " has " + std::to_string(recipe.shape.size()) + " dimensions, expected one or two");
  reader.rowLength_ = recipe.shape.size() == 2 ? recipe.shape[1] : 1;
  for (const WeightSource &source : recipe.sources)
    if (Status added = reader.addSource(source, tensors); !added.ok())
      return added.inside(where);
  if (reader.numRows_ != recipe.shape[0])
    return Status::error(where + " has " + std::to_string(recipe.shape[0]) + " rows, but its sources have " +
                         std::to_string(reader.numRows_) + " together");
  return reader;
}

Status WeightReader::addSource(const WeightSource &source, const TensorReader &tensors) {
  std::string where = "tensor '" + source.tensor + "'";
  LLMC_ASSIGN_OR_RETURN(TensorInfo info, tensors.info(source.tensor));
  std::optional<int64_t> perRow = elementsPerRow(info.shape);
  if (!perRow || *perRow != rowLength_)
    return Status::error(where + " is " + shapeText(info.shape) + ", expected rows of " + std::to_string(rowLength_) +
                         (rowLength_ == 1 ? " element" : " elements"));
  int64_t first = source.rows ? source.rows->first : 0;
  int64_t end = source.rows ? source.rows->second : info.shape[0];
  if (first < 0 || first >= end || end > info.shape[0])
    return Status::error(where + " has " + std::to_string(info.shape[0]) + " rows, but rows " + std::to_string(first) +
                         " to " + std::to_string(end) + " are asked for");
  int64_t head = source.unpermuteHeadRows;
  if (head < 0 || head % 2 != 0 || (head > 0 && (end - first) % head != 0))
    return Status::error(where + " gives " + std::to_string(end - first) + " rows, which are no whole heads of " +
                         std::to_string(head) + " rows in pairs");
  int64_t total;
  if (__builtin_add_overflow(numRows_, end - first, &total))
    return Status::error(where + " makes the number of rows overflow 64 bits");
  sources_.push_back({source.tensor, info.type, first, numRows_, total, head});
  numRows_ = total;
  return {};
}

size_t WeightReader::sourceOf(int64_t row) const {
  auto behind = std::upper_bound(sources_.begin(), sources_.end(), row,
                                 [](int64_t wanted, const Source &source) { return wanted < source.end; });
  return static_cast<size_t>(behind - sources_.begin());
}

int64_t WeightReader::tensorRow(const Source &source, int64_t row) const {
  int64_t local = row - source.begin;
  if (source.unpermute > 0) {
    int64_t half = source.unpermute / 2;
    int64_t inHead = local % source.unpermute;
    // First members of the published pairs (2i, 2i + 1) make the first half of a head, second members the second.
    local += (inHead < half ? 2 * inHead : 2 * (inHead - half) + 1) - inHead;
  }
  return source.firstRow + local;
}

size_t WeightReader::runLength(std::span<const int64_t> rows) const {
  const Source &source = sources_[sourceOf(rows[0])];
  int64_t first = tensorRow(source, rows[0]);
  size_t run = 1;
  while (run < rows.size() && rows[run] >= source.begin && rows[run] < source.end &&
         tensorRow(source, rows[run]) == first + static_cast<int64_t>(run))
    ++run;
  return run;
}

Status WeightReader::readRows(std::span<const int64_t> rows, float *out) const {
  for (size_t i = 0; i < rows.size();) {
    float *target = out + static_cast<int64_t>(i) * rowLength_;
    if (rows[i] < 0) {
      std::fill_n(target, rowLength_, 0.0f);
      ++i;
      continue;
    }
    if (rows[i] >= numRows_)
      return Status::error("weight '" + name_ + "' has " + std::to_string(numRows_) + " rows, row " +
                           std::to_string(rows[i]) + " is asked for");
    const Source &source = sources_[sourceOf(rows[i])];
    size_t run = runLength(rows.subspan(i));
    int64_t count = static_cast<int64_t>(run);
    if (Status read = tensors_->readRows(source.tensor, tensorRow(source, rows[i]), count, target); !read.ok())
      return read.inside("weight '" + name_ + "'");
    if (add_ != 0.0)
      for (int64_t j = 0; j < count * rowLength_; ++j)
        target[j] += static_cast<float>(add_);
    i += run;
  }
  return {};
}

Status WeightReader::readBlocks(std::span<const int64_t> rows, size_t rowBytes, uint8_t *out) const {
  for (size_t i = 0; i < rows.size();) {
    if (rows[i] < 0) {
      ++i;
      continue;
    }
    const Source &source = sources_[sourceOf(rows[i])];
    size_t run = runLength(rows.subspan(i));
    Status read = tensors_->readBlocks(source.tensor, tensorRow(source, rows[i]), static_cast<int64_t>(run),
                                       {out + i * rowBytes, run * rowBytes});
    if (!read.ok())
      return read.inside("weight '" + name_ + "'");
    i += run;
  }
  return {};
}

Status readWeightRows(const WeightRecipe &recipe, const TensorReader &tensors, std::span<const int64_t> rows,
                      float *out) {
  LLMC_ASSIGN_OR_RETURN(WeightReader reader, WeightReader::open(recipe, tensors));
  return reader.readRows(rows, out);
}

} // namespace llmc
