#include "search/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "search/pipeline_index.h"
#include "timeline/held_memory.h"
#include "timeline/system_jobs.h"

namespace hone {
namespace {

using Kind = PipelineTask::Kind;
using Orders = std::vector<std::vector<PipelineTask>>;

constexpr std::string_view kNames[] = {"gpipe", "1f1b", "interleaved"};

// The first `warm` tasks forward, then one forward and one backward in turns, then the rest
// backward.
std::vector<PipelineTask> in_turns(const std::vector<PipelineTask>& forward,
                                   const std::vector<PipelineTask>& backward, size_t warm) {
  std::vector<PipelineTask> order;
  warm = std::min(warm, forward.size());
  size_t next = 0;
  while (next < warm) order.push_back(forward[next++]);
  for (const PipelineTask& back : backward) {
    if (next < forward.size()) order.push_back(forward[next++]);
    order.push_back(back);
  }
  order.insert(order.end(), forward.begin() + static_cast<std::ptrdiff_t>(next), forward.end());
  return order;
}

std::vector<PipelineTask> order_of_stage(const PipelineShape& shape, PipelineSchedule schedule,
                                         int32_t stage) {
  std::vector<PipelineTask> forward, backward;
  for (int32_t b = 0; b < shape.micro_batches; ++b) {
    forward.push_back({Kind::forward, stage, b});
    if (shape.has_backward) backward.push_back({Kind::backward, stage, b});
  }
  // With one more in hand, each stage waits no longer than the next one.
  const int32_t warm =
      schedule == PipelineSchedule::gpipe ? shape.micro_batches : shape.stages() - stage - 1;
  return in_turns(forward, backward, index_at(warm));
}

// Micro-batches pass a device in groups of as many as there are devices, each group through all of
// its stages.
std::vector<PipelineTask> interleaved_order(const PipelineShape& shape, int32_t device,
                                            int32_t devices) {
  const int32_t chunks = shape.stages() / devices;
  const int32_t count = shape.micro_batches * chunks;
  std::vector<PipelineTask> forward, backward;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t chunk = i / devices % chunks;
    const int32_t batch = i / (devices * chunks) * devices + i % devices;
    forward.push_back({Kind::forward, chunk * devices + device, batch});
    if (shape.has_backward)
      backward.push_back({Kind::backward, (chunks - 1 - chunk) * devices + device, batch});
  }
  return in_turns(forward, backward, index_at((devices - device - 1) * 2 + (chunks - 1) * devices));
}

}  // namespace

std::string_view name(PipelineSchedule schedule) { return kNames[static_cast<size_t>(schedule)]; }

std::optional<PipelineSchedule> schedule_from_name(std::string_view text) {
  for (const PipelineSchedule one : kPipelineSchedules)
    if (name(one) == text) return one;
  return std::nullopt;
}

Result<Orders> pipeline_orders(const PipelineShape& shape, PipelineSchedule schedule,
                               int32_t devices) {
  Orders orders(index_at(devices));
  if (schedule == PipelineSchedule::interleaved) {
    for (int32_t s = 0; s < shape.stages(); ++s)
      if (shape.devices_of[index_at(s)] != std::vector<int32_t>{s % devices})
        return unsupported("interleaved stages lie around {} devices, and stage {} does not",
                           devices, s);
    if (shape.stages() % devices != 0 || shape.micro_batches % devices != 0)
      return unsupported("{} stages and {} micro-batches do not interleave on {} devices",
                         shape.stages(), shape.micro_batches, devices)
          .with_hint("both are multiples of the number of devices");
    for (int32_t d = 0; d < devices; ++d)
      orders[index_at(d)] = interleaved_order(shape, d, devices);
    return orders;
  }
  std::vector<bool> has_stage(index_at(devices), false);
  for (int32_t s = 0; s < shape.stages(); ++s) {
    for (const int32_t device : shape.devices_of[index_at(s)]) {
      if (has_stage[index_at(device)])
        return unsupported("device {} has several stages, which {} has not", device, name(schedule))
            .with_hint("interleaved has; or give each stage devices of its own");
      has_stage[index_at(device)] = true;
    }
    for (const int32_t device : shape.devices_of[index_at(s)])
      orders[index_at(device)] = order_of_stage(shape, schedule, s);
  }
  return orders;
}

double PipelineTimes::idle() const {
  const double all = seconds * static_cast<double>(busy.size());
  return all > 0 ? 1 - std::accumulate(busy.begin(), busy.end(), 0.0) / all : 0;
}

namespace {

class Simulation {
 public:
  Simulation(const PipelineShape& shape, const Orders& orders, std::span<const StageFacts> stages,
             const System& system)
      : shape_(shape), orders_(orders), stages_(stages), jobs_(system) {
    times_.busy.assign(orders.size(), 0);
  }

