// Ranks from scores: equal scores get equal ranks, so that the leftmost pair wins among them.
#include "runtime/tokenizer/ScoredBpe.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc {
namespace {

// The byte of "<0xNN>", or nothing. Upper-case digits only, as the format has it.
std::optional<uint8_t> byteOf(std::string_view piece) {
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    if (piece == name)
      return static_cast<uint8_t>(byte);
  }
  return std::nullopt;
}

} // namespace

StatusOr<BpeOptions> scoredBpeOptions(const Vocabulary &vocabulary, std::span<const float> scores,
                                      std::span<const PieceType> types, const std::string &pointer) {
  BpeOptions out;
  out.rule = BpeOptions::Rule::JoinedText;
  out.lateFallback = true;
  out.fuseUnknown = true;
  out.byteIds.fill(-1);
  std::vector<float> order;
  for (size_t id = 0; id < types.size(); ++id) {
    std::string where = pointer + " " + std::to_string(id);
    if (std::isnan(scores[id]))
      return Status::error(where + " has the score NaN");
    if (types[id] == PieceType::Normal)
      order.push_back(scores[id]);
    if (types[id] == PieceType::Unknown && out.unknown)
      return Status::error(where + " is a second unknown piece, the first is " + std::to_string(*out.unknown));
    if (types[id] == PieceType::Unknown)
      out.unknown = static_cast<int32_t>(id);
    if (types[id] != PieceType::Byte)
      continue;
    std::string_view piece = vocabulary.token(static_cast<int64_t>(id)).value_or("");
    std::optional<uint8_t> byte = byteOf(piece);
    if (!byte)
      return Status::error(where + " is the byte piece '" + std::string(piece) + "', expected the form <0x41>");
    out.byteIds[*byte] = static_cast<int32_t>(id);
    out.byteFallback = true;
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  out.rankOfId.assign(types.size(), -1);
  for (size_t id = 0; id < types.size(); ++id)
    if (types[id] == PieceType::Normal)
      out.rankOfId[id] = static_cast<int32_t>(
          std::lower_bound(order.begin(), order.end(), scores[id], std::greater<>()) - order.begin());
  return out;
}

} // namespace llmc
