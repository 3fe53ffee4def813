// Times and rooflines of kernels, by hand.
#include "tools/llmc/KernelReport.h"
#include <gtest/gtest.h>
#include <thread>

namespace llmc {
namespace {

DispatchManifest twoKernels() {
  KernelEntry product;
  product.name = "layer.0";
  product.shape = "quantized_dot";
  product.instruction = "tdpbssd+vpdpbusd";
  product.tileRows = 16;
  product.layers = {0, 1};
  product.cost.products = 1000;
  product.cost.passes = 2;
  product.cost.weightBytes = 4000;
  KernelEntry rows;
  rows.name = "step.0";
  rows.shape = "rows";
  rows.instruction = "vector";
  rows.layers = {-1};
  rows.cost.otherOperations = 10;
  rows.cost.rowBytes = 400;
  return {{product, rows}, {}};
}

KernelLimits limits() {
  KernelLimits limits;
  limits.weightRead = 1e6;
  limits.caches = {{1000, 4e6}};
  limits.instructions = {{"vpdpbusd", 1e6}, {"tdpbssd", 1e7}};
  limits.vectorOperations = 1e5;
  return limits;
}

const Json &rowOf(const Json &report, size_t index) { return report["kernels"][index]; }

TEST(KernelReport, FewRowsAreBoundByReading) {
  // Two launches of 4000 bytes at 1e6 a second: 8 ms, measured 16 of 20.
  StepTimes times = {0.020, {{0, 0.016, 0.25}, {1, 0.002, 0}}};
  Json report = kernelReport(twoKernels(), times, decodeShape(1, 9), limits());
  const Json &product = rowOf(report, 0);
  EXPECT_EQ(product["kernel"], "layer.0");
  EXPECT_EQ(product["instruction"], "vpdpbusd");
  EXPECT_EQ(product["launches"], 2);
  EXPECT_EQ(product["limit"], "read");
  EXPECT_NEAR(product["fraction"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(product["share"].get<double>(), 0.8, 1e-9);
  EXPECT_NEAR(product["waiting"].get<double>(), 0.25, 1e-9);
  EXPECT_EQ(product["operations"], 2000.0);
  EXPECT_EQ(product["bytes"], 8000.0);
  // 400 bytes in the cache at 4e6 take 100 us, 10 operations at 1e5 as much: the first limit stays.
  EXPECT_EQ(rowOf(report, 1)["limit"], "activations");
  EXPECT_NEAR(rowOf(report, 1)["fraction"].get<double>(), 0.05, 1e-9);
}

TEST(KernelReport, ManyRowsAreBoundByTheInstructionThatServesThem) {
  StepTimes times = {0.5, {{0, 0.4, 0}}};
  Json report = kernelReport(twoKernels(), times, prefillShape(500), limits());
  // 500 rows of 1000 operations in two passes, twice: 2e6 at 1e7 a second.
  EXPECT_EQ(rowOf(report, 0)["instruction"], "tdpbssd");
  EXPECT_EQ(rowOf(report, 0)["limit"], "tdpbssd");
  EXPECT_NEAR(rowOf(report, 0)["fraction"].get<double>(), 0.5, 1e-9);
  std::string text = kernelReportText("prefill", report);
  EXPECT_NE(text.find("prefill, 500 rows: 500.000 ms a step"), std::string::npos) << text;
  EXPECT_NE(text.find("50% of tdpbssd"), std::string::npos) << text;
  EXPECT_NE(text.find("between kernels"), std::string::npos) << text;
}

TEST(KernelReport, ActivationsBeyondTheCachesAreReadAsWeightsAre) {
  EXPECT_EQ(limits().activationRead(1000), 4e6);
  EXPECT_EQ(limits().activationRead(1001), 1e6);
}

// Of a task over all rows.
void launch(void *trace, int32_t worker, int32_t task) {
  StepTrace::launchOfTrace(static_cast<StepTrace *>(trace)->stateOfBlock(-1), worker, task);
}

TEST(KernelReport, ALaunchLastsFromTheFirstStartToTheLastFinish) {
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  StepTrace trace(2, {2}, 1);
  ASSERT_TRUE(trace.begin(**pool, 1, 0));
  (*pool)->run(
      [](void *trace, int32_t worker) {
        launch(trace, worker, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 1 : 20));
        StepTrace::barrierOfTrace(trace, worker);
        launch(trace, worker, 0);
        StepTrace::barrierOfTrace(trace, worker);
      },
      &trace);
  trace.end();
  StepTimes times = stepTimesOf(trace, twoKernels());
  ASSERT_EQ(times.kernels.size(), 1u); // the other one was not launched
  EXPECT_GE(times.kernels[0].seconds, 0.020);
  EXPECT_LE(times.kernels[0].seconds, times.seconds);
  EXPECT_GT(times.kernels[0].waiting, 0.1); // one of two waits for almost all of it
  EXPECT_LT(times.kernels[0].waiting, 0.9);
}

TEST(KernelReport, ABarrierInsideATaskIsPartOfIt) {
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  StepTrace trace(2, {2}, 1);
  ASSERT_TRUE(trace.begin(**pool, 1, 0));
  (*pool)->run(
      [](void *trace, int32_t worker) {
        launch(trace, worker, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 1 : 20));
        StepTrace::barrierOfTrace(trace, worker);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        StepTrace::barrierOfTrace(trace, worker);
        launch(trace, worker, 1);
        StepTrace::barrierOfTrace(trace, worker);
      },
      &trace);
  trace.end();
  ASSERT_EQ(trace.steps()[0].numLaunches, 2u);
  const LaunchSpan &first = trace.launches(trace.steps()[0], 0)[0];
  EXPECT_GE(first.finish - first.start, 25'000'000);
  EXPECT_GE(first.waited, 10'000'000);
  EXPECT_LE(first.waited, first.finish - first.start);
  EXPECT_EQ(trace.launches(trace.steps()[0], 0)[1].waited, 0);
  StepTimes times = stepTimesOf(trace, twoKernels());
  ASSERT_EQ(times.kernels.size(), 2u);
  EXPECT_GE(times.kernels[0].seconds, 0.025);
  EXPECT_GT(times.kernels[0].waiting, 0.1);
}

} // namespace
} // namespace llmc
