// A module of the llm dialect as text, compiled into what an artifact holds of it. Vocabulary 40, 32 channels, contexts
// of 64, three sequences and 24 rows at once.
#pragma once
#include "lib/artifact/ArtifactWriter.h"
#include "lib/weights/Pack.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc::test {

inline constexpr int32_t kVocabulary = 40, kHidden = 32;

// The module in a context of its own.
class TextModel {
public:
  // Fails the test where the text does not parse.
  explicit TextModel(const std::string &text);
  mlir::ModuleOp module() { return *module_; }

private:
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

// Runs the phases but those `without` over the module and compiles it, all in f32, with blocks of three rows; fails the
// test on an error. Module and tensors must live until the artifact is written.
ArtifactContents compileModule(mlir::ModuleOp module, const TensorReader &tensors,
                               const std::vector<std::string> &without = {});

} // namespace llmc::test
