#include "cli/local_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "transport/proof.h"
#include "transport/shared_memory.h"

namespace hone::cli {
namespace {

const StreamOptions kStreams = {.join_seconds = 4};
constexpr std::chrono::milliseconds kLastWait(500);

}  // namespace

Result<std::unique_ptr<LocalProcesses>> LocalProcesses::start(
    TransportKind kind, int32_t processes, const std::function<Status(Transport&)>& serve) {
  std::unique_ptr<LocalProcesses> made(new LocalProcesses());
  made->devices_.assign(static_cast<size_t>(processes), 1);
  if (kind == TransportKind::shared_memory) {
    made->name_ = fmt::format("hone-{}", getpid());
  } else {
    const Digest secret = HONE_TRY(random_digest());
    for (const std::byte each : secret) made->group_.secret += static_cast<char>(each);
    for (int32_t i = 0; i < processes; ++i) {
      made->listeners_.push_back(HONE_TRY(TcpListener::open()));
      made->group_.addresses.push_back({"127.0.0.1", made->listeners_.back().port()});
    }
  }
  const pid_t parent = getpid();
  for (int32_t i = 1; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) made->serve_as(i, parent, serve);
    if (child < 0) return over_limit("the system gives no process: {}", std::strerror(errno));
    made->started_.push_back(child);
  }
  return made;
}

Result<std::unique_ptr<Transport>> LocalProcesses::join_as(int32_t process) const {
  const ProcessGroup own = {process, devices_};
  if (!name_.empty()) return join_shared_memory(name_, own, kStreams);
  TcpGroup group = group_;
  group.group = own;
  return join_tcp(listeners_[static_cast<size_t>(process)], group, kStreams);
}

// The copy has none of the threads, so it leaves without the end of the program.
void LocalProcesses::serve_as(int32_t process, pid_t parent,
                              const std::function<Status(Transport&)>& serve) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(static_cast<int>(ErrorCode::limit));
  // A terminal tells all of them. The first process ends the others, after its own work.
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  Status served;
  {
    const Result<std::unique_ptr<Transport>> group = join_as(process);
    served = group.ok() ? serve(**group) : Status(group.error());
  }
  _exit(served.ok() ? 0 : static_cast<int>(served.error().code()));
}

LocalProcesses::~LocalProcesses() {
  const auto end = std::chrono::steady_clock::now() + kLastWait;
  for (const pid_t child : started_) {
    while (waitpid(child, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace hone::cli
