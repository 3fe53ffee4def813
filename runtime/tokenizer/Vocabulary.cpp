// An open-addressing table over one block of text: 260,000 tokens load in tens of milliseconds.
#include "runtime/tokenizer/Vocabulary.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace llmc {

uint64_t hashSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t(device()) << 32 | device();
  }();
  return seed;
}

uint64_t hashBytes(std::string_view bytes) {
  constexpr uint64_t multiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = hashSeed() ^ (bytes.size() * multiplier);
  size_t i = 0;
  auto mix = [&](uint64_t word) { hash = std::rotl((hash ^ word) * multiplier, 29) ^ (word >> 32); };
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    mix(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  mix(rest);
  hash *= multiplier;
  return hash ^ (hash >> 32);
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  block_.reserve(bytes);
  places_.reserve(std::min<size_t>(tokens, maxId + 1));
  grow(std::bit_ceil(std::max<size_t>(64, std::min<size_t>(tokens, maxId + 1) * 2)));
}

size_t Vocabulary::slot(std::string_view token) const {
  uint64_t hash = hashBytes(token);
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot &s = slots_[at];
    if (s.id < 0)
      return at;
    if (s.hash != static_cast<uint32_t>(hash >> 32))
      continue;
    const Place &p = places_[static_cast<size_t>(s.id)];
    if (std::string_view(block_).substr(p.begin, static_cast<size_t>(p.size)) == token)
      return at;
  }
}

void Vocabulary::grow(size_t slots) {
  if (slots <= slots_.size())
    return;
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot &s : old) {
    if (s.id < 0)
      continue;
    const Place &p = places_[static_cast<size_t>(s.id)];
    slots_[slot(std::string_view(block_).substr(p.begin, static_cast<size_t>(p.size)))] = s;
  }
}

Status Vocabulary::place(std::string_view token, int64_t id, std::string_view pointer) {
  if (id < 0 || id > maxId)
    return Status::error(std::string(pointer) + ": id " + std::to_string(id) + " is not in 0 to " +
                         std::to_string(maxId));
  auto index = static_cast<size_t>(id);
  if (index >= places_.size())
    places_.resize(index + 1);
  if (places_[index].size >= 0)
    return Status::error(std::string(pointer) + ": id " + std::to_string(id) + " is given twice, to '" +
                         std::string(*this->token(id)) + "' and to '" + std::string(token) + "'");
  places_[index] = {block_.size(), static_cast<int64_t>(token.size())};
  block_ += token;
  longest_ = std::max(longest_, token.size());
  return {};
}

Status Vocabulary::add(std::string_view token, int64_t id, std::string_view pointer) {
  if (std::optional<int32_t> other = this->id(token))
    return Status::error(std::string(pointer) + ": token '" + std::string(token) + "' is given twice, with ids " +
                         std::to_string(*other) + " and " + std::to_string(id));
  LLMC_RETURN_IF_ERROR(place(token, id, pointer));
  grow(std::bit_ceil(std::max<size_t>(64, (used_ + 1) * 2)));
  ++used_;
  slots_[slot(token)] = {static_cast<int32_t>(id), static_cast<uint32_t>(hashBytes(token) >> 32)};
  return {};
}

Status Vocabulary::addHidden(std::string_view token, int64_t id, std::string_view pointer) {
  return place(token, id, pointer);
}

std::optional<int32_t> Vocabulary::id(std::string_view token) const {
  if (slots_.empty())
    return std::nullopt;
  const Slot &s = slots_[slot(token)];
  return s.id < 0 ? std::nullopt : std::optional(s.id);
}

std::optional<std::string_view> Vocabulary::token(int64_t id) const {
  if (id < 0 || id >= size() || places_[static_cast<size_t>(id)].size < 0)
    return std::nullopt;
  const Place &p = places_[static_cast<size_t>(id)];
  return std::string_view(block_).substr(p.begin, static_cast<size_t>(p.size));
}

} // namespace llmc
