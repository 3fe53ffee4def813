// A chat template: a subset of Jinja, enough for published model files, rendered under limits and without access to
// anything but the variables it is given.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

namespace jinja {
struct Ast;
}

struct TemplateLimits {
  // A step is a statement, a loop turn or a call; long texts and lists cost steps by their size.
  uint64_t steps = limits::templateSteps;
  // Of the whole output, and of any single text on the way.
  uint64_t outputBytes = limits::templateOutputBytes;
  // Macro calls inside macro calls, and turns of a recursive loop.
  int recursion = limits::templateRecursion;
};

struct RenderOptions {
  // What strftime_now sees; the local time of the call when absent.
  std::optional<std::tm> now;
  TemplateLimits limits;
  // Where absent, spans are not collected. Byte ranges [begin, end) of the text inside `generation` tags.
  std::vector<std::pair<size_t, size_t>> *generationSpans = nullptr;
  // Likewise, of each text made by the filter `plain`: no special token counts in it, and it is encoded by itself.
  std::vector<std::pair<size_t, size_t>> *plainSpans = nullptr;
};

// Immutable after parsing: any number of threads may render one Template at once.
class Template {
public:
  // `name` opens every message: "chat_template line 3: ...". Sources above limits::templateSourceBytes are refused.
  static StatusOr<Template> parse(std::string_view source, const std::string &name);
  // `variables` is an object. The message of raise_exception is the failure's message as the template wrote it;
  // every other failure names the template and the line.
  StatusOr<std::string> render(const Json &variables, const RenderOptions &options = {}) const;
  const std::string &source() const { return source_; }

private:
  Template() = default;
  std::shared_ptr<const jinja::Ast> ast_;
  std::string name_;
  std::string source_;
};

} // namespace llmc
