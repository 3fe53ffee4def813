// A forest of axes: equal ones have one root, split ones have children in order.
#include "lib/sharding/Dimensions.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace llmc::sharding {

//===-- building
//----------------------------------------------------------------------------------------------------===//

Dimension Dimensions::fresh(int64_t size) {
  axes_.push_back({size});
  return {{static_cast<int>(axes_.size()) - 1}};
}

static Piece reduced(Piece piece) {
  int64_t common = std::gcd(piece.num, piece.den);
  return {piece.axis, piece.num / common, piece.den / common};
}

void Dimensions::resolve(const Piece &piece, Dimension &into) const {
  Piece here = piece;
  while (axis(here).parent >= 0) {
    const Axis &own = axis(here);
    here = reduced({own.parent, here.num * own.den, here.den * own.num});
  }
  if (axis(here).children.empty()) {
    into.push_back(here);
    return;
  }
  for (int child : axis(here).children)
    resolve({child, here.num, here.den}, into);
}

Dimension Dimensions::resolved(const Dimension &dimension) const {
  Dimension result;
  for (const Piece &piece : dimension)
    resolve(piece, result);
  return result;
}

template <typename F> void Dimensions::each(const Dimension &dimension, F change) {
  for (const Piece &piece : resolved(dimension))
    change(axis(piece));
}

void Dimensions::keepWhole(const Dimension &dimension) {
  each(dimension, [](Axis &axis) { axis.whole = true; });
}
void Dimensions::preferWhole(const Dimension &dimension) {
  each(dimension, [](Axis &axis) { axis.preferWhole = true; });
}
void Dimensions::anchor(const Dimension &dimension) {
  each(dimension, [](Axis &axis) { axis.anchored = true; });
}
void Dimensions::markExperts(const Dimension &experts) {
  each(experts, [](Axis &axis) { axis.anchored = axis.experts = true; });
}
void Dimensions::markInsideExpert(const Dimension &dimension) {
  each(dimension, [](Axis &axis) { axis.insideExpert = true; });
}
void Dimensions::markOutsideExperts(const Dimension &dimension) {
  each(dimension, [](Axis &axis) { axis.outsideExperts = true; });
}
void Dimensions::addWeight(const Dimension &dimension, int64_t elements) {
  each(dimension, [&](Axis &axis) { axis.weight += elements; });
}

bool Dimensions::isAnchored(const Dimension &dimension) const {
  Dimension pieces = resolved(dimension);
  return std::all_of(pieces.begin(), pieces.end(),
                     [&](const Piece &piece) { return axis(piece).anchored && !axis(piece).whole; });
}

int64_t Dimensions::sizeOf(const Dimension &dimension) const {
  int64_t size = 0;
  for (const Piece &piece : resolved(dimension))
    size += sizeOf(piece);
  return size;
}

// `width` elements of the piece stay together.
void Dimensions::setGranule(const Piece &piece, int64_t width) {
  Axis &own = axis(piece);
  int64_t units = width * piece.den;
  units /= std::gcd(units, piece.num);
  own.granule = std::lcm(own.granule, units);
  own.whole |= own.size % own.granule != 0;
}

Dimension Dimensions::divided(const Dimension &dimension, int64_t width) {
  Dimension pieces = resolved(dimension);
  bool fits = std::all_of(pieces.begin(), pieces.end(), [&](const Piece &piece) { return sizeOf(piece) % width == 0; });
  if (!fits) { // a head lies across two pieces
    keepWhole(dimension);
    Dimension heads = fresh(sizeOf(dimension) / width);
    keepWhole(heads);
    return heads;
  }
  for (Piece &piece : pieces) {
    setGranule(piece, width);
    piece = reduced({piece.axis, piece.num, piece.den * width});
  }
  return pieces;
}

Dimension Dimensions::multiplied(const Dimension &dimension, int64_t width) {
  Dimension pieces = resolved(dimension);
  for (Piece &piece : pieces)
    piece = reduced({piece.axis, piece.num * width, piece.den});
  return pieces;
}

bool Dimensions::split(const Piece &piece, int64_t at) {
  int64_t units = at * piece.den;
  Axis own = axis(piece);
  if (own.whole || units % piece.num != 0 || (units / piece.num) % own.granule != 0)
    return false;
  units /= piece.num;
  for (int64_t size : {units, own.size - units}) {
    Axis child = own;
    child.size = size;
    axes_.push_back(child);
    axes_[static_cast<size_t>(piece.axis)].children.push_back(static_cast<int>(axes_.size()) - 1);
  }
  return true;
}

