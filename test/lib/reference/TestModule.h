// A module parsed from text for a test, and the first error that was emitted in it.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

namespace llmc::reference {

class TestModule {
public:
  explicit TestModule(const std::string &text)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (firstError.empty())
            firstError = diagnostic.str();
        }) {
    context.loadDialect<llm::LlmDialect, tile::TileDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  mlir::ModuleOp operator*() { return *module; }
  bool ok() const { return static_cast<bool>(module); }
  const std::string &error() const { return firstError; }

private:
  std::string firstError;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace llmc::reference
