// The one JSON reader of the product: depth cap, repeated keys refused, positions in messages, checked access.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace llmc {

// Keeps the order of keys: chat templates print objects in the order of the request.
using Json = nlohmann::ordered_json;

enum class JsonRoot { Any, Object };
// Parses `text`; messages start with `file` and give line, column and the text around. Objects nest at most
// limits::jsonDepth deep and hold at most limits::jsonValues values in all. The text must be UTF-8 without a byte order
// mark. A bare NaN, Infinity or -Infinity (published configs hold them) is read as a float. Time is n log n at worst.
// `rootKeyNoun` says what the keys of the outermost object are, for messages: "tensor 'a' appears twice".
StatusOr<Json> parseJson(std::string_view text, const std::string &file, JsonRoot root = JsonRoot::Object,
                         std::string_view rootKeyNoun = {});

// Reads `path` (at most `maxBytes`) and parses it.
StatusOr<Json> readJsonFile(const std::string &path, uint64_t maxBytes, JsonRoot root = JsonRoot::Object);

// Checked access. `pointer` names the value in the message: "/rope_scaling/factor is \"x\", expected a number".
StatusOr<int64_t> asInteger(const Json &value, const std::string &pointer, int64_t min, int64_t max);
// For counts and offsets of weight files: 64 bits without a sign, and 4096.0 is refused.
StatusOr<uint64_t> asUnsigned(const Json &value, const std::string &pointer, uint64_t max);
StatusOr<double> asNumber(const Json &value, const std::string &pointer);
StatusOr<bool> asBool(const Json &value, const std::string &pointer);
StatusOr<std::string> asString(const Json &value, const std::string &pointer);
// The member of an object, or nullptr when absent. Never inserts, never throws.
const Json *find(const Json &object, std::string_view key);
// A short rendering of a value for messages, cut after 60 bytes.
std::string brief(const Json &value);
// Text from a file for messages: in single quotes, control bytes and bytes outside UTF-8 escaped, cut after 160 bytes.
std::string inQuotes(std::string_view text);
// Offset of the first byte that is not UTF-8 (overlong forms, surrogates and codes above U+10FFFF are not), or nothing.
std::optional<size_t> findInvalidUtf8(std::string_view text);

} // namespace llmc
