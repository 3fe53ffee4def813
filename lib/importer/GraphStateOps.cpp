// Functions with a state: attention over a cache, convolution and recurrence over positions.
#include "lib/importer/OpCall.h"

namespace llmc {
namespace {

using Result = StatusOr<Operand>;

StatusOr<int> appended(OpCall &c, const std::string &name, int key, int value, int64_t latent) {
  LLMC_ASSIGN_OR_RETURN(int64_t every, c.integer("every", 1, 1));
  StateShape shape;
  shape.heads = c.value(key).heads;
  shape.keys = c.value(key).channels;
  shape.values = value >= 0 ? c.value(value).channels : latent;
  shape.latent = value < 0;
  shape.every = every;
  if (every > 1 && !shape.latent)
    return c.fail("every", "is " + std::to_string(every) + ", but only latent caches leave positions out");
  if (value >= 0 && c.value(value).heads != shape.heads)
    return c.fail("value",
                  "has " + std::to_string(c.value(value).heads) + " heads, the key " + std::to_string(shape.heads));
  if (value < 0 && (latent < 1 || latent > shape.keys))
    return c.fail("latent",
                  "is " + std::to_string(latent) + " of " + std::to_string(shape.keys) + " channels of the key");
  LLMC_ASSIGN_OR_RETURN(int state, c.scope.state(name, shape, -1));
  return c.scope.emit(c.node("kv_append", {state, key, value, c.scope.batch()}, {}, false), {RowShape{}}).front();
}

Result attend(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int query, c.headed("query"));
  LLMC_ASSIGN_OR_RETURN(std::string name, c.word("state", "kv", {}));
  int grown = -1;
  if (c.has("from")) {
    LLMC_ASSIGN_OR_RETURN(int64_t layer, c.integer("from"));
    LLMC_ASSIGN_OR_RETURN(grown, c.scope.state(name, {}, layer));
  } else {
    if (!c.has("key"))
      return c.fail("key", "is needed, unless 'from' names the layer whose cache is read");
    LLMC_ASSIGN_OR_RETURN(int key, c.headed("key"));
    int value = -1;
    int64_t latent = 0;
    if (c.has("latent")) {
      LLMC_ASSIGN_OR_RETURN(latent, c.integer("latent", {}, 1));
    } else {
      if (!c.has("value"))
        return c.fail("value", "is needed, unless 'latent' says how much of the key it is");
      LLMC_ASSIGN_OR_RETURN(value, c.headed("value"));
    }
    LLMC_ASSIGN_OR_RETURN(grown, appended(c, name, key, value, latent));
  }
  const StateShape state = c.value(grown).state;
  if (c.value(query).channels != state.keys || c.value(query).heads % state.heads != 0)
    return c.fail("query", "is " + std::to_string(c.value(query).heads) + " x " +
                               std::to_string(c.value(query).channels) + ", the keys " + std::to_string(state.heads) +
                               " x " + std::to_string(state.keys));
  LLMC_ASSIGN_OR_RETURN(double scale, c.number("scale"));
  LLMC_ASSIGN_OR_RETURN(double softcap, c.number("softcap", 0.0));
  LLMC_ASSIGN_OR_RETURN(int64_t window, c.integer("window", 0));
  LLMC_ASSIGN_OR_RETURN(int64_t chunk, c.integer("chunk", 0));
  Attributes attributes = {{"scale", scale}, {"softcap", softcap}, {"window", window}};
  if (chunk > 0)
    attributes["chunk"] = chunk;
  LLMC_ASSIGN_OR_RETURN(bool withLogsum, c.flag("logsum"));
  if (withLogsum)
    attributes["with_logsum"] = true;
  if (state.every > 1 && (window > 0 || chunk > 0 || c.has("alibi")))
    return c.fail("every", "is " + std::to_string(state.every) + ", which window, chunk and alibi do not count by");
  int sinks = -1, selected = -1;
  if (c.hasWeight("sinks")) {
    LLMC_ASSIGN_OR_RETURN(sinks, c.weight("sinks", {c.value(query).heads}));
  }
  if (c.has("selected")) {
    LLMC_ASSIGN_OR_RETURN(selected, c.flat("selected"));
  }
  if (c.has("alibi")) {
    LLMC_ASSIGN_OR_RETURN(Scalar slopes, c.scalar("alibi"));
    if (slopes.kind == Scalar::Kind::List) {
      std::vector<float> list;
      for (const Json &slope : slopes.list)
        list.push_back(slope.is_number() ? slope.get<float>() : 0.0f);
      attributes["alibi"] = std::move(list);
    }
  }
  GraphNode node = c.node("attention", {query, grown, c.scope.batch(), sinks, selected}, attributes, true);
  node.name = "attention";
  std::vector<RowShape> shapes = {{c.value(query).heads, state.values}};
  if (!withLogsum)
    return Operand::ofRows(c.scope.emit(std::move(node), shapes).front());
  shapes.push_back({0, c.value(query).heads});
  Operand both;
  both.kind = Operand::Kind::Several;
  for (int result : c.scope.emit(std::move(node), shapes))
    both.several.push_back(Operand::ofRows(result));
  return both;
}

Result selectPositions(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int query, c.headed("query"));
  LLMC_ASSIGN_OR_RETURN(int weights, c.flat("weights"));
  LLMC_ASSIGN_OR_RETURN(int key, c.headed("key"));
  LLMC_ASSIGN_OR_RETURN(int64_t count, c.integer("count", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int grown, appended(c, "index", key, -1, c.value(key).channels));
  return Operand::ofRows(c.one("select_positions", {query, weights, grown, c.scope.batch()}, {0, count}));
}

Result shortConv(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t kernel, c.integer("kernel", {}, 2));
  LLMC_ASSIGN_OR_RETURN(std::string name, c.word("state", "conv", {}));
  int64_t channels = c.value(x).channels;
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {channels, kernel}));
  LLMC_ASSIGN_OR_RETURN(int bias, c.bias("weight", {channels}));
  LLMC_ASSIGN_OR_RETURN(int state, c.scope.state(name, {false, 1, channels, kernel - 1, false, true}, -1));
  return Operand::ofRows(c.one("short_conv", {x, weight, bias, state, c.scope.batch()}, {0, channels}));
}

