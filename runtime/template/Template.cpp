// The public face: limits on the source, and messages that name the template.
#include "runtime/template/Template.h"
#include "runtime/template/Interpreter.h"
#include "runtime/template/Parser.h"
#include "runtime/template/Unicode.h"

namespace llmc {

StatusOr<Template> Template::parse(std::string_view source, const std::string &name) {
  if (source.size() > limits::templateSourceBytes)
    return Status::error(name + ": source of " + std::to_string(source.size()) + " bytes exceeds the limit " +
                         std::to_string(limits::templateSourceBytes));
  if (std::optional<size_t> bad = jinja::findInvalidUtf8(source))
    return Status::error(name + ": byte " + std::to_string(*bad) + " is not valid UTF-8");
  StatusOr<std::shared_ptr<const jinja::Ast>> ast = jinja::parseTemplate(source);
  if (!ast.ok())
    return Status::error(name + " " + ast.status().message());
  Template out;
  out.ast_ = std::move(*ast);
  out.name_ = name;
  out.source_ = std::string(source);
  return out;
}

StatusOr<std::string> Template::render(const Json &variables, const RenderOptions &options) const {
  if (!variables.is_object())
    return Status::error(name_ + ": the variables are " + brief(variables) + ", expected an object");
  jinja::Interpreter interpreter(*ast_, options);
  StatusOr<std::string> text = interpreter.render(variables);
  if (text.ok() || interpreter.raised())
    return text;
  return Status::error(name_ + " " + text.status().message());
}

} // namespace llmc
