#include "cli/signal_guard.h"

#include "cli/console.h"
#include "cli/guard.h"
#include "cli/no_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// The end of a line.
std::string_view text_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV\n";
    case SIGBUS:
      return "SIGBUS, which is not a fault of hone if a file was cut while it was read\n";
    case SIGFPE: return "SIGFPE\n";
    case SIGILL: return "SIGILL\n";
    default: return "SIGABRT\n";
  }
}

// ---- What a handler may call -------------------------------------------------------------------

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool write_file(const char* path, std::string_view text, std::string_view rest) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int file = ::open(path, kFlags, 0666);
  if (file < 0) return false;
  const bool done = write_all(file, text) && write_all(file, rest) && ::fsync(file) == 0;
  return ::close(file) == 0 && done;
}

// A folder of that name in /tmp may be a trap.
bool make_folder(const char* path) {
  if (::mkdir(path, 0777) == 0) return true;
  struct stat info = {};
  return errno == EEXIST && ::lstat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid();
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
const bool SignalGuard::kWorks = false;
#elif defined(__has_feature)
const bool SignalGuard::kWorks = !__has_feature(address_sanitizer);
#else
const bool SignalGuard::kWorks = true;
#endif

struct SignalGuard::Prepared {
  struct Place {
    std::string folder;
    std::vector<Console::Kept> files;  // their names are whole paths; the first is the report
  };
  std::vector<Place> places;  // the first that takes the files has them

  static bool save(const Place& place, int signal) {
    if (!make_folder(place.folder.c_str())) return false;
    for (const Console::Kept& file : place.files) {
      const bool is_report = &file == place.files.data();
      if (!write_file(file.name.c_str(), file.text, is_report ? text_of(signal) : "")) return false;
    }
    return true;
  }
  void report(int signal) const {
    write_all(STDERR_FILENO, "hone: error: ended by ");
    write_all(STDERR_FILENO, text_of(signal));
    for (const Place& place : places) {
      if (!save(place, signal)) continue;
      write_all(STDERR_FILENO, "hint: ");
      write_all(STDERR_FILENO, kReportHint);
      write_all(STDERR_FILENO, place.folder);
      write_all(STDERR_FILENO, "\n");
      return;
    }
  }

  static std::atomic<const Prepared*> last;
};
std::atomic<const SignalGuard::Prepared*> SignalGuard::Prepared::last = nullptr;

// The handler blocks all signals: if it fails itself, the kernel ends the process.
void SignalGuard::handle(int signal) {
  if (signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS) end_if_no_memory();
  static std::atomic_flag is_reporting;
  while (is_reporting.test_and_set()) ::pause();  // until the thread that came first has ended all
  if (const Prepared* prepared = Prepared::last.load()) prepared->report(signal);
  ::_exit(static_cast<int>(ErrorCode::internal));
}

SignalGuard::SignalGuard(std::span<const std::string> words, Console& console,
                         const fs::path& folder)
    : words_(words.begin(), words.end()), console_(console), folder_(folder) {
  if (!kWorks) return;
  prepare();
  console_.set_on_report_change([this] { prepare(); });
  stack_.emplace();
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  for (int signal : kSignals) ::sigaction(signal, &action, &before_.emplace_back());
}

SignalGuard::~SignalGuard() {
  if (!kWorks) return;
  for (size_t i = 0; i < before_.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  console_.set_on_report_change({});
  Prepared::last = nullptr;
}

void SignalGuard::prepare() {
  const Reproducer reproducer =
      reproducer_of(words_, "ended by ", console_.exhibit_if_small(), console_, folder_);
  auto prepared = std::make_unique<Prepared>();
  for (const fs::path& parent : reproducer_places(folder_)) {
    Prepared::Place place = {parent / reproducer.name, reproducer.files};
    for (Console::Kept& file : place.files) file.name = fs::path(place.folder) / file.name;
    prepared->places.push_back(std::move(place));
  }
  Prepared::last = prepared.get();
  prepared_.push_back(std::move(prepared));
}

}  // namespace hone::cli
