// Perplexity over consecutive windows: each token but a window's first is predicted from those before it there.
#pragma once
#include "runtime/engine/Engine.h"
#include <string>
#include <vector>

namespace llmc {

inline constexpr int32_t defaultPerplexityWindow = 512;

struct Perplexity {
  struct Window {
    size_t predicted = 0; // tokens
    double sum = 0;       // of their -log probabilities
    double nll() const { return sum / static_cast<double>(predicted); }
  };
  std::vector<Window> windows;

  size_t predicted() const;
  double value() const;
};

// A text's tokens without BOS and EOS.
StatusOr<std::vector<int32_t>> idsOfPlainText(const LoadedArtifact &artifact, const std::string &text);

// Each sequence has windows of its own; a rest of fewer than two tokens is dropped. `window` is at least 2 and fits the
// artifact's context. The engine must be idle.
StatusOr<Perplexity> measurePerplexity(Engine &engine, const std::vector<std::vector<int32_t>> &sequences,
                                       int32_t window);

} // namespace llmc
