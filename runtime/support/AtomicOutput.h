// Output that appears whole or not at all. Everything is written into a temporary sibling, flushed to the disk and
// renamed over the target; whatever interrupts this leaves the old target, or none. A temporary whose writer died (kill
// -9, power) is removed by the next writer of the same target, or continued by it where both write the same. Two
// writers of one target: each result is whole, the last one stays.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct AtomicOutputState;

// One file being written. append is for one thread; writeAt may be called by several at once, for different ranges.
class OutputFile {
public:
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();
  Status append(std::span<const uint8_t> bytes);
  Status append(std::string_view text);
  Status writeAt(uint64_t offset, std::span<const uint8_t> bytes);
  // Bytes appended so far: the offset of the next append.
  uint64_t size() const { return end_; }
  // Without it the file is part of no result: commit, which flushes to the disk, refuses while a file is open.
  Status close();

private:
  friend class AtomicFolder;
  friend class AtomicFile;
  OutputFile(std::shared_ptr<AtomicOutputState> state, std::string path, int fd);
  std::shared_ptr<AtomicOutputState> state_;
  std::string path_;
  int fd_ = -1;
  uint64_t end_ = 0, flushed_ = 0; // what the disk has been told to write
};

// A folder, such as an artifact.
class AtomicFolder {
public:
  // `target` is the final path. An existing folder is replaced only if it is empty or holds a file named `marker` (so
  // that
  // `-o` with the path of something else destroys nothing). `expectedBytes`, when known, is for the message of a full
  // disk.
  //
  // `key`, one line, says what is written. A temporary whose writer died is continued where that one had the same key:
  // `continued` tells, `notes` are the lines it noted, `continueFile` opens a file of it. Nobody vouches for their
  // bytes. Files that are not opened again are not part of the result.
  static StatusOr<AtomicFolder> create(const std::string &target, const std::string &marker, uint64_t expectedBytes = 0,
                                       const std::string &key = "");
  AtomicFolder(AtomicFolder &&) noexcept = default;
  AtomicFolder &operator=(AtomicFolder &&) = delete;
  // Removes what was written, unless committed.
  ~AtomicFolder();
  // Where the files lie until commit, for tools that write by path (a linker); commit flushes those too.
  const std::string &temporaryPath() const;
  // `name` may hold one or more folders ("rank-0/weights.bin"); they are made.
  StatusOr<OutputFile> openFile(const std::string &name);
  // A file of the continued temporary, cut behind its first `bytes` bytes, which it has; append goes on there.
  StatusOr<OutputFile> continueFile(const std::string &name, uint64_t bytes);
  bool continued() const;
  // Whether a temporary of another key was removed.
  bool discardedOther() const;
  const std::vector<std::string> &notes() const;
  // Keeps a line for who continues this one, should its writer die. Of folders with a key.
  Status note(const std::string &line);
  Status writeFile(const std::string &name, std::span<const uint8_t> bytes);
  Status writeFile(const std::string &name, std::string_view text);
  Status commit();

private:
  explicit AtomicFolder(std::shared_ptr<AtomicOutputState> state) : state_(std::move(state)) {}
  std::shared_ptr<AtomicOutputState> state_;
};

// A single file. An existing file is replaced; a folder or device at `target` is refused.
class AtomicFile {
public:
  static StatusOr<AtomicFile> create(const std::string &target, uint64_t expectedBytes = 0);
  AtomicFile(AtomicFile &&) noexcept = default;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();
  OutputFile &file() { return file_; }
  Status commit();

private:
  AtomicFile(std::shared_ptr<AtomicOutputState> state, OutputFile file)
      : state_(std::move(state)), file_(std::move(file)) {}
  std::shared_ptr<AtomicOutputState> state_;
  OutputFile file_;
};

// Writes all of `text` as `target`, whole or not at all.
Status writeFileAtomically(const std::string &target, std::string_view text);

// Removes every temporary of this process; writing to them fails from now on. For the thread that waits for SIGINT
// (sigwait, not a signal handler: this locks and allocates) before it calls _exit.
void removeUnfinishedOutputs();

} // namespace llmc
