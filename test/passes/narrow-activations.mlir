// RUN: llmc-opt %s --llmc-narrow-activations | FileCheck %s

// Codes of activations get one byte; everything else stays.
// CHECK-LABEL: tile.task @quantized
// CHECK: %[[CODES:.*]], %[[SCALES:.*]] = tile.quantize %{{.*}} : tensor<64xf32> -> tensor<64xi8>, tensor<2xf32>
// CHECK: tile.scaled_dot %[[CODES]], %[[SCALES]], {{.*}} : tensor<64xi8>, tensor<2xf32>,
tile.task @quantized rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<16x64, i4, tile = 16, panel = 16>, %out: !tile.rows<16>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %codes, %scales = tile.quantize %x : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  %y = tile.scaled_dot %codes, %scales, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<16x64, i4, tile = 16, panel = 16> -> tensor<16xf32>
  tile.store %y, %out[%row, %c0] : tensor<16xf32>, !tile.rows<16>
}

// CHECK-LABEL: tile.task @bf16
// CHECK: tile.dot %{{.*}} : tensor<64xbf16>
tile.task @bf16 rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<32x64, bf16, tile = 32, panel = 32>, %out: !tile.rows<32>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %b = arith.truncf %x : tensor<64xf32> to tensor<64xbf16>
  %y = tile.dot %b, %w[%column] : tensor<64xbf16>, !llm.weight<32x64, bf16, tile = 32, panel = 32> -> tensor<32xf32>
  tile.store %y, %out[%row, %c0] : tensor<32xf32>, !tile.rows<32>
}
