// Layer functions and the step as machine functions: addresses from the memory plan, calls, barriers.
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/collective/Collectives.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

std::string functionSymbol(func::FuncOp function) {
  return function.getSymName() == "step" ? "llmc_step" : "llmc_function." + function.getSymName().str();
}

// Input and result of a collective, each null where it has none.
std::pair<Value, Value> operandsOf(Operation &op) {
  return llvm::TypeSwitch<Operation *, std::pair<Value, Value>>(&op)
      .Case<tile::AllReduceOp, tile::AllGatherOp>(
          [](auto collective) { return std::pair<Value, Value>(collective.getInput(), collective.getResult()); })
      .Case([](tile::SendOp send) { return std::pair<Value, Value>(send.getInput(), Value()); })
      .Case([](tile::ReceiveOp receive) { return std::pair<Value, Value>(Value(), receive.getResult()); });
}

class FunctionEmitter {
public:
  FunctionEmitter(ImplicitLocOpBuilder &b, ModuleOp program, const PlanFacts &plan, const CpuTarget &target,
                  const TaskNumbers &numbers)
      : b(b), program(program), plan(plan), target(target), numbers(numbers),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  LogicalResult emit(func::FuncOp function);

private:
  LogicalResult emitOp(KernelBuilder &k, Operation &op);
  LogicalResult emitOnBlock(KernelBuilder &k, Operation &op, int64_t block);
  LogicalResult emitUse(KernelBuilder &k, Operation &op);
  LogicalResult emitCall(KernelBuilder &k, func::CallOp layer);
  LogicalResult emitLaunch(KernelBuilder &k, tile::LaunchOp launch);
  void emitCollective(KernelBuilder &k, Operation &op);
  void emitWait(KernelBuilder &k, ArrayRef<std::string> exchanges);
  void emitStart(KernelBuilder &k, Operation &op, StringRef description);
  bool mayFail(Operation &op);
  // What a function is given for `value`: of a block of rows where that is what is emitted. Room is nobody's row.
  Value pointerTo(KernelBuilder &k, Value value, bool isRoom = false);
  std::string describe(Operation &op);
  void returnWhereFailed(KernelBuilder &k);
  bool exchanges(func::FuncOp function);
  void emitTrace(KernelBuilder &k, int32_t task);
  void call(KernelBuilder &k, StringRef symbol, ValueRange operands);
  template <typename SymbolOp> FailureOr<int64_t> offsetOf(Operation &user, StringAttr symbol);

  ImplicitLocOpBuilder &b;
  ModuleOp program;
  const PlanFacts &plan;
  const CpuTarget &target;
  const TaskNumbers &numbers;
  Type pointer;
  Value context;          // of the rows that are computed:
  bool isOnBlock = false; // of a block of them
  DenseMap<Value, Value> values;
  DenseMap<Value, std::string> descriptions; // by token
  DenseMap<Operation *, bool> exchanging;    // functions with collectives, or calls of such
  int numCollectives = 0;
};

LogicalResult FunctionEmitter::emit(func::FuncOp function) {
  if (function.isExternal())
    return function.emitOpError() << "@" << function.getSymName()
                                  << " has no body; a step program calls nothing outside of its module";
  bool isStep = function.getSymName() == "step";
  SmallVector<Type> inputs(isStep ? 1 : 1 + function.getNumArguments(), pointer);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), inputs);
  auto emitted = LLVM::LLVMFuncOp::create(b, functionSymbol(function), type);
  if (!isStep)
    emitted.setVisibility_(LLVM::Visibility::Hidden);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(emitted.addEntryBlock(b));
  context = emitted.getArgument(0);
  values.clear();
  KernelBuilder k(b, emitted, target, /*emulate=*/true);
  for (BlockArgument argument : function.getArguments()) {
    if (isStep && !isa<llm::BatchType>(argument.getType()))
      return function.emitOpError() << "@step takes " << argument.getType() << ", expected the batch alone";
    values[argument] = isStep ? k.load(pointer, context, offsetof(llmc_step_context, batch))
                              : emitted.getArgument(1 + argument.getArgNumber());
  }
  for (Operation &op : function.getBody().front())
    if (failed(emitOp(k, op)))
      return failure();
  LLVM::ReturnOp::create(b, ValueRange{});
  return success();
}

