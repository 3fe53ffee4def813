// Blocks to graphs: what statements mean, which layers share a function, and what is refused.
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

using Ops = std::vector<std::string>;

// The tiny family with some of its blocks replaced, or others added.
Json withBlocks(const Json &blocks) {
  Json family = tinyFamily();
  for (auto it = blocks.begin(); it != blocks.end(); ++it) {
    // Whatever its parameters were.
    std::string name = it.key().substr(0, it.key().find('(') + 1);
    for (const char *signature : {"begin()", "layer(h)", "finish(h)"})
      if (std::string(signature).rfind(name, 0) == 0)
        family["blocks"].erase(signature);
    family["blocks"][it.key()] = *it;
  }
  return family;
}
Ops layerOps(const Json &blocks) { return opsOf(kindOf(resolvedTiny(withBlocks(blocks)))); }
std::string errorOfBlocks(const Json &blocks) { return tinyError(withBlocks(blocks)); }
// Of a layer that is these statements.
std::string layerError(const Json &statements) { return errorOfBlocks({{"layer(h)", statements}}); }

} // namespace

TEST(Wiring, AStepCallsAFunctionPerLayer) {
  ModelSpec spec = resolvedTiny(tinyFamily());
  EXPECT_EQ(opsOf(spec.graph.step), (Ops{"embedding", "record", "call", "record", "call", "record", "call", "record",
                                         "call", "record", "select_rows", "linear"}));
  ASSERT_EQ(spec.graph.kinds.size(), 1u);
  EXPECT_EQ(kindOf(spec).name, "plain");
  EXPECT_EQ(opsOf(kindOf(spec)), (Ops{"rms_norm", "linear", "add"}));
  // Its inputs: the stream, the batch, the weights by their names in the layer.
  const GraphFunction &kind = kindOf(spec);
  ASSERT_EQ(kind.inputs.size(), 4u);
  auto input = [&](size_t i) { return kind.values[static_cast<size_t>(kind.inputs[i])]; };
  EXPECT_EQ(input(0).channels, 8);
  EXPECT_EQ(input(1).kind, GraphValue::Kind::Batch);
  EXPECT_EQ(input(2).name, "gain");
  EXPECT_EQ(input(3).name, "mix");
  GraphNode third = nodesOf(spec.graph.step, "call")[2];
  EXPECT_EQ(third.name, "layers.2");
  EXPECT_EQ(spec.graph.step.values[static_cast<size_t>(third.operands[3])].name, "layers.2.mix");
  ASSERT_EQ(spec.weights.size(), 2u + 4 * 2);
  EXPECT_EQ(spec.weights[1].name, "layers.0.gain");
  EXPECT_EQ(spec.weights.back().name, "head");
}

TEST(Wiring, BlocksTakeParametersByPositionAndName) {
  Json family =
      withBlocks({{"layer(h)", {"part(h, size: 6, name: mix)"}},
                  {"part(x, name, size)", {"u = silu(linear(x, name, size))", "x + linear(u, back, hidden)"}}});
  family["config"]["weights"]["back"] = "back.weight";
  ModelSpec spec = resolvedTiny(family);
  EXPECT_EQ(opsOf(kindOf(spec)), (Ops{"linear", "activation", "linear", "add"}));
  EXPECT_EQ(operandOf(kindOf(spec), "linear", 1).name, "mix");
  EXPECT_EQ(operandOf(kindOf(spec), "linear", 1).shape, (std::vector<int64_t>{6, 8}));
}

TEST(Wiring, SeveralResultsAndConditions) {
  EXPECT_EQ(layerOps({{"layer(h)",
                       {"a, b = pair(h)", "when layer < 0: a = silu(a)", "when hidden == 8: b = tanh(b)", "a + b"}},
                      {"pair(x)", {"x * 2, x * 3"}}}),
            (Ops{"scale", "scale", "activation", "add"}));
  EXPECT_EQ(layerOps({{"layer(h)", {"when 0: h * 2", "when 1: h * 3", "when 0: h * 4"}}}), (Ops{"scale"}))
      << "the last value whose condition holds is the result";
  EXPECT_EQ(layerOps({{"layer(h)", {"if(hidden > 4, silu(h), norm(h))"}}}), (Ops{"activation"})) << "one side is wired";
}

TEST(Wiring, VariablesBelongToTheirBlock) {
  EXPECT_EQ(layerError({"inner(h)"}), "tiny.json: /blocks/layer/0 calls 'inner', which is no block and no function");
  EXPECT_EQ(
      errorOfBlocks({{"layer(h)", {"secret = h", "inner(h)"}}, {"inner(x)", {"x + secret"}}}),
      "tiny.json: /blocks/inner/0 uses 'secret', which is no variable, value, fact per layer or weight of /config");
}

