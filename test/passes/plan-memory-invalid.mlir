// RUN: llmc-opt %s --llmc-plan-memory --split-input-file --verify-diagnostics

// expected-error @+1 {{form}}
llm.weight @no_form_yet : !llm.weight<32x64> from [{tensor = "w"}]
