// CountedAllocation: how often this program has asked for heap memory, through new or malloc.
#pragma once
#include <cstdint>

namespace llmc::testing {
int64_t allocationCount();
}
