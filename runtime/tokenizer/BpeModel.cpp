// Merging: a linear scan for short pieces, a heap for long ones (n log n), the same result. Pieces met again come from
// a cache in the workspace.
#include "runtime/tokenizer/BpeModel.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Unicode.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace llmc {
namespace {

// Up to here the scan is faster than the heap.
constexpr size_t scanLimit = 48;
constexpr std::string_view spaceMark = "\xE2\x96\x81";

struct Symbol {
  int32_t id; // -1: not a token (JoinedText only)
  int32_t previous, next;
  uint32_t begin, size; // its text; size 0 once merged away
};

struct Candidate {
  int32_t rank;
  int32_t position;
  int32_t id;
  uint32_t size; // of the joined text: differs when either side has changed since
};
// For std::push_heap, which keeps the greatest on top: lowest rank, then leftmost.
bool isLater(const Candidate &a, const Candidate &b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

// Pieces and their ids. At most `capacity` entries, looked for in a window of eight slots, so that no text makes it
// slow.
class PieceCache {
public:
  const int32_t *find(std::string_view piece, uint64_t hash, size_t &count) const {
    for (size_t i = 0; i < window; ++i) {
      const Entry &e = entries_[(hash + i) & (capacity - 1)];
      if (e.hash == hash && e.size == piece.size() && std::memcmp(text_.data() + e.begin, piece.data(), e.size) == 0) {
        count = e.count;
        return ids_.data() + e.ids;
      }
    }
    return nullptr;
  }
  void insert(std::string_view piece, uint64_t hash, const int32_t *ids, size_t count) {
    if (used_ >= capacity / 2 || text_.size() > (4u << 20))
      *this = PieceCache();
    for (size_t i = 0; i < window; ++i) {
      Entry &e = entries_[(hash + i) & (capacity - 1)];
      if (e.size != 0)
        continue;
      e = {hash, static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(piece.size()),
           static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(count)};
      text_ += piece;
      ids_.insert(ids_.end(), ids, ids + count);
      ++used_;
      return;
    }
  }

private:
  static constexpr size_t capacity = 1 << 16, window = 8;
  struct Entry {
    uint64_t hash = 0;
    uint32_t begin = 0, size = 0, ids = 0, count = 0;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(capacity);
  std::string text_;
  std::vector<int32_t> ids_;
  size_t used_ = 0;
};

struct BpeWorkspace : Workspace {
  PieceCache cache;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<std::optional<Merge>> scan; // of each symbol with its next
};

class BpeModel : public TokenModel {
public:
  BpeModel(std::shared_ptr<const Vocabulary> vocabulary, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)), wordsAreApart_(findWordsAreApart()) {}

  std::unique_ptr<Workspace> makeWorkspace() const override { return std::make_unique<BpeWorkspace>(); }

  Status encodePiece(std::string_view piece, Workspace &workspace, std::vector<int32_t> &out) const override {
    auto &work = static_cast<BpeWorkspace &>(workspace);
    if (!wordsAreApart_) {
      encodeWord(piece, work, out);
      return {};
    }
    for (size_t begin = 0; begin < piece.size();) {
      size_t end = nextWord(piece, begin);
      encodeWord(piece.substr(begin, end - begin), work, out);
      begin = end;
    }
    return {};
  }

private:
  static constexpr size_t maxCachedBytes = 256;

  // Whether a text may be cut before each U+2581 that follows another character: true when that mark is a token and no
  // token holds it inside, so that no merge reaches across. Whole texts then fall apart into words, which the cache
  // knows.
  bool findWordsAreApart() const {
    if (options_.start != BpeOptions::Start::Characters || options_.ignoreMerges || !options_.subwordPrefix.empty() ||
        !options_.wordSuffix.empty() || !vocabulary_->id(spaceMark))
      return false;
    for (int32_t id = 0; id < vocabulary_->size(); ++id) {
      std::optional<std::string_view> token = vocabulary_->token(id);
      bool merged = options_.rule == BpeOptions::Rule::Table || options_.rankOfId[static_cast<size_t>(id)] >= 0;
      if (token && merged && vocabulary_->id(*token) == id && nextWord(*token, 0) < token->size())
        return false;
    }
    return true;
  }

  // Where the word that begins at `begin` ends: before the first mark beyond its leading ones.
  static size_t nextWord(std::string_view text, size_t begin) {
    while (text.substr(begin).starts_with(spaceMark))
      begin += spaceMark.size();
    return std::min(text.find(spaceMark, begin), text.size());
  }

  void encodeWord(std::string_view piece, BpeWorkspace &work, std::vector<int32_t> &out) const {
    if (piece.empty())
      return;
    if (piece.size() > maxCachedBytes) {
      encodeUncached(piece, work, out);
      return;
    }
    uint64_t hash = hashBytes(piece);
    size_t count = 0;
    if (const int32_t *ids = work.cache.find(piece, hash, count)) {
      out.insert(out.end(), ids, ids + count);
      return;
    }
    size_t before = out.size();
    encodeUncached(piece, work, out);
    work.cache.insert(piece, hash, out.data() + before, out.size() - before);
  }

  void encodeUncached(std::string_view piece, BpeWorkspace &work, std::vector<int32_t> &out) const {
    if (options_.ignoreMerges) {
      bool letters = options_.start == BpeOptions::Start::ByteLetters;
      if (auto whole = letters ? vocabulary_->id(bytelevel::toLetters(piece)) : vocabulary_->id(piece)) {
        out.push_back(*whole);
        return;
      }
    }
    work.symbols.clear();
    if (options_.start == BpeOptions::Start::Characters)
      startFromCharacters(piece, work.symbols);
    else
      startFromBytes(piece, work.symbols);
    if (work.symbols.size() <= scanLimit)
      mergeByScan(piece, work);
    else
      mergeByHeap(piece, work);
    emit(piece, work.symbols, out);
  }

  static void add(std::vector<Symbol> &symbols, int32_t id, size_t begin, size_t size) {
    auto index = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, index - 1, index + 1, static_cast<uint32_t>(begin), static_cast<uint32_t>(size)});
  }

