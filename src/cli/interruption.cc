#include "cli/interruption.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/temporary_files.h"
#include "cli/console.h"

namespace hone::cli {
namespace {

// Soon: it leaves a part of a second for giving up.
constexpr std::chrono::milliseconds kGrace(600);

std::atomic<CancelToken*> token = nullptr;
std::atomic<int> first = 0;         // signal
std::atomic<bool> insists = false;  // another one came
sem_t came;
std::atomic<bool> is_watched = false;

void write_text(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

[[noreturn]] void end_now() {
  discard_all_files();
  ::_exit(128 + first);
}

// signal-safety(7) says what a handler may do.
void on_signal(int signal) {
  const int error = errno;
  int none = 0;
  if (first.compare_exchange_strong(none, signal))
    token.load()->cancel();
  else if (!is_watched || insists.exchange(true))
    ::_exit(128 + first);
  ::sem_post(&came);
  errno = error;
}

void wait_for_signal() {
  while (::sem_wait(&came) != 0) {
  }
}

// Until the grace is over, or another signal comes.
void wait_for_grace() {
  timespec until = {};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += std::chrono::nanoseconds(kGrace).count();
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  while (::sem_timedwait(&came, &until) != 0 && errno == EINTR) {
  }
}

// Waits for signals beside the work, where anything may be called.
void watch(const Console& console) {
  for (;;) {
    while (first == 0) wait_for_signal();
    wait_for_grace();
    if (first == 0) continue;  // the part that it ended is over
    // Behind the ^C of a terminal, or a bar.
    if (!insists && ::isatty(STDERR_FILENO) == 1) write_text("\n");
    if (!insists && console.keeps()) {
      write_text(
          "hone: stops when the current step is done; Ctrl-C again ends it at once, and loses "
          "results that were not kept yet\n");
      while (!insists && first != 0) wait_for_signal();
      if (!insists) continue;
    } else if (!insists) {
      write_text("hone: error: stopped by the user\n");
    }
    end_now();
  }
}

}  // namespace

void Interruption::handle(Console& console) {
  token = &console.cancel();
  ::sem_init(&came, 0, 0);
  // The handlers come first: no signal is to find a watcher that it does not wake.
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    // nohup ignores the hangup. Shells ignore Ctrl-C for what runs in the background, but whoever
    // sends it to one process alone means that one.
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
  try {
    std::thread(watch, std::cref(console)).detach();
    is_watched = true;
  } catch (const std::system_error&) {
    // The system gives no thread: the work ends when it looks at the token, or by a second signal.
  }
}

Interruption::Part::Part(Console& console) : console_(console) { token = &cancel_; }

Interruption::Part::~Part() {
  token = &console_.cancel();
  int came_first = SIGINT;
  if (first.compare_exchange_strong(came_first, 0))
    ::sem_post(&came);  // the watcher looks again
  else if (first != 0)
    console_.cancel().cancel();  // others end the process
}

int Interruption::exit_code(int code) {
  return code == static_cast<int>(ErrorCode::interrupted) && first != 0 ? 128 + first : code;
}

}  // namespace hone::cli
