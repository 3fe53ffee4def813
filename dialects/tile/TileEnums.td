// Enumerations of the tile dialect. A file of its own: TableGen emits the enums of every file it reads.
#ifndef LLMC_DIALECTS_TILE_ENUMS_TD
#define LLMC_DIALECTS_TILE_ENUMS_TD
include "dialects/tile/TileDialect.td"
include "mlir/IR/EnumAttr.td"

// Over which rows a task runs.
def Tile_Space : I32EnumAttr<"Space", "the rows of a task", [
  I32EnumAttrCase<"Rows", 0, "rows">,            // all T rows of the batch
  I32EnumAttrCase<"LogitRows", 1, "logit_rows">  // the R rows whose logits are wanted
]> {
  let cppNamespace = "::llmc::tile";
  let genSpecializedAttr = 0;
}
def Tile_SpaceAttr : EnumAttr<Tile_Dialect, Tile_Space, "space">;

def Tile_BatchFact : I32EnumAttr<"BatchFact", "what the batch knows of a row", [
  I32EnumAttrCase<"Token", 0, "token">,        // of a row of T
  I32EnumAttrCase<"Position", 1, "position">,  // of a row of T
  I32EnumAttrCase<"LogitRow", 2, "logit_row">  // of a row of R: its row of T
]> {
  let cppNamespace = "::llmc::tile";
  let genSpecializedAttr = 0;
}
def Tile_BatchFactAttr : EnumAttr<Tile_Dialect, Tile_BatchFact, "fact">;

def Tile_Reduction : I32EnumAttr<"Reduction", "how elements are combined", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">
]> {
  let cppNamespace = "::llmc::tile";
  let genSpecializedAttr = 0;
}
def Tile_ReductionAttr : EnumAttr<Tile_Dialect, Tile_Reduction, "reduction">;

def Tile_KvHalf : I32EnumAttr<"KvHalf", "which half of a cache", [
  I32EnumAttrCase<"Key", 0, "key">, I32EnumAttrCase<"Value", 1, "value">
]> {
  let cppNamespace = "::llmc::tile";
  let genSpecializedAttr = 0;
}
def Tile_KvHalfAttr : EnumAttr<Tile_Dialect, Tile_KvHalf, "half">;

#endif // LLMC_DIALECTS_TILE_ENUMS_TD
