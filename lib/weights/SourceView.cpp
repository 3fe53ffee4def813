// Reshape, ranges and order of dimensions as strides, merged into as few dimensions as say the same.
#include "lib/weights/SourceView.h"
#include "lib/importer/files/TensorType.h"
#include "runtime/support/CheckedSize.h"

namespace llmc {
namespace {

using Dimension = SourceView::Dimension;

std::optional<int64_t> product(std::span<const int64_t> shape) {
  CheckedSize size(1);
  for (int64_t dimension : shape) {
    if (dimension < 0)
      return std::nullopt;
    size = size * static_cast<uint64_t>(dimension);
  }
  return size.fits(INT64_MAX) ? std::optional(static_cast<int64_t>(*size.value())) : std::nullopt;
}

std::vector<Dimension> merged(std::span<const Dimension> dimensions) {
  std::vector<Dimension> merged;
  for (Dimension next : dimensions) {
    if (next.size == 1)
      continue;
    if (!merged.empty() && merged.back().stride == next.size * next.stride)
      merged.back() = {merged.back().size * next.size, next.stride};
    else
      merged.push_back(next);
  }
  if (merged.empty())
    merged.push_back({1, 1});
  return merged;
}

// A tensor of `shape` whose dimension i is dimension order[i] of what is stored.
std::vector<Dimension> storedDimensions(std::span<const int64_t> shape, std::span<const size_t> order) {
  std::vector<int64_t> stored(shape.begin(), shape.end()), strides(shape.size());
  for (size_t i = 0; i < order.size(); ++i)
    stored[order[i]] = shape[i];
  int64_t stride = 1; // no product overflows: that of all dimensions does not
  for (size_t i = stored.size(); i-- > 0; stride *= std::max<int64_t>(stored[i], 1))
    strides[i] = stride;
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < shape.size(); ++i)
    dimensions.push_back({shape[i], strides[order.empty() ? i : order[i]]});
  return dimensions;
}

// The same elements in the same order as `dims`: each run of storage split into some of them. Nothing where a dimension
// would have to go on from one run to the next.
std::optional<std::vector<Dimension>> reshaped(std::span<const Dimension> dimensions, std::span<const int64_t> dims) {
  std::vector<Dimension> result;
  size_t next = 0;
  for (Dimension run : merged(dimensions)) {
    size_t first = next;
    int64_t size = 1;
    while (next < dims.size() && (size < run.size || dims[next] == 1))
      size *= dims[next++];
    if (size != run.size)
      return std::nullopt;
    std::vector<Dimension> split(next - first);
    int64_t stride = run.stride;
    for (size_t i = next; i-- > first; stride *= dims[i])
      split[i - first] = {dims[i], stride};
    result.insert(result.end(), split.begin(), split.end());
  }
  return result;
}

// What is stored, seen as the source's dims.
StatusOr<std::vector<Dimension>> dimensionsOf(const WeightSource &source, std::span<const int64_t> shape,
                                              std::span<const size_t> order) {
  const std::span<const int64_t> dims = source.dims.empty() ? shape : std::span<const int64_t>(source.dims);
  std::optional<int64_t> stored = product(shape), seen = product(dims);
  std::optional<std::vector<Dimension>> dimensions;
  if (stored && seen && *stored == *seen && *stored > 0) {
    dimensions = storedDimensions(shape, order);
    if (!source.dims.empty())
      dimensions = reshaped(*dimensions, dims);
  }
  if (stored && *stored == 0)
    return Status::error("is " + printShape(shape) + ", which holds no elements");
  if (!dimensions)
    return Status::error("is " + printShape(shape) + ", which cannot be seen as " + printShape(dims));
  if (dimensions->empty())
    dimensions->push_back({1, 1});
  return *dimensions;
}

Status takeRange(int64_t begin, int64_t end, size_t at, std::span<const int64_t> dims) {
  if (begin >= 0 && begin < end && end <= dims[at])
    return {};
  return Status::error("is seen as " + printShape(dims) + ", but " + std::to_string(begin) + " to " +
                       std::to_string(end) + " of dimension " + std::to_string(at) + " are taken");
}

Status takeRanges(const WeightSource &source, std::span<const int64_t> dims, SourceView &view) {
  if (source.take.empty())
    return {};
  if (source.take.size() != dims.size())
    return Status::error("is seen as " + printShape(dims) + ", but " + std::to_string(source.take.size()) +
                         " ranges are taken of it");
  for (size_t i = 0; i < dims.size(); ++i) {
    auto [begin, end] = source.take[i];
    LLMC_RETURN_IF_ERROR(takeRange(begin, end, i, dims));
    view.offset += begin * view.dimensions[i].stride;
    view.dimensions[i].size = end - begin;
  }
  return {};
}

// The older way to say it: rows of dimension 0.
Status takeRows(const WeightSource &source, std::span<const int64_t> dims, SourceView &view) {
  if (!source.rows)
    return {};
  auto [begin, end] = *source.rows;
  if (!source.take.empty())
    return Status::error("gives both rows and ranges of its dimensions; expected one of them");
  if (begin < 0 || begin >= end || end > dims[0])
    return Status::error("has " + std::to_string(dims[0]) + " rows, but rows " + std::to_string(begin) + " to " +
                         std::to_string(end) + " are asked for");
  view.offset += begin * view.dimensions[0].stride;
  view.dimensions[0].size = end - begin;
  return {};
}

Status reorder(const WeightSource &source, SourceView &view) {
  if (source.order.empty())
    return {};
  std::vector<int64_t> sorted = source.order;
  std::sort(sorted.begin(), sorted.end());
  bool isPermutation = sorted.size() == view.dimensions.size();
  for (size_t i = 0; i < sorted.size(); ++i)
    isPermutation &= sorted[i] == static_cast<int64_t>(i);
  if (!isPermutation)
    return Status::error("has " + std::to_string(view.dimensions.size()) + " dimensions, which " +
                         printShape(source.order) + " puts in no order");
  std::vector<Dimension> ordered;
  for (int64_t from : source.order)
    ordered.push_back(view.dimensions[static_cast<size_t>(from)]);
  view.dimensions = std::move(ordered);
  return {};
}

// Row 2i + h of a head becomes row i + h * half: [heads][2][half] of what is stored as [heads][half][2].
Status unpermute(const WeightSource &source, SourceView &view) {
  int64_t head = source.unpermuteHeadRows;
  if (head == 0)
    return {};
  Dimension rows = view.dimensions.front();
  if (head < 0 || head % 2 != 0 || rows.size % head != 0)
    return Status::error("gives " + std::to_string(rows.size) + " rows, which are no whole heads of " +
                         std::to_string(head) + " rows in pairs");
  view.dimensions.front() = {rows.size / head, rows.stride * head};
  view.dimensions.insert(view.dimensions.begin() + 1, {{2, rows.stride}, {head / 2, 2 * rows.stride}});
  return {};
}

} // namespace

