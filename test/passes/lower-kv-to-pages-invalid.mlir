// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=page=24 2>&1 | FileCheck %s --check-prefix=PAGE
// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=page=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llmc-opt %s --llmc-lower-kv-to-pages=element=f8 2>&1 | FileCheck %s --check-prefix=ELEMENT

// PAGE: error: a page has 24 positions, expected a multiple of 16
// NONE: error: a page has 0 positions, expected a multiple of 16
// ELEMENT: error: unknown element type 'f8' of the cache (known = f32 bf16 f16 int8)
llm.state @kv : !llm.kv<1x16xf32>
