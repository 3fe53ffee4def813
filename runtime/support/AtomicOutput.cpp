// Temporaries, locks and renames of AtomicOutput.h. A temporary is known to be alive by a lock on it, not by a process
// id: ids are reused, and mean nothing between containers that share a disk.
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/File.h"
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace llmc {

namespace fs = std::filesystem;

struct AtomicOutputState {
  std::string target;    // as the user wrote it, for messages
  std::string temporary; // the sibling
  std::string marker;    // folders only
  bool isFolder = false;
  uint64_t expectedBytes = 0;
  std::atomic<uint64_t> writtenBytes = 0;
  std::atomic<int> openFiles = 0;
  std::atomic<bool> failed = false;
  int lockFd = -1, notesFd = -1;
  bool committed = false;
  // Folders with a key.
  std::string key;
  bool continued = false, discardedOther = false;
  std::vector<std::string> notes;
  std::set<std::string> names; // of the files that were opened

  ~AtomicOutputState();
  Status fail(int error);
  void discard();
};

namespace {

constexpr std::string_view temporaryInfix = ".llmc-tmp-";
// In a folder with a key: that, and a line for each note.
constexpr char notesFile[] = "unfinished";
constexpr uint64_t mostNoteBytes = 64u << 20;

// Every output that is being written; guarded by the mutex.
std::mutex liveMutex;
std::set<AtomicOutputState *> &liveOutputs() {
  static std::set<AtomicOutputState *> live;
  return live;
}

Status cannotWrite(const std::string &target, const std::string &why) {
  return Status::error("cannot write " + target + ": " + why);
}

std::string withoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

std::string parentOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string nameOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void removeTree(const std::string &path) {
  std::error_code ignored; // a leftover is no failure of the output; the next writer tries again
  fs::remove_all(path, ignored);
}

// Locks the temporary at `path`; -1 when somebody alive holds it, or it is gone.
int lockTemporary(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return -1;
  struct stat opened = {}, named = {};
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
      opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
    return fd;
  ::close(fd);
  return -1;
}

// The key and the notes in a folder; empty where there are none. A line without an end was cut.
std::vector<std::string> linesOf(const std::string &folder) {
  std::vector<std::string> lines;
  StatusOr<std::string> text = readFile(folder + "/" + notesFile, mostNoteBytes);
  if (!text.ok())
    return lines;
  for (size_t at = 0, end; (end = text->find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text->substr(at, end - at));
  return lines;
}

// Writes them anew, without what was cut.
Status keepNotes(AtomicOutputState &state) {
  std::string text = state.key + "\n";
  for (const std::string &line : state.notes)
    text += line + "\n";
  const std::string path = state.temporary + "/" + notesFile;
  state.names.insert(notesFile);
  state.notesFd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (state.notesFd < 0 || ::write(state.notesFd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return state.fail(errno);
  return {};
}

void setTemporary(AtomicOutputState &state, std::string path, int lockFd) {
  std::lock_guard lock(liveMutex);
  state.temporary = std::move(path);
  state.lockFd = lockFd;
  liveOutputs().insert(&state);
}

// Removes the temporaries of the target that no living process holds, but for one of the same key.
void takeOrRemoveStale(AtomicOutputState &state) {
  std::string prefix = "." + nameOf(state.target) + std::string(temporaryInfix);
  std::error_code error;
  for (fs::directory_iterator it(parentOf(state.target), error), end; !error && it != end; it.increment(error)) {
    std::string path = it->path().string();
    if (!it->path().filename().string().starts_with(prefix))
      continue;
    int fd = lockTemporary(path);
    if (fd < 0)
      continue;
    std::vector<std::string> lines = linesOf(path);
    if (!state.continued && !state.key.empty() && !lines.empty() && lines.front() == state.key) {
      state.continued = true;
      state.notes.assign(lines.begin() + 1, lines.end());
      setTemporary(state, std::move(path), fd);
      continue;
    }
    state.discardedOther |= !lines.empty();
    removeTree(path);
    ::close(fd);
  }
}

enum class Kind { File, Folder };

// Makes and locks a temporary beside the target. Between making and locking another process may take it for stale and
// remove it; then the lock fails and another name is tried.
Status makeTemporary(AtomicOutputState &state, Kind kind) {
  static std::atomic<uint64_t> counter = 0;
  std::string prefix = parentOf(state.target) + "/." + nameOf(state.target) + std::string(temporaryInfix);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string path = prefix + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    int made = kind == Kind::Folder ? ::mkdir(path.c_str(), 0777)
                                    : ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (made < 0 && errno == EEXIST)
      continue;
    if (made < 0)
      return cannotWrite(state.target, std::strerror(errno));
    if (kind == Kind::File)
      ::close(made);
    int lockFd = lockTemporary(path);
    if (lockFd < 0)
      continue;
    setTemporary(state, std::move(path), lockFd);
    return {};
  }
  return cannotWrite(state.target, "no free temporary name beside it");
}

Status syncPath(const std::string &target, const std::string &path, int flags) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | flags);
  if (fd < 0)
    return cannotWrite(target, std::strerror(errno));
  int result = ::fsync(fd);
  int error = errno;
  ::close(fd);
  // Some file systems cannot flush a folder and say EINVAL; nothing more can be done there.
  return result == 0 || error == EINVAL ? Status() : cannotWrite(target, std::strerror(error));
}

// Flushes files, several at a time: a disk waits for each, and for many as long as for one.
Status syncFiles(const std::string &target, const std::vector<std::string> &paths) {
  constexpr size_t mostThreads = 16;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status result;
  auto work = [&] {
    for (size_t i = next++; i < paths.size(); i = next++)
      if (Status synced = syncPath(target, paths[i], 0); !synced.ok()) {
        std::lock_guard lock(mutex);
        result = std::move(synced);
      }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(mostThreads, paths.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  return result;
}

// Flushes every file and folder under `folder`, and the folder.
Status syncTree(const std::string &target, const std::string &folder) {
  std::error_code error;
  std::vector<std::string> files, folders = {folder};
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    fs::file_status status = it->symlink_status(error);
    if (error)
      break;
    if (fs::is_regular_file(status))
      files.push_back(it->path().string());
    if (fs::is_directory(status))
      folders.push_back(it->path().string());
  }
  if (error)
    return cannotWrite(target, error.message());
  LLMC_RETURN_IF_ERROR(syncFiles(target, files));
  for (const std::string &path : folders)
    LLMC_RETURN_IF_ERROR(syncPath(target, path, O_DIRECTORY));
  return {};
}

// Whether a folder at `target` may be replaced; nothing there is fine too.
Status checkReplaceable(const std::string &target, const std::string &marker) {
  struct stat st = {};
  if (::lstat(target.c_str(), &st) != 0)
    return errno == ENOENT ? Status() : cannotWrite(target, std::strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return cannotWrite(target, "a file of that name exists; remove it or choose another output");
  std::error_code error;
  bool empty = fs::is_empty(target, error);
  if (error)
    return cannotWrite(target, error.message());
  if (!empty && !fileExists(target + "/" + marker))
    return cannotWrite(target, "the folder exists and has no '" + marker +
                                   "', so it is not ours to replace; remove it or choose another output");
  return {};
}

// Swaps the finished folder with the one at the target, or moves it there; a reader sees the old one or the new one.
// What was replaced lies at the temporary name afterwards.
Status renameFolder(const AtomicOutputState &state) {
  const char *from = state.temporary.c_str(), *to = state.target.c_str();
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
      return {};
    if (errno == EEXIST) {
      LLMC_RETURN_IF_ERROR(checkReplaceable(state.target, state.marker)); // it may have appeared since
      if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return {};
      if (errno == ENOENT)
        continue;
    }
    if (errno != EINVAL && errno != ENOSYS)
      return cannotWrite(state.target, std::strerror(errno));
    // A file system without renameat2: a moment without a target cannot be avoided, a moment with half of one can.
    std::string old = state.temporary + "-old";
    bool moved = ::rename(to, old.c_str()) == 0;
    if (::rename(from, to) == 0) {
      removeTree(old);
      return {};
    }
    int error = errno;
    if (moved && ::rename(old.c_str(), to) != 0)
      return cannotWrite(state.target, std::string(std::strerror(error)) + "; the old one is kept as " + old);
    return cannotWrite(state.target, std::strerror(error));
  }
  return cannotWrite(state.target, "other writers keep replacing it");
}

StatusOr<std::shared_ptr<AtomicOutputState>> begin(const std::string &path, const std::string &marker,
                                                   uint64_t expectedBytes, Kind kind, const std::string &key = "") {
  auto state = std::make_shared<AtomicOutputState>();
  state->target = withoutTrailingSlashes(path);
  state->marker = marker;
  state->isFolder = kind == Kind::Folder;
  state->expectedBytes = expectedBytes;
  state->key = key;
  std::string name = nameOf(state->target);
  if (name.empty() || name == "." || name == ".." || name == "/" || path.find('\0') != std::string::npos)
    return cannotWrite(path.c_str(), "not the name of a file or folder");
  if (!isFolder(parentOf(state->target)))
    return cannotWrite(path, "there is no folder '" + parentOf(state->target) + "'");
  if (kind == Kind::Folder)
    LLMC_RETURN_IF_ERROR(checkReplaceable(state->target, marker));
  takeOrRemoveStale(*state);
  if (!state->continued)
    LLMC_RETURN_IF_ERROR(makeTemporary(*state, kind));
  if (!key.empty())
    LLMC_RETURN_IF_ERROR(keepNotes(*state));
  return state;
}

Status notCommittable(const AtomicOutputState &state) {
  if (state.committed)
    return cannotWrite(state.target, "it was already committed");
  if (state.failed)
    return cannotWrite(state.target, "an earlier write failed; nothing left behind");
  if (state.openFiles != 0)
    return cannotWrite(state.target, std::to_string(state.openFiles) + " of its files are still open");
  return {};
}

// Files of a continued folder that its second writer has no use for.
Status removeForgotten(const AtomicOutputState &state) {
  std::error_code error;
  if (!state.continued)
    return {};
  std::vector<fs::path> forgotten;
  for (fs::recursive_directory_iterator it(state.temporary, error), end; !error && it != end; it.increment(error))
    if (!it->is_directory() && !state.names.count(it->path().lexically_relative(state.temporary).string()))
      forgotten.push_back(it->path());
  for (const fs::path &path : forgotten)
    if (!error)
      fs::remove(path, error);
  return error ? cannotWrite(state.target, error.message()) : Status();
}

// A name inside the folder: relative, without '..'.
bool staysInside(const std::string &name) {
  if (name.empty() || name.front() == '/' || name.back() == '/' || name.find('\0') != std::string::npos)
    return false;
  for (const fs::path &part : fs::path(name))
    if (part == ".." || part == ".")
      return false;
  return true;
}

} // namespace

AtomicOutputState::~AtomicOutputState() {
  discard();
  for (int fd : {notesFd, lockFd})
    if (fd >= 0)
      ::close(fd);
}

// Removes the temporary: an unfinished one, or the artifact that was replaced.
void AtomicOutputState::discard() {
  if (temporary.empty())
    return;
  std::lock_guard lock(liveMutex);
  removeTree(temporary);
  liveOutputs().erase(this);
  temporary.clear();
}

// The first failed write decides the result: everything is removed at once, so that the message may say so.
Status AtomicOutputState::fail(int error) {
  failed = true;
  removeTree(temporary);
  std::string why = std::strerror(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    why = error == EFBIG ? "file too large" : error == EDQUOT ? "quota reached" : "no space";
    why += " after " + std::to_string(writtenBytes);
    why += expectedBytes ? " of " + std::to_string(expectedBytes) + " bytes" : " bytes";
  }
  return cannotWrite(target, why + "; nothing left behind");
}

OutputFile::OutputFile(std::shared_ptr<AtomicOutputState> state, std::string path, int fd)
    : state_(std::move(state)), path_(std::move(path)), fd_(fd) {
  ++state_->openFiles;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : state_(std::move(other.state_)), path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)),
      end_(other.end_), flushed_(other.flushed_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  --state_->openFiles;
  state_->failed = true; // given up midway: the result would not be whole
}

Status OutputFile::append(std::span<const uint8_t> bytes) {
  LLMC_RETURN_IF_ERROR(writeAt(end_, bytes));
  end_ += bytes.size();
  // Advice: a disk that begins early is not waited for at the end, and memory is not full of what it has yet to write.
  constexpr uint64_t flushBytes = 8u << 20;
  if (end_ - flushed_ >= flushBytes) {
    ::sync_file_range(fd_, static_cast<off_t>(flushed_), static_cast<off_t>(end_ - flushed_), SYNC_FILE_RANGE_WRITE);
    flushed_ = end_;
  }
  return {};
}

Status OutputFile::append(std::string_view text) {
  return append(std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

Status OutputFile::writeAt(uint64_t offset, std::span<const uint8_t> bytes) {
  if (fd_ < 0 || state_->failed)
    return cannotWrite(state_->target, "an earlier write failed; nothing left behind");
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return state_->fail(errno);
    done += static_cast<size_t>(n);
    state_->writtenBytes += static_cast<uint64_t>(n);
  }
  return {};
}

Status OutputFile::close() {
  if (fd_ < 0)
    return cannotWrite(state_->target, "its file is already closed");
  // Disks that allocate late report a full one when they flush, not at the write. A folder flushes its files together,
  // at the end; the disk may begin.
  int error = 0;
  if (!state_->isFolder)
    error = ::fsync(fd_) == 0 ? 0 : errno;
  else
    ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
  if (::close(std::exchange(fd_, -1)) != 0 && error == 0)
    error = errno;
  --state_->openFiles;
  return error == 0 || error == EINVAL ? Status() : state_->fail(error);
}

StatusOr<AtomicFolder> AtomicFolder::create(const std::string &target, const std::string &marker,
                                            uint64_t expectedBytes, const std::string &key) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<AtomicOutputState> state,
                        begin(target, marker, expectedBytes, Kind::Folder, key));
  return AtomicFolder(std::move(state));
}

