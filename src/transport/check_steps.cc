#include "transport/check_steps.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/planted.h"
#include "transport/transport.h"

namespace hone {
namespace {

bool begins(const DeviceStep& step) {
  return step.kind == StepKind::send || step.kind == StepKind::receive;
}

std::string place(const DeviceProgram& program, size_t step) {
  return fmt::format("device {}, step {}: {}", program.device, step,
                     to_string(program.steps[step]));
}

// ---- One device --------------------------------------------------------------------------------

Status check_part(const DeviceProgram& program, const StepPart& part) {
  const int64_t rooms[] = {program.input, program.output, program.scratch};
  const int64_t elements = rooms[static_cast<int>(part.room)];
  if (part.begin >= 0 && part.count >= 0 && part.begin <= elements &&
      part.count <= elements - part.begin)
    return {};
  return bad_input("elements {} to {} of a room of {}", part.begin, part.end(), elements);
}

bool overlap(const StepPart& a, const StepPart& b) {
  return a.room == b.room && a.begin < b.end() &&
         HONE_PLANT(parts_touch, b.begin < a.end(), b.begin <= a.end());
}

class OneDevice {
 public:
  explicit OneDevice(const DeviceProgram& program)
      : program_(program), begun_at_(static_cast<size_t>(std::max(program.tickets, 0)), kNever) {}

  Status check() {
    for (size_t i = 0; i < program_.steps.size(); ++i)
      if (Status good = check_step(i); !good.ok())
        return Error(good.error()).at(place(program_, i));
    for (size_t i = 0; i < begun_at_.size(); ++i)
      if (begun_at_[i] != kWaited)
        return bad_input("nothing waits for ticket {}", i)
            .at(begun_at_[i] == kNever ? fmt::format("device {}", program_.device)
                                       : place(program_, begun_at_[i]));
    return {};
  }

 private:
  static constexpr size_t kNever = SIZE_MAX, kWaited = SIZE_MAX - 1;

  Status check_step(size_t i) {
    const DeviceStep& step = program_.steps[i];
    if (step.kind == StepKind::wait) return check_wait(step);
    if (step.kind == StepKind::add || step.kind == StepKind::copy) {
      if (step.from.count != step.to.count ||
          (step.kind == StepKind::add && step.other.count != step.to.count))
        return bad_input("it makes {} elements from {}", step.to.count, step.from.count);
    }
    if (step.kind != StepKind::send) HONE_TRY(check_write(step.to));
    if (step.kind != StepKind::receive && step.kind != StepKind::zero)
      HONE_TRY(check_read(step.from));
    if (step.kind == StepKind::add) HONE_TRY(check_read(step.other));
    return begins(step) ? begin(step, i) : Status();
  }

  Status begin(const DeviceStep& step, size_t i) {
    if (step.peer == program_.device || step.peer < 0)
      return bad_input("device {} has no peer {}", program_.device, step.peer);
    if (step.ticket < 0 || step.ticket >= program_.tickets)
      return bad_input("ticket {} of {}", step.ticket, program_.tickets);
    size_t& at = begun_at_[static_cast<size_t>(step.ticket)];
    if (at != kNever) return bad_input("ticket {} is used twice", step.ticket);
    at = i;
    open_.insert(i);
    return {};
  }

  Status check_wait(const DeviceStep& step) {
    if (step.ticket < 0 || step.ticket >= program_.tickets)
      return bad_input("ticket {} of {}", step.ticket, program_.tickets);
    size_t& at = begun_at_[static_cast<size_t>(step.ticket)];
    if (at == kNever) return bad_input("ticket {} has not begun", step.ticket);
    if (at == kWaited) return bad_input("ticket {} was waited for before", step.ticket);
    open_.erase(at);
    at = kWaited;
    return {};
  }

  Status check_read(const StepPart& part) {
    HONE_TRY(check_part(program_, part));
    for (const size_t i : open_)
      if (program_.steps[i].kind == StepKind::receive && overlap(program_.steps[i].to, part))
        return bad_input("it reads what step {} still receives", i);
    return {};
  }

  Status check_write(const StepPart& part) {
    HONE_TRY(check_part(program_, part));
    if (part.room == StepRoom::input) return bad_input("it writes into the input");
    for (const size_t i : open_) {
      const DeviceStep& other = program_.steps[i];
      if (overlap(other.kind == StepKind::send ? other.from : other.to, part))
        return bad_input("it writes what step {} still {}", i,
                         other.kind == StepKind::send ? "sends" : "receives");
    }
    return {};
  }

  const DeviceProgram& program_;
  std::vector<size_t> begun_at_;  // by ticket: the step
  std::set<size_t> open_;         // steps whose transfers are open
};

// ---- All devices -------------------------------------------------------------------------------

struct At {
  size_t program = 0;
  size_t step = 0;
};

class AllDevices {
 public:
  AllDevices(std::span<const DeviceProgram> programs, const CommandOfStep& command_of)
      : programs_(programs), command_of_(command_of) {}

  Status check() {
    HONE_TRY(number_devices());
    HONE_TRY(pair());
    return run();
  }

