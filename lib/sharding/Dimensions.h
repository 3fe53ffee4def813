// Dimensions of the values of a function that must be cut alike, and the choice of those that ranks share. A dimension
// is a sequence of pieces of *axes*; operators equate dimensions, and what cannot be cut at all says so.
#pragma once
#include "lib/sharding/Grid.h"
#include "lib/sharding/Partition.h"
#include <optional>

namespace llmc::sharding {

// All of an axis, `num / den` elements of the dimension for each unit of the axis.
struct Piece {
  int axis;
  int64_t num = 1, den = 1;
};

using Dimension = std::vector<Piece>;

class Dimensions {
public:
  Dimension fresh(int64_t size);
  // Never cut: nobody could put the parts together.
  void keepWhole(const Dimension &dimension);
  // Cut only where something else gains by it: whoever reads it needs all of it.
  void preferWhole(const Dimension &dimension);
  // Cut wherever it can be: heads with their state.
  void anchor(const Dimension &dimension);
  // The experts, and a dimension inside of each.
  void markExperts(const Dimension &experts);
  void markInsideExpert(const Dimension &dimension);
  // Other products have it too: ranks with other experts would add it up twice.
  void markOutsideExperts(const Dimension &dimension);
  // Every element of `left` belongs to the `times` of `right` at its place.
  void equate(const Dimension &left, const Dimension &right, int64_t times = 1);
  // `groupSize` consecutive heads read one key head.
  void readBy(const Dimension &keys, const Dimension &heads, int64_t groupSize);
  // A product sums over `inner`; both at once would leave parts of partial sums.
  void contract(const Dimension &inner, const Dimension &outer);
  // Elements of weights that a cut would save.
  void addWeight(const Dimension &dimension, int64_t elements);
  // `size` elements from `begin` on.
  Dimension slice(const Dimension &dimension, int64_t begin, int64_t size);
  // `width` elements each are one of the result, and the other way round.
  Dimension divided(const Dimension &dimension, int64_t width);
  Dimension multiplied(const Dimension &dimension, int64_t width);
  int64_t sizeOf(const Dimension &dimension) const;
  bool isAnchored(const Dimension &dimension) const;

  // Decides which axes are cut. Nothing is equated afterwards.
  void decide(const Group &group);
  bool isCut(const Dimension &dimension) const;
  // Whether it is the experts that are shared.
  bool isCutByExperts(const Dimension &dimension) const;
  // The dimension's pieces in order: the partition of its own elements (from 0 for every piece) and its size.
  struct Part {
    std::optional<Partition> partition; // absent: all ranks hold all of it
    int64_t size;
  };
  std::vector<Part> partsOf(const Dimension &dimension) const;
  int64_t localSize(const Dimension &dimension, size_t rank) const;

private:
  struct Axis {
    int64_t size;
    int parent = -1;          // the axis that it was equated with,
    int64_t num = 1, den = 1; // num / den units of which are one of this
    int64_t granule = 1;      // cuts fall on multiples of it
    bool whole = false, preferWhole = false, anchored = false, experts = false, insideExpert = false,
         outsideExperts = false;
    int64_t weight = 0;
    std::vector<int> children = {}; // it was split into these
    std::optional<Partition> partition = {};
  };
  struct Keys {
    Dimension keys, heads;
    int64_t groupSize;
  };
  struct Product {
    Dimension inner, outer;
  };
  // With axes that stand for themselves.
  Dimension resolved(const Dimension &dimension) const;
  void resolve(const Piece &piece, Dimension &into) const;
  int64_t sizeOf(const Piece &piece) const {
    return axes_[static_cast<size_t>(piece.axis)].size * piece.num / piece.den;
  }
  Axis &axis(const Piece &piece) { return axes_[static_cast<size_t>(piece.axis)]; }
  const Axis &axis(const Piece &piece) const { return axes_[static_cast<size_t>(piece.axis)]; }
  // At `at` elements of a resolved piece; false where no cut can fall there.
  bool split(const Piece &piece, int64_t at);
  bool unite(const Piece &left, const Piece &right, int64_t times);
  void setGranule(const Piece &piece, int64_t width);
  template <typename F> void each(const Dimension &dimension, F change);
  bool mayCut(int index) const;
  void cut(int index, const Group &group);
  void cutKeys(const Keys &keys);
  Partition partitionOf(int index, const Group &group) const;

  std::vector<Axis> axes_;
  std::vector<Keys> keys_;
  std::vector<Product> products_;
};

} // namespace llmc::sharding
