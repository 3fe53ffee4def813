// Cache writes and attention as most models have it: head sizes, groups, elements, windows, spans. Expansions of what the
// host has are in AttendVariantsTest.cpp and, for every element, in one case here: they do not depend on shapes.
#include "test/lib/codegen/cpu/AttendCase.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

TEST(AttendTask, HeadSizes) {
  for (auto [depth, pairs] : std::initializer_list<std::pair<int64_t, bool>>{
           {16, false}, {80, false}, {256, false}, {16, true}, {64, true}, {80, true}, {96, true}, {128, true}}) {
    AttendCase c;
    c.depth = depth;
    c.pairs = pairs;
    checkCase(c, eachTarget());
    c.block = 0;
    if (c.pairs)
      checkCase(c, eachTarget());
  }
}

TEST(AttendTask, GroupSizesAndElements) {
  for (int64_t group : {1, 3, 4})
    for (const char *element : {"f32", "bf16", "f16", "i8"}) {
      AttendCase c;
      c.group = group;
      c.element = element;
      checkCase(c, group == 1 ? runnableWays() : eachTarget());
      c.pairs = c.element == "bf16" && group != 3; // which the other tests have
      if (c.pairs)
        checkCase(c, eachTarget());
      c.block = 0;
      if (c.pairs)
        checkCase(c, eachTarget());
    }
}

TEST(AttendTask, WindowsPagesAndSoftcap) {
  for (int64_t window : {1, 16, 33, 64, 65}) {
    AttendCase c;
    c.window = window;
    c.page = window == 33 ? 16 : 64;
    c.pairs = window % 2;
    c.block = window == 65 ? 0 : 32;
    checkCase(c, eachTarget());
  }
  AttendCase capped;
  capped.cap = "5.0";
  checkCase(capped, eachTarget());
}

// Sums of spans are put together by one worker or by many; a window may begin inside a span, or skip some.
TEST(AttendTask, Spans) {
  for (const char *element : {"f32", "bf16", "i8"})
    for (int64_t window : {0, 20, 40}) {
      AttendCase c;
      c.element = element;
      c.window = window;
      c.page = 16;
      c.span = 32;
      c.pairs = c.element == "bf16" && window > 0;
      c.block = window == 40 ? 0 : 32;
      checkCase(c, eachTarget());
    }
  AttendCase alone;
  alone.page = alone.span = 16;
  alone.partials = false;
  checkCase(alone, eachTarget());
}
