// MLIR's diagnostics as one sentence: the place in the model's words, then the message, then the notes.
#pragma once
#include "mlir/IR/Diagnostics.h"
#include "runtime/support/Status.h"

namespace llmc {

/// Collects the errors of a context while it lives; remarks and warnings go to stderr when `verbose`.
class DiagnosticCollector {
public:
  DiagnosticCollector(mlir::MLIRContext *context, bool verbose);
  /// The first error, or `otherwise` when a failure came without one.
  Status status(const std::string &otherwise) const;

private:
  std::string first_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace llmc
