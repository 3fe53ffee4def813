// Prefill and decode apart, after warm-up, and what they make of the machine's limits, measured in the same run.
#include "runtime/engine/ChromeTrace.h"
#include "runtime/engine/Engine.h"
#include "runtime/support/AtomicOutput.h"
#include "tools/llmc/BenchRun.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/InstructionPeaks.h"
#include "tools/llmc/KernelReport.h"
#include "tools/llmc/MachineLimits.h"
#include "tools/llmc/StepWork.h"
#include "tools/llmc/WeightReport.h"
#include <algorithm>
#include <cstdio>

namespace llmc {
namespace {

Json jsonOf(const Spread &spread) { return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}}; }

// An instruction with what it reaches here; 0 where that is not known.
struct Peak {
  std::string instruction;
  double perSecond = 0;
};

struct Measured {
  std::string target;
  WeightReport weights;
  int32_t threads = 0;
  Spread prefill, decode;
  double readBytesPerSecond = 0;
  Peak prefillPeak, decodePeak; // many rows and few may be multiplied by different instructions
  double cacheBytesPerStep = 0; // of decode
  double decodeOfRead = 0, decodeOfPeak = 0, prefillOfPeak = 0;
  Json kernels; // null unless asked for
};

Peak peakOf(const WeightReport &weights, int64_t rows, int32_t threads) {
  Peak peak = {weights.kernel.instructionFor(rows), 0};
  StatusOr<double> measured = measurePeak(peak.instruction, weights.vectorBits, threads);
  if (measured.ok())
    peak.perSecond = *measured;
  else
    std::fprintf(stderr, "note: the fraction of the peak of '%s' is not known: %s\n", peak.instruction.c_str(),
                 measured.status().message().c_str());
  return peak;
}

void measureLimits(Measured &m, int64_t prefillRows, int64_t decodeRows) {
  // As many bytes as a step of decode reads: a small model stays in a cache that a large one does not fit.
  auto bytes = static_cast<uint64_t>(static_cast<double>(m.weights.bytesPerStep) + m.cacheBytesPerStep);
  StatusOr<double> read = measureRereading(bytes, m.threads);
  if (read.ok())
    m.readBytesPerSecond = *read;
  else
    std::fprintf(stderr, "note: read bandwidth is not known: %s\n", read.status().message().c_str());
  m.prefillPeak = peakOf(m.weights, prefillRows, m.threads);
  m.decodePeak = m.weights.kernel.instructionFor(decodeRows) == m.prefillPeak.instruction
                     ? m.prefillPeak
                     : peakOf(m.weights, decodeRows, m.threads);
}

void setAgainstLimits(Measured &m, const BenchCommand &command) {
  auto over = [](double value, double limit) { return limit > 0 ? value / limit : 0; };
  auto perToken = static_cast<double>(m.weights.operationsPerToken);
  auto perLogitRow = static_cast<double>(m.weights.operationsPerLogitRow);
  // Of the instruction: it may need several products for one.
  auto passes = static_cast<double>(m.weights.kernel.cost.passes);
  m.prefillOfPeak =
      over(passes * (perToken + perLogitRow / command.prefill) * m.prefill.median, m.prefillPeak.perSecond);
  m.decodeOfPeak = over(passes * (perToken + perLogitRow) * m.decode.median, m.decodePeak.perSecond);
  double stepsPerSecond = m.decode.median / command.streams;
  m.decodeOfRead =
      over((static_cast<double>(m.weights.bytesPerStep) + m.cacheBytesPerStep) * stepsPerSecond, m.readBytesPerSecond);
}

// Recorded steps of prefill and decode; the limits come later, when the engine is gone.
struct Recorded {
  Recorded(const BenchCommand &command, const Bench &bench, const TraceRoom &room, int32_t threads)
      : prefills(threads, room, static_cast<size_t>(command.repeat)),
        decodes(threads, room, static_cast<size_t>(bench.tracedDecodes())),
        forFile(threads, room, 1 + Bench::decodesInFile), prefillShape(llmc::prefillShape(bench.tracedRows())),
        decodeShape(llmc::decodeShape(command.streams, bench.tracedLength())) {}
  StepTrace prefills, decodes, forFile;
  StepShape prefillShape, decodeShape;
};

Status recordPrefill(const BenchCommand &command, Bench &bench, Recorded &recorded) {
  if (command.kernels)
    LLMC_RETURN_IF_ERROR(bench.tracePrefill(recorded.prefills, command.repeat));
  return command.traceFile.empty() ? Status() : bench.tracePrefill(recorded.forFile, 1);
}

Status recordDecode(const BenchCommand &command, Bench &bench, const DispatchManifest &dispatch, Recorded &recorded) {
  if (command.kernels)
    LLMC_RETURN_IF_ERROR(bench.traceDecode(recorded.decodes, bench.tracedDecodes()));
  if (command.traceFile.empty())
    return {};
  LLMC_RETURN_IF_ERROR(bench.traceDecode(recorded.forFile, Bench::decodesInFile));
  return writeFileAtomically(command.traceFile, chromeTrace(recorded.forFile, dispatch));
}

