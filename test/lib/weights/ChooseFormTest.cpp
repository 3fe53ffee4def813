// The choice of a form: stored types, options, roles and mixtures.
#include "lib/weights/ChooseForm.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {
struct Row {
  std::vector<TensorType> types;
  FormOption option;
  WeightRole role;
  WeightForm form;
  std::string reason;
};

void expectRows(const std::vector<Row> &rows) {
  for (const Row &row : rows) {
    StatusOr<FormChoice> choice = chooseForm(row.types, row.option, row.role);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_EQ(llm::stringifyWeightForm(choice->form).str(), llm::stringifyWeightForm(row.form).str()) << row.reason;
    EXPECT_EQ(choice->reason, row.reason);
  }
}

using enum FormOption;
constexpr WeightRole matrix = WeightRole::Matrix, embedding = WeightRole::Embedding, vector = WeightRole::Vector;
} // namespace

TEST(ChooseForm, StoredTypesKeepTheirNumbers) {
  expectRows({
      {{TensorType::F32}, Stored, matrix, WeightForm::F32, "stored as F32, kept exactly"},
      {{TensorType::F16}, Stored, matrix, WeightForm::F32, "stored as F16, exact in f32 (no f16 kernel)"},
      {{TensorType::BF16}, Stored, embedding, WeightForm::BF16, "stored as BF16, kept exactly"},
      {{TensorType::Q8_0}, Stored, embedding, WeightForm::I8, "stored as Q8_0, kept exactly"},
      {{TensorType::Q4_0}, Stored, matrix, WeightForm::I4, "stored as Q4_0, kept exactly"},
      {{TensorType::Q4_1}, Stored, matrix, WeightForm::I4M, "stored as Q4_1, kept exactly"},
      {{TensorType::Q4_K},
       Stored,
       matrix,
       WeightForm::I4M,
       "stored as Q4_K, codes kept, scales rounded to f16 (error at most 2^-11 of each)"},
      {{TensorType::Q5_0}, Stored, matrix, WeightForm::I8, "stored as Q5_0, kept exactly"},
      {{TensorType::TQ1_0}, Stored, matrix, WeightForm::I4, "stored as TQ1_0, kept exactly"},
      {{TensorType::Q6_K},
       Stored,
       matrix,
       WeightForm::I8,
       "stored as Q6_K, requantised to 8 bits (error at most 1/253 of the largest of 32)"},
      {{TensorType::IQ4_NL}, Stored, matrix, WeightForm::I8, "stored as IQ4_NL, kept exactly"},
      {{TensorType::MXFP4}, Stored, matrix, WeightForm::F4, "stored as MXFP4, kept exactly"},
      {{TensorType::NVFP4}, Stored, matrix, WeightForm::F4, "stored as NVFP4, kept exactly"},
  });
}

TEST(ChooseForm, MixedSourcesMeetInTheWidest) {
  expectRows({
      {{TensorType::Q4_0, TensorType::Q4_1},
       Stored,
       matrix,
       WeightForm::I4M,
       "stored as Q4_0, kept exactly; stored as Q4_1, kept exactly"},
      {{TensorType::Q8_0, TensorType::Q4_0, TensorType::Q8_0},
       Stored,
       matrix,
       WeightForm::I8,
       "stored as Q8_0, kept exactly; stored as Q4_0, kept exactly"},
      {{TensorType::Q4_K, TensorType::Q6_K},
       Stored,
       matrix,
       WeightForm::I8,
       "stored as Q4_K, requantised to 8 bits (error at most 1/253 of the largest of 32); "
       "stored as Q6_K, requantised to 8 bits (error at most 1/253 of the largest of 32)"},
      {{TensorType::Q8_0, TensorType::BF16},
       Stored,
       matrix,
       WeightForm::BF16,
       "stored as Q8_0, dequantised and rounded to bf16 (error at most 2^-8 of a value); stored as BF16, kept exactly"},
      {{TensorType::BF16, TensorType::F32},
       Stored,
       matrix,
       WeightForm::F32,
       "stored as BF16, kept exactly; stored as F32, kept exactly"},
  });
}

TEST(ChooseForm, OptionsOverrideTheStoredType) {
  expectRows({
      {{TensorType::Q4_1}, F32, matrix, WeightForm::F32, "stored as Q4_1, dequantised to f32"},
      {{TensorType::F32},
       BF16,
       matrix,
       WeightForm::BF16,
       "stored as F32, rounded to bf16 (error at most 2^-8 of a value)"},
      {{TensorType::F16},
       Int8,
       matrix,
       WeightForm::I8,
       "stored as F16, quantised to 8 bits (error at most 1/253 of the largest of 32)"},
      {{TensorType::Q4_0}, Int8, embedding, WeightForm::I8, "stored as Q4_0, kept exactly"},
      {{TensorType::BF16}, Int4, matrix, WeightForm::I4M, "stored as BF16, quantised to 4 bits"},
      {{TensorType::Q4_0}, Int4, matrix, WeightForm::I4, "stored as Q4_0, kept exactly"},
      {{TensorType::Q4_1}, Int4, matrix, WeightForm::I4M, "stored as Q4_1, kept exactly"},
      {{TensorType::Q8_0}, Int4, matrix, WeightForm::I4M, "stored as Q8_0, requantised to 4 bits"},
      {{TensorType::BF16},
       Int4,
       embedding,
       WeightForm::I8,
       "embedding and head take 8 bits under int4: stored as BF16, quantised to 8 bits (error at most 1/253 of the "
       "largest of 32)"},
  });
}

