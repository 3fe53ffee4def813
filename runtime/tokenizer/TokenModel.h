// What turns a piece of text into ids, whatever the algorithm.
#pragma once
#include "runtime/support/Status.h"
#include "runtime/tokenizer/Vocabulary.h"
#include <memory>
#include <string_view>
#include <vector>

namespace llmc {

// Scratch memory and a cache of pieces for one encoding at a time; a tokenizer keeps a few for reuse.
class Workspace {
public:
  virtual ~Workspace() = default;
};

class TokenModel {
public:
  virtual ~TokenModel() = default;
  virtual std::unique_ptr<Workspace> makeWorkspace() const { return std::make_unique<Workspace>(); }
  // Appends the ids of one piece (valid UTF-8, or any bytes where the model works on bytes).
  virtual Status encodePiece(std::string_view piece, Workspace &workspace, std::vector<int32_t> &out) const = 0;
};

} // namespace llmc
