// The dispatch manifest: what is written is read, and what is damaged is refused with its place.
#include "runtime/artifact/Dispatch.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

DispatchManifest example() {
  KernelEntry kernel;
  kernel.name = "full_attention.0";
  kernel.shape = "quantized_dot";
  kernel.instruction = "tdpbssd+vpdpbusd";
  kernel.reason = "i4 weights";
  kernel.kernelRows = 4;
  kernel.rowBlock = 128;
  kernel.tileRows = 16;
  kernel.layers = {0, 1, 5};
  kernel.cost.products = 1105920;
  kernel.cost.passes = 2;
  kernel.cost.otherOperations = 6924;
  kernel.cost.weightBytes = 347904;
  kernel.cost.rowBytes = 8448;
  KernelEntry head;
  head.name = "step.2";
  head.shape = "attend";
  head.instruction = "fma";
  head.layers = {-1};
  head.cost.logitRows = true;
  head.cost.positionProducts = 2304;
  head.cost.positionBytes = 768;
  head.cost.window = 512;
  return {{kernel, head}, {{"head", "i4", "stored as Q4_0", {49152, 576}}, {"norm", "plain", "a vector", {576}}}};
}

TEST(Dispatch, RoundTrip) {
  std::string text = formatDispatch(example());
  StatusOr<DispatchManifest> read = parseDispatch(text, "dispatch.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(formatDispatch(*read), text);
  ASSERT_EQ(read->kernels.size(), 2u);
  EXPECT_EQ(read->kernels[0].layers, (std::vector<int32_t>{0, 1, 5}));
  EXPECT_EQ(read->kernels[0].cost.products, 1105920);
  EXPECT_TRUE(read->kernels[1].cost.logitRows);
  EXPECT_EQ(read->kernels[1].cost.window, 512);
  ASSERT_EQ(read->weights.size(), 2u);
  EXPECT_EQ(read->weights[0].form, "i4");
  EXPECT_EQ(read->weights[1].shape, (std::vector<int64_t>{576}));
}

TEST(Dispatch, MatrixTilesServeMoreThanHalfTheirRows) {
  KernelEntry kernel = example().kernels[0];
  EXPECT_EQ(kernel.instructionFor(8), "vpdpbusd");
  EXPECT_EQ(kernel.instructionFor(9), "tdpbssd");
  kernel.tileRows = 0;
  kernel.instruction = "vpsignb+vpmaddubsw"; // both, in turn
  EXPECT_EQ(kernel.instructionFor(512), "vpsignb+vpmaddubsw");
}

std::string refusal(const std::string &from, const std::string &to) {
  std::string text = formatDispatch(example());
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  StatusOr<DispatchManifest> read = parseDispatch(text, "dispatch.json");
  return read.ok() ? "" : read.status().message();
}

TEST(Dispatch, RefusesWhatIsNoCount) {
  EXPECT_EQ(refusal("\"rows\": 4", "\"rows\": -4"), "dispatch.json: /0/rows is -4, expected an integer from 0 to 9007199254740992");
  EXPECT_NE(refusal("1105920", "1e300").find("/0/cost/products"), std::string::npos);
  EXPECT_NE(refusal("1105920", "\"many\"").find("/0/cost/products"), std::string::npos);
  EXPECT_NE(refusal("\"layers\": [", "\"layers\": [-2,").find("/0/layers/0"), std::string::npos);
  EXPECT_NE(refusal("\"rows\": \"rows\"", "\"rows\": \"columns\"").find("expected rows or logit_rows"),
            std::string::npos);
}

TEST(Dispatch, RefusesWhatIsMissing) {
  EXPECT_EQ(refusal("\"cost\":", "\"price\":"), "dispatch.json: /0/cost is missing; compile the model again");
  EXPECT_EQ(refusal("\"kernel\": \"attend:fma\"", "\"colonel\": 0"),
            "dispatch.json: /1/kernel is missing; compile the model again");
  StatusOr<DispatchManifest> list = parseDispatch("{}", "dispatch.json");
  ASSERT_FALSE(list.ok());
  EXPECT_NE(list.status().message().find("expected a list"), std::string::npos);
  EXPECT_FALSE(parseDispatch("[1, null]", "dispatch.json").ok());
}

} // namespace
} // namespace llmc
