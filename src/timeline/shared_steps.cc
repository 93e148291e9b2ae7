#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "timeline/shared_jobs.h"
#include "timeline/step_jobs.h"
#include "timeline/timeline.h"
#include "transport/turned.h"

// Members of a group are of one type if their programs have the same steps. Each message of them
// goes to, and comes from, the same step of members of equal types. The steps of a type are added
// once.

namespace hone {
namespace {

bool is_message(const DeviceStep& step) {
  return step.kind == StepKind::send || step.kind == StepKind::receive;
}

// The steps of a member, and the step of the peer that each message begins with or ends at.
struct Member {
  const DeviceProgram* program = nullptr;
  std::vector<uint32_t> matched;  // of each step
};

// The steps by peer and tag: the sends or the receives of a program, in order.
using StepsByPeer = std::map<std::pair<int32_t, uint32_t>, std::vector<uint32_t>>;
StepsByPeer steps_by_peer(const DeviceProgram& program, StepKind kind) {
  StepsByPeer steps;
  for (uint32_t i = 0; i < program.steps.size(); ++i)
    if (const DeviceStep& step = program.steps[i]; step.kind == kind)
      steps[{step.peer, step.tag}].push_back(i);
  return steps;
}

// The things that two programs of a type have in common, but for peers: who is the first, the
// second, ...
uint64_t form_of(const DeviceProgram& program) {
  Hasher hash;
  std::map<int32_t, size_t> peers;
  for (const DeviceStep& step : program.steps) {
    hash.add(step.kind).add(step.ticket).add(step.tag).add(step.from.count).add(step.to.count);
    if (is_message(step)) hash.add(peers.try_emplace(step.peer, peers.size()).first->second);
  }
  return hash.value();
}

class GroupSteps {
 public:
  GroupSteps(const GroupedCollective& grouped, const CollectiveSchedule& schedule)
      : grouped_(grouped), schedule_(schedule), members_(grouped.collective.devices.size()) {}

  Status open(size_t devices) {
    HONE_TRY(check_groups(devices));
    turns_ = turns(grouped_.collective, schedule_);
    HONE_TRY(check_size(grouped_.collective, schedule_, static_cast<int64_t>(devices)));
    if (turns_)
      programs_ = {HONE_TRY(first_program(grouped_.collective, schedule_))};
    else
      programs_ = HONE_TRY(step_programs(grouped_.collective, schedule_));
    match();
    find_types();
    return {};
  }

  size_t types() const { return first_of_type_.size(); }
  const Member& first(size_t type) const { return programs_of_[first_of_type_[type]]; }
  size_t type_of_peer(const DeviceStep& step) const {
    return turns_ ? 0 : types_[static_cast<size_t>(step.peer)];
  }

  std::vector<bool> devices_of(size_t type, size_t devices) const {
    std::vector<bool> set(devices);
    each_member(type, [&](const std::vector<int32_t>& group, size_t member) {
      set[static_cast<size_t>(group[member])] = true;
    });
    return set;
  }

  // To whom the members of a type send in a step.
  Pattern pattern(size_t type, uint32_t step, size_t devices) const {
    Pattern pattern(devices, kNobody);
    each_member(type, [&](const std::vector<int32_t>& group, size_t member) {
      const Member& of = programs_of_[turns_ ? 0 : member];
      const auto peer = static_cast<size_t>(of.program->steps[step].peer);
      const size_t to = turns_ ? (peer + member) % members_ : peer;
      pattern[static_cast<size_t>(group[member])] = static_cast<uint32_t>(group[to]);
    });
    return pattern;
  }

