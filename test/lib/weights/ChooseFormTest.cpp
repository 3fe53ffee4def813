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
      {{TensorType::Q4_K}, Stored, matrix, WeightForm::I4M, "stored as Q4_K, codes kept, scales rounded to f16"},
      {{TensorType::Q5_0}, Stored, matrix, WeightForm::I8, "stored as Q5_0, kept exactly"},
      {{TensorType::Q6_K}, Stored, matrix, WeightForm::I8, "stored as Q6_K, requantised to 8 bits"},
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
       "stored as Q4_K, requantised to 8 bits; stored as Q6_K, requantised to 8 bits"},
      {{TensorType::Q8_0, TensorType::BF16},
       Stored,
       matrix,
       WeightForm::BF16,
       "stored as Q8_0, dequantised and rounded to bf16; stored as BF16, kept exactly"},
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
      {{TensorType::F32}, BF16, matrix, WeightForm::BF16, "stored as F32, rounded to bf16"},
      {{TensorType::F16}, Int8, matrix, WeightForm::I8, "stored as F16, quantised to 8 bits"},
      {{TensorType::Q4_0}, Int8, embedding, WeightForm::I8, "stored as Q4_0, kept exactly"},
      {{TensorType::BF16}, Int4, matrix, WeightForm::I4M, "stored as BF16, quantised to 4 bits"},
      {{TensorType::Q4_0}, Int4, matrix, WeightForm::I4, "stored as Q4_0, kept exactly"},
      {{TensorType::Q4_1}, Int4, matrix, WeightForm::I4M, "stored as Q4_1, kept exactly"},
      {{TensorType::Q8_0}, Int4, matrix, WeightForm::I4M, "stored as Q8_0, requantised to 4 bits"},
      {{TensorType::BF16},
       Int4,
       embedding,
       WeightForm::I8,
       "embedding and head take 8 bits under int4: stored as BF16, quantised to 8 bits"},
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

TEST(ChooseForm, UnsupportedTypesAreNamed) {
  for (TensorType type : {TensorType::F8E4M3, TensorType::I32, TensorType::I8, TensorType::NVFP4, TensorType::IQ2_S}) {
    StatusOr<FormChoice> choice = chooseForm(std::vector<TensorType>{TensorType::F32, type}, Stored, matrix);
    ASSERT_FALSE(choice.ok());
    EXPECT_NE(choice.status().message().find("stored as " + std::string(nameOf(type)) +
                                             " is not supported (supported = F64 F32"),
              std::string::npos);
  }
  EXPECT_FALSE(chooseForm(std::vector<TensorType>(), Stored, matrix).ok());
}

// The list in the message, word by word.
TEST(ChooseForm, EveryTypeOfTheListIsSupported) {
  std::string message = chooseForm(std::vector<TensorType>{TensorType::I8}, Stored, matrix).status().message();
  for (uint8_t i = 0; i <= static_cast<uint8_t>(TensorType::Q2_0); ++i) {
    TensorType type = static_cast<TensorType>(i);
    bool listed = message.substr(message.find('=')).find(" " + std::string(nameOf(type))) != std::string::npos;
    bool supported = chooseForm(std::vector<TensorType>{type}, Stored, matrix).ok();
    EXPECT_EQ(listed, supported) << nameOf(type);
  }
}

TEST(ChooseForm, TypesMayBeNamed) {
  StatusOr<FormChoice> choice = chooseForm(std::vector<std::string>{"Q4_0", "Q8_0"}, Stored, matrix);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(choice->form, WeightForm::I8);
  choice = chooseForm(std::vector<std::string>{"Q9_9"}, Stored, matrix);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().message().find("a weight stored as Q9_9 is not supported (supported = F64"), 0u);
}

TEST(ChooseForm, OptionsHaveNames) {
  ASSERT_TRUE(formOption("int8").ok());
  EXPECT_EQ(*formOption("int8"), Int8);
  EXPECT_EQ(formOption("fp8").status().message(), "unknown weight form 'fp8' (known = stored f32 bf16 int8 int4)");
}
