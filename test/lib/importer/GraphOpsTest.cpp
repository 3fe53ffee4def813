// Every function that a wiring may call: what it makes of its arguments, and what it refuses.
#include "lib/importer/GraphOps.h"
#include "lib/importer/Scalar.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

// A function with the activations x [T, 8], y [T, 4], h [T, 2, 4] and v [T, 1, 4], weights of any name and shape, and
// the rope tables full (4 channels) and wide (6 channels). Layer 3 keeps a cache of 1 x 4.
class TestScope final : public GraphScope {
public:
  TestScope() {
    rows_ = {{"x", add({0, 8})}, {"y", add({0, 4})}, {"h", add({2, 4})}, {"v", add({1, 4})}, {"s", add({0, 2})}};
  }

  GraphFunction graph;

  const GraphValue &value(int id) const override { return graph.values[static_cast<size_t>(id)]; }
  int batch() override { return addOf(GraphValue::Kind::Batch, "batch"); }
  StatusOr<int> weight(const std::string &name, std::vector<int64_t> shape, double add) override {
    if (name == "absent")
      return Status::error("no weight 'absent'");
    int id = addOf(GraphValue::Kind::Weight, name + (add != 0.0 ? "+" + printNumber(add) : ""));
    graph.values.back().shape = std::move(shape);
    return id;
  }
  StatusOr<int> state(const std::string &name, const StateShape &shape, int64_t layer) override {
    if (layer >= 0 && layer != 3)
      return Status::error("layer " + std::to_string(layer) + " has no state '" + name + "'");
    int id = addOf(GraphValue::Kind::State, (layer < 0 ? "" : "earlier.") + name);
    graph.values.back().state = layer < 0 ? shape : StateShape{true, 1, 4, 4, false};
    return id;
  }
  StatusOr<int> ropeTable(const std::string &name, int64_t every) override {
    if (name != "full" && name != "wide")
      return Status::error("no rope '" + name + "'");
    return add({0, name == "full" ? 4 : 6}, every == 1 ? "table" : "table of every " + std::to_string(every));
  }
  int64_t nextRecord() override { return 7; }
  std::vector<int> emit(GraphNode node, const std::vector<RowShape> &results) override {
    for (const RowShape &shape : results) {
      node.results.push_back(node.op == "kv_append" ? graph.add(value(node.operands[0])) : add(shape));
    }
    graph.nodes.push_back(node);
    return node.results;
  }

  // Evaluates calls and operators, as a wiring does.
  StatusOr<Operand> evaluate(const Expression &expression) {
    using Kind = Expression::Kind;
    if (expression.kind == Kind::Number)
      return Operand::of(Scalar::of(expression.number));
    if (expression.kind == Kind::Word)
      return Operand::of(Scalar::of(expression.text));
    if (expression.kind == Kind::Name) {
      auto known = rows_.find(expression.text);
      return known != rows_.end() ? Operand::ofRows(known->second) : Operand::ofWeight(expression.text);
    }
    CallArguments arguments;
    for (const Expression &operand : expression.operands) {
      LLMC_ASSIGN_OR_RETURN(Operand value, evaluate(operand));
      arguments.positional.push_back(std::move(value));
    }
    for (size_t i = 0; i < expression.named.size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(Operand value, evaluate(expression.named[i]));
      arguments.named.emplace_back(expression.keys[i], std::move(value));
    }
    bool anyRows = std::any_of(arguments.positional.begin(), arguments.positional.end(),
                               [](const Operand &operand) { return operand.kind == Operand::Kind::Rows; });
    if (expression.kind == Kind::Operator && anyRows)
      return applyRowOperator(*this, expression.text, arguments.positional);
    if (std::optional<StatusOr<Operand>> result = callGraphOp(*this, expression.text, arguments))
      return *result;
    std::vector<Scalar> scalars;
    for (const Operand &operand : arguments.positional)
      scalars.push_back(operand.scalar);
    std::optional<StatusOr<Scalar>> result = expression.kind == Kind::Operator
                                                 ? applyOperator(expression.text, scalars)
                                                 : applyFunction(expression.text, scalars);
    if (!result)
      return Status::error("no function '" + expression.text + "'");
    LLMC_ASSIGN_OR_RETURN(Scalar scalar, *result);
    return Operand::of(scalar);
  }

