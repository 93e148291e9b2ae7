#include "base/file.h"
#include "base/text.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

// Two layers, each sufficient: the path is refused by its text if it could lead out, and the kernel
// is told to follow no link. The opened file is then checked through its descriptor, so that no
// other process can exchange it between check and use.

namespace hone {

namespace {

// Opening must neither wait for the other end of a pipe nor take over a terminal.
constexpr int file_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr int folder_flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY;

Error refused(std::string_view path, std::string_view reason) {
  return bad_input("path \"{}\" is refused: {}", escape(path), reason);
}

// The components without "." and empty ones. The last one is the file.
Result<std::vector<std::string>> components_of(std::string_view path) {
  if (path.empty()) return refused(path, "it is empty");
  if (path.find('\0') != std::string_view::npos) return refused(path, "it has a zero byte");
  if (path.front() == '/') return refused(path, "it is absolute");
  if (path.back() == '/') return refused(path, "it names a folder");
  std::vector<std::string> components;
  for (std::string_view component : split(path, '/')) {
    if (component == "..") return refused(path, "\"..\" may leave the folder");
    if (!component.empty() && component != ".") components.emplace_back(component);
  }
  if (components.empty()) return refused(path, "it names a folder");
  return components;
}

Result<FileDescriptor> open_root(const std::filesystem::path& root) {
  const char* name = root.empty() ? "." : root.c_str();
  FileDescriptor folder(::open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) return folder;
  const std::string reason = std::generic_category().message(errno);
  return bad_input("cannot open the folder '{}': {}", root.native(), reason);
}

// Not open if it failed for any reason, such as a kernel before 5.6 or a sandbox that forbids it.
FileDescriptor open_by_kernel(const FileDescriptor& root, std::string_view path) {
  struct open_how how = {};
  how.flags = file_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, root.get(), std::string(path).c_str(), &how, sizeof how);
  return FileDescriptor(static_cast<int>(fd));
}

// Why `name` could not be opened in the folder, from errno.
Error blame(int folder, const std::string& name, std::string_view path) {
  const int code = errno;
  struct stat info = {};
  const bool known = ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (known && S_ISLNK(info.st_mode)) {
    return refused(path, fmt::format("\"{}\" is a symbolic link", escape(name)));
  }
  return bad_input("cannot open \"{}\": {}", escape(path), std::generic_category().message(code));
}

Result<FileDescriptor> walk(FileDescriptor folder, const std::vector<std::string>& components,
                            std::string_view path) {
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    FileDescriptor next(::openat(folder.get(), components[i].c_str(), folder_flags));
    if (!next.is_open()) return blame(folder.get(), components[i], path);
    folder = std::move(next);
  }
  FileDescriptor file(::openat(folder.get(), components.back().c_str(), file_flags));
  if (!file.is_open()) return blame(folder.get(), components.back(), path);
  return file;
}

Status check_opened(const FileDescriptor& file, std::string_view path) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return refused(path, "its kind is not known");
  if (!S_ISREG(info.st_mode)) return refused(path, "it is not a regular file");
  // A second name may be a way to reach a file outside of the folder.
  if (info.st_nlink > 1) {
    return refused(path, fmt::format("it has {} hard links, not 1", info.st_nlink));
  }
  return {};
}

}  // namespace

namespace detail {

Result<FileDescriptor> open_component_by_component(const std::filesystem::path& root,
                                                   std::string_view relative_path) {
  const std::vector<std::string> components = HONE_TRY(components_of(relative_path));
  FileDescriptor file = HONE_TRY(walk(HONE_TRY(open_root(root)), components, relative_path));
  HONE_TRY(check_opened(file, relative_path));
  return file;
}

}  // namespace detail

Result<FileDescriptor> open_contained(const std::filesystem::path& root,
                                      std::string_view relative_path) {
  HONE_TRY(components_of(relative_path));
  const FileDescriptor folder = HONE_TRY(open_root(root));
  FileDescriptor file = open_by_kernel(folder, relative_path);
  // The walk is as strict, and can say which component is at fault.
  if (!file.is_open()) return detail::open_component_by_component(root, relative_path);
  HONE_TRY(check_opened(file, relative_path));
  return file;
}

Result<MappedFile> map_contained(const std::filesystem::path& root,
                                 std::string_view relative_path) {
  const FileDescriptor file = HONE_TRY(open_contained(root, relative_path));
  return MappedFile::map(file, relative_path);
}

}  // namespace hone
