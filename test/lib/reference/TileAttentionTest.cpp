// The paged cache and attention over it, against plain attention over contiguous keys and values.
#include "lib/reference/TileAttention.h"
#include "lib/reference/AttentionFormulas.h"
#include "lib/reference/Formulas.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace llmc::reference {
namespace {

std::vector<float> random(size_t size, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float &x : values)
    x = normal(engine);
  return values;
}

llm::KvType cacheOf(const std::string &text) {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext;
    made->loadDialect<llm::LlmDialect>();
    return made;
  }();
  return mlir::cast<llm::KvType>(mlir::parseType("!llm.kv<" + text + ">", context));
}

// The paged cache gives what plain attention over contiguous keys and values gives, pages in any order.
TEST(Attend, PagedAgainstContiguous) {
  constexpr int64_t heads = 2, headDim = 7, page = 16;
  for (std::string element : {"f32, page = 16, panel = 16", "bf16, page = 16, panel = 16", "f16, page = 16, panel = 16",
                              "i8, page = 16, panel = 16"})
    for (int64_t window : {0, 1, 5, 17})
      for (float cap : {0.0f, 2.0f})
        for (int64_t position : {0, 15, 16, 17, 40}) {
          const std::vector<int32_t> pages{2, 0, 3};
          const int64_t pageBytes = 2 * heads * headDim * page * 4 + 64;
          std::vector<uint8_t> memory(static_cast<size_t>(4 * pageBytes));
          CacheView cache{memory.data(), pageBytes, 64, pages.data(), cacheOf("2x7x" + element)};
          const size_t width = heads * headDim;
          std::vector<float> keys = random(static_cast<size_t>(position + 1) * width, 5),
                             values = random(static_cast<size_t>(position + 1) * width, 6);
          for (size_t i = 0; i < keys.size(); i += headDim) {
            const int64_t j = static_cast<int64_t>(i / width), head = static_cast<int64_t>(i % width) / headDim;
            for (bool value : {false, true}) {
              std::span<float> channels = std::span(value ? values : keys).subspan(i, headDim);
              cache.append(value, head, j, channels);
              const float scale = roundToCache(channels, elementOf(cache.kv));
              for (float &x : channels)
                x *= scale;
            }
          }
          // Six query heads, three per key-value head.
          std::vector<float> query = random(3 * width, 7), expected(3 * width), actual(3 * headDim);
          attendRow(query, {keys, values, heads, headDim, headDim}, position, {6, 0.3f, cap, window}, expected);
          for (int64_t head = 0; head < heads; ++head) {
            const size_t first = static_cast<size_t>(head) * actual.size();
            attend({query.data() + first, actual.size()}, cache, head, position, {0.3f, cap, window}, actual);
            for (size_t i = 0; i < actual.size(); ++i)
              // f32 sums of up to 41 weighted values of size about 1, exp2 of scores: some ten roundings of 6e-8.
              EXPECT_NEAR(actual[i], expected[first + i], 2e-6) << position << " window " << window;
          }
        }
}

// bf16 in pairs: queries are rounded too, which the plain formula gets the same, and so are the probabilities.
void checkPairs(const std::string &cacheType) {
  constexpr int64_t headDim = 48, page = 64, position = 100;
  const std::vector<int32_t> pages{1, 0};
  std::vector<uint8_t> memory(2 * 2 * headDim * page * 2);
  CacheView cache{memory.data(), 2 * headDim * page * 2, 0, pages.data(), cacheOf(cacheType)};
  std::vector<float> keys = random((position + 1) * headDim, 8), values = random((position + 1) * headDim, 9);
  std::vector<float> query = random(headDim, 10), expected(headDim), actual(headDim);
  for (int64_t j = 0; j <= position; ++j)
    for (bool value : {false, true}) {
      std::span<float> channels = std::span(value ? values : keys).subspan(static_cast<size_t>(j * headDim), headDim);
      cache.append(value, 0, j, channels);
      roundToCache(channels, CacheElement::BF16);
    }
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t j = static_cast<int64_t>(i) / headDim, c = static_cast<int64_t>(i) % headDim;
    ASSERT_EQ(cache.load(false, 0, j, c), keys[i]);
    ASSERT_EQ(cache.load(true, 0, j, c), values[i]);
  }
  std::ranges::transform(query, query.begin(), roundToBf16);
  for (int64_t window : {0, 37})
    for (int64_t span : {0, 64}) {
      attendRow(query, {keys, values, 1, headDim, headDim}, position, {1, 0.3f, 0, window}, expected);
      attend(query, cache, 0, position, {0.3f, 0, window, span}, actual);
      for (size_t i = 0; i < actual.size(); ++i)
        // Each weight is off by up to 2^-9 of itself, their sum too; values are at most 1.
        EXPECT_NEAR(actual[i], expected[i], 2.0 / 512) << i << " window " << window << " span " << span;
    }
}

