// SHA-256 (FIPS 180-4) for expectations that are kept as a hash. For tests only.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace llmc::test {

// The first 32 bits of the fractional part of the `root`-th root of the n-th prime, computed instead of listed.
inline uint32_t fractionOfRoot(int n, int root) {
  int prime = 1;
  for (int found = -1; found < n;) {
    ++prime;
    bool divides = false;
    for (int d = 2; d * d <= prime; ++d)
      divides = divides || prime % d == 0;
    found += divides ? 0 : 1;
  }
  // The largest r with r^root <= prime * 2^(32 root), by bisection in 128 bits.
  unsigned __int128 low = 0, high = static_cast<unsigned __int128>(20) << 32;
  while (low < high) {
    unsigned __int128 middle = (low + high + 1) / 2;
    bool below = root == 2 ? middle * middle <= static_cast<unsigned __int128>(prime) << 64
                           : middle * middle / 65536 * middle / 65536 <= static_cast<unsigned __int128>(prime) << 64;
    (below ? low : high) = below ? middle : middle - 1;
  }
  return static_cast<uint32_t>(low);
}

inline std::string sha256(std::string_view text) {
  std::array<uint32_t, 64> k;
  std::array<uint32_t, 8> h;
  for (int i = 0; i < 64; ++i)
    k[static_cast<size_t>(i)] = fractionOfRoot(i, 3);
  for (int i = 0; i < 8; ++i)
    h[static_cast<size_t>(i)] = fractionOfRoot(i, 2);
  std::string data(text);
  data += '\x80';
  while (data.size() % 64 != 56)
    data += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    data += static_cast<char>(uint64_t(text.size()) * 8 >> shift & 0xFF);
  for (size_t block = 0; block < data.size(); block += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i)
      w[i / 4] = w[i / 4] << 8 | static_cast<uint8_t>(data[block + i]);
    for (size_t i = 16; i < 64; ++i)
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3) +
             (std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
    std::array<uint32_t, 8> s = h;
    for (size_t i = 0; i < 64; ++i) {
      uint32_t a = s[0], e = s[4];
      uint32_t t1 =
          s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
      uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, a, s[1], s[2], s[3] + t1, e, s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i)
      h[i] += s[i];
  }
  std::string out;
  for (uint32_t word : h) {
    char hex[9];
    std::snprintf(hex, sizeof hex, "%08x", word);
    out += hex;
  }
  return out;
}

} // namespace llmc::test
