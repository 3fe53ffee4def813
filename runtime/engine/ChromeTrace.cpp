#include "runtime/engine/ChromeTrace.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <cstdio>
#include <map>

namespace llmc {
namespace {

// Writes events, a line each.
class Writer {
public:
  Writer(const StepTrace &trace, const DispatchManifest &manifest) : trace_(trace), manifest_(manifest) {}

  std::string write() {
    out_ = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
    name("process_name", 0, "llmc");
    for (int32_t worker = 0; worker < trace_.workers(); ++worker)
      name("thread_name", worker, "worker " + std::to_string(worker));
    name("thread_name", stepLane(), "steps");
    for (int32_t channel = 0; channel < channels(); ++channel)
      name("thread_name", exchangeLane(channel), "exchanges " + std::to_string(channel));
    for (size_t step = 0; step < trace_.steps().size(); ++step)
      writeStep(step, trace_.steps()[step]);
    out_ += "\n]}\n";
    return std::move(out_);
  }

private:
  int32_t stepLane() const { return trace_.workers(); }
  int32_t exchangeLane(int32_t channel) const { return trace_.workers() + 1 + channel; }
  int32_t channels() const {
    int32_t channels = 0;
    for (const TracedStep &step : trace_.steps())
      for (const ExchangeSpan &span : trace_.exchanges(step))
        channels = std::max(channels, span.channel + 1);
    return channels;
  }

  void name(const char *what, int32_t lane, const std::string &text) {
    begin();
    out_ += std::string("{\"name\": \"") + what + "\", \"ph\": \"M\", \"pid\": 1, \"tid\": " + std::to_string(lane) +
            ", \"args\": {\"name\": " + Json(text).dump() + "}}";
  }

  void event(const std::string &quotedName, const char *category, int32_t lane, int64_t start, int64_t finish,
             const std::string &arguments) {
    begin();
    char times[96];
    std::snprintf(times, sizeof times, "\"ts\": %.3f, \"dur\": %.3f",
                  static_cast<double>(start - trace_.steps().front().start) / 1e3,
                  static_cast<double>(finish - start) / 1e3);
    out_ += "{\"name\": " + quotedName + ", \"cat\": \"" + category +
            "\", \"ph\": \"X\", \"pid\": 1, \"tid\": " + std::to_string(lane) + ", " + times + ", \"args\": {" +
            arguments + "}}";
  }

  void writeStep(size_t index, const TracedStep &step) {
    auto rows = [](int32_t count) { return std::to_string(count) + (count == 1 ? " row" : " rows"); };
    std::string what = step.promptRows == 0           ? "decode, " + rows(step.rows)
                       : step.promptRows == step.rows ? "prefill, " + rows(step.rows)
                                                      : rows(step.rows) + ", " + rows(step.promptRows) + " of prompts";
    event(Json(what).dump(), "step", stepLane(), step.start, step.finish, "\"step\": " + std::to_string(index));
    for (int32_t worker = 0; worker < trace_.workers(); ++worker)
      writeLane(index, step, worker);
    for (const ExchangeSpan &span : trace_.exchanges(step))
      event(Json(collectiveName(span.kind)).dump(), "exchange", exchangeLane(span.channel), span.start, span.finish,
            "\"step\": " + std::to_string(index) + ", \"exchange\": " + std::to_string(span.number) +
                ", \"rows\": " + std::to_string(span.rows));
  }

  void writeLane(size_t index, const TracedStep &step, int32_t worker) {
    std::map<std::pair<int32_t, int32_t>, size_t> seen; // launches of each block and task so far
    std::span<const LaunchSpan> launches = trace_.launches(step, worker);
    for (size_t launch = 0; launch < launches.size(); ++launch) {
      const LaunchSpan &span = launches[launch];
      if (span.task == LLMC_TRACE_WAIT) {
        event("\"exchange\"", "wait", worker, span.start, span.joined,
              "\"step\": " + std::to_string(index) + ", \"launch\": " + std::to_string(launch));
        continue;
      }
      auto task = static_cast<size_t>(span.task);
      bool known = task < manifest_.kernels.size();
      std::string arguments = "\"step\": " + std::to_string(index) + ", \"launch\": " + std::to_string(launch);
      if (known) {
        const std::vector<int32_t> &layers = manifest_.kernels[task].layers;
        size_t nth = seen[{span.block, span.task}]++;
        if (nth < layers.size() && layers[nth] >= 0)
          arguments += ", \"layer\": " + std::to_string(layers[nth]);
      }
      if (span.block >= 0)
        arguments += ", \"block\": " + std::to_string(span.block);
      if (span.waited > 0)
        arguments += ", \"waited_inside_ns\": " + std::to_string(span.waited);
      std::string name = known ? manifest_.kernels[task].name : "task " + std::to_string(span.task);
      event(Json(name).dump(-1, ' ', true, Json::error_handler_t::replace), "task", worker, span.start, span.finish,
            arguments);
      event("\"barrier\"", "wait", worker, span.finish, span.joined, arguments);
    }
  }

  void begin() {
    if (out_.back() == '}')
      out_ += ",\n";
  }

  const StepTrace &trace_;
  const DispatchManifest &manifest_;
  std::string out_;
};

} // namespace

TraceRoom traceRoomFor(const DispatchManifest &dispatch, const Manifest &manifest) {
  TraceRoom room;
  if (manifest.rank) {
    room.blocks = manifest.rank->rowBlocks;
    room.exchanges = static_cast<size_t>(manifest.rank->exchanges);
  }
  size_t launches = 0;
  for (const KernelEntry &kernel : dispatch.kernels)
    launches += kernel.layers.size();
  room.launches = std::max<size_t>(launches, 1) * static_cast<size_t>(std::max(room.blocks, 1)) + room.exchanges;
  return room;
}

std::string chromeTrace(const StepTrace &trace, const DispatchManifest &manifest) {
  return Writer(trace, manifest).write();
}

} // namespace llmc
