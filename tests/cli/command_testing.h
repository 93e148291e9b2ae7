#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/sanitizers.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/guard.h"
#include "cli/writable.h"

// Whole commands, each in a process of its own that is a copy of the test's.

namespace hone::cli {

using Words = std::vector<std::string>;

// How a command ended.
struct Ended {
  int code = -1;        // of its exit
  int signal = 0;       // that ended it
  bool ran_on = false;  // after the time that it had
  std::string said;

  bool is_fault() const { return signal != 0 || code == static_cast<int>(ErrorCode::internal); }
};

class Process {
 public:
  Process(Words words, const std::filesystem::path& folder, size_t number)
      : words_(std::move(words)), said_(folder / fmt::format("said.{}", number)) {
    process_ = ::fork();
    if (process_ == 0) run(folder);
  }

  const Words& words() const { return words_; }
  // None: it runs, and may go on.
  std::optional<Ended> end(double seconds) {
    const std::chrono::duration<double> age = std::chrono::steady_clock::now() - began_;
    const bool is_late = age.count() > seconds;
    if (is_late) ::kill(-process_, SIGKILL);
    int status = 0;
    if (::waitpid(process_, &status, is_late ? 0 : WNOHANG) != process_) return std::nullopt;
    Ended ended;
    ended.said = read_file(said_, 1 << 20).value();
    ended.ran_on = is_late && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status) && !ended.ran_on) ended.signal = WTERMSIG(status);
    return ended;
  }

 private:
  [[noreturn]] void run(const std::filesystem::path& folder) const {
    ::setpgid(0, 0);
    if (::chdir(folder.c_str()) != 0) ::_exit(99);
    const int nothing = ::open("/dev/null", O_RDWR);
    const int said = ::open(said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    const rlimit no_core = {0, 0}, memory = {rlim_t{4} << 30, rlim_t{4} << 30};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (!kUnderAsan) ::setrlimit(RLIMIT_DATA, &memory);
    ::setenv("HOME", folder.c_str(), 1);
    for (const char* name : {"HONE_LOG", "HONE_PRICES", "XDG_CACHE_HOME", "XDG_DATA_HOME"})
      ::unsetenv(name);
    Console console({});
    const int code = guarded(words_, console, folder, [&]() -> Status {
      const Arguments arguments = HONE_TRY(parse_arguments(words_));
      console.set_progress(ProgressMode::none);
      HONE_TRY(check_outputs(arguments));
      return arguments.command().run(arguments, console);
    });
    ::_exit(code);
  }

  Words words_;
  std::filesystem::path said_;
  pid_t process_ = -1;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Calls with each line and how it ended; some run at a time, in the folder.
template <class Call>
void run_each(const std::filesystem::path& folder, const std::vector<Words>& all, double seconds,
              const Call& call) {
  const size_t most = std::max(2U, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<Process>> running;
  size_t started = 0;
  while (started < all.size() || !running.empty()) {
    while (started < all.size() && running.size() < most) {
      running.push_back(std::make_unique<Process>(all[started], folder, started));
      ++started;
    }
    std::erase_if(running, [&](const std::unique_ptr<Process>& process) {
      const std::optional<Ended> ended = process->end(seconds);
      if (ended) call(process->words(), *ended);
      return ended.has_value();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace hone::cli
