// Types of the llm dialect: the batch, weights with their packed form, and what one layer keeps of every sequence.
#ifndef LLMC_DIALECTS_LLM_TYPES_TD
#define LLMC_DIALECTS_LLM_TYPES_TD
include "dialects/llm/LlmDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Llm_WeightForm : I32EnumAttr<"WeightForm", "how the elements of a weight are stored for the kernels", [
  I32EnumAttrCase<"Any", 0, "any">,       // not chosen yet
  I32EnumAttrCase<"Plain", 1, "plain">,   // f32 as a vector: gains, biases
  I32EnumAttrCase<"F32", 2, "f32">,
  I32EnumAttrCase<"BF16", 3, "bf16">,
  I32EnumAttrCase<"I8", 4, "i8">,         // 8-bit codes, one f16 scale per 32 along K
  I32EnumAttrCase<"I4", 5, "i4">,         // 4-bit codes around 8, one f16 scale per 32 along K
  I32EnumAttrCase<"I4M", 6, "i4m">,       // 4-bit codes from 0, one f16 scale and minimum per 32 along K
  I32EnumAttrCase<"F4", 7, "f4">,         // 4-bit floats (e2m1), one f16 scale per 16 along K
  I32EnumAttrCase<"F8", 8, "f8">          // 8-bit floats (e4m3), one f32 scale per 32 along K
]> {
  let cppNamespace = "::llmc::llm";
}

def Llm_WeightMap : I32EnumAttr<"WeightMap", "what a source does to every element of its tensor", [
  I32EnumAttrCase<"NegExp", 0, "neg_exp">,    // -exp(x), in f32
  I32EnumAttrCase<"UnitRows", 1, "unit_rows"> // x / max(sqrt(sum over the row of x^2), 1e-12), in f32
]> {
  let cppNamespace = "::llmc::llm";
}

class Llm_Type<string name, string typeMnemonic> : TypeDef<Llm_Dialect, name> { let mnemonic = typeMnemonic; }

def Llm_BatchType : Llm_Type<"Batch", "batch"> {
  let summary = "a ragged batch: rows, their sequences, positions and pages, and the rows whose logits are wanted";
}

def Llm_WeightType : Llm_Type<"Weight", "weight"> {
  let summary = "a weight of the model, as a symbol hands it out";
  let description = [{
    `!llm.weight<960x576>` before a form is chosen, `!llm.weight<960x576, bf16, tile = 64, panel = 64>` once packed:
    rows (output channels) are grouped into tiles of `tile` rows, each padded to whole panels of `panel` rows; K is padded
    as the form asks. `!llm.weight<8x960x576>` is a stack of such matrices (of experts, of heads), packed one behind the
    other. `interleave = B` says that the first half of the rows (gate) and the second (up) alternate in blocks
    of B rows. docs/weight-layouts.md has the bytes.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "WeightForm":$form, "int64_t":$tile, "int64_t":$panel,
                        "int64_t":$interleave);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape), [{
    return $_get($_ctxt, shape, WeightForm::Any, 0, 0, 0);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether it is a matrix, or one for each expert or head.
    bool isMatrix() const { return getShape().size() >= 2; }
    /// Of one matrix, where there are several: rows are the last dimension but one.
    int64_t getNumRows() const { return getShape()[getShape().size() < 3 ? 0 : 1]; }
    int64_t getNumStacked() const { return getShape().size() < 3 ? 1 : getShape()[0]; }
    /// In blocks of codes and scales.
    bool isQuantized() const { return getForm() >= WeightForm::I8; }
    /// Whether products with it quantise their input too.
    bool takesCodes() const { return isQuantized() && getForm() != WeightForm::F8; }
    WeightType withForm(WeightForm form) const;
    /// The same weight in tiles of `tile` rows; the panel is the widest that kernels take and that divides the tile.
    WeightType withTiles(int64_t tile, int64_t interleave) const;
  }];
}

