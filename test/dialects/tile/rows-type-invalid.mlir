// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{rows have 0 channels, expected 1 to 268435456}}
func.func private @f(!tile.rows<0>)

// -----

// expected-error@+1 {{rows have 268435457 channels, expected 1 to 268435456}}
func.func private @f(!tile.rows<268435457>)
