// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{weight has 0 dimensions, expected one to three}}
func.func private @f(!llm.weight<>)

// -----

// expected-error@+1 {{weight has 4 dimensions, expected one to three}}
func.func private @f(!llm.weight<1x2x3x4>)

// -----

// expected-error@+1 {{weight has a dimension of 0, expected 1 to 268435456}}
func.func private @f(!llm.weight<4x0>)

// -----

// expected-error@+1 {{weight has a dimension of 268435457, expected 1 to 268435456}}
func.func private @f(!llm.weight<268435457x1>)

// -----

// expected-error@+1 {{unknown form 'q4' (known = any plain f32 bf16 i8 i4 i4m f4 f8)}}
func.func private @f(!llm.weight<4x4, q4>)

// -----

// expected-error@+1 {{unknown parameter 'tiles' (known = tile panel interleave)}}
func.func private @f(!llm.weight<4x4, f32, tiles = 4>)

// -----

// expected-error@+1 {{form plain is for vectors and small matrices, the weight has 3 dimensions}}
func.func private @f(!llm.weight<2x4x4, plain>)

// -----

// expected-error@+1 {{weight has a tile, panel or interleaved block of -64 rows, expected 0 to 268435456}}
func.func private @f(!llm.weight<4x4, f32, tile = -64, panel = 16>)

// -----

// expected-error@+1 {{tile is 64 and panel 0, expected both or none}}
func.func private @f(!llm.weight<4x4, f32, tile = 64>)

// -----

// expected-error@+1 {{only matrices have tiles, the weight has 1 dimension}}
func.func private @f(!llm.weight<4, f32, tile = 64, panel = 64>)

// -----

// expected-error@+1 {{weight has tiles of 64 rows but no form; choose one of f32 bf16 i8 i4 i4m f4 f8}}
func.func private @f(!llm.weight<4x4, any, tile = 64, panel = 64>)

// -----

// expected-error@+1 {{panel is 24, expected a multiple of 16 that divides the padded tile of 48}}
func.func private @f(!llm.weight<4x4, f32, tile = 48, panel = 24>)

// -----

// expected-error@+1 {{panel is 32, expected a multiple of 16 that divides the padded tile of 48}}
func.func private @f(!llm.weight<4x4, f32, tile = 48, panel = 32>)

// -----

// expected-error@+1 {{panel is 64, expected 16 for form i8}}
func.func private @f(!llm.weight<4x4, i8, tile = 64, panel = 64>)

// -----

// expected-error@+1 {{only matrices with two halves of rows are interleaved, the weight has 5 rows and 2 dimensions}}
func.func private @f(!llm.weight<5x4, f32, tile = 64, panel = 64, interleave = 32>)

// -----

// Rows of each of two matrices.
// expected-error@+1 {{only matrices with two halves of rows are interleaved, the weight has 5 rows and 3 dimensions}}
func.func private @f(!llm.weight<2x5x4, f32, tile = 64, panel = 64, interleave = 32>)

// -----

// expected-error@+1 {{tile is 64, expected twice the interleaved block of 16}}
func.func private @f(!llm.weight<64x4, f32, tile = 64, panel = 64, interleave = 16>)
