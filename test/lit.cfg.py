# How lit runs the IR tests: every .mlir under test/ and the checks of test/meta.
import os
import shutil

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "corpus"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.llmc_build, "test")
path = [os.path.join(config.llmc_build, "bin"), config.llvm_tools, config.environment["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
# What tests compile stays out of the user's cache; they share kernels.
config.environment["LLMC_CACHE"] = os.path.join(config.llmc_build, "test", "cache")
config.substitutions.append(("%source_root", config.llmc_source))
config.substitutions.append(("%python", config.python))

# A real model, where tools/quickstart has fetched it.
smollm2 = os.path.join(config.llmc_build, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
config.substitutions.append(("%smollm2", smollm2))
if os.path.exists(smollm2):
    config.available_features.add("smollm2")
if shutil.which("mpirun"):
    config.available_features.add("mpirun")
    config.environment.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"})
