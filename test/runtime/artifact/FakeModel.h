/* The model of FakeStepProgram.c, in C for the program and for the tests that know its answers: the logits of a
 * position are a hash of all tokens up to it, which the program reads back from its KV pages and carries along in the
 * recurrent state of the sequence. */
#ifndef LLMC_FAKE_MODEL_H
#define LLMC_FAKE_MODEL_H
#include <stdint.h>

enum {
  fakeVocabulary = 97,
  fakeHidden = 3,
  fakeLayers = 2,
  fakePageTokens = 8,
  fakePageBytes = 64,  /* a uint64_t per position */
  fakeStateBytes = 64, /* a uint64_t */
  fakeScratchBytes = 64,
  fakeArenaBytesPerToken = 64,
  fakeNanToken = 13, /* a row of this token has a NaN among its logits */
  fakeWeightBytes = 128
};

static inline uint64_t fakeMix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 1;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

/* What position `position` keeps of its token; `key` comes from the weights. */
static inline uint64_t fakeEntry(uint64_t key, int32_t token, int32_t position) {
  return fakeMix(fakeMix(key, (uint64_t)token), (uint64_t)position);
}

static inline float fakeLogit(uint64_t state, int32_t token) {
  return (float)(fakeMix(state, (uint64_t)token) >> 40) / (float)(1 << 20) - 8.0f; /* -8 .. 8 */
}

static inline float fakeRecord(uint64_t state, int32_t record, int32_t channel) {
  return fakeLogit(state, 1000 + record * 16 + channel);
}
#endif