template <typename SymbolOp> FailureOr<int64_t> FunctionEmitter::offsetOf(Operation &user, StringAttr symbol) {
  auto op = program.lookupSymbol<SymbolOp>(symbol);
  auto offset = op ? op->template getAttrOfType<IntegerAttr>("offset") : IntegerAttr();
  if (!offset)
    return user.emitOpError() << "uses @" << symbol.getValue()
                              << ", which has no offset yet; run llmc-plan-memory first";
  return offset.getInt();
}

LogicalResult FunctionEmitter::emitOp(KernelBuilder &k, Operation &op) {
  std::optional<int64_t> block = tile::blockOf(&op);
  LogicalResult emitted = block ? emitOnBlock(k, op, *block) : emitUse(k, op);
  if (succeeded(emitted) && mayFail(op))
    returnWhereFailed(k);
  return emitted;
}

// All workers see the same blocks, so all of them skip an empty one, with its barriers, or none.
LogicalResult FunctionEmitter::emitOnBlock(KernelBuilder &k, Operation &op, int64_t block) {
  for (Value operand : op.getOperands())
    if (operand.getDefiningOp<tile::LogitsOp>())
      return op.emitOpError() << "is about block " << block << " of the rows, but takes the logits, which have none";
  Value whole = context;
  Value blocks = k.load(pointer, whole, offsetof(llmc_step_context, blocks));
  context = k.at(blocks, block * static_cast<int64_t>(sizeof(llmc_step_context)));
  Value batch = k.load(pointer, context, offsetof(llmc_step_context, batch));
  Value rows = k.loadInt(batch, offsetof(llmc_batch, num_tokens));
  LogicalResult emitted = success();
  isOnBlock = true;
  k.when(k.less(k.i64(0), rows), [&] { emitted = emitUse(k, op); });
  isOnBlock = false;
  context = whole;
  return emitted;
}

Value FunctionEmitter::pointerTo(KernelBuilder &k, Value value, bool isRoom) {
  Value whole = values.lookup(value);
  if (isOnBlock && isa<llm::BatchType>(value.getType()))
    return k.load(pointer, context, offsetof(llmc_step_context, batch));
  auto rows = dyn_cast<tile::RowsType>(value.getType());
  if (!isOnBlock || isRoom || !rows)
    return whole;
  Value before = k.load(k.i64Type, context, offsetof(llmc_step_context, first_row));
  return k.at(whole, k.mul(before, 4 * rows.stride()));
}

LogicalResult FunctionEmitter::emitUse(KernelBuilder &k, Operation &op) {
  auto field = [&](int64_t offset) { return k.load(pointer, context, offset); };
  if (auto alloc = dyn_cast<tile::AllocOp>(op)) {
    if (!alloc.getOffset())
      return alloc.emitOpError() << "has no place in the arena yet; run llmc-plan-memory first";
    int64_t offset = static_cast<int64_t>(*alloc.getOffset()) * plan.maxTokens;
    values[alloc] = k.at(field(offsetof(llmc_step_context, arena)), k.i64(offset));
    return success();
  }
  if (auto logits = dyn_cast<tile::LogitsOp>(op)) {
    values[logits] = field(offsetof(llmc_step_context, logits));
    return success();
  }
  if (auto use = dyn_cast<llm::UseWeightOp>(op)) {
    FailureOr<int64_t> offset = offsetOf<llm::WeightOp>(op, use.getSymbolAttr().getAttr());
    if (failed(offset))
      return failure();
    values[use] = k.at(field(offsetof(llmc_step_context, weights)), k.i64(*offset));
    return success();
  }
  if (auto use = dyn_cast<llm::UseStateOp>(op)) {
    FailureOr<int64_t> offset = offsetOf<llm::StateOp>(op, use.getSymbolAttr().getAttr());
    if (failed(offset))
      return failure();
    bool recurrent = isa<llm::RecurrentType>(use.getType());
    values[use] =
        k.at(field(recurrent ? offsetof(llmc_step_context, state) : offsetof(llmc_step_context, kv)), k.i64(*offset));
    return success();
  }
  if (auto launch = dyn_cast<tile::LaunchOp>(op))
    return emitLaunch(k, launch);
  if (auto layer = dyn_cast<func::CallOp>(op))
    return emitCall(k, layer);
  if (tile::isCollective(&op)) {
    emitCollective(k, op);
    return success();
  }
  if (auto wait = dyn_cast<tile::WaitOp>(op)) {
    emitWait(k, llvm::map_to_vector(wait.getTokens(), [&](Value token) { return descriptions.lookup(token); }));
    return success();
  }
  if (isa<func::ReturnOp>(op) && op.getNumOperands() == 0)
    return success();
  return op.emitOpError() << "cannot be in a step program when code is generated (known = tile.alloc tile.logits "
                             "tile.launch tile.all_reduce tile.all_gather tile.send tile.receive tile.wait "
                             "llm.use_weight llm.use_state func.call)";
}

