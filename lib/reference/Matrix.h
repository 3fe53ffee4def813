// A matrix of f32 in row order: what the interpreters hand around. Vectors are one row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace llmc::reference {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values; // rows * columns

  Matrix() = default;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns)) {}
  Matrix(int64_t rows, int64_t columns, std::vector<float> values)
      : rows(rows), columns(columns), values(std::move(values)) {}

  std::span<float> row(int64_t r) {
    return {values.data() + static_cast<size_t>(r * columns), static_cast<size_t>(columns)};
  }
  std::span<const float> row(int64_t r) const {
    return {values.data() + static_cast<size_t>(r * columns), static_cast<size_t>(columns)};
  }
};

} // namespace llmc::reference
