// First fit over live ranges, in the best of a few orders. Heights are found from the callees up, bases from @step
// down.
#include "passes/ArenaPlan.h"
#include "dialects/llm/LlmDialect.h"
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

using namespace mlir;

namespace llmc {
namespace {

// Launches, calls and what ranks exchange, until they wait for it, are the points of time; nothing else reads or writes
// a buffer.
std::string nameOfStep(Operation &op) {
  if (auto launch = dyn_cast<tile::LaunchOp>(op))
    return launch.getTask().str();
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getCallee().str();
  if (tile::isCollective(&op) || isa<tile::WaitOp>(op))
    return op.getName().stripDialect().str();
  return "";
}

bool overlap(const ArenaBuffer &a, const ArenaBuffer &b) { return a.first <= b.last && b.first <= a.last; }

class Planner {
public:
  explicit Planner(ModuleOp module) : module_(module) {}
  LogicalResult visit(func::FuncOp function);
  ArenaPlan finish();

private:
  ArenaFunction describe(func::FuncOp function);
  int64_t heightOf(const ArenaFunction &function) const;
  void place(ArenaFunction &function) const;
  int64_t boundOf(const ArenaFunction &function) const;

  ModuleOp module_;
  ArenaPlan plan_;
  llvm::DenseMap<Operation *, size_t> index_;
  llvm::DenseSet<Operation *> open_;
};

LogicalResult Planner::visit(func::FuncOp function) {
  if (index_.contains(function))
    return success();
  if (!open_.insert(function).second)
    return function.emitOpError() << "@" << function.getSymName() << " calls itself, so its buffers have no end";
  for (auto call : function.getOps<func::CallOp>())
    if (auto callee = module_.lookupSymbol<func::FuncOp>(call.getCallee()); callee && !callee.isDeclaration())
      if (failed(visit(callee)))
        return failure();
  open_.erase(function);
  ArenaFunction described = describe(function);
  place(described);
  described.bound = boundOf(described);
  index_[function] = plan_.functions.size();
  plan_.functions.push_back(std::move(described));
  return success();
}

ArenaFunction Planner::describe(func::FuncOp function) {
  ArenaFunction result;
  result.name = function.getSymName().str();
  llvm::DenseMap<Operation *, int64_t> time;
  for (Operation &op : function.getBody().front()) {
    std::string name = nameOfStep(op);
    if (name.empty())
      continue;
    auto at = static_cast<int64_t>(result.steps.size());
    time[&op] = at;
    result.steps.push_back(std::move(name));
    if (auto call = dyn_cast<func::CallOp>(op))
      if (auto callee = index_.find(module_.lookupSymbol(call.getCallee())); callee != index_.end())
        result.calls.push_back({at, callee->second});
  }
  for (auto alloc : function.getOps<tile::AllocOp>()) {
    ArenaBuffer buffer{alloc, "", alloc.getType().stride() * 4};
    SmallVector<Operation *> users(alloc.getResult().getUsers());
    for (Operation *user : alloc.getResult().getUsers())
      if (tile::isCollective(user))
        llvm::append_range(users, user->getUsers());
    for (Operation *user : users) {
      auto at = time.find(user);
      if (at == time.end())
        continue;
      buffer.first = buffer.writer.empty() ? at->second : std::min(buffer.first, at->second);
      buffer.last = std::max(buffer.last, at->second);
      buffer.writer = result.steps[static_cast<size_t>(buffer.first)];
    }
    result.buffers.push_back(std::move(buffer));
  }
  return result;
}

// Where what is called at `at` may begin.
int64_t liveEnd(const ArenaFunction &function, int64_t at) {
  int64_t end = 0;
  for (const ArenaBuffer &buffer : function.buffers)
    if (buffer.first <= at && at <= buffer.last)
      end = std::max(end, buffer.offset + buffer.bytes);
  return end;
}

int64_t Planner::heightOf(const ArenaFunction &function) const {
  int64_t height = 0;
  for (const ArenaBuffer &buffer : function.buffers)
    height = std::max(height, buffer.offset + buffer.bytes);
  for (const ArenaCall &call : function.calls)
    height = std::max(height, liveEnd(function, call.at) + plan_.functions[call.callee].height);
  return height;
}

// Each buffer goes to the lowest place that no buffer alive at the same time holds.
void firstFit(ArenaFunction &function, ArrayRef<size_t> order) {
  SmallVector<const ArenaBuffer *> placed;
  for (size_t at : order) {
    ArenaBuffer &buffer = function.buffers[at];
    buffer.offset = 0;
    llvm::sort(placed, [](const ArenaBuffer *a, const ArenaBuffer *b) { return a->offset < b->offset; });
    for (const ArenaBuffer *other : placed)
      if (overlap(*other, buffer) && other->offset < buffer.offset + buffer.bytes)
        buffer.offset = std::max(buffer.offset, other->offset + other->bytes);
    placed.push_back(&buffer);
  }
}

void Planner::place(ArenaFunction &function) const {
  auto callsInside = [&](const ArenaBuffer &buffer) {
    return llvm::count_if(function.calls,
                          [&](const ArenaCall &call) { return buffer.first <= call.at && call.at <= buffer.last; });
  };
  // Ties keep the order of the program, so that the plan is the same everywhere.
  using Key = std::array<int64_t, 2>;
  const std::array<std::function<Key(const ArenaBuffer &)>, 4> orders = {
      [](const ArenaBuffer &) {
        return Key{0, 0};
      },
      [](const ArenaBuffer &b) {
        return Key{-b.bytes, b.first};
      },
      [](const ArenaBuffer &b) {
        return Key{b.first - b.last, -b.bytes};
      },
      [&](const ArenaBuffer &b) {
        return Key{-static_cast<int64_t>(callsInside(b)), -b.bytes};
      }};
  std::optional<ArenaFunction> best;
  for (const auto &keyOf : orders) {
    std::vector<size_t> order(function.buffers.size());
    std::iota(order.begin(), order.end(), size_t(0));
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(keyOf(function.buffers[a]), a) < std::pair(keyOf(function.buffers[b]), b);
    });
    firstFit(function, order);
    function.height = heightOf(function);
    if (!best || function.height < best->height)
      best = function;
  }
  function = std::move(*best);
}