StatusOr<SourceView> viewOf(const WeightSource &source, std::span<const int64_t> shape, std::span<const size_t> order) {
  SourceView view;
  LLMC_ASSIGN_OR_RETURN(view.dimensions, dimensionsOf(source, shape, order));
  std::vector<int64_t> dims;
  for (Dimension dimension : view.dimensions)
    dims.push_back(dimension.size);
  LLMC_RETURN_IF_ERROR(takeRanges(source, dims, view));
  LLMC_RETURN_IF_ERROR(takeRows(source, dims, view));
  LLMC_RETURN_IF_ERROR(reorder(source, view));
  LLMC_RETURN_IF_ERROR(unpermute(source, view));
  for (Dimension dimension : view.dimensions)
    view.size *= dimension.size;
  view.dimensions = merged(view.dimensions);
  return view;
}

std::pair<int64_t, int64_t> SourceView::runAt(int64_t index) const {
  int64_t at = offset, last = index % dimensions.back().size;
  for (size_t i = dimensions.size(); i-- > 0; index /= dimensions[i].size)
    at += index % dimensions[i].size * dimensions[i].stride;
  return {at, dimensions.back().stride == 1 ? dimensions.back().size - last : 1};
}

bool SourceView::hasRuns(int64_t length) const {
  Dimension last = dimensions.back();
  if (length == 1)
    return true;
  if (last.stride != 1 || last.size % length != 0 || offset % length != 0)
    return false;
  return std::all_of(dimensions.begin(), dimensions.end() - 1,
                     [&](const Dimension &dimension) { return dimension.stride % length == 0; });
}

TransposedView transposedView(const SourceView &view, int64_t length) {
  TransposedView split;
  split.rows = view.dimensions;
  int64_t left = length;
  while (left > 1 && !split.rows.empty()) {
    Dimension &last = split.rows.back();
    int64_t part = std::min(left, last.size);
    if (left % part != 0 || last.size % part != 0)
      return {};
    split.columns.insert(split.columns.begin(), {part, last.stride});
    left /= part;
    last = {last.size / part, last.stride * part};
    if (last.size == 1)
      split.rows.pop_back();
  }
  bool applies = left == 1 && !split.rows.empty() && !split.columns.empty() && split.rows.back().stride == 1 &&
                 split.columns.back().stride != 1;
  return applies ? split : TransposedView();
}

} // namespace llmc
