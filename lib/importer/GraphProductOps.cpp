// Functions with matrices: linear layers, and experts with their router.
#include "lib/importer/OpCall.h"

namespace llmc {
namespace {

using Result = StatusOr<Operand>;

Result linear(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t out, c.integer("out", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {out, c.value(x).channels}));
  LLMC_ASSIGN_OR_RETURN(int bias, c.bias("weight", {out}));
  return Operand::ofRows(c.one("linear", {x, weight, bias}, {0, out}));
}

Result headLinear(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.headed("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t out, c.integer("out", {}, 1));
  RowShape shape = c.shapeOf(x);
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {shape.heads, out, shape.channels}));
  return Operand::ofRows(c.one("head_linear", {x, weight}, {shape.heads, out}));
}

Result router(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.flat("x"));
  LLMC_ASSIGN_OR_RETURN(int64_t chosen, c.integer("top_k", {}, 1));
  LLMC_ASSIGN_OR_RETURN(std::string scoring,
                        c.word("scoring", "softmax", {"softmax", "sigmoid", "sqrt_softplus", "none", "sparse_mixer"}));
  LLMC_ASSIGN_OR_RETURN(int64_t groups, c.integer("groups", 1, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t topGroups, c.integer("top_groups", groups, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t groupSum, c.integer("group_sum", 1, 1));
  LLMC_ASSIGN_OR_RETURN(bool normalize, c.flag("normalize"));
  LLMC_ASSIGN_OR_RETURN(double eps, c.number("eps", 0.0));
  LLMC_ASSIGN_OR_RETURN(double scale, c.number("scale", 1.0));
  LLMC_ASSIGN_OR_RETURN(double jitter, c.number("jitter", 0.0));
  int64_t experts = c.value(x).channels;
  if (experts % groups != 0 || topGroups > groups || chosen > experts / groups * topGroups)
    return c.fail("top_k", "is " + std::to_string(chosen) + " of " + std::to_string(experts) + " experts in " +
                               std::to_string(topGroups) + " of " + std::to_string(groups) + " groups");
  int bias = -1;
  if (c.hasWeight("bias")) {
    LLMC_ASSIGN_OR_RETURN(bias, c.weight("bias", {experts}));
  }
  int given = -1;
  if (c.has("chosen")) {
    LLMC_ASSIGN_OR_RETURN(given, c.flat("chosen"));
    if (c.value(given).channels != chosen || bias >= 0 || groups != 1 || scoring == "sparse_mixer")
      return c.fail("chosen", "is " + c.print(given) + ", expected " + std::to_string(chosen) +
                                  " experts without bias, groups and sparse_mixer");
  }
  Attributes attributes = {{"scoring", scoring},      {"top_k", chosen},       {"groups", groups},
                           {"top_groups", topGroups}, {"group_sum", groupSum}, {"normalize", normalize},
                           {"norm_eps", eps},         {"scale", scale},        {"jitter", jitter}};
  Operand both;
  both.kind = Operand::Kind::Several;
  RowShape shape = {0, chosen};
  for (int result : c.scope.emit(c.node("router", {x, bias, given}, attributes, true), {shape, shape}))
    both.several.push_back(Operand::ofRows(result));
  return both;
}

Result expertLinear(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.rows("x"));
  LLMC_ASSIGN_OR_RETURN(int chosen, c.flat("chosen"));
  if (c.value(x).heads != 0 && c.value(x).heads != c.value(chosen).channels)
    return c.fail("x", "is " + c.print(x) + ", but " + c.print(chosen) + " experts are chosen");
  LLMC_ASSIGN_OR_RETURN(int64_t experts, c.integer("experts", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t out, c.integer("out", {}, 1));
  LLMC_ASSIGN_OR_RETURN(int weight, c.weight("weight", {experts, out, c.value(x).channels}));
  LLMC_ASSIGN_OR_RETURN(int bias, c.bias("weight", {experts, out}));
  return Operand::ofRows(c.one("expert_linear", {x, weight, chosen, bias}, {c.value(chosen).channels, out}));
}

Result combine(OpCall &c) {
  LLMC_ASSIGN_OR_RETURN(int x, c.headed("x"));
  LLMC_ASSIGN_OR_RETURN(int weights, c.flat("weights"));
  if (c.value(weights).channels != c.value(x).heads)
    return c.fail("weights", "are " + std::to_string(c.value(weights).channels) + " for " +
                                 std::to_string(c.value(x).heads) + " slots");
  return Operand::ofRows(c.one("combine", {x, weights}, {0, c.value(x).channels}));
}

} // namespace

void addProductFunctions(FunctionTable &table) {
  table.insert({
      {"linear", {{"x", "weight", "out", "bias?"}, linear}},
      {"head_linear", {{"x", "weight", "out"}, headLinear}},
      {"router",
       {{"x", "top_k", "scoring?", "bias?", "groups?", "top_groups?", "group_sum?", "normalize?", "eps?", "scale?",
         "jitter?", "chosen?"},
        router}},
      {"expert_linear", {{"x", "weight", "experts", "out", "chosen", "bias?"}, expertLinear}},
      {"combine", {{"x", "weights"}, combine}},
  });
}

} // namespace llmc
