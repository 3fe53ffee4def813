// The one JSON reader of the product: depth cap, repeated keys refused, positions in messages, checked access.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llmc {

// Keeps the order of keys: chat templates print objects in the order of the request.
using Json = nlohmann::ordered_json;

enum class JsonRoot { Any, Object };
// Parses `text`; messages start with `file` and give line, column and the text around. Objects nest at most
// limits::jsonDepth deep. A bare NaN, Infinity or -Infinity (published configs hold them) is read as a float.
StatusOr<Json> parseJson(std::string_view text, const std::string &file, JsonRoot root = JsonRoot::Object);

// Reads `path` (at most `maxBytes`) and parses it.
StatusOr<Json> readJsonFile(const std::string &path, uint64_t maxBytes, JsonRoot root = JsonRoot::Object);

// Checked access. `pointer` names the value in the message: "/rope_scaling/factor is \"x\", expected a number".
StatusOr<int64_t> asInteger(const Json &value, const std::string &pointer, int64_t min, int64_t max);
StatusOr<double> asNumber(const Json &value, const std::string &pointer);
StatusOr<bool> asBool(const Json &value, const std::string &pointer);
StatusOr<std::string> asString(const Json &value, const std::string &pointer);
// The member of an object, or nullptr when absent. Never inserts, never throws.
const Json *find(const Json &object, std::string_view key);
// A short rendering of a value for messages, cut after 60 bytes.
std::string brief(const Json &value);

} // namespace llmc