  // "linear(8, up[6, 8]) -> 6": operands by their shapes, results after the arrow; an activation that was given is
  // itself.
  std::string print() const {
    std::string text;
    for (const GraphNode &node : graph.nodes) {
      text += (text.empty() ? "" : "; ") + node.op + "(";
      size_t next = 0;
      for (size_t i = 0; i < std::max(node.operands.size(), node.segments.size()); ++i) {
        bool absent = !node.segments.empty() && node.segments[i] == 0;
        text += (i ? ", " : "") + (absent ? "-" : print(value(node.operands[next])));
        next += !absent;
      }
      text += ")";
      for (const auto &[name, attribute] : node.attributes)
        text += " " + name + "=" + std::visit([](const auto &value) { return print(value); }, attribute);
      for (size_t i = 0; i < node.results.size(); ++i)
        text += (i ? ", " : " -> ") + print(value(node.results[i]));
    }
    return text;
  }

private:
  int add(RowShape shape, const std::string &name = "") {
    GraphValue value;
    value.name = name;
    value.heads = shape.heads, value.channels = shape.channels;
    return graph.add(value);
  }
  int addOf(GraphValue::Kind kind, const std::string &name) {
    GraphValue value;
    value.kind = kind, value.name = name;
    return graph.add(value);
  }

  static std::string print(bool flag) { return flag ? "true" : "false"; }
  static std::string print(int64_t number) { return std::to_string(number); }
  static std::string print(double number) {
    return std::isfinite(number) ? printNumber(number) : number > 0 ? "inf" : "-inf";
  }
  static std::string print(const std::string &word) { return word; }
  static std::string print(const std::vector<float> &list) { return std::to_string(list.size()) + " numbers"; }
  static std::string print(const GraphValue &value) {
    if (value.kind == GraphValue::Kind::Batch)
      return "batch";
    if (value.kind == GraphValue::Kind::State) {
      const StateShape &state = value.state;
      std::string shape = std::to_string(state.heads) + "x" + std::to_string(state.keys);
      return value.name + "<" + shape + (state.latent ? " latent " : "x") + std::to_string(state.values) +
             (state.every > 1 ? " every " + std::to_string(state.every) : "") + ">";
    }
    if (value.kind == GraphValue::Kind::Weight) {
      std::string shape;
      for (int64_t size : value.shape)
        shape += (shape.empty() ? "" : ", ") + std::to_string(size);
      return value.name + "[" + shape + "]";
    }
    return (value.heads ? std::to_string(value.heads) + "x" : "") + std::to_string(value.channels);
  }

  std::map<std::string, int> rows_;
};

// The nodes that an expression makes, or why it makes none.
std::string made(std::string_view text) {
  TestScope scope;
  StatusOr<Expression> expression = parseExpression(text);
  if (!expression.ok())
    return expression.status().message();
  StatusOr<Operand> result = scope.evaluate(*expression);
  return result.ok() ? scope.print() : result.status().message();
}

} // namespace

TEST(GraphOps, Embeddings) {
  EXPECT_EQ(made("embedding(words, 16, 8)"), "embedding(batch, words[16, 8]) scale=1 -> 8");
  EXPECT_EQ(made("embedding(words, 16, 8, scale: 2.5)"), "embedding(batch, words[16, 8]) scale=2.5 -> 8");
  EXPECT_EQ(made("position_embedding(places, 64, 8, offset: 2)"),
            "position_embedding(batch, places[64, 8]) offset=2 -> 8");
  EXPECT_EQ(made("position_embedding(places, 4, 8, period: 4)"),
            "position_embedding(batch, places[4, 8]) offset=0 period=4 -> 8");
  EXPECT_EQ(made("position_embedding(places, 4, 8, offset: 1, period: 4)"),
            "position_embedding: 'period' is 4 from row 1 on, the table has 4 rows");
  EXPECT_EQ(made("embedding(table, 16, 2, exact: 1)"), "embedding(batch, table[16, 2]) exact=true scale=1 -> 2");
}

