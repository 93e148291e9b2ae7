#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/temporary_files.h"
#include "base/text.h"

namespace hone {

// A full disk is a limit, not a fault of the input.
Error os_error(std::string_view action, std::string_view name, int code) {
  const bool is_full = code == ENOSPC || code == EDQUOT || code == EFBIG || code == ENOMEM;
  Error error =
      bad_input("cannot {} '{}': {}", action, name, std::generic_category().message(code));
  return is_full ? std::move(error).as(ErrorCode::limit) : error;
}

namespace {

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Makes a rename in the folder survive a power cut.
Status sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor fd(open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd.is_open()) return os_error("open the folder", folder.native(), errno);
  // EINVAL: a file system that cannot, and so need not, sync folders.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return os_error("sync", folder.native(), errno);
  return {};
}

// Errors name the file that the user knows.
Status sync_file(const std::filesystem::path& path, std::string_view name) {
  const FileDescriptor fd(open_retrying(path.c_str(), O_WRONLY));
  if (!fd.is_open()) return os_error("write", name, errno);
  if (::fsync(fd.get()) != 0) return os_error("sync", name, errno);
  return {};
}

Status write_pieces(const std::filesystem::path& path, int flags,
                    std::span<const std::string_view> pieces, std::string_view name) {
  const FileDescriptor fd(open_retrying(path.c_str(), O_WRONLY | flags, 0666));
  if (!fd.is_open()) return os_error("write", name, errno);
  for (std::string_view piece : pieces) {
    if (!write_all(fd.get(), piece)) return os_error("write", name, errno);
  }
  return {};
}

// A device or a pipe: what is written goes there, and nothing may take its place.
bool is_device(const std::filesystem::path& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
         !S_ISLNK(info.st_mode);
}

// Said beforehand: what renaming says depends on the folder, "Device or resource busy" for ".".
bool is_folder(const std::filesystem::path& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const FileDescriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return os_error("open", path.native(), errno);
  return map(file, path.native());
}

namespace {

// The pointer that Git LFS leaves in place of a file that was not fetched: a few lines that name
// its content.
Status check_fetched(std::string_view text, std::string_view name) {
  constexpr size_t kMostBytes = 1024;  // of a pointer, by its specification
  constexpr std::string_view kBeginnings[] = {"version https://git-lfs.github.com/spec/",
                                              "version https://hawser.github.com/spec/"};
  if (text.size() >= kMostBytes) return {};
  if (!std::ranges::any_of(kBeginnings, [&](auto begin) { return text.starts_with(begin); }))
    return {};
  std::string size;
  for (std::string_view line : split_lines(text))
    if (consume_prefix(line, "size "))
      if (const Result<int64_t> bytes = parse_int(line); bytes.ok() && *bytes >= 0)
        size = fmt::format(" of {}", format_bytes(*bytes));
  return bad_input("'{}' is a Git LFS pointer: the file{} that it stands for was not fetched", name,
                   size)
      .with_hint("'git lfs pull' in its repository fetches it");
}

}  // namespace

Result<MappedFile> MappedFile::map(const FileDescriptor& file, std::string_view name) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return os_error("open", name, errno);
  if (S_ISDIR(info.st_mode)) return bad_input("cannot open '{}': it is a folder", name);
  if (!S_ISREG(info.st_mode)) return bad_input("cannot open '{}': it is not a regular file", name);
  if (info.st_size == 0) return MappedFile();
  const size_t size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return os_error("map", name, errno);
  MappedFile mapped({static_cast<const std::byte*>(address), size});
  HONE_TRY(check_fetched(mapped.text(), name));
  return mapped;
}

Result<std::string> read_file(const std::filesystem::path& path, int64_t limit) {
  HONE_CHECK(limit >= 0, "a limit of {} bytes", limit);
  const FileDescriptor file(open_retrying(path.c_str(), O_RDONLY));
  if (!file.is_open()) return os_error("read", path.native(), errno);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return os_error("read", path.native(), errno);
  if (S_ISREG(info.st_mode) && info.st_size > limit) {
    return over_limit("cannot read '{}': its {} bytes are more than the limit of {}", path.native(),
                      info.st_size, limit);
  }
  // The size is a guess only: the file may grow, and pipes have none.
  std::string content;
  size_t used = 0;
  content.resize(static_cast<size_t>(std::max<int64_t>(info.st_size, 0)) + 1);
  for (;;) {
    if (used == content.size()) content.resize(2 * used + 4096);
    const ssize_t count = ::read(file.get(), content.data() + used, content.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error("read", path.native(), errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > static_cast<uint64_t>(limit)) {
      return over_limit("cannot read '{}': it is longer than the limit of {} bytes", path.native(),
                        limit);
    }
  }
  content.resize(used);
  return content;
}

Status write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  return write_file_atomic(path, std::span(&content, 1));
}

Status write_file_atomic(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces) {
  if (!path.has_filename()) return bad_input("cannot write '{}': it names no file", path.native());
  if (is_device(path)) return write_pieces(path, 0, pieces, path.native());
  const std::filesystem::path temporary = temporary_name(path);
  Status status = write_pieces(temporary, O_CREAT | O_EXCL, pieces, path.native());
  if (status.ok()) return publish_file(temporary, path);
  discard_file(temporary);
  return status;
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  detail::sweep_folder(path.has_parent_path() ? path.parent_path() : ".");
  std::filesystem::path name;
  // One that was killed may have had the same process id a moment ago.
  do {
    name = path;
    name += detail::temporary_suffix(::getpid());
  } while (::access(name.c_str(), F_OK) == 0);
  detail::note_temporary(name);
  return name;
}

Status publish_file(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  Status status = sync_file(temporary, path.native());
  if (status.ok() && is_folder(path))
    status = bad_input("cannot write '{}': it is a folder", path.native());
  if (status.ok() && is_device(path))
    status = bad_input("cannot write '{}': it is not a regular file", path.native());
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = os_error("write", path.native(), errno);
  }
  if (!status.ok()) {
    discard_file(temporary);
    return status;
  }
  detail::forget_temporary(temporary);
  return sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

Status make_folders(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return os_error("make the folder", folder.native(), failed.value());
  return {};
}

Result<TempDir> TempDir::create(const std::filesystem::path& parent) {
  std::string name = (parent / "hone-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr)
    return os_error("create a folder in", parent.native(), errno);
  return TempDir(name);
}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hone
