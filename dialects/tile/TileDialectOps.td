// All ops of the tile dialect, by what they are about.
#ifndef LLMC_DIALECTS_TILE_DIALECT_OPS_TD
#define LLMC_DIALECTS_TILE_DIALECT_OPS_TD
include "dialects/tile/TileCollectiveOps.td"
include "dialects/tile/TileRecurrentOps.td"

#endif // LLMC_DIALECTS_TILE_DIALECT_OPS_TD
