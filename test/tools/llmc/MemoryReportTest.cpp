// What is said about a memory.json, and about one that is none.
#include "tools/llmc/MemoryReport.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

Json planOf(Json buffers) {
  return {{"arena",
           {{"bytes_per_row", 768},
            {"least_bytes_per_row", 512},
            {"unshared_bytes_per_row", 1024},
            {"functions", {{{"function", "step"}, {"steps", 3}, {"buffers", std::move(buffers)}}}}}}};
}

Json buffer() {
  return {{"offset", 256}, {"bytes", 512}, {"first", 0}, {"last", 2}, {"writer", "a"}, {"last_user", "b"}};
}

std::string failureOf(const Json &memory) {
  StatusOr<std::string> text = arenaText(memory, "m");
  return text.ok() ? *text : text.status().message();
}

TEST(MemoryReport, SaysWhatIsPlannedAndWhatIsNeeded) {
  Json unused = buffer();
  unused["last"] = -1;
  unused["writer"] = unused["last_user"] = nullptr;
  EXPECT_EQ(failureOf(planOf({buffer(), unused})),
            "activations per row: 768 bytes; at least 512 are needed at once; 1024 if no buffers shared their place\n"
            "  step: 3 launches and calls\n"
            "    at       256        512 bytes  from   0 (a) to   2 (b)\n"
            "    at       256        512 bytes  from   0 (-) to  -1 (-)\n");
}

TEST(MemoryReport, SaysWhatEndsAnAnswer) {
  Manifest manifest;
  EXPECT_EQ(stopText(manifest), "generation stops at no token: the model states no eos_token_id\n");
  manifest.specialIds.eos = {163586, 2};
  EXPECT_EQ(stopText(manifest), "generation stops at token 163586, 2\n");
}

TEST(MemoryReport, NamesWhatIsMissingOrOfAnotherKind) {
  EXPECT_EQ(failureOf(Json::object()), "m: /arena is missing");
  const Json whole = buffer();
  for (const auto &[key, value] : whole.items()) {
    Json without = whole;
    without.erase(key);
    EXPECT_EQ(failureOf(planOf({without})), "m: /arena/functions/0/buffers/0/" + key + " is missing");
  }
  Json wrong = buffer();
  wrong["bytes"] = -2;
  EXPECT_EQ(failureOf(planOf({wrong})).find("m: /arena/functions/0/buffers/0/bytes is -2"), 0u);
  EXPECT_EQ(failureOf(planOf("none")), "m: /arena/functions/0/buffers is no list");
  EXPECT_EQ(failureOf({{"arena", 7}}), "m: /arena/bytes_per_row is missing");
}

TEST(MemoryReport, SaysWhatASequenceKeeps) {
  Json state = {{"bytes_per_sequence", 256}, {"states", {{{"name", "a"}, {"offset", 0}, {"bytes", 192}}}}};
  auto textOf = [](const Json &memory) {
    StatusOr<std::string> text = stateText(memory, "m");
    return text.ok() ? *text : text.status().message();
  };
  EXPECT_EQ(textOf({{"state", state}}),
            "recurrent state of a sequence: 256 bytes\n    at         0        192 bytes  a\n");
  EXPECT_EQ(textOf(Json::object()), "m: /state is missing");
  state["states"][0].erase("offset");
  EXPECT_EQ(textOf({{"state", state}}), "m: /state/states/0/offset is missing");
  state["states"] = Json::array();
  EXPECT_EQ(textOf({{"state", state}}), "");
}

TEST(MemoryReport, PlacesStatesInASlot) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  auto resultOf = [&](const Json &memory, uint64_t slotBytes) {
    StatusOr<std::vector<PlacedState>> placed = placedStates(memory, slotBytes, context, "m");
    return placed.ok() ? std::to_string(placed->size()) + " at " + std::to_string(placed->back().offset)
                       : placed.status().message();
  };
  // 2 heads of 3 keys x 16 values of 4 bytes.
  Json entry = {{"name", "a"}, {"offset", 64}, {"bytes", 384}, {"heads", 2}, {"keys", 3}, {"values", 16}};
  Json memory = {{"state", {{"states", Json::array({entry})}}}};
  EXPECT_EQ(resultOf(memory, 448), "1 at 64");
  EXPECT_EQ(resultOf(memory, 447),
            "m: /state/states/0 is 2 x 3 x 16 in 384 bytes at 64, but a slot has 447; compile it again");
  memory["state"]["states"][0]["keys"] = 4;
  EXPECT_EQ(resultOf(memory, 4480).find("m: /state/states/0 is 2 x 4 x 16 in 384 bytes"), 0u);
  memory["state"]["states"][0].erase("keys");
  EXPECT_EQ(resultOf(memory, 448), "m: /state/states/0/keys is missing");
  EXPECT_EQ(resultOf(Json::object(), 448), "m: /state is missing");
}

TEST(MemoryReport, SaysTheLossWhereItWasMeasured) {
  Manifest manifest;
  EXPECT_EQ(perplexityText(manifest), "");
  manifest.perplexity = {std::string(32, 'a'), 4088, 512, 10.3, 10.0};
  EXPECT_EQ(perplexityText(manifest),
            "perplexity 10.3000, 10.0000 with f32 weights (+3.00 %), over 4088 tokens in windows of 512\n");
}

} // namespace
