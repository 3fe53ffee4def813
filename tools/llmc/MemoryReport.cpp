#include "tools/llmc/MemoryReport.h"
#include "dialects/llm/LlmDialect.h"
#include "passes/ArenaPlan.h"
#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace llmc {
namespace {

template <typename... Values> std::string line(const char *format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

Json bufferJson(const ArenaBuffer &buffer, const ArenaFunction &function) {
  bool used = buffer.last >= buffer.first;
  auto step = [&](int64_t at) { return used ? Json(function.steps[static_cast<size_t>(at)]) : Json(); };
  return {{"offset", buffer.offset}, {"bytes", buffer.bytes},        {"first", buffer.first},
          {"last", buffer.last},     {"writer", step(buffer.first)}, {"last_user", step(buffer.last)}};
}

// What a sequence keeps in its slot. The module has its memory plan.
Json stateJson(mlir::ModuleOp module) {
  Json states = Json::array();
  for (auto state : module.getOps<llm::StateOp>())
    if (auto type = mlir::dyn_cast<llm::RecurrentType>(state.getType()))
      states.push_back({{"name", state.getSymName().str()},
                        {"offset", state->getAttrOfType<mlir::IntegerAttr>("offset").getInt()},
                        {"bytes", type.bytes()},
                        {"heads", type.getHeads()},
                        {"keys", type.getKeys()},
                        {"values", type.getValues()}});
  auto slot = module->getAttrOfType<mlir::IntegerAttr>("llmc.state_bytes");
  return {{"bytes_per_sequence", slot ? slot.getInt() : 0}, {"states", std::move(states)}};
}

// A name of memory.json, short enough for a column.
StatusOr<std::string> nameIn(const Json &object, const char *key, const std::string &where) {
  const Json *value = find(object, key);
  if (!value)
    return Status::error(where + "/" + key + " is missing");
  if (value->is_null())
    return std::string("-");
  LLMC_ASSIGN_OR_RETURN(std::string name, asString(*value, where + "/" + key));
  return name.substr(0, 128);
}

StatusOr<int64_t> numberIn(const Json &object, const char *key, const std::string &where) {
  const Json *value = find(object, key);
  if (!value)
    return Status::error(where + "/" + key + " is missing");
  return asInteger(*value, where + "/" + key, -1, INT64_MAX);
}

StatusOr<const Json *> listIn(const Json &object, const char *key, const std::string &where) {
  const Json *value = find(object, key);
  if (!value || !value->is_array())
    return Status::error(where + "/" + key + " is no list");
  return value;
}

StatusOr<std::string> bufferText(const Json &buffer, const std::string &where) {
  LLMC_ASSIGN_OR_RETURN(int64_t offset, numberIn(buffer, "offset", where));
  LLMC_ASSIGN_OR_RETURN(int64_t bytes, numberIn(buffer, "bytes", where));
  LLMC_ASSIGN_OR_RETURN(int64_t first, numberIn(buffer, "first", where));
  LLMC_ASSIGN_OR_RETURN(int64_t last, numberIn(buffer, "last", where));
  LLMC_ASSIGN_OR_RETURN(std::string writer, nameIn(buffer, "writer", where));
  LLMC_ASSIGN_OR_RETURN(std::string lastUser, nameIn(buffer, "last_user", where));
  return line("    at %9" PRId64 "  %9" PRId64 " bytes  from %3" PRId64 " (%s) to %3" PRId64 " (%s)\n", offset, bytes,
              first, writer.c_str(), last, lastUser.c_str());
}

} // namespace

StatusOr<Json> memoryJson(mlir::ModuleOp module) {
  mlir::FailureOr<ArenaPlan> plan = planArena(module);
  if (mlir::failed(plan))
    return Status::error("the arena cannot be planned");
  Json functions = Json::array();
  for (const ArenaFunction &function : plan->functions) {
    Json buffers = Json::array();
    for (const ArenaBuffer &buffer : function.buffers)
      buffers.push_back(bufferJson(buffer, function));
    functions.push_back({{"function", function.name}, {"steps", function.steps.size()}, {"buffers", buffers}});
  }
  return Json{{"arena",
               {{"bytes_per_row", plan->bytes},
                {"least_bytes_per_row", plan->bound},
                {"unshared_bytes_per_row", plan->unshared},
                {"functions", functions}}},
              {"state", stateJson(module)}};
}

std::string stopText(const Manifest &manifest) {
  const std::vector<int32_t> &ids = manifest.specialIds.eos;
  std::string list;
  for (int32_t id : ids)
    list += (list.empty() ? "" : ", ") + std::to_string(id);
  return ids.empty() ? "generation stops at no token: the model states no eos_token_id\n"
                     : "generation stops at token " + list + "\n";
}

std::string planText(const Manifest &manifest, const std::string &path) {
  std::string text = path + ": " + manifest.architecture + " for " + manifest.target + "; context " +
                     std::to_string(manifest.context) + ", at most " + std::to_string(manifest.maxTokens) +
                     " rows and " + std::to_string(manifest.maxSequences) + " sequences a step\n";
  for (const MemoryPlanEntry &entry : manifest.memoryPlan)
    text += line("  %-20s %14" PRIu64 " bytes  = %s\n", entry.name.c_str(), entry.bytes, entry.expression.c_str());
  return text;
}

std::string perplexityText(const Manifest &manifest) {
  if (!manifest.perplexity)
    return "";
  const PerplexityFacts &facts = *manifest.perplexity;
  return line("perplexity %.4f, %.4f with f32 weights (%+.2f %%), over %" PRIu64 " tokens in windows of %d\n",
              facts.value, facts.reference, 100 * (facts.value / facts.reference - 1), facts.tokens, facts.window);
}

StatusOr<std::string> stateText(const Json &memory, const std::string &file) {
  std::string where = file + ": /state";
  const Json *state = find(memory, "state");
  if (!state)
    return Status::error(where + " is missing");
  LLMC_ASSIGN_OR_RETURN(int64_t bytes, numberIn(*state, "bytes_per_sequence", where));
  LLMC_ASSIGN_OR_RETURN(const Json *states, listIn(*state, "states", where));
  if (states->empty())
    return std::string();
  std::string text = line("recurrent state of a sequence: %" PRId64 " bytes\n", bytes);
  for (size_t i = 0; i < states->size(); ++i) {
    std::string here = where + "/states/" + std::to_string(i);
    LLMC_ASSIGN_OR_RETURN(std::string name, nameIn((*states)[i], "name", here));
    LLMC_ASSIGN_OR_RETURN(int64_t offset, numberIn((*states)[i], "offset", here));
    LLMC_ASSIGN_OR_RETURN(int64_t size, numberIn((*states)[i], "bytes", here));
    text += line("    at %9" PRId64 "  %9" PRId64 " bytes  %s\n", offset, size, name.c_str());
  }
  return text;
}

StatusOr<std::vector<PlacedState>> placedStates(const Json &memory, uint64_t slotBytes, mlir::MLIRContext &context,
                                                const std::string &file) {
  constexpr int64_t most = int64_t(1) << 18; // of each dimension: products fit
  const Json *state = find(memory, "state");
  if (!state)
    return Status::error(file + ": /state is missing");
  LLMC_ASSIGN_OR_RETURN(const Json *states, listIn(*state, "states", file + ": /state"));
  std::vector<PlacedState> placed;
  for (size_t i = 0; i < states->size(); ++i) {
    const std::string here = file + ": /state/states/" + std::to_string(i);
    int64_t numbers[5]; // of the keys below
    const char *keys[] = {"offset", "bytes", "heads", "keys", "values"};
    for (size_t k = 0; k < 5; ++k) {
      LLMC_ASSIGN_OR_RETURN(numbers[k], numberIn((*states)[i], keys[k], here));
    }
    const auto [offset, bytes, heads, stateKeys, values] = numbers;
    LLMC_ASSIGN_OR_RETURN(std::string name, nameIn((*states)[i], "name", here));
    bool isShape = std::min({heads, stateKeys, values}) > 0 && std::max({heads, stateKeys, values}) <= most;
    auto type = isShape ? llm::RecurrentType::get(&context, heads, stateKeys, values) : llm::RecurrentType();
    if (!type || type.bytes() != bytes || offset < 0 || static_cast<uint64_t>(offset) > slotBytes ||
        static_cast<uint64_t>(bytes) > slotBytes - static_cast<uint64_t>(offset))
      return Status::error(here + " is " + std::to_string(heads) + " x " + std::to_string(stateKeys) + " x " +
                           std::to_string(values) + " in " + std::to_string(bytes) + " bytes at " +
                           std::to_string(offset) + ", but a slot has " + std::to_string(slotBytes) +
                           "; compile it again");
    placed.push_back({name, offset, type});
  }
  return placed;
}

StatusOr<std::string> arenaText(const Json &memory, const std::string &file) {
  std::string where = file + ": /arena";
  const Json *arena = find(memory, "arena");
  if (!arena)
    return Status::error(where + " is missing");
  LLMC_ASSIGN_OR_RETURN(int64_t bytes, numberIn(*arena, "bytes_per_row", where));
  LLMC_ASSIGN_OR_RETURN(int64_t least, numberIn(*arena, "least_bytes_per_row", where));
  LLMC_ASSIGN_OR_RETURN(int64_t unshared, numberIn(*arena, "unshared_bytes_per_row", where));
  LLMC_ASSIGN_OR_RETURN(const Json *functions, listIn(*arena, "functions", where));
  std::string text = line("activations per row: %" PRId64 " bytes; at least %" PRId64 " are needed at once; %" PRId64
                          " if no buffers shared their place\n",
                          bytes, least, unshared);
  for (size_t i = 0; i < functions->size(); ++i) {
    std::string here = where + "/functions/" + std::to_string(i);
    LLMC_ASSIGN_OR_RETURN(std::string name, nameIn((*functions)[i], "function", here));
    LLMC_ASSIGN_OR_RETURN(int64_t steps, numberIn((*functions)[i], "steps", here));
    text += line("  %s: %" PRId64 " launches and calls\n", name.c_str(), steps);
    LLMC_ASSIGN_OR_RETURN(const Json *buffers, listIn((*functions)[i], "buffers", here));
    for (size_t j = 0; j < buffers->size(); ++j) {
      LLMC_ASSIGN_OR_RETURN(std::string buffer, bufferText((*buffers)[j], here + "/buffers/" + std::to_string(j)));
      text += buffer;
    }
  }
  return text;
}

} // namespace llmc