 private:
  Status check_groups(size_t devices) const {
    std::vector<bool> seen(devices);
    for (const std::vector<int32_t>& group : grouped_.groups) {
      if (group.size() != members_)
        return bad_input("a group of {} devices, and the collective is of {}", group.size(),
                         members_);
      for (const int32_t device : group) {
        if (device < 0 || static_cast<size_t>(device) >= devices)
          return bad_input("a group names device {}, and the system has {}", device, devices);
        if (seen[static_cast<size_t>(device)])
          return bad_input("device {} is in the groups twice", device);
        seen[static_cast<size_t>(device)] = true;
      }
    }
    return {};
  }

  template <class Function>
  void each_member(size_t type, const Function& function) const {
    for (const std::vector<int32_t>& group : grouped_.groups)
      for (size_t member = 0; member < members_; ++member)
        if (turns_ || types_[member] == type) function(group, member);
  }

  // The n-th message of a channel is that of the n-th send and of the n-th receive.
  void match() {
    std::vector<StepsByPeer> sends, receives;
    for (const DeviceProgram& program : programs_) {
      sends.push_back(steps_by_peer(program, StepKind::send));
      receives.push_back(steps_by_peer(program, StepKind::receive));
    }
    for (size_t member = 0; member < programs_.size(); ++member) {
      Member& made = programs_of_.emplace_back();
      made.program = &programs_[member];
      made.matched.assign(made.program->steps.size(), 0);
      for (const bool is_send : {true, false})
        for (const auto& [key, steps] : (is_send ? sends : receives)[member]) {
          const auto [peer, tag] = key;
          // With turned programs, who is `peer` further on sees this one as far before.
          const auto back =
              turns_ ? static_cast<int32_t>(members_) - peer : static_cast<int32_t>(member);
          const size_t other = turns_ ? 0 : static_cast<size_t>(peer);
          const std::vector<uint32_t>& theirs = (is_send ? receives : sends)[other].at({back, tag});
          HONE_CHECK(theirs.size() == steps.size(), "{} messages begin and {} end", steps.size(),
                     theirs.size());
          for (size_t n = 0; n < steps.size(); ++n) made.matched[steps[n]] = theirs[n];
        }
    }
  }

  // Begins with types by form, and divides those whose messages differ, until none does.
  void find_types() {
    std::vector<uint64_t> signs;
    for (const DeviceProgram& program : programs_) signs.push_back(form_of(program));
    size_t count = number(signs);
    while (!turns_) {
      for (size_t member = 0; member < programs_.size(); ++member) {
        Hasher hash;
        hash.add(types_[member]);
        const Member& of = programs_of_[member];
        for (size_t i = 0; i < of.matched.size(); ++i)
          if (is_message(of.program->steps[i]))
            hash.add(types_[static_cast<size_t>(of.program->steps[i].peer)]).add(of.matched[i]);
        signs[member] = hash.value();
      }
      const size_t before = std::exchange(count, number(signs));
      if (count == before) break;
    }
    for (size_t member = 0; member < types_.size(); ++member)
      if (types_[member] == first_of_type_.size()) first_of_type_.push_back(member);
  }

  // Numbers types by their first members.
  size_t number(const std::vector<uint64_t>& signs) {
    std::map<uint64_t, size_t> numbers;
    types_.resize(signs.size());
    for (size_t i = 0; i < signs.size(); ++i)
      types_[i] = numbers.try_emplace(signs[i], numbers.size()).first->second;
    return numbers.size();
  }

  const GroupedCollective& grouped_;
  const CollectiveSchedule& schedule_;
  const size_t members_;
  bool turns_ = false;
  std::vector<DeviceProgram> programs_;  // of each member, or of the first one if they turn
  std::vector<Member> programs_of_;
  std::vector<size_t> types_;          // of each program
  std::vector<size_t> first_of_type_;  // members
};

// Adds the steps of all types, as StepJobs (step_jobs.cc) does those of devices.
class SharedSteps {
 public:
  SharedSteps(SharedJobs& jobs, const GroupSteps& steps, int64_t element_bytes,
              const SharedRates& rates)
      : jobs_(jobs), steps_(steps), element_bytes_(element_bytes), rates_(rates) {}

