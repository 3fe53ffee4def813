// Forms of stored types, and the rules over them.
#include "lib/weights/ChooseForm.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/weights/BlockCodecs.h"
#include <algorithm>

namespace llmc {
namespace {

// The form under FormOption::Stored of types that stand for numbers by themselves; Any for others.
WeightForm storedForm(TensorType type) {
  switch (type) {
  case TensorType::F64:
  case TensorType::F32:
  case TensorType::F16:
    return WeightForm::F32;
  case TensorType::BF16:
    return WeightForm::BF16;
  case TensorType::Q4_0:
    return WeightForm::I4;
  case TensorType::Q4_1:
  case TensorType::Q4_K:
    return WeightForm::I4M;
  case TensorType::NVFP4: // has a scale in another tensor
  case TensorType::Q8_1:  // these two are for activations
  case TensorType::Q8_K:
    return WeightForm::Any;
  default:
    return !infoOf(type).inSafetensors && isDequantizable(type) ? WeightForm::I8 : WeightForm::Any;
  }
}

// The order in which forms of differing sources meet.
int width(WeightForm form) {
  switch (form) {
  case WeightForm::I4:
    return 0;
  case WeightForm::I4M:
    return 1;
  case WeightForm::I8:
    return 2;
  case WeightForm::BF16:
    return 3;
  default:
    return 4;
  }
}

// How the numbers of a stored type fare in a form, as it continues "stored as X, ".
std::string fate(TensorType type, WeightForm form) {
  if (const BlockCodec *codec = blockCodec(type, form))
    return codec->exact ? "kept exactly" : "codes kept, scales rounded to f16";
  bool isFloat = infoOf(type).inSafetensors;
  switch (form) {
  case WeightForm::F32:
    if (type == TensorType::F16)
      return "exact in f32 (no f16 kernel)";
    return type == TensorType::F64 ? "rounded to f32" : isFloat ? "kept exactly" : "dequantised to f32";
  case WeightForm::BF16:
    return type == TensorType::BF16 ? "kept exactly" : isFloat ? "rounded to bf16" : "dequantised and rounded to bf16";
  case WeightForm::I8:
    return isFloat ? "quantised to 8 bits" : "requantised to 8 bits";
  default:
    return isFloat ? "quantised to 4 bits" : "requantised to 4 bits";
  }
}

WeightForm requestedForm(FormOption option, WeightRole role, WeightForm stored) {
  switch (option) {
  case FormOption::Stored:
    return stored;
  case FormOption::F32:
    return WeightForm::F32;
  case FormOption::BF16:
    return WeightForm::BF16;
  case FormOption::Int8:
    return WeightForm::I8;
  case FormOption::Int4:
    break;
  }
  if (role == WeightRole::Embedding)
    return WeightForm::I8;
  // A minimum costs a tenth more bytes and takes most of what four bits lose; blocks without one stay as they are.
  return stored == WeightForm::I4 ? WeightForm::I4 : WeightForm::I4M;
}

std::optional<TensorType> typeNamed(std::string_view name) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(TensorType::Q2_0); ++i)
    if (nameOf(static_cast<TensorType>(i)) == name)
      return static_cast<TensorType>(i);
  return std::nullopt;
}

Status unsupported(std::string_view name) {
  return Status::error("a weight stored as " + std::string(name) +
                       " is not supported (supported = F64 F32 F16 BF16 Q8_0 Q5_0 Q5_1 Q4_0 Q4_1 Q2_K Q3_K Q4_K Q5_K "
                       "Q6_K IQ4_NL IQ4_XS MXFP4)");
}

} // namespace

StatusOr<FormChoice> chooseForm(std::span<const TensorType> types, FormOption option, WeightRole role) {
  if (types.empty())
    return Status::error("a weight without sources has no form");
  WeightForm stored = storedForm(types[0]);
  std::vector<TensorType> distinct;
  for (TensorType type : types) {
    WeightForm form = storedForm(type);
    if (form == WeightForm::Any)
      return unsupported(nameOf(type));
    if (width(form) > width(stored))
      stored = form;
    if (std::find(distinct.begin(), distinct.end(), type) == distinct.end())
      distinct.push_back(type);
  }
  FormChoice choice{role == WeightRole::Vector ? WeightForm::Plain
                    : role == WeightRole::Taps ? WeightForm::F32
                                               : requestedForm(option, role, stored),
                    ""};
  WeightForm numbers = role == WeightRole::Vector ? WeightForm::F32 : choice.form;
  for (TensorType type : distinct)
    choice.reason += (choice.reason.empty() ? "stored as " : "; stored as ") + std::string(nameOf(type)) + ", " +
                     fate(type, numbers);
  if (role == WeightRole::Vector)
    choice.reason = "a vector is plain f32: " + choice.reason;
  if (role == WeightRole::Taps)
    choice.reason = "the taps of a convolution are f32: " + choice.reason;
  if (role == WeightRole::Embedding && option == FormOption::Int4)
    choice.reason = "embedding and head take 8 bits under int4: " + choice.reason;
  return choice;
}

StatusOr<FormChoice> chooseForm(std::span<const std::string> typeNames, FormOption option, WeightRole role) {
  std::vector<TensorType> types;
  for (const std::string &name : typeNames) {
    std::optional<TensorType> type = typeNamed(name);
    if (!type)
      return unsupported(name);
    types.push_back(*type);
  }
  return chooseForm(types, option, role);
}

StatusOr<FormOption> formOption(std::string_view name) {
  constexpr std::pair<std::string_view, FormOption> options[] = {{"stored", FormOption::Stored},
                                                                 {"f32", FormOption::F32},
                                                                 {"bf16", FormOption::BF16},
                                                                 {"int8", FormOption::Int8},
                                                                 {"int4", FormOption::Int4}};
  for (const auto &[known, option] : options)
    if (known == name)
      return option;
  return Status::error("unknown weight form '" + std::string(name) + "' (known = stored f32 bf16 int8 int4)");
}

} // namespace llmc