Result windowPool(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int value, c.flat("value"));
  LLMC_ASSIGN_OR_RETURN(int gate, c.flat("gate"));
  LLMC_ASSIGN_OR_RETURN(int64_t window, c.integer("window", {}, 1));
  LLMC_ASSIGN_OR_RETURN(bool overlaps, c.flag("overlap"));
  LLMC_ASSIGN_OR_RETURN(std::string name, c.word("state", "pool", {}));
  if (!c.sameShape(value, gate))
    return c.fail("gate", "is " + c.print(gate) + ", the value " + c.print(value));
  int64_t channels = c.value(value).channels, parts = overlaps ? 2 : 1;
  if (channels % parts != 0)
    return c.fail("value", "has " + std::to_string(channels) + " channels, expected two parts of equal size");
  LLMC_ASSIGN_OR_RETURN(int state, c.scope.state(name, {false, 1, overlaps ? 9 : 3, channels / parts, false}, -1));
  return Operand::ofRows(
      c.one("window_pool", {value, gate, state, c.scope.batch()}, {0, channels / parts}, {{"window", window}}));
}

Result linearAttention(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int query, c.headed("query"));
  LLMC_ASSIGN_OR_RETURN(int key, c.headed("key"));
  LLMC_ASSIGN_OR_RETURN(int value, c.headed("value"));
  LLMC_ASSIGN_OR_RETURN(std::string name, c.word("state", "recurrent", {}));
  if (!c.sameShape(query, key))
    return c.fail("key", "is " + c.print(key) + ", the query " + c.print(query));
  if (c.value(value).heads % c.value(key).heads != 0)
    return c.fail("value", "is " + c.print(value) + ", which is no multiple of the heads of the key, " + c.print(key));
  int decay = -1, beta = -1;
  if (c.has("decay")) {
    LLMC_ASSIGN_OR_RETURN(decay, c.rows("decay"));
    const GraphValue &rows = c.value(decay);
    bool perHead = rows.heads == 0 && rows.channels == c.value(value).heads;
    if (!perHead && (rows.heads != c.value(value).heads || rows.channels != c.value(key).channels))
      return c.fail("decay", "is " + c.print(decay) + ", expected one per head, or per head and channel of the key");
  }
  if (c.has("beta")) {
    LLMC_ASSIGN_OR_RETURN(beta, c.flat("beta"));
    if (c.value(beta).channels != c.value(value).heads)
      return c.fail("beta", "is " + c.print(beta) + ", expected one for each of " +
                                std::to_string(c.value(value).heads) + " heads");
  }
  RowShape shape = c.shapeOf(value);
  LLMC_ASSIGN_OR_RETURN(int state,
                        c.scope.state(name, {false, shape.heads, c.value(key).channels, shape.channels, false}, -1));
  return Operand::ofRows(
      c.one("linear_attention", {query, key, value, decay, beta, state, c.scope.batch()}, shape, {}, true));
}

} // namespace

void addStateFunctions(FunctionTable &table) {
  table.insert({
      {"attend",
       {{"query", "key?", "value?", "scale", "softcap?", "window?", "chunk?", "sinks?", "alibi?", "selected?",
         "latent?", "from?", "state?", "every?", "logsum?"},
        attend}},
      {"select_positions", {{"query", "weights", "key", "count", "every?"}, selectPositions}},
      {"short_conv", {{"x", "weight", "kernel", "bias?", "state?"}, shortConv}},
      {"window_pool", {{"value", "gate", "window", "overlap?", "state?"}, windowPool}},
      {"linear_attention", {{"query", "key", "value", "decay?", "beta?", "state?"}, linearAttention}},
  });
}

} // namespace llmc
