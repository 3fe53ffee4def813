// The cost of an op: what a plan or a report needs to know without running anything.
#ifndef LLMC_DIALECTS_LLM_INTERFACES_TD
#define LLMC_DIALECTS_LLM_INTERFACES_TD
include "mlir/IR/OpBase.td"

def Llm_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::llmc::llm";
  let description = [{
    Floating-point operations and bytes moved when the op runs on `rows` rows, each of which sees `context` positions.
    Bytes count every operand and result once, weights in their chosen form (f32 before one is chosen).
  }];
  let methods = [
    InterfaceMethod<"operations: one multiply-add counts two", "int64_t", "flops",
                    (ins "int64_t":$rows, "int64_t":$context)>,
    InterfaceMethod<"bytes read and written", "int64_t", "bytes", (ins "int64_t":$rows, "int64_t":$context)>,
  ];
}

#endif // LLMC_DIALECTS_LLM_INTERFACES_TD