LogicalResult FunctionEmitter::emitCall(KernelBuilder &k, func::CallOp layer) {
  auto callee = program.lookupSymbol<func::FuncOp>(layer.getCalleeAttr().getAttr());
  if (!callee || layer.getNumResults() != 0)
    return layer.emitOpError() << "must call a function of this module that returns nothing";
  SmallVector<Value> operands = {context};
  for (Value operand : layer.getOperands())
    operands.push_back(pointerTo(k, operand));
  call(k, functionSymbol(callee), operands);
  return success();
}

bool FunctionEmitter::mayFail(Operation &op) {
  if (auto layer = dyn_cast<func::CallOp>(op))
    return exchanges(program.lookupSymbol<func::FuncOp>(layer.getCalleeAttr().getAttr()));
  return isa<tile::WaitOp>(op) || (tile::isCollective(&op) && op.getNumResults() == 0);
}

LogicalResult FunctionEmitter::emitLaunch(KernelBuilder &k, tile::LaunchOp launch) {
  auto task = program.lookupSymbol<tile::TaskOp>(launch.getTaskAttr().getAttr());
  SmallVector<Value> operands = {context};
  for (auto [operand, argument] : llvm::zip_equal(launch.getOperands(), task.getOperandArguments()))
    operands.push_back(pointerTo(k, operand, tile::isRoom(argument)));
  if (std::optional<int64_t> record = firstRecordOf(task))
    operands.push_back(k.i64(*record));
  auto run = [&] {
    emitTrace(k, numbers.lookup(task));
    call(k, taskSymbol(task.getSymName()), operands);
    emitBarrier(k, context);
  };
  if (!launch.getRecording()) {
    run();
    return success();
  }
  // All workers see the same context, so all of them skip the barrier or none.
  Value record = k.load(pointer, context, offsetof(llmc_step_context, record));
  Value wanted = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, record, LLVM::ZeroOp::create(b, pointer));
  k.when(wanted, run);
  return success();
}

// What was launched before has met at a barrier, so that one worker can speak for the rank.
void FunctionEmitter::emitCollective(KernelBuilder &k, Operation &op) {
  std::string description = describe(op);
  Value worker = k.loadInt(context, offsetof(llmc_step_context, worker));
  k.when(k.equal(worker, k.i64(0)), [&] { emitStart(k, op, description); });
  if (op.getNumResults() > 0)
    descriptions[op.getResult(0)] = description;
  else
    emitWait(k, description);
}

void FunctionEmitter::emitStart(KernelBuilder &k, Operation &op, StringRef description) {
  auto [input, result] = operandsOf(op);
  auto pointerOf = [&](Value rows) { return rows ? pointerTo(k, rows) : LLVM::ZeroOp::create(b, pointer).getResult(); };
  Value function = k.load(pointer, context, offsetof(llmc_step_context, collective_start));
  Value state = k.load(pointer, context, offsetof(llmc_step_context, collective_state));
  Value batch = k.load(pointer, context, offsetof(llmc_step_context, batch));
  Value what = LLVM::AddressOfOp::create(b, pointer, description);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), SmallVector<Type>(5, pointer));
  LLVM::CallOp::create(b, type, ValueRange{function, state, what, batch, pointerOf(input), pointerOf(result)});
}

// One worker waits, and all learn how it went.
void FunctionEmitter::emitWait(KernelBuilder &k, ArrayRef<std::string> exchanges) {
  emitTrace(k, LLMC_TRACE_WAIT);
  Value worker = k.loadInt(context, offsetof(llmc_step_context, worker));
  Value failed = k.load(pointer, context, offsetof(llmc_step_context, collective_failed));
  k.when(k.equal(worker, k.i64(0)), [&] {
    Value function = k.load(pointer, context, offsetof(llmc_step_context, collective_wait));
    Value state = k.load(pointer, context, offsetof(llmc_step_context, collective_state));
    auto type = LLVM::LLVMFunctionType::get(k.i32Type, {pointer, pointer});
    // One that comes after a failure says so again.
    for (const std::string &exchange : exchanges) {
      Value what = LLVM::AddressOfOp::create(b, pointer, exchange);
      auto wait = LLVM::CallOp::create(b, type, ValueRange{function, state, what});
      k.store(wait.getResult(), failed);
    }
  });
  emitBarrier(k, context);
}

