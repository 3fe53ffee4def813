// The choice of kernels: row blocks from cache sizes, kernel rows from the number of registers.
#include "lib/codegen/cpu/Schedule.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/codegen/cpu/MatrixTiles.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kMaxRowBlock = 128, kMaxTiledRowBlock = 256;
constexpr StringLiteral kShapeNames[] = {"rows", "dot", "quantized_dot", "attend", "recurrent", "select"};

int64_t registersPerVector(const CpuTarget &target) { return 512 / target.vectorBits; }

template <typename Op> Op findOp(tile::TaskOp task) {
  Op found;
  task.walk([&](Op op) { found = op; });
  return found;
}

// Inputs of a block of rows stay in a quarter of the second-level cache, while one column tile of the weight after the
// other passes: it wants the rest, and is read from memory once a block. Where too few rows would share that, they are
// as many as may be, and the depth is cut so that inputs and tile together take half of the cache.
void chooseBlocks(Schedule &schedule, llm::WeightType weight, double bytesPerInput, const CpuTarget &target) {
  constexpr int64_t fewestRows = 96, depthUnit = 64;
  int64_t unit = std::max(schedule.kernelRows, schedule.tileRows), depth = weight.getShape().back();
  double bytesPerRow = bytesPerInput * static_cast<double>(depth);
  int64_t rows =
      std::clamp(static_cast<int64_t>(static_cast<double>(target.l2Bytes / 4) / bytesPerRow), unit, kMaxRowBlock);
  if (rows < fewestRows && schedule.tileRows == 0) {
    rows = kMaxRowBlock;
    double bytesPerDepth = bytesPerInput * static_cast<double>(rows) +
                           llm::bytesPerWeightElement(weight.getForm()) * static_cast<double>(weight.getTile());
    int64_t most = std::max(depthUnit, static_cast<int64_t>(static_cast<double>(target.l2Bytes / 2) / bytesPerDepth));
    int64_t blocks = (depth + most - 1) / most;
    schedule.depthBlock = ((depth + blocks - 1) / blocks + depthUnit - 1) / depthUnit * depthUnit;
  }
  schedule.rowBlock = rows / unit * unit;
}

Schedule chooseDot(llm::WeightType weight, const CpuTarget &target) {
  Schedule schedule;
  schedule.shape = TaskShape::Dot;
  bool bf16 = weight.getForm() == llm::WeightForm::BF16, dot = bf16 && target.hasBf16Dot;
  if (bf16 && target.hasBf16Tiles) {
    schedule.kernelRows = schedule.tileRows = kTileRows;
    schedule.instruction = "tdpbf16ps";
    // Tiles multiply so fast that a block must be large for its weights to arrive in time: half of the cache.
    int64_t rows =
        std::clamp<int64_t>(target.l2Bytes / 2 / (weight.getShape().back() * 2), 2 * kTileRows, kMaxTiledRowBlock);
    schedule.rowBlock = rows / (2 * kTileRows) * (2 * kTileRows);
    schedule.reason = "bf16 weights";
    return schedule;
  }
  // Many rows of two vectors read each weight less often than few rows of four: 12 x 2 and 6 x 4 are the same sums.
  schedule.kernelRows = target.vectorRegisters == 32 ? 12 : 6;
  schedule.instruction = dot ? "vdpbf16ps" : "fma";
  chooseBlocks(schedule, weight, dot ? 2 : 4, target);
  schedule.reason = weight.getForm() == llm::WeightForm::F8 ? "f8 weights, expanded"
                    : !bf16                                 ? "f32 weights"
                    : dot                                   ? "bf16 weights"
                          : "bf16 weights, expanded: no fast bf16 dot on " + target.name;
  return schedule;
}

Schedule chooseQuantized(tile::ScaledDotOp op, const CpuTarget &target) {
  llm::WeightType weight = op.getWeight().getType();
  int64_t codeBytes = getElementTypeOrSelf(op.getCodes().getType()).getIntOrFloatBitWidth() / 8;
  Schedule schedule;
  schedule.shape = TaskShape::QuantizedDot;
  bool bytes = weight.getForm() == llm::WeightForm::I8;
  schedule.kernelRows = 4;
  schedule.tileRows = target.hasInt8Tiles ? kTileRows : 0;
  schedule.instruction = target.hasInt8Tiles ? "tdpbssd+vpdpbusd"
                         : target.hasVnni    ? "vpdpbusd"
                         : bytes             ? "vpsignb+vpmaddubsw"
                                             : "vpmaddubsw";
  // Codes, and a few numbers for each group.
  chooseBlocks(schedule, weight, static_cast<double>(codeBytes) + 0.375, target);
  if (weight.getForm() == llm::WeightForm::F4)
    schedule.instruction = "vpshufb+" + schedule.instruction;
  schedule.reason = (stringifyWeightForm(weight.getForm()) + " weights" + (target.hasVnni ? "" : ", no VNNI on ") +
                     (target.hasVnni ? StringRef() : StringRef(target.name)))
                        .str();
  return schedule;
}

