// The state of one rendering that filters and global functions see.
#pragma once
#include "runtime/template/Value.h"
#include <ctime>

namespace llmc::jinja {

struct Runtime {
  explicit Runtime(const RenderOptions &options) : budget(options.limits), now(options.now) {}
  // Namespaces and scopes may hold themselves; emptied here, nothing of a rendering stays behind.
  ~Runtime() {
    for (const std::shared_ptr<Clearable> &object : clearables)
      object->clear();
  }
  Runtime(const Runtime &) = delete;
  Runtime &operator=(const Runtime &) = delete;

  Budget budget;
  std::optional<std::tm> now;
  bool autoescape = false;
  // The failure is raise_exception's: its message goes out as it is.
  bool raised = false;
  std::vector<std::shared_ptr<Clearable>> clearables;
};

using Filter = ValueOr (*)(Runtime &, const Value &, const Arguments &);
// nullptr when there is no filter of this name.
Filter findFilter(const std::string &name);
ValueOr applyFilter(Runtime &runtime, const std::string &name, const Value &value, const Arguments &arguments);

// "x is NAME": what Jinja calls a test.
using Predicate = StatusOr<bool> (*)(Runtime &, const Value &, const Arguments &);
Predicate findPredicate(const std::string &name);
StatusOr<bool> applyPredicate(Runtime &runtime, const std::string &name, const Value &value,
                              const Arguments &arguments);

using GlobalFunction = ValueOr (*)(Runtime &, const Arguments &);
GlobalFunction findGlobal(const std::string &name);

} // namespace llmc::jinja
