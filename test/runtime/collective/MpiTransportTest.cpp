// Runs this program again under mpirun, where every rank does what the variable LLMC_TEST_RANKS names and prints it.
#include "runtime/collective/MpiTransport.h"
#include "test/runtime/collective/Ranks.h"
#include <cstdio>
#include <gtest/gtest.h>
#include <unistd.h>

namespace llmc {
namespace {

using namespace std::chrono_literals;

Status reduceAndSend(Transport &transport) {
  for (int round = 0; round < 100; ++round) {
    // Beyond the size up to which Open MPI sends without asking.
    std::vector<float> values(40000, static_cast<float>(transport.number() + round)), received(40000);
    LLMC_RETURN_IF_ERROR(runCollective(transport, sumOf(2, 40000, 40000), 1, values.data(), values.data()));
    TestCollective send({LLMC_SEND, 0, 2, 1, 40000, 40000, 0, 0, 0, 0});
    TestCollective receive({LLMC_RECEIVE, 0, 2, 0, 0, 0, 40000, 40000, 0, 0});
    LLMC_RETURN_IF_ERROR(transport.stage() == 0 ? runCollective(transport, send, 1, values.data(), nullptr)
                                                : runCollective(transport, receive, 1, nullptr, received.data()));
    // Ranks 0 and 1 add 0 + 1 and two rounds; 2 and 3 get that.
    const float expected = static_cast<float>(1 + 2 * round);
    for (float value : transport.stage() == 0 ? values : received)
      if (value != expected)
        return Status::error("round " + std::to_string(round) + " gives " + std::to_string(value));
  }
  return {};
}

Status act(const std::string &what, Transport &transport) {
  if (what == "reduce-and-send")
    return reduceAndSend(transport);
  if (what == "other-artifact")
    return checkSameIdentity(transport, transport.number() == 3 ? "abd" : "abc");
  std::vector<float> values(4);
  if (what == "other-size")
    return runCollective(transport, sumOf(2, transport.rank() + 2, 4), 1, values.data(), values.data());
  if (what == "hangs" && transport.number() == 1) {
    ::sleep(60); // until mpirun ends it
    return {};
  }
  if (what == "dies" && transport.number() == 1)
    ::_exit(9);
  return runCollective(transport, sumOf(2, 1, 1), 1, values.data(), values.data());
}

// In the processes that mpirun started: prints what it has to say and is done.
int actAsRank(const std::string &what) {
  auto patience = what == "hangs" ? 500ms : 20000ms;
  StatusOr<std::unique_ptr<Transport>> transport =
      MpiTransport::create(what == "other-grid" ? RankGrid{1, 2} : RankGrid{2, 2}, patience);
  Status status = transport.ok() ? act(what, **transport) : transport.status();
  std::printf("said: %s\n", status.ok() ? "nothing" : status.message().c_str());
  std::fflush(stdout);
  return status.ok() ? 0 : 1;
}

// What four ranks print, line by line; nothing where mpirun is missing.
std::optional<std::vector<std::string>> said(const std::string &what) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
    return std::nullopt;
  char self[4096];
  ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  std::string program(self, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  std::string command = "LLMC_TEST_RANKS=" + what +
                        " timeout -k 1 30 mpirun --allow-run-as-root --oversubscribe -n 4 " + program +
                        " </dev/null 2>/dev/null";
  FILE *pipe = ::popen(command.c_str(), "r");
  std::vector<std::string> lines;
  char line[1024];
  while (pipe && std::fgets(line, sizeof line, pipe))
    if (std::string text = line; text.rfind("said: ", 0) == 0)
      lines.push_back(text.substr(6, text.size() - 7));
  if (pipe)
    ::pclose(pipe);
  return lines;
}

std::vector<std::string> all(const std::string &sentence) { return std::vector<std::string>(4, sentence); }

#define SAID_OR_SKIP(name, what)                                                                                       \
  std::optional<std::vector<std::string>> name = said(what);                                                           \
  if (!name)                                                                                                           \
  GTEST_SKIP() << "mpirun is not installed"

TEST(MpiTransport, ReducesAndSends) {
  SAID_OR_SKIP(lines, "reduce-and-send");
  EXPECT_EQ(*lines, all("nothing"));
}

TEST(MpiTransport, RanksRunOneArtifact) {
  SAID_OR_SKIP(lines, "other-artifact");
  // mpirun may end the others as soon as the first rank has failed.
  ASSERT_FALSE(lines->empty());
  for (const std::string &line : *lines)
    EXPECT_EQ(line, "rank 3 runs artifact abd, rank 0 artifact abc; give every rank the same one");
}

TEST(MpiTransport, AMessageOfAnotherSizeIsRefused) {
  SAID_OR_SKIP(lines, "other-size");
  ASSERT_FALSE(lines->empty());
  for (const std::string &line : *lines)
    EXPECT_NE(line.find("the ranks run different programs or batches"), std::string::npos) << line;
}

TEST(MpiTransport, PatienceEnds) {
  SAID_OR_SKIP(lines, "hangs");
  ASSERT_FALSE(lines->empty());
  EXPECT_NE(
      std::find(lines->begin(), lines->end(), "rank 0 has waited 500 ms for rank 1, which neither answers nor ends"),
      lines->end());
}

TEST(MpiTransport, ARankThatDiesEndsAll) {
  auto start = std::chrono::steady_clock::now();
  SAID_OR_SKIP(lines, "dies");
  EXPECT_LT(lines->size(), 4u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(MpiTransport, TheNumberOfRanksIsTheGrids) {
  SAID_OR_SKIP(lines, "other-grid");
  ASSERT_FALSE(lines->empty());
  for (const std::string &line : *lines)
    EXPECT_EQ(line, "mpirun started 4 ranks, the artifact is for 2; use mpirun -n 2");
}

} // namespace
} // namespace llmc

int main(int argc, char **argv) {
  if (const char *what = std::getenv("LLMC_TEST_RANKS"))
    return llmc::actAsRank(what);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
