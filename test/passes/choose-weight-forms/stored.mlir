// RUN: llmc-opt %s --allow-unregistered-dialect --llmc-choose-weight-forms | FileCheck %s

// Each storage keeps its numbers in the narrowest form that holds them; the reason stands beside the choice.
// CHECK: @bf16 : !llm.weight<32x64, bf16> {{.+}} {fate = "kept", reason = "stored as BF16, kept exactly"}
// CHECK: @f16 : !llm.weight<32x64, f32> {{.+}} {fate = "converted", reason = "stored as F16, exact in f32 (no f16 kernel)"}
// CHECK: @q8_0 : !llm.weight<32x64, i8>
// CHECK: @q4_0 : !llm.weight<32x64, i4>
// CHECK: @q4_1 : !llm.weight<32x64, i4m>
// CHECK: @q6_k : !llm.weight<32x256, i8>
llm.weight @bf16 : !llm.weight<32x64> from [{tensor = "a", type = "BF16"}]
llm.weight @f16 : !llm.weight<32x64> from [{tensor = "b", type = "F16"}]
llm.weight @q8_0 : !llm.weight<32x64> from [{tensor = "c", type = "Q8_0"}]
llm.weight @q4_0 : !llm.weight<32x64> from [{tensor = "d", type = "Q4_0"}]
llm.weight @q4_1 : !llm.weight<32x64> from [{tensor = "e", type = "Q4_1"}]
llm.weight @q6_k : !llm.weight<32x256> from [{tensor = "f", type = "Q6_K"}]
// Parts of one product that are stored differently meet in the wider form.
// CHECK: @mixed : !llm.weight<64x64, i8>
llm.weight @mixed : !llm.weight<64x64> from [{tensor = "g", type = "Q4_0"}, {tensor = "h", type = "Q8_0"}]
// Without a file at hand: what checkpoints are published in today.
// CHECK: @unknown : !llm.weight<32x64, bf16>
llm.weight @unknown : !llm.weight<32x64> from [{tensor = "i"}]
// Tensors of a stack that are stored differently do, too.
// CHECK: @stack : !llm.weight<8x64x64, i8>
llm.weight @stack : !llm.weight<8x64x64> from [{tensor = "k.{expert}", stack = 8, type = "Q4_0, Q8_0"}]
// A vector is no operand of a product.
// CHECK: @gain : !llm.weight<64, plain>
llm.weight @gain : !llm.weight<64> from [{tensor = "j", type = "BF16"}]
// Neither are two vectors that a layer hands to another operand.
// CHECK: @gains : !llm.weight<2x64, plain> {{.+}} {fate = "kept", reason = "a vector is plain f32: stored as BF16, kept exactly"}
llm.weight @gains : !llm.weight<2x64> from [{tensor = "l", type = "BF16"}]
func.func private @layer(%w: !llm.weight<2x64>) {
  "test.reads"(%w) : (!llm.weight<2x64>) -> ()
  return
}
func.func @step() {
  %w = llm.use_weight @gains : !llm.weight<2x64>
  call @layer(%w) : (!llm.weight<2x64>) -> ()
  return
}