 private:
  const DeviceStep& step(const At& at) const { return programs_[at.program].steps[at.step]; }
  std::string text(const At& at) const {
    if (!command_of_) return place(programs_[at.program], at.step);
    return fmt::format("device {}, {}", programs_[at.program].device, name(at));
  }
  // "step 3", or "'receive %x'".
  std::string name(const At& at) const {
    if (!command_of_) return fmt::format("step {}", at.step);
    return fmt::format("'{}'", command_of_(at.program, at.step));
  }
  std::string of_device(const At& at) const {
    return fmt::format("{} of device {}", name(at), programs_[at.program].device);
  }
  // Its action, where its name does not say it.
  std::string doing(const At& at) const {
    return command_of_ ? std::string() : fmt::format(" ({})", to_string(step(at)));
  }

  Status number_devices() {
    for (size_t i = 0; i < programs_.size(); ++i)
      if (!number_.emplace(programs_[i].device, i).second)
        return bad_input("device {} has two programs", programs_[i].device);
    return {};
  }

  // Finds the partner of each send and receive.
  Status pair() {
    std::map<Channel, std::pair<std::vector<At>, std::vector<At>>> channels;
    partner_.resize(programs_.size());
    for (size_t p = 0; p < programs_.size(); ++p) {
      const DeviceProgram& program = programs_[p];
      partner_[p].resize(program.steps.size());
      for (size_t i = 0; i < program.steps.size(); ++i) {
        const DeviceStep& each = program.steps[i];
        if (each.kind == StepKind::send)
          channels[{program.device, each.peer, each.tag}].first.push_back({p, i});
        else if (each.kind == StepKind::receive)
          channels[{each.peer, program.device, each.tag}].second.push_back({p, i});
      }
    }
    for (const auto& [channel, ends] : channels) {
      const auto& [sends, receives] = ends;
      for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i >= receives.size())
          return bad_input("device {} has no receive for it", channel.to).at(text(sends[i]));
        if (i >= sends.size())
          return bad_input("device {} has no send for it", channel.from).at(text(receives[i]));
        const int64_t sent = step(sends[i]).from.count, received = step(receives[i]).to.count;
        if (sent != received)
          return bad_input("it sends {} elements, and {} receives {}", sent, text(receives[i]),
                           received)
              .at(text(sends[i]));
        partner_of(sends[i]) = receives[i];
        partner_of(receives[i]) = sends[i];
      }
    }
    return {};
  }
  At& partner_of(const At& at) { return partner_[at.program][at.step]; }

  // A run without buffers: a wait ends when the partner has begun.
  Status run() {
    next_.assign(programs_.size(), 0);
    begun_.resize(programs_.size());
    for (size_t p = 0; p < programs_.size(); ++p)
      begun_[p].resize(static_cast<size_t>(programs_[p].tickets));
    std::vector<size_t> to_do(programs_.size());
    for (size_t p = 0; p < to_do.size(); ++p) to_do[p] = p;
    std::vector<std::vector<size_t>> waiting(programs_.size());  // who waits for a device
    while (!to_do.empty()) {
      const size_t p = to_do.back();
      to_do.pop_back();
      const size_t before = next_[p];
      if (const std::optional<size_t> other = go(p)) waiting[*other].push_back(p);
      if (next_[p] == before) continue;
      to_do.insert(to_do.end(), waiting[p].begin(), waiting[p].end());
      waiting[p].clear();
    }
    for (size_t p = 0; p < programs_.size(); ++p)
      if (next_[p] < programs_[p].steps.size()) return report(p);
    return {};
  }

  // The transfer that a device's wait is for.
  At awaited(size_t p) const {
    const DeviceStep& wait = programs_[p].steps[next_[p]];
    return {p, begun_[p][static_cast<size_t>(wait.ticket)]};
  }

  // As far as it gets; then the device that it waits for, if that has not begun.
  std::optional<size_t> go(size_t p) {
    for (; next_[p] < programs_[p].steps.size(); ++next_[p]) {
      const DeviceStep& each = programs_[p].steps[next_[p]];
      if (begins(each)) begun_[p][static_cast<size_t>(each.ticket)] = next_[p];
      if (each.kind != StepKind::wait) continue;
      const At partner = partner_of(awaited(p));
      if (next_[partner.program] <= partner.step) return partner.program;
    }
    return std::nullopt;
  }

  // Each device that is stuck waits for one that is stuck: the chain comes back to itself.
  Error report(size_t p) {
    std::set<size_t> seen;
    while (seen.insert(p).second) p = partner_of(awaited(p)).program;
    const At first = {p, next_[p]}, needs = partner_of(awaited(p));
    const At second = {needs.program, next_[needs.program]};
    const At awaits = awaited(needs.program);
    return bad_input(
               "the devices wait for each other: {} needs {}{}, but that device waits in {}{}, "
               "which needs {}",
               of_device(first), of_device(needs), doing(needs), name(second), doing(awaits),
               of_device(partner_of(awaits)))
        .at(text(first))
        .with_hint(command_of_ ? "begin to send before the wait that its receiver needs first"
                               : "begin all transfers of a round before the first wait");
  }

  std::span<const DeviceProgram> programs_;
  const CommandOfStep& command_of_;
  std::map<int32_t, size_t> number_;        // of the program of a device
  std::vector<std::vector<At>> partner_;    // by program and step
  std::vector<std::vector<size_t>> begun_;  // by program and ticket: the step
  std::vector<size_t> next_;                // by program: the step that comes next
};

}  // namespace

Status check_steps_of(const DeviceProgram& program) { return OneDevice(program).check(); }

Status check_steps(std::span<const DeviceProgram> programs, const CommandOfStep& command_of) {
  for (const DeviceProgram& program : programs) HONE_TRY(check_steps_of(program));
  return AllDevices(programs, command_of).check();
}

}  // namespace hone
