#include "base/forked.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "base/file.h"
#include "base/sanitizers.h"

namespace hone {
namespace {

// A copy says by these codes how it ended; any other is a fault of its own.
constexpr int kDone = 0;
constexpr int kNoMemory = 11;
constexpr int kThrew = 12;

constexpr int kPollMs = 50;  // until somebody looks at silence and the token again

using Clock = std::chrono::steady_clock;
using Length = uint64_t;  // of a message stands before it

void send_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(kThrew);  // nobody listens any more
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

// The private writable memory of this process.
int64_t data_bytes() {
  int64_t total, resident, shared, text, lib, data = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared >> text >> lib >> data;
  return data * sysconf(_SC_PAGESIZE);
}

[[noreturn]] void run_copy(const ForkedWork& work, int to, const ForkLimits& limits, pid_t parent) {
  setpgid(0, 0);  // keys of a terminal are for the parent
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kThrew);  // it died before the line above
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.memory_bytes > 0 && !kUnderAsan) {
    const auto most = static_cast<rlim_t>(data_bytes() + limits.memory_bytes);
    const rlimit memory = {most, most};
    setrlimit(RLIMIT_DATA, &memory);
  }
  const int nothing = open("/dev/null", O_RDWR);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
  try {
    work([to](std::string_view message) {
      const Length length = message.size();
      send_all(to, {reinterpret_cast<const char*>(&length), sizeof length});
      send_all(to, message);
    });
  } catch (const std::bad_alloc&) {
    _exit(kNoMemory);
  } catch (...) {
    _exit(kThrew);
  }
  _exit(kDone);
}

// A copy, as the parent sees it. It is killed if it still runs when this goes.
class Copy {
 public:
  static Result<Copy> start(const ForkedWork& work, const ForkLimits& limits) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return over_limit("cannot make a pipe: {}", std::strerror(errno));
    Copy copy;
    copy.from_ = FileDescriptor(ends[0]);
    const FileDescriptor to(ends[1]);
    const pid_t parent = getpid();
    copy.process_ = fork();
    if (copy.process_ < 0) return over_limit("cannot start a process: {}", std::strerror(errno));
    if (copy.process_ == 0) run_copy(work, to.get(), limits, parent);
    setpgid(copy.process_, copy.process_);  // by whoever comes first
    fcntl(copy.from_.get(), F_SETFL, O_NONBLOCK);
    return copy;
  }
  Copy(Copy&& other) noexcept
      : process_(std::exchange(other.process_, -1)),
        from_(std::move(other.from_)),
        bytes_(std::move(other.bytes_)),
        heard_(other.heard_) {}
  Copy& operator=(Copy&&) = delete;
  ~Copy() {
    if (process_ <= 0) return;
    kill();
    wait();
  }

  bool is_open() const { return from_.is_open(); }
  int file() const { return from_.get(); }
  double silence() const { return std::chrono::duration<double>(Clock::now() - heard_).count(); }
  void kill() const { ::kill(-process_, SIGKILL); }

  // Reads what is there, and passes on what is whole.
  template <class Told>
  void read(const Told& told) {
    char buffer[1 << 16];
    while (is_open()) {
      const ssize_t count = ::read(file(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) {
        const FileDescriptor closed = std::move(from_);
        break;
      }
      bytes_.append(buffer, static_cast<size_t>(count));
      heard_ = Clock::now();
    }
    size_t at = 0;
    Length length = 0;
    while (bytes_.size() - at >= sizeof length) {
      std::memcpy(&length, bytes_.data() + at, sizeof length);
      if (bytes_.size() - at - sizeof length < length) break;
      told(std::string_view(bytes_).substr(at + sizeof length, length));
      at += sizeof length + length;
    }
    bytes_.erase(0, at);
  }

  ForkEnd wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    ForkEnd end;
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) {
      end.no_memory = WEXITSTATUS(status) == kNoMemory;
      end.threw = WEXITSTATUS(status) != kDone && !end.no_memory;
    }
    return end;
  }

 private:
  Copy() = default;

  pid_t process_ = -1;
  FileDescriptor from_;
  std::string bytes_;  // the beginning of a message
  Clock::time_point heard_ = Clock::now();
};

}  // namespace

Result<std::vector<ForkEnd>> run_forked(
    std::span<const ForkedWork> works, const ForkLimits& limits,
    const std::function<void(size_t i, std::string_view message)>& told,
    const CancelToken* cancel) {
  std::vector<Copy> copies;
  for (const ForkedWork& work : works) copies.push_back(HONE_TRY(Copy::start(work, limits)));
  std::vector<bool> timed_out(works.size());
  const auto some_run = [&] {
    return std::ranges::any_of(copies, [](const Copy& copy) { return copy.is_open(); });
  };
  while (some_run()) {
    if (cancel != nullptr) HONE_TRY(cancel->check());
    std::vector<pollfd> files;
    for (const Copy& copy : copies)
      if (copy.is_open()) files.push_back({copy.file(), POLLIN, 0});
    poll(files.data(), files.size(), kPollMs);
    for (size_t i = 0; i < copies.size(); ++i) {
      if (!copies[i].is_open()) continue;
      copies[i].read([&](std::string_view message) { told(i, message); });
      if (limits.silence_seconds <= 0 || copies[i].silence() < limits.silence_seconds) continue;
      timed_out[i] = true;
      copies[i].kill();
    }
  }
  std::vector<ForkEnd> ends;
  for (size_t i = 0; i < copies.size(); ++i) {
    ends.push_back(copies[i].wait());
    ends.back().timed_out = timed_out[i] && ends.back().signal == SIGKILL;
  }
  return ends;
}

}  // namespace hone
