// Rope, attention and the choice of positions: by hand, and against the definition written out position by position.
#include "lib/reference/AttentionFormulas.h"
#include "test/lib/reference/RandomMatrix.h"
#include <cmath>
#include <gtest/gtest.h>

namespace llmc::reference {
namespace {

TEST(Rope, TurnsPairsOfHalvesAndPassesTheRest) {
  std::vector<int32_t> positions{2};
  std::vector<float> frequencies{0.5f};
  Matrix table = ropeTable(positions, frequencies, 2.0f);
  EXPECT_FLOAT_EQ(table.values[0], 2 * std::cos(1.0f)); // 2 * cos(2 * 0.5)
  EXPECT_FLOAT_EQ(table.values[1], 2 * std::sin(1.0f));
  // Two heads of three channels: the first two turn, the third passes.
  Matrix y = rope({1, 6, {1, 0, 7, 0, 1, 8}}, {1, 2, {0.6f, 0.8f}}, {3});
  EXPECT_EQ(y.values, (std::vector<float>{0.6f, 0.8f, 7, -0.8f, 0.6f, 8}));
}

TEST(Rope, TurnsNeighbours) {
  // Pairs (0, 1) and (2, 3) of one head, each by its own angle: a' = a cos - b sin, b' = b cos + a sin.
  const Matrix table(1, 4, {0.6f, 0, 0.8f, 1});
  Matrix y = rope({1, 4, {1, 0, 2, 3}}, table, {4, llm::Pairing::Adjacent});
  EXPECT_EQ(y.values, (std::vector<float>{0.6f, 0.8f, -3, 2}));
}

TEST(Rope, TurnsFromAChannelOnAndBack) {
  const Matrix table(1, 2, {0.6f, 0.8f}), x(1, 8, {7, 1, 0, 9, 8, 0, 1, 6});
  Matrix y = rope(x, table, {4, llm::Pairing::Halves, /*first=*/1});
  EXPECT_EQ(y.values, (std::vector<float>{7, 0.6f, 0.8f, 9, 8, -0.8f, 0.6f, 6}));
  Matrix back = rope(y, table, {4, llm::Pairing::Halves, /*first=*/1, /*inverse=*/true});
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(back.values[i], x.values[i], 1e-6);
}

TEST(Rope, RoundsTheAngleToF32) {
  std::vector<int32_t> positions{16777217 / 3};
  std::vector<float> frequencies{0.1f};
  float angle = float(16777217 / 3) * 0.1f;
  EXPECT_EQ(ropeTable(positions, frequencies, 1).values[0], float(std::cos(double(angle))));
}

TEST(Rope, PositionsThatShareTheirAngles) {
  const std::vector<int32_t> positions = {0, 3, 4, 11};
  const std::vector<float> frequencies = {0.1f};
  Matrix stepped = ropeTable(positions, frequencies, 1, 4),
         plain = ropeTable(std::vector<int32_t>{0, 0, 4, 8}, frequencies, 1);
  EXPECT_EQ(stepped.values, plain.values);
}

// What a row may look at, straight from the description.
bool sees(int64_t position, int64_t j, const AttentionShape &shape) {
  if (shape.window > 0 && j <= position - shape.window)
    return false;
  if (shape.chunk > 0 && j / shape.chunk != position / shape.chunk)
    return false;
  if (!shape.selected)
    return true;
  for (float named : *shape.selected)
    if (named == static_cast<float>(j))
      return true;
  return false;
}

// The definition, position after position, in the same f64.
std::vector<double> plainAttention(const Matrix &q, const KeysAndValues &kv, int64_t position,
                                   const AttentionShape &shape) {
  std::vector<double> result(size_t(shape.heads * kv.valueDim));
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t g = h / (shape.heads / kv.kvHeads);
    double total = shape.sinks.empty() ? 0 : std::exp(double(shape.sinks[size_t(h)]));
    for (int64_t j = 0; j <= position; ++j) {
      if (!sees(position, j, shape))
        continue;
      double score = 0;
      for (int64_t d = 0; d < kv.headDim; ++d)
        score += double(q.row(0)[size_t(h * kv.headDim + d)]) * kv.keys[size_t((j * kv.kvHeads + g) * kv.headDim + d)];
      score *= shape.scale;
      if (shape.softcap > 0)
        score = shape.softcap * std::tanh(score / shape.softcap);
      if (!shape.alibi.empty())
        score += double(shape.alibi[size_t(h)]) * double(j - position);
      double weight = std::exp(score); // scores here are small
      total += weight;
      for (int64_t d = 0; d < kv.valueDim; ++d)
        result[size_t(h * kv.valueDim + d)] +=
            weight * (kv.latent ? kv.keys[size_t((j * kv.kvHeads + g) * kv.headDim + d)]
                                : kv.values[size_t((j * kv.kvHeads + g) * kv.valueDim + d)]);
    }
    for (int64_t d = 0; d < kv.valueDim; ++d)
      result[size_t(h * kv.valueDim + d)] /= total;
  }
  return result;
}

void expectPlain(const KeysAndValues &kv, int64_t position, const AttentionShape &shape) {
  Matrix q = randomMatrix(1, shape.heads * kv.headDim, 1);
  std::vector<float> result(size_t(shape.heads * kv.valueDim));
  attendRow(q.values, kv, position, shape, result);
  std::vector<double> expected = plainAttention(q, kv, position, shape);
  for (size_t i = 0; i < result.size(); ++i)
    EXPECT_NEAR(result[i], expected[i], std::abs(expected[i]) * 6e-8 + 1e-13)
        << "position " << position << " window " << shape.window << " chunk " << shape.chunk;
}

KeysAndValues view(const Matrix &keys, const Matrix &values, int64_t kvHeads) {
  return {keys.values, values.values, kvHeads, keys.columns / kvHeads, values.columns / kvHeads};
}

TEST(Attention, AgainstPlainLoops) {
  for (int64_t heads : {2, 6})
    for (int64_t window : {0, 1, 3, 16, 100})
      for (float cap : {0.0f, 2.0f})
        for (int64_t position : {0, 1, 15, 16, 17}) {
          Matrix k = randomMatrix(position + 1, 14, 2), v = randomMatrix(position + 1, 14, 3);
          expectPlain(view(k, v, 2), position, {heads, 0.3f, cap, window});
        }
}

TEST(Attention, ValuesOfAnotherWidth) {
  for (int64_t width : {1, 5, 13}) {
    Matrix k = randomMatrix(6, 14, 2), v = randomMatrix(6, 2 * width, 3);
    expectPlain(view(k, v, 2), 5, {4, 0.3f});
  }
}

TEST(Attention, LatentValuesAreTheBeginningOfTheKey) {
  Matrix k = randomMatrix(6, 14, 2);
  KeysAndValues latent{k.values, {}, 2, 7, 3, /*latent=*/true};
  expectPlain(latent, 5, {4, 0.3f});
  // The same cache with the values written out.
  Matrix v(6, 6);
  for (int64_t j = 0; j < 6; ++j)
    for (int64_t g = 0; g < 2; ++g)
      for (int64_t d = 0; d < 3; ++d)
        v.row(j)[size_t(g * 3 + d)] = k.row(j)[size_t(g * 7 + d)];
  Matrix q = randomMatrix(1, 28, 1);
  std::vector<float> one(12), other(12);
  attendRow(q.values, latent, 5, {4, 0.3f}, one);
  attendRow(q.values, view(k, v, 2), 5, {4, 0.3f}, other);
  EXPECT_EQ(one, other);
}

TEST(Attention, ChunksSinksAndSlopes) {
  Matrix k = randomMatrix(13, 14, 2), v = randomMatrix(13, 14, 3);
  const std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f}, sinks = {-1, 0, 1, 2};
  for (int64_t position : {0, 3, 4, 5, 12})
    for (int64_t chunk : {0, 1, 4, 100})
      for (int64_t window : {0, 3}) {
        expectPlain(view(k, v, 2), position, {4, 0.3f, 0, window, chunk, slopes});
        expectPlain(view(k, v, 2), position, {4, 0.3f, 2, window, chunk, {}, sinks});
        expectPlain(view(k, v, 2), position, {4, 0.3f, 0, window, chunk, slopes, sinks});
      }
}