// The name of the constant that says what is exchanged.
std::string FunctionEmitter::describe(Operation &op) {
  // Logits lie row by row, as the caller wants them.
  auto strideOf = [](Value rows) -> int64_t {
    if (!rows)
      return 0;
    auto type = cast<tile::RowsType>(rows.getType());
    return rows.getDefiningOp<tile::LogitsOp>() ? type.getChannels() : type.stride();
  };
  auto [input, result] = operandsOf(op);
  int number = numCollectives++;
  SmallVector<int64_t> words =
      tile::describeCollective(&op, tile::ranksOf(program), strideOf(input), strideOf(result), number);
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  std::string name = "llmc_collective." + std::to_string(number);
  auto tensor = RankedTensorType::get({static_cast<int64_t>(words.size())}, b.getI64Type());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI64Type(), words.size()), /*isConstant=*/true,
                         LLVM::Linkage::Internal, name, DenseElementsAttr::get(tensor, ArrayRef<int64_t>(words)),
                         /*alignment=*/8);
  return name;
}

// All workers read the same word behind the same barrier: all return, or none.
void FunctionEmitter::returnWhereFailed(KernelBuilder &k) {
  Value failed = k.loadInt(k.load(pointer, context, offsetof(llmc_step_context, collective_failed)));
  Region *region = b.getInsertionBlock()->getParent();
  Block *goOn = new Block, *end = new Block;
  region->push_back(end);
  region->push_back(goOn);
  LLVM::CondBrOp::create(b, k.equal(failed, k.i64(0)), goOn, end);
  b.setInsertionPointToEnd(end);
  LLVM::ReturnOp::create(b, ValueRange{});
  b.setInsertionPointToEnd(goOn);
}

bool FunctionEmitter::exchanges(func::FuncOp function) {
  auto known = exchanging.find(function);
  if (known != exchanging.end())
    return known->second;
  bool found = llvm::any_of(function.getBody().front(), [&](Operation &op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      return exchanges(program.lookupSymbol<func::FuncOp>(call.getCalleeAttr().getAttr()));
    return tile::isCollective(&op);
  });
  return exchanging[function] = found;
}

// One test a launch where nobody traces.
void FunctionEmitter::emitTrace(KernelBuilder &k, int32_t task) {
  Value hook = k.load(pointer, context, offsetof(llmc_step_context, trace));
  Value wanted = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, hook, LLVM::ZeroOp::create(b, pointer));
  k.when(wanted, [&] {
    Value state = k.load(pointer, context, offsetof(llmc_step_context, trace_state));
    Value worker = k.load(k.i32Type, context, offsetof(llmc_step_context, worker));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, k.i32Type, k.i32Type});
    LLVM::CallOp::create(b, type, ValueRange{hook, state, worker, k.i32(task)});
  });
}

void FunctionEmitter::call(KernelBuilder &k, StringRef symbol, ValueRange operands) {
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), SmallVector<Type>(operands.getTypes()));
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::LLVMFuncOp::create(b, symbol, type).setVisibility_(LLVM::Visibility::Hidden);
  }
  LLVM::CallOp::create(b, type, symbol, operands);
}

} // namespace

void llmc::cpu::emitBarrier(KernelBuilder &k, Value context) {
  Value barrier = k.load(k.pointerType, context, offsetof(llmc_step_context, barrier));
  Value state = k.load(k.pointerType, context, offsetof(llmc_step_context, barrier_state));
  Value worker = k.load(k.i32Type, context, offsetof(llmc_step_context, worker));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(k.b.getContext()), {k.pointerType, k.i32Type});
  LLVM::CallOp::create(k.b, type, ValueRange{barrier, state, worker});
}

FailureOr<PlanFacts> llmc::cpu::planFactsOf(ModuleOp program) {
  auto tokens = program->getAttrOfType<IntegerAttr>("llmc.max_tokens");
  auto page = program->getAttrOfType<IntegerAttr>("llmc.page_bytes");
  if (!tokens || !page || tokens.getInt() < 1 || page.getInt() < 0)
    return program.emitError() << "module has no memory plan (llmc.max_tokens >= 1 and llmc.page_bytes >= 0); run "
                                  "llmc-plan-memory first";
  PlanFacts plan;
  plan.maxTokens = tokens.getInt();
  plan.pageBytes = page.getInt();
  if (auto state = program->getAttrOfType<IntegerAttr>("llmc.state_bytes"))
    plan.stateBytes = state.getInt();
  return plan;
}

