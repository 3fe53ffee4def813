// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @window_pool_c1(%v: tensor<?x48xf32>, %s: !llm.recurrent<1x3x16>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.window_pool' op makes 16 channels of 48, expected as many or twice as many}}
  %y = llm.window_pool %v, %v, %s, %batch {window = 4 : i64} : tensor<?x48xf32>, !llm.recurrent<1x3x16> -> tensor<?x16xf32>
  return
}

// -----

func.func @window_pool_c2(%v: tensor<?x32xf32>, %s: !llm.recurrent<1x3x16>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.window_pool' op has a state of '!llm.recurrent<1x3x16>', expected 1 x 9 x 16}}
  %y = llm.window_pool %v, %v, %s, %batch {window = 4 : i64} : tensor<?x32xf32>, !llm.recurrent<1x3x16> -> tensor<?x16xf32>
  return
}

// -----

func.func @window_pool_c3(%v: tensor<?x16xf32>, %s: !llm.recurrent<1x3x16>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.window_pool' op has windows of 0 positions, expected at least 1}}
  %y = llm.window_pool %v, %v, %s, %batch {window = 0 : i64} : tensor<?x16xf32>, !llm.recurrent<1x3x16> -> tensor<?x16xf32>
  return
}

// -----

func.func @window_pool_c4(%v: tensor<?x16xf32>, %s: !llm.recurrent<1x3x16>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.window_pool' op updates a state that another llm.window_pool updates too}}
  %y = llm.window_pool %v, %v, %s, %batch {window = 4 : i64} : tensor<?x16xf32>, !llm.recurrent<1x3x16> -> tensor<?x16xf32>
  %z = llm.window_pool %v, %v, %s, %batch {window = 4 : i64} : tensor<?x16xf32>, !llm.recurrent<1x3x16> -> tensor<?x16xf32>
  return
}