  void startFromBytes(std::string_view piece, std::vector<Symbol> &symbols) const {
    for (size_t i = 0; i < piece.size(); ++i)
      add(symbols, options_.byteIds[static_cast<uint8_t>(piece[i])], i, 1);
  }

  // Unknown characters become byte pieces if there is one for each byte, else the unknown token, runs of which are one
  // when fused. The order of these steps is the reference's.
  void startFromCharacters(std::string_view piece, std::vector<Symbol> &symbols) const {
    std::optional<Symbol> unknown;
    std::string decorated;
    auto flush = [&] {
      if (unknown)
        add(symbols, unknown->id, unknown->begin, unknown->size);
      unknown.reset();
    };
    for (size_t i = 0; i < piece.size();) {
      size_t size = unicode::decode(piece, i).size, begin = i;
      std::string_view character = piece.substr(i, size);
      i += size;
      if (!options_.subwordPrefix.empty() || !options_.wordSuffix.empty()) {
        decorated = (begin > 0 ? options_.subwordPrefix : std::string()) + std::string(character) +
                    (i == piece.size() ? options_.wordSuffix : std::string());
        character = decorated;
      }
      std::optional<int32_t> id = vocabulary_->id(character);
      if (id || options_.lateFallback) {
        flush();
        add(symbols, id.value_or(-1), begin, size);
        continue;
      }
      if (options_.byteFallback && hasAllBytes(character)) {
        for (size_t k = 0; k < character.size(); ++k)
          add(symbols, options_.byteIds[static_cast<uint8_t>(character[k])], begin + std::min(k, size - 1), 1);
        continue;
      }
      if (!options_.unknown)
        continue;
      if (unknown && options_.fuseUnknown) {
        unknown->size += static_cast<uint32_t>(size);
        continue;
      }
      flush();
      unknown = Symbol{*options_.unknown, 0, 0, static_cast<uint32_t>(begin), static_cast<uint32_t>(size)};
    }
    flush();
  }