def Llm_KvType : Llm_Type<"Kv", "kv"> {
  let summary = "the keys and values that one layer keeps of every sequence";
  let description = [{
    `!llm.kv<3x64xf32>`: 3 key-value heads of 64 channels. `!llm.kv<3x64xbf16, page = 64, panel = 16>`: the same in pages
    of 64 positions, keys in panels of 16 positions (`[page / panel][D][panel]`), values in rows (`[page][D]`), per head.
    `value = 128` says that values have other channels than keys; `latent = 512` that none are stored: the value is the first 512
    channels of the key. `every = 4` keeps one row of every 4 positions, that of the last: row w is the one of position 4w + 3 and lies in
    that position's page, in place `(position % page) / 4`; ops that read the cache count its rows as they count positions elsewhere.
    `pack = 2` lays bf16 in pairs, as products of pairs read it: two channels of a key side by side
    (`[page / panel][D / 2][panel][2]`), two positions of a value, 16 channels at a time (`[D / panel][page / 2][panel][2]`);
    D is whole panels then, of keys and values. With `block = 32` sums over such pairs are made as a matrix unit makes them (see
    tile.attend), without as a vector unit. i8 holds codes -127 .. 127 and, behind
    the values of all heads, an f32 scale for every head and position: of keys, then of values. A sequence owns its pages; only `llm.kv_append` grows it, once per step.
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$headDim, "::mlir::Type":$elementType, "int64_t":$page,
                        "int64_t":$panel, "int64_t":$pack, "int64_t":$block, "int64_t":$valueDim, "bool":$latent,
                        "int64_t":$every);
  let builders = [
    TypeBuilderWithInferredContext<(ins "int64_t":$heads, "int64_t":$headDim, "::mlir::Type":$elementType), [{
      return $_get(elementType.getContext(), heads, headDim, elementType, 0, 0, 1, 0, headDim, false, 1);
    }]>,
    TypeBuilderWithInferredContext<(ins "int64_t":$heads, "int64_t":$headDim, "::mlir::Type":$elementType,
                                        "int64_t":$valueDim, "bool":$latent, CArg<"int64_t", "1">:$every), [{
      return $_get(elementType.getContext(), heads, headDim, elementType, 0, 0, 1, 0, valueDim, latent, every);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isPaged() const { return getPage() != 0; }
    /// The same cache in pages of another element type.
    KvType withPages(::mlir::Type elementType, int64_t page, int64_t panel, int64_t pack = 1,
                     int64_t block = 0) const;
    /// Channels of a value that are stored: none where it is part of the key.
    int64_t storedValueDim() const { return getLatent() ? 0 : getValueDim(); }
    /// Whether elements that a bf16 product adds up in pairs lie side by side.
    bool hasPairs() const { return getPack() == 2; }
    /// Rows that a page has room for: fewer than its positions where only one of several is kept.
    int64_t rowsPerPage() const { return (getPage() + getEvery() - 1) / getEvery(); }
    /// Rows that a sequence of so many positions has.
    int64_t rowsOf(int64_t positions) const { return positions / getEvery(); }
    /// Bytes that one page takes in this layer: keys and values of all heads.
    int64_t bytesPerPage() const;
  }];
}

def Llm_RecurrentType : Llm_Type<"Recurrent", "recurrent"> {
  let summary = "the state of fixed size that one layer keeps of every sequence";
  let description = [{
    `!llm.recurrent<4x16x32>`: heads x keys x values of f32, zero before a sequence's first row. A sequence owns one slot.
    There a head lies in blocks: of values, with a line of lanes for each key, or, where values are fewer than 16, of
    keys, with a line for each value. docs/weight-layouts.md has the bytes.
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$keys, "int64_t":$values);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t elements() const { return getHeads() * getKeys() * getValues(); }
    bool lanesAreKeys() const { return getValues() < stateLanes; }
    /// Keys or values that lie side by side in a line, padding included.
    int64_t blockLanes() const;
    int64_t blocksPerHead() const;
    int64_t linesPerBlock() const { return lanesAreKeys() ? getValues() : getKeys(); }
    /// Of a slot, in f32: where an element lies; and how many bytes all take.
    int64_t placeOf(int64_t head, int64_t key, int64_t value) const;
    int64_t bytes() const { return 4 * getHeads() * blocksPerHead() * linesPerBlock() * blockLanes(); }
  }];
}

def Llm_StateType : AnyTypeOf<[Llm_KvType, Llm_RecurrentType], "state of sequences: a cache or a recurrent state">;

#endif // LLMC_DIALECTS_LLM_TYPES_TD
