// Frequencies against those of an independent implementation (torch, float32), bit for bit.
#include "lib/importer/Rope.h"
#include "test/lib/importer/ImporterTesting.h"
#include <bit>
#include <cmath>

using namespace llmc;
using namespace llmc::fixture;

namespace {

std::vector<uint32_t> bitsOf(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  for (float value : values)
    bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// torch's own pow is not rounded correctly everywhere: one unit in the last place is as near as it gets.
void expectNear(const std::vector<float> &values, const std::vector<uint32_t> &bits) {
  ASSERT_EQ(values.size(), bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    int64_t apart = int64_t(std::bit_cast<uint32_t>(values[i])) - int64_t(bits[i]);
    EXPECT_LE(std::abs(apart), 1) << "frequency " << i;
  }
}

} // namespace

TEST(Rope, PlainFrequencies) {
  std::vector<float> frequencies = plainFrequencies(10000.0, 128);
  ASSERT_EQ(frequencies.size(), 64u);
  std::vector<uint32_t> start(bitsOf(frequencies));
  start.resize(8);
  EXPECT_EQ(start, (std::vector<uint32_t>{0x3f800000, 0x3f5dafd7, 0x3f3ff911, 0x3f263de0, 0x3f0ff59a, 0x3ef953cf,
                                          0x3ed7e89b, 0x3ebaf81b}));
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies.back()), 0x38f22ce2u);
}

TEST(Rope, Llama3) {
  ModelSpec spec = resolved("published/llama-3.2-1b");
  EXPECT_EQ(bitsOf(spec.ropes["full"].frequencies),
            (std::vector<uint32_t>{0x3f800000, 0x3f29e1c6, 0x3ee177bc, 0x3e959ee3, 0x3e4693b0, 0x3e03c6a0, 0x3daee4ad,
                                   0x3d681e67, 0x3d1a08c8, 0x3ccc6f49, 0x3c87a9c3, 0x3c340d6d, 0x3beef74f, 0x3b9e9402,
                                   0x3b527720, 0x3aa9279b, 0x39e13620, 0x38cb98f7, 0x37a3418d, 0x3758ac81, 0x370fc8f8,
                                   0x36bed4f4, 0x367d45c3, 0x3628126b, 0x35df10c4, 0x359406cb, 0x35447610, 0x35025f34,
                                   0x34ad07a7, 0x3465a54d, 0x341864a7, 0x33ca41b0}));
  EXPECT_EQ(spec.ropes["full"].magnitude, 1.0);
}

TEST(Rope, Linear) {
  std::vector<float> plain = resolved("llama-2").ropes["full"].frequencies;
  std::vector<float> scaled =
      resolved(changed("llama-2", {{"rope_scaling", {{"type", "linear"}, {"factor", 8.0}}}})).ropes["full"].frequencies;
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(scaled[i], plain[i] / 8.0f);
}

TEST(Rope, Yarn) {
  Json config = changed(
      "llama-2",
      {{"head_dim", 64},
       {"rope_theta", 1000000.0},
       {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}}}});
  RopeSpec rope = resolved(config).ropes["full"];
  expectNear(rope.frequencies,
             {0x3f800000, 0x3f263de0, 0x3ed7e89b, 0x3e8c3504, 0x3e361887, 0x3dec7fd6, 0x3d99940d, 0x3d47763f,
              0x3d0186e3, 0x3ca8398b, 0x3c5a7bf2, 0x3c0de12d, 0x3ba8e98f, 0x3b476f0b, 0x3ae91d93, 0x3a868f93,
              0x3a18ead7, 0x39aa3b44, 0x39383df4, 0x38bf6ded, 0x383a7753, 0x37f22ce2, 0x379d43a4, 0x374c3fbe,
              0x3704a2b2, 0x36ac431d, 0x365fba4f, 0x361148e3, 0x35bcb0c1, 0x35751070, 0x351f23e4, 0x34ceaf79});
  EXPECT_EQ(rope.magnitude, 0.1 * std::log(4.0) + 1.0);
}

TEST(Rope, LongropeHasTwoSets) {
  RopeSpec rope = resolved("phi-3.5").ropes["full"];
  ASSERT_EQ(rope.frequencies.size(), 8u);
  ASSERT_EQ(rope.longFrequencies.size(), 8u);
  EXPECT_EQ(rope.longAfter, 4096);
  EXPECT_EQ(rope.frequencies[0], 1.0f);
  EXPECT_EQ(rope.longFrequencies[0], 1.0f / 1.08f);
  EXPECT_EQ(rope.magnitude, std::sqrt(1.0 + std::log(32.0) / std::log(4096.0))); // 131072 / 4096
}

TEST(Rope, LongropeMayStateItsMagnitude) {
  Json config = configOf("phi-3.5");
  Json &scaling = config["rope_scaling"];
  scaling["short_mscale"] = scaling["long_mscale"] = 1.25;
  EXPECT_EQ(resolved(config).ropes["full"].magnitude, 1.25);
  scaling["long_mscale"] = 1.5;
  EXPECT_EQ(errorOf(config),
            "/rope_scaling/short_mscale is 1.25, and /rope_scaling/long_mscale is 1.5; only equal ones "
            "are supported");
  scaling.erase("long_mscale");
  EXPECT_EQ(errorOf(config), "/rope_scaling/short_mscale is 1.25, and /rope_scaling/long_mscale is missing; only equal "
                             "ones are supported");
}

TEST(Rope, PartOfAHeadTurns) {
  ModelSpec spec = resolved("published/phi-4-mini-reasoning");
  EXPECT_EQ(spec.ropes["full"].frequencies.size(), 48u); // 0.75 of 128, in pairs
  EXPECT_EQ(factOf(spec, "full.rope_width"), "96 (computed: head_dim * /partial_rotary_factor)");
}

TEST(Rope, ProportionalPairsTheWholeHead) {
  std::vector<float> frequencies = resolved("gemma-4-e2b").ropes["full"].frequencies;
  std::vector<float> plain = plainFrequencies(1000000.0, 32);
  ASSERT_EQ(frequencies.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(frequencies[i], i < 4 ? plain[i] : 0.0f) << "a quarter of 32 channels turns, in pairs";
  Json config = configOf("gemma-4-e2b");
  config["text_config"]["rope_parameters"]["full_attention"]["factor"] = 8.0;
  EXPECT_EQ(resolved(config).ropes["full"].frequencies[1], plain[1] / 8.0f);
}