TEST(Attend, PairsAgainstContiguous) {
  for (const char *block : {"", ", block = 32"})
    checkPairs(std::string("1x48xbf16, page = 64, panel = 16, pack = 2") + block);
}

// A latent cache has its values in its keys; what a row sees may be cut by a chunk or a list, pulled by slopes and
// shared with sinks.
TEST(Attend, VariantsAgainstContiguous) {
  constexpr int64_t depth = 24, page = 16, position = 40;
  const std::vector<int32_t> pages{2, 0, 3};
  CacheView cache{nullptr, 0, 0, pages.data(), cacheOf("1x24xf16, latent = 20, page = 16, panel = 1")};
  cache.pageBytes = cache.kv.bytesPerPage();
  EXPECT_EQ(cache.pageBytes, depth * page * 2);
  std::vector<uint8_t> memory(static_cast<size_t>(4 * cache.pageBytes));
  cache.memory = memory.data();
  std::vector<float> keys = random((position + 1) * depth, 8), query = random(2 * depth, 10);
  for (int64_t j = 0; j <= position; ++j) {
    std::span<float> key = std::span(keys).subspan(static_cast<size_t>(j * depth), depth);
    cache.append(/*value=*/false, 0, j, key);
    roundToCache(key, CacheElement::F16);
    EXPECT_EQ(cache.load(/*value=*/true, 0, j, 19), key[19]);
  }
  const std::vector<float> sinks{1.5f, -0.5f}, slopes{0.5f, 0.25f}, list{-1, 0, 3, 4, 17, 33, 38, 40, 41, -1},
      none{-1, 41};
  std::vector<float> expected(2 * 20), actual(2 * 20);
  for (int64_t chunk : {0, 32})
    for (bool hasSinks : {false, true})
      for (bool hasSlopes : {false, true})
        for (const std::vector<float> *selected : {static_cast<const std::vector<float> *>(nullptr), &list, &none}) {
          AttendShape shape{0.3f, 0, 0, 16, chunk};
          AttentionShape plain{2, 0.3f, 0, 0};
          plain.chunk = chunk;
          if (hasSinks)
            shape.sinks = plain.sinks = sinks;
          if (hasSlopes)
            shape.slopes = plain.alibi = slopes;
          if (selected)
            shape.selected = plain.selected = std::span(*selected);
          attendRow(query, {keys, {}, 1, depth, 20, /*latent=*/true}, position, plain, expected);
          attend(query, cache, 0, position, shape, actual);
          for (size_t i = 0; i < actual.size(); ++i)
            EXPECT_NEAR(actual[i], expected[i], 2e-6) << i << " chunk " << chunk << (selected ? " selected" : "");
        }
}

TEST(SelectPositions, AgainstContiguous) {
  const std::vector<int32_t> pages{0, 1};
  CacheView cache{nullptr, 0, 0, pages.data(), cacheOf("1x8xf32, latent = 8, page = 16, panel = 1")};
  cache.pageBytes = cache.kv.bytesPerPage();
  std::vector<uint8_t> memory(static_cast<size_t>(2 * cache.pageBytes));
  cache.memory = memory.data();
  std::vector<float> keys = random(20 * 8, 1), query = random(3 * 8, 2), weights = random(3, 3);
  for (int64_t j = 0; j < 20; ++j)
    cache.append(/*value=*/false, 0, j, std::span(keys).subspan(static_cast<size_t>(j * 8), 8));
  for (size_t count : {1u, 7u, 20u, 25u}) {
    std::vector<float> expected(count), actual(count);
    selectPositions(query, weights, KeysAndValues{keys, {}, 1, 8, 8, /*latent=*/true}, 19, expected);
    selectPositions(query, weights, cache, 19, actual);
    EXPECT_EQ(actual, expected);
  }
}

} // namespace
} // namespace llmc::reference
