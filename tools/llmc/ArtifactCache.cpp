#include "tools/llmc/Compile.h"
#include "runtime/support/File.h"
#include <cstdlib>
namespace llmc {
StatusOr<std::string> artifactFor(const std::string &path, const CompileOptions &options) {
  if (fileExists(path + "/manifest.json")) return path;
  char t[] = "/tmp/llmc-tmp-XXXXXX";
  std::string out = std::string(mkdtemp(t)) + "/a";
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(path, options.models));
  LLMC_RETURN_IF_ERROR(compileModel(model, options, out));
  return out;
}
}
