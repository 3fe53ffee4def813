// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{'llm.weight' op has no source}}
llm.weight @weight_c1 : !llm.weight<4> from []

// -----

// expected-error@+1 {{'llm.weight' op has the source {rows = array<i64: 0, 4>}, expected a dictionary with the name of a 'tensor'}}
llm.weight @weight_c2 : !llm.weight<4> from [{rows = array<i64: 0, 4>}]

// -----

// expected-error@+1 {{'llm.weight' op has the source "a", expected a dictionary with the name of a 'tensor'}}
llm.weight @weight_c2_text : !llm.weight<4> from ["a"]

// -----

// expected-error@+1 {{'llm.weight' op has a source with 'colour' (known = tensor type rows unpermute)}}
llm.weight @weight_c2_unknown : !llm.weight<4> from [{tensor = "a", colour = 1}]

// -----

// expected-error@+1 {{'llm.weight' op takes rows array<i64: 4, 4>, expected [begin, end) with 0 <= begin < end}}
llm.weight @weight_c3 : !llm.weight<4> from [{tensor = "a", rows = array<i64: 4, 4>}]

// -----

// expected-error@+1 {{'llm.weight' op takes rows array<i64: -1, 4>, expected [begin, end) with 0 <= begin < end}}
llm.weight @weight_c3_negative : !llm.weight<4> from [{tensor = "a", rows = array<i64: -1, 4>}]

// -----

// expected-error@+1 {{'llm.weight' op takes rows "all", expected [begin, end) with 0 <= begin < end}}
llm.weight @weight_c3_text : !llm.weight<4> from [{tensor = "a", rows = "all"}]

// -----

// expected-error@+1 {{'llm.weight' op takes rows [0, 4], expected [begin, end) with 0 <= begin < end}}
llm.weight @weight_c3_list : !llm.weight<4> from [{tensor = "a", rows = [0, 4]}]

// -----

// expected-error@+1 {{'llm.weight' op unpermutes heads of 3 : i64 rows, expected an even positive number}}
llm.weight @weight_c4 : !llm.weight<4> from [{tensor = "a", unpermute = 3}]
