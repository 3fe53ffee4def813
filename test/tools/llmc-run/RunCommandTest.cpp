// The run command: its JSON, its plain output, and the sentence and exit code of each bad input.
#include "tools/llmc-run/RunCommand.h"
#include "runtime/support/Json.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <gtest/gtest.h>
#include <sstream>

namespace llmc {
namespace {

using namespace test;

class RunCommand : public ::testing::Test {
protected:
  void SetUp() override {
    writeFakeArtifact(folder, fakeTextManifest(), fakeTextFiles());
    options.artifact = folder;
    options.threads = 1;
    options.maxNewTokens = 5;
    options.ignoreEos = true;
  }
  int run() {
    out.str("");
    err.str("");
    return runArtifact(options, out, err);
  }
  Json json() {
    options.json = true;
    EXPECT_EQ(run(), 0) << err.str();
    StatusOr<Json> root = parseJson(out.str(), "out");
    EXPECT_TRUE(root.ok());
    return root.ok() ? *root : Json();
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
  RunOptions options;
  std::ostringstream out, err;
};

TEST_F(RunCommand, JsonOfIds) {
  options.idsFile = temporary.write("ids.json", "{\"sequences\": [[20, 21, 22], [30]]}");
  Json root = json();
  ASSERT_EQ(root["sequences"].size(), 2u);
  EXPECT_EQ(root["sequences"][0]["prompt_ids"], Json::array({20, 21, 22}));
  EXPECT_EQ(root["sequences"][1]["ids"].size(), 5u);
  EXPECT_EQ(root["sequences"][1]["finish"], "length");
  EXPECT_EQ(root["sequences"][0]["text"], fakeText(root["sequences"][0]["ids"].get<std::vector<int32_t>>()));
  for (const char *part : {"compile", "load", "prefill", "decode"})
    EXPECT_TRUE(root["seconds"][part].is_number()) << part;
  options.json = false;
  ASSERT_EQ(run(), 0);
  std::string lines = out.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2); // a line of ids for each
}

TEST_F(RunCommand, PromptThroughTheTemplateOrRaw) {
  options.prompt = "Hi";
  EXPECT_EQ(json()["sequences"][0]["prompt_ids"].size(), 6u); // <s>[Hi]:
  options.raw = true;
  Json root = json();
  EXPECT_EQ(root["sequences"][0]["prompt_ids"].size(), 3u); // <s>Hi
  options.json = false;
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(out.str(), root["sequences"][0]["text"].get<std::string>() + "\n");
}

TEST_F(RunCommand, PromptsAreABatch) {
  options.promptsFile = temporary.write("prompts", "one\ntwo\r\n\nfour");
  Json root = json();
  ASSERT_EQ(root["sequences"].size(), 4u);
  EXPECT_EQ(root["sequences"][1]["prompt_ids"].size(), 7u); // <s>[two]:
  // The same alone: company changes nothing.
  options.promptsFile.reset();
  options.prompt = "two";
  EXPECT_EQ(json()["sequences"][0]["ids"], root["sequences"][1]["ids"]);
}

TEST_F(RunCommand, MorePromptsThanMayWait) {
  std::string lines;
  for (int i = 0; i < 1500; ++i)
    lines += std::to_string(i) + "\n";
  options.promptsFile = temporary.write("prompts", lines);
  options.maxNewTokens = 1;
  EXPECT_EQ(json()["sequences"].size(), 1500u);
}

TEST_F(RunCommand, BadInput) {
  auto failure = [&] {
    EXPECT_EQ(run(), 1);
    EXPECT_EQ(out.str(), "");
    return err.str();
  };
  EXPECT_EQ(failure(), "error: 0 of --prompt, --prompts and --ids are given, expected 1\n");
  auto ids = [&](const char *text) {
    options.idsFile = temporary.write("ids.json", text);
    return failure();
  };
  std::string path = temporary / "ids.json";
  EXPECT_EQ(ids("{}"), "error: " + path + ": /sequences is missing, expected a list of lists of token ids\n");
  EXPECT_EQ(ids("{\"sequences\": [3]}"), "error: " + path + ": /sequences/0 is 3, expected a list of token ids\n");
  EXPECT_EQ(ids("{\"sequences\": [[1], [-1]]}"),
            "error: " + path + ": /sequences/1/0 is -1, expected an integer from 0 to 2147483647\n");
  EXPECT_EQ(ids("{\"sequences\": [[1], [97]]}"),
            "error: sequence 1: token 0 of the prompt is 97, the vocabulary has 97 ids\n");
  EXPECT_EQ(ids("{\"sequences\": [[13]]}"),
            "error: sequence 0: the logits at position 0 are not finite; check the weights with llmc verify\n");
  options.temperature = 1000;
  EXPECT_EQ(ids("{\"sequences\": [[1]]}"), "error: temperature is 1000, expected 0 to 100\n");
  options.artifact = temporary / "nothing";
  EXPECT_EQ(failure(),
            "error: " + options.artifact + ": no such folder; an artifact is the folder that llmc compile wrote\n");
}

} // namespace
} // namespace llmc