TEST(GraphOps, Norms) {
  EXPECT_EQ(made("rms_norm(x, gain, eps: 0.5)"), "rms_norm(8, gain[8]) eps=0.5 -> 8");
  EXPECT_EQ(made("rms_norm(x, eps: 0.5)"), "rms_norm(8) eps=0.5 -> 8") << "without a gain";
  EXPECT_EQ(made("rms_norm(h, gain, eps: 0.5, add: 1)"), "rms_norm(2x4, gain+1[4]) eps=0.5 -> 2x4");
  EXPECT_EQ(made("rms_norm(h, gain, eps: 0.5, whole: 1)"), "rms_norm(2x4, gain[8]) eps=0.5 -> 2x4");
  EXPECT_EQ(made("layer_norm(x, gain, eps: 0.5)"), "layer_norm(8, gain[8], -) eps=0.5 -> 8");
  EXPECT_EQ(made("layer_norm(x, gain, 1, 0.5)"), "layer_norm(8, gain[8], gain.bias[8]) eps=0.5 -> 8");
  EXPECT_EQ(made("layer_norm(x, gain, shift, 0.5)"), "layer_norm(8, gain[8], shift[8]) eps=0.5 -> 8");
  EXPECT_EQ(made("layer_norm(x, eps: 0.5)"), "layer_norm(8, -, -) eps=0.5 -> 8");
}

TEST(GraphOps, Activations) {
  EXPECT_EQ(made("silu(x)"), "activation(8) activation=silu -> 8");
  EXPECT_EQ(made("activation('gelu_tanh', h)"), "activation(2x4) activation=gelu_tanh -> 2x4");
  EXPECT_EQ(made("gated('silu', x, x)"), "gated_activation(8, 8) activation=silu -> 8");
  EXPECT_EQ(made("xielu(x, knee, beta: 0.5, eps: 1)"), "xielu(8, knee[2]) beta=0.5 eps=1 -> 8");
  EXPECT_EQ(made("sqrt(x)"), "activation(8) activation=sqrt -> 8") << "of a number it is a number";
  EXPECT_EQ(made("activation('sine', x)"),
            "activation: 'kind' is 'sine' (known = exp, gelu, gelu_sigmoid, gelu_tanh, relu, "
            "relu2, sigmoid, silu, softplus, sqrt, tanh)");
}

TEST(GraphOps, Elementwise) {
  EXPECT_EQ(made("clamp(x, -7, 7)"), "clamp(8) high=7 low=-7 -> 8");
  EXPECT_EQ(made("clamp(x, high: 7)"), "clamp(8) high=7 low=-inf -> 8");
  EXPECT_EQ(made("softcap(x, 30)"), "softcap(8) cap=30 -> 8");
  EXPECT_EQ(made("gated('silu', x, y)"), "gated: 'up' is 4, the gate 8");
  EXPECT_EQ(made("softmax(h)"), "softmax(2x4) -> 2x4");
  EXPECT_EQ(made("sinkhorn(heads(y, 2), 20, 0.5)"),
            "split_heads(4) -> 2x2; sinkhorn(2x2) eps=0.5 iterations=20 -> 2x2");
  EXPECT_EQ(made("sinkhorn(h, 20, 0.5)"), "sinkhorn: 'x' is 2 x 4, expected a square matrix");
  EXPECT_EQ(made("affine(h, gain)"), "affine(2x4, gain[4], -) -> 2x4");
  EXPECT_EQ(made("affine(h, bias: shift, per: 'head')"), "affine(2x4, -, shift[2]) per_head=true -> 2x4");
  EXPECT_EQ(made("affine(h, gain, shift, per: 'row', add: 1)"), "affine(2x4, gain+1[8], shift[8]) -> 2x4");
  EXPECT_EQ(made("affine(h, gain, per: 'all')"), "affine(2x4, gain[1], -) -> 2x4");
  EXPECT_EQ(made("affine(h, gain, per: 'token')"), "affine: 'per' is 'token' (known = all, channel, head, row)");
  EXPECT_EQ(made("position_scale(h, 0.1, 8192, offset: 1)"),
            "position_scale(2x4, batch) offset=1 period=8192 scale=0.1 -> 2x4");
}

