// Replaces malloc and its kin in the test program; operator new calls malloc. Sanitizers bring their own, so there the
// count stays zero and the test that wants it is skipped.
#include "test/runtime/engine/CountedAllocation.h"
#include <atomic>
#include <cstddef>
#include <dlfcn.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LLMC_SANITIZED 1
#endif
#endif

static std::atomic<int64_t> allocations{0};

#if !LLMC_SANITIZED && !__SANITIZE_ADDRESS__ && !__SANITIZE_THREAD__
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void *realloc(void *old, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, bytes);
}
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace llmc::test {
int64_t allocationCount() { return allocations.load(std::memory_order_relaxed); }
} // namespace llmc::test