AtomicFolder::~AtomicFolder() {
  if (state_ && !state_->committed) {
    state_->failed = true; // files that are still open somewhere must not write on
    state_->discard();
  }
}

const std::string &AtomicFolder::temporaryPath() const { return state_->temporary; }

StatusOr<OutputFile> AtomicFolder::openFile(const std::string &name) {
  if (!staysInside(name))
    return cannotWrite(state_->target, "'" + std::string(name.c_str()) + "' is not a name inside it");
  if (state_->committed || state_->failed)
    return notCommittable(*state_);
  std::string path = state_->temporary + "/" + name;
  std::error_code error;
  fs::create_directories(parentOf(path), error);
  if (error)
    return state_->fail(error.value());
  if (!state_->names.insert(name).second)
    return cannotWrite(state_->target, "'" + name + "' is written twice");
  int fd =
      ::open(path.c_str(), O_CREAT | (state_->continued ? O_TRUNC : O_EXCL) | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0)
    return state_->fail(errno);
  return OutputFile(state_, std::move(path), fd);
}

StatusOr<OutputFile> AtomicFolder::continueFile(const std::string &name, uint64_t bytes) {
  if (!state_->continued || !staysInside(name) || !state_->names.insert(name).second)
    return cannotWrite(state_->target, "'" + std::string(name.c_str()) + "' is no file to continue");
  std::string path = state_->temporary + "/" + name;
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return state_->fail(errno);
  OutputFile file(state_, std::move(path), fd);
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return state_->fail(errno);
  file.end_ = bytes;
  state_->writtenBytes += bytes;
  return file;
}