FailureOr<DenseMap<Operation *, SmallVector<bool>>> llmc::cpu::findLogitsOperands(ModuleOp program) {
  DenseMap<Operation *, SmallVector<bool>> found;
  bool ok = true;
  program.walk([&](tile::LaunchOp launch) {
    auto task = program.lookupSymbol<tile::TaskOp>(launch.getTaskAttr().getAttr());
    if (!task || task.getOperandArguments().size() != launch.getOperands().size()) {
      launch.emitOpError() << "does not fit a task of this module";
      ok = false;
      return;
    }
    SmallVector<bool> isLogits;
    for (Value operand : launch.getOperands())
      isLogits.push_back(operand.getDefiningOp<tile::LogitsOp>() != nullptr);
    auto [entry, isNew] = found.try_emplace(task, isLogits);
    if (!isNew && entry->second != isLogits) {
      launch.emitOpError() << "passes the logits where another launch of @" << task.getSymName() << " passes a buffer";
      ok = false;
    }
  });
  if (!ok)
    return failure();
  return found;
}

LogicalResult llmc::cpu::emitProgram(ModuleOp program, const PlanFacts &plan, const CpuTarget &target,
                                     const TaskNumbers &numbers, ModuleOp module) {
  if (!program.lookupSymbol<func::FuncOp>("step"))
    return program.emitError() << "module has no function @step";
  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  LLVM::GlobalOp::create(b, b.getI32Type(), /*isConstant=*/true, LLVM::Linkage::External, "llmc_abi_version",
                         b.getI32IntegerAttr(LLMC_ABI_VERSION));
  FunctionEmitter emitter(b, program, plan, target, numbers);
  // Callees first: `call` then finds them declared.
  for (auto function : program.getOps<func::FuncOp>())
    if (function.getSymName() != "step" && failed(emitter.emit(function)))
      return failure();
  return emitter.emit(program.lookupSymbol<func::FuncOp>("step"));
}

namespace {

int64_t exchangesOf(ModuleOp program, func::FuncOp function) {
  int64_t count = 0;
  for (Operation &op : function.getBody().front()) {
    count += tile::isCollective(&op);
    if (auto call = dyn_cast<func::CallOp>(op))
      if (auto callee = program.lookupSymbol<func::FuncOp>(call.getCallee()); callee && !callee.isExternal())
        count += exchangesOf(program, callee);
  }
  return count;
}

} // namespace

FailureOr<RankFacts> llmc::cpu::exchangeFactsOf(ModuleOp program, int64_t maxTokens, int64_t maxLogitRows) {
  uint64_t most = 0;
  bool fits = true;
  program.walk([&](Operation *op) {
    if (!tile::isCollective(op))
      return;
    // Where rows lie apart makes no difference to their copies.
    SmallVector<int64_t> words = tile::describeCollective(op, tile::ranksOf(program), 0, 0);
    const auto *what = reinterpret_cast<const llmc_collective *>(words.data());
    CheckedSize bytes = collectiveScratchFloats(*what, what->logit_rows ? maxLogitRows : maxTokens) * sizeof(float);
    fits &= bytes.fits(std::numeric_limits<int64_t>::max());
    most = std::max(most, bytes.value().value_or(0));
  });
  if (!fits)
    return program.emitError() << "copies of the rows that ranks exchange take more than 2^63 bytes";
  auto factOr = [&](StringRef name, int64_t otherwise) {
    auto fact = program->getAttrOfType<IntegerAttr>(name);
    return static_cast<int32_t>(fact ? fact.getInt() : otherwise);
  };
  RankFacts facts;
  facts.exchanges = static_cast<int32_t>(exchangesOf(program, program.lookupSymbol<func::FuncOp>("step")));
  facts.rowBlocks = factOr("llmc.row_blocks", 1);
  facts.rowsPerBlock = factOr("llmc.rows_per_block", 1);
  // Blocks share it by their rows; what an exchange needs however many rows it has, every block needs.
  if (facts.rowBlocks > 1 && most > 0)
    most += sizeof(float) * static_cast<uint64_t>(2 * facts.rowBlocks * (tile::ranksOf(program) + 1));
  facts.collectiveBytes = (most + 63) / 64 * 64;
  return facts;
}
