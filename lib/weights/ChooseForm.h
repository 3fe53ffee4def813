// Which packed form a weight gets, from how it is stored, what was asked for and what it is used for.
#pragma once
#include "lib/importer/files/TensorType.h"
#include "lib/weights/PackedLayout.h"
#include <span>
#include <string>
#include <string_view>

namespace llmc {

enum class FormOption { Stored, F32, BF16, Int8, Int4 };
// Vector: gains, biases and tables of indices. Embedding: token embedding and output head, which suffer most from 4
// bits. Taps: of a convolution, a few for each channel.
enum class WeightRole { Matrix, Embedding, Vector, Taps };

// What becomes of the numbers of a weight, from best to worst. Kept: the form holds what is stored. Rounded: it holds
// the codes, and scales to f16. Converted: the numbers are put into another form, exactly or with the error that the
// reason states.
enum class WeightFate { Kept, Rounded, Converted };

struct FormChoice {
  WeightForm form;
  std::string reason; // for reports: "stored as Q5_0, kept exactly"
  WeightFate fate;    // the worst of the sources'
};

// `types` are those of the weight's sources, one or more.
//
// Vectors are always plain, taps f32. `Stored` takes per source the narrowest form that loses nothing; where there is
// none, i8 for codes of up to seven bits and bf16 for numbers of eight: the table is in docs/weight-layouts.md. Sources
// that differ meet in the widest of their forms, in the order i4 < i4m < f4 < i8 < f8 < bf16 < f32; f4 with i4 or i4m
// does so in i8, f8 with any of them in bf16: Q4_0 with Q4_1 is i4m and Q4_0 with Q8_0 is i8, both exact; Q4_K with
// Q6_K is i8, both requantised; any block type with BF16 is bf16. `Int4` leaves matrices that are stored in 4-bit
// blocks as they are, makes i4m of other matrices, and i8 of embeddings. A type that is no number of a weight is an
// error.
StatusOr<FormChoice> chooseForm(std::span<const TensorType> types, FormOption option, WeightRole role);
// The same for types by name, as IR carries them: those of tensors, and formats of several ("INT8 channel (BF16
// scales)", LogicalTensor::format).
StatusOr<FormChoice> chooseForm(std::span<const std::string> typeNames, FormOption option, WeightRole role);

std::string_view nameOf(WeightFate fate); // "kept", "rounded", "converted"

// "stored", "f32", "bf16", "int8", "int4"; an unknown name lists these.
StatusOr<FormOption> formOption(std::string_view name);

} // namespace llmc
