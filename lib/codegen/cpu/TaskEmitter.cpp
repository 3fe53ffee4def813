// The shapes of a task: plain rows and a dot with what comes before and after it are here.
#include "lib/codegen/cpu/TaskEmitter.h"
#include "lib/codegen/cpu/AttendTask.h"
#include "lib/codegen/cpu/CompileUnits.h"
#include "lib/codegen/cpu/DotTask.h"
#include "lib/codegen/cpu/RecurrentTask.h"
#include "lib/codegen/cpu/SelectTask.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

class TaskEmitter {
public:
  TaskEmitter(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule)
      : k(kernel), task(task), schedule(schedule) {}
  LogicalResult emit();

private:
  LogicalResult emitRows();

  KernelBuilder &k;
  TaskContext &task;
  Schedule schedule;
  WorkShare share;
};

LogicalResult TaskEmitter::emit() {
  int64_t field = task.task.getSpace() == tile::Space::Rows ? offsetof(llmc_batch, num_tokens)
                                                            : offsetof(llmc_batch, num_logit_rows);
  share.rowCount = k.loadInt(task.batch, field);
  share.worker = k.loadInt(task.context, offsetof(llmc_step_context, worker));
  share.workers = k.loadInt(task.context, offsetof(llmc_step_context, num_workers));
  switch (schedule.shape) {
  case TaskShape::Rows:
    return emitRows();
  case TaskShape::Dot:
  case TaskShape::QuantizedDot:
    return emitDotTask(k, task, schedule, share);
  case TaskShape::Attend:
    return emitAttendTask(k, task, schedule);
  case TaskShape::Recurrent:
    return emitRecurrentTask(k, task);
  case TaskShape::Select:
    return emitSelectTask(k, task, schedule);
  }
  return failure();
}

LogicalResult TaskEmitter::emitRows() {
  int64_t columns = static_cast<int64_t>(task.task.getColumns());
  auto [from, to] = share.of(k, k.mul(share.rowCount, columns), 1);
  bool ok = true;
  k.loop(from, to, 1, [&](Value cell) {
    RowProgram program(k, task, k.div(cell, columns), k.rem(cell, columns));
    ok &= succeeded(program.emitBlock(task.task.getBody().front()));
  });
  return success(ok);
}

} // namespace

std::string llmc::cpu::taskSymbol(StringRef task) { return "llmc_task." + task.str(); }

FailureOr<int64_t> llmc::cpu::emitTask(tile::TaskOp task, const Schedule &schedule, const TaskOptions &options,
                                       ModuleOp module) {
  TaskContext context;
  context.task = task;
  context.plan = options.plan;
  if (failed(analyzeBody(context)))
    return failure();

  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  size_t operandCount = task.getOperandArguments().size();
  SmallVector<Type> inputs(1 + operandCount, pointer);
  if (firstRecordOf(task))
    inputs.push_back(b.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), inputs);
  auto function = LLVM::LLVMFuncOp::create(b, kernelSymbol, type);
  function.setVisibility_(LLVM::Visibility::Hidden);
  b.setInsertionPointToEnd(function.addEntryBlock(b));

  KernelBuilder kernel(b, function, options.target, options.emulate);
  context.context = function.getArgument(0);
  context.batch = kernel.load(pointer, context.context, offsetof(llmc_step_context, batch));
  kernel.setScratch(kernel.load(pointer, context.context, offsetof(llmc_step_context, scratch)));
  for (auto [index, argument] : llvm::enumerate(task.getOperandArguments())) {
    context.operands[argument] = function.getArgument(1 + index);
    if (auto rows = dyn_cast<tile::RowsType>(argument.getType()))
      context.rowStride[argument] = options.isLogits[index] ? rows.getChannels() : rows.stride();
  }
  if (firstRecordOf(task))
    context.firstRecord = function.getArguments().back();
  LogicalResult result = TaskEmitter(kernel, context, schedule).emit();
  LLVM::ReturnOp::create(b, ValueRange{});
  if (failed(result))
    return failure();
  return kernel.scratchBytes();
}
