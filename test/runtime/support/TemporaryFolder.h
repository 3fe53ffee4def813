// A folder of its own for a test that touches the disk; gone when the test ends.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace llmc::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "llmc-test-XXXXXX").string();
    if (char *made = ::mkdtemp(name.data()))
      path_ = made;
    EXPECT_FALSE(path_.empty()) << "no temporary folder";
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored; // the test is over, and said what it had to say
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string &path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Writes a file, and the folders before it. Returns its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::filesystem::path file(*this / name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file.string();
  }
  // Names in the folder, hidden ones included.
  size_t entries() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(path_))
      ++n;
    return n;
  }

private:
  std::string path_;
};

} // namespace llmc::test
