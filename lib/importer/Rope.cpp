// Rope scalings. Published models are trained with frequencies that were computed in float32, a step at a time; the
// same steps are taken here, each in a statement of its own so that no compiler fuses two of them.
#include "lib/importer/Rope.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace llmc {
namespace {

constexpr double maxTheta = 1e12;

// The object that states a rope, its type, and the numbers that the type needs.
struct Stage {
  const RopeRule &rule;
  const std::string &name;
  ValueReader &values;
  const Json *object = nullptr;
  std::string pointer;
  bool statesBase = false; // an object of the kind that always states its base
  std::string type = "default";
  double theta = 0.0;
  int64_t headDim = 0, width = 0;
  std::vector<std::string> &used;
};

bool isFlat(const Json &object) {
  bool anyObject = false;
  for (const Json &member : object)
    anyObject |= member.is_object();
  return object.is_object() && !anyObject;
}

Status findObject(Stage &s) {
  for (const auto *keys : {&s.rule.objects, &s.rule.scaling})
    for (const std::string &key : *keys) {
      Stated found = s.values.stated(key);
      if (!found.json)
        continue;
      if (!found.json->is_object())
        return Status::error(found.pointer + " is " + brief(*found.json) + ", expected an object");
      if (keys == &s.rule.objects && !isFlat(*found.json))
        return Status::error(found.pointer +
                             " is keyed by kind of layer, which the description of this family does not expect");
      s.object = found.json;
      s.pointer = found.pointer;
      s.statesBase = keys == &s.rule.objects;
      return {};
    }
  return {};
}

// A member of the rope object that is not null.
Stated member(const Stage &s, const std::string &name) {
  Stated found;
  if (const Json *value = s.object ? find(*s.object, name) : nullptr; value && !value->is_null()) {
    found.json = value;
    found.pointer = s.pointer + "/" + name;
  }
  return found;
}

StatusOr<double> numberIn(const Stated &found, double above, double below) {
  LLMC_ASSIGN_OR_RETURN(double value, asNumber(*found.json, found.pointer));
  if (!(value > above && value < below))
    return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a number above " +
                         printNumber(above) + " and below " + printNumber(below));
  return value;
}

Status readTheta(Stage &s) {
  Stated inside = member(s, "rope_theta"), outside = s.values.firstStated(s.rule.theta);
  if (inside.json && outside.json && inside.json->is_number() && *inside.json != *outside.json)
    return Status::error(inside.pointer + " is " + brief(*inside.json) + ", but " + outside.pointer + " is " +
                         brief(*outside.json) + "; both state the base of the rope");
  const Stated &found = inside.json ? inside : outside;
  if (found.json) {
    LLMC_ASSIGN_OR_RETURN(s.theta, numberIn(found, 1.0, maxTheta));
    s.values.record(s.name + ".rope_theta", printNumber(s.theta), "stated as " + found.pointer);
    return {};
  }
  // A stored base that a reader misses is wrong by orders of magnitude and runs all the same.
  if (s.statesBase || s.rule.defaultTheta.empty())
    return Status::error(
        (s.statesBase ? s.pointer + " has no 'rope_theta'" : s.values.source().file() + " states no rope base") +
        "; a default would be a guess");
  LLMC_ASSIGN_OR_RETURN(s.theta, s.values.evaluate(s.rule.defaultTheta));
  if (!(s.theta > 1.0 && s.theta < maxTheta))
    return Status::error("the base of the rope is " + s.rule.defaultTheta + " = " + printNumber(s.theta) +
                         ", expected a number above 1 and below " + printNumber(maxTheta));
  s.values.record(s.name + ".rope_theta", printNumber(s.theta), "class default");
  return {};
}

