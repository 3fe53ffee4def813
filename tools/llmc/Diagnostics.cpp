#include "tools/llmc/Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdio>

using namespace mlir;

namespace llmc {
namespace {

// A NameLoc gives the model's own name; a file its line; anything else nothing.
std::string placeOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str() + ": ";
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return file.getFilename().str() + ":" + std::to_string(file.getLine()) + ": ";
  return "";
}

std::string textOf(Diagnostic &diagnostic) {
  std::string text = placeOf(diagnostic.getLocation()) + diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    text += "\nnote: " + placeOf(note.getLocation()) + note.str();
  return text;
}

} // namespace

DiagnosticCollector::DiagnosticCollector(MLIRContext *context, bool verbose)
    : handler_(context, [this, verbose](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          if (first_.empty())
            first_ = textOf(diagnostic);
        } else if (verbose) {
          std::fprintf(stderr, "note: %s\n", textOf(diagnostic).c_str());
        }
        return success();
      }) {
  // A note that quotes the op quotes a whole module where the module is what failed.
  context->printOpOnDiagnostic(verbose);
}

Status DiagnosticCollector::status(const std::string &otherwise) const {
  return Status::error(first_.empty() ? otherwise : first_);
}

} // namespace llmc
