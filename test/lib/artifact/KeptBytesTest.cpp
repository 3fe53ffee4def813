// What is kept of a file, for notes that hold, that do not, and that are not of this file.
#include "lib/artifact/KeptBytes.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

using test::TemporaryFolder;

std::string noteOf(const std::string &text, uint64_t bytes, const std::string &file = "w.bin") {
  return formatKept({file, bytes, hashHex(text.substr(0, bytes))});
}

uint64_t keptOf(const std::string &text, const std::vector<std::string> &notes) {
  TemporaryFolder here;
  here.write("w.bin", text);
  StatusOr<KeptFile> kept = verifyKept(here.path(), "w.bin", notes);
  if (!kept.ok())
    return UINT64_MAX;
  EXPECT_EQ(kept->hash.hex(), hashHex(text.substr(0, kept->bytes))); // the file goes on from there
  return kept->bytes;
}

const std::string text = "The quick brown fox";

TEST(KeptBytes, TheLastNoteThatHolds) {
  EXPECT_EQ(keptOf(text, {}), 0u);
  EXPECT_EQ(keptOf(text, {noteOf(text, 5), noteOf(text, 9)}), 9u);
  EXPECT_EQ(keptOf(text, {noteOf(text, 5), noteOf("The slow", 8), noteOf(text, 9)}), 5u); // nothing behind a wrong one
  EXPECT_EQ(keptOf("the quick", {noteOf(text, 5)}), 0u);
  EXPECT_EQ(keptOf("The q", {noteOf(text, 5), noteOf(text, 9)}), 5u); // the file is shorter
  EXPECT_EQ(verifyKept("no/such", "w.bin", {noteOf(text, 5)})->bytes, 0u);
}

// A first writer noted 5 and 9, of which 9 did not hold; the second went on from 5 and noted 7.
TEST(KeptBytes, LaterNotesReplaceThoseFurtherOn) {
  EXPECT_EQ(keptOf(text, {noteOf(text, 5), noteOf("The slow fox", 9), noteOf(text, 7)}), 7u);
}

TEST(KeptBytes, OtherLinesAreIgnored) {
  const std::string note = noteOf(text, 5);
  EXPECT_EQ(keptOf(text, {"", "kept", "kept x", "kept 5", "kept 99999999999999999999999 0 w.bin", note.substr(0, 20),
                          noteOf("other", 4, "v.bin"), note}),
            5u);
}

} // namespace
} // namespace llmc
