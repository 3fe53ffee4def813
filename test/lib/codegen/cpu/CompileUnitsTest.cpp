// Which units are compiled, which are shared, and which come from the cache; the objects are the same in every case.
#include "lib/codegen/cpu/CompileUnits.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace fs = std::filesystem;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// A kernel that stores `value`.
UnitText storing(const std::string &name, int value) {
  return {name, "llvm.func hidden @llmc_kernel(%to: !llvm.ptr) {\n %v = llvm.mlir.constant(" + std::to_string(value) +
                    " : i32) : i32\n llvm.store %v, %to : i32, !llvm.ptr\n llvm.return\n}\n"};
}

UnitObjects compiled(const std::vector<UnitText> &units, const UnitOptions &options = {},
                     const CpuTarget &target = makeX86_64V3()) {
  StatusOr<UnitObjects> result = compileUnits(units, target, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(*result) : UnitObjects();
}

TEST(CompileUnits, EqualOnesAreCompiledOnce) {
  UnitObjects result = compiled({storing("a", 1), storing("b", 2), storing("c", 1)});
  EXPECT_EQ(result.objects.size(), 2u);
  EXPECT_EQ(result.compiled, 2);
  EXPECT_EQ(result.fromCache, 0);
  ASSERT_EQ(result.symbols.size(), 3u);
  EXPECT_EQ(result.symbols[0], result.symbols[2]);
  EXPECT_NE(result.symbols[0], result.symbols[1]);
  EXPECT_NE(result.objects[0].find(result.symbols[0]), std::string::npos);
}

TEST(CompileUnits, ObjectsDoNotDependOnThreads) {
  std::vector<UnitText> units;
  for (int i = 0; i < 9; ++i)
    units.push_back(storing("unit", i));
  EXPECT_EQ(compiled(units, {.numThreads = 1}).objects, compiled(units, {.numThreads = 5}).objects);
}

TEST(CompileUnits, TheCacheGivesTheSameObjects) {
  test::TemporaryFolder here;
  UnitOptions options{.cacheFolder = here / "kernels"};
  const std::vector<UnitText> units = {storing("a", 1), storing("b", 2)};
  std::vector<std::string> expected = compiled(units).objects;
  EXPECT_EQ(compiled(units, options).compiled, 2);

  UnitObjects second = compiled({storing("a", 1), storing("b", 2), storing("c", 3)}, options);
  EXPECT_EQ(second.fromCache, 2);
  EXPECT_EQ(second.compiled, 1);
  second.objects.pop_back();
  EXPECT_EQ(second.objects, expected);

  // Another target is another object.
  UnitObjects other = compiled(units, options, makeX86_64V4());
  EXPECT_EQ(other.fromCache, 0);
  EXPECT_NE(other.symbols, compiled(units).symbols);

  // What is damaged is compiled and written again.
  for (const auto &entry : fs::directory_iterator(options.cacheFolder))
    std::ofstream(entry.path()) << "damaged";
  UnitObjects third = compiled(units, options);
  EXPECT_EQ(third.compiled, 2);
  EXPECT_EQ(third.objects, expected);
  EXPECT_EQ(compiled(units, options).fromCache, 2);
}

TEST(CompileUnits, GoesOnWhereNothingCanBeKept) {
  UnitObjects result = compiled({storing("a", 1)}, {.cacheFolder = "/proc/no-such-folder"});
  EXPECT_EQ(result.compiled, 1);
  ASSERT_FALSE(result.cacheFault.ok());
  EXPECT_NE(result.cacheFault.message().find("/proc/no-such-folder: cannot make the folder for kernels: "),
            std::string::npos);
}

TEST(CompileUnits, NamesTheUnitThatIsNoMlir) {
  StatusOr<UnitObjects> result = compileUnits({{"full.3", "llvm.func @f("}}, makeX86_64V3(), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message().find("the emitted unit full.3 does not parse: "), 0u)
      << result.status().message();
}

} // namespace
