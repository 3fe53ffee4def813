// Objects to a shared library, by lld in a child process: a linker that dies must not take the compiler along.
#pragma once
#include "runtime/support/Status.h"
#include <string>
#include <vector>

namespace llmc::cpu {

// Another name of a symbol that some object defines.
struct SymbolAlias {
  std::string name, symbol;
};

// The bytes of a shared object. `linker` is "" for the lld that was found when the project was configured.
StatusOr<std::string> linkSharedObject(const std::vector<std::string> &objects, const std::vector<SymbolAlias> &aliases,
                                       const std::string &linker);

} // namespace llmc::cpu
