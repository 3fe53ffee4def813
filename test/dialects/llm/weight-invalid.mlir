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

// expected-error@+1 {{'llm.weight' op has a source with 'colour' (known = tensor type stack dims take order rows unpermute map)}}
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

// -----

// expected-error@+1 {{'llm.weight' op takes both rows and ranges of every dimension, expected one of them}}
llm.weight @weight_c3_twice : !llm.weight<4> from [{tensor = "a", rows = array<i64: 0, 4>, take = array<i64: 0, 4>}]

// -----

// expected-error@+1 {{'llm.weight' op has the source {tensor = "a.{expert}"}, whose {expert} needs a stack}}
llm.weight @weight_c5 : !llm.weight<4x4> from [{tensor = "a.{expert}"}]

// -----

// expected-error@+1 {{'llm.weight' op stacks 4 : i64 of "a", expected a positive number of names with {expert}}}
llm.weight @weight_c5_no_pattern : !llm.weight<4x4> from [{tensor = "a", stack = 4}]

// -----

// expected-error@+1 {{'llm.weight' op stacks 0 : i64 of "a.{expert}", expected a positive number of names with {expert}}}
llm.weight @weight_c5_none : !llm.weight<4x4> from [{tensor = "a.{expert}", stack = 0}]

// -----

// expected-error@+1 {{'llm.weight' op sees a tensor as [4, 0], expected positive dimensions}}
llm.weight @weight_c6 : !llm.weight<4> from [{tensor = "a", dims = array<i64: 4, 0>}]

// -----

// expected-error@+1 {{'llm.weight' op has dims = [4], expected array<i64: ...>}}
llm.weight @weight_c6_list : !llm.weight<4> from [{tensor = "a", dims = [4]}]

// -----

// expected-error@+1 {{'llm.weight' op takes [0, 4], expected begin and end of 2 dimensions}}
llm.weight @weight_c7 : !llm.weight<4> from [{tensor = "a", dims = array<i64: 4, 1>, take = array<i64: 0, 4>}]

// -----

// expected-error@+1 {{'llm.weight' op takes [0, 4, 0], expected begin and end of every dimension}}
llm.weight @weight_c7_odd : !llm.weight<4> from [{tensor = "a", take = array<i64: 0, 4, 0>}]

// -----

// expected-error@+1 {{'llm.weight' op takes 2 to 5 of dimension 0, which has 4}}
llm.weight @weight_c7_outside : !llm.weight<4> from [{tensor = "a", dims = array<i64: 4>, take = array<i64: 2, 5>}]

// -----

// expected-error@+1 {{'llm.weight' op takes 2 to 2 of dimension 0, expected begin < end}}
llm.weight @weight_c7_empty : !llm.weight<4> from [{tensor = "a", take = array<i64: 2, 2>}]

// -----

// expected-error@+1 {{'llm.weight' op orders dimensions as [0, 0], expected each of them once}}
llm.weight @weight_c8 : !llm.weight<4x4> from [{tensor = "a", order = array<i64: 0, 0>}]

// -----

// expected-error@+1 {{'llm.weight' op orders dimensions as [1, 0], expected each of 3 once}}
llm.weight @weight_c8_rank : !llm.weight<4x4> from [{tensor = "a", dims = array<i64: 4, 2, 2>, order = array<i64: 1, 0>}]

// -----

// expected-error@+1 {{'llm.weight' op maps elements by "log" (known = neg_exp, unit_rows)}}
llm.weight @weight_c9 : !llm.weight<4> from [{tensor = "a", map = "log"}]

// -----

// expected-error@+1 {{'llm.weight' op is a part of another weight, expected its shape 'of' and 'parts' for each dimension}}
llm.weight @weight_c10 : !llm.weight<4x4> from [{tensor = "a"}] {of = array<i64: 8, 4>}

// -----

// expected-error@+1 {{'llm.weight' op has the parts array<i64: 0, 0>, expected partition, begin and size of each}}
llm.weight @weight_c10_triples : !llm.weight<4> from [{tensor = "a"}] {of = array<i64: 8>, parts = [array<i64: 0, 0>]}

// -----

// expected-error@+1 {{'llm.weight' op has a part of width 6 at 4 of 8, expected parts in ascending order and inside of the weight}}
llm.weight @weight_c10_outside : !llm.weight<4> from [{tensor = "a"}] {of = array<i64: 8>, parts = [array<i64: 0, 4, 6>]}
