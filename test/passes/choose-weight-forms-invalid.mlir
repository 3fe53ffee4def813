// RUN: llmc-opt %s --llmc-choose-weight-forms --split-input-file --verify-diagnostics
// RUN: not llmc-opt %s --llmc-choose-weight-forms=weights=int3 2>&1 | FileCheck %s

// CHECK: error: unknown weight form 'int3' (known = stored f32 bf16 int8 int4)

// Codes alone, without the scales that would make numbers of them.
// expected-error @+1 {{a weight stored as I32 is not supported (supported = F64, F32, F16, BF16}}
llm.weight @w : !llm.weight<32x64> from [{tensor = "w", type = "I32"}]
