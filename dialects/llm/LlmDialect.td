// The llm dialect: a model as its paper describes it. Tensors and state, no memory, no target.
#ifndef LLMC_DIALECTS_LLM_DIALECT_TD
#define LLMC_DIALECTS_LLM_DIALECT_TD
include "mlir/IR/OpBase.td"

def Llm_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::llmc::llm";
  let summary = "language models as their papers describe them";
  let description = [{
    Activations are `tensor<?xCxf32>` over the rows (tokens) of a ragged batch; heads are explicit, `tensor<?xHxDxf32>`.
    Weights and state are symbols: the IR holds name, shape, sources and transforms, never data. A step program is

    - `llm.weight` and `llm.state` symbols,
    - one `func.func` per distinct kind of layer, called once per layer with its weights and state,
    - `func.func @step(%batch: !llm.batch) -> tensor<?xVxf32>`: the logits of the rows that the batch asks for.

    All arithmetic is defined in f32; passes that round (weights, activations, cache) say so.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::shard::ShardDialect"];
}

#endif // LLMC_DIALECTS_LLM_DIALECT_TD