TEST(ChooseForm, VectorsArePlain) {
  for (FormOption option : {Stored, F32, BF16, Int8, Int4})
    expectRows({{{TensorType::BF16},
                 option,
                 vector,
                 WeightForm::Plain,
                 "a vector is plain f32: stored as BF16, kept exactly"}});
}

TEST(ChooseForm, TablesOfIndicesArePlain) {
  for (TensorType type : {TensorType::I64, TensorType::I32})
    expectRows({{{type},
                 Int4,
                 vector,
                 WeightForm::Plain,
                 "a vector is plain f32: stored as " + std::string(nameOf(type)) + ", exact in f32 up to 2^24"}});
}

TEST(ChooseForm, UnsupportedTypesAreNamed) {
  for (TensorType type : {TensorType::F8E4M3, TensorType::I32, TensorType::I8, TensorType::Q8_K, TensorType::Q8_1}) {
    StatusOr<FormChoice> choice = chooseForm(std::vector<TensorType>{TensorType::F32, type}, Stored, matrix);
    ASSERT_FALSE(choice.ok());
    EXPECT_NE(choice.status().message().find("stored as " + std::string(nameOf(type)) +
                                             " is not supported (supported = F64, F32"),
              std::string::npos);
  }
  EXPECT_FALSE(chooseForm(std::vector<TensorType>(), Stored, matrix).ok());
}

// Formats of several tensors go by what their names say.
TEST(ChooseForm, QuantizedFormats) {
  const std::string rounded = ", dequantised and rounded to bf16 (error at most 2^-8 of a value)";
  const std::string scales = ", codes kept, scales rounded to f16 (error at most 2^-11 of each)";
  const std::string requantised = ", requantised to 8 bits (error at most 1/253 of the largest of 32)";
  struct {
    std::string format;
    WeightForm form;
    std::string fate;
  } rows[] = {
      {"FP8 block 128x128 (F32 scales)", WeightForm::F8, ", kept exactly"},
      {"FP8 channel (BF16 scales)", WeightForm::F8, ", kept exactly"},
      {"FP8 block 8x8 (F32 scales) uneven", WeightForm::BF16, rounded},
      {"FP8 E5M2 tensor (F32 scales)", WeightForm::BF16, rounded},
      {"MXFP8", WeightForm::F8, ", kept exactly"},
      {"MXFP8 E5M2", WeightForm::BF16, ", exact in bf16"},
      {"NVFP4 (F32 factor)", WeightForm::F4, scales},
      {"MXFP4", WeightForm::F4, ", kept exactly"},
      {"INT8 channel (BF16 scales)", WeightForm::I8, ", kept exactly"},
      {"INT8 channel (F32 scales)", WeightForm::I8, scales},
      {"INT8 asymmetric channel (BF16 scales)", WeightForm::BF16, rounded},
      {"INT4 group 32 (BF16 scales)", WeightForm::I4, ", kept exactly"},
      {"INT4 asymmetric group 32 (BF16 scales)", WeightForm::I4M, scales},
      {"AWQ INT4 asymmetric group 64 (F16 scales)", WeightForm::I4M, scales},
      {"GPTQ INT8 group 128 (F16 scales)", WeightForm::I8, ", kept exactly"},
      {"GPTQ INT4 asymmetric group 32 act-order (F16 scales)", WeightForm::I8, requantised},
      {"INT4 group 24 (BF16 scales) uneven", WeightForm::I8, requantised},
  };
  for (const auto &row : rows) {
    StatusOr<FormChoice> choice = chooseForm(std::vector<std::string>{row.format}, Stored, matrix);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_EQ(llm::stringifyWeightForm(choice->form).str(), llm::stringifyWeightForm(row.form).str()) << row.format;
    EXPECT_EQ(choice->reason, "stored as " + row.format + row.fate);
    for (FormOption option : {F32, BF16, Int8, Int4})
      EXPECT_TRUE(chooseForm(std::vector<std::string>{row.format}, option, matrix).ok()) << row.format;
  }
}

TEST(ChooseForm, TypesMayBeNamed) {
  StatusOr<FormChoice> choice = chooseForm(std::vector<std::string>{"Q4_0", "Q8_0"}, Stored, matrix);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(choice->form, WeightForm::I8);
  choice = chooseForm(std::vector<std::string>{"Q9_9"}, Stored, matrix);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().message().find("a weight stored as Q9_9 is not supported (supported = F64,"), 0u);
}

TEST(ChooseForm, OptionsHaveNames) {
  ASSERT_TRUE(formOption("int8").ok());
  EXPECT_EQ(*formOption("int8"), Int8);
  EXPECT_EQ(formOption("fp8").status().message(), "unknown weight form 'fp8' (known = stored f32 bf16 int8 int4)");
}
