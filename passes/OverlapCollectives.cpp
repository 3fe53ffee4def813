// Exchanges between ranks under way while tasks run: parts of layers become functions of their own, so that the step is
// a flat list of what is computed and what is exchanged; the list is then computed in blocks of rows, in turn.
#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// An op that names a place and takes no time.
bool isPlace(Operation &op) { return isa<tile::AllocOp, tile::LogitsOp, llm::UseWeightOp, llm::UseStateOp>(op); }

// A layer function whose ranks exchange rows in the middle: what is computed between two exchanges becomes a function.
class LayerParts {
public:
  explicit LayerParts(func::FuncOp layer) : layer_(layer) {}
  void outline();
  // Puts calls of the parts, and the exchanges between them, in the place of `call`.
  void replace(func::CallOp call, IntegerAttr number) const;

private:
  struct Part {
    SmallVector<Operation *> ops;
    func::FuncOp function;         // null where there are none
    SmallVector<Value> operands;   // values of the layer
    Operation *exchange = nullptr; // behind it
  };
  void outline(Part &part, size_t number);
  bool isOfOnePart(tile::AllocOp alloc) const;

  func::FuncOp layer_;
  SmallVector<Part> parts_;
};

class RowBlocks {
public:
  RowBlocks(func::FuncOp step, int64_t count)
      : count_(count), end_(step.getBody().front().getTerminator()), builder_(end_), pending_(count) {}
  void cut(func::FuncOp step);

private:
  struct Exchange {
    Value token;
    llvm::SmallDenseSet<Value, 2> buffers;
  };
  // For every block all that was computed since the last exchange, then that exchange, if there is one.
  void emit(Operation *exchange);
  void emitWhole(Operation *op);
  void start(Operation *exchange, int64_t block);
  // For exchanges of the block on whose buffers `op` depends; all of them where there is none.
  void waitFor(Operation *op, int64_t block);

  int64_t count_;
  Operation *end_; // of the step
  OpBuilder builder_;
  SmallVector<Operation *> computed_;
  SmallVector<SmallVector<Exchange>> pending_; // by block, in the order of their start
};

// With its body, or nothing.
func::FuncOp calleeOf(func::CallOp call) {
  auto callee = call->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(call.getCallee());
  return callee && !callee.isExternal() ? callee : func::FuncOp();
}

bool exchangesRows(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) { return tile::isCollective(&op); });
}

struct OverlapCollectives : llmc::impl::OverlapCollectivesPassBase<OverlapCollectives> {
  using Base::Base;

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    bool overlaps = false;
    getOperation().walk(
        [&](Operation *op) { overlaps |= tile::isCollective(op) && tile::spaceOfCollective(op) == tile::Space::Rows; });
    if (!step || step.isExternal() || !overlaps)
      return;
    if (blocks < 2 || rows < 1) {
      getOperation().emitError() << "rows cannot be computed in " << blocks.getValue() << " blocks of at least "
                                 << rows.getValue() << " rows, expected at least 2 of at least 1";
      return signalPassFailure();
    }
    outlineParts(step);
    RowBlocks(step, blocks).cut(step);
    Builder builder(&getContext());
    getOperation()->setAttr("llmc.row_blocks", builder.getI64IntegerAttr(blocks));
    getOperation()->setAttr("llmc.rows_per_block", builder.getI64IntegerAttr(rows));
  }

private:
  void outlineParts(func::FuncOp step) {
    llvm::MapVector<func::FuncOp, LayerParts> layers;
    SmallVector<func::CallOp> calls(step.getOps<func::CallOp>());
    for (auto [number, call] : llvm::enumerate(calls)) {
      auto attribute = Builder(&getContext()).getI64IntegerAttr(static_cast<int64_t>(number));
      func::FuncOp layer = calleeOf(call);
      if (!layer || !exchangesRows(layer)) {
        call->setAttr("tile.layer", attribute);
        continue;
      }
      auto [parts, isNew] = layers.try_emplace(layer, layer);
      if (isNew)
        parts->second.outline();
      parts->second.replace(call, attribute);
    }
    for (auto &[layer, parts] : layers)
      func::FuncOp(layer).erase();
  }
};

//===-- parts of layers --===//

void LayerParts::outline() {
  parts_.emplace_back();
  for (Operation &op : layer_.getBody().front().without_terminator())
    if (tile::isCollective(&op)) {
      parts_.back().exchange = &op;
      parts_.emplace_back();
    } else if (!isPlace(op)) {
      parts_.back().ops.push_back(&op);
    }
  for (auto [number, part] : llvm::enumerate(parts_))
    if (!part.ops.empty())
      outline(part, number);
}

bool LayerParts::isOfOnePart(tile::AllocOp alloc) const {
  return llvm::any_of(parts_, [&](const Part &part) {
    return llvm::all_of(alloc->getUsers(), [&](Operation *user) { return llvm::is_contained(part.ops, user); });
  });
}