Dimension Dimensions::slice(const Dimension &dimension, int64_t begin, int64_t size) {
  Dimension result;
  int64_t at = 0;
  for (const Piece &piece : resolved(dimension)) {
    int64_t width = sizeOf(piece), from = std::max(begin, at), to = std::min(begin + size, at + width);
    if (from < to && (from > at || to < at + width)) {
      int64_t cutAt = from > at ? from - at : to - at;
      if (split(piece, cutAt))
        return slice(dimension, begin, size);
      keepWhole(dimension);
      Dimension whole = fresh(size);
      keepWhole(whole);
      return whole;
    }
    if (from < to)
      result.push_back(piece);
    at += width;
  }
  return result;
}

bool Dimensions::unite(const Piece &left, const Piece &right, int64_t times) {
  // Elements: left has sizeOf(left), right times as many.
  if (left.axis == right.axis)
    return left.num * times * right.den == right.num * left.den;
  // Their common units; cuts of either fall on cuts of both.
  Axis joined{std::gcd(axis(left).size, axis(right).size)};
  auto parent = static_cast<int>(axes_.size());
  for (int child : {left.axis, right.axis}) {
    Axis &own = axes_[static_cast<size_t>(child)];
    int64_t common = std::gcd(joined.size, own.size);
    own.parent = parent;
    own.num = joined.size / common;
    own.den = own.size / common;
    int64_t granule = own.granule * own.num;
    joined.granule = std::lcm(joined.granule, granule / std::gcd(granule, own.den));
    joined.whole |= own.whole;
    joined.preferWhole |= own.preferWhole;
    joined.anchored |= own.anchored;
    joined.experts |= own.experts;
    joined.insideExpert |= own.insideExpert;
    joined.outsideExperts |= own.outsideExperts;
    joined.weight += own.weight;
  }
  joined.whole |= joined.size % joined.granule != 0;
  axes_.push_back(std::move(joined));
  return true;
}

void Dimensions::equate(const Dimension &left, const Dimension &right, int64_t times) {
  Dimension a = resolved(left), b = resolved(right);
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    int64_t wide = sizeOf(a[i]) * times, other = sizeOf(b[i]);
    bool done = wide == other && unite(a[i], b[i], times);
    if (done)
      continue;
    // Cut the longer one where the shorter ends, and start again.
    if ((wide > other && other % times == 0 && split(a[i], other / times)) || (wide < other && split(b[i], wide)))
      return equate(left, right, times);
    keepWhole(left);
    keepWhole(right);
    return;
  }
}

void Dimensions::readBy(const Dimension &keys, const Dimension &heads, int64_t groupSize) {
  Dimension own = resolved(heads);
  if (groupSize == 1)
    return equate(keys, heads);
  if (own.size() != 1 || resolved(keys).size() != 1) {
    keepWhole(heads);
    keepWhole(keys);
    return;
  }
  keys_.push_back({keys, heads, groupSize});
}

void Dimensions::contract(const Dimension &inner, const Dimension &outer) { products_.push_back({inner, outer}); }

//===-- deciding
//----------------------------------------------------------------------------------------------------===//

// Not if it is a product's inner dimension while the outer one is cut, or the other way round. Experts are apart:
// cutting them leaves whole slots.
bool Dimensions::mayCut(int index) const {
  const Axis &own = axes_[static_cast<size_t>(index)];
  if (own.whole || own.experts)
    return !own.whole;
  for (const Product &product : products_) {
    auto holds = [&](const Dimension &dimension, auto test) {
      Dimension pieces = resolved(dimension);
      return std::any_of(pieces.begin(), pieces.end(), [&](const Piece &piece) { return test(piece); });
    };
    auto isThis = [&](const Piece &piece) { return piece.axis == index; };
    auto isCut = [&](const Piece &piece) { return axis(piece).partition.has_value() || piece.axis == index; };
    if ((holds(product.inner, isThis) && holds(product.outer, isCut)) ||
        (holds(product.outer, isThis) && holds(product.inner, isCut)))
      return false;
  }
  return true;
}

