// Joined sources, their views, the map and the addend of llm.weight, applied while reading.
#include "lib/weights/WeightReader.h"
#include "lib/importer/files/TensorType.h"
#include <algorithm>
#include <cmath>

namespace llmc {
namespace {

std::vector<std::pair<int64_t, int64_t>> pairsOf(llvm::ArrayRef<int64_t> flat) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

std::vector<int64_t> integersOf(mlir::DictionaryAttr entries, llvm::StringRef name) {
  auto list = entries.getAs<mlir::DenseI64ArrayAttr>(name);
  return list ? list.asArrayRef().vec() : std::vector<int64_t>();
}

int64_t integerOf(mlir::DictionaryAttr entries, llvm::StringRef name) {
  auto value = entries.getAs<mlir::IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

// Where nothing says how a tensor is seen, it has the rows of the weight: a transposed one is no accident to accept.
// Those of a stack of matrices may be the last dimension of three.
Status checkRows(const WeightSource &source, std::span<const int64_t> shape, int64_t rowLength, bool isStack) {
  if (!source.dims.empty() || !source.order.empty() || !source.take.empty())
    return {};
  int64_t perRow = 1; // the product of the whole shape fits 63 bits: viewOf has computed it
  for (size_t i = shape.size(); i-- > 1 && !(isStack && perRow == rowLength);)
    perRow *= shape[i];
  if (perRow == rowLength)
    return {};
  return Status::error("is " + printShape(shape) + ", expected rows of " + std::to_string(rowLength) +
                       (rowLength == 1 ? " element" : " elements"));
}

// What `rank` has of a dimension, of which `triples` say partition, begin and size of each part.
std::vector<std::pair<int64_t, int64_t>> rangesOf(llvm::ArrayRef<int64_t> triples, mlir::ArrayAttr partitions,
                                                  int64_t rank) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (size_t i = 0; i + 2 < triples.size(); i += 3) {
    int64_t begin = triples[i + 1], end = begin + triples[i + 2];
    if (triples[i] >= 0) {
      auto flat = llvm::cast<mlir::DenseI64ArrayAttr>(partitions[static_cast<unsigned>(triples[i])]).asArrayRef();
      end = begin + flat[static_cast<size_t>(2 * rank + 1)];
      begin += flat[static_cast<size_t>(2 * rank)];
    }
    if (begin < end)
      ranges.emplace_back(begin, end);
  }
  return ranges;
}

} // namespace

WeightRecipe recipeOf(llm::WeightOp weight) {
  auto rank = weight->getParentOfType<mlir::ModuleOp>()->getAttrOfType<mlir::IntegerAttr>("llmc.rank");
  return recipeOf(weight, rank ? rank.getInt() : 0);
}

WeightRecipe recipeOf(llm::WeightOp weight, int64_t rank) {
  WeightRecipe recipe;
  recipe.name = weight.getSymName().str();
  auto shape = weight.getOf() ? *weight.getOf() : llvm::cast<llm::WeightType>(weight.getType()).getShape();
  recipe.shape.assign(shape.begin(), shape.end());
  if (weight.getParts())
    for (auto triples : weight.getParts()->getAsRange<mlir::DenseI64ArrayAttr>())
      recipe.taken.push_back(
          rangesOf(triples.asArrayRef(),
                   weight->getParentOfType<mlir::ModuleOp>()->getAttrOfType<mlir::ArrayAttr>("llmc.partitions"), rank));
  recipe.add = weight.getAdd() ? weight.getAdd()->convertToDouble() : 0.0;
  // The verifier has checked names and types of the entries.
  for (auto entries : weight.getSources().getAsRange<mlir::DictionaryAttr>()) {
    WeightSource source;
    source.tensor = entries.getAs<mlir::StringAttr>("tensor").str();
    source.stack = integerOf(entries, "stack");
    source.dims = integersOf(entries, "dims");
    source.take = pairsOf(integersOf(entries, "take"));
    source.order = integersOf(entries, "order");
    if (auto map = entries.getAs<mlir::StringAttr>("map"))
      source.map = map.str();
    if (std::vector<int64_t> rows = integersOf(entries, "rows"); !rows.empty())
      source.rows = {rows[0], rows[1]};
    source.unpermuteHeadRows = integerOf(entries, "unpermute");
    recipe.sources.push_back(std::move(source));
  }
  return recipe;
}

StatusOr<WeightReader> WeightReader::open(const WeightRecipe &recipe, const TensorReader &tensors) {
  WeightReader reader;
  reader.name_ = recipe.name;
  reader.add_ = recipe.add;
  std::string where = "weight '" + recipe.name + "'";
  size_t rank = recipe.shape.size();
  if (rank < 1 || rank > 3)
    return Status::error(where + " has " + std::to_string(rank) + " dimensions, expected one to three");
  reader.rowLength_ = rank > 1 ? recipe.shape.back() : 1;
  reader.numStacked_ = rank == 3 ? recipe.shape[0] : 1;
  int64_t rows = rank == 3 ? recipe.shape[1] : recipe.shape[0];
  if (reader.rowLength_ <= 0 || reader.numStacked_ <= 0)
    return Status::error(where + " is " + printShape(recipe.shape) + ", expected positive dimensions");
  for (const WeightSource &source : recipe.sources)
    if (Status added = reader.addSource(source, tensors, rank); !added.ok())
      return added.inside(where);
  if (reader.rowsPerMatrix_ != rows)
    return Status::error(where + " has " + std::to_string(rows) + " rows, but its sources have " +
                         std::to_string(reader.rowsPerMatrix_) + " together");
  auto take = [&](Taken &taken, size_t dimension, int64_t size) {
    StatusOr<Taken> found = takenOf(recipe, dimension, size);
    if (!found.ok())
      return found.status().inside(where);
    taken = std::move(*found);
    return Status();
  };
  if (!recipe.taken.empty() && recipe.taken.size() != rank)
    return Status::error(where + " has " + std::to_string(rank) + " dimensions, but parts of " +
                         std::to_string(recipe.taken.size()) + " are taken");
  LLMC_RETURN_IF_ERROR(take(reader.taken_.stack, rank == 3 ? 0 : 3, reader.numStacked_));
  LLMC_RETURN_IF_ERROR(take(reader.taken_.rows, rank == 3 ? 1 : 0, rows));
  LLMC_RETURN_IF_ERROR(take(reader.taken_.columns, rank > 1 ? rank - 1 : 3, reader.rowLength_));
  return reader;
}

// A dimension that the weight does not have is taken whole.
StatusOr<WeightReader::Taken> WeightReader::takenOf(const WeightRecipe &recipe, size_t dimension, int64_t size) {
  Taken taken{{{0, size}}, size, true};
  if (dimension >= recipe.taken.size())
    return taken;
  taken = {recipe.taken[dimension], 0, false};
  int64_t last = 0;
  for (auto [begin, end] : taken.ranges) {
    if (begin < last || begin >= end || end > size)
      return Status::error("takes " + std::to_string(begin) + " to " + std::to_string(end) + " of dimension " +
                           std::to_string(dimension) + ", which has " + std::to_string(size));
    taken.size += end - begin;
    last = end;
  }
  if (taken.size == 0)
    return Status::error("takes nothing of dimension " + std::to_string(dimension));
  taken.isAll = taken.size == size;
  return taken;
}

int64_t WeightReader::Taken::at(int64_t index) const {
  for (auto [begin, end] : ranges) {
    if (index < end - begin)
      return begin + index;
    index -= end - begin;
  }
  return -1; // no caller asks for more than there is
}

int64_t WeightReader::wholeRow(int64_t row) const {
  if (taken_.stack.isAll && taken_.rows.isAll)
    return row;
  return taken_.stack.at(row / taken_.rows.size) * rowsPerMatrix_ + taken_.rows.at(row % taken_.rows.size);
}

Status WeightReader::addSource(const WeightSource &source, const TensorReader &tensors, size_t rank) {
  Source added;
  for (int64_t i = 0; i < source.numTensors(); ++i) {
    std::string name = source.tensorAt(i), where = "tensor '" + name + "'";
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<const OpenTensor> opened, tensors.open(name));
    const TensorInfo &info = opened->info();
    StatusOr<SourceView> view = viewOf(source, info.shape, info.order);
    if (!view.ok())
      return Status::error(where + " " + view.status().message());
    if (i > 0 && view->size != added.view.size)
      return Status::error(where + " gives " + std::to_string(view->size) + " elements, but '" + source.tensorAt(0) +
                           "', which it is stacked with, " + std::to_string(added.view.size));
    // A stack of vectors makes rows of them.
    if (source.stack == 0 || rank == 3)
      if (Status fits = checkRows(source, info.shape, rowLength_, rank == 3); !fits.ok())
        return Status::error(where + " " + fits.message());
    added.view = std::move(*view);
    added.tensors.push_back(std::move(opened));
  }
  int64_t total;
  if (__builtin_mul_overflow(added.view.size, source.numTensors(), &total))
    return Status::error("tensor '" + source.tensor + "' makes the number of elements overflow 64 bits");
  int64_t unit = numStacked_ * rowLength_;
  if (total % unit != 0)
    return Status::error("tensor '" + source.tensor + "' gives " + std::to_string(total) +
                         " elements, which are no whole rows of " + std::to_string(rowLength_) +
                         (numStacked_ > 1 ? " for each of " + std::to_string(numStacked_) + " matrices" : ""));
  added.begin = rowsPerMatrix_;
  if (__builtin_add_overflow(rowsPerMatrix_, total / unit, &added.end))
    return Status::error("tensor '" + source.tensor + "' makes the number of rows overflow 64 bits");
  if (!source.map.empty()) {
    added.map = llm::symbolizeWeightMap(source.map);
    if (!added.map)
      return Status::error("tensor '" + source.tensor + "' is mapped by '" + source.map +
                           "' (known = neg_exp, unit_rows)");
  }
  added.transposed = transposedView(added.view, rowLength_);
  added.isStored = added.view.hasRuns(rowLength_) && added.view.size % rowLength_ == 0 && !added.map;
  rowsPerMatrix_ = added.end;
  sources_.push_back(std::move(added));
  return {};
}

