// The rules of tile ops whose elements depend on those at other places.
#include "lib/reference/TaskCompiler.h"
#include "lib/reference/TileKernels.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {

// Places of the `count` largest, in descending order, the lower place first where they are equal. What is no number
// comes last.
std::vector<size_t> placesOfLargest(std::span<const float> values, const std::vector<size_t> &among, int64_t count) {
  std::vector<size_t> places = among;
  auto keyOf = [&](size_t place) {
    const float value = values[place];
    return std::pair(std::isnan(value) ? std::numeric_limits<float>::infinity() : -value, place);
  };
  std::ranges::sort(places, {}, keyOf);
  places.resize(std::min(places.size(), static_cast<size_t>(count)));
  return places;
}

std::vector<size_t> allPlaces(size_t first, size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), first);
  return places;
}

struct Groups {
  int64_t count, top, sum;
};

// The places of the groups that stay, in ascending order.
std::vector<size_t> stayingPlaces(std::span<const float> values, const Groups &groups) {
  const size_t size = values.size() / static_cast<size_t>(groups.count);
  std::vector<float> sums;
  for (size_t first = 0; first < values.size(); first += size) {
    float sum = 0;
    for (size_t place : placesOfLargest(values, allPlaces(first, size), groups.sum))
      sum += values[place];
    sums.push_back(sum);
  }
  std::vector<size_t> staying = placesOfLargest(sums, allPlaces(0, sums.size()), groups.top), places;
  std::ranges::sort(staying);
  for (size_t group : staying)
    for (size_t place : allPlaces(group * size, size))
      places.push_back(place);
  return places;
}

} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::RepeatOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=, times = out.size / in.size] {
    for (int64_t i = 0; i < out.size; ++i)
      out.floats[i] = in.floats[i / times];
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::SwapPairsOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=] {
    for (int64_t i = 0; i < out.size; ++i)
      out.floats[i] = in.floats[i ^ 1];
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ChooseOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  const Groups groups{static_cast<int64_t>(op.getGroups()), static_cast<int64_t>(op.getTopGroups()),
                      static_cast<int64_t>(op.getGroupSum())};
  return Instruction([=] {
    std::vector<size_t> chosen = placesOfLargest(in.f(), stayingPlaces(in.f(), groups), out.size);
    std::ranges::transform(chosen, out.floats, [](size_t place) { return static_cast<float>(place); });
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::PickOp op) {
  Slot in = slot(op.getInput()), places = slot(op.getPlaces()), out = slot(op);
  return Instruction([=] {
    for (int64_t i = 0; i < out.size; ++i) {
      const float place = std::fmin(std::fmax(places.floats[i], 0.0f), static_cast<float>(in.size - 1));
      out.floats[i] = in.floats[static_cast<size_t>(place)];
    }
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::SinkhornOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=, size = op.matrixSize(), iterations = static_cast<int64_t>(op.getIterations()),
                      eps = op.getEps().convertToFloat()] {
    std::ranges::copy(in.f(), out.floats);
    sinkhorn(out.f(), size, iterations, eps);
    return true;
  });
}
