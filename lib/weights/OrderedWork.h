// Items made by several threads and handed on in order, with a bounded number of them in memory.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace llmc {

// Calls produce(i, buffer) for i in [0, count) on `threads` threads (on the caller's alone for 1), and on the caller's
// thread consume(buffer) in the order of i. At most two buffers per thread exist; they are reused, so produce must set
// all of the buffer. The first failure in the order of i is returned, whatever the threads; nothing after it is
// consumed.
Status runInOrder(int64_t count, int threads, const std::function<Status(int64_t, std::vector<uint8_t> &)> &produce,
                  const std::function<Status(std::span<const uint8_t>)> &consume);

} // namespace llmc
