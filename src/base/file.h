#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// Files of the operating system (POSIX). Paths named by the user go to read_file and MappedFile;
// paths named *inside a file* (external data of a model) only to open_contained.

namespace hone {

// Owns an open file; closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A regular file mapped read-only. The mapping shows the file itself: if another process truncates
// the file, later reads fail with SIGBUS.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  static Result<MappedFile> open(const std::filesystem::path& path);
  // The name is for error texts.
  static Result<MappedFile> map(const FileDescriptor& file, std::string_view name);

  // Aligned to a page; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// A full disk, a full quota, and a limit on the size of files (ulimit -f) are errors of
// ErrorCode::limit. A process that wants to survive the last one ignores SIGXFSZ.

// "cannot read 'x': No such file or directory", of an errno.
Error os_error(std::string_view action, std::string_view name, int code);

// The whole content; an error (ErrorCode::limit) if it is longer than the limit, in bytes.
Result<std::string> read_file(const std::filesystem::path& path, int64_t limit);

// Afterwards, also after a crash at any point, the path holds the old content or the new one. A
// symbolic link at the path is replaced, not followed. To a device or a pipe it is written.
Status write_file_atomic(const std::filesystem::path& path, std::string_view content);
// The same for content in pieces, which follow one another in the file.
Status write_file_atomic(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces);

// The two halves of write_file_atomic, for content that another library writes. temporary_name
// gives a name beside the path that no other process or thread uses. publish_file renames that file
// to the path; a path that is a device or a pipe is refused.
std::filesystem::path temporary_name(const std::filesystem::path& path);
Status publish_file(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Makes the folder and its missing parents.
Status make_folders(const std::filesystem::path& folder);

// Opens a file below `root` by a path that came out of an untrusted file. This is the only way to
// open such a path. Refused: absolute paths, "..", symbolic links in any component, files with
// more than one hard link, and whatever is not a regular file. Only `root` itself is trusted.
Result<FileDescriptor> open_contained(const std::filesystem::path& root,
                                      std::string_view relative_path);
Result<MappedFile> map_contained(const std::filesystem::path& root, std::string_view relative_path);

namespace detail {
// Does the work of open_contained where the kernel has no openat2, and to find out which component
// is at fault; here for its test.
Result<FileDescriptor> open_component_by_component(const std::filesystem::path& root,
                                                   std::string_view relative_path);
}  // namespace detail

// A new empty folder, removed with all that is in it at the end.
class TempDir {
 public:
  // Below the given folder: the face or the test says which one.
  static Result<TempDir> create(const std::filesystem::path& parent);
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TempDir(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace hone
