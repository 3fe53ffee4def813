// Attention that only some models have: values of another width, latent caches, odd head sizes, sinks, chunks, slopes,
// selected positions. Each alone and in combinations that models make.
#include "test/lib/codegen/cpu/AttendCase.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

// One way for each width of vectors: nothing here depends on special instructions.
std::vector<Way> ways() { return {{"x86-64-v3", /*emulate=*/true}, {"x86-64-v4", /*emulate=*/true}}; }

void check(const AttendCase &c) { checkCase(c, ways()); }

} // namespace

TEST(AttendVariants, HeadSizesThatAreNoVectors) {
  int64_t element = 0;
  for (int64_t depth : {8, 24, 40, 72, 37, 1}) {
    AttendCase c;
    c.depth = depth;
    c.group = depth == 24 ? 1 : 2;
    c.element = std::vector<std::string>{"bf16", "f32", "f16", "i8"}[static_cast<size_t>(element++ % 4)];
    check(c);
  }
}

TEST(AttendVariants, ValuesOfAnotherWidth) {
  for (auto [depth, values] : {std::pair(48, 32), std::pair(24, 40), std::pair(16, 5)})
    for (const char *element : {"bf16", "i8"}) {
      AttendCase c;
      c.depth = depth;
      c.valueDim = values;
      c.element = element;
      c.page = depth == 24 ? 16 : 64;
      c.span = 2 * c.page;
      check(c);
    }
}

TEST(AttendVariants, LatentCaches) {
  for (const char *element : {"f32", "bf16", "f16", "i8"}) {
    AttendCase c;
    c.heads = 1;
    c.depth = 72;
    c.latent = 64;
    c.group = 8;
    c.element = element;
    check(c);
  }
  // The value may be the whole key, or end inside of a vector; columns may share the cache.
  AttendCase whole;
  whole.heads = 1;
  whole.depth = whole.latent = 20;
  whole.group = 6;
  whole.columnsPerHead = 3;
  whole.page = 16;
  whole.span = 32;
  check(whole);
  AttendCase part = whole;
  part.depth = 40;
  part.latent = 13;
  part.window = 21;
  part.element = "i8";
  check(part);
}

TEST(AttendVariants, SinksSlopesAndChunks) {
  for (int variant = 1; variant < 8; ++variant) {
    AttendCase c;
    c.depth = variant % 2 ? 32 : 24;
    c.group = 2;
    c.sinks = variant & 1;
    c.alibi = variant & 2;
    c.chunk = variant & 4 ? 24 : 0;
    c.page = 16;
    c.span = variant == 3 ? 0 : 32;
    c.element = variant == 5 ? "i8" : variant == 6 ? "f32" : "bf16";
    check(c);
  }
}

TEST(AttendVariants, Combinations) {
  AttendCase everything;
  everything.depth = 40;
  everything.valueDim = 24;
  everything.element = "f16";
  everything.sinks = everything.alibi = true;
  everything.window = 30;
  everything.chunk = 48;
  everything.page = 16;
  everything.span = 32;
  everything.cap = "5.0";
  check(everything);
  AttendCase latent;
  latent.heads = 1;
  latent.depth = 40;
  latent.latent = 32;
  latent.group = 4;
  latent.sinks = latent.alibi = true;
  latent.columnsPerHead = 2;
  latent.page = 16;
  latent.span = 32;
  check(latent);
}

// Fast paths take sinks, slopes and chunks too.
TEST(AttendVariants, OnEveryTarget) {
  AttendCase c;
  c.sinks = c.alibi = true;
  c.chunk = 50;
  c.page = 32;
  c.span = 64;
  c.pairs = true;
  checkCase(c, runnableWays());
}

TEST(AttendVariants, SelectedPositions) {
  for (const char *element : {"f32", "bf16", "f16", "i8"}) {
    AttendCase c;
    c.heads = 1;
    c.depth = 40;
    c.latent = 32;
    c.group = 4;
    c.element = element;
    c.selected = 37; // two pages and some, and fewer than the row sees
    c.page = 16;
    c.span = element == std::string("f32") ? 32 : 0;
    check(c);
  }
  // Keys in panels and in pairs, values of their own.
  for (const char *element : {"bf16", "f16", "i8"}) {
    AttendCase c;
    c.depth = 32;
    c.valueDim = element == std::string("bf16") ? 32 : 20;
    c.element = element;
    c.pairs = element == std::string("bf16");
    c.selected = 24;
    c.page = 16;
    c.sinks = element == std::string("i8");
    c.alibi = element == std::string("f16");
    c.window = element == std::string("bf16") ? 25 : 0;
    check(c);
  }
}

// Rows that lie a few to a page, one to a page, or in every other page; the first positions see none.
TEST(AttendVariants, OneRowOfSeveralPositions) {
  for (const char *element : {"f32", "bf16", "f16", "i8"})
    for (int64_t every : {4, 3, 24}) {
      AttendCase c;
      c.heads = 1;
      c.depth = 40;
      c.latent = every == 3 ? 40 : 24;
      c.group = 4;
      c.element = element;
      c.every = every;
      c.logsum = element == std::string("f32") || element == std::string("i8");
      c.sinks = element == std::string("i8") && every == 4;
      c.page = 16;
      c.span = element == std::string("bf16") ? 0 : 16;
      check(c);
      c.selected = every == 24 ? 0 : 7;
      if (c.selected)
        check(c);
    }
}

TEST(AttendVariants, Logsums) {
  AttendCase c;
  c.depth = 24;
  c.group = 2;
  c.logsum = true;
  c.window = 21;
  c.page = 16;
  c.span = 32;
  check(c);
  c.sinks = true;
  check(c);
  AttendCase shared;
  shared.heads = 1;
  shared.depth = shared.latent = 20;
  shared.group = 6;
  shared.columnsPerHead = 3;
  shared.logsum = shared.sinks = true;
  shared.page = 16;
  check(shared);
}
