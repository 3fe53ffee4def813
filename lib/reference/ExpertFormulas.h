// The formulas of LlmExpertOps.td on plain rows. As in Formulas.h: sums in f64, each result rounded once.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/reference/Matrix.h"

namespace llmc::reference {

struct RouterShape {
  llm::Scoring scoring;
  int64_t topK;
  int64_t groups = 1, topGroups = 1, groupSum = 1;
  bool normalize = false;
  float normEps = 0, scale = 1, jitter = 0;
};
/// The experts of one row of logits and their weights, topK of each. `bias` may be empty. Scores and what the choice
/// goes by are rounded to f32, so that experts tie here where they tie for a kernel. Where experts are `given`, those.
void routeRow(std::span<const float> logits, std::span<const float> bias, const RouterShape &shape,
              std::span<float> weights, std::span<float> experts, std::span<const float> given = {});

/// result[n] = x . weights.row(first + n) + bias[n]; `bias` may be empty.
void linearRow(std::span<const float> x, const Matrix &weights, int64_t first, std::span<const float> bias,
               std::span<float> result);

/// The slots of every row summed up, each times its weight.
Matrix combine(const Matrix &slots, const Matrix &weights);

} // namespace llmc::reference
