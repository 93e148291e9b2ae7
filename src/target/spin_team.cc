#include "target/spin_team.h"

#include "target/probe_kernels.h"

namespace hone {
namespace {

// Gives the processor up now and then: where threads share it, the other one has to run.
template <class Condition>
void spin_until(const Condition& condition) {
  for (uint32_t spins = 1; !condition(); ++spins) {
    if (spins % 8192 == 0)
      std::this_thread::yield();
    else
      pause_core();
  }
}

}  // namespace

SpinTeam::SpinTeam(int64_t threads) {
  if (threads == 1) return;
  pinned_.emplace(cpu(0));
  try {
    for (int64_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

SpinTeam::~SpinTeam() { stop(); }

void SpinTeam::stop() {
  body_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void SpinTeam::run(const std::function<void(int64_t)>& body) {
  body_ = &body;
  busy_.store(static_cast<int64_t>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  body(0);
  spin_until([&] { return busy_.load(std::memory_order_acquire) == 0; });
}

int SpinTeam::cpu(int64_t index) const { return cpus_[static_cast<size_t>(index) % cpus_.size()]; }

void SpinTeam::work(int64_t index) {
  const PinnedThread pinned(cpu(index));
  for (uint64_t round = 1;; ++round) {
    spin_until([&] { return round_.load(std::memory_order_acquire) >= round; });
    if (body_ == nullptr) return;
    (*body_)(index);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace hone
