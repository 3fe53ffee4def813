// The edges' table: open addressing with a seed that differs from process to process.
#include "runtime/tokenizer/ByteTrie.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace llmc {
namespace {

uint64_t edgeKey(uint32_t node, char byte) { return uint64_t(node) << 8 | static_cast<uint8_t>(byte); }

} // namespace

size_t ByteTrie::slot(uint64_t key) const {
  static const uint64_t seed = hashSeed();
  uint64_t hash = (key ^ seed) * 0x9E3779B97F4A7C15u;
  size_t mask = edges_.size() - 1;
  for (size_t at = (hash ^ hash >> 32) & mask;; at = (at + 1) & mask)
    if (edges_[at].key == key || edges_[at].key == UINT64_MAX)
      return at;
}

uint32_t ByteTrie::child(uint32_t node, char byte) const {
  return edges_.empty() ? 0 : edges_[slot(edgeKey(node, byte))].child;
}

void ByteTrie::insert(std::string_view key, int32_t value) {
  starts_[static_cast<uint8_t>(key[0])] = true;
  uint32_t node = 0;
  for (char byte : key) {
    uint32_t next = child(node, byte);
    if (next == 0) {
      if (values_.size() * 2 > edges_.size()) {
        std::vector<Edge> old(edges_.empty() ? 256 : edges_.size() * 2);
        old.swap(edges_);
        for (const Edge &edge : old)
          if (edge.key != UINT64_MAX)
            edges_[slot(edge.key)] = edge;
      }
      next = static_cast<uint32_t>(values_.size());
      edges_[slot(edgeKey(node, byte))] = {edgeKey(node, byte), next};
      values_.push_back(-1);
    }
    node = next;
  }
  if (values_[node] < 0)
    values_[node] = value;
}

} // namespace llmc
