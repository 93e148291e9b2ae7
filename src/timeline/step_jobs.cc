#include "timeline/step_jobs.h"

#include <map>

#include "transport/transport.h"

namespace hone {
namespace {

// The n-th message of a channel is that of the n-th send and of the n-th receive: whichever comes
// first adds its job, and both make it wait.
class StepJobs {
 public:
  StepJobs(SystemJobs& jobs, const StepJobOptions& options) : jobs_(jobs), options_(options) {}

  uint32_t add(const DeviceProgram& program, std::vector<uint32_t> begin) {
    program_ = &program;
    point_ = std::move(begin);
    tickets_.assign(static_cast<size_t>(program.tickets), {});
    for (const DeviceStep& step : program.steps) add(step);
    return point_.size() == 1 ? point_.front() : jobs_.join(std::move(point_));
  }

 private:
  // The part of one end in a channel. Messages come in order, so who has waited for one has those
  // before it.
  struct End {
    std::vector<uint32_t> begun;  // messages
    size_t waited = 0;            // the first ones
  };
  struct Transfer {
    End* end = nullptr;
    size_t number = 0;
    bool is_complete = false;  // from its beginning
  };

  void add(const DeviceStep& step) {
    switch (step.kind) {
      case StepKind::send:
      case StepKind::receive: return begin_transfer(step);
      case StepKind::wait: return wait(tickets_[static_cast<size_t>(step.ticket)]);
      case StepKind::copy:
      case StepKind::zero: return compute(step, &StepRates::copy);
      case StepKind::add: return compute(step, &StepRates::add);
    }
  }

  void begin_transfer(const DeviceStep& step) {
    const bool sends = step.kind == StepKind::send;
    const int32_t own = program_->device;
    const Channel channel =
        sends ? Channel{own, step.peer, step.tag} : Channel{step.peer, own, step.tag};
    const int64_t elements = sends ? step.from.count : step.to.count;
    End& end = (sends ? senders_ : receivers_)[channel];
    std::vector<uint32_t>& messages = messages_[channel];
    const size_t number = end.begun.size();
    if (number == messages.size())
      messages.push_back(jobs_.send(channel.from, channel.to,
                                    static_cast<double>(elements * options_.element_bytes), {}));
    const uint32_t message = messages[number];
    for (const uint32_t before : point()) jobs_.wait(message, before);
    end.begun.push_back(message);
    tickets_[static_cast<size_t>(step.ticket)] = {&end, number, sends && options_.buffers};
  }

  void wait(const Transfer& transfer) {
    if (transfer.is_complete) return;
    End& end = *transfer.end;
    for (; end.waited <= transfer.number; ++end.waited) point_.push_back(end.begun[end.waited]);
  }

  void compute(const DeviceStep& step, double StepRates::* rate) {
    if (options_.rates.empty()) return;
    const int32_t device = program_->device;
    const double seconds = options_.rates[static_cast<size_t>(device)].*rate *
                           static_cast<double>(step.to.count * options_.element_bytes);
    const uint32_t job = jobs_.compute(device, seconds, point());
    point_ = {job};
  }

  // The jobs, at most one, after which the next step begins.
  const std::vector<uint32_t>& point() {
    if (point_.size() > 1) point_ = {jobs_.join(std::move(point_))};
    return point_;
  }

  SystemJobs& jobs_;
  const StepJobOptions& options_;
  std::map<Channel, std::vector<uint32_t>> messages_;
  std::map<Channel, End> senders_, receivers_;
  const DeviceProgram* program_ = nullptr;  // at hand, with what follows
  std::vector<uint32_t> point_;
  std::vector<Transfer> tickets_;
};

Status check_devices(std::span<const DeviceProgram> programs, int64_t devices) {
  const auto check = [&](int32_t device) -> Status {
    if (device >= 0 && device < devices) return {};
    return bad_input("a program names device {}, and the system has {}", device, devices)
        .with_hint(fmt::format("devices are 0 to {}", devices - 1));
  };
  for (const DeviceProgram& program : programs) {
    HONE_TRY(check(program.device));
    for (const DeviceStep& step : program.steps)
      if (step.kind == StepKind::send || step.kind == StepKind::receive) HONE_TRY(check(step.peer));
  }
  return {};
}

}  // namespace

StepRates step_rates(const Target& target) {
  return {.copy = 2 / target.memory_one_core, .add = 3 / target.memory_one_core};
}

Result<std::vector<uint32_t>> add_steps(SystemJobs& jobs, std::span<const DeviceProgram> programs,
                                        const StepJobOptions& options,
                                        std::span<const std::vector<uint32_t>> begins) {
  HONE_TRY(check_devices(programs, jobs.devices()));
  HONE_CHECK(begins.empty() || begins.size() == programs.size(), "{} programs, {} begins",
             programs.size(), begins.size());
  StepJobs steps(jobs, options);
  std::vector<uint32_t> ends;
  for (size_t i = 0; i < programs.size(); ++i)
    ends.push_back(steps.add(programs[i], begins.empty() ? std::vector<uint32_t>() : begins[i]));
  return ends;
}

}  // namespace hone