Json reportKernels(const Recorded &recorded, const DispatchManifest &dispatch, const Measured &m) {
  KernelLimits limits = measureKernelLimits(dispatch, {recorded.prefillShape, recorded.decodeShape},
                                            m.readBytesPerSecond, m.weights.vectorBits, m.threads);
  auto report = [&](const StepTrace &trace, const StepShape &shape) {
    return kernelReport(dispatch, stepTimesOf(trace, dispatch), shape, limits);
  };
  return {{"prefill", report(recorded.prefills, recorded.prefillShape)},
          {"decode", report(recorded.decodes, recorded.decodeShape)}};
}

StatusOr<Measured> measure(const BenchCommand &command) {
  LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile));
  EngineOptions options;
  options.threads = command.threads;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  Measured result;
  result.target = engine->manifest().target;
  result.threads = engine->threads();
  LLMC_ASSIGN_OR_RETURN(DispatchManifest dispatch, engine->artifact().readDispatch());
  LLMC_ASSIGN_OR_RETURN(result.weights, reportWeights(engine->artifact(), dispatch));
  Bench bench(command, *engine);
  LLMC_RETURN_IF_ERROR(bench.check());
  Recorded recorded(command, bench, traceRoomFor(dispatch, engine->manifest()), result.threads);
  LLMC_ASSIGN_OR_RETURN(result.prefill, bench.repeated([&] { return bench.prefill(); }));
  LLMC_RETURN_IF_ERROR(recordPrefill(command, bench, recorded));
  LLMC_ASSIGN_OR_RETURN(result.decode, bench.repeated([&] { return bench.decode(); }));
  LLMC_RETURN_IF_ERROR(recordDecode(command, bench, dispatch, recorded));
  result.cacheBytesPerStep = cacheBytesOf(dispatch, decodeShape(command.streams, bench.lengthOfDecode()));
  int64_t prefillRows = bench.tracedRows();
  engine.reset(); // its threads and memory would stand in the way of the limits
  measureLimits(result, prefillRows, command.streams);
  setAgainstLimits(result, command);
  if (command.kernels)
    result.kernels = reportKernels(recorded, dispatch, result);
  return result;
}

void reportJson(const BenchCommand &command, const Measured &m) {
  Json root = {{"target", m.target},
               {"weights", m.weights.form},
               {"threads", m.threads},
               {"prefill", {{"tokens", command.prefill}, {"tokens_per_second", jsonOf(m.prefill)}}},
               {"decode",
                {{"tokens", command.decode},
                 {"streams", command.streams},
                 {"depth", command.depth},
                 {"tokens_per_second", jsonOf(m.decode)}}},
               {"limits",
                {{"read_gb_per_second", m.readBytesPerSecond / 1e9},
                 {"flops_per_second", m.prefillPeak.perSecond},
                 {"instruction", m.prefillPeak.instruction},
                 {"decode_instruction", m.decodePeak.instruction},
                 {"decode_flops_per_second", m.decodePeak.perSecond},
                 {"operations_per_token", m.weights.operationsPerToken},
                 {"operations_per_logit_row", m.weights.operationsPerLogitRow},
                 {"weight_bytes_per_step", m.weights.bytesPerStep},
                 {"kv_bytes_per_step", m.cacheBytesPerStep},
                 {"decode_fraction_of_read", m.decodeOfRead},
                 {"decode_fraction_of_peak", m.decodeOfPeak},
                 {"prefill_fraction_of_peak", m.prefillOfPeak}}}};
  if (command.kernels)
    root["kernels"] = m.kernels;
  std::printf("%s\n", root.dump().c_str());
}

void report(const BenchCommand &command, const Measured &m) {
  std::printf("target %s, weights %s, %d threads\n", m.target.c_str(), m.weights.form.c_str(), m.threads);
  std::printf("prefill  %6d tokens             %9.1f tokens/s (%.1f to %.1f)   %.0f%% of peak\n", command.prefill,
              m.prefill.median, m.prefill.min, m.prefill.max, 100 * m.prefillOfPeak);
  std::printf("decode   %6d tokens %4d streams %9.1f tokens/s (%.1f to %.1f)   %.0f%% of read bandwidth, %.0f%% of "
              "peak\n",
              command.decode, command.streams, m.decode.median, m.decode.min, m.decode.max, 100 * m.decodeOfRead,
              100 * m.decodeOfPeak);
  std::printf("a decode step reads %.1f MB of weights and %.1f MB of KV cache\n",
              static_cast<double>(m.weights.bytesPerStep) / 1e6, m.cacheBytesPerStep / 1e6);
  std::printf("limits   read %.1f GB/s, %s %.1f Gop/s", m.readBytesPerSecond / 1e9, m.prefillPeak.instruction.c_str(),
              m.prefillPeak.perSecond / 1e9);
  if (m.decodePeak.instruction != m.prefillPeak.instruction)
    std::printf(", in decode %s %.1f Gop/s", m.decodePeak.instruction.c_str(), m.decodePeak.perSecond / 1e9);
  std::printf("\n");
  if (command.kernels)
    std::printf("\n%s\n%s", kernelReportText("prefill", m.kernels["prefill"]).c_str(),
                kernelReportText("decode", m.kernels["decode"]).c_str());
}

} // namespace

int runBench(const BenchCommand &command) {
  StatusOr<Measured> measured = measure(command);
  if (!measured.ok())
    return reportFault(measured.status());
  command.json ? reportJson(command, *measured) : report(command, *measured);
  return exitDone;
}

} // namespace llmc
