// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @all_gather_c1(%batch: !llm.batch, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.all_gather' op has the segment array<i64: 0, 4, 4>, expected begin and end of every rank}}
  %y = llm.all_gather %batch, %x : tensor<?x4xf32> {segments = [array<i64: 0, 4, 4>]} -> tensor<?x8xf32>
  return
}

// -----

func.func @all_gather_c1_ranks(%batch: !llm.batch, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.all_gather' op has segments of 2 and of 1 ranks}}
  %y = llm.all_gather %batch, %x : tensor<?x4xf32> {segments = [array<i64: 0, 4, 4, 8>, array<i64: 0, 4>]} -> tensor<?x8xf32>
  return
}

// -----

func.func @all_gather_c1_outside(%batch: !llm.batch, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.all_gather' op gives rank 1 the elements 4 to 9 of 8}}
  %y = llm.all_gather %batch, %x : tensor<?x4xf32> {segments = [array<i64: 0, 4, 4, 9>]} -> tensor<?x8xf32>
  return
}

// -----

func.func @all_gather_c2(%batch: !llm.batch, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.all_gather' op has a result of 8 elements a row, but no rank holds element 4}}
  %y = llm.all_gather %batch, %x : tensor<?x4xf32> {segments = [array<i64: 0, 4, 5, 8>]} -> tensor<?x8xf32>
  return
}

// -----

func.func @all_gather_c3(%batch: !llm.batch, %x: tensor<?x3xf32>) {
  // expected-error@+1 {{'llm.all_gather' op has an input of 3 elements a row, which no rank's ranges hold}}
  %y = llm.all_gather %batch, %x : tensor<?x3xf32> {segments = [array<i64: 0, 4, 4, 8>]} -> tensor<?x8xf32>
  return
}