TEST(GraphOps, Operators) {
  EXPECT_EQ(made("x + x"), "add(8, 8) -> 8");
  EXPECT_EQ(made("x - x"), "scale(8) factor=-1 -> 8; add(8, 8) -> 8");
  EXPECT_EQ(made("h * h"), "multiply(2x4, 2x4) -> 2x4");
  EXPECT_EQ(made("slice(y, 0, 1) * h"), "slice(4) begin=0 -> 1; multiply(2x4, 1) -> 2x4");
  EXPECT_EQ(made("h * v"), "operator *: one side is 2 x 4, the other 1 x 4");
  EXPECT_EQ(made("x * h"), "operator *: one side is 8, the other 2 x 4");
  EXPECT_EQ(made("s * h"), "multiply(2x4, 2) -> 2x4") << "the wider one first";
  EXPECT_EQ(made("x * 3"), "scale(8) factor=3 -> 8");
  EXPECT_EQ(made("x / 4"), "scale(8) factor=0.25 -> 8");
  EXPECT_EQ(made("1 - x"), "scale(8) factor=-1 offset=1 -> 8");
  EXPECT_EQ(made("x + 2"), "scale(8) factor=1 offset=2 -> 8");
  EXPECT_EQ(made("-x"), "scale(8) factor=-1 -> 8");
  EXPECT_EQ(made("x * 1 + 0"), "") << "nothing to do";
  EXPECT_EQ(made("x + y"), "operator +: one side is 8, the other 4");
  EXPECT_EQ(made("x / x"), "operator / does not take two activations");
  EXPECT_EQ(made("1 / x"), "operator / does not take an activation and a number");
  EXPECT_EQ(made("x / 0"), "operator / does not take an activation and a number");
  EXPECT_EQ(made("not x"), "operator not does not take an activation");
  EXPECT_EQ(made("x == 1"), "operator == does not take an activation and a number");
  EXPECT_EQ(made("x + 'a'"), "operator + takes activations and numbers");
  EXPECT_EQ(made("x * gain"), "operator * takes activations and numbers");
}

TEST(GraphOps, Shapes) {
  EXPECT_EQ(made("heads(x, 2)"), "split_heads(8) -> 2x4");
  EXPECT_EQ(made("heads(h, 4)"), "merge_heads(2x4) -> 8; split_heads(8) -> 4x2");
  EXPECT_EQ(made("merge(h)"), "merge_heads(2x4) -> 8");
  EXPECT_EQ(made("merge(x)"), "");
  EXPECT_EQ(made("slice(h, 1, 3)"), "slice(2x4) begin=1 -> 2x2");
  EXPECT_EQ(made("slice(x, 0, 8)"), "") << "all of it";
  EXPECT_EQ(made("concat(x, y, s)"), "concat(8, 4, 2) -> 14");
  EXPECT_EQ(made("concat(h, h)"), "concat(2x4, 2x4) -> 2x8");
  EXPECT_EQ(made("repeat(h, 3)"), "repeat_heads(2x4) times=3 -> 6x4");
  EXPECT_EQ(made("repeat(h, 1)"), "");
  EXPECT_EQ(made("heads(x, 3)"), "heads: 'count' is 3, which does not divide 8 channels");
  EXPECT_EQ(made("slice(x, 4, 9)"), "slice: 'end' takes channels 4 to 9 of 8");
  EXPECT_EQ(made("slice(x, 4, 4)"), "slice: 'end' takes channels 4 to 4 of 8");
  EXPECT_EQ(made("concat(h, v)"), "concat: 'parts' have 2 and 1 heads");
  EXPECT_EQ(made("concat(h, 1)"), "concat: 'parts' holds something that is no activation");
  EXPECT_EQ(made("concat()"), "concat: 'parts' are none");
  EXPECT_EQ(made("repeat(x, 2)"), "repeat: 'x' has no heads; use heads(x, count)");
}

TEST(GraphOps, Positions) {
  EXPECT_EQ(made("rope(h)"), "rope(2x4, 4) -> 2x4");
  EXPECT_EQ(made("rope(h, 'full', 'adjacent', inverse: 1)"), "rope(2x4, 4) inverse=true pairing=adjacent -> 2x4");
  EXPECT_EQ(made("rope(heads(x, 1), first: 4)"), "split_heads(8) -> 1x8; rope(1x8, 4) first=4 -> 1x8");
  EXPECT_EQ(made("rope(h, 'wide')"), "rope: 'x' has 4 channels a head, but the rope 'wide' turns 6 from 0 on");
  EXPECT_EQ(made("rope(h, first: 1)"), "rope: 'x' has 4 channels a head, but the rope 'full' turns 4 from 1 on");
  EXPECT_EQ(made("rope(h, every: 4)"), made("rope(h)")) << "of another table";
  EXPECT_EQ(made("rope(h, 'none')"), "no rope 'none'");
  EXPECT_EQ(made("rope(x)"), "rope: 'x' has no heads; use heads(x, count)");
}

