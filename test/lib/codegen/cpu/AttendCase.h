// Attention tasks of any shape and variant for tests: their modules, inputs, and three ways to know the results.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <cmath>

namespace llmc::test {

struct AttendCase {
  int64_t depth = 64, group = 3, heads = 2, page = 64, window = 0, span = 0, chunk = 0;
  int64_t valueDim = 0; // 0: depth
  int64_t latent = 0;   // channels of a value; 0: the cache keeps values
  int64_t columnsPerHead = 1;
  int64_t selected = 0; // entries of a row's list; 0: none
  int64_t every = 1;    // positions that a latent cache keeps one row of
  bool partials = true, sinks = false, alibi = false, logsum = false;
  bool pairs = false; // of bf16
  int64_t block = 32; // of pairs
  std::string element = "bf16";
  std::string cap = "0.0";

  int64_t values() const { return latent ? latent : valueDim ? valueDim : depth; }
  int64_t storedValues() const { return latent ? 0 : heads * values(); }
  int64_t queryHeads() const { return heads * group; }
  int64_t columns() const { return heads * columnsPerHead; }
  int64_t columnHeads() const { return group / columnsPerHead; }
  std::string kvText() const;
  llm::KvType kv() const;
  bool roundsToPairs() const { return pairs && !selected; }
  float slope(int64_t head) const { return alibi ? std::exp2(-static_cast<float>(head + 1) / 2) : 0; }

  // A row of inputs: queries, keys, values, sinks, selected positions.
  int64_t keysAt() const { return queryHeads() * depth; }
  int64_t valuesAt() const { return keysAt() + heads * depth; }
  int64_t sinksAt() const { return valuesAt() + storedValues(); }
  int64_t selectedAt() const { return sinksAt() + (sinks ? queryHeads() : 0); }
  int64_t channels() const { return selectedAt() + selected; }
  // A row of results: values of all heads, their logsums.
  int64_t logsumsAt() const { return queryHeads() * values(); }
  int64_t resultChannels() const { return logsumsAt() + (logsum ? queryHeads() : 0); }
  // Rows of the cache that are seen at position t, and the position that made one.
  int64_t rowsAt(int64_t t) const { return (t + 1) / every; }
  int64_t positionOf(int64_t row) const { return (row + 1) * every - 1; }
};
std::string nameOf(const AttendCase &c);

// [sequence][length * channels]
using Rows = std::vector<std::vector<float>>;
Rows randomRows(const AttendCase &c, const std::vector<int64_t> &lengths);

std::string moduleOf(const AttendCase &c);

// Feeds the sequences in steps of so many rows each; returns all results.
Rows runSequences(StepProgram &program, const AttendCase &c, const Rows &inputs,
                  const std::vector<std::vector<int32_t>> &steps, int workers);

// Results of one sequence against a softmax in double precision over the cached (rounded) keys and values, with an
// error bound; and against the interpreted op, to the bit.
void checkSequence(const AttendCase &c, std::vector<float> x, const std::vector<float> &y);
void checkInterpreted(const AttendCase &c, const std::vector<float> &x, const std::vector<float> &y);

// All of it for every way to compile in `ways`, with the same rows in other chunks, batches and numbers of workers.
void checkCase(const AttendCase &c, const std::vector<Way> &ways);

} // namespace llmc::test
