#include "runtime/support/Hash.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <vector>

using namespace llmc;

// As `xxhsum -H2` prints them.
TEST(Hash, KnownValues) {
  EXPECT_EQ(hashHex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hashHex("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, PiecesMakeNoDifference) {
  std::vector<uint8_t> bytes(10'007);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 31 >> 3);
  for (size_t piece : {1, 7, 64, 255, 4096, 10'007}) {
    Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += piece)
      hasher.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(hasher.hex(), hashHex(bytes)) << piece;
  }
}

TEST(Hash, FileLargerThanAPiece) {
  test::TemporaryFolder folder;
  std::string content((4 << 20) + 3, 'x');
  std::string path = folder.write("f", content);
  EXPECT_EQ(*hashFileHex(path), hashHex(content));
  EXPECT_EQ(*hashFileHex(folder.write("empty", "")), hashHex(""));
  content[content.size() - 1] = 'y';
  EXPECT_NE(*hashFileHex(path), hashHex(content));
  EXPECT_FALSE(hashFileHex(folder / "absent").ok());
}
