// Matrices of normal numbers for tests, the same for the same seed.
#pragma once
#include "lib/reference/Matrix.h"
#include <random>

namespace llmc::reference {

inline Matrix randomMatrix(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Matrix matrix(rows, columns);
  for (float &x : matrix.values)
    x = normal(engine);
  return matrix;
}

} // namespace llmc::reference
