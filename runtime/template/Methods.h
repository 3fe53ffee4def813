// The methods of strings, lists, dicts and the small helper objects: the only attributes there are.
#pragma once
#include "runtime/template/Value.h"
#include <optional>

namespace llmc::jinja {

bool hasMethod(const Value &object, const std::string &name);
// A method Python has but a template may not call, since it changes the object.
bool isChangingMethod(const Value &object, const std::string &name);
// loop.index and the like.
StatusOr<std::optional<Value>> specialAttribute(Budget &budget, const Value &object, const std::string &name);
ValueOr callMethod(Budget &budget, const Method &method, const Arguments &arguments);
ValueOr callStringMethod(Budget &budget, const Value &self, const std::string &name, const Arguments &arguments);
bool isStringMethod(const std::string &name);

// Assigns arguments to `names`, of which the first `required` must be given.
StatusOr<std::vector<std::optional<Value>>> bindArguments(const std::string &callee, const Arguments &arguments,
                                                          std::initializer_list<const char *> names,
                                                          size_t required = 0);

} // namespace llmc::jinja