Partition Dimensions::partitionOf(int index, const Group &group) const {
  const Axis &own = axes_[static_cast<size_t>(index)];
  if (own.experts || own.insideExpert) {
    int64_t ranks = own.experts ? group.experts : group.tensor;
    int64_t unit = own.experts ? own.granule : unitOf(own.size, own.granule, ranks);
    Partition over = scaled(balanced(own.size / unit, ranks), unit), partition;
    for (int64_t rank = 0; rank < group.ranks(); ++rank)
      partition.push_back(over[static_cast<size_t>(own.experts ? rank / group.tensor : rank % group.tensor)]);
    return partition;
  }
  // Heads whose groups read one key head stay together while they can.
  int64_t unit = own.granule > 1 ? own.granule : unitOf(own.size, 1, group.ranks());
  for (const Keys &keys : keys_) {
    Piece heads = resolved(keys.heads).front();
    if (heads.axis == index && heads.num == 1 && own.granule == heads.den)
      return scaled(partitionHeads(own.size / heads.den, keys.groupSize, group.ranks()), heads.den);
  }
  return scaled(balanced(own.size / unit, group.ranks()), unit);
}

void Dimensions::cut(int index, const Group &group) {
  Axis &own = axes_[static_cast<size_t>(index)];
  if (!own.partition && mayCut(index))
    own.partition = partitionOf(index, group);
}

// The keys of heads that are cut: those that each rank's heads read, as many heads each. Where that cannot be, the
// heads stay whole.
void Dimensions::cutKeys(const Keys &keys) {
  Dimension allHeads = resolved(keys.heads), allKeys = resolved(keys.keys);
  for (const Piece &piece : allHeads)
    if (!axis(piece).partition)
      return;
  Piece heads = allHeads.front(), own = allKeys.front();
  Partition partition;
  bool fits = allHeads.size() == 1 && allKeys.size() == 1;
  for (const Range &range : *axis(heads).partition) {
    Range asked = {range.begin * heads.num / heads.den, range.end * heads.num / heads.den};
    Range read = keyHeadsOf({asked}, keys.groupSize).front();
    fits &= readsEvenly(asked, read, keys.groupSize) && read.begin * own.den % own.num == 0 &&
            read.end * own.den % own.num == 0;
    partition.push_back({read.begin * own.den / own.num, read.end * own.den / own.num});
  }
  bool isAll = std::all_of(partition.begin(), partition.end(),
                           [&](const Range &range) { return range.size() == axis(own).size; });
  if (!fits || (axis(own).whole && !isAll)) {
    for (const Piece &piece : allHeads)
      axis(piece).partition.reset();
    return;
  }
  if (!isAll)
    axis(own).partition = std::move(partition);
}

void Dimensions::decide(const Group &group) {
  if (group.ranks() == 1)
    return;
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(axes_.size()); ++i)
    if (const Axis &own = axes_[static_cast<size_t>(i)]; own.parent < 0 && own.children.empty())
      order.push_back(i);
  auto isKeys = [&](int index) {
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const Keys &keys) { return resolved(keys.keys).front().axis == index; });
  };
  std::sort(order.begin(), order.end(), [&](int left, int right) {
    const Axis &a = axes_[static_cast<size_t>(left)], &b = axes_[static_cast<size_t>(right)];
    return std::tuple(!a.anchored, -a.weight, left) < std::tuple(!b.anchored, -b.weight, right);
  });
  for (int index : order) {
    const Axis &own = axes_[static_cast<size_t>(index)];
    bool isWorth = own.anchored || (!own.preferWhole && own.weight > 0);
    bool isAlone = (own.experts && group.experts == 1) ||
                   (own.insideExpert && !own.experts && (group.tensor == 1 || own.outsideExperts));
    if (isWorth && !isAlone && !isKeys(index))
      cut(index, group);
  }
  for (const Keys &keys : keys_)
    cutKeys(keys);
}

bool Dimensions::isCut(const Dimension &dimension) const {
  Dimension pieces = resolved(dimension);
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const Piece &piece) { return axis(piece).partition.has_value(); });
}

bool Dimensions::isCutByExperts(const Dimension &dimension) const {
  Dimension pieces = resolved(dimension);
  return isCut(dimension) && axis(pieces.front()).experts;
}

std::vector<Dimensions::Part> Dimensions::partsOf(const Dimension &dimension) const {
  std::vector<Part> parts;
  for (const Piece &piece : resolved(dimension)) {
    Part part{std::nullopt, sizeOf(piece)};
    if (axis(piece).partition) {
      part.partition = Partition();
      for (const Range &range : *axis(piece).partition)
        part.partition->push_back({range.begin * piece.num / piece.den, range.end * piece.num / piece.den});
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

int64_t Dimensions::localSize(const Dimension &dimension, size_t rank) const {
  int64_t size = 0;
  for (const Part &part : partsOf(dimension))
    size += part.partition ? (*part.partition)[rank].size() : part.size;
  return size;
}

} // namespace llmc::sharding
