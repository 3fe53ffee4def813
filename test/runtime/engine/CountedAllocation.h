// CountedAllocation: how often this program has asked for heap memory, through new or malloc.
#pragma once
#include <cstdint>

namespace llmc::test {
int64_t allocationCount();
}
