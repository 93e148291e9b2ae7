#include "prove/sorted_runs.h"

#include <cerrno>
#include <cstdlib>

#include <unistd.h>

namespace hone {

Result<SpillFile> SpillFile::create(const std::filesystem::path& folder) {
  std::string name = (folder / "hone-spill-XXXXXX").string();
  SpillFile made;
  made.file_ = FileDescriptor(mkstemp(name.data()));
  if (!made.file_.is_open()) return os_error("write below", folder.string(), errno);
  unlink(name.c_str());
  return made;
}

Status SpillFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error("write", "the file of what memory does not hold", errno);
    size_ += static_cast<size_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status SpillFile::read(size_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return os_error("read", "the file of what memory does not hold", errno);
    at += static_cast<size_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace hone