TEST(Wiring, WhatBeginNamesIsSeenByEveryLayer) {
  ModelSpec spec =
      resolvedTiny(withBlocks({{"begin()", {"e = embedding(embedding, vocabulary, hidden)", "share = e * 0.5", "e"}},
                               {"layer(h)", {"h + linear(norm(h), mix, hidden) + share"}},
                               {"finish(h)", {"linear(select(h + share), head, vocabulary)"}}}));
  EXPECT_EQ(spec.graph.kinds.size(), 1u);
  const GraphFunction &kind = kindOf(spec);
  ASSERT_EQ(kind.inputs.size(), 5u) << "the captured rows are an input, after the batch";
  GraphNode scale = nodesOf(spec.graph.step, "scale")[0];
  for (const GraphNode &call : nodesOf(spec.graph.step, "call"))
    EXPECT_EQ(call.operands[2], scale.results[0]);
  EXPECT_EQ(nodesOf(spec.graph.step, "add")[0].operands[1], scale.results[0]) << "and finish sees it";
}

TEST(Wiring, LayersMayCarryMoreThanOneValue) {
  ModelSpec spec = resolvedTiny(withBlocks({{"begin()", {"e = embedding(embedding, vocabulary, hidden)", "e, e * 0"}},
                                            {"layer(h, sum)", {"x = linear(norm(h), mix, hidden)", "h + x, sum + x"}},
                                            {"finish(h, sum)", {"linear(select(h * sum), head, vocabulary)"}}}));
  ASSERT_EQ(kindOf(spec).results.size(), 2u);
  std::vector<GraphNode> calls = nodesOf(spec.graph.step, "call");
  EXPECT_EQ(calls[1].operands[1], calls[0].results[1]);
}

TEST(Wiring, EqualLayersShareAFunction) {
  Json family = withBlocks({{"kind()", {"if(wide, 'wide', 'narrow')"}},
                            {"layer(h)", {"h + linear(linear(norm(h), mix, if(wide, 12, 6)), back, hidden)"}}});
  family["config"]["weights"]["back"] = "back.weight";
  family["config"]["per_layer"]["wide"] = {{{"expression", "layer % 2"}}};
  ModelSpec spec = resolvedTiny(family);
  EXPECT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(spec.graph.kinds[0].name, "narrow");
  EXPECT_EQ(spec.graph.kinds[1].name, "wide");
}

TEST(Wiring, LayersOfOneNameThatDifferAreNumbered) {
  ModelSpec spec = resolvedTiny(withBlocks({{"layer(h)", {"h * if(layer == 3, 2, 0.1)"}}}));
  EXPECT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(spec.graph.kinds[0].name, "plain");
  EXPECT_EQ(spec.graph.kinds[1].name, "plain_2");
  // Factors that differ in the last place only are no equal layers.
  ModelSpec close = resolvedTiny(withBlocks({{"layer(h)", {"h * if(layer == 3, 0.1 + 0.2, 0.3)"}}}));
  EXPECT_EQ(close.graph.kinds.size(), 2u);
}

TEST(Wiring, ALayerReadsAnEarlierCache) {
  Json family =
      withBlocks({{"layer(h)",
                   {"q = heads(linear(norm(h), mix, hidden), 2)", "when layer < 2: o = attend(q, q, q, scale: 1)",
                    "when layer >= 2: o = attend(q, from: 1, scale: 1)", "h + merge(o)"}},
                  {"kind()", {"if(layer < 2, 'own', 'shared')"}}});
  ModelSpec spec = resolvedTiny(family);
  EXPECT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(nodesOf(spec.graph.kinds[1], "kv_append").size(), 0u);
  std::vector<std::string> states;
  for (const GraphNode &call : nodesOf(spec.graph.step, "call"))
    for (int operand : call.operands)
      if (const GraphValue &value = spec.graph.step.values[static_cast<size_t>(operand)];
          value.kind == GraphValue::Kind::State)
        states.push_back(value.name);
  EXPECT_EQ(states, (Ops{"layers.0.kv", "layers.1.kv", "layers.1.kv", "layers.1.kv"}));
  family["blocks"]["layer(h)"][2] = "when layer >= 2: o = attend(q, from: 3, scale: 1)";
  EXPECT_NE(tinyError(family).find("layer 3 has no state 'kv' to read"), std::string::npos) << "not yet";
}

TEST(Wiring, StatesOfOneNameAreOneState) {
  Json family = withBlocks({{"layer(h)",
                             {"x = linear(norm(h), mix, hidden)", "q = heads(x, 2)",
                              "h + merge(attend(q, q, q, scale: 1)) + window_pool(x, x, 2, state: 'kv')"}}});
  EXPECT_NE(tinyError(family).find("state 'kv' of a layer is used as two different ones"), std::string::npos)
      << tinyError(family);
}

