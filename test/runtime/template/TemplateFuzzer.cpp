// A template and its data: the input is the source, a zero byte, and JSON for the variables.
#include "runtime/template/ChatTemplate.h"
#include <string>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view input(reinterpret_cast<const char *>(data), size);
  size_t zero = input.find('\0');
  StatusOr<Template> parsed = Template::parse(input.substr(0, zero), "chat_template");
  if (!parsed.ok())
    return 0;
  Json variables = {{"messages", {{{"role", "user"}, {"content", "h\u00e9llo"}}}}, {"x", {1, 2.5, "s", nullptr, true}}};
  if (zero != std::string_view::npos)
    if (StatusOr<Json> json = parseJson(input.substr(zero + 1), "data"); json.ok())
      variables = *json;
  RenderOptions options;
  options.limits.steps = 20'000;
  options.limits.outputBytes = 1 << 16;
  options.now = std::tm{};
  StatusOr<std::string> text = parsed->render(variables, options);
  return text.ok() || !text.status().message().empty() ? 0 : 0;
}
