#include "base/temporary_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/file.h"
#include "base/hash.h"

namespace hone {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".tmp-";
constexpr size_t kPlaceDigits = 8;
// A clock may step, and a file system may round. A file that is older than a process by more than
// this is not its own.
constexpr int64_t kSlackSeconds = 5;
// One of another place, whose processes cannot be seen, was left behind if it is as old as this.
constexpr int64_t kOldSeconds = 24 * 3600;

// The process numbers of one system since it was started, in one container, are those of one place.
uint32_t this_place() {
  static const uint32_t place = [] {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat numbers = {};
    ::stat("/proc/self/ns/pid", &numbers);
    return static_cast<uint32_t>(
        Hasher().add(boot).add(static_cast<uint64_t>(numbers.st_ino)).value());
  }();
  return place;
}

// Seconds of Unix.
std::optional<int64_t> start_of(int process) {
  static const std::optional<int64_t> boot = []() -> std::optional<int64_t> {
    std::ifstream file("/proc/stat");
    std::string word;
    int64_t seconds = 0;
    while (file >> word)
      if (word == "btime" && file >> seconds) return seconds;
    return std::nullopt;
  }();
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');  // a name may have blanks and parentheses
  if (!boot || name_end == std::string::npos) return std::nullopt;
  constexpr int kFieldsBefore = 19;  // of proc(5): state, the 3rd, to starttime, the 22nd
  const char* at = text.c_str() + name_end + 1;
  for (int field = 0; field < kFieldsBefore && at != nullptr; ++field)
    at = std::strchr(at + 1, ' ');
  if (at == nullptr) return std::nullopt;
  return *boot + std::strtoll(at, nullptr, 10) / ::sysconf(_SC_CLK_TCK);
}

// True if the process that has this number now can be the one that wrote at that time.
bool may_be_writing(int process, int64_t written) {
  if (::kill(process, 0) != 0 && errno == ESRCH) return false;
  const std::optional<int64_t> start = start_of(process);
  return !start || written + kSlackSeconds >= *start;
}

// The endings that libraries add to the name of a file that they write: libzip, and SQLite.
bool is_addition(std::string_view rest) {
  if (rest.empty() || rest == "-wal" || rest == "-shm" || rest == "-journal") return true;
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0; };
  return rest.size() == 7 && rest[0] == '.' && std::ranges::all_of(rest.substr(1), is_letter);
}

struct Named {
  int process = 0;
  uint32_t place = 0;
};

template <class Number>
bool take_number(std::string_view& text, Number& number, int base = 10) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take_dash(std::string_view& text) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Named> parse_name(std::string_view name) {
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  std::string_view rest = name.substr(at + kMark.size());
  Named named;
  uint64_t number = 0;
  if (!take_number(rest, named.process) || named.process <= 0 || !take_dash(rest))
    return std::nullopt;
  // Older versions say no place.
  std::string_view place = rest.substr(0, kPlaceDigits);
  const std::string_view behind = rest.substr(place.size());
  if (behind.starts_with('-') && take_number(place, named.place, 16) && place.empty())
    rest = behind.substr(1);
  if (!take_number(rest, number) || !is_addition(rest)) return std::nullopt;
  return named;
}

// A plain file of this user that no living process can be writing.
bool is_left_behind(const fs::path& path, const Named& named) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return false;
  const int64_t written = info.st_mtim.tv_sec;
  if (named.place != this_place()) return written + kOldSeconds < std::time(nullptr);
  return !may_be_writing(named.process, written);
}

struct Pending {
  std::mutex mutex;
  std::set<fs::path> files;
};
// Never destroyed: a thread that ends the process may ask for it at any time.
Pending& pending() {
  static Pending* const all = new Pending;
  return *all;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

Status check_can_write(const fs::path& path) {
  if (!path.has_filename()) return bad_input("cannot write '{}': it names no file", path.native());
  const auto cannot = [&] { return os_error("write", path.native(), errno); };
  struct stat info = {};
  const bool is_there = ::stat(path.c_str(), &info) == 0;
  if (is_there && ::access(path.c_str(), W_OK) != 0) return cannot();
  if (is_there && S_ISDIR(info.st_mode))
    return bad_input("cannot write '{}': it is a folder", path.native());
  if (is_there && !S_ISREG(info.st_mode)) return {};
  const fs::path temporary = temporary_name(path);
  const FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  Status status = file.is_open() ? Status() : Status(cannot());
  discard_file(temporary);
  return status;
}

void discard_file(const fs::path& temporary) {
  ::unlink(temporary.c_str());
  detail::forget_temporary(temporary);
}

void discard_all_files() {
  std::set<fs::path> files;
  {
    std::lock_guard lock(pending().mutex);
    files.swap(pending().files);
  }
  for (const fs::path& file : files) {
    ::unlink(file.c_str());
    // A library may be writing beside it.
    std::error_code failed;
    const std::string name = file.filename().native();
    for (fs::directory_iterator at(folder_of(file), failed), end; !failed && at != end;
         at.increment(failed)) {
      const std::string other = at->path().filename().native();
      if (other.starts_with(name) && is_addition(std::string_view(other).substr(name.size())))
        ::unlink(at->path().c_str());
    }
  }
}

namespace detail {

std::string temporary_suffix(int process) {
  static std::atomic<uint64_t> counter = 0;
  return fmt::format("{}{}-{:0{}x}-{}", kMark, process, this_place(), kPlaceDigits,
                     counter.fetch_add(1));
}

int process_of_temporary(std::string_view name) {
  const std::optional<Named> named = parse_name(name);
  return named && named->place == this_place() ? named->process : 0;
}

void note_temporary(const fs::path& temporary) {
  std::lock_guard lock(pending().mutex);
  pending().files.insert(temporary);
}

void forget_temporary(const fs::path& temporary) {
  std::lock_guard lock(pending().mutex);
  pending().files.erase(temporary);
}

void sweep_folder(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> swept;
  {
    std::lock_guard lock(mutex);
    if (!swept.insert(folder).second) return;
  }
  sweep_folder_now(folder);
}

void sweep_folder_now(const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::optional<Named> named = parse_name(at->path().filename().native());
    if (named && is_left_behind(at->path(), *named)) ::unlink(at->path().c_str());
  }
}

}  // namespace detail

}  // namespace hone
