// StepTrace on the fake step program: three tasks of which two end at a barrier. And its file for Perfetto.
#include "runtime/engine/StepTrace.h"
#include "runtime/engine/ChromeTrace.h"
#include "runtime/engine/Engine.h"
#include "runtime/support/Json.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/engine/CountedAllocation.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

using namespace test;

class StepTraceTest : public ::testing::Test {
protected:
  StepTraceTest() {
    writeFakeArtifact(folder, fakeManifest(), fakeFiles());
    EngineOptions options;
    options.threads = 2;
    StatusOr<std::unique_ptr<Engine>> loaded = Engine::load(folder, options);
    EXPECT_TRUE(loaded.ok());
    if (loaded.ok())
      engine = std::move(*loaded);
  }
  void add(int32_t promptTokens, int32_t newTokens) {
    EXPECT_TRUE(engine->add({std::vector<int32_t>(static_cast<size_t>(promptTokens), 20), newTokens}).ok());
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
  std::unique_ptr<Engine> engine;
};

TEST_F(StepTraceTest, SeesEveryLaunchOfEveryWorkerInOrder) {
  StepTrace trace(2, {3}, 8);
  engine->trace(&trace);
  add(3, 2);
  engine->step();
  engine->step();
  engine->trace(nullptr);
  ASSERT_EQ(trace.steps().size(), 2u);
  EXPECT_EQ(trace.steps()[0].rows, 3);
  EXPECT_EQ(trace.steps()[0].promptRows, 3);
  EXPECT_EQ(trace.steps()[1].rows, 1);
  EXPECT_EQ(trace.steps()[1].promptRows, 0);
  for (const TracedStep &step : trace.steps())
    for (int32_t worker = 0; worker < 2; ++worker) {
      std::span<const LaunchSpan> launches = trace.launches(step, worker);
      ASSERT_EQ(launches.size(), 3u);
      int64_t before = step.start;
      for (int32_t task = 0; task < 3; ++task) {
        const LaunchSpan &span = launches[static_cast<size_t>(task)];
        EXPECT_EQ(span.task, task);
        EXPECT_LE(before, span.start);
        EXPECT_LE(span.start, span.finish);
        EXPECT_LE(span.finish, span.joined);
        before = span.joined;
      }
      EXPECT_LE(before, step.finish);
    }
  // Nobody leaves a barrier before everybody has come.
  std::span<const LaunchSpan> one = trace.launches(trace.steps()[0], 0), two = trace.launches(trace.steps()[0], 1);
  for (size_t launch = 0; launch < 2; ++launch) {
    EXPECT_LE(one[launch].finish, two[launch].joined);
    EXPECT_LE(two[launch].finish, one[launch].joined);
  }
}

TEST_F(StepTraceTest, AFullTraceLetsStepsPass) {
  StepTrace trace(2, {3}, 1);
  engine->trace(&trace);
  add(2, 4);
  while (!engine->idle())
    engine->step();
  EXPECT_TRUE(trace.full());
  EXPECT_EQ(trace.steps().size(), 1u);
}

TEST_F(StepTraceTest, LaunchesBeyondItsRoomAreLeftOut) {
  StepTrace trace(2, {2}, 2);
  engine->trace(&trace);
  add(2, 2);
  engine->step();
  engine->step();
  ASSERT_EQ(trace.steps().size(), 2u);
  for (const TracedStep &step : trace.steps())
    EXPECT_EQ(trace.launches(step, 1).size(), 2u);
}

TEST_F(StepTraceTest, ATracedStepAllocatesNothing) {
  StepTrace trace(2, {3}, 16);
  engine->trace(&trace);
  add(2, 10);
  engine->step();
  int64_t before = allocationCount();
  for (int i = 0; i < 4; ++i)
    engine->step();
  EXPECT_EQ(allocationCount(), before);
  EXPECT_EQ(trace.steps().size(), 5u);
}

TEST_F(StepTraceTest, ChromeShowsALanePerWorker) {
  DispatchManifest manifest;
  for (const char *name : {"first", "second \"quoted\""}) {
    manifest.kernels.emplace_back().name = name;
    manifest.kernels.back().layers = {4};
  }
  StepTrace trace(2, {3}, 2);
  engine->trace(&trace);
  add(3, 2);
  engine->step();
  engine->step();
  StatusOr<Json> root = parseJson(chromeTrace(trace, manifest), "trace");
  ASSERT_TRUE(root.ok()) << root.status().message();
  int tasks[2] = {}, waits[2] = {}, steps = 0;
  for (const Json &event : (*root)["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
    if (event["cat"] == "step") {
      EXPECT_EQ(event["tid"], 2);
      EXPECT_EQ(event["name"], steps++ == 0 ? "prefill, 3 rows" : "decode, 1 row");
      continue;
    }
    int lane = event["tid"];
    ASSERT_LT(lane, 2);
    ++(event["cat"] == "task" ? tasks : waits)[lane];
    if (event["cat"] == "task") {
      int launch = event["args"]["launch"];
      EXPECT_EQ(event["name"], launch == 0 ? "first" : launch == 1 ? "second \"quoted\"" : "task 2");
      EXPECT_EQ(event["args"].contains("layer"), launch < 2);
    }
  }
  for (int lane : {0, 1}) {
    EXPECT_EQ(tasks[lane], 6);
    EXPECT_EQ(waits[lane], 6);
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(traceRoomFor(manifest, fakeManifest()).launches, 2u);
}

} // namespace
} // namespace llmc
