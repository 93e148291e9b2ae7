#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "base/sanitizers.h"

namespace hone {
namespace {

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return over_limit("cannot make a pipe: {}", std::strerror(errno));
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Runs in the child before the program starts. Other threads may hold any lock at the fork, so it
// makes system calls only, on what was prepared before.
struct Launch {
  const char* program;
  char* const* arguments;
  rlimit cpu;
  rlimit memory;
  bool limit_cpu;
  bool limit_memory;
  pid_t parent;
  int out;
  int err;
  int failure;  // gets errno if the program does not start

  [[noreturn]] void run() const {
    start();
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(failure, &reason, sizeof reason);
    _exit(127);
  }

 private:
  // Returns only if something failed.
  void start() const {
    const rlimit no_core = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before the line above
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return;
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) return;
    if (setrlimit(RLIMIT_CORE, &no_core) != 0) return;
    if (limit_cpu && setrlimit(RLIMIT_CPU, &cpu) != 0) return;
    if (limit_memory && setrlimit(RLIMIT_DATA, &memory) != 0) return;
    execv(program, arguments);
  }
};

// One stream of the child.
class Capture {
 public:
  Capture(FileDescriptor file, int64_t limit) : file_(std::move(file)), limit_(limit) {
    fcntl(file_.get(), F_SETFL, O_NONBLOCK);
  }

  bool is_open() const { return file_.is_open(); }
  int fd() const { return file_.get(); }
  bool was_cut() const { return was_cut_; }
  std::string take() { return std::move(text_); }

  // Reads what is there.
  void read() {
    char buffer[1 << 14];
    while (is_open()) {
      const ssize_t count = ::read(file_.get(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        FileDescriptor closed = std::move(file_);
        return;
      }
      const int64_t room = limit_ - static_cast<int64_t>(text_.size());
      text_.append(buffer, static_cast<size_t>(std::min<int64_t>(room, count)));
      was_cut_ = was_cut_ || room < count;
    }
  }

 private:
  FileDescriptor file_;
  int64_t limit_;
  std::string text_;
  bool was_cut_ = false;
};

// True if the process has ended; it stays a zombie, so that its number is nobody else's yet.
bool has_ended(pid_t process) {
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    if (errno != EINTR) return true;
  return info.si_pid == process;
}

// Until one of the streams has something, or a little while.
void wait_a_little(const Capture& out, const Capture& err, int& pause_ms) {
  pollfd files[2];
  nfds_t count = 0;
  for (const Capture* stream : {&out, &err})
    if (stream->is_open()) files[count++] = {stream->fd(), POLLIN, 0};
  pause_ms = count > 0 ? 20 : std::clamp(pause_ms * 2, 1, 20);
  poll(files, count, pause_ms);
}

rlimit limit_of(double amount, double slack) {
  const double most = static_cast<double>(std::numeric_limits<int64_t>::max() / 2);
  return {static_cast<rlim_t>(std::min(amount, most)),
          static_cast<rlim_t>(std::min(amount + slack, most))};
}

}  // namespace

Result<ProcessResult> run_process(const std::string& program,
                                  const std::vector<std::string>& arguments,
                                  const ProcessLimits& limits, const CancelToken* cancel) {
  using Clock = std::chrono::steady_clock;
  Pipe out_pipe = HONE_TRY(make_pipe());
  Pipe err_pipe = HONE_TRY(make_pipe());
  Pipe failure = HONE_TRY(make_pipe());
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  Launch launch = {};
  launch.program = program.c_str();
  launch.arguments = words.data();
  launch.limit_cpu = limits.cpu_seconds > 0;
  launch.cpu = limit_of(std::ceil(limits.cpu_seconds), 1);
  launch.limit_memory = limits.memory_bytes > 0 && !kUnderAsan;
  launch.memory = limit_of(static_cast<double>(limits.memory_bytes), 0);
  launch.parent = getpid();
  launch.out = out_pipe.write.get();
  launch.err = err_pipe.write.get();
  launch.failure = failure.write.get();

  const Clock::time_point start = Clock::now();
  const pid_t process = fork();
  if (process < 0) return over_limit("cannot start a process: {}", std::strerror(errno));
  if (process == 0) launch.run();
  setpgid(process, process);  // by whoever comes first
  for (Pipe* pipe : {&out_pipe, &err_pipe, &failure}) {
    FileDescriptor closed = std::move(pipe->write);
  }

  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Capture out(std::move(out_pipe.read), limits.output_bytes);
  Capture err(std::move(err_pipe.read), limits.output_bytes);
  ProcessResult result;
  bool cancelled = false;
  int pause_ms = 0;
  while (!has_ended(process)) {
    if (limits.wall_seconds > 0 && elapsed() > limits.wall_seconds) result.timed_out = true;
    if (cancel != nullptr && cancel->cancelled()) cancelled = true;
    if (result.timed_out || cancelled) kill(-process, SIGKILL);
    wait_a_little(out, err, pause_ms);
    out.read();
    err.read();
  }
  result.seconds = elapsed();
  kill(-process, SIGKILL);  // what it left behind
  out.read();
  err.read();

  int status = 0;
  rusage usage = {};
  while (wait4(process, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  int reason = 0;
  if (read(failure.read.get(), &reason, sizeof reason) == sizeof reason)
    return bad_input("cannot run {}: {}", program, std::strerror(reason));
  if (cancelled) return cancel->check().error();
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  // It may have ended by itself at the last moment, or by the CPU limit.
  result.timed_out = result.signal == SIGXCPU || (result.timed_out && result.signal == SIGKILL);
  result.out = out.take();
  result.err = err.take();
  result.output_cut = out.was_cut() || err.was_cut();
  result.max_rss = usage.ru_maxrss * 1024;
  return result;
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace hone
