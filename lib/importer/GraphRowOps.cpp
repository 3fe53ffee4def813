// Functions of rows: embeddings, norms, activations, shapes, positions.
#include "lib/importer/OpCall.h"
#include <limits>

namespace llmc {
namespace {

using Result = StatusOr<Operand>;

Result embedding(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int64_t count, c.integer("rows", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t channels, c.integer("channels", {}, 1));
  LLMC_ASSIGN_OR_RETURN(double scale, c.number("scale", 1.0));
  LLMC_ASSIGN_OR_RETURN(bool exact, c.flag("exact"));
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {count, channels}));
  Attributes attributes = {{"scale", scale}};
  if (exact)
    attributes["exact"] = true;
  return Operand::ofRows(c.one("embedding", {c.scope.batch(), weight}, {0, channels}, attributes));
}

Result positionEmbedding(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int64_t count, c.integer("rows", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t channels, c.integer("channels", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t offset, c.integer("offset", 0));
  LLMC_ASSIGN_OR_RETURN(int64_t period, c.integer("period", 0));
  if (offset + period > count)
    return c.fail("period", "is " + std::to_string(period) + " from row " + std::to_string(offset) +
                                " on, the table has " + std::to_string(count) + " rows");
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {count, channels}));
  Attributes attributes = {{"offset", offset}};
  if (period > 0)
    attributes["period"] = period;
  return Operand::ofRows(c.one("position_embedding", {c.scope.batch(), weight}, {0, channels}, attributes));
}

StatusOr<int> gain(OpCall &c, const std::string &parameter, int x) {
  if (!c.hasWeight(parameter))
    return -1;
  LLMC_ASSIGN_OR_RETURN(double add, c.number("add", 0.0));
  LLMC_ASSIGN_OR_RETURN(bool perRow, c.flag("whole"));
  return c.weight(parameter, {perRow ? c.value(x).rowElements() : c.value(x).channels}, add);
}

Result rmsNorm(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(double eps, c.number("eps"));
  LLMC_ASSIGN_OR_RETURN(int weight, gain(c, "weight", x));
  return Operand::ofRows(c.one("rms_norm", {x, weight}, c.shapeOf(x), {{"eps", eps}}));
}

Result layerNorm(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(double eps, c.number("eps"));
  LLMC_ASSIGN_OR_RETURN(int weight, gain(c, "weight", x));
  LLMC_ASSIGN_OR_RETURN(bool perRow, c.flag("whole"));
  int bias = -1;
  if (weight >= 0) {
    LLMC_ASSIGN_OR_RETURN(bias, c.bias("weight", {perRow ? c.value(x).rowElements() : c.value(x).channels}));
  }
  return Operand::ofRows(c.one("layer_norm", {x, weight, bias}, c.shapeOf(x), {{"eps", eps}}, true));
}

Result activation(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(std::string kind, c.word("kind", "", activationNames()));
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  return Operand::ofRows(c.one("activation", {x}, c.shapeOf(x), {{"activation", kind}}));
}

Result gated(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(std::string kind, c.word("kind", "", activationNames()));
  LLMC_ASSIGN_OR_RETURN(int gate, c.rows("gate"));
  LLMC_ASSIGN_OR_RETURN(int up, c.rows("up"));
  if (!c.sameShape(gate, up))
    return c.fail("up", "is " + c.print(up) + ", the gate " + c.print(gate));
  return Operand::ofRows(c.one("gated_activation", {gate, up}, c.shapeOf(gate), {{"activation", kind}}));
}

Result xielu(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(double beta, c.number("beta"));
  LLMC_ASSIGN_OR_RETURN(double eps, c.number("eps"));
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {2}));
  return Operand::ofRows(c.one("xielu", {x, weight}, c.shapeOf(x), {{"beta", beta}, {"eps", eps}}));
}

Result clamp(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  double infinity = std::numeric_limits<double>::infinity();
  LLMC_ASSIGN_OR_RETURN(double low, c.number("low", -infinity));
  LLMC_ASSIGN_OR_RETURN(double high, c.number("high", infinity));
  return Operand::ofRows(c.one("clamp", {x}, c.shapeOf(x), {{"low", low}, {"high", high}}));
}

Result softcap(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(double cap, c.number("cap"));
  return Operand::ofRows(c.one("softcap", {x}, c.shapeOf(x), {{"cap", cap}}));
}

Result softmax(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  return Operand::ofRows(c.one("softmax", {x}, c.shapeOf(x)));
}

Result sinkhorn(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.headed("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t iterations, c.integer("iterations", {}, 1));
  LLMC_ASSIGN_OR_RETURN(double eps, c.number("eps"));
  if (c.value(x).heads != c.value(x).channels)
    return c.fail("x", "is " + c.print(x) + ", expected a square matrix");
  return Operand::ofRows(c.one("sinkhorn", {x}, c.shapeOf(x), {{"iterations", iterations}, {"eps", eps}}));
}

Result affine(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(std::string per, c.word("per", "channel", {"channel", "head", "row", "all"}));
  const GraphValue &value = c.value(x);
  int64_t size = per == "head" ? value.heads : per == "row" ? value.rowElements() : per == "all" ? 1 : value.channels;
  int weight = -1, bias = -1;
  if (c.hasWeight("gain")) {
    LLMC_ASSIGN_OR_RETURN(double add, c.number("add", 0.0));
    LLMC_ASSIGN_OR_RETURN(weight, c.weight("gain", {size}, add));
  }
  if (c.hasWeight("bias")) {
    LLMC_ASSIGN_OR_RETURN(bias, c.weight("bias", {size}));
  }
  Attributes attributes;
  if (per == "head")
    attributes["per_head"] = true;
  return Operand::ofRows(c.one("affine", {x, weight, bias}, c.shapeOf(x), attributes, true));
}

Result slice(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t begin, c.integer("begin"));
  LLMC_ASSIGN_OR_RETURN(int64_t end, c.integer("end"));
  RowShape shape = c.shapeOf(x);
  if (begin >= end || end > shape.channels)
    return c.fail("end", "takes channels " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                             std::to_string(shape.channels));
  if (begin == 0 && end == shape.channels)
    return Operand::ofRows(x);
  return Operand::ofRows(c.one("slice", {x}, {shape.heads, end - begin}, {{"begin", begin}}));
}

