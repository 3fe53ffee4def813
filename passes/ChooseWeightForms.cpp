// Decides per symbol, then makes the types of uses, operands and layer functions agree.
#include "lib/weights/ChooseForm.h"
#include "passes/LayerCalls.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace llmc {
#define GEN_PASS_DEF_CHOOSEWEIGHTFORMSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// What checkpoints are published in today; assumed where no weight file is at hand.
constexpr StringLiteral usualStorage = "BF16";

std::vector<std::string> storagesOf(llm::WeightOp weight) {
  std::vector<std::string> storages;
  for (Attribute source : weight.getSources()) {
    auto type = cast<DictionaryAttr>(source).getAs<StringAttr>("type");
    // Tensors of a stack may be stored in different ways.
    for (StringRef one : llvm::split(type ? type.getValue() : StringRef(usualStorage), ", "))
      storages.push_back(one.str());
  }
  return storages;
}

// What products multiply by and embeddings take rows of; the other operands are lists of numbers, whatever their rank.
bool readsMatrix(OpOperand &operand) {
  if (auto embedding = dyn_cast<llm::EmbeddingOp>(operand.getOwner()); embedding && embedding.getExact())
    return false;
  return isa<llm::LinearOp, llm::FusedLinearOp, llm::ExpertLinearOp, llm::HeadLinearOp, llm::EmbeddingOp>(
             operand.getOwner()) &&
         operand.getOperandNumber() == 1;
}

// How a weight's value is read, through calls of layer functions.
struct Readers {
  bool asMatrix = false, asTaps = false, otherwise = false;
};

void findReaders(Value weight, SymbolTable &symbols, Readers &readers) {
  for (OpOperand &use : weight.getUses()) {
    auto call = dyn_cast<func::CallOp>(use.getOwner());
    auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    if (callee && !callee.isExternal())
      findReaders(callee.getArgument(use.getOperandNumber()), symbols, readers);
    else
      (readsMatrix(use)                        ? readers.asMatrix
       : isa<llm::ShortConvOp>(use.getOwner()) ? readers.asTaps
                                               : readers.otherwise) = true;
  }
}

// Of weights of two dimensions, by symbol.
llvm::DenseMap<StringAttr, Readers> readersOf(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::DenseMap<StringAttr, Readers> readers;
  module.walk([&](llm::UseWeightOp use) {
    if (use.getType().getShape().size() == 2)
      findReaders(use.getResult(), symbols, readers[use.getSymbolAttr().getAttr()]);
  });
  return readers;
}

// Symbols that @step itself reads as a matrix: the embedding and the head.
llvm::DenseSet<StringAttr> embeddingSymbols(ModuleOp module) {
  llvm::DenseSet<StringAttr> symbols;
  module.walk([&](llm::UseWeightOp use) {
    for (Operation *user : use.getResult().getUsers())
      if (!isa<func::CallOp>(user))
        symbols.insert(use.getSymbolAttr().getAttr());
  });
  return symbols;
}

LogicalResult chooseForms(ModuleOp module, FormOption option) {
  llvm::DenseSet<StringAttr> embeddings = embeddingSymbols(module);
  llvm::DenseMap<StringAttr, Readers> readers = readersOf(module);
  for (auto weight : module.getOps<llm::WeightOp>()) {
    auto type = cast<llm::WeightType>(weight.getType());
    StringAttr name = weight.getSymNameAttr();
    Readers by = readers.lookup(name);
    // Two dimensions that nothing multiplies by are a list too: biases of experts, tables of offsets.
    bool isList = type.getShape().size() == 1 || (by.otherwise && !by.asMatrix);
    WeightRole role = by.asTaps                   ? WeightRole::Taps
                      : isList                    ? WeightRole::Vector
                      : embeddings.contains(name) ? WeightRole::Embedding
                                                  : WeightRole::Matrix;
    StatusOr<FormChoice> choice = chooseForm(storagesOf(weight), option, role);
    if (!choice.ok())
      return weight.emitOpError() << choice.status().message();
    weight.setTypeAttr(TypeAttr::get(type.withForm(choice->form)));
    weight->setAttr("reason", StringAttr::get(weight.getContext(), choice->reason));
    weight->setAttr("fate", StringAttr::get(weight.getContext(), nameOf(choice->fate)));
  }
  return success();
}

// A function per combination of forms that `function` is called with: the first keeps its name.
void specialise(func::FuncOp function, ArrayRef<func::CallOp> calls, SymbolTable &symbols) {
  llvm::MapVector<ArrayAttr, func::FuncOp> versions;
  for (func::CallOp call : calls) {
    SmallVector<Type> types(call.getOperandTypes());
    func::FuncOp &version = versions[Builder(call).getTypeArrayAttr(types)];
    if (!version) {
      version = function;
      if (versions.size() > 1) {
        version = function.clone();
        symbols.insert(version, ++Block::iterator(function));
      }
      for (auto [argument, type] : llvm::zip(version.getArguments(), types))
        argument.setType(type);
      updateFunctionType(version);
    }
    call.setCallee(version.getSymName());
  }
}

struct ChooseWeightForms : llmc::impl::ChooseWeightFormsPassBase<ChooseWeightForms> {
  using Base::Base;

  void runOnOperation() override {
    StatusOr<FormOption> option = formOption(weights.getValue());
    if (!option.ok()) {
      getOperation().emitError() << option.status().message();
      return signalPassFailure();
    }
    if (failed(chooseForms(getOperation(), *option)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    getOperation().walk([&](llm::UseWeightOp use) {
      use.getResult().setType(cast<llm::WeightType>(symbols.lookup<llm::WeightOp>(use.getSymbol()).getType()));
    });
    LayerCalls calls(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      specialise(function, calls.callsOf(function), symbols);
  }
};

} // namespace
