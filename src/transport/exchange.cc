#include "transport/exchange.h"

#include <sys/prctl.h>

#include <cstring>
#include <thread>
#include <utility>

#include "base/planted.h"

namespace hone {

Exchange::Exchange(int32_t devices, const ExchangeOptions& options)
    : Exchange(std::vector<bool>(static_cast<size_t>(devices), true), options) {}

Exchange::Exchange(std::vector<bool> is_here, const ExchangeOptions& options)
    : options_(options),
      is_here_(std::move(is_here)),
      listed_([this](uint64_t number, std::vector<OpenTransfer>& all) { add_open(number, all); }) {
  if (options_.links != nullptr) flows_.emplace(*options_.links);
  for (const bool here : is_here_)
    wakes_.push_back(here ? std::make_unique<std::condition_variable>() : nullptr);
}

bool Exchange::owns(int32_t device) const {
  return device >= 0 && device < devices() && is_here_[static_cast<size_t>(device)];
}

std::vector<Peer> Exchange::peers() const {
  Peer peer = {.name = "this process", .devices = {}, .is_here = true};
  for (int32_t i = 0; i < devices(); ++i)
    if (owns(i)) peer.devices.push_back(i);
  return {peer};
}

// ---- For people --------------------------------------------------------------------------------

void Exchange::name_processes(std::vector<std::string> of_device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  process_of_ = std::move(of_device);
}

void Exchange::add_open(uint64_t number, std::vector<OpenTransfer>& all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (reason_) return;
  std::vector<bool> is_free(transfers_.size());
  for (const uint32_t slot : free_) is_free[slot] = true;
  for (uint32_t slot = 0; slot < transfers_.size(); ++slot) {
    const Transfer& transfer = transfers_[slot];
    if (is_free[slot] || transfer.state.load(std::memory_order_acquire) == State::failed) continue;
    const bool is_done = transfer.state.load(std::memory_order_acquire) == State::done;
    // Over emulated links a message may be here and not be seen yet.
    if (is_done && (transfer.flow == 0 || Clock::now() >= visible_at(transfer))) continue;
    const Channel& channel = transfer.channel;
    OpenTransfer& open = all.emplace_back();
    open.exchange = number;
    open.ticket = ticket_of(slot).id;
    open.sends = transfer.sends;
    open.device = transfer.sends ? channel.from : channel.to;
    open.peer = transfer.sends ? channel.to : channel.from;
    if (static_cast<size_t>(open.peer) < process_of_.size())
      open.peer_process = process_of_[static_cast<size_t>(open.peer)];
    open.command = transfer.command;
  }
}

// ---- Starting ----------------------------------------------------------------------------------

Status Exchange::check(const Channel& channel, bool sends, std::string_view command) const {
  const auto is_device = [&](int32_t device) { return device >= 0 && device < devices(); };
  if (!is_device(channel.from) || !is_device(channel.to))
    return bad_input("'{}' moves bytes from device {} to device {}, and there are {} devices",
                     command, channel.from, channel.to, devices());
  if (channel.from == channel.to)
    return bad_input("'{}' sends from device {} to itself", command, channel.from);
  const int32_t own = sends ? channel.from : channel.to;
  if (!owns(own))
    return bad_input("'{}' drives device {}, which another process owns", command, own);
  return {};
}

Result<uint32_t> Exchange::open(const Channel& channel, bool sends, std::byte* bytes, size_t size,
                                std::string_view command) {
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(transfers_.size());
    transfers_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Transfer& transfer = transfers_[slot];
  transfer.channel = channel;
  transfer.sends = sends;
  transfer.bytes = bytes;
  transfer.size = size;
  transfer.command = command;
  transfer.state.store(State::open, std::memory_order_relaxed);
  ++transfer.uses;
  if (!reason_) return slot;
  const Error error = error_of(transfer);
  release(slot);
  return error;
}

Result<Ticket> Exchange::send(const Channel& channel, std::span<const std::byte> bytes,
                              std::string_view command) {
  HONE_TRY(check(channel, true, command));
  std::unique_lock<std::mutex> lock(mutex_);
  auto* data = const_cast<std::byte*>(bytes.data());  // it is only read
  const uint32_t slot = HONE_TRY(open(channel, true, data, bytes.size(), command));
  const Ticket ticket = ticket_of(slot);
  if (!owns(channel.to)) {
    begin_remote(slot);
    return ticket;
  }
  Queue& queue = queues_[channel];
  if (queue.receives.empty()) {
    queue.sends.push_back(slot);
    return ticket;
  }
  const uint32_t receive = queue.receives.front();
  queue.receives.pop_front();
  if (queue.is_empty()) queues_.erase(channel);
  match_here(slot, receive, lock);
  return ticket;
}

Result<Ticket> Exchange::receive(const Channel& channel, std::span<std::byte> bytes,
                                 std::string_view command) {
  HONE_TRY(check(channel, false, command));
  std::unique_lock<std::mutex> lock(mutex_);
  const uint32_t slot = HONE_TRY(open(channel, false, bytes.data(), bytes.size(), command));
  const Ticket ticket = ticket_of(slot);
  Queue& queue = queues_[channel];
  if (!queue.sends.empty()) {
    const uint32_t send = HONE_PLANT(last_send, queue.sends.front(), queue.sends.back());
    HONE_PLANT(last_send, queue.sends.pop_front(), queue.sends.pop_back());
    if (queue.is_empty()) queues_.erase(channel);
    match_here(send, slot, lock);
  } else if (!queue.arrivals.empty()) {
    Arrival arrival = std::move(queue.arrivals.front());
    queue.arrivals.pop_front();
    if (queue.is_empty()) queues_.erase(channel);
    match_arrival(slot, std::move(arrival));
  } else {
    queue.receives.push_back(slot);
    if (!owns(channel.from)) await_remote(slot);
  }
  return ticket;
}

// ---- Matching ----------------------------------------------------------------------------------

// The bytes are copied without the lock: other devices go on.
void Exchange::match_here(uint32_t send, uint32_t receive, std::unique_lock<std::mutex>& lock) {
  Transfer& from = transfers_[send];
  Transfer& to = transfers_[receive];
  if (from.size != to.size) return fail(bad_input("{}, but {}", describe(from), describe(to)));
  from.state.store(State::moving, std::memory_order_relaxed);
  to.state.store(State::moving, std::memory_order_relaxed);
  lock.unlock();
  Status moved;
  if (to.size > 0 && options_.move)
    moved = options_.move(to.bytes, from.bytes, to.size);
  else if (to.size > 0)
    std::memcpy(to.bytes, from.bytes, to.size);
  lock.lock();
  if (!moved.ok()) {
    fail(moved.error());
    finish(send, State::failed);
    return finish(receive, State::failed);
  }
  finish(send, State::done);
  finish(receive, State::done);
}

void Exchange::match_arrival(uint32_t receive, Arrival arrival) {
  Transfer& to = transfers_[receive];
  if (arrival.size != to.size)
    return fail(
        bad_input("{}, but device {} sends {} bytes", describe(to), to.channel.from, arrival.size));
  if (arrival.is_offer) {
    to.state.store(State::moving, std::memory_order_relaxed);
    ask_for(receive, arrival);
    return;
  }
  if (to.size > 0) std::memcpy(to.bytes, arrival.bytes.data(), to.size);
  finish(receive, State::done);
  has_taken(arrival);
}

void Exchange::arrive(const Channel& channel, Arrival arrival) {
  Queue& queue = queues_[channel];
  if (queue.receives.empty()) {
    queue.arrivals.push_back(std::move(arrival));
    return;
  }
  const uint32_t receive = queue.receives.front();
  queue.receives.pop_front();
  if (queue.is_empty()) queues_.erase(channel);
  match_arrival(receive, std::move(arrival));
}

// ---- Ending ------------------------------------------------------------------------------------

Ticket Exchange::ticket_of(uint32_t slot) const {
  return {uint64_t{transfers_[slot].uses} << 32 | slot};
}

uint32_t Exchange::slot_of(Ticket ticket) const {
  const auto slot = static_cast<uint32_t>(ticket.id);
  HONE_CHECK(slot < transfers_.size() && ticket_of(slot).id == ticket.id, "ticket {:x} is not open",
             ticket.id);
  return slot;
}

void Exchange::release(uint32_t slot) {
  Transfer& transfer = transfers_[slot];
  ++transfer.uses;
  if (transfer.flow != 0) flows_->forget(std::exchange(transfer.flow, 0));
  free_.push_back(slot);
}

void Exchange::wake(int32_t device) { wakes_[static_cast<size_t>(device)]->notify_all(); }

void Exchange::finish(uint32_t slot, State state) {
  Transfer& transfer = transfers_[slot];
  if (flows_ && state == State::done && !transfer.sends) emulate(transfer);
  transfer.state.store(state, std::memory_order_release);
  wake(transfer.sends ? transfer.channel.from : transfer.channel.to);
}

Result<bool> Exchange::test(Ticket ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t slot = slot_of(ticket);
  const State state = transfers_[slot].state.load(std::memory_order_acquire);
  if (state == State::moving || (state == State::open && !reason_)) return false;
  if (state == State::done) {
    if (transfers_[slot].flow != 0 && Clock::now() < visible_at(transfers_[slot])) return false;
    release(slot);
    return true;
  }
  const Error error = error_of(transfers_[slot]);
  release(slot);
  return error;
}

Status Exchange::wait(Ticket ticket) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint32_t slot = slot_of(ticket);
  Transfer& transfer = transfers_[slot];
  const auto is_pending = [&] {
    const State state = transfer.state.load(std::memory_order_acquire);
    return state == State::moving || (state == State::open && !reason_);
  };
  if (options_.spin.count() > 0 && is_pending()) {
    const Clock::time_point end = Clock::now() + options_.spin;
    while (is_pending() && Clock::now() < end) {
      progress();
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
  const int32_t device = transfer.sends ? transfer.channel.from : transfer.channel.to;
  wakes_[static_cast<size_t>(device)]->wait(lock, [&] { return !is_pending(); });
  const bool is_done = transfer.state.load(std::memory_order_acquire) == State::done;
  if (is_done && (transfer.flow == 0 || sleep_until_visible(transfer, lock))) {
    release(slot);
    return {};
  }
  const Error error = error_of(transfer);
  release(slot);
  return error;
}

// ---- Emulated links ----------------------------------------------------------------------------

// All others look again when their messages come.
void Exchange::emulate(Transfer& transfer) {
  const double now = std::chrono::duration<double>(Clock::now() - start_).count();
  transfer.flow = flows_->start(now, transfer.channel.from, transfer.channel.to,
                                static_cast<int64_t>(transfer.size));
  wake_all();
}

Exchange::Clock::time_point Exchange::visible_at(const Transfer& transfer) const {
  return start_ + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(flows_->visible_at(transfer.flow)));
}

namespace {

// Linux wakes a thread up to 50 us late, unless the thread asks for better.
class PunctualThread {
 public:
  PunctualThread() { prctl(PR_SET_TIMERSLACK, 1UL); }
  ~PunctualThread() { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_)); }
  PunctualThread(const PunctualThread&) = delete;

