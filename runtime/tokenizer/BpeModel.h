// Byte-pair encoding: a piece starts as characters (or bytes) and neighbours are merged, lowest rank first.
#pragma once
#include "runtime/tokenizer/TokenModel.h"
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace llmc {

struct Merge {
  int32_t rank;
  int32_t id; // of the merged token
};

// (left id, right id) -> Merge, in an open-addressing table.
class MergeTable {
public:
  void reserve(size_t merges);
  // A pair given again gets the later rank, as in the reference.
  void set(int32_t left, int32_t right, Merge merge);
  const Merge *find(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Merge merge{};
  };
  size_t slot(uint64_t key) const;
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

struct BpeOptions {
  // How the first symbols come about.
  enum class Start { Characters, ByteLetters, Bytes };
  Start start = Start::Characters;
  // Which neighbours merge: the pairs of a table, or those whose joined text is a token (ranked by `rankOfId`).
  enum class Rule { Table, JoinedText };
  Rule rule = Rule::Table;
  MergeTable merges;
  std::vector<int32_t> rankOfId; // JoinedText: by id; negative for a token that no merge gives
  std::optional<int32_t> unknown;
  bool fuseUnknown = false;
  bool ignoreMerges = false; // a piece that is a token is not merged
  // Unknown characters become byte pieces; -1 for a byte without one.
  bool byteFallback = false;
  std::array<int32_t, 256> byteIds{};
  // Byte fallback and unknown runs are decided after merging (sentencepiece) instead of before (tokenizer.json).
  bool lateFallback = false;
  std::string subwordPrefix, wordSuffix;
};

std::unique_ptr<TokenModel> makeBpeModel(std::shared_ptr<const Vocabulary> vocabulary, BpeOptions options);

} // namespace llmc
