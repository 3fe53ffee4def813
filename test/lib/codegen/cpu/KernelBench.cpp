// Rates of the dot kernels: `cpu-kernel-bench FORM ROWS N K [TARGET] [LAYERS] [CODE_BITS]`, one worker. Every launch of
// a step reads its own weight, so that many layers of few rows measure memory and one layer of many rows measures
// arithmetic.
#include "runtime/support/CpuFeatures.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <immintrin.h>

using namespace llmc;
using namespace llmc::test;

namespace {

// CPU time of the process: other programs on the machine then cost cache and memory bandwidth only.
double now() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string moduleOf(const std::string &form, int64_t n, int64_t k, int64_t layers, int64_t layerBytes,
                     int64_t maxTokens, const std::string &codeBits) {
  auto text = [](int64_t value) { return std::to_string(value); };
  bool quantized = form[0] == 'i';
  std::string groups = text((k + 63) / 64 * 2), codes = text((k + 63) / 64 * 64), prepare, dot;
  if (quantized) {
    std::string types = "tensor<" + codes + "xi" + codeBits + ">, tensor<" + groups + "xf32>";
    prepare = "%q, %s = tile.quantize %v : tensor<${K}xf32> -> " + types;
    dot = "tile.scaled_dot %q, %s, %w[%column] : " + types + ", ${W}";
  } else if (form == "bf16") {
    prepare = "%b = arith.truncf %v : tensor<${K}xf32> to tensor<${K}xbf16>";
    dot = "tile.dot %b, %w[%column] : tensor<${K}xbf16>, ${W}";
  } else {
    dot = "tile.dot %v, %w[%column] : tensor<${K}xf32>, ${W}";
  }
  std::string weights, launches;
  for (int64_t layer = 0; layer < layers; ++layer) {
    weights += "  llm.weight @w" + text(layer) +
               " : ${W} from [{tensor = \"w\"}] {offset = " + text(layer * layerBytes) + " : i64}\n";
    launches += "    %w" + text(layer) + " = llm.use_weight @w" + text(layer) +
                " : ${W}\n    tile.launch @product(%x, %w" + text(layer) +
                ", %y) : !tile.rows<${K}>, ${W}, !tile.rows<${N}>\n";
  }
  std::string module = "module attributes {llmc.max_tokens = ${T} : i64, llmc.page_bytes = 0 : i64} {\n" + weights + R"(
  tile.task @product rows(%row, %column of ${C}) (%x: !tile.rows<${K}>, %w: ${W}, %y: !tile.rows<${N}>) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %at = arith.muli %column, %c64 : index
    %v = tile.load %x[%row, %c0] : !tile.rows<${K}> -> tensor<${K}xf32>
    ${PREPARE}
    %d = ${DOT} -> tensor<64xf32>
    tile.store %d, %y[%row, %at] : tensor<64xf32>, !tile.rows<${N}>
  }
  func.func @step(%batch: !llm.batch) {
    %x = tile.alloc at 0 : !tile.rows<${K}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${N}>
)" + launches + "    return\n  }\n}\n";
  return fill(module,
              {{"PREPARE", prepare},
               {"DOT", dot},
               {"W", "!llm.weight<${N}x${K}, " + form + ", tile = 64, panel = " + (quantized ? "16" : "64") + ">"},
               {"C", text((n + 63) / 64)},
               {"K", text(k)},
               {"N", text(n)},
               {"T", text(maxTokens)},
               {"XBYTES", text((k + 63) / 64 * 256)}});
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: cpu-kernel-bench FORM ROWS N K [TARGET] [LAYERS] [CODE_BITS]\n");
    return 2;
  }
  std::string form = argv[1], target = argc > 5 ? argv[5] : "host";
  int64_t rows = atoll(argv[2]), n = atoll(argv[3]), k = atoll(argv[4]), layers = argc > 6 ? atoll(argv[6]) : 1;
  uint64_t state = 1;
  PackedWeight weight = makeWeight(form, n, k, 64, form[0] == 'i' ? 16 : 64, state);
  int64_t layerBytes = (static_cast<int64_t>(weight.bytes.size()) + 63) / 64 * 64;
  double start = now();
  auto program = StepProgram::compile(moduleOf(form, n, k, layers, layerBytes, rows, argc > 7 ? argv[7] : "16"), target,
                                      /*emulate=*/false);
  if (!program || !requestCpuState(program->compiled().requiredFeatures).ok())
    return 1;
  double compile = now() - start;
  AlignedBytes weights(static_cast<size_t>(layerBytes * layers));
  for (int64_t layer = 0; layer < layers; ++layer)
    std::copy(weight.bytes.begin(), weight.bytes.end(), weights.data() + layer * layerBytes);
  AlignedBytes arena(static_cast<size_t>(rows * ((k + 63) / 64 + (n + 63) / 64) * 256));
  for (int64_t i = 0; i < rows * ((k + 63) / 64 * 64); ++i)
    arena.floats()[i] = randomFloat(state);
  StepProgram::Memory memory;
  memory.weights = weights.data();
  memory.arena = arena.data();
  Batch batch({{0, static_cast<int32_t>(rows)}}, 64);
  double best = 1e9, read = 1e9;
  for (int round = 0; round < 15; ++round) {
    double from = now();
    program->run(batch, memory, 1);
    best = std::min(best, now() - from);
    // A plain read of the same bytes, alternated: what memory gives in this minute.
    from = now();
    __m128i sum[8] = {};
    for (size_t at = 0; at + 128 <= weights.size(); at += 128)
      for (int i = 0; i < 8; ++i)
        sum[i] = _mm_add_epi64(sum[i], _mm_load_si128(reinterpret_cast<__m128i *>(weights.data() + at) + i));
    for (int i = 1; i < 8; ++i)
      sum[0] = _mm_add_epi64(sum[0], sum[i]);
    volatile long long sink = _mm_cvtsi128_si64(sum[0]);
    (void)sink; // only there so that the read is not removed
    read = std::min(read, now() - from);
  }
  double bytes = static_cast<double>(weights.size()), flops = 2.0 * rows * n * k * layers;
  printf("%s %lldx%lldx%lld x%lld %s: compile %.2f s, step %.3f ms, %.1f GFLOP/s, %.2f GB/s of weights (plain read "
         "%.2f)\n",
         form.c_str(), static_cast<long long>(rows), static_cast<long long>(n), static_cast<long long>(k),
         static_cast<long long>(layers), target.c_str(), compile, best * 1e3, flops / best * 1e-9, bytes / best * 1e-9,
         bytes / read * 1e-9);
  return 0;
}
