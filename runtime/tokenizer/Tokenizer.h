// The tokenizer: text to ids and back, from any of the files that models ship. Immutable once made; any number of
// threads may use one at the same time.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

struct GgufVocabulary;

// What the text of an added token in the input means.
enum class SpecialText {
  Recognise,     // every added token is found
  SpecialAsText, // special ones are plain text, other added tokens are found
  AllAsText,     // nothing is found: for text that is not trusted
};

struct EncodeOptions {
  bool addSpecial = false; // BOS and EOS as the tokenizer's post-processor says
  SpecialText specialText = SpecialText::Recognise;
  bool atStart = true; // false: the text goes on another one that was encoded before it
};

struct TiktokenOptions {
  struct Special {
    std::string content;
    int32_t id;
    bool special = true;
  };
  std::string pattern; // the regular expression that cuts the text
  std::vector<Special> specials;
  // Before the pattern sees it, text is cut every `maxCharacters`, and a run of only or no white space every
  // `maxRunCharacters` (0: not at all). Part of what the tokenizer gives, not a safeguard.
  size_t maxCharacters = 0;
  size_t maxRunCharacters = 0;
  std::optional<int32_t> bosId, eosId;
  bool addBos = false;
  std::vector<std::string> prefix; // special tokens that addSpecial puts before a text, after BOS
};

struct SentencePieceOptions {
  bool addBos = true, addEos = false; // what addSpecial does; the file does not say
};

class Tokenizer {
public:
  // `file` names the source in messages. Each factory checks everything it is given: a tokenizer that was made does not
  // fail later, except by the limits on a pattern.
  static StatusOr<Tokenizer> fromTokenizerJson(std::string_view json, const std::string &file);
  // A sentencepiece tokenizer.model. Its control pieces are never found in a text, its user-defined ones are.
  static StatusOr<Tokenizer> fromSentencePiece(std::string_view bytes, const std::string &file,
                                               SentencePieceOptions options = {});
  // A file of lines "base64-of-the-bytes rank".
  static StatusOr<Tokenizer> fromTiktoken(std::string_view text, TiktokenOptions options, const std::string &file);
  static StatusOr<Tokenizer> fromGguf(const GgufVocabulary &vocabulary, const std::string &file);

  // Bytes that are not UTF-8 are read as U+FFFD, one for each maximal bad part. Fails when the text is longer than
  // limits allow or a pattern goes back too often on it.
  StatusOr<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;
  // Always valid UTF-8. Ids that the vocabulary does not have give nothing.
  StatusOr<std::string> decode(std::span<const int32_t> ids, bool skipSpecial) const;

  // One more than the highest id.
  int32_t vocabSize() const;
  std::optional<int32_t> tokenToId(std::string_view token) const;
  // The token as the file writes it (byte letters, U+2581, <0xNN>), for tiktoken its bytes.
  std::optional<std::string> idToToken(int32_t id) const;
  // Whether decoding leaves the id out with skipSpecial.
  bool isSpecial(int32_t id) const;
  std::optional<int32_t> bosId() const;
  std::optional<int32_t> eosId() const;

  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

private:
  friend class StreamDecoder;
  StatusOr<std::string> decodeFrom(std::span<const int32_t> ids, bool skipSpecial, bool atStart) const;
  std::shared_ptr<const Parts> parts_;
};

// Decodes one id at a time. What it gives, joined with flush(), is what decode gives for all ids, and no part holds a
// part of a character. (Byte pieces make the one exception: a damaged run loses its good characters in decode, but here
// they may have been shown already.)
class StreamDecoder {
public:
  StreamDecoder(Tokenizer tokenizer, bool skipSpecial) : tokenizer_(std::move(tokenizer)), skipSpecial_(skipSpecial) {}
  // The text that `id` makes visible, possibly empty.
  StatusOr<std::string> push(int32_t id);
  // What is still held back; the decoder is as new after it.
  StatusOr<std::string> flush();

private:
  StatusOr<std::string> unseen() const;
  Tokenizer tokenizer_;
  bool skipSpecial_;
  bool atStart_ = true;      // nothing was shown yet
  std::vector<int32_t> ids_; // the last ids that were shown, and those that follow
  size_t shownIds_ = 0;      // how many of ids_ have been shown
  std::string shown_;        // decode of ids_, as far as it has been shown
};

} // namespace llmc