TEST(Attention, SinkByHand) {
  // Scores 0 and 0, sink log 2: the softmax is 1/4, 1/4 and 2/4 for nothing.
  Matrix q(1, 1, {0}), k(2, 1, {1, 2}), v(2, 1, {4, 8});
  const float sink = std::log(2.0f);
  std::vector<float> result(1);
  attendRow(q.values, view(k, v, 1), 1, {1, 1.0f, 0, 0, 0, {}, {&sink, 1}}, result);
  EXPECT_FLOAT_EQ(result[0], 3);
}

TEST(Attention, LogsumByHand) {
  // Scores 0 and 0 and a sink of log 2: log(1 + 1 + 2); without positions nothing takes part.
  Matrix q(1, 1, {0}), k(2, 1, {1, 2}), v(2, 1, {4, 8});
  const float sink = std::log(2.0f);
  std::vector<float> result(1), logsum(1);
  attendRow(q.values, view(k, v, 1), 1, {1, 1.0f, 0, 0, 0, {}, {&sink, 1}}, result, logsum);
  EXPECT_FLOAT_EQ(logsum[0], std::log(4.0f));
  attendRow(q.values, view(k, v, 1), -1, {1, 1.0f}, result, logsum);
  EXPECT_EQ(result[0], 0);
  EXPECT_EQ(logsum[0], -1.0e30f);
}

