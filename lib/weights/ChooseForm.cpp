// The table of stored types, and the rules over it.
#include "lib/weights/ChooseForm.h"
#include "lib/weights/BlockCodecs.h"
#include <algorithm>

namespace llmc {
namespace {

struct StoredType {
  std::string_view storage;
  WeightForm form; // under FormOption::Stored
};

// Types that stand for numbers by themselves.
constexpr StoredType storedTypes[] = {
    {"F64", WeightForm::F32},  {"F32", WeightForm::F32}, {"F16", WeightForm::F32},   {"BF16", WeightForm::BF16},
    {"Q8_0", WeightForm::I8},  {"Q4_0", WeightForm::I4}, {"Q4_1", WeightForm::I4M},  {"Q4_K", WeightForm::I4M},
    {"Q5_0", WeightForm::I8},  {"Q5_1", WeightForm::I8}, {"Q2_K", WeightForm::I8},   {"Q3_K", WeightForm::I8},
    {"Q5_K", WeightForm::I8},  {"Q6_K", WeightForm::I8}, {"IQ4_NL", WeightForm::I8}, {"IQ4_XS", WeightForm::I8},
    {"MXFP4", WeightForm::I8},
};

const StoredType *find(std::string_view storage) {
  for (const StoredType &type : storedTypes)
    if (type.storage == storage)
      return &type;
  return nullptr;
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
std::string fate(std::string_view storage, WeightForm form) {
  if (const BlockCodec *codec = blockCodec(storage, form))
    return codec->exact ? "kept exactly" : "codes kept, scales rounded to f16";
  bool isFloat = storage == "F32" || storage == "F16" || storage == "BF16" || storage == "F64";
  switch (form) {
  case WeightForm::F32:
    if (storage == "F16")
      return "exact in f32 (no f16 kernel)";
    return storage == "F64" ? "rounded to f32" : isFloat ? "kept exactly" : "dequantised to f32";
  case WeightForm::BF16:
    return storage == "BF16" ? "kept exactly" : isFloat ? "rounded to bf16" : "dequantised and rounded to bf16";
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
  return stored == WeightForm::I4M ? WeightForm::I4M : WeightForm::I4;
}

} // namespace

StatusOr<FormChoice> chooseForm(std::span<const std::string> storages, FormOption option, WeightRole role) {
  if (storages.empty())
    return Status::error("a weight without sources has no form");
  WeightForm stored = find(storages[0]) ? find(storages[0])->form : WeightForm::Any;
  std::vector<std::string> distinct;
  for (const std::string &storage : storages) {
    const StoredType *type = find(storage);
    if (!type) {
      std::string known;
      for (const StoredType &candidate : storedTypes)
        known += " " + std::string(candidate.storage);
      return Status::error("a weight stored as " + storage + " is not supported (supported =" + known + ")");
    }
    if (width(type->form) > width(stored))
      stored = type->form;
    if (std::find(distinct.begin(), distinct.end(), storage) == distinct.end())
      distinct.push_back(storage);
  }
  FormChoice choice{role == WeightRole::Vector ? WeightForm::Plain : requestedForm(option, role, stored), ""};
  WeightForm numbers = role == WeightRole::Vector ? WeightForm::F32 : choice.form;
  for (const std::string &storage : distinct)
    choice.reason += (choice.reason.empty() ? "stored as " : "; stored as ") + storage + ", " + fate(storage, numbers);
  if (role == WeightRole::Vector)
    choice.reason = "a vector is plain f32: " + choice.reason;
  if (role == WeightRole::Embedding && option == FormOption::Int4)
    choice.reason = "embedding and head take 8 bits under int4: " + choice.reason;
  return choice;
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
