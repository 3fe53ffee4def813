// A trie over bytes with a number at each key; all edges lie in one hash table.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace llmc {

class ByteTrie {
public:
  // A key that is there already keeps its value. Keys must not be empty.
  void insert(std::string_view key, int32_t value);
  // Whether some key starts with this byte.
  bool startsWith(char byte) const { return starts_[static_cast<uint8_t>(byte)]; }
  // Calls `each(end, value)` for every key that lies at `at` of `text`, shortest first.
  template <typename Each> void forEachAt(std::string_view text, size_t at, Each each) const {
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == 0)
        return;
      if (values_[node] >= 0)
        each(i + 1, values_[node]);
    }
  }

private:
  // 0 when there is none: the root is nobody's child.
  uint32_t child(uint32_t node, char byte) const;
  size_t slot(uint64_t key) const;
  struct Edge {
    uint64_t key = UINT64_MAX; // parent and byte
    uint32_t child = 0;
  };
  std::vector<Edge> edges_; // a power of two, at most half full
  std::vector<int32_t> values_{-1};
  bool starts_[256] = {};
};

} // namespace llmc