int64_t Planner::boundOf(const ArenaFunction &function) const {
  std::vector<int64_t> needed(function.steps.size(), 0);
  for (const ArenaBuffer &buffer : function.buffers)
    for (int64_t at = buffer.first; at <= buffer.last; ++at)
      needed[static_cast<size_t>(at)] += buffer.bytes;
  for (const ArenaCall &call : function.calls)
    needed[static_cast<size_t>(call.at)] += plan_.functions[call.callee].bound;
  return needed.empty() ? 0 : *std::max_element(needed.begin(), needed.end());
}

ArenaPlan Planner::finish() {
  // Callers come after what they call: backwards every base is final when it is handed on.
  for (ArenaFunction &function : llvm::reverse(plan_.functions))
    for (const ArenaCall &call : function.calls) {
      int64_t &base = plan_.functions[call.callee].base;
      base = std::max(base, function.base + liveEnd(function, call.at));
    }
  for (ArenaFunction &function : plan_.functions) {
    int64_t top = 0;
    for (ArenaBuffer &buffer : function.buffers) {
      buffer.offset += function.base;
      top = std::max(top, buffer.offset + buffer.bytes);
      plan_.unshared += buffer.bytes;
    }
    plan_.bytes = std::max(plan_.bytes, top);
    plan_.bound = std::max(plan_.bound, function.bound);
  }
  return std::move(plan_);
}

} // namespace

FailureOr<ArenaPlan> planArena(ModuleOp module) {
  Planner planner(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && failed(planner.visit(function)))
      return failure();
  return planner.finish();
}

} // namespace llmc
