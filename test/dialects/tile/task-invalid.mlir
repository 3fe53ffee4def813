// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{'tile.task' op has 0 column tiles, expected at least 1}}
tile.task @task_c1 rows(%row, %column of 0) () {
}

// -----

// @task_c2
// expected-error@+1 {{'tile.task' op needs a row and a column index as its first two arguments}}
"tile.task"() <{sym_name = "task_c2", space = #tile<space rows>, columns = 1 : i64}> ({
^bb0(%row: index):
}) : () -> ()

// -----

// expected-error@+1 {{'tile.task' op takes 'tensor<4xf32>', expected rows, a weight, a state or the batch}}
tile.task @task_c3 rows(%row, %column of 1) (%x: tensor<4xf32>) {
}

// -----

// expected-error@+1 {{unknown space 'columns' (known = rows logit_rows)}}
tile.task @space columns(%row, %column of 1) () {
}

// -----

// expected-error@+1 {{'tile.task' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
"tile.task"() <{sym_name = "no_block", space = #tile<space rows>, columns = 1 : i64}> ({}) : () -> ()

// -----

// expected-error@+1 {{'tile.task' op requires attribute 'columns'}}
"tile.task"() <{sym_name = "no_columns", space = #tile<space rows>}> ({
^bb0(%row: index, %column: index):
}) : () -> ()
