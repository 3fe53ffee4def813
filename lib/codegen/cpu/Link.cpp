// Runs ld.lld on temporary files.
#include "lib/codegen/cpu/Link.h"
#include "runtime/support/File.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llmc;

namespace {

constexpr uint64_t kMaxSharedObjectBytes = 1ull << 30;

class TemporaryFolder {
public:
  TemporaryFolder() { failed = static_cast<bool>(llvm::sys::fs::createUniqueDirectory("llmc-link", path)); }
  ~TemporaryFolder() {
    if (!failed)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const llvm::Twine &name) const {
    llvm::SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return std::string(full);
  }
  bool failed = true;

private:
  llvm::SmallString<128> path;
};

Status writeFile(const std::string &path, llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return Status::error("cannot write " + path + ": " + code.message());
  stream << bytes;
  stream.close();
  if (stream.has_error()) {
    stream.clear_error();
    return Status::error("cannot write " + path + ": the disk may be full");
  }
  return Status();
}

} // namespace

StatusOr<std::string> llmc::cpu::linkSharedObject(const std::vector<std::string> &objects,
                                                  const std::vector<SymbolAlias> &aliases, const std::string &linker) {
  std::string program = linker.empty() ? LLMC_LINKER : linker;
  TemporaryFolder folder;
  if (folder.failed)
    return Status::error("cannot make a temporary folder for the linker");
  std::string output = folder.file("step.so"), messages = folder.file("messages");
  // No build id and no paths: the same objects give the same bytes.
  std::vector<std::string> arguments = {"ld.lld",  "-shared", "--build-id=none", "--hash-style=gnu", "-znoexecstack",
                                        "-zrelro", "-znow",   "--gc-sections",   "-Bsymbolic",       "-o",
                                        output};
  for (const SymbolAlias &alias : aliases)
    arguments.push_back("--defsym=" + alias.name + "=" + alias.symbol);
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(folder.file("unit" + llvm::Twine(i) + ".o"));
    LLMC_RETURN_IF_ERROR(writeFile(arguments.back(), objects[i]));
  }
  // The linker maps its output: where a disk or a limit has no room for that, it dies of a signal. So room is made
  // first.
  size_t room = 64 << 10;
  for (const std::string &object : objects)
    room += object.size();
  LLMC_RETURN_IF_ERROR(writeFile(output, std::string(room, '\0')));
  std::vector<llvm::StringRef> views(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(messages),
                                                llvm::StringRef(messages)};
  std::string error;
  int status = llvm::sys::ExecuteAndWait(program, views, std::nullopt, redirects, /*SecondsToWait=*/60,
                                         /*MemoryLimit=*/0, &error);
  if (status != 0) {
    StatusOr<std::string> said = readFile(messages, 1 << 16);
    return Status::error("linking with " + program + " failed with status " + std::to_string(status) + ": " + error +
                         (said.ok() ? said->substr(0, said->find('\n')) : ""));
  }
  return readFile(output, kMaxSharedObjectBytes);
}
