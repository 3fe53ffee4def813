// Forms of stored types, and the rules over them.
#include "lib/weights/ChooseForm.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "lib/weights/BlockCodecs.h"
#include <algorithm>

namespace llmc {
namespace {

// A stored type and what reports call it: its own name, or the format of the tensors that make it up.
struct Storage {
  TensorType type;
  std::string name;
  bool operator==(const Storage &) const = default;
};

// The form under FormOption::Stored of types that are numbers of a weight; Any for others.
WeightForm storedForm(TensorType type) {
  switch (type) {
  case TensorType::F64:
  case TensorType::F32:
  case TensorType::F16:
    return WeightForm::F32;
  case TensorType::BF16:
  case TensorType::ScaledMxfp8:
  case TensorType::ScaledOf8Bits:
    return WeightForm::BF16;
  case TensorType::CodesFp8:
    return WeightForm::F8;
  case TensorType::CodesMxfp4:
  case TensorType::CodesNvfp4:
  case TensorType::MXFP4:
  case TensorType::NVFP4:
    return WeightForm::F4;
  case TensorType::Q4_0:
  case TensorType::Q1_0:
  case TensorType::Q2_0:
  case TensorType::TQ1_0:
  case TensorType::TQ2_0:
  case TensorType::CodesOf4Bits:
    return WeightForm::I4;
  case TensorType::Q4_1:
  case TensorType::Q4_K:
  case TensorType::CodesFrom0:
    return WeightForm::I4M;
  case TensorType::CodesOf8Bits:
  case TensorType::ScaledOf4Bits:
    return WeightForm::I8;
  case TensorType::Q8_1: // these two are for activations
  case TensorType::Q8_K:
    return WeightForm::Any;
  default:
    return !infoOf(type).inSafetensors && isDequantizable(type) ? WeightForm::I8 : WeightForm::Any;
  }
}

// What tables of indices are stored in. Such numbers are no matrix.
bool isIndex(TensorType type) { return type == TensorType::I64 || type == TensorType::I32; }

// Whether bf16 holds every number of the type.
bool isBf16(TensorType type) {
  return type == TensorType::BF16 || type == TensorType::ScaledMxfp8 || type == TensorType::CodesMxfp4 ||
         type == TensorType::MXFP4;
}

// The order in which forms of differing sources meet.
int width(WeightForm form) {
  switch (form) {
  case WeightForm::I4:
    return 0;
  case WeightForm::I4M:
    return 1;
  case WeightForm::F4:
    return 2;
  case WeightForm::I8:
    return 3;
  case WeightForm::F8:
    return 4;
  case WeightForm::BF16:
    return 5;
  default:
    return 6;
  }
}

// The narrowest form that both go into: integers and floats of four bits meet in eight, those of eight in bf16.
WeightForm joined(WeightForm a, WeightForm b) {
  WeightForm wider = width(a) < width(b) ? b : a;
  if (a == b || width(wider) > width(WeightForm::F8))
    return wider;
  if (wider == WeightForm::F8)
    return WeightForm::BF16;
  return a == WeightForm::F4 || b == WeightForm::F4 ? WeightForm::I8 : wider;
}

struct Fate {
  WeightFate fate;
  std::string words; // as they continue "stored as X, "
};

// How the numbers of a stored type fare in a form.
Fate fateOf(const Storage &storage, WeightForm form) {
  using enum WeightFate;
  TensorType type = storage.type;
  if (const BlockCodec *codec = blockCodec(type, form)) {
    if (codec->exact && (form == WeightForm::F8 || !storage.name.ends_with("(F32 scales)")))
      return {Kept, "kept exactly"};
    return {Rounded, "codes kept, scales rounded to f16 (error at most 2^-11 of each)"};
  }
  bool isFloat = infoOf(type).inSafetensors;
  switch (form) {
  case WeightForm::F32:
    if (type == TensorType::F16)
      return {Converted, "exact in f32 (no f16 kernel)"};
    if (type == TensorType::F64)
      return {Converted, "rounded to f32"};
    if (isIndex(type))
      return {Converted, "exact in f32 up to 2^24"};
    return isFloat ? Fate{Kept, "kept exactly"} : Fate{Converted, "dequantised to f32"};
  case WeightForm::BF16:
    if (type == TensorType::BF16)
      return {Kept, "kept exactly"};
    if (isBf16(type))
      return {Converted, "exact in bf16"};
    return {Converted,
            std::string(isFloat ? "" : "dequantised and ") + "rounded to bf16 (error at most 2^-8 of a value)"};
  case WeightForm::I8:
    return {Converted,
            std::string(isFloat ? "" : "re") + "quantised to 8 bits (error at most 1/253 of the largest of 32)"};
  default:
    return {Converted, isFloat ? "quantised to 4 bits" : "requantised to 4 bits"};
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
  return stored == WeightForm::I4 || stored == WeightForm::F4 ? stored : WeightForm::I4M;
}

std::optional<TensorType> typeNamed(std::string_view name) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(lastTensorType); ++i)
    if (nameOf(static_cast<TensorType>(i)) == name)
      return static_cast<TensorType>(i);
  return quantizedType(name);
}

Status unsupported(std::string_view name) {
  std::string known;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(lastTensorType); ++i)
    if (auto type = static_cast<TensorType>(i); storedForm(type) != WeightForm::Any)
      known += (known.empty() ? "" : ", ") + std::string(nameOf(type));
  return Status::error("a weight stored as " + std::string(name) + " is not supported (supported = " + known + ")");
}

