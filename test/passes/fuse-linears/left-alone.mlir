// RUN: llmc-opt %s --llmc-fuse-linears --split-input-file | FileCheck %s --implicit-check-not=llm.fused_linear

// Where it must not fire.

llm.weight @q : !llm.weight<32x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
llm.weight @b : !llm.weight<32> from [{tensor = "b"}]
// CHECK-LABEL: func.func private @only_some_have_a_bias
// CHECK-COUNT-2: llm.linear
func.func private @only_some_have_a_bias(%x: tensor<?x16xf32>, %wq: !llm.weight<32x16>, %wk: !llm.weight<16x16>, %bq: !llm.weight<32>)
    -> (tensor<?x32xf32>, tensor<?x16xf32>) {
  %q = llm.linear %x, %wq bias %bq : tensor<?x16xf32>, !llm.weight<32x16>, !llm.weight<32> -> tensor<?x32xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
}
func.func @step(%x: tensor<?x16xf32>) {
  %q = llm.use_weight @q : !llm.weight<32x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %b = llm.use_weight @b : !llm.weight<32>
  %y:2 = call @only_some_have_a_bias(%x, %q, %k, %b) : (tensor<?x16xf32>, !llm.weight<32x16>, !llm.weight<16x16>, !llm.weight<32>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
  return
}

// -----

llm.weight @q : !llm.weight<20x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
// 20 is no multiple of 16: a part would start inside a panel.
// CHECK-LABEL: func.func private @width_is_no_multiple_of_16
// CHECK-COUNT-2: llm.linear
func.func private @width_is_no_multiple_of_16(%x: tensor<?x16xf32>, %wq: !llm.weight<20x16>, %wk: !llm.weight<16x16>)
    -> (tensor<?x20xf32>, tensor<?x16xf32>) {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<20x16> -> tensor<?x20xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  return %q, %k : tensor<?x20xf32>, tensor<?x16xf32>
}
func.func @step(%x: tensor<?x16xf32>) {
  %q = llm.use_weight @q : !llm.weight<20x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %y:2 = call @width_is_no_multiple_of_16(%x, %q, %k) : (tensor<?x16xf32>, !llm.weight<20x16>, !llm.weight<16x16>) -> (tensor<?x20xf32>, tensor<?x16xf32>)
  return
}

// -----

llm.weight @w : !llm.weight<16x16> from [{tensor = "w"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
// The weight has a second reader, which needs it by itself.
// CHECK-LABEL: func.func private @weight_is_read_twice
// CHECK-COUNT-3: llm.linear
func.func private @weight_is_read_twice(%x: tensor<?x16xf32>, %w: !llm.weight<16x16>, %wk: !llm.weight<16x16>) -> tensor<?x16xf32> {
  %a = llm.linear %x, %w : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %s = llm.add %a, %k : tensor<?x16xf32>
  %b = llm.linear %s, %w : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  return %b : tensor<?x16xf32>
}
func.func @step(%x: tensor<?x16xf32>) {
  %w = llm.use_weight @w : !llm.weight<16x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %y = call @weight_is_read_twice(%x, %w, %k) : (tensor<?x16xf32>, !llm.weight<16x16>, !llm.weight<16x16>) -> tensor<?x16xf32>
  return
}

// -----

// CHECK-LABEL: func.func private @inputs_differ
// CHECK-COUNT-2: llm.linear
llm.weight @q : !llm.weight<16x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
func.func private @inputs_differ(%x: tensor<?x16xf32>, %z: tensor<?x16xf32>, %wq: !llm.weight<16x16>, %wk: !llm.weight<16x16>) -> tensor<?x16xf32> {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %k = llm.linear %z, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %s = llm.add %q, %k : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}
func.func @step(%x: tensor<?x16xf32>, %z: tensor<?x16xf32>) {
  %q = llm.use_weight @q : !llm.weight<16x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %y = call @inputs_differ(%x, %z, %q, %k) : (tensor<?x16xf32>, tensor<?x16xf32>, !llm.weight<16x16>, !llm.weight<16x16>) -> tensor<?x16xf32>
  return
}

// -----

// Nobody calls it: there are no symbols to join.
// CHECK-LABEL: func.func private @not_called
// CHECK-COUNT-2: llm.linear
func.func private @not_called(%x: tensor<?x16xf32>, %wq: !llm.weight<16x16>, %wk: !llm.weight<16x16>) -> tensor<?x16xf32> {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %s = llm.add %q, %k : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}
