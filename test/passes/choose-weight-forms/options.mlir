// RUN: llmc-opt %s --llmc-choose-weight-forms=weights=f32 | FileCheck %s --check-prefix=F32
// RUN: llmc-opt %s --llmc-choose-weight-forms=weights=bf16 | FileCheck %s --check-prefix=BF16
// RUN: llmc-opt %s --llmc-choose-weight-forms=weights=int8 | FileCheck %s --check-prefix=INT8
// RUN: llmc-opt %s --llmc-choose-weight-forms=weights=int4 | FileCheck %s --check-prefix=INT4

// F32: @matrix : !llm.weight<32x64, f32>
// BF16: @matrix : !llm.weight<32x64, bf16> {{.+}} {fate = "kept", reason = "stored as BF16, kept exactly"}
// INT8: @matrix : !llm.weight<32x64, i8> {{.+}} {fate = "converted", reason = "stored as BF16, quantised to 8 bits (error at most 1/253 of the largest of 32)"}
// INT4: @matrix : !llm.weight<32x64, i4m>
llm.weight @matrix : !llm.weight<32x64> from [{tensor = "w", type = "BF16"}]
// A gain is no operand of a product: no option changes it.
// F32: @gain : !llm.weight<64, plain>
// BF16: @gain : !llm.weight<64, plain>
// INT8: @gain : !llm.weight<64, plain>
// INT4: @gain : !llm.weight<64, plain>
llm.weight @gain : !llm.weight<64> from [{tensor = "g", type = "BF16"}]
// Single rows of the embedding are what the model sees: never below 8 bits.
// INT8: @embedding : !llm.weight<320x64, i8>
// INT4: @embedding : !llm.weight<320x64, i8>
llm.weight @embedding : !llm.weight<320x64> from [{tensor = "e", type = "BF16"}]
// A convolution has few taps, which no option rounds.
// F32: @taps : !llm.weight<64x4, f32>
// BF16: @taps : !llm.weight<64x4, f32>
// INT8: @taps : !llm.weight<64x4, f32>
// INT4: @taps : !llm.weight<64x4, f32> {{.+}} {fate = "kept", reason = "the taps of a convolution are f32: stored as BF16, kept exactly"}
llm.weight @taps : !llm.weight<64x4> from [{tensor = "t", type = "BF16"}]
// A table of indices is read as it stands.
// BF16: @table : !llm.weight<320x4, plain>
// INT4: @table : !llm.weight<320x4, plain>
llm.weight @table : !llm.weight<320x4> from [{tensor = "i", type = "I64"}]
llm.state @memory : !llm.recurrent<1x64x3>

func.func private @mixer(%x: tensor<?x64xf32>, %t: !llm.weight<64x4>, %s: !llm.recurrent<1x64x3>, %batch: !llm.batch) -> tensor<?x64xf32> {
  %y = llm.short_conv %x, %t, %s, %batch : tensor<?x64xf32>, !llm.weight<64x4>, !llm.recurrent<1x64x3>
  return %y : tensor<?x64xf32>
}
func.func private @layer(%x: tensor<?x64xf32>, %w: !llm.weight<32x64>) -> tensor<?x32xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x32xf32> {
  %e = llm.use_weight @embedding : !llm.weight<320x64>
  %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<320x64> -> tensor<?x64xf32>
  %t = llm.use_weight @taps : !llm.weight<64x4>
  %s = llm.use_state @memory : !llm.recurrent<1x64x3>
  %m = call @mixer(%x, %t, %s, %batch) : (tensor<?x64xf32>, !llm.weight<64x4>, !llm.recurrent<1x64x3>, !llm.batch) -> tensor<?x64xf32>
  %i = llm.use_weight @table : !llm.weight<320x4>
  %n = llm.embedding %batch, %i {scale = 1.0 : f32, exact} : !llm.weight<320x4> -> tensor<?x4xf32>
  llm.record %n, %batch {index = 0 : i64} : tensor<?x4xf32>
  %w = llm.use_weight @matrix : !llm.weight<32x64>
  %y = call @layer(%m, %w) : (tensor<?x64xf32>, !llm.weight<32x64>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