  bool hasAllBytes(std::string_view bytes) const {
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](char c) { return options_.byteIds[static_cast<uint8_t>(c)] >= 0; });
  }

  std::optional<Merge> mergeOf(std::string_view piece, const Symbol &left, const Symbol &right) const {
    if (options_.rule == BpeOptions::Rule::Table) {
      const Merge *merge = options_.merges.find(left.id, right.id);
      return merge ? std::optional(*merge) : std::nullopt;
    }
    size_t size = size_t(left.size) + right.size;
    if (size > vocabulary_->longestToken())
      return std::nullopt;
    std::optional<int32_t> id = vocabulary_->id(piece.substr(left.begin, size));
    if (!id || options_.rankOfId[static_cast<size_t>(*id)] < 0)
      return std::nullopt;
    return Merge{options_.rankOfId[static_cast<size_t>(*id)], *id};
  }

  void join(std::vector<Symbol> &symbols, int32_t at, int32_t id) const {
    Symbol &left = symbols[static_cast<size_t>(at)];
    Symbol &right = symbols[static_cast<size_t>(left.next)];
    left.id = id;
    left.size += right.size;
    left.next = right.next;
    right.size = 0;
    if (static_cast<size_t>(left.next) < symbols.size())
      symbols[static_cast<size_t>(left.next)].previous = at;
  }

  void mergeByScan(std::string_view piece, BpeWorkspace &work) const {
    auto &symbols = work.symbols;
    auto count = static_cast<int32_t>(symbols.size());
    auto lookUp = [&](int32_t at) {
      const Symbol &s = symbols[static_cast<size_t>(at)];
      work.scan[static_cast<size_t>(at)] =
          s.next < count ? mergeOf(piece, s, symbols[static_cast<size_t>(s.next)]) : std::nullopt;
    };
    work.scan.resize(symbols.size());
    for (int32_t i = 0; i < count; ++i)
      lookUp(i);
    while (true) {
      int32_t best = -1;
      for (int32_t i = 0; i < count; i = symbols[static_cast<size_t>(i)].next)
        if (work.scan[static_cast<size_t>(i)] &&
            (best < 0 || work.scan[static_cast<size_t>(i)]->rank < work.scan[static_cast<size_t>(best)]->rank))
          best = i;
      if (best < 0)
        return;
      join(symbols, best, work.scan[static_cast<size_t>(best)]->id);
      lookUp(best);
      if (int32_t previous = symbols[static_cast<size_t>(best)].previous; previous >= 0)
        lookUp(previous);
    }
  }

  void mergeByHeap(std::string_view piece, BpeWorkspace &work) const {
    auto &symbols = work.symbols;
    auto &heap = work.heap;
    heap.clear();
    auto candidate = [&](int32_t at) -> std::optional<Candidate> {
      const Symbol &left = symbols[static_cast<size_t>(at)];
      if (static_cast<size_t>(left.next) >= symbols.size())
        return std::nullopt;
      const Symbol &right = symbols[static_cast<size_t>(left.next)];
      std::optional<Merge> merge = mergeOf(piece, left, right);
      if (!merge)
        return std::nullopt;
      return Candidate{merge->rank, at, merge->id, left.size + right.size};
    };
    auto push = [&](int32_t at) {
      if (auto c = candidate(at)) {
        heap.push_back(*c);
        std::push_heap(heap.begin(), heap.end(), isLater);
      }
    };
    for (int32_t i = 0; static_cast<size_t>(i) < symbols.size(); ++i)
      if (auto c = candidate(i))
        heap.push_back(*c);
    std::make_heap(heap.begin(), heap.end(), isLater);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), isLater);
      Candidate top = heap.back();
      heap.pop_back();
      const Symbol &left = symbols[static_cast<size_t>(top.position)];
      // Stale: either side was merged since, which made it longer or made it vanish.
      if (left.size == 0 || static_cast<size_t>(left.next) >= symbols.size() ||
          left.size + symbols[static_cast<size_t>(left.next)].size != top.size)
        continue;
      join(symbols, top.position, top.id);
      push(top.position);
      if (left.previous >= 0)
        push(left.previous);
    }
  }

  void emit(std::string_view piece, const std::vector<Symbol> &symbols, std::vector<int32_t> &out) const {
    bool afterUnknown = false;
    for (size_t i = 0; i < symbols.size(); i = static_cast<size_t>(symbols[i].next)) {
      const Symbol &s = symbols[i];
      bool isUnknown = options_.lateFallback && (s.id < 0 || s.id == options_.unknown);
      if (!isUnknown) {
        out.push_back(s.id);
      } else if (options_.byteFallback && hasAllBytes(piece.substr(s.begin, s.size))) {
        for (char byte : piece.substr(s.begin, s.size))
          out.push_back(options_.byteIds[static_cast<uint8_t>(byte)]);
        isUnknown = false;
      } else if (options_.unknown && !(afterUnknown && options_.fuseUnknown)) {
        out.push_back(*options_.unknown);
      }
      afterUnknown = isUnknown;
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  BpeOptions options_;
  bool wordsAreApart_;
};

} // namespace

void MergeTable::reserve(size_t merges) {
  size_t wanted = std::bit_ceil(std::max<size_t>(16, merges * 2));
  if (wanted <= slots_.size())
    return;
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  for (const Slot &s : old)
    if (s.key != UINT64_MAX)
      slots_[slot(s.key)] = s;
}

size_t MergeTable::slot(uint64_t key) const {
  static const uint64_t seed = hashSeed();
  uint64_t hash = (key ^ seed) * 0x9E3779B97F4A7C15u;
  size_t mask = slots_.size() - 1;
  for (size_t at = (hash ^ hash >> 32) & mask;; at = (at + 1) & mask)
    if (slots_[at].key == key || slots_[at].key == UINT64_MAX)
      return at;
}

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  reserve(used_ + 1);
  uint64_t key = uint64_t(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  Slot &s = slots_[slot(key)];
  used_ += s.key == UINT64_MAX;
  s = {key, merge};
}

const Merge *MergeTable::find(int32_t left, int32_t right) const {
  if (slots_.empty() || left < 0 || right < 0)
    return nullptr;
  const Slot &s = slots_[slot(uint64_t(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right))];
  return s.key == UINT64_MAX ? nullptr : &s.merge;
}

std::unique_ptr<TokenModel> makeBpeModel(std::shared_ptr<const Vocabulary> vocabulary, BpeOptions options) {
  return std::make_unique<BpeModel>(std::move(vocabulary), std::move(options));
}

} // namespace llmc
