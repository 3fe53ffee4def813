// The page of a plan: plain HTML and CSS, nothing loaded from anywhere.
#include "tools/llmc/RankPlan.h"
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

namespace llmc {
namespace {

using sharding::Candidate;
using sharding::RankMemory;
using sharding::StepTime;

constexpr const char *style = R"(
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.bar{display:flex;align-items:center;margin:3px 0}.bar>b{width:9rem;font-weight:400;text-align:right;padding-right:.6rem}
.track{flex:1;position:relative;height:20px;background:#eee}.track>i{position:absolute;top:0;height:100%}
.track>u{position:absolute;top:-3px;bottom:-3px;border-left:2px solid #c00}
.bar>span{width:9rem;padding-left:.6rem}
.key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem;vertical-align:-1px}
table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:right}td:first-child,th:first-child{text-align:left}
tr.no{color:#888}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}.track{background:#2a2a2a}}
)";

struct Kind {
  const char *name, *colour;
  double (*bytes)(const RankMemory &);
};
constexpr std::array<Kind, 6> kinds = {{
    {"experts", "#3b6fb6", [](const RankMemory &m) { return m.experts; }},
    {"other weights", "#7fb2e5", [](const RankMemory &m) { return m.matrices + m.vectors; }},
    {"keys and values", "#e8a33d", [](const RankMemory &m) { return m.kv; }},
    {"states", "#b565a7", [](const RankMemory &m) { return m.state; }},
    {"rows and logits", "#5aa469",
     [](const RankMemory &m) { return m.activations + m.scratch + m.logits + m.staging; }},
    {"collectives", "#c8553d", [](const RankMemory &m) { return m.collectives; }},
}};

struct Share {
  const char *name, *colour;
  double StepTime::*seconds;
};
constexpr std::array<Share, 5> shares = {{
    {"memory", "#7fb2e5", &StepTime::memory},
    {"compute", "#3b6fb6", &StepTime::compute},
    {"launches", "#b0b0b0", &StepTime::launches},
    {"collectives", "#c8553d", &StepTime::collectives},
    {"hand-over between stages", "#e8a33d", &StepTime::handOver},
}};

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string escaped(const std::string &text) {
  std::string safe;
  for (char letter : text)
    safe += letter == '<'   ? "&lt;"
            : letter == '>' ? "&gt;"
            : letter == '&' ? "&amp;"
            : letter == '"' ? "&quot;"
                            : std::string(1, letter);
  return safe;
}

template <typename Entries> std::string keyOf(const Entries &entries) {
  std::string text = "<p class=key>";
  for (const auto &entry : entries)
    text += format("<i style='background:%s'></i>%s", entry.colour, entry.name);
  return text + "</p>\n";
}

std::string ranksPart(const Candidate &best) {
  double scale = best.limit;
  for (const RankMemory &rank : best.ranks)
    scale = std::max(scale, rank.total());
  std::string text = "<h2>Memory of the ranks</h2>\n" + keyOf(kinds);
  for (size_t rank = 0; rank < best.ranks.size(); ++rank) {
    text += format("<div class=bar><b>rank %zu</b><div class=track>", rank);
    double at = 0;
    for (const Kind &kind : kinds) {
      double bytes = kind.bytes(best.ranks[rank]);
      text += format("<i style='left:%.3f%%;width:%.3f%%;background:%s' title='%s: %.3f GiB'></i>", 100 * at / scale,
                     100 * bytes / scale, kind.colour, kind.name, bytes / (1 << 30));
      at += bytes;
    }
    text += format("<u style='left:%.3f%%' title='limit: %.2f GiB'></u></div><span>%.2f GiB</span></div>\n",
                   100 * best.limit / scale, best.limit / (1 << 30), at / (1 << 30));
  }
  return text;
}

// A lane of a stage: its shares one after the other from `at` on. Returns where they end.
double addLane(std::string &text, const std::string &name, std::span<const Share> parts, const StepTime &stage,
               double at, double total, const std::string &label) {
  text += "<div class=bar><b>" + name + "</b><div class=track>";
  for (const Share &share : parts) {
    double seconds = stage.*share.seconds;
    text += format("<i style='left:%.3f%%;width:%.3f%%;background:%s' title='%s: %.3f ms'></i>", 100 * at / total,
                   100 * seconds / total, share.colour, share.name, 1e3 * seconds);
    at += seconds;
  }
  text += "</div><span>" + label + "</span></div>\n";
  return at;
}

// Stages one after the other, as a step of one batch runs them, each with a lane for what it computes and one for what
// it exchanges. What is hidden lies under the end of what is computed; in truth it is spread over the layers.
std::string timePart(const char *title, const std::vector<StepTime> &stages) {
  double total = 0, begin = 0;
  for (const StepTime &stage : stages)
    total += stage.total();
  const std::span<const Share> all(shares);
  std::string text = format("<h2>%s, %.3f ms</h2>\n", title, 1e3 * total) + keyOf(shares);
  for (size_t number = 0; number < stages.size(); ++number) {
    const StepTime &stage = stages[number];
    double computed = addLane(text, format("stage %zu", number), all.first(3), stage, begin, total,
                              format("%.3f ms", 1e3 * stage.total()));
    std::string label = stage.hidden > 0 ? format("%.3f ms meanwhile", 1e3 * stage.hidden) : "";
    begin = addLane(text, "exchanges", all.subspan(3), stage, computed - stage.hidden, total, label);
  }
  return text;
}

} // namespace

std::string pageOf(const RankPlan &plan) {
  const Candidate &best = plan.best();
  std::string title = escaped(plan.model) + " on " + std::to_string(plan.ranks) + " ranks of " + plan.machine->name;
  std::string text =
      "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\n<title>" +
      title + "</title>\n<style>" + style + "</style>\n<h1>" + title + "</h1>\n";
  text += format("<p>%s, %s. A context of %lld positions, %lld sequences.</p>\n", nameOf(best.grid).c_str(),
                 best.fits() ? "fits" : "does not fit", static_cast<long long>(plan.workload.context),
                 static_cast<long long>(plan.workload.batch));
  text += ranksPart(best);
  text += timePart("A step of decode", best.decode);
  text += timePart("A step of prefill", best.prefill);
  text += "<h2>Every grid</h2>\n<table><tr><th>grid<th>fullest rank, GiB<th>decode, ms<th>prefill, ms<th>why not\n";
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const Candidate &other = plan.candidates[i];
    text += format("<tr%s><td>%s<td>%.2f<td>%.2f<td>%.2f<td>", other.fits() ? "" : " class=no",
                   nameOf(other.grid).c_str(), other.ranks[other.fullest()].total() / (1 << 30),
                   1e3 * other.decodeTime().total(), 1e3 * other.prefillTime().total()) +
            (i > 0 ? escaped(whyNot(best, other)) : "the choice") + "\n";
  }
  text += "</table>\n<p>Times are estimates of a cost model on published figures (" + escaped(plan.machine->source) +
          ").</p>\n</html>\n";
  return text;
}

} // namespace llmc
