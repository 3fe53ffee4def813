// What ranks make of messages: sums, whole rows of parts, rows of another stage.
#pragma once
#include "runtime/collective/Transport.h"
#include "runtime/llmc_abi.h"
#include "runtime/support/CheckedSize.h"
#include <cstring>
#include <string_view>
#include <vector>

namespace llmc {

// `what` in memory with the ranges of its segments behind it, as a program hands it over.
inline std::vector<int64_t> collectiveWords(const llmc_collective &what, std::span<const int64_t> ranges) {
  static_assert(sizeof what % sizeof(int64_t) == 0);
  std::vector<int64_t> words(sizeof what / sizeof(int64_t));
  std::memcpy(words.data(), &what, sizeof what);
  words.insert(words.end(), ranges.begin(), ranges.end());
  return words;
}

// "all_reduce", by llmc_collective::kind.
const char *collectiveName(int64_t kind);

// Floats that Collectives::run needs beside its operands.
CheckedSize collectiveScratchFloats(const llmc_collective &what, int64_t rows);

// One rank's part of what ranks do together. Every rank that takes part gets the same bits, on every transport: a sum
// is
// ((r0 + r1) + r2) + ..., whoever adds.
class Collectives {
public:
  // The transport must outlive this.
  explicit Collectives(Transport &transport);
  Transport &transport() const { return transport_; }

  // Runs `what`, with the ranges that lie behind it in memory, on `rows` rows. Input and result may be the same memory.
  // Allocates nothing. A failure is told to all ranks.
  Status run(const llmc_collective &what, int64_t rows, const float *input, float *result, std::span<float> scratch);

private:
  struct ConstRows {
    const float *data;
    int64_t columns, stride;
  };
  struct Rows {
    float *data;
    int64_t columns, stride;
  };

  Status check(const llmc_collective &what, int64_t rows, std::span<float> scratch) const;
  Status runChecked(const llmc_collective &what, int64_t rows, ConstRows input, Rows result, float *scratch);
  Status allReduce(const llmc_collective &what, int64_t rows, ConstRows input, Rows result, float *scratch);
  Status allGather(const llmc_collective &what, int64_t rows, ConstRows input, Rows result, float *scratch);
  static void pack(ConstRows from, int64_t rows, float *to);
  static void unpack(const float *from, int64_t rows, Rows to);
  // Messages to and from a rank, of the next exchange; `part` tells the exchanges of one collective apart.
  void send(int32_t rank, const float *data, int64_t count);
  void take(int32_t rank, float *data, int64_t count);
  Status exchange(const llmc_collective &what, int64_t rows, int part);

  Transport &transport_;
  std::vector<OutgoingMessage> outgoing_;
  std::vector<IncomingMessage> incoming_;
  std::vector<float *> parts_; // by rank of the group
};

// Fails, on every rank with the same sentence, unless all ranks have the same `identity` (at most 63 bytes): the hash
// of the artifact of which each runs its part.
Status checkSameIdentity(Transport &transport, std::string_view identity);

} // namespace llmc