 private:
  const int before_ = prctl(PR_GET_TIMERSLACK);  // nanoseconds
};

}  // namespace

// False: the run has ended.
bool Exchange::sleep_until_visible(const Transfer& transfer, std::unique_lock<std::mutex>& lock) {
  const PunctualThread punctual;
  std::condition_variable& wake = *wakes_[static_cast<size_t>(transfer.channel.to)];
  while (!reason_) {
    const Clock::time_point then = visible_at(transfer);
    if (Clock::now() >= then) return true;
    wake.wait_until(lock, then);
  }
  return false;
}

std::string Exchange::describe(const Transfer& transfer) const {
  const Channel& channel = transfer.channel;
  if (transfer.sends)
    return fmt::format("'{}' on device {} sends {} bytes to device {}", transfer.command,
                       channel.from, transfer.size, channel.to);
  return fmt::format("'{}' on device {} receives {} bytes from device {}", transfer.command,
                     channel.to, transfer.size, channel.from);
}

Error Exchange::error_of(const Transfer& transfer) const {
  HONE_CHECK(reason_.has_value(), "a transfer has failed without a reason");
  return Error(*reason_).about(describe(transfer));
}

void Exchange::fail(const Error& reason) {
  if (reason_) return;
  reason_ = reason;
  queues_.clear();
  has_failed(reason);
  wake_all();
}

void Exchange::wake_all() {
  for (const std::unique_ptr<std::condition_variable>& wake : wakes_)
    if (wake != nullptr) wake->notify_all();
}

void Exchange::cancel(const Error& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fail(reason);
}

// ---- All devices are here ----------------------------------------------------------------------

void Exchange::begin_remote(uint32_t slot) {
  HONE_CHECK(false, "{} of another process", describe(transfers_[slot]));
}
void Exchange::await_remote(uint32_t slot) { begin_remote(slot); }
void Exchange::ask_for(uint32_t slot, const Arrival&) { begin_remote(slot); }
void Exchange::has_taken(const Arrival&) {}
void Exchange::has_failed(const Error&) {}

}  // namespace hone
