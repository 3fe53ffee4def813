// Sums, gathers, rows between stages, and what ranks say when they do not fit each other.
#include "test/runtime/collective/Ranks.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

using Values = std::vector<float>;

// The result of every rank; `inputs` are those of the ranks.
std::vector<Values> resultsOf(RankGrid grid, const TestCollective &what, int64_t rows, std::vector<Values> inputs,
                              size_t resultSize) {
  std::vector<Values> results(static_cast<size_t>(grid.size()), Values(resultSize, -1));
  Status status = SimulatedRanks(grid).run([&](Transport &transport) {
    auto number = static_cast<size_t>(transport.number());
    return runCollective(transport, what, rows, inputs[number].data(), results[number].data());
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return results;
}

TEST(Collectives, SumsInAscendingOrderOfRanks) {
  // (1e8 + 1) - 1e8 is 0 in f32, 1e8 - 1e8 + 1 would be 1; nothing of what lies between the rows is touched.
  std::vector<Values> inputs = {{1e8f, 1, 9, 9, 2, 3}, {1, 10, 9, 9, 20, 30}, {-1e8f, 100, 9, 9, 200, 300}};
  Values sum = {0, 111, -1, -1, 222, 333};
  EXPECT_EQ(resultsOf({1, 3}, sumOf(3, 2, 4), 2, inputs, 6), std::vector<Values>(3, sum));
}

TEST(Collectives, SumsFewerElementsThanRanks) {
  EXPECT_EQ(resultsOf({1, 5}, sumOf(5, 1, 1), 1, {{1}, {2}, {3}, {4}, {5}}, 1), std::vector<Values>(5, Values{15}));
  EXPECT_EQ(resultsOf({1, 1}, sumOf(1, 1, 1), 1, {{7}}, 1), std::vector<Values>(1, Values{7}));
}

TEST(Collectives, SumsInEveryGroupAlone) {
  EXPECT_EQ(resultsOf({2, 2}, sumOf(2, 1, 1), 1, {{1}, {2}, {10}, {20}}, 1),
            (std::vector<Values>{{3}, {3}, {30}, {30}}));
}

TEST(Collectives, GathersUnevenParts) {
  // Two segments; rank 1 holds nothing; channel 1 is of ranks 0 and 2, which do not agree: the lowest counts.
  TestCollective what({LLMC_ALL_GATHER, 0, 3, 0, 3, 3, 5, 5, 2, 0}, {0, 2, 0, 0, 1, 3, 4, 5, 0, 0, 3, 4});
  TestCollective nothing({LLMC_ALL_GATHER, 0, 3, 0, 0, 0, 5, 5, 2, 0}, {0, 2, 0, 0, 1, 3, 4, 5, 0, 0, 3, 4});
  std::vector<Values> inputs = {{1, 2, 5, 11, 12, 15}, {}, {-2, 3, 4, -12, 13, 14}};
  std::vector<Values> results(3, Values(10));
  Status status = SimulatedRanks({1, 3}).run([&](Transport &transport) {
    auto rank = static_cast<size_t>(transport.rank());
    return runCollective(transport, rank == 1 ? nothing : what, 2, inputs[rank].data(), results[rank].data());
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(results, std::vector<Values>(3, Values{1, 2, 3, 4, 5, 11, 12, 13, 14, 15}));
}

TEST(Collectives, SendsToTheSamePlaceOfAnotherStage) {
  TestCollective send({LLMC_SEND, 0, 2, 1, 2, 3, 0, 0, 0, 0}), receive({LLMC_RECEIVE, 0, 2, 0, 0, 0, 2, 2, 0, 0});
  std::vector<Values> inputs = {{1, 2, 9, 3, 4}, {5, 6, 9, 7, 8}}, results(2, Values(4));
  Status status = SimulatedRanks({2, 2}).run([&](Transport &transport) {
    auto rank = static_cast<size_t>(transport.rank());
    return transport.stage() == 0 ? runCollective(transport, send, 2, inputs[rank].data(), nullptr)
                                  : runCollective(transport, receive, 2, nullptr, results[rank].data());
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(results, (std::vector<Values>{{1, 2, 3, 4}, {5, 6, 7, 8}}));
}

TEST(Collectives, NoRowsAreNoMessages) {
  EXPECT_EQ(resultsOf({1, 2}, sumOf(2, 1, 1), 0, {{1}, {2}}, 1), std::vector<Values>(2, Values{-1}));
}

// What every rank says, which must be the same sentence.
std::string failureOf(RankGrid grid, const SimulatedRanks::Body &body) {
  std::vector<std::string> said(static_cast<size_t>(grid.size()));
  Status first = SimulatedRanks(grid, std::chrono::seconds(20)).run([&](Transport &transport) {
    Status status = body(transport);
    said[static_cast<size_t>(transport.number())] = status.ok() ? "nothing" : status.message();
    return status;
  });
  EXPECT_EQ(said, std::vector<std::string>(said.size(), said[0]));
  EXPECT_EQ(first.ok() ? "nothing" : first.message(), said[0]);
  return said[0];
}

// What ranks of a group of two say of `what` with `scratch` floats beside it.
std::string failureOf(const TestCollective &what, size_t scratch = 64) {
  return failureOf({1, 2}, [&](Transport &transport) {
    Values values(64), room(scratch);
    return Collectives(transport).run(*what, 1, values.data(), values.data(), room);
  });
}

TEST(Collectives, SaysWhatDoesNotFit) {
  EXPECT_EQ(failureOf(sumOf(3, 1, 1)), "the program is for groups of 3 ranks, there are 2");
  EXPECT_EQ(failureOf(TestCollective({LLMC_SEND, 0, 2, 1, 2, 2, 0, 0, 0, 0})),
            "stage 0 exchanges rows with stage 1, but there are 1");
  EXPECT_EQ(failureOf(sumOf(2, 2, 2), 5), "an exchange of 1 rows does not fit the 5 floats that are planned for it");
  EXPECT_EQ(failureOf(TestCollective({LLMC_ALL_GATHER, 0, 2, 0, 3, 3, 4, 4, 1, 0}, {0, 2, 2, 4})),
            "a rank gathers rows of 3 elements, its ranges hold 2");
  EXPECT_EQ(failureOf(TestCollective({7, 0, 2, 0, 3, 3, 4, 4, 0, 0})),
            "the program asks for collective 7, which nobody knows");
}

TEST(Collectives, RanksRunOneProgram) {
  // With one element and two the messages have one size, but are not of one exchange.
  for (auto [few, many] : {std::pair(1, 2), std::pair(4, 6)}) {
    std::string why = failureOf({1, 2}, [&, few = few, many = many](Transport &transport) {
      Values values(64);
      return runCollective(transport, sumOf(2, transport.rank() == 0 ? few : many, 8), 1, values.data(), values.data());
    });
    EXPECT_NE(why.find("; the ranks run different programs or batches"), std::string::npos) << why;
  }
}

TEST(Collectives, RanksRunOneArtifact) {
  EXPECT_EQ(failureOf({2, 2}, [](Transport &transport) { return checkSameIdentity(transport, "abc"); }), "nothing");
  EXPECT_EQ(failureOf({1, 3},
                      [](Transport &transport) {
                        return checkSameIdentity(transport, transport.number() == 1 ? "abd" : "abc");
                      }),
            "rank 1 runs artifact abd, rank 0 artifact abc; give every rank the same one");
}

} // namespace
} // namespace llmc