TEST(GraphOps, RowsOfTheStep) {
  EXPECT_EQ(made("select(x)"), "select_rows(8, batch) -> 8");
  EXPECT_EQ(made("record(x)"), "record(8, batch) index=7");
}

TEST(GraphOps, Linear) {
  EXPECT_EQ(made("linear(x, up, 6)"), "linear(8, up[6, 8]) -> 6");
  EXPECT_EQ(made("linear(x, up, 6, bias: 1)"), "linear(8, up[6, 8], up.bias[6]) -> 6");
  EXPECT_EQ(made("linear(x, up, 6, bias: 0)"), "linear(8, up[6, 8]) -> 6");
  EXPECT_EQ(made("linear(x, up, 6, bias: other)"), "linear(8, up[6, 8], other[6]) -> 6");
  EXPECT_EQ(made("linear(x, 'up' , 6)"), "linear(8, up[6, 8]) -> 6") << "the name may be computed";
  EXPECT_EQ(made("linear(h, up, 6)"), "merge_heads(2x4) -> 8; linear(8, up[6, 8]) -> 6");
  EXPECT_EQ(made("head_linear(h, up, 6)"), "head_linear(2x4, up[2, 6, 4]) -> 2x6");
  EXPECT_EQ(made("linear(x, absent, 6)"), "no weight 'absent'");
  EXPECT_EQ(made("linear(x, 3, 6)"), "linear: 'weight' is no weight");
  EXPECT_EQ(made("linear(up, up, 6)"), "linear: 'x' is no activation");
  EXPECT_EQ(made("linear(x, up, 0)"), "linear: 'out' is 0, expected a whole number from 1 to 268435456");
  EXPECT_EQ(made("linear(x, up, 1.5)"), "linear: 'out' is 1.5, expected a whole number from 1 to 268435456");
  EXPECT_EQ(made("linear(x, up, 'wide')"), "linear: 'out' is 'wide', expected a number");
  EXPECT_EQ(made("linear(x, up, y)"), "linear: 'out' is no number or word");
}

TEST(GraphOps, Experts) {
  EXPECT_EQ(made("router(x, 2)"), "router(8, -, -) group_sum=1 groups=1 jitter=0 norm_eps=0 normalize=false scale=1 "
                                  "scoring=softmax top_groups=1 top_k=2 -> 2, 2");
  EXPECT_EQ(made("router(x, 2, 'sigmoid', bias: shift, groups: 4, top_groups: 2, group_sum: 2, normalize: 1, eps: 0.5, "
                 "scale: 3)"),
            "router(8, shift[8], -) group_sum=2 groups=4 jitter=0 norm_eps=0.5 normalize=true scale=3 scoring=sigmoid "
            "top_groups=2 top_k=2 -> 2, 2");
  EXPECT_EQ(made("router(x, 2, chosen: s)"), "router(8, -, 2) group_sum=1 groups=1 jitter=0 norm_eps=0 normalize=false "
                                             "scale=1 scoring=softmax top_groups=1 top_k=2 -> 2, 2");
  EXPECT_EQ(made("router(x, 2, chosen: y)"),
            "router: 'chosen' is 4, expected 2 experts without bias, groups and sparse_mixer");
  EXPECT_EQ(made("router(x, 2, bias: shift, chosen: s)"),
            "router: 'chosen' is 2, expected 2 experts without bias, groups and sparse_mixer");
  EXPECT_EQ(made("expert_linear(x, up, 5, 6, s)"), "expert_linear(8, up[5, 6, 8], 2) -> 2x6");
  EXPECT_EQ(made("expert_linear(h, up, 5, 6, s, bias: 1)"), "expert_linear(2x4, up[5, 6, 4], 2, up.bias[5, 6]) -> 2x6");
  EXPECT_EQ(made("combine(h, s)"), "combine(2x4, 2) -> 4");
  EXPECT_EQ(made("combine(h, y)"), "combine: 'weights' are 4 for 2 slots");
  EXPECT_EQ(made("expert_linear(h, up, 5, 6, y)"), "expert_linear: 'x' is 2 x 4, but 4 experts are chosen");
  EXPECT_EQ(made("router(x, 9)"), "router: 'top_k' is 9 of 8 experts in 1 of 1 groups");
  EXPECT_EQ(made("router(x, 3, groups: 4, top_groups: 1)"), "router: 'top_k' is 3 of 8 experts in 1 of 4 groups");
  EXPECT_EQ(made("router(x, 2, 'sorcery')"),
            "router: 'scoring' is 'sorcery' (known = none, sigmoid, softmax, sparse_mixer, sqrt_softplus)");
}

