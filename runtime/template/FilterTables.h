// The filters of each source file, gathered by findFilter.
#pragma once
#include "runtime/template/Runtime.h"
#include <span>

namespace llmc::jinja {

struct NamedFilter {
  const char *name;
  Filter filter;
};
std::span<const NamedFilter> textFilters();
std::span<const NamedFilter> sequenceFilters();
std::span<const NamedFilter> valueFilters();

} // namespace llmc::jinja