// Products of one query row over an item cost as much as turning its page's rows into panels costs for sixteen of them.
constexpr int64_t kRowsOfLatentItem = 64;
constexpr StringLiteral kPathNames[] = {"tiles", "pairs", "dots", "panels", "rows"};

// The path follows from the cache, which says how elements round; only tiles are the target's choice.
AttendPath choosePath(llm::KvType kv, bool selects, const CpuTarget &target) {
  if (kv.getLatent() || selects)
    return AttendPath::Rows;
  if (!kv.hasPairs())
    return AttendPath::Panels;
  if (!kv.getBlock())
    return AttendPath::Dots;
  bool wholeTiles = kv.getHeadDim() % kTileDepth == 0 && kv.getPage() % kTileDepth == 0;
  return target.hasBf16Tiles && wholeTiles ? AttendPath::Tiles : AttendPath::Pairs;
}

// Instruction and rows for the path of `schedule`.
void chooseAttendKernel(Schedule &schedule, const CpuTarget &target) {
  bool wide = target.vectorRegisters == 32;
  switch (schedule.products) {
  case AttendPath::Tiles:
    schedule.instruction = "tdpbf16ps";
    schedule.kernelRows = kTileRows;
    return;
  case AttendPath::Pairs:
    // Even and odd elements have accumulators of their own.
    schedule.instruction = "fma";
    schedule.kernelRows = wide ? 6 : 3;
    return;
  case AttendPath::Dots:
    schedule.instruction = "vdpbf16ps";
    schedule.kernelRows = wide ? 12 : 4;
    return;
  case AttendPath::Panels:
  case AttendPath::Rows:
    schedule.instruction = "fma";
    schedule.kernelRows = wide ? 12 : 4;
    return;
  }
}

Schedule chooseAttend(tile::AttendOp op, const CpuTarget &target) {
  Schedule schedule;
  schedule.shape = TaskShape::Attend;
  llm::KvType kv = op.getKv().getType();
  int64_t heads = op.getQuery().getType().getDimSize(0) / kv.getHeadDim();
  schedule.products = choosePath(kv, static_cast<bool>(op.getSelected()), target);
  bool tiles = schedule.products == AttendPath::Tiles;
  chooseAttendKernel(schedule, target);
  // Query rows share each page's keys and values: enough to hide its loads, few enough for small batches. Tiles are so
  // fast that the pages must come from beyond the first-level cache five times less often.
  int64_t queryRows = tiles ? 128 : schedule.products == AttendPath::Rows ? kRowsOfLatentItem : 24;
  schedule.rowBlock = op.getSelected() ? 1 : std::max<int64_t>(1, queryRows / heads);
  schedule.reason = std::to_string(heads) + " query heads per key-value head";
  if (schedule.products == AttendPath::Rows)
    schedule.reason +=
        op.getSelected() ? ", selected positions gathered as f32" : ", latent rows turned into panels of f32";
  return schedule;
}

// Every row keeps the best positions it has seen.
Schedule chooseSelect(tile::SelectPositionsOp op, const CpuTarget &target) {
  Schedule schedule;
  schedule.shape = TaskShape::Select;
  int64_t heads = op.getWeights().getType().getDimSize(0);
  schedule.products = choosePath(op.getKv().getType(), /*selects=*/false, target);
  chooseAttendKernel(schedule, target);
  schedule.rowBlock = std::max<int64_t>(1, kRowsOfLatentItem / heads);
  schedule.reason = std::to_string(heads) + " heads of an indexer";
  return schedule;
}

Schedule chooseRecurrent(tile::TaskOp task) {
  Schedule schedule;
  schedule.shape = TaskShape::Recurrent;
  schedule.instruction = "fma";
  schedule.reason = findOp<tile::ConvolveOp>(task) ? "a convolution: rows of a sequence in order"
                    : findOp<tile::PoolOp>(task)   ? "sums over windows: rows of a sequence in order"
                                                   : "linear attention: rows of a sequence in order";
  return schedule;
}

Schedule choose(tile::TaskOp task, const CpuTarget &target) {
  switch (shapeOf(task)) {
  case TaskShape::Dot:
    return chooseDot(findOp<tile::DotOp>(task).getWeight().getType(), target);
  case TaskShape::QuantizedDot:
    return chooseQuantized(findOp<tile::ScaledDotOp>(task), target);
  case TaskShape::Attend:
    return chooseAttend(findOp<tile::AttendOp>(task), target);
  case TaskShape::Recurrent:
    return chooseRecurrent(task);
  case TaskShape::Select:
    return chooseSelect(findOp<tile::SelectPositionsOp>(task), target);
  case TaskShape::Rows:
    break;
  }
  Schedule schedule;
  schedule.instruction = "vector";
  schedule.reason = "no dot and no attention";
  return schedule;
}

} // namespace

