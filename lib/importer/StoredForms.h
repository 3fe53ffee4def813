// How published files hold the tensors of a model, as far as its config and description say: a tensor each, or codes
// and scales in its place. For configs alone: the headers of files know better.
#pragma once
#include "lib/importer/CheckWeights.h"
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Json.h"
#include <regex>
#include <set>

namespace llmc {

// One of the tensors that stand for a weight.
struct StoredPiece {
  std::string ending; // in place of ".weight" (or behind a name without it); empty: the weight itself
  std::string type;   // "BF16", "U8"
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};

class StoredForms {
public:
  explicit StoredForms(const ModelSpec &spec);

  // The tensors that stand for each tensor of a group.
  std::vector<StoredPiece> of(const ExpectedGroup &group) const;
  // Such a tensor's name.
  static std::string nameOf(const std::string &weight, const StoredPiece &piece);
  // Why packed weights are counted as plain ones; empty: they are not.
  const std::string &unknown() const { return unknown_; }

private:
  bool isSkipped(const std::string &module) const;

  Json config_;
  std::string plainType_, format_, unknown_;
  int64_t group_ = 128, bits_ = 4;
  std::vector<std::string> skipped_; // globs and parts of module names
  std::vector<std::regex> expressions_;
  std::set<std::string> packed_; // names, as sources spell them
};

struct StoredTotals {
  uint64_t tensors = 0, bytes = 0;
};
// Of the text model and the parts that are not run.
StoredTotals storedTotals(const ModelSpec &spec);

// Bytes of the files that each weight is made of, as spec.weights lists them. Of tensors that weights share each has the
// part that it takes; codes and scales are one. With the headers of the files, those say how large a tensor is.
std::vector<double> storedWeightBytes(const ModelSpec &spec, const std::vector<StoredTensor> &stored = {});

} // namespace llmc