StatusOr<FormChoice> formOf(std::span<const Storage> storages, FormOption option, WeightRole role) {
  if (storages.empty())
    return Status::error("a weight without sources has no form");
  auto formIn = [&](const Storage &storage) {
    return role == WeightRole::Vector && isIndex(storage.type) ? WeightForm::F32 : storedForm(storage.type);
  };
  WeightForm stored = formIn(storages[0]);
  std::vector<Storage> distinct;
  for (const Storage &storage : storages) {
    WeightForm form = formIn(storage);
    if (form == WeightForm::Any)
      return unsupported(storage.name);
    stored = joined(stored, form);
    if (std::find(distinct.begin(), distinct.end(), storage) == distinct.end())
      distinct.push_back(storage);
  }
  FormChoice choice{role == WeightRole::Vector ? WeightForm::Plain
                    : role == WeightRole::Taps ? WeightForm::F32
                                               : requestedForm(option, role, stored),
                    "", WeightFate::Kept};
  WeightForm numbers = role == WeightRole::Vector ? WeightForm::F32 : choice.form;
  for (const Storage &storage : distinct) {
    Fate fate = fateOf(storage, numbers);
    choice.reason += (choice.reason.empty() ? "stored as " : "; stored as ") + storage.name + ", " + fate.words;
    choice.fate = std::max(choice.fate, fate.fate);
  }
  if (role == WeightRole::Vector)
    choice.reason = "a vector is plain f32: " + choice.reason;
  if (role == WeightRole::Taps)
    choice.reason = "the taps of a convolution are f32: " + choice.reason;
  if (role == WeightRole::Embedding && option == FormOption::Int4)
    choice.reason = "embedding and head take 8 bits under int4: " + choice.reason;
  return choice;
}

} // namespace

StatusOr<FormChoice> chooseForm(std::span<const TensorType> types, FormOption option, WeightRole role) {
  std::vector<Storage> storages;
  for (TensorType type : types)
    storages.push_back({type, std::string(nameOf(type))});
  return formOf(storages, option, role);
}

StatusOr<FormChoice> chooseForm(std::span<const std::string> typeNames, FormOption option, WeightRole role) {
  std::vector<Storage> storages;
  for (const std::string &name : typeNames) {
    std::optional<TensorType> type = typeNamed(name);
    if (!type)
      return unsupported(name);
    storages.push_back({*type, name});
  }
  return formOf(storages, option, role);
}

std::string_view nameOf(WeightFate fate) {
  return fate == WeightFate::Kept ? "kept" : fate == WeightFate::Rounded ? "rounded" : "converted";
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
