#include "runtime/engine/ChromeTrace.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <cstdio>

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
    for (size_t step = 0; step < trace_.steps().size(); ++step)
      writeStep(step, trace_.steps()[step]);
    out_ += "\n]}\n";
    return std::move(out_);
  }

private:
  int32_t stepLane() const { return trace_.workers(); }

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
  }

  void writeLane(size_t index, const TracedStep &step, int32_t worker) {
    std::vector<size_t> seen(manifest_.kernels.size()); // launches of each task so far
    std::span<const LaunchSpan> launches = trace_.launches(step, worker);
    for (size_t launch = 0; launch < launches.size(); ++launch) {
      const LaunchSpan &span = launches[launch];
      auto task = static_cast<size_t>(span.task);
      bool known = task < manifest_.kernels.size();
      std::string arguments = "\"step\": " + std::to_string(index) + ", \"launch\": " + std::to_string(launch);
      if (known) {
        const std::vector<int32_t> &layers = manifest_.kernels[task].layers;
        size_t nth = seen[task]++;
        if (nth < layers.size() && layers[nth] >= 0)
          arguments += ", \"layer\": " + std::to_string(layers[nth]);
      }
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

size_t launchesPerStep(const DispatchManifest &manifest) {
  size_t launches = 0;
  for (const KernelEntry &kernel : manifest.kernels)
    launches += kernel.layers.size();
  return std::max<size_t>(launches, 1);
}

std::string chromeTrace(const StepTrace &trace, const DispatchManifest &manifest) {
  return Writer(trace, manifest).write();
}

} // namespace llmc