WeightReader::Place WeightReader::placeOf(int64_t row) const {
  int64_t matrix = row / rowsPerMatrix_, inMatrix = row % rowsPerMatrix_;
  auto source = std::upper_bound(sources_.begin(), sources_.end(), inMatrix,
                                 [](int64_t wanted, const Source &candidate) { return wanted < candidate.end; });
  int64_t index = (matrix * (source->end - source->begin) + inMatrix - source->begin) * rowLength_;
  return {&*source, index / source->view.size, index % source->view.size};
}

TensorType WeightReader::typeOf(int64_t row) const { return placeOf(wholeRow(row)).open().info().type; }

bool WeightReader::isStoredRow(int64_t row) const {
  Place place = placeOf(wholeRow(row));
  if (add_ != 0.0 || !place.source->isStored)
    return false;
  // Part of a row is stored where it is one run of whole blocks.
  const Taken &columns = taken_.columns;
  int64_t block = infoOf(place.open().info().type).blockValues;
  return columns.isAll ||
         (columns.ranges.size() == 1 && columns.ranges[0].first % block == 0 && columns.ranges[0].second % block == 0);
}

size_t WeightReader::runLength(std::span<const int64_t> rows) const {
  int64_t inMatrix = rows[0] % rowsPerMatrix_, end = rows[0] - inMatrix + placeOf(rows[0]).source->end;
  size_t run = 1;
  while (run < rows.size() && rows[run] == rows[0] + static_cast<int64_t>(run) && rows[run] < end)
    ++run;
  return run;
}