  std::vector<uint32_t> add(const std::vector<uint32_t>& begin) {
    for (size_t type = 0; type < steps_.types(); ++type) add_messages(type);
    std::vector<uint32_t> ends;
    for (size_t type = 0; type < steps_.types(); ++type) {
      type_ = type;
      after_ = begin;
      got_.clear();
      channels_.clear();
      tickets_.assign(static_cast<size_t>(program().tickets), {});
      for (uint32_t i = 0; i < program().steps.size(); ++i) add_step(i);
      ends.push_back(point());
    }
    return ends;
  }

 private:
  // Messages from a peer come in order, so who has waited for one has those before it.
  struct Channel {
    std::vector<uint32_t> begun;  // messages
    size_t waited = 0;            // the first ones
  };
  struct Transfer {
    Channel* channel = nullptr;  // null: it is complete
    size_t number = 0;
  };

  const DeviceProgram& program() const { return *steps_.first(type_).program; }

  void add_messages(size_t type) {
    doers_.push_back(jobs_.set(steps_.devices_of(type, jobs_.devices())));
    const DeviceProgram& program = *steps_.first(type).program;
    std::map<int32_t, uint32_t> by_peer;  // of the first member
    std::vector<uint32_t>& made = messages_.emplace_back(program.steps.size(), UINT32_MAX);
    for (uint32_t i = 0; i < program.steps.size(); ++i) {
      const DeviceStep& step = program.steps[i];
      if (step.kind != StepKind::send) continue;
      made[i] = jobs_.send(doers_.back(), pattern_of(type, i, step.peer, by_peer),
                           static_cast<double>(step.from.count * element_bytes_));
    }
  }

  // Members of a type have the same form: an equal peer of the first is an equal one of each.
  uint32_t pattern_of(size_t type, uint32_t step, int32_t peer,
                      std::map<int32_t, uint32_t>& by_peer) {
    const auto found = by_peer.find(peer);
    if (found != by_peer.end()) return found->second;
    return by_peer[peer] = jobs_.pattern(steps_.pattern(type, step, jobs_.devices()));
  }

  void add_step(uint32_t i) {
    const DeviceStep& step = program().steps[i];
    switch (step.kind) {
      case StepKind::send: return begin_send(i, step);
      case StepKind::receive: return begin_receive(i, step);
      case StepKind::wait: return wait(tickets_[static_cast<size_t>(step.ticket)]);
      case StepKind::copy:
      case StepKind::zero: return compute(step, rates_.copy);
      case StepKind::add: return compute(step, rates_.add);
    }
  }

  void begin_send(uint32_t i, const DeviceStep& step) {
    const uint32_t message = messages_[type_][i];
    const std::vector<uint32_t>& before = settled();
    jobs_.job(message).after.insert(jobs_.job(message).after.end(), before.begin(), before.end());
    tickets_[static_cast<size_t>(step.ticket)] = {};
  }

  void begin_receive(uint32_t i, const DeviceStep& step) {
    const size_t sender = steps_.type_of_peer(step);
    const uint32_t message = messages_[sender][steps_.first(type_).matched[i]];
    const std::vector<uint32_t>& before = settled();
    jobs_.job(message).there.insert(jobs_.job(message).there.end(), before.begin(), before.end());
    Channel& end = channels_[{step.peer, step.tag}];
    end.begun.push_back(message);
    tickets_[static_cast<size_t>(step.ticket)] = {&end, end.begun.size() - 1};
  }

  void wait(const Transfer& transfer) {
    if (transfer.channel == nullptr) return;
    Channel& end = *transfer.channel;
    for (; end.waited <= transfer.number; ++end.waited) got_.push_back(end.begun[end.waited]);
  }

