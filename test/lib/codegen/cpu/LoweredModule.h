// A module of the llm dialect, written as text, run three ways on the same random weights: by its interpreter, by the
// interpreter of the tasks that the phases make of it, and compiled. Weights are random packed numbers; the llm
// interpreter sees what they stand for.
#pragma once
#include "lib/reference/Matrix.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <map>
#include <memory>

namespace llmc::test {

struct LoweredOptions {
  std::string weights = "f32"; // as of llmc compile
  uint64_t seed = 1;
  int64_t maxTokens = 64;
};

/// The first result of @step is compared; it has a row for every row of the batch.
class LoweredModule {
public:
  /// `body` is what stands in the module. Fails the test on an error.
  explicit LoweredModule(const std::string &body, const LoweredOptions &options = {});
  ~LoweredModule();

  /// Whole sequences of so many tokens, each from its beginning.
  reference::Matrix interpret(const std::vector<int> &lengths);
  reference::Matrix interpretTasks(const std::vector<int> &lengths);
  reference::Matrix runCompiled(const std::vector<int> &lengths, const Way &way, int workers);

  /// The module after the phases.
  const std::string &lowered() const;

private:
  struct Weight {
    std::vector<uint8_t> packed;
    reference::Matrix values;
  };
  struct State;
  void lower(const LoweredOptions &options);
  void makeWeights(uint64_t seed);

  std::unique_ptr<State> state;
  std::map<std::string, Weight> weights;
  std::map<std::string, std::unique_ptr<StepProgram>> programs; // by way
};

/// Ways of this host, and one target that it may lack, emulated: what a way changes beside vectors is in few ops.
std::vector<Way> fewWays();

/// All values within `relative` of the largest of their row, or of one where that is smaller.
void expectClose(const reference::Matrix &actual, const reference::Matrix &expected, float relative,
                 const std::string &what);

} // namespace llmc::test
