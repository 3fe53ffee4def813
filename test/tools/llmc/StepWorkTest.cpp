// The work of a step, by hand.
#include "tools/llmc/StepWork.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

TEST(StepWork, AProductGrowsWithRowsButReadsItsWeightOnce) {
  KernelCost cost;
  cost.products = 100;
  cost.passes = 2;
  cost.otherOperations = 7;
  cost.weightBytes = 1000;
  cost.rowBytes = 3;
  KernelWork one = workOf(cost, decodeShape(1, 40)), many = workOf(cost, prefillShape(8));
  EXPECT_EQ(one.products, 100);
  EXPECT_EQ(one.instructionOps, 200);
  EXPECT_EQ(many.products, 800);
  EXPECT_EQ(many.instructionOps, 1600);
  EXPECT_EQ(many.otherOperations, 56);
  EXPECT_EQ(one.weightBytes, 1000);
  EXPECT_EQ(many.weightBytes, 1000);
  EXPECT_EQ(many.rowBytes, 24);
}

TEST(StepWork, AStateIsReadAndWrittenOnceForAllRows) {
  KernelCost cost;
  cost.sequenceBytes = 100;
  EXPECT_EQ(workOf(cost, prefillShape(8)).cacheBytes, 100);
  EXPECT_EQ(workOf(cost, decodeShape(3, 40)).cacheBytes, 300);
}

TEST(StepWork, TheHeadSeesOnlyTheRowsThatAreWanted) {
  KernelCost cost;
  cost.logitRows = true;
  cost.products = 100;
  EXPECT_EQ(workOf(cost, prefillShape(8)).products, 100);
  EXPECT_EQ(workOf(cost, decodeShape(3, 40)).products, 300);
}

TEST(StepWork, AttentionSeesWhatCameBefore) {
  KernelCost cost;
  cost.positionProducts = 10;
  cost.positionBytes = 4;
  // 1 + 2 + 3 + 4 positions seen, four of them read.
  EXPECT_EQ(workOf(cost, prefillShape(4)).products, 100);
  EXPECT_EQ(workOf(cost, prefillShape(4)).cacheBytes, 16);
  // Two sequences, each of nine and its new token.
  EXPECT_EQ(workOf(cost, decodeShape(2, 9)).products, 200);
  EXPECT_EQ(workOf(cost, decodeShape(2, 9)).cacheBytes, 80);
}

TEST(StepWork, AWindowHidesTheRest) {
  KernelCost cost;
  cost.positionProducts = 10;
  cost.positionBytes = 4;
  cost.window = 3;
  // 1 + 2 + 3 + 3 seen, all four read.
  EXPECT_EQ(workOf(cost, prefillShape(4)).products, 90);
  EXPECT_EQ(workOf(cost, prefillShape(4)).cacheBytes, 16);
  EXPECT_EQ(workOf(cost, decodeShape(1, 9)).products, 30);
  EXPECT_EQ(workOf(cost, decodeShape(1, 9)).cacheBytes, 12);
  // Two rows at positions 9 and 10 read 7 to 10.
  EXPECT_EQ(workOf(cost, {{{9, 2}}, 1}).cacheBytes, 16);
}

TEST(StepWork, TheCacheIsReadByEveryLayer) {
  DispatchManifest manifest;
  KernelEntry attend;
  attend.cost.positionBytes = 8;
  attend.layers = {0, 1, 2};
  manifest.kernels = {attend, KernelEntry()};
  EXPECT_EQ(cacheBytesOf(manifest, decodeShape(2, 4)), 3 * 2 * 5 * 8);
}

} // namespace
} // namespace llmc