// Rows of zeros stay as they are.
static void toUnitLength(std::span<float> row) {
  float sum = 0.0f;
  for (float value : row)
    sum += value * value;
  float length = std::max(std::sqrt(sum), 1e-12f);
  for (float &value : row)
    value /= length;
}

void WeightReader::finish(const Source &source, std::span<float> values) const {
  if (source.map == llm::WeightMap::NegExp)
    for (float &value : values)
      value = -std::exp(value);
  if (source.map == llm::WeightMap::UnitRows)
    for (size_t row = 0; row < values.size(); row += static_cast<size_t>(rowLength_))
      toUnitLength(values.subspan(row, static_cast<size_t>(rowLength_)));
  if (add_ != 0.0)
    for (float &value : values)
      value += static_cast<float>(add_);
}

// Rows that lie next to each other in storage: for every column a run of them.
Status WeightReader::readTransposed(const Source &source, const OpenTensor &tensor, int64_t row, int64_t count,
                                    float *out) const {
  SourceView rows{source.view.offset, source.transposed.rows, 0}, columns{0, source.transposed.columns, 0};
  std::vector<float> run;
  for (int64_t done = 0; done < count;) {
    auto [at, length] = rows.runAt(row + done);
    length = std::min(length, count - done);
    run.resize(static_cast<size_t>(length));
    for (int64_t column = 0; column < rowLength_; ++column) {
      LLMC_RETURN_IF_ERROR(tensor.readValues(at + columns.runAt(column).first, length, run.data()));
      for (int64_t i = 0; i < length; ++i)
        out[(done + i) * rowLength_ + column] = run[static_cast<size_t>(i)];
    }
    done += length;
  }
  return {};
}

