// The types of the tile dialect; weights, caches and the batch keep their llm types.
#ifndef LLMC_DIALECTS_TILE_TYPES_TD
#define LLMC_DIALECTS_TILE_TYPES_TD
include "dialects/tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Tile_RowsType : TypeDef<Tile_Dialect, "Rows"> {
  let mnemonic = "rows";
  let summary = "a buffer of f32 rows, one per row of the batch";
  let description = [{
    `!tile.rows<576>`: 576 channels per row; rows lie `stride()` elements apart, so that a whole column tile that reaches
    over the last channel stays inside its row. What lies between the channels and the stride is never read as data.
  }];
  let parameters = (ins "int64_t":$channels);
  let assemblyFormat = "`<` $channels `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements between the starts of two rows: the channels rounded up to whole tiles of any width we use.
    int64_t stride() const { return (getChannels() + 63) / 64 * 64; }
  }];
}

def Tile_TokenType : TypeDef<Tile_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "an exchange with other ranks that is under way";
}

#endif // LLMC_DIALECTS_TILE_TYPES_TD