TaskShape llmc::cpu::shapeOf(tile::TaskOp task) {
  if (findOp<tile::DotOp>(task))
    return TaskShape::Dot;
  if (findOp<tile::ScaledDotOp>(task))
    return TaskShape::QuantizedDot;
  if (findOp<tile::RecurOp>(task) || findOp<tile::ConvolveOp>(task) || findOp<tile::PoolOp>(task))
    return TaskShape::Recurrent;
  if (findOp<tile::SelectPositionsOp>(task))
    return TaskShape::Select;
  return findOp<tile::AttendOp>(task) ? TaskShape::Attend : TaskShape::Rows;
}

StringRef llmc::cpu::nameOf(TaskShape shape) { return kShapeNames[static_cast<int>(shape)]; }

DictionaryAttr llmc::cpu::chooseSchedule(tile::TaskOp task, const CpuTarget &target) {
  Schedule schedule = choose(task, target);
  Builder b(task.getContext());
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr("instruction", b.getStringAttr(schedule.instruction)),
      b.getNamedAttr("kernel_rows", b.getI64IntegerAttr(schedule.kernelRows)),
      b.getNamedAttr("reason", b.getStringAttr(schedule.reason)),
      b.getNamedAttr("row_block", b.getI64IntegerAttr(schedule.rowBlock)),
      b.getNamedAttr("shape", b.getStringAttr(nameOf(schedule.shape))),
      b.getNamedAttr("tile_rows", b.getI64IntegerAttr(schedule.tileRows)),
  };
  if (schedule.depthBlock)
    attributes.push_back(b.getNamedAttr("depth_block", b.getI64IntegerAttr(schedule.depthBlock)));
  if (schedule.shape == TaskShape::Attend || schedule.shape == TaskShape::Select)
    attributes.push_back(b.getNamedAttr("products", b.getStringAttr(kPathNames[static_cast<int>(schedule.products)])));
  return b.getDictionaryAttr(attributes);
}

FailureOr<Schedule> llmc::cpu::scheduleOf(tile::TaskOp task, const CpuTarget &target) {
  DictionaryAttr attr = task.getSchedule().value_or(DictionaryAttr());
  if (!attr)
    return choose(task, target);
  auto rowBlock = attr.getAs<IntegerAttr>("row_block"), kernelRows = attr.getAs<IntegerAttr>("kernel_rows");
  auto instruction = attr.getAs<StringAttr>("instruction"), reason = attr.getAs<StringAttr>("reason");
  if (!rowBlock || !kernelRows || !instruction || rowBlock.getInt() < 1 || kernelRows.getInt() < 1 ||
      kernelRows.getInt() > 16)
    return task.emitOpError() << "has schedule " << attr
                              << ", expected row_block >= 1, kernel_rows 1 to 16 and an instruction";
  auto tileRows = attr.getAs<IntegerAttr>("tile_rows");
  if (tileRows && tileRows.getInt() != 0 && (tileRows.getInt() != kTileRows || !target.hasInt8Tiles))
    return task.emitOpError() << "has schedule " << attr << ", but matrix tiles of " << target.name << " have "
                              << (target.hasInt8Tiles ? kTileRows : 0) << " rows";
  auto depthBlock = attr.getAs<IntegerAttr>("depth_block");
  if (depthBlock && (depthBlock.getInt() < 64 || depthBlock.getInt() % 64 != 0))
    return task.emitOpError() << "has schedule " << attr << ", expected a depth_block of whole blocks of 64";
  Schedule schedule;
  schedule.shape = shapeOf(task);
  schedule.depthBlock = depthBlock ? depthBlock.getInt() : 0;
  schedule.tileRows = tileRows ? tileRows.getInt() : 0;
  schedule.rowBlock = rowBlock.getInt();
  schedule.kernelRows = kernelRows.getInt();
  schedule.instruction = instruction.str();
  schedule.reason = reason ? reason.str() : "";
  schedule.products = choose(task, target).products;
  auto products = attr.getAs<StringAttr>("products");
  StringRef chosen = kPathNames[static_cast<int>(schedule.products)];
  if (products && products != chosen)
    return task.emitOpError() << "has schedule " << attr << ", but its cache is multiplied by " << chosen << " on "
                              << target.name;
  return schedule;
}

int64_t llmc::cpu::vectorsPerPass(int64_t rows, const CpuTarget &target, int64_t registersPerWeight) {
  // Accumulators, weights and one input; three registers of 32 stay free, none of 16, where the loads fold.
  int64_t per = registersPerVector(target), budget = target.vectorRegisters == 32 ? 29 : 15;
  return std::max<int64_t>(1, (budget - 1) / per / (rows + registersPerWeight));
}