void LayerParts::outline(Part &part, size_t number) {
  llvm::SetVector<Operation *> own; // places
  llvm::SetVector<Value> given;
  for (Operation *op : part.ops)
    for (Value operand : op->getOperands()) {
      Operation *place = operand.getDefiningOp();
      auto alloc = dyn_cast_or_null<tile::AllocOp>(place);
      if (place && (!alloc || isOfOnePart(alloc)))
        own.insert(place);
      else
        given.insert(operand);
    }
  part.operands = given.takeVector();
  OpBuilder builder(layer_);
  auto type = builder.getFunctionType(llvm::to_vector(ValueRange(part.operands).getTypes()), {});
  std::string name = (layer_.getSymName() + ".part." + Twine(number)).str();
  part.function = func::FuncOp::create(builder, layer_.getLoc(), name, type);
  part.function.setPrivate();
  Block *body = part.function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  mapping.map(part.operands, body->getArguments());
  for (Operation *place : own)
    builder.clone(*place, mapping);
  for (Operation *op : part.ops)
    builder.clone(*op, mapping);
  func::ReturnOp::create(builder, layer_.getLoc());
}

void LayerParts::replace(func::CallOp call, IntegerAttr number) const {
  func::FuncOp layer = layer_;
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(layer.getArguments(), call.getOperands());
  for (auto alloc : layer.getOps<tile::AllocOp>())
    if (!isOfOnePart(alloc))
      builder.clone(*alloc, mapping);
  auto inStep = [&](Value value) { return mapping.lookup(value); };
  for (const Part &part : parts_) {
    if (func::FuncOp function = part.function) {
      auto of = func::CallOp::create(builder, call.getLoc(), function,
                                     llvm::to_vector(llvm::map_range(part.operands, inStep)));
      of->setAttr("tile.layer", number);
    }
    if (part.exchange)
      builder.clone(*part.exchange, mapping);
  }
  call.erase();
}

//===-- blocks of rows --===//

void RowBlocks::cut(func::FuncOp step) {
  // What is emitted goes to the end of the same list.
  SmallVector<Operation *> ops =
      llvm::map_to_vector(step.getBody().front().without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops) {
    auto launch = dyn_cast<tile::LaunchOp>(op);
    auto task =
        launch ? step->getParentOfType<ModuleOp>().lookupSymbol<tile::TaskOp>(launch.getTask()) : tile::TaskOp();
    bool isExchange = tile::isCollective(op);
    tile::Space space = task ? task.getSpace() : isExchange ? tile::spaceOfCollective(op) : tile::Space::Rows;
    if (isPlace(*op))
      op->moveBefore(end_);
    else if (space == tile::Space::LogitRows)
      emitWhole(op);
    else if (isExchange)
      emit(op);
    else
      computed_.push_back(op);
  }
  emit(nullptr);
  for (int64_t block = 0; block < count_; ++block)
    waitFor(nullptr, block);
}

void RowBlocks::emit(Operation *exchange) {
  for (int64_t block = 0; block < count_; ++block) {
    for (Operation *op : computed_) {
      waitFor(op, block);
      builder_.clone(*op)->setAttr("tile.block", builder_.getI64IntegerAttr(block));
    }
    if (exchange)
      start(exchange, block);
  }
  for (Operation *op : computed_)
    op->erase();
  computed_.clear();
  if (exchange)
    exchange->erase();
}

void RowBlocks::emitWhole(Operation *op) {
  emit(nullptr);
  // An exchange of whole rows has the room of all blocks.
  for (int64_t block = 0; block < count_; ++block)
    waitFor(tile::isCollective(op) ? nullptr : op, block);
  op->moveBefore(end_);
}

void RowBlocks::start(Operation *exchange, int64_t block) {
  waitFor(exchange, block);
  OperationState state(exchange->getLoc(), exchange->getName(), exchange->getOperands(),
                       tile::TokenType::get(builder_.getContext()), exchange->getAttrs());
  Operation *started = builder_.create(state);
  started->setAttr("tile.block", builder_.getI64IntegerAttr(block));
  Exchange entry{started->getResult(0), {}};
  entry.buffers.insert_range(exchange->getOperands());
  pending_[block].push_back(std::move(entry));
}

// Those before the last one that concerns the op are done by then: their buffers are free, too.
void RowBlocks::waitFor(Operation *op, int64_t block) {
  SmallVector<Exchange> &pending = pending_[block];
  auto concerns = [&](const Exchange &exchange) {
    return !op || llvm::any_of(op->getOperands(), [&](Value operand) { return exchange.buffers.contains(operand); });
  };
  auto last = llvm::find_if(llvm::reverse(pending), concerns);
  if (last == pending.rend())
    return;
  SmallVector<Value> tokens =
      llvm::map_to_vector(llvm::make_range(pending.begin(), last.base()), [](Exchange &done) { return done.token; });
  auto wait = tile::WaitOp::create(builder_, last->token.getLoc(), tokens);
  wait->setAttr("tile.block", builder_.getI64IntegerAttr(block));
  pending.erase(pending.begin(), last.base());
}

} // namespace
