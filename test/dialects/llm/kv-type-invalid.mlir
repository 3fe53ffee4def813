// RUN: llmc-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{cache has 1 dimensions, expected heads x channels}}
func.func private @f(!llm.kv<3xf32>)

// -----

// expected-error@+1 {{cache is 0 x 64, expected positive sizes of at most 268435456 together}}
func.func private @f(!llm.kv<0x64xf32>)

// -----

// expected-error@+1 {{cache is 268435456 x 2, expected positive sizes of at most 268435456 together}}
func.func private @f(!llm.kv<268435456x2xf32>)

// -----

// expected-error@+1 {{cache of 'i16', expected f32, bf16, f16 or i8}}
func.func private @f(!llm.kv<3x64xi16>)

// -----

// expected-error@+1 {{cache of i8 without pages, which its scales lie in; only llmc-lower-kv-to-pages makes one}}
func.func private @f(!llm.kv<3x64xi8>)

// -----

// expected-error@+1 {{page is 64 and panel 0, expected both positive or both absent}}
func.func private @f(!llm.kv<3x64xf32, page = 64>)

// -----

// expected-error@+1 {{page is -64 and panel 16, expected both positive or both absent}}
func.func private @f(!llm.kv<3x64xf32, page = -64, panel = 16>)

// -----

// expected-error@+1 {{page of 40 positions is no multiple of the panel of 16}}
func.func private @f(!llm.kv<3x64xf32, page = 40, panel = 16>)

// -----

// expected-error@+1 {{unknown parameter 'pages' (known = value latent every page panel pack block)}}
func.func private @f(!llm.kv<3x64xf32, pages = 64>)

// -----

// expected-error@+1 {{pack is 3, expected 1 or 2 elements side by side}}
func.func private @f(!llm.kv<3x64xbf16, page = 64, panel = 16, pack = 3>)

// -----

// expected-error@+1 {{pack is 2, which takes bf16 in pages of even size and heads of whole panels; the cache is 64 x 'f16' in pages of 64 and panels of 16}}
func.func private @f(!llm.kv<3x64xf16, page = 64, panel = 16, pack = 2>)

// -----

// expected-error@+1 {{the cache is 64 x 'bf16' in pages of 0 and panels of 0}}
func.func private @f(!llm.kv<3x64xbf16, pack = 2>)

// -----

// expected-error@+1 {{the cache is 72 x 'bf16' in pages of 64 and panels of 16}}
func.func private @f(!llm.kv<3x72xbf16, page = 64, panel = 16, pack = 2>)

// -----

// expected-error@+1 {{pack is 2, which takes values as wide as keys; the cache has keys of 64 channels and values of 128}}
func.func private @f(!llm.kv<3x64xbf16, value = 128, page = 64, panel = 16, pack = 2>)

// -----

// expected-error@+1 {{cache has values of 32 channels and latent ones of 16, expected one of them}}
func.func private @f(!llm.kv<3x64xf32, value = 32, latent = 16>)

// -----

// expected-error@+1 {{cache has values of 65 channels, expected 1 to 64}}
func.func private @f(!llm.kv<1x64xf32, latent = 65>)

// -----

// expected-error@+1 {{cache has values of -1 channels, expected 1 to 89478485}}
func.func private @f(!llm.kv<3x64xf32, value = -1>)

// -----

// expected-error@+1 {{block is 16 with pack 2, expected 32 elements that lie in pairs (pack = 2)}}
func.func private @f(!llm.kv<3x64xbf16, page = 64, panel = 16, pack = 2, block = 16>)

// -----

// expected-error@+1 {{block is 32 with pack 1, expected 32 elements that lie in pairs (pack = 2)}}
func.func private @f(!llm.kv<3x64xbf16, page = 64, panel = 16, block = 32>)

// -----

// expected-error@+1 {{cache keeps one row of every 0 positions, expected 1 to 268435456}}
func.func private @f(!llm.kv<1x64xf32, latent = 64, every = 0>)

// -----

// expected-error@+1 {{cache keeps one row of every 4 positions of keys and values; only latent caches leave any out}}
func.func private @f(!llm.kv<3x64xf32, every = 4>)