TEST(GraphOps, Attention) {
  EXPECT_EQ(made("attend(h, v, v, scale: 0.5)"),
            "kv_append(kv<1x4x4>, 1x4, 1x4, batch) -> kv<1x4x4>; "
            "attention(2x4, kv<1x4x4>, batch, -, -) scale=0.5 softcap=0 window=0 -> 2x4");
  EXPECT_EQ(
      made("attend(h, v, heads(s, 1), scale: 0.5, softcap: 30, window: 8, chunk: 16, sinks: sink, state: 'local')"),
      "split_heads(2) -> 1x2; kv_append(local<1x4x2>, 1x4, 1x2, batch) -> local<1x4x2>; "
      "attention(2x4, local<1x4x2>, batch, sink[2], -) chunk=16 scale=0.5 softcap=30 window=8 -> 2x2")
      << "values of another width";
  EXPECT_EQ(made("attend(h, v, scale: 1, latent: 3, selected: y, alibi: alibi_slopes(2, 8))"),
            "kv_append(kv<1x4 latent 3>, 1x4, batch) -> kv<1x4 latent 3>; "
            "attention(2x4, kv<1x4 latent 3>, batch, -, 4) alibi=2 numbers scale=1 softcap=0 window=0 -> 2x3");
  EXPECT_EQ(made("attend(h, from: 3, scale: 1)"),
            "attention(2x4, earlier.kv<1x4x4>, batch, -, -) scale=1 softcap=0 window=0 -> 2x4");
}

TEST(GraphOps, AttentionErrors) {
  EXPECT_EQ(made("attend(h, scale: 1)"), "attend: 'key' is needed, unless 'from' names the layer whose cache is read");
  EXPECT_EQ(made("attend(h, v, scale: 1)"),
            "attend: 'value' is needed, unless 'latent' says how much of the key it is");
  EXPECT_EQ(made("attend(h, v, scale: 1, latent: 5)"), "attend: 'latent' is 5 of 4 channels of the key");
  EXPECT_EQ(made("attend(h, v, h, scale: 1)"), "attend: 'value' has 2 heads, the key 1");
  EXPECT_EQ(made("attend(v, h, h, scale: 1)"), "attend: 'query' is 1 x 4, the keys 2 x 4");
  EXPECT_EQ(made("attend(heads(x, 4), v, v, scale: 1)"), "attend: 'query' is 4 x 2, the keys 1 x 4");
  EXPECT_EQ(made("attend(h, from: 2, scale: 1)"), "layer 2 has no state 'kv'");
  EXPECT_EQ(made("attend(x, v, v, scale: 1)"), "attend: 'query' has no heads; use heads(x, count)");
}

TEST(GraphOps, OneRowOfSeveralPositions) {
  EXPECT_EQ(made("attend(h, v, scale: 1, latent: 4, every: 4, state: 'far')"),
            "kv_append(far<1x4 latent 4 every 4>, 1x4, batch) -> far<1x4 latent 4 every 4>; "
            "attention(2x4, far<1x4 latent 4 every 4>, batch, -, -) scale=1 softcap=0 window=0 -> 2x4");
  EXPECT_EQ(made("attend(h, v, v, scale: 1, logsum: 1)"),
            "kv_append(kv<1x4x4>, 1x4, 1x4, batch) -> kv<1x4x4>; "
            "attention(2x4, kv<1x4x4>, batch, -, -) scale=1 softcap=0 window=0 with_logsum=true -> 2x4, 2");
  EXPECT_EQ(made("attend(h, v, v, scale: 1, every: 4)"),
            "attend: 'every' is 4, but only latent caches leave positions out");
  EXPECT_EQ(made("attend(h, v, scale: 1, latent: 4, every: 4, window: 8)"),
            "attend: 'every' is 4, which window, chunk and alibi do not count by");
  EXPECT_EQ(made("select_positions(h, s, v, 16, every: 4)"),
            "kv_append(index<1x4 latent 4 every 4>, 1x4, batch) -> index<1x4 latent 4 every 4>; "
            "select_positions(2x4, 2, index<1x4 latent 4 every 4>, batch) -> 16");
}

