#include "transport/virtual_network.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/hash.h"

namespace hone {

VirtualNetwork::VirtualNetwork(int32_t devices, VirtualOptions options)
    : devices_(devices), options_(std::move(options)) {
  if (options_.links) flows_.emplace(*options_.links);
}

std::vector<Peer> VirtualNetwork::peers() const {
  Peer peer = {.name = "this process", .devices = {}, .is_here = true};
  for (int32_t i = 0; i < devices_; ++i) peer.devices.push_back(i);
  return {peer};
}

Status VirtualNetwork::check(const Channel& channel) const {
  if (reason_) return *reason_;
  if (owns(channel.from) && owns(channel.to) && channel.from != channel.to) return {};
  return bad_input("a message from device {} to device {} of {}", channel.from, channel.to,
                   devices_);
}

// ---- Transfers ---------------------------------------------------------------------------------

Result<Ticket> VirtualNetwork::send(const Channel& channel, std::span<const std::byte> bytes,
                                    std::string_view) {
  HONE_TRY(check(channel));
  Line& line = lines_[channel];
  const double seconds = options_.seconds ? options_.seconds(channel, bytes.size()) : 0;
  const uint64_t ticket = ++tickets_;
  complete_[ticket] = options_.buffers;
  line.last = std::max(line.last, now_ + seconds);
  add_message(line, {.number = messages_++,
                     .sequence = line.sent++,
                     .hash = hash_bytes(bytes),
                     .bytes = {bytes.begin(), bytes.end()},
                     .comes = line.last,
                     .ticket = options_.buffers ? 0 : ticket});
  start_flows(channel, line);
  return Ticket{ticket};
}

void VirtualNetwork::add_message(Line& line, Message message) {
  const auto fault = options_.faults.find(message.number);
  line.messages.push_back(std::move(message));
  const size_t count = line.messages.size();
  // The one before this may be one to be swapped.
  if (count >= 2) {
    const auto before = options_.faults.find(line.messages[count - 2].number);
    if (before != options_.faults.end() && before->second == MessageFault::swapped)
      std::swap(line.messages[count - 2], line.messages[count - 1]);
  }
  if (fault != options_.faults.end()) apply_fault(line, fault->second);
}

void VirtualNetwork::apply_fault(Line& line, MessageFault fault) {
  Message& message = line.messages.back();
  if (fault == MessageFault::lost) line.messages.pop_back();
  if (fault == MessageFault::doubled) line.messages.push_back(Message(message));
  if (fault == MessageFault::corrupt && !message.bytes.empty())
    message.bytes.back() ^= std::byte{1};
}

Result<Ticket> VirtualNetwork::receive(const Channel& channel, std::span<std::byte> bytes,
                                       std::string_view command) {
  HONE_TRY(check(channel));
  const uint64_t ticket = ++tickets_;
  complete_[ticket] = false;
  Line& line = lines_[channel];
  line.receives.push_back({bytes, ticket, command});
  start_flows(channel, line);
  return Ticket{ticket};
}

Result<bool> VirtualNetwork::test(Ticket ticket) {
  const auto found = complete_.find(ticket.id);
  HONE_CHECK(found != complete_.end(), "ticket {} is not open", ticket.id);
  if (!found->second && !reason_) return false;
  const bool is_complete = found->second;
  complete_.erase(found);
  if (is_complete) return true;
  return *reason_;
}

Status VirtualNetwork::wait(Ticket ticket) {
  const Result<bool> done = test(ticket);
  if (!done.ok()) return done.error();
  HONE_CHECK(*done, "a wait would stop the only thread");
  return {};
}

void VirtualNetwork::cancel(const Error& reason) {
  if (!reason_) reason_ = reason;
}

// The n-th message of a line has met its n-th receive.
void VirtualNetwork::start_flows(const Channel& channel, Line& line) {
  if (!flows_) return;
  const size_t met = std::min(line.messages.size(), line.receives.size());
  for (size_t i = 0; i < met; ++i) {
    Message& message = line.messages[i];
    if (message.flow == 0)
      message.flow =
          flows_->start(now_, channel.from, channel.to, static_cast<int64_t>(message.bytes.size()));
  }
}

double VirtualNetwork::time_of(const Message& message) const {
  return message.flow != 0 ? flows_->visible_at(message.flow) : message.comes;
}

// ---- Events ------------------------------------------------------------------------------------

std::vector<VirtualNetwork::Event> VirtualNetwork::events() const {
  std::vector<Event> events;
  if (reason_) return events;
  for (const auto& [channel, line] : lines_)
    if (!line.messages.empty() && !line.receives.empty())
      events.push_back(
          {channel, std::max(now_, time_of(line.messages.front())), line.messages.front().number});
  std::ranges::sort(events, {}, [](const Event& e) { return std::pair(e.time, e.number); });
  return events;
}

void VirtualNetwork::happen(const Event& event) {
  Line& line = lines_.at(event.channel);
  const Message message = std::move(line.messages.front());
  line.messages.pop_front();
  const Waiting waiting = line.receives.front();
  line.receives.pop_front();
  now_ = event.time;
  if (message.flow != 0) flows_->forget(message.flow);
  const std::string what = fmt::format("message {} from device {} to device {}", message.number,
                                       event.channel.from, event.channel.to);
  if (message.sequence != line.received++)
    return cancel(fault("{} is number {} of its channel, and number {} was to come", what,
                        message.sequence, line.received - 1));
  if (hash_bytes(message.bytes) != message.hash)
    return cancel(fault("{} came with other bytes than it left", what));
  if (message.bytes.size() != waiting.bytes.size())
    return cancel(bad_input("{} has {} bytes, and '{}' receives {}", what, message.bytes.size(),
                            waiting.command, waiting.bytes.size()));
  if (!message.bytes.empty())
    std::memcpy(waiting.bytes.data(), message.bytes.data(), message.bytes.size());
  complete_[waiting.ticket] = true;
  if (message.ticket != 0) complete_[message.ticket] = true;
}

std::vector<std::string> VirtualNetwork::leftovers() const {
  std::vector<std::string> left;
  for (const auto& [channel, line] : lines_) {
    for (const Message& message : line.messages)
      left.push_back(fmt::format("message {} from device {} to device {}", message.number,
                                 channel.from, channel.to));
    if (!line.receives.empty())
      left.push_back(fmt::format("{} receives of device {} from device {}", line.receives.size(),
                                 channel.to, channel.from));
  }
  return left;
}

// ---- Runs --------------------------------------------------------------------------------------

namespace {

Error stuck(std::span<const DeviceProgram> programs, std::span<const StepRun> runs,
            const std::vector<bool>& is_done) {
  std::vector<std::string> waits;
  for (size_t i = 0; i < runs.size(); ++i)
    if (!is_done[i])
      waits.push_back(
          fmt::format("device {} in '{}'", programs[i].device, to_string(runs[i].at())));
  if (waits.size() > 2) waits.resize(2);
  return bad_input("nothing can happen any more, and these wait: {}", fmt::join(waits, ", "));
}

}  // namespace

Status run_virtually(std::span<const DeviceProgram> programs, VirtualNetwork& network,
                     std::span<const StepMemory> memory, const ChooseEvent& choose) {
  std::vector<StepRun> runs;
  for (size_t i = 0; i < programs.size(); ++i)
    runs.push_back(HONE_TRY(StepRun::begin(programs[i], network, memory[i], "a virtual run")));
  std::vector<bool> is_done(runs.size(), false);
  std::set<size_t> ready;
  for (size_t i = 0; i < runs.size(); ++i) ready.insert(i);
  while (true) {
    const std::vector<VirtualNetwork::Event> events = network.events();
    const size_t count = ready.size() + events.size();
    if (count == 0) break;
    const size_t chosen = choose && count > 1 ? choose(count) : 0;
    HONE_CHECK(chosen < count, "event {} of {}", chosen, count);
    if (chosen >= ready.size()) {
      const VirtualNetwork::Event event = events[chosen - ready.size()];
      network.happen(event);
      for (size_t i = 0; i < runs.size(); ++i)
        if (!is_done[i] &&
            (programs[i].device == event.channel.from || programs[i].device == event.channel.to))
          ready.insert(i);
      continue;
    }
    const size_t device = *std::next(ready.begin(), static_cast<ptrdiff_t>(chosen));
    ready.erase(device);
    is_done[device] = HONE_TRY(runs[device].advance());
  }
  if (const std::vector<std::string> left = network.leftovers();
      std::ranges::find(is_done, false) != is_done.end())
    return stuck(programs, runs, is_done);
  else if (!left.empty())
    return bad_input("the run has ended, and nobody took {}", left.front());
  return {};
}

Result<Exploration> explore(int64_t most, const std::function<Status(const ChooseEvent&)>& run) {
  struct Choice {
    size_t taken;
    size_t count;
  };
  std::vector<Choice> path;  // of the run at hand; the next run changes the last choice that it can
  Exploration seen;
  while (seen.runs < most) {
    size_t at = 0;
    HONE_TRY(run([&](size_t count) {
      if (at == path.size()) path.push_back({0, count});
      return path[at++].taken;
    }));
    ++seen.runs;
    while (!path.empty() && path.back().taken + 1 == path.back().count) path.pop_back();
    if (path.empty()) {
      seen.is_whole = true;
      break;
    }
    ++path.back().taken;
  }
  return seen;
}

}  // namespace hone