// Parts of what a row sees, weighted by the softmax of their logsums, are the whole.
TEST(Attention, PartsMakeTheWhole) {
  Matrix q = randomMatrix(1, 14, 1), k = randomMatrix(9, 14, 2), v = randomMatrix(9, 14, 3);
  const std::vector<float> some = {0, 3, 4, 7}, others = {1, 2, 5, 6, 8};
  std::vector<float> whole(14), parts[2] = {std::vector<float>(14), std::vector<float>(14)}, sums[2];
  attendRow(q.values, view(k, v, 2), 8, {2, 0.3f}, whole);
  for (size_t i = 0; i < 2; ++i) {
    sums[i].resize(2);
    attendRow(q.values, view(k, v, 2), 8, {2, 0.3f, 0, 0, 0, {}, {}, i ? others : some}, parts[i], sums[i]);
  }
  for (size_t at = 0; at < 14; ++at) {
    const double share = 1 / (1 + std::exp(double(sums[1][at / 7]) - sums[0][at / 7]));
    EXPECT_NEAR(parts[0][at] * share + parts[1][at] * (1 - share), whole[at], 1e-6);
  }
}

TEST(Attention, SelectedPositionsOnly) {
  Matrix k = randomMatrix(9, 14, 2), v = randomMatrix(9, 14, 3);
  const std::vector<float> some = {7, 2, 2, -1, 5}, future = {9, 100, 3e9f}, nothing = {-1, -1};
  expectPlain(view(k, v, 2), 8, {4, 0.3f, 0, 0, 0, {}, {}, some});
  expectPlain(view(k, v, 2), 8, {4, 0.3f, 0, 3, 0, {}, {}, some}); // 7 alone
  std::vector<float> result(28, 1);
  Matrix q = randomMatrix(1, 28, 1);
  for (const std::vector<float> &selected : {future, nothing}) {
    attendRow(q.values, view(k, v, 2), 8, {4, 0.3f, 0, 0, 0, {}, {}, selected}, result);
    EXPECT_EQ(result, std::vector<float>(28, 0));
  }
}

TEST(SelectPositions, ByHand) {
  // Keys -1, 2, 2, 3, 1; one head asks for large ones: scores 0, 2, 2, 3, 1.
  Matrix keys(5, 1, {-1, 2, 2, 3, 1});
  KeysAndValues kv{keys.values, {}, 1, 1, 1, /*latent=*/true};
  const std::vector<float> q = {1}, w = {1};
  auto select = [&](int64_t position, size_t count) {
    std::vector<float> result(count);
    selectPositions(q, w, kv, position, result);
    return result;
  };
  EXPECT_EQ(select(4, 2), (std::vector<float>{1, 3})); // the lower of the equal ones
  EXPECT_EQ(select(4, 3), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(select(1, 3), (std::vector<float>{0, 1, -1}));
  // Two heads: the second asks for small ones, and each counts only what is above 0: 5, 2, 2, 3, 1.
  const std::vector<float> both = {1, -1}, weights = {1, 5};
  std::vector<float> result(2);
  selectPositions(both, weights, kv, 4, result);
  EXPECT_EQ(result, (std::vector<float>{0, 3}));
}

} // namespace
} // namespace llmc::reference
