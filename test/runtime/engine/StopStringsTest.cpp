// StopStrings: however the text is cut, what is shown is the text before the first stop string.
#include "runtime/engine/StopStrings.h"
#include <gtest/gtest.h>
#include <random>

namespace llmc {
namespace {

// The plainest way: byte by byte over the whole text.
std::string expectedText(const std::vector<std::string> &stops, const std::string &text) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t begin = std::string::npos;
    for (const std::string &stop : stops)
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0)
        begin = std::min(begin, end - stop.size());
    if (begin != std::string::npos)
      return text.substr(0, begin);
  }
  return text;
}

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StatusOr<StopStrings> stops = StopStrings::create({"END", "\n\n"});
  ASSERT_TRUE(stops.ok());
  EXPECT_EQ(stops->push("the E"), "the ");
  EXPECT_EQ(stops->push("N"), "");
  EXPECT_EQ(stops->push("T\n"), "ENT");
  EXPECT_EQ(stops->push("."), "\n.");
  EXPECT_EQ(stops->push("EN"), "");
  EXPECT_EQ(stops->push("D of it"), "");
  EXPECT_TRUE(stops->stopped());
  EXPECT_EQ(stops->push("more"), "");
  EXPECT_EQ(stops->flush(), "");
}

TEST(StopStrings, AnyCutGivesTheSame) {
  std::mt19937 random(3);
  auto word = [&](size_t longest) {
    std::string out;
    for (size_t i = 1 + random() % longest; i > 0; --i)
      out += static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> list;
    for (size_t i = random() % 4; i > 0; --i)
      list.push_back(word(5));
    std::string text = word(24);
    StatusOr<StopStrings> stops = StopStrings::create(list);
    ASSERT_TRUE(stops.ok());
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      size_t n = 1 + random() % 4;
      shown += stops->push(std::string_view(text).substr(at, n));
      at += n;
    }
    shown += stops->flush();
    ASSERT_EQ(shown, expectedText(list, text)) << text;
  }
}

TEST(StopStrings, Limits) {
  EXPECT_TRUE(StopStrings::create(std::vector<std::string>(16, std::string(256, 'x'))).ok());
  EXPECT_EQ(StopStrings::create(std::vector<std::string>(17, "x")).status().message(), "17 stop strings, limit 16");
  EXPECT_EQ(StopStrings::create({std::string(257, 'x')}).status().message(),
            "stop string 0 has 257 bytes, expected 1 to 256");
  EXPECT_EQ(StopStrings::create({"a", ""}).status().message(), "stop string 1 has 0 bytes, expected 1 to 256");
}

} // namespace
} // namespace llmc