TEST(Wiring, RopesAreTablesOfTheStep) {
  Json family = withBlocks({{"layer(h)", {"merge(rope(rope(heads(h, 2), 'near'), 'far')) + h"}}});
  family["config"]["ropes"]["near"] = {{"channels", 4}, {"default_theta", 10000}};
  family["config"]["ropes"]["far"] = {{"channels", 2}, {"default_theta", 500}};
  family["config"]["ropes"]["unused"] = {{"channels", 4}, {"default_theta", 5}};
  ModelSpec spec = resolvedTiny(family);
  EXPECT_EQ(nodesOf(spec.graph.step, "rope_table").size(), 2u) << "one for all layers";
  EXPECT_EQ(ropesOf(spec), (Ops{"near", "near", "near", "near"})) << "the first of a layer";
  EXPECT_EQ(spec.ropes.count("unused"), 0u);
  EXPECT_EQ(spec.ropes["far"].frequencies.size(), 1u);
}

TEST(Wiring, MessagesNameBlocksAndStatements) {
  EXPECT_EQ(errorOfBlocks({{"layer(h)", {"h + part(h)"}}, {"part(x)", {"x = norm(x)", "heads(x, 3)"}}}),
            "layer 0: layer: h + part(h): part: heads(x, 3): heads: 'count' is 3, which does not divide 8 channels");
  EXPECT_EQ(layerError({"h + linear(h, mix, 6)"}),
            "layer 0: layer: h + linear(h, mix, 6): operator +: one side is 8, the other 6");
  EXPECT_EQ(layerError({"a, b = norm(h)", "a"}), "layer 0: layer: a, b = norm(h): there are 2 names for 1 results");
  EXPECT_EQ(layerError({"when h: h"}), "layer 0: layer: when h: h: the condition is no number or word");
  EXPECT_EQ(layerError({"if(h, h, h)"}), "layer 0: layer: if(h, h, h): the condition of if() is no number or word");
  EXPECT_EQ(layerError({"when layer > 0: h"}),
            "layer 0: block 'layer' gives nothing: its last statement has to be a value");
  EXPECT_EQ(layerError({"3"}), "layer 0: block 'layer' gives something that is no activation");
  EXPECT_EQ(layerError({"h and 1"}), "layer 0: layer: h and 1: operator and does not take an activation and a number");
  EXPECT_EQ(errorOfBlocks({{"kind()", {"3"}}}), "layer 0: block 'kind' gives no word");
  EXPECT_EQ(errorOfBlocks({{"finish(h)", {"select(h)"}}}),
            "block 'finish' gives 8 channels, expected the vocabulary of 16");
}

TEST(Wiring, WrongCallsOfBlocks) {
  auto error = [](const std::string &call) { return errorOfBlocks({{"layer(h)", {call}}, {"part(x, y)", {"x + y"}}}); };
  EXPECT_EQ(error("part(h)"), "layer 0: layer: part(h): block 'part' is called without 'y'");
  EXPECT_EQ(error("part(h, h, h)"), "layer 0: layer: part(h, h, h): block 'part' takes 2 arguments, not 3");
  EXPECT_EQ(error("part(h, z: h)"), "layer 0: layer: part(h, z: h): block 'part' has no 'z'");
  EXPECT_EQ(error("part(h, x: h)"), "layer 0: layer: part(h, x: h): block 'part' is given 'x' twice");
  EXPECT_EQ(errorOfBlocks({{"layer(h, more)", {"h"}}}).substr(0, 50),
            "layer 0: block 'layer' is called without 'more'");
}

TEST(Wiring, WeightsThatAreNotThere) {
  EXPECT_EQ(
      layerError({"h + linear(h, mlp.sideways, hidden)"}),
      "layer 0: layer: h + linear(h, mlp.sideways, hidden): the description of family 'tiny' has no name for weight "
      "'mlp.sideways'");
  EXPECT_EQ(
      layerError({"h + linear(h, 'sideways', hidden)"}),
      "layer 0: layer: h + linear(h, 'sideways', hidden): the description of family 'tiny' has no name for weight "
      "'sideways'");
  EXPECT_EQ(layerError({"h + linear(linear(h, mix, 6), mix, hidden)"}),
            "layer 0: layer: h + linear(linear(h, mix, 6), mix, hidden): weight 'layers.0.mix' is used as [6, 8] and "
            "as [8, 6]");
}

TEST(Wiring, RecursionIsBounded) {
  std::string error = errorOfBlocks({{"layer(h)", {"around(h)"}}, {"around(x)", {"around(x)"}}});
  EXPECT_NE(error.find("block 'around' is nested deeper than 32"), std::string::npos) << error;
}

// Blocks that call the next one twice wire 2^31 times in 31 lines.
TEST(Wiring, WorkIsBounded) {
  Json blocks = {{"layer(h)", {"b0(h)"}}, {"b28(x)", {"x"}}};
  Json growing = {{"layer(h)", {"b0(h)"}}, {"b28(x)", {"silu(x)"}}};
  for (int i = 0; i < 28; ++i) {
    std::string name = "b" + std::to_string(i) + "(x)", next = "b" + std::to_string(i + 1);
    blocks[name] = growing[name] = {"a = " + next + "(x)", next + "(a)"};
  }
  EXPECT_NE(errorOfBlocks(blocks).find("takes more than"), std::string::npos);
  EXPECT_NE(errorOfBlocks(growing).find("more than"), std::string::npos);
}