Status readType(Stage &s) {
  Stated first = member(s, "rope_type"), second = member(s, "type"), outside = s.values.firstStated(s.rule.type);
  if (first.json && second.json && *first.json != *second.json)
    return Status::error(first.pointer + " is " + brief(*first.json) + ", but " + second.pointer + " is " +
                         brief(*second.json) + "; both state the kind of rope");
  const Stated &found = first.json ? first : second.json ? second : outside;
  if (!found.json) {
    if (s.object && !s.statesBase && !s.object->empty())
      return Status::error(s.pointer + " has no 'rope_type'");
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(std::string word, asString(*found.json, found.pointer));
  static const std::map<std::string, std::string> plain = {
      {"default", "default"},           {"linear", "linear"}, {"llama3", "llama3"}, {"longrope", "longrope"},
      {"proportional", "proportional"}, {"yarn", "yarn"}};
  const auto &types = s.rule.types.empty() ? plain : s.rule.types;
  auto it = types.find(word);
  if (it == types.end()) {
    std::string known;
    for (const auto &type : types)
      known += (known.empty() ? "" : ", ") + type.first;
    return Status::error(found.pointer + " '" + word + "' is unknown (known = " + known + ")");
  }
  s.type = it->second;
  s.values.record(s.name + ".rope_type", s.type, "stated as " + found.pointer);
  return {};
}

// Every member of the object must be one that the type reads; the others change the maths.
Status checkMembers(const Stage &s) {
  static const std::map<std::string, std::vector<std::string>> known = {
      {"default", {}},
      {"linear", {"factor"}},
      {"llama3", {"factor", "low_freq_factor", "high_freq_factor"}},
      {"longrope", {"factor", "attention_factor", "long_factor", "short_factor", "long_mscale", "short_mscale"}},
      {"proportional", {"factor"}},
      {"yarn", {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}}};
  static const std::vector<std::string> always = {
      "rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "finetuned"};
  if (!s.object)
    return {};
  const std::vector<std::string> &own = known.at(s.type);
  for (auto it = s.object->begin(); it != s.object->end(); ++it) {
    auto among = [&](const std::vector<std::string> &list) {
      return std::find(list.begin(), list.end(), it.key()) != list.end();
    };
    if (!it->is_null() && !among(always) && !among(own) && !among(s.rule.ignored))
      return Status::error(s.pointer + "/" + it.key() + " is " + brief(*it) + ", which rope type '" + s.type +
                           "' does not read; it may change the maths");
  }
  return {};
}

Status readWidth(Stage &s) {
  LLMC_ASSIGN_OR_RETURN(double channels, s.values.evaluate(s.rule.channels.empty() ? "head_dim" : s.rule.channels));
  s.headDim = static_cast<int64_t>(channels);
  s.width = s.headDim;
  std::string origin = "computed: the whole head";
  if (Stated width = s.values.firstStated(s.rule.width); width.json) {
    LLMC_ASSIGN_OR_RETURN(s.width, asInteger(*width.json, width.pointer, 2, s.headDim));
    origin = "stated as " + width.pointer;
  }
  Stated partial = member(s, "partial_rotary_factor");
  if (!partial.json)
    partial = s.values.firstStated(s.rule.partial);
  if (partial.json) {
    LLMC_ASSIGN_OR_RETURN(double fraction, asNumber(*partial.json, partial.pointer));
    if (!(fraction > 0.0 && fraction <= 1.0))
      return Status::error(partial.pointer + " is " + brief(*partial.json) +
                           ", expected a fraction above 0, at most 1");
    s.width = static_cast<int64_t>(static_cast<double>(s.headDim) * fraction);
    origin = "computed: head_dim * " + partial.pointer;
  } else if (s.rule.defaultPartial && s.width == s.headDim) {
    s.width = static_cast<int64_t>(static_cast<double>(s.headDim) * *s.rule.defaultPartial);
    origin = "class default: " + printNumber(*s.rule.defaultPartial) + " of the head";
  }
  if (s.width < 2 || s.width % 2 != 0)
    return Status::error("the rotary width is " + std::to_string(s.width) + " of head_dim " +
                         std::to_string(s.headDim) + ", expected an even number of at least 2");
  s.values.record(s.name + ".rope_width", std::to_string(s.width), origin);
  return {};
}

StatusOr<double> needed(const Stage &s, const std::string &name) {
  Stated found = member(s, name);
  if (!found.json && name == "factor")
    found = s.values.firstStated(s.rule.factor);
  if (!found.json)
    return Status::error((s.object ? s.pointer : s.values.source().file()) + " has no '" + name +
                         "', which rope type '" + s.type + "' needs");
  return numberIn(found, 0.0, maxTheta);
}

// Context of the model before its rope was scaled.
StatusOr<double> originalContext(const Stage &s) {
  Stated found = s.values.firstStated(s.rule.originalContext);
  if (!found.json)
    found = member(s, "original_max_position_embeddings");
  if (found.json) {
    LLMC_ASSIGN_OR_RETURN(int64_t value, asInteger(*found.json, found.pointer, 2, int64_t(1) << 30));
    return static_cast<double>(value);
  }
  return s.values.number("context");
}

std::vector<float> powers(double theta, int64_t width) {
  std::vector<float> result;
  for (int64_t i = 0; i < width; i += 2) {
    float exponent = static_cast<float>(i) / static_cast<float>(width);
    // pow in double, rounded once, is the float32 power to the last bit but for rare ties.
    result.push_back(
        static_cast<float>(std::pow(static_cast<double>(static_cast<float>(theta)), static_cast<double>(exponent))));
  }
  return result;
}

Status scaleLinear(const Stage &s, RopeSpec &rope) {
  LLMC_ASSIGN_OR_RETURN(double factor, needed(s, "factor"));
  for (float &frequency : rope.frequencies)
    frequency /= static_cast<float>(factor);
  return {};
}

// The whole head is paired, and the part of it that turns counts from the fastest pair; the others stand still.
Status scaleProportional(const Stage &s, RopeSpec &rope) {
  rope.frequencies = plainFrequencies(s.theta, s.headDim);
  std::fill(rope.frequencies.begin() + s.width / 2, rope.frequencies.end(), 0.0f);
  return member(s, "factor").json ? scaleLinear(s, rope) : Status();
}

Status scaleLlama3(const Stage &s, RopeSpec &rope) {
  LLMC_ASSIGN_OR_RETURN(double factor, needed(s, "factor"));
  LLMC_ASSIGN_OR_RETURN(double low, needed(s, "low_freq_factor"));
  LLMC_ASSIGN_OR_RETURN(double high, needed(s, "high_freq_factor"));
  LLMC_ASSIGN_OR_RETURN(double context, originalContext(s));
  if (high <= low)
    return Status::error(s.pointer + "/high_freq_factor is " + printNumber(high) +
                         ", expected more than low_freq_factor " + printNumber(low));
  auto longest = static_cast<float>(context / low), shortest = static_cast<float>(context / high);
  for (float &frequency : rope.frequencies) {
    float wavelength = static_cast<float>(2.0 * std::numbers::pi) / frequency;
    if (wavelength > longest) {
      frequency /= static_cast<float>(factor);
    } else if (!(wavelength < shortest)) {
      float turns = static_cast<float>(context) / wavelength;
      float above = turns - static_cast<float>(low);
      float smooth = above / static_cast<float>(high - low);
      float rest = 1.0f - smooth;
      float slow = rest * frequency;
      slow /= static_cast<float>(factor);
      float fast = smooth * frequency;
      frequency = slow + fast;
    }
  }
  return {};
}

StatusOr<std::vector<float>> listOfFactors(const Stage &s, const std::string &name) {
  Stated found = member(s, name);
  if (!found.json || !found.json->is_array())
    return Status::error(s.pointer + " has no list '" + name + "', which rope type '" + s.type + "' needs");
  auto pairs = static_cast<size_t>(s.width / 2);
  if (found.json->size() != pairs)
    return Status::error(found.pointer + " has " + std::to_string(found.json->size()) + " entries, expected " +
                         std::to_string(pairs) + ", half of the rotary width " + std::to_string(s.width));
  std::vector<float> factors;
  for (size_t i = 0; i < pairs; ++i) {
    Stated entry{&(*found.json)[i], found.pointer + "/" + std::to_string(i)};
    LLMC_ASSIGN_OR_RETURN(double factor, numberIn(entry, 0.0, maxTheta));
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

std::vector<float> dividedFrequencies(const Stage &s, const std::vector<float> &divisors) {
  std::vector<float> frequencies = powers(s.theta, s.width);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float slowed = divisors[i] * frequencies[i];
    frequencies[i] = 1.0f / slowed;
  }
  return frequencies;
}

// Some models state the magnitude of both sets of frequencies. A program has one, so they have to be equal.
Status readMagnitudes(const Stage &s, RopeSpec &rope) {
  Stated first = member(s, "short_mscale"), second = member(s, "long_mscale");
  if (!first.json && !second.json)
    return {};
  if (!first.json || !second.json || *first.json != *second.json)
    return Status::error(s.pointer + "/short_mscale is " + (first.json ? brief(*first.json) : "missing") + ", and " +
                         s.pointer + "/long_mscale is " + (second.json ? brief(*second.json) : "missing") +
                         "; only equal ones are supported");
  LLMC_ASSIGN_OR_RETURN(rope.magnitude, needed(s, "short_mscale"));
  return {};
}

Status scaleLongrope(const Stage &s, RopeSpec &rope) {
  LLMC_ASSIGN_OR_RETURN(std::vector<float> shortFactors, listOfFactors(s, "short_factor"));
  LLMC_ASSIGN_OR_RETURN(std::vector<float> longFactors, listOfFactors(s, "long_factor"));
  LLMC_ASSIGN_OR_RETURN(double original, originalContext(s));
  LLMC_ASSIGN_OR_RETURN(double context, s.values.number("context"));
  double factor = context / original;
  if (member(s, "factor").json) {
    LLMC_ASSIGN_OR_RETURN(factor, needed(s, "factor"));
  }
  rope.frequencies = dividedFrequencies(s, shortFactors);
  rope.longFrequencies = dividedFrequencies(s, longFactors);
  rope.longAfter = static_cast<int64_t>(original);
  rope.magnitude = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  if (member(s, "attention_factor").json) {
    LLMC_ASSIGN_OR_RETURN(rope.magnitude, needed(s, "attention_factor"));
  }
  return readMagnitudes(s, rope);
}

StatusOr<double> numberOr(const Stage &s, const std::string &name, double fallback) {
  Stated found = member(s, name);
  if (!found.json)
    return fallback;
  LLMC_ASSIGN_OR_RETURN(double value, asNumber(*found.json, found.pointer));
  if (!std::isfinite(value) || value < 0.0)
    return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a finite number of at least 0");
  return value;
}

// YaRN, Peng et al. 2023: slow pairs are interpolated, fast ones kept, a ramp between.
Status scaleYarn(const Stage &s, RopeSpec &rope) {
  LLMC_ASSIGN_OR_RETURN(double factor, needed(s, "factor"));
  LLMC_ASSIGN_OR_RETURN(double original, originalContext(s));
  LLMC_ASSIGN_OR_RETURN(double fast, numberOr(s, "beta_fast", 0.0));
  LLMC_ASSIGN_OR_RETURN(double slow, numberOr(s, "beta_slow", 0.0));
  LLMC_ASSIGN_OR_RETURN(double mscale, numberOr(s, "mscale", 0.0));
  LLMC_ASSIGN_OR_RETURN(double mscaleAll, numberOr(s, "mscale_all_dim", 0.0));
  bool truncate = true;
  if (Stated found = member(s, "truncate"); found.json) {
    LLMC_ASSIGN_OR_RETURN(truncate, asBool(*found.json, found.pointer));
  }
  auto width = static_cast<double>(s.width);
  auto pairOfTurns = [&](double turns) {
    return width * std::log(original / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(s.theta));
  };
  double low = pairOfTurns(fast == 0.0 ? 32.0 : fast), high = pairOfTurns(slow == 0.0 ? 1.0 : slow);
  low = std::max(truncate ? std::floor(low) : low, 0.0);
  high = std::min(truncate ? std::ceil(high) : high, width - 1.0);
  if (low == high)
    high += 0.001;
  std::vector<float> inverse = powers(s.theta, s.width);
  for (size_t i = 0; i < inverse.size(); ++i) {
    float kept = 1.0f / inverse[i];
    float slowed = static_cast<float>(factor) * inverse[i];
    float interpolated = 1.0f / slowed;
    float distance = static_cast<float>(i) - static_cast<float>(low);
    float ramp = std::clamp(distance / static_cast<float>(high - low), 0.0f, 1.0f);
    float keep = 1.0f - ramp;
    float change = 1.0f - keep;
    float left = interpolated * change;
    float right = kept * keep;
    rope.frequencies[i] = left + right;
  }
  auto magnitude = [](double scale, double m) { return scale <= 1.0 ? 1.0 : 0.1 * m * std::log(scale) + 1.0; };
  rope.magnitude = mscale != 0.0 && mscaleAll != 0.0 ? magnitude(factor, mscale) / magnitude(factor, mscaleAll)
                   : s.rule.defaultMagnitude         ? *s.rule.defaultMagnitude
                                                     : magnitude(factor, 1.0);
  if (member(s, "attention_factor").json) {
    LLMC_ASSIGN_OR_RETURN(rope.magnitude, needed(s, "attention_factor"));
  }
  return {};
}

StatusOr<std::vector<float>> divisorTensor(const Stage &s, const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(std::vector<float> divisors, s.values.source().readTensor(name));
  auto pairs = static_cast<size_t>(s.width / 2);
  if (divisors.size() != pairs)
    return Status::error("tensor '" + name + "' has " + std::to_string(divisors.size()) + " elements, expected " +
                         std::to_string(pairs) + ", half of the rotary width " + std::to_string(s.width));
  for (size_t i = 0; i < pairs; ++i)
    if (!(divisors[i] > 0.0f && std::isfinite(divisors[i])))
      return Status::error("tensor '" + name + "' holds " + printNumber(divisors[i]) + " at [" + std::to_string(i) +
                           "], expected a finite number above 0");
  s.used.push_back(name);
  return divisors;
}

// Divisors that are published as tensors beside the weights (GGUF).
Status applyDivisorTensors(const Stage &s, RopeSpec &rope) {
  auto stored = [&](const std::string &name) {
    return !name.empty() && s.values.source().hasTensor(name).value_or(false);
  };
  if (stored(s.rule.divisors)) {
    LLMC_ASSIGN_OR_RETURN(std::vector<float> divisors, divisorTensor(s, s.rule.divisors));
    for (size_t i = 0; i < divisors.size(); ++i)
      rope.frequencies[i] /= divisors[i];
    s.values.record(s.name + ".rope_divisors", s.rule.divisors, "stored as a tensor");
  }
  if (stored(s.rule.shortDivisors) && stored(s.rule.longDivisors)) {
    LLMC_ASSIGN_OR_RETURN(std::vector<float> shortDivisors, divisorTensor(s, s.rule.shortDivisors));
    LLMC_ASSIGN_OR_RETURN(std::vector<float> longDivisors, divisorTensor(s, s.rule.longDivisors));
    LLMC_ASSIGN_OR_RETURN(double original, originalContext(s));
    rope.frequencies = dividedFrequencies(s, shortDivisors);
    rope.longFrequencies = dividedFrequencies(s, longDivisors);
    rope.longAfter = static_cast<int64_t>(original);
    s.values.record(s.name + ".rope_divisors", s.rule.shortDivisors, "stored as a tensor");
  }
  return {};
}

} // namespace

std::vector<float> plainFrequencies(double theta, int64_t width) {
  std::vector<float> frequencies = powers(theta, width);
  for (float &frequency : frequencies)
    frequency = 1.0f / frequency;
  return frequencies;
}

StatusOr<RopeSpec> resolveRope(const RopeRule &rule, const std::string &name, ValueReader &values,
                               std::vector<std::string> &used) {
  Stage s{.rule = rule, .name = name, .values = values, .pointer = "", .used = used};
  LLMC_RETURN_IF_ERROR(findObject(s));
  LLMC_RETURN_IF_ERROR(readType(s));
  LLMC_RETURN_IF_ERROR(readTheta(s));
  LLMC_RETURN_IF_ERROR(checkMembers(s));
  LLMC_RETURN_IF_ERROR(readWidth(s));
  RopeSpec rope;
  rope.frequencies = plainFrequencies(s.theta, s.width);
  if (s.type == "linear")
    LLMC_RETURN_IF_ERROR(scaleLinear(s, rope));
  if (s.type == "proportional")
    LLMC_RETURN_IF_ERROR(scaleProportional(s, rope));
  if (s.type == "llama3")
    LLMC_RETURN_IF_ERROR(scaleLlama3(s, rope));
  if (s.type == "longrope" && s.object)
    LLMC_RETURN_IF_ERROR(scaleLongrope(s, rope));
  if (s.type == "yarn")
    LLMC_RETURN_IF_ERROR(scaleYarn(s, rope));
  if (Stated magnitude = values.firstStated(rule.magnitude); magnitude.json) {
    LLMC_ASSIGN_OR_RETURN(rope.magnitude, numberIn(magnitude, 0.0, maxTheta));
  }
  LLMC_RETURN_IF_ERROR(applyDivisorTensors(s, rope));
  for (float frequency : rope.frequencies)
    if (!std::isfinite(frequency))
      return Status::error("the rope of the " + name + " layers has a frequency that is not finite");
  return rope;
}

} // namespace llmc
