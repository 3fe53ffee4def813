// What every rank of a grid holds and does in a step: the numbers that a plan is made of. A row is a token of a step.
#pragma once
#include "lib/sharding/Grid.h"
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llmc::sharding {

// Steps that a plan times: one row of every sequence, and many rows of one.
enum Phase { Decode, Prefill, numPhases };
// Products run at a rate that depends on the bits of their weights.
enum WeightBits { Bits16, Bits8, Bits4, numWeightBits };

enum class CollectiveKind { AllReduce, AllGather };
struct Collective {
  CollectiveKind kind;
  double elements; // of a row of the result
};

// One rank's part of a layer.
struct RankWork {
  double weightBytes = 0;                             // read by every step
  double expertBytes = 0;                             // of the experts that the rank has, all of them
  double expertsHeld = 0;                             // or parts of so many
  std::array<double, numWeightBits> flops = {};       // of a row
  std::array<double, numWeightBits> expertFlops = {}; // of a row's slot
  std::array<double, numPhases> attentionFlops = {};  // of a row
  std::array<double, numPhases> cacheElements = {};   // read for each sequence
  double stateBytes = 0;                              // of each sequence, read and written
  double rowBytes = 0;                                // of a row: into and out of kernels
};

// Layers of one kind in one stage, or what stands before and behind the layers.
struct Unit {
  std::string name;
  int64_t stage = 0, count = 1;
  bool onLogitRows = false;        // on the rows whose logits are wanted only
  int64_t experts = 0, chosen = 0; // of a row
  int64_t expertRanks = 1;         // that hold different experts
  int64_t kernels = 0;
  std::vector<RankWork> ranks; // of the group
  std::vector<Collective> collectives;
};

// Per rank, whatever the batch.
struct Held {
  double experts = 0, matrices = 0, vectors = 0; // bytes of weights
  double cacheElements = 0;                      // of a position of a sequence
  double stateBytes = 0;                         // of a sequence
  double rowElements = 0;                        // of a row: values that are needed at once
  double collectiveElements = 0;                 // of a row: the widest result of a collective
  double weights() const { return experts + matrices + vectors; }
};

struct GridCosts {
  Grid grid;
  std::vector<Unit> units;      // in the order of the step
  std::vector<double> handedOn; // elements of a row from each stage to the next
  std::vector<Held> held;       // by rank of the grid
  int64_t vocabulary = 0;
  // Bytes of weights as one rank without others would hold them, and what the ranks hold more than once.
  double weightBytes = 0, duplicatedBytes = 0;
  // The latter by the names of weights, without the number of their layer.
  std::vector<std::pair<std::string, double>> duplicates;
};

} // namespace llmc::sharding
