#include "cli/wait_teller.h"

#include <chrono>

#include "worker/idle.h"

namespace hone::cli {

WaitTeller::WaitTeller(Progress& progress, double seconds) : waits_(seconds) {
  Result<std::unique_ptr<Watch>> watch = Watch::make([this, &progress] {
    std::vector<OpenTransfer> open = open_transfers();
    // A worker that has nothing to do waits for its caller.
    std::erase_if(open, [](const OpenTransfer& one) { return one.command == kAwaitsRequest; });
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    for (const std::string& line : waits_.look(now.count(), open)) progress.note(line);
    return true;
  });
  if (watch.ok()) watch_ = *std::move(watch);
}

}  // namespace hone::cli