bool AtomicFolder::continued() const { return state_->continued; }
bool AtomicFolder::discardedOther() const { return state_->discardedOther; }
const std::vector<std::string> &AtomicFolder::notes() const { return state_->notes; }

Status AtomicFolder::note(const std::string &line) {
  const std::string text = line + "\n";
  if (::write(state_->notesFd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return state_->fail(errno);
  return {};
}

Status AtomicFolder::writeFile(const std::string &name, std::span<const uint8_t> bytes) {
  LLMC_ASSIGN_OR_RETURN(OutputFile file, openFile(name));
  LLMC_RETURN_IF_ERROR(file.append(bytes));
  return file.close();
}

Status AtomicFolder::writeFile(const std::string &name, std::string_view text) {
  return writeFile(name, std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

Status AtomicFolder::commit() {
  LLMC_RETURN_IF_ERROR(notCommittable(*state_));
  LLMC_RETURN_IF_ERROR(removeForgotten(*state_));
  LLMC_RETURN_IF_ERROR(syncTree(state_->target, state_->temporary));
  if (!state_->key.empty()) // only now: a large folder is flushed for a while
    removeTree(state_->temporary + "/" + notesFile);
  LLMC_RETURN_IF_ERROR(renameFolder(*state_));
  state_->committed = true;
  Status synced = syncPath(state_->target, parentOf(state_->target), O_DIRECTORY);
  state_->discard();
  return synced;
}

StatusOr<AtomicFile> AtomicFile::create(const std::string &target, uint64_t expectedBytes) {
  struct stat st = {};
  if (::stat(target.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return cannotWrite(target, "it exists and is not a regular file");
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<AtomicOutputState> state, begin(target, "", expectedBytes, Kind::File));
  int fd = ::open(state->temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return state->fail(errno);
  std::string path = state->temporary;
  return AtomicFile(state, OutputFile(state, std::move(path), fd));
}

AtomicFile::~AtomicFile() {
  if (state_ && !state_->committed)
    state_->discard();
}

Status AtomicFile::commit() {
  if (!state_->failed && !state_->committed)
    LLMC_RETURN_IF_ERROR(file_.close());
  LLMC_RETURN_IF_ERROR(notCommittable(*state_));
  if (::rename(state_->temporary.c_str(), state_->target.c_str()) != 0)
    return state_->fail(errno);
  state_->committed = true;
  Status synced = syncPath(state_->target, parentOf(state_->target), O_DIRECTORY);
  state_->discard();
  return synced;
}

Status writeFileAtomically(const std::string &target, std::string_view text) {
  LLMC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(target, text.size()));
  LLMC_RETURN_IF_ERROR(file.file().append(text));
  return file.commit();
}

void removeUnfinishedOutputs() {
  std::lock_guard lock(liveMutex);
  for (AtomicOutputState *output : liveOutputs()) {
    output->failed = true;
    removeTree(output->temporary);
  }
}

} // namespace llmc