// `count` rows that follow each other in one source of one matrix.
Status WeightReader::readRun(int64_t row, int64_t count, float *out) const {
  Place place = placeOf(row);
  const Source &source = *place.source;
  int64_t left = count * rowLength_;
  for (float *to = out; left > 0; ++place.tensor, place.index = 0) {
    const OpenTensor &tensor = place.open();
    int64_t here = std::min(left, source.view.size - place.index);
    left -= here;
    if (source.transposed.applies()) {
      LLMC_RETURN_IF_ERROR(readTransposed(source, tensor, place.index / rowLength_, here / rowLength_, to));
      to += here;
      continue;
    }
    for (int64_t end = place.index + here; place.index < end;) {
      auto [at, length] = source.view.runAt(place.index);
      length = std::min(length, end - place.index);
      LLMC_RETURN_IF_ERROR(tensor.readValues(at, length, to));
      place.index += length;
      to += length;
    }
  }
  finish(source, {out, static_cast<size_t>(count * rowLength_)});
  return {};
}

Status WeightReader::readColumns(int64_t row, int64_t begin, int64_t count, float *out) const {
  Place place = placeOf(row);
  for (int64_t index = place.index + begin, end = index + count; index < end;) {
    auto [at, length] = place.source->view.runAt(index);
    length = std::min(length, end - index);
    LLMC_RETURN_IF_ERROR(place.open().readValues(at, length, out));
    index += length;
    out += length;
  }
  return {};
}

// Only what is taken is read, but where a row's length matters.
Status WeightReader::readTakenColumns(int64_t row, float *out) const {
  const Source &source = *placeOf(row).source;
  float *to = out;
  if (source.map == llm::WeightMap::UnitRows || source.transposed.applies()) {
    std::vector<float> whole(static_cast<size_t>(rowLength_));
    LLMC_RETURN_IF_ERROR(readRun(row, 1, whole.data()));
    for (auto [begin, end] : taken_.columns.ranges)
      to = std::copy(whole.begin() + begin, whole.begin() + end, to);
    return {};
  }
  for (auto [begin, end] : taken_.columns.ranges) {
    LLMC_RETURN_IF_ERROR(readColumns(row, begin, end - begin, to));
    to += end - begin;
  }
  finish(source, {out, static_cast<size_t>(taken_.columns.size)});
  return {};
}

Status WeightReader::readRows(std::span<const int64_t> rows, float *out) const {
  std::vector<int64_t> whole;
  for (int64_t row : rows) {
    if (row >= numRows())
      return Status::error("weight '" + name_ + "' has " + std::to_string(numRows()) + " rows, row " +
                           std::to_string(row) + " is asked for");
    whole.push_back(row < 0 ? row : wholeRow(row));
  }
  for (size_t i = 0; i < whole.size();) {
    float *target = out + static_cast<int64_t>(i) * rowLength();
    if (whole[i] < 0) {
      std::fill_n(target, rowLength(), 0.0f);
      ++i;
      continue;
    }
    size_t run = taken_.columns.isAll ? runLength(std::span(whole).subspan(i)) : 1;
    Status read = taken_.columns.isAll ? readRun(whole[i], static_cast<int64_t>(run), target)
                                       : readTakenColumns(whole[i], target);
    LLMC_RETURN_IF_ERROR(read.inside("weight '" + name_ + "'"));
    i += run;
  }
  return {};
}

Status WeightReader::readBlocks(std::span<const int64_t> rows, size_t rowBytes, uint8_t *out) const {
  std::vector<int64_t> whole;
  for (int64_t row : rows)
    whole.push_back(row < 0 ? row : wholeRow(row));
  for (size_t i = 0; i < whole.size();) {
    if (whole[i] < 0) {
      ++i;
      continue;
    }
    Place place = placeOf(whole[i]);
    auto [at, length] = place.source->view.runAt(place.index + taken_.columns.ranges[0].first);
    // Whole rows of one run of one tensor in one piece.
    size_t run = 1;
    if (taken_.columns.isAll)
      run = std::min(runLength(std::span(whole).subspan(i)),
                     static_cast<size_t>(std::max<int64_t>(length / rowLength_, 1)));
    Status read =
        place.open().readBlocks(at, static_cast<int64_t>(run) * rowLength(), {out + i * rowBytes, run * rowBytes});
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
