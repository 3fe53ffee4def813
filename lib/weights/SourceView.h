// SourceView: in which order a weight takes the elements of one published tensor, as strides over the stored order.
#pragma once
#include "lib/importer/WeightSource.h"
#include "runtime/support/Status.h"
#include <algorithm>
#include <span>

namespace llmc {

struct SourceView {
  // `size` elements, or groups of elements of the dimensions behind, that lie `stride` elements apart.
  struct Dimension {
    int64_t size, stride;
  };
  int64_t offset = 0;
  std::vector<Dimension> dimensions; // outermost first, never empty; neighbours that make one run are one dimension
  int64_t size = 1;

  // Where element `index` of the view is stored, and how many from it on follow each other there.
  std::pair<int64_t, int64_t> runAt(int64_t index) const;
  // Whether every group of `length` elements that begins at a multiple of it is stored as one run, at a multiple of it.
  bool hasRuns(int64_t length) const;
};

// Of a tensor of `shape` whose dimension i is dimension order[i] of what is stored; without an order it is stored so.
// An error says what does not fit: "is [8, 2], which cannot be seen as [3, 5]".
StatusOr<SourceView> viewOf(const WeightSource &source, std::span<const int64_t> shape,
                            std::span<const size_t> order = {});

// The elements in rows of `length`, where columns and rows are dimensions of the view of their own: `rows` next to each
// other in storage although columns are not. Empty dimensions otherwise.
struct TransposedView {
  std::vector<SourceView::Dimension> rows, columns;
  bool applies() const { return !rows.empty(); }
};
TransposedView transposedView(const SourceView &view, int64_t length);

} // namespace llmc
