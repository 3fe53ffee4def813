#include "tools/llmc/MeasuredLimits.h"
#include "runtime/support/UsableCores.h"
#include "tools/llmc/InstructionPeaks.h"
#include "tools/llmc/MachineLimits.h"
#include <algorithm>
#include <cstdio>
#include <functional>

namespace llmc {
namespace {

// Two threads that share nothing reach twice as much as one, unless somebody else uses their cores.
constexpr double leastTwoThreadRatio = 1.9;
constexpr double mostBarrierSeconds = 1e-6;

// Adds the rate of one thread and of all to `entry`, or the reason why there is none.
void addRates(Json &entry, int threads, const std::function<StatusOr<double>(int32_t)> &measure) {
  StatusOr<double> one = measure(1);
  StatusOr<double> all = one.ok() && threads > 1 ? measure(threads) : one;
  entry["one_thread"] = one.ok() ? Json(*one) : Json();
  entry["all_threads"] = all.ok() ? Json(*all) : Json();
  if (!one.ok() || !all.ok())
    entry["reason"] = one.ok() ? all.status().message() : one.status().message();
}

std::string formatted(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Says what makes the figures doubtful.
void judge(Json &measured, int cores) {
  Json notes = Json::array();
  if (cores > 1) {
    StatusOr<double> one = measurePeak("fma", 256, 1), two = measurePeak("fma", 256, 2);
    if (one.ok() && two.ok()) {
      double ratio = *two / *one;
      measured["two_thread_ratio"] = ratio;
      if (ratio < leastTwoThreadRatio)
        notes.push_back("two threads reach " + formatted("%.2f", ratio) + " times the peak of one, expected at least " +
                        formatted("%.1f", leastTwoThreadRatio) +
                        ": something else uses the cores; measure again later");
    }
  }
  if (const Json &barrier = measured["barrier_seconds"]; barrier.is_number() && barrier > mostBarrierSeconds)
    notes.push_back("threads need " + formatted("%.2f", 1e6 * barrier.get<double>()) +
                    " us to meet, expected at most " + formatted("%.0f", 1e6 * mostBarrierSeconds) +
                    "; they do not all have a core of their own");
  measured["disturbed"] = !notes.empty();
  measured["notes"] = std::move(notes);
}

} // namespace

Json measureLimits() {
  int cores = usableCores();
  Json measured = {{"threads", cores}, {"disturbed", false}, {"notes", Json::array()}, {"two_thread_ratio", nullptr}};
  StatusOr<double> barrier = cores > 1 ? measureBarrier(cores) : Status::error("one core");
  measured["barrier_seconds"] = barrier.ok() ? Json(*barrier) : Json();
  Json instructions = Json::array();
  for (const MeasurableInstruction &instruction : measurableInstructions()) {
    Json entry = {{"name", instruction.name}, {"vector_bits", instruction.vectorBits}};
    addRates(entry, cores,
             [&](int32_t threads) { return measurePeak(instruction.name, instruction.vectorBits, threads); });
    instructions.push_back(std::move(entry));
  }
  measured["instructions"] = std::move(instructions);
  Json read = Json::array();
  for (MemoryLevel level : memoryLevels) {
    Json entry = {{"level", memoryLevelName(level)}, {"bytes", cacheBytes(level)}};
    addRates(entry, cores, [&](int32_t threads) { return measureReadBandwidth(level, threads); });
    read.push_back(std::move(entry));
  }
  measured["read"] = std::move(read);
  judge(measured, cores);
  return measured;
}

std::string measuredLimitsText(const Json &measured) {
  std::string text = "measured, best of a few     1 thread   " + measured["threads"].dump() + " threads\n";
  auto row = [&](const std::string &name, const Json &entry, const char *unit) {
    char line[256];
    if (entry["all_threads"].is_number())
      std::snprintf(line, sizeof line, "  %-22s %11.1f %11.1f %s\n", name.c_str(),
                    entry["one_thread"].get<double>() / 1e9, entry["all_threads"].get<double>() / 1e9, unit);
    else
      std::snprintf(line, sizeof line, "  %-22s           -           - %.180s\n", name.c_str(),
                    entry["reason"].get<std::string>().c_str());
    text += line;
  };
  for (const Json &entry : measured["instructions"]) {
    std::string name = entry["name"];
    row(name == "fma" ? name + " " + entry["vector_bits"].dump() : name, entry, "Gop/s");
  }
  for (const Json &entry : measured["read"]) {
    uint64_t kilobytes = entry["bytes"].get<uint64_t>() >> 10;
    std::string size = kilobytes == 0     ? ""
                       : kilobytes < 4096 ? " of " + std::to_string(kilobytes) + " KiB"
                                          : " of " + std::to_string(kilobytes >> 10) + " MiB";
    row("read " + entry["level"].get<std::string>() + size, entry, "GB/s");
  }
  if (measured["barrier_seconds"].is_number())
    text +=
        "  threads meet in        " + formatted("%11.2f", 1e6 * measured["barrier_seconds"].get<double>()) + " us\n";
  if (measured["two_thread_ratio"].is_number())
    text += "  two threads to one     " + formatted("%11.2f", measured["two_thread_ratio"].get<double>()) + "\n";
  for (const Json &note : measured["notes"])
    text += "note: the machine looks disturbed: " + note.get<std::string>() + "\n";
  return text;
}

} // namespace llmc
