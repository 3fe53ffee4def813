// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=page=24 2>&1 | FileCheck %s --check-prefix=PAGE
// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=page=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=element=f8 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=target=x87 2>&1 | FileCheck %s --check-prefix=TARGET

// PAGE: error: a page has 24 positions, expected a multiple of 16
// NONE: error: a page has 0 positions, expected a multiple of 16
// ELEMENT: error: unknown element type 'f8' of the cache (known = f32 bf16 f16 int8)
// TARGET: error: unknown CPU target 'x87' (known = host x86-64-v3
llm.state @kv : !llm.kv<1x16xf32>
