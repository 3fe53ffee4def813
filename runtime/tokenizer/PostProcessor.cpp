// Templates of post-processors as two id lists. Pairs of texts and type ids have no use in a decoder-only model.
#include "runtime/tokenizer/PostProcessor.h"

namespace llmc {
namespace {

constexpr size_t maxAround = 64;

StatusOr<int32_t> readId(const Json &value, const std::string &pointer, int32_t vocabularySize) {
  LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(value, pointer, 0, vocabularySize - 1));
  return static_cast<int32_t>(id);
}

StatusOr<std::vector<int32_t>> readSpecialIds(const Json &specials, const std::string &name, const std::string &pointer,
                                              int32_t vocabularySize) {
  const Json *entry = find(specials, name);
  const Json *ids = entry ? find(*entry, "ids") : nullptr;
  std::string where = pointer + "/special_tokens/" + name + "/ids";
  if (!ids || !ids->is_array() || ids->empty())
    return Status::error(where + " is missing or no list of ids");
  std::vector<int32_t> out;
  for (size_t i = 0; i < ids->size() && i <= maxAround; ++i) {
    LLMC_ASSIGN_OR_RETURN(int32_t id, readId((*ids)[i], where + "/" + std::to_string(i), vocabularySize));
    out.push_back(id);
  }
  return out;
}

StatusOr<PostProcessor> readTemplate(const Json &value, const std::string &pointer, int32_t vocabularySize) {
  PostProcessor out;
  const Json *single = find(value, "single");
  const Json *specials = find(value, "special_tokens");
  if (!single || !single->is_array())
    return Status::error(pointer + "/single is missing or no list");
  bool seen = false;
  for (size_t i = 0; i < single->size(); ++i) {
    std::string where = pointer + "/single/" + std::to_string(i);
    if (find((*single)[i], "Sequence")) {
      if (seen)
        return Status::error(where + ": the text stands twice in the template");
      seen = true;
      continue;
    }
    const Json *special = find((*single)[i], "SpecialToken");
    const Json *name = special ? find(*special, "id") : nullptr;
    if (!name || !specials)
      return Status::error(where + " is " + brief((*single)[i]) + ", expected a Sequence or a SpecialToken");
    LLMC_ASSIGN_OR_RETURN(std::string token, asString(*name, where + "/SpecialToken/id"));
    LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, readSpecialIds(*specials, token, pointer, vocabularySize));
    auto &side = seen ? out.suffix : out.prefix;
    side.insert(side.end(), ids.begin(), ids.end());
    if (side.size() > maxAround)
      return Status::error(where + ": more than " + std::to_string(maxAround) + " ids around the text");
  }
  if (!seen)
    return Status::error(pointer + "/single has no Sequence: the text would be lost");
  return out;
}

// [token, id], as the processors of BERT's kind write it.
StatusOr<int32_t> readPair(const Json &value, std::string_view key, const std::string &pointer,
                           int32_t vocabularySize) {
  const Json *pair = find(value, key);
  std::string where = pointer + "/" + std::string(key);
  if (!pair || !pair->is_array() || pair->size() != 2)
    return Status::error(where + " is missing or not [\"token\", id]");
  return readId((*pair)[1], where + "/1", vocabularySize);
}

StatusOr<PostProcessor> readSequence(const Json &value, const std::string &pointer, int32_t vocabularySize) {
  PostProcessor out;
  const Json *list = find(value, "processors");
  if (!list || !list->is_array())
    return Status::error(pointer + " has no list 'processors'");
  for (size_t i = 0; i < list->size(); ++i) {
    std::string where = pointer + "/processors/" + std::to_string(i);
    LLMC_ASSIGN_OR_RETURN(PostProcessor step, PostProcessor::read((*list)[i], where, vocabularySize));
    out.prefix.insert(out.prefix.begin(), step.prefix.begin(), step.prefix.end());
    out.suffix.insert(out.suffix.end(), step.suffix.begin(), step.suffix.end());
    if (out.prefix.size() + out.suffix.size() > maxAround)
      return Status::error(where + ": more than " + std::to_string(maxAround) + " ids around the text");
  }
  return out;
}

} // namespace

StatusOr<PostProcessor> PostProcessor::read(const Json &value, const std::string &pointer, int32_t vocabularySize) {
  if (value.is_null())
    return PostProcessor();
  const Json *typeValue = find(value, "type");
  if (!typeValue)
    return Status::error(pointer + " has no 'type'");
  LLMC_ASSIGN_OR_RETURN(std::string type, asString(*typeValue, pointer + "/type"));
  if (type == "ByteLevel") // moves offsets only
    return PostProcessor();
  if (type == "TemplateProcessing")
    return readTemplate(value, pointer, vocabularySize);
  if (type == "Sequence")
    return readSequence(value, pointer, vocabularySize);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    PostProcessor out;
    LLMC_ASSIGN_OR_RETURN(int32_t first, readPair(value, "cls", pointer, vocabularySize));
    LLMC_ASSIGN_OR_RETURN(int32_t last, readPair(value, "sep", pointer, vocabularySize));
    out.prefix = {first};
    out.suffix = {last};
    return out;
  }
  return Status::error(pointer + "/type '" + type +
                       "' is unknown (known = BertProcessing, ByteLevel, RobertaProcessing, Sequence, "
                       "TemplateProcessing)");
}

} // namespace llmc
