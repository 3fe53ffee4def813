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

class FunctionEmitter {
public:
  FunctionEmitter(ImplicitLocOpBuilder &b, ModuleOp program, const PlanFacts &plan, const CpuTarget &target,
                  const TaskNumbers &numbers)
      : b(b), program(program), plan(plan), target(target), numbers(numbers),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  LogicalResult emit(func::FuncOp function);

private:
  LogicalResult emitOp(KernelBuilder &k, Operation &op);
  LogicalResult emitLaunch(KernelBuilder &k, tile::LaunchOp launch);
  void emitCollective(KernelBuilder &k, Operation &op);
  Value descriptionOf(ArrayRef<int64_t> words);
  void returnWhereFailed(KernelBuilder &k);
  bool exchanges(func::FuncOp function);
  void emitTrace(KernelBuilder &k, tile::TaskOp task);
  void call(KernelBuilder &k, StringRef symbol, ValueRange operands);
  template <typename SymbolOp> FailureOr<int64_t> offsetOf(Operation &user, StringAttr symbol);

  ImplicitLocOpBuilder &b;
  ModuleOp program;
  const PlanFacts &plan;
  const CpuTarget &target;
  const TaskNumbers &numbers;
  Type pointer;
  Value context;
  DenseMap<Value, Value> values;
  DenseMap<Operation *, bool> exchanging; // functions with collectives, or calls of such
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
  if (auto layer = dyn_cast<func::CallOp>(op)) {
    auto callee = program.lookupSymbol<func::FuncOp>(layer.getCalleeAttr().getAttr());
    if (!callee || layer.getNumResults() != 0)
      return layer.emitOpError() << "must call a function of this module that returns nothing";
    SmallVector<Value> operands = {context};
    for (Value operand : layer.getOperands())
      operands.push_back(values.lookup(operand));
    call(k, functionSymbol(callee), operands);
    if (exchanges(callee))
      returnWhereFailed(k);
    return success();
  }
  if (tile::isCollective(&op)) {
    emitCollective(k, op);
    return success();
  }
  if (isa<func::ReturnOp>(op) && op.getNumOperands() == 0)
    return success();
  return op.emitOpError() << "cannot be in a step program when code is generated (known = tile.alloc tile.logits "
                             "tile.launch tile.all_reduce tile.all_gather tile.send tile.receive "
                             "llm.use_weight llm.use_state func.call)";
}

LogicalResult FunctionEmitter::emitLaunch(KernelBuilder &k, tile::LaunchOp launch) {
  auto task = program.lookupSymbol<tile::TaskOp>(launch.getTaskAttr().getAttr());
  SmallVector<Value> operands = {context};
  for (Value operand : launch.getOperands())
    operands.push_back(values.lookup(operand));
  if (std::optional<int64_t> record = firstRecordOf(task))
    operands.push_back(k.i64(*record));
  auto run = [&] {
    emitTrace(k, task);
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

// What was launched before has met at a barrier. One worker speaks for the rank, and all learn how it went.
void FunctionEmitter::emitCollective(KernelBuilder &k, Operation &op) {
  Value input, result;
  llvm::TypeSwitch<Operation *>(&op)
      .Case<tile::AllReduceOp, tile::AllGatherOp>([&](auto collective) {
        input = collective.getInput();
        result = collective.getResult();
      })
      .Case([&](tile::SendOp send) { input = send.getInput(); })
      .Case([&](tile::ReceiveOp receive) { result = receive.getResult(); });
  // Logits lie row by row, as the caller wants them.
  auto strideOf = [](Value rows) -> int64_t {
    if (!rows)
      return 0;
    auto type = cast<tile::RowsType>(rows.getType());
    return rows.getDefiningOp<tile::LogitsOp>() ? type.getChannels() : type.stride();
  };
  auto pointerOf = [&](Value rows) {
    return rows ? values.lookup(rows) : LLVM::ZeroOp::create(b, pointer).getResult();
  };
  SmallVector<int64_t> words = tile::describeCollective(&op, tile::ranksOf(program), strideOf(input), strideOf(result));
  Value worker = k.loadInt(context, offsetof(llmc_step_context, worker));
  Value failed = k.load(pointer, context, offsetof(llmc_step_context, collective_failed));
  k.when(k.equal(worker, k.i64(0)), [&] {
    Value function = k.load(pointer, context, offsetof(llmc_step_context, collective));
    Value state = k.load(pointer, context, offsetof(llmc_step_context, collective_state));
    auto type = LLVM::LLVMFunctionType::get(k.i32Type, {pointer, pointer, pointer, pointer});
    auto run = LLVM::CallOp::create(
        b, type, ValueRange{function, state, descriptionOf(words), pointerOf(input), pointerOf(result)});
    k.store(run.getResult(), failed);
  });
  emitBarrier(k, context);
  returnWhereFailed(k);
}

Value FunctionEmitter::descriptionOf(ArrayRef<int64_t> words) {
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  std::string name = "llmc_collective." + std::to_string(numCollectives++);
  auto tensor = RankedTensorType::get({static_cast<int64_t>(words.size())}, b.getI64Type());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI64Type(), words.size()), /*isConstant=*/true,
                           LLVM::Linkage::Internal, name, DenseElementsAttr::get(tensor, words), /*alignment=*/8);
  }
  return LLVM::AddressOfOp::create(b, pointer, name);
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
void FunctionEmitter::emitTrace(KernelBuilder &k, tile::TaskOp task) {
  Value hook = k.load(pointer, context, offsetof(llmc_step_context, trace));
  Value wanted = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, hook, LLVM::ZeroOp::create(b, pointer));
  k.when(wanted, [&] {
    Value state = k.load(pointer, context, offsetof(llmc_step_context, trace_state));
    Value worker = k.load(k.i32Type, context, offsetof(llmc_step_context, worker));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, k.i32Type, k.i32Type});
    LLVM::CallOp::create(b, type, ValueRange{hook, state, worker, k.i32(numbers.lookup(task))});
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

FailureOr<uint64_t> llmc::cpu::collectiveBytes(ModuleOp program, int64_t maxTokens, int64_t maxLogitRows) {
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
  return (most + 63) / 64 * 64;
}