TEST(GraphOps, SelectedPositions) {
  EXPECT_EQ(made("select_positions(h, s, v, 16)"), "kv_append(index<1x4 latent 4>, 1x4, batch) -> index<1x4 latent 4>; "
                                                   "select_positions(2x4, 2, index<1x4 latent 4>, batch) -> 16");
}

TEST(GraphOps, RecurrentStates) {
  EXPECT_EQ(made("short_conv(x, taps, 4)"), "short_conv(8, taps[8, 4], conv<1x8x3>, batch) -> 8");
  EXPECT_EQ(made("short_conv(x, taps, 4, bias: 1, state: 'conv_k')"),
            "short_conv(8, taps[8, 4], taps.bias[8], conv_k<1x8x3>, batch) -> 8");
  EXPECT_EQ(made("linear_attention(h, h, heads(y, 2))"),
            "split_heads(4) -> 2x2; linear_attention(2x4, 2x4, 2x2, -, -, recurrent<2x4x2>, batch) -> 2x2");
  EXPECT_EQ(made("linear_attention(h, h, h, decay: h, beta: s)"),
            "linear_attention(2x4, 2x4, 2x4, 2x4, 2, recurrent<2x4x4>, batch) -> 2x4");
  EXPECT_EQ(made("linear_attention(h, v, h)"), "linear_attention: 'key' is 1 x 4, the query 2 x 4");
  EXPECT_EQ(made("linear_attention(h, h, v)"),
            "linear_attention: 'value' is 1 x 4, which is no multiple of the heads of the key, 2 x 4");
  EXPECT_EQ(made("linear_attention(h, h, h, decay: y)"),
            "linear_attention: 'decay' is 4, expected one per head, or per head and channel of the key");
  EXPECT_EQ(made("linear_attention(h, h, h, beta: y)"),
            "linear_attention: 'beta' is 4, expected one for each of 2 heads");
  EXPECT_EQ(made("short_conv(x, taps, 1)"), "short_conv: 'kernel' is 1, expected a whole number from 2 to 268435456");
}

TEST(GraphOps, SumsOverWindows) {
  EXPECT_EQ(made("window_pool(x, x, 4)"), "window_pool(8, 8, pool<1x3x8>, batch) window=4 -> 8");
  EXPECT_EQ(made("window_pool(x, x, 4, overlap: 1, state: 'near')"),
            "window_pool(8, 8, near<1x9x4>, batch) window=4 -> 4");
  EXPECT_EQ(made("window_pool(x, y, 4)"), "window_pool: 'gate' is 4, the value 8");
  EXPECT_EQ(made("window_pool(x, x, 0)"), "window_pool: 'window' is 0, expected a whole number from 1 to 268435456");
}

TEST(GraphOps, WrongArguments) {
  EXPECT_EQ(made("softcap(x)"), "softcap(x, cap) is called without 'cap'");
  EXPECT_EQ(made("softcap(x, 30, 40)"), "softcap(x, cap) is called with 3 arguments");
  EXPECT_EQ(made("softcap(x, top: 30)"), "softcap(x, cap) has no 'top'");
  EXPECT_EQ(made("softcap(x, 30, cap: 30)"), "softcap(x, cap) is given 'cap' twice");
  EXPECT_EQ(made("linear(x)"), "linear(x, weight, out, bias?) is called without 'weight'");
  EXPECT_EQ(made("twist(x)"), "no function 'twist'");
}

TEST(GraphOps, EverySignatureIsListed) {
  std::vector<std::string> signatures = graphOpSignatures();
  EXPECT_NE(std::find(signatures.begin(), signatures.end(), "linear(x, weight, out, bias?)"), signatures.end());
  EXPECT_NE(std::find(signatures.begin(), signatures.end(), "concat(parts...)"), signatures.end());
}
