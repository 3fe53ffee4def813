// llmc-run: runs an artifact on a machine without the compiler.
#include "tools/llmc-run/RunFlags.h"
#include <iostream>

int main(int argc, char **argv) {
  CLI::App app("Runs an artifact that llmc compile wrote.", "llmc-run");
  llmc::RunOptions options;
  app.add_option("ARTIFACT", options.artifact, "the folder that llmc compile wrote")->required();
  llmc::addRunFlags(app, options);
  app.footer("Exit codes: 0 done, 1 the input or the environment is at fault, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return llmc::runArtifact(options, std::cout, std::cerr);
}