  Result<PipelineTimes> run() {
    add_tasks();
    for (const auto& [task, jobs] : numbers_) add_waits(task, jobs);
    add_updates();
    add_memory();
    const Timeline timeline = HONE_TRY(Timeline::open(jobs_.jobs()));
    times_.seconds = seconds_of(timeline.end());
    for (const HeldMemory& device :
         HONE_TRY(held_memory(timeline, buffers_, static_cast<uint32_t>(orders_.size()))))
      times_.memory.push_back(device.peak);
    return std::move(times_);
  }

 private:
  using Key = std::tuple<Kind, int32_t, int32_t>;

  const std::vector<uint32_t>& jobs(Kind kind, int32_t stage, int32_t batch) const {
    return numbers_.at({kind, stage, batch});
  }

  void add_tasks() {
    for (size_t d = 0; d < orders_.size(); ++d) {
      std::vector<uint32_t> before;
      for (const PipelineTask& task : orders_[d]) {
        const StageFacts& stage = stages_[index_at(task.stage)];
        const double seconds = task.kind == Kind::forward ? stage.forward : stage.backward;
        times_.busy[d] += seconds;
        before = {jobs_.compute(static_cast<int64_t>(d), seconds, before)};
        const auto& devices = shape_.devices_of[index_at(task.stage)];
        std::vector<uint32_t>& jobs = numbers_[{task.kind, task.stage, task.batch}];
        jobs.resize(devices.size());
        jobs[static_cast<size_t>(std::ranges::find(devices, static_cast<int32_t>(d)) -
                                 devices.begin())] = before[0];
      }
      last_.push_back(before);
    }
  }

  // A task waits for others beside those that its devices do before. Each device gets its bytes of
  // one of the senders.
  void add_waits(const Key& key, const std::vector<uint32_t>& jobs) {
    const auto [kind, stage, batch] = key;
    const auto from = [&](Kind other, int32_t neighbour, double bytes) {
      const std::vector<uint32_t>& makers = this->jobs(other, neighbour, batch);
      const auto& senders = shape_.devices_of[index_at(neighbour)];
      const auto& receivers = shape_.devices_of[index_at(stage)];
      for (size_t i = 0; i < receivers.size(); ++i) {
        const size_t j = i % senders.size();
        jobs_.wait(jobs[i], senders[j] == receivers[i]
                                ? makers[j]
                                : jobs_.send(senders[j], receivers[i], bytes, {makers[j]}));
      }
    };
    const StageFacts& own = stages_[index_at(stage)];
    if (kind == Kind::forward) {
      if (stage > 0) from(kind, stage - 1, own.received_forward);
    } else if (stage + 1 < shape_.stages()) {
      from(kind, stage + 1, own.received_backward);
    }
  }

  void add_updates() {
    for (int32_t s = 0; s < shape_.stages(); ++s)
      for (const int32_t device : shape_.devices_of[index_at(s)]) {
        std::vector<uint32_t>& last = last_[index_at(device)];
        last = {jobs_.compute(device, stages_[index_at(s)].update, last)};
        times_.busy[index_at(device)] += stages_[index_at(s)].update;
      }
  }

  void add_memory() {
    for (int32_t s = 0; s < shape_.stages(); ++s)
      for (const int32_t device : shape_.devices_of[index_at(s)])
        buffers_.push_back({static_cast<uint32_t>(device), stages_[index_at(s)].held});
    for (const auto& [key, makers] : numbers_) {
      const auto [kind, stage, batch] = key;
      if (kind != Kind::forward) continue;
      const std::vector<uint32_t>& users =
          shape_.has_backward ? jobs(Kind::backward, stage, batch) : makers;
      for (size_t i = 0; i < makers.size(); ++i)
        buffers_.push_back({static_cast<uint32_t>(shape_.devices_of[index_at(stage)][i]),
                            stages_[index_at(stage)].kept,
                            makers[i],
                            {users[i]}});
    }
  }

  const PipelineShape& shape_;
  const Orders& orders_;
  const std::span<const StageFacts> stages_;
  SystemJobs jobs_;
  std::map<Key, std::vector<uint32_t>> numbers_;  // of the devices of the stage, in their order
  std::vector<std::vector<uint32_t>> last_;       // by device: its last job, if it has one
  std::vector<HeldBuffer> buffers_;
  PipelineTimes times_;
};

}  // namespace

Result<PipelineTimes> simulate_pipeline(const PipelineShape& shape, PipelineSchedule schedule,
                                        std::span<const StageFacts> stages, const System& system) {
  const auto devices = static_cast<int32_t>(system.device_count());
  const Orders orders = HONE_TRY(pipeline_orders(shape, schedule, devices));
  return Simulation(shape, orders, stages, system).run();
}

}  // namespace hone