Result concat(OpCall &c) {
  const Operand &list = c.arguments.at("parts");
  std::vector<int> parts;
  RowShape shape;
  for (const Operand &operand : list.several) {
    if (operand.kind != Operand::Kind::Rows)
      return c.fail("parts", "holds something that is no activation");
    if (!parts.empty() && c.value(operand.rows).heads != shape.heads)
      return c.fail("parts", "have " + std::to_string(shape.heads) + " and " +
                                 std::to_string(c.value(operand.rows).heads) + " heads");
    shape = {c.value(operand.rows).heads, shape.channels + c.value(operand.rows).channels};
    parts.push_back(operand.rows);
  }
  if (parts.empty())
    return c.fail("parts", "are none");
  return Operand::ofRows(c.one("concat", parts, shape));
}

Result heads(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t count, c.integer("count", {}, 1));
  int64_t channels = c.value(x).channels;
  if (channels % count != 0)
    return c.fail("count",
                  "is " + std::to_string(count) + ", which does not divide " + std::to_string(channels) + " channels");
  return Operand::ofRows(c.one("split_heads", {x}, {count, channels / count}));
}

Result merge(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  return Operand::ofRows(x);
}

Result repeat(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.headed("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t times, c.integer("times", {}, 1));
  RowShape shape = c.shapeOf(x);
  if (times == 1)
    return Operand::ofRows(x);
  return Operand::ofRows(c.one("repeat_heads", {x}, {shape.heads * times, shape.channels}, {{"times", times}}));
}

Result rope(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.headed("x"));
  LLMC_ASSIGN_OR_RETURN(std::string name, c.word("name", "full", {}));
  LLMC_ASSIGN_OR_RETURN(std::string pairing, c.word("pairing", "halves", {"halves", "adjacent"}));
  LLMC_ASSIGN_OR_RETURN(int64_t first, c.integer("first", 0));
  LLMC_ASSIGN_OR_RETURN(bool inverse, c.flag("inverse"));
  LLMC_ASSIGN_OR_RETURN(int64_t every, c.integer("every", 1, 1));
  LLMC_ASSIGN_OR_RETURN(int table, c.scope.ropeTable(name, every));
  if (first + c.value(table).channels > c.value(x).channels)
    return c.fail("x", "has " + std::to_string(c.value(x).channels) + " channels a head, but the rope '" + name +
                           "' turns " + std::to_string(c.value(table).channels) + " from " + std::to_string(first) +
                           " on");
  Attributes attributes;
  if (pairing != "halves")
    attributes["pairing"] = pairing;
  if (first != 0)
    attributes["first"] = first;
  if (inverse)
    attributes["inverse"] = true;
  return Operand::ofRows(c.one("rope", {x, table}, c.shapeOf(x), attributes));
}

Result positionScale(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(double scale, c.number("scale"));
  LLMC_ASSIGN_OR_RETURN(int64_t period, c.integer("period", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t offset, c.integer("offset", 0));
  return Operand::ofRows(c.one("position_scale", {x, c.scope.batch()}, c.shapeOf(x),
                               {{"scale", scale}, {"period", period}, {"offset", offset}}));
}

Result select(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  return Operand::ofRows(c.one("select_rows", {x, c.scope.batch()}, c.shapeOf(x)));
}

Result record(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  c.scope.emit(c.node("record", {x, c.scope.batch()}, {{"index", c.scope.nextRecord()}}, false), {});
  return Operand::ofRows(x);
}

} // namespace

void addRowFunctions(FunctionTable &table) {
  table.insert({
      {"embedding", {{"weight", "rows", "channels", "scale?", "exact?"}, embedding}},
      {"position_embedding", {{"weight", "rows", "channels", "offset?", "period?"}, positionEmbedding}},
      {"rms_norm", {{"x", "weight?", "eps", "add?", "whole?"}, rmsNorm}},
      {"layer_norm", {{"x", "weight?", "bias?", "eps", "add?", "whole?"}, layerNorm}},
      {"activation", {{"kind", "x"}, activation}},
      {"gated", {{"kind", "gate", "up"}, gated}},
      {"xielu", {{"x", "weight", "beta", "eps"}, xielu}},
      {"clamp", {{"x", "low?", "high?"}, clamp}},
      {"softcap", {{"x", "cap"}, softcap}},
      {"softmax", {{"x"}, softmax}},
      {"sinkhorn", {{"x", "iterations", "eps"}, sinkhorn}},
      {"affine", {{"x", "gain?", "bias?", "per?", "add?"}, affine}},
      {"slice", {{"x", "begin", "end"}, slice}},
      {"concat", {{"parts..."}, concat}},
      {"heads", {{"x", "count"}, heads}},
      {"merge", {{"x"}, merge}},
      {"repeat", {{"x", "times"}, repeat}},
      {"rope", {{"x", "name?", "pairing?", "first?", "inverse?", "every?"}, rope}},
      {"position_scale", {{"x", "scale", "period", "offset?"}, positionScale}},
      {"select", {{"x"}, select}},
      {"record", {{"x"}, record}},
  });
}

} // namespace llmc
