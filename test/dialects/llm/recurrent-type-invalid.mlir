// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{recurrent state has 2 dimensions, expected heads x keys x values}}
func.func private @f(!llm.recurrent<4x16>)

// -----

// expected-error@+1 {{recurrent state is 4 x 0 x 32, expected positive sizes of at most 268435456 together}}
func.func private @f(!llm.recurrent<4x0x32>)

// -----

// expected-error@+1 {{recurrent state is 65536 x 65536 x 1, expected positive sizes of at most 268435456 together}}
func.func private @f(!llm.recurrent<65536x65536x1>)
