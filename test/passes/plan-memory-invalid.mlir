// RUN: llmc-opt %s --llmc-plan-memory --split-input-file --verify-diagnostics

// expected-error @+1 {{layout of [32, 64] as any, tile 0, panel 0, interleave 0: no form was chosen yet}}
llm.weight @no_form_yet : !llm.weight<32x64> from [{tensor = "w"}]

// -----

// expected-error @+1 {{'func.func' op @around calls itself, so its buffers have no end}}
func.func private @around() {
  call @around() : () -> ()
  return
}