  void compute(const DeviceStep& step, const std::vector<double>& rates) {
    if (rates.empty()) return;
    std::vector<double> seconds;
    for (const double rate : rates)
      seconds.push_back(rate * static_cast<double>(step.to.count * element_bytes_));
    const uint32_t job = jobs_.compute(doers_[type_], std::move(seconds), std::move(after_));
    jobs_.job(job).got = std::move(got_);
    after_ = {job};
    got_.clear();
  }

  // Jobs of the device after which the next step begins.
  const std::vector<uint32_t>& settled() {
    if (!got_.empty() || after_.size() > 1) after_ = {point()};
    return after_;
  }

  uint32_t point() {
    if (got_.empty() && after_.size() == 1) return after_.front();
    const uint32_t join = jobs_.join(doers_[type_], std::move(after_), std::move(got_));
    after_ = {join};
    got_.clear();
    return join;
  }

  SharedJobs& jobs_;
  const GroupSteps& steps_;
  const int64_t element_bytes_;
  const SharedRates& rates_;
  std::vector<uint32_t> doers_;                               // of each type
  std::vector<std::vector<uint32_t>> messages_;               // by type and step
  size_t type_ = 0;                                           // at hand, with what follows
  std::map<std::pair<int32_t, uint32_t>, Channel> channels_;  // by peer and tag
  std::vector<uint32_t> after_, got_;                         // jobs that must have ended
  std::vector<Transfer> tickets_;
};

}  // namespace

GroupedCollective grouped(std::span<const Collective> groups) {
  GroupedCollective made = {.collective = groups.front()};
  for (const Collective& group : groups) made.groups.push_back(group.devices);
  std::iota(made.collective.devices.begin(), made.collective.devices.end(), 0);
  const auto members = static_cast<int64_t>(made.collective.devices.size());
  if (members > kExactMembers)
    made.collective.elements = (made.collective.elements + members - 1) / members * members;
  return made;
}

SharedRates shared_rates(const System& system) {
  SharedRates made;
  for (const Target& target : system.targets) {
    const StepRates rates = step_rates(target);
    made.copy.push_back(rates.copy);
    made.add.push_back(rates.add);
  }
  return made;
}

Status check_size(const Collective& collective, const CollectiveSchedule& schedule,
                  int64_t devices) {
  const auto members = std::ssize(collective.devices);
  const int64_t most = most_messages(collective, schedule);
  if (most > (turns(collective, schedule) ? kMostTurnedMessages : kMostSharedMessages))
    return over_limit("{} of {} devices by '{}' may have {} messages", name(collective.kind),
                      members, to_string(schedule), most)
        .with_hint("a plan can name another schedule: tree, doubling or halving have few");
  // The others have a few patterns for all.
  if (schedule.algorithm == CollectiveAlgorithm::direct &&
      devices * (members - 1) > static_cast<int64_t>(kMostSends))
    return over_limit("{} devices send to {} others each, and {} messages are the most", devices,
                      members - 1, kMostSends);
  return {};
}

Result<double> seconds_alone(const System& system, const GroupedCollective& grouped,
                             const CollectiveSchedule& schedule, int64_t element_bytes,
                             size_t most) {
  SharedJobs jobs(static_cast<size_t>(system.device_count()));
  HONE_TRY(add_steps(jobs, grouped, schedule, element_bytes, shared_rates(system)));
  const ClassJobs classes = HONE_TRY(class_jobs(jobs.program(), system, true, most));
  return seconds_of(HONE_TRY(Timeline::open(classes.jobs)).end());
}

Result<std::vector<uint32_t>> add_steps(SharedJobs& jobs, const GroupedCollective& grouped,
                                        const CollectiveSchedule& schedule, int64_t element_bytes,
                                        const SharedRates& rates,
                                        const std::vector<uint32_t>& begin) {
  GroupSteps steps(grouped, schedule);
  HONE_TRY(steps.open(jobs.devices()));
  return SharedSteps(jobs, steps, element_bytes, rates).add(begin);
}

}  // namespace hone
