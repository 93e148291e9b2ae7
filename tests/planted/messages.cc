#include "tests/planted/messages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/program/message_programs.h"
#include "tests/program/product_testing.h"
#include "tests/timeline/random_jobs.h"
#include "tests/timeline/slow_timeline.h"
#include "tests/transport/collective_cases.h"
#include "tests/transport/message_cases.h"
#include "tests/transport/processes.h"
#include "tests/transport/step_programs.h"
#include "transport/check_steps.h"
#include "transport/threads.h"
#include "transport/virtual_network.h"

namespace hone::planted_cases {
namespace {

Status run(std::span<const DeviceProgram> programs, DType dtype,
           std::span<const tested::Bytes> inputs, std::vector<tested::Bytes>& outputs, bool buffers,
           const ChooseEvent& choose) {
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  std::vector<tested::Bytes> scratch;
  std::vector<StepMemory> memory;
  for (const DeviceProgram& each : programs) {
    outputs.emplace_back(static_cast<size_t>(each.output) * size, std::byte{0x5a});
    scratch.emplace_back(static_cast<size_t>(each.scratch) * size);
  }
  for (size_t i = 0; i < programs.size(); ++i)
    memory.push_back({dtype, inputs[i], outputs[i], scratch[i]});
  VirtualNetwork network(9, {.buffers = buffers});
  return run_virtually(programs, network, memory, choose);
}

// A collective, at any timing.
std::string failed_collective(Rng& rng) {
  const tested::CollectiveCase drawn = tested::draw_case(rng, 6);
  const auto programs = step_programs(drawn.collective, drawn.schedule).value();
  if (const Status checked = check_steps(programs); !checked.ok())
    return fmt::format("{}: {}", drawn.text(), checked.error().to_string());
  std::vector<tested::Bytes> outputs;
  const Status ran = run(programs, drawn.dtype, drawn.inputs, outputs, rng.chance(0.5),
                         [&](size_t count) { return rng.below(count); });
  return ran.ok() ? tested::judge(drawn, outputs) : ran.error().to_string();
}

// Programs that the checker takes end without buffers, and no others do.
std::string failed_check(Rng& rng) {
  const std::vector<DeviceProgram> programs = tested::draw_programs(rng);
  const std::vector<tested::Bytes> inputs(programs.size(), tested::Bytes(8 * 4));
  std::vector<tested::Bytes> outputs;
  const Status ran = run(programs, DType::i32, inputs, outputs, false, nullptr);
  if (check_steps(programs).ok() == ran.ok()) return "";
  return ran.ok() ? "refused, but it ends" : ran.error().to_string();
}

std::string failed_order(Rng& rng) {
  const auto transport = make_thread_transport(2).value();
  return tested::order_fault(*transport, *transport, rng);
}

std::string failed_room() {
  const auto transports = tested::join_all(2, tested::by_shared_memory({1, 1}));
  return tested::room_fault(*transports[0], *transports[1]);
}

std::string difference(const Timeline& timeline, const std::vector<Ticks>& start,
                       const std::vector<Ticks>& end, Ticks most) {
  for (uint32_t job = 0; job < timeline.size(); ++job)
    if (std::abs(timeline.start(job) - start[job]) > most ||
        std::abs(timeline.end(job) - end[job]) > most)
      return fmt::format("job {} is from {} to {}, not from {} to {}", job, timeline.start(job),
                         timeline.end(job), start[job], end[job]);
  return "";
}

// The times of another simulation, by the slow one or from the beginning.
std::string against_slow(const Timeline& timeline, const Jobs& jobs) {
  const tested::SlowTimeline slow = tested::slow_timeline(jobs);
  return difference(timeline, slow.start, slow.end, ticks_of(1e-9));
}
std::string against_new(const Timeline& timeline, const Jobs& jobs) {
  const Timeline anew = Timeline::open(jobs).value();
  std::vector<Ticks> start, end;
  for (uint32_t job = 0; job < anew.size(); ++job) {
    start.push_back(anew.start(job));
    end.push_back(anew.end(job));
  }
  return difference(timeline, start, end, 0);
}

}  // namespace

std::string failed_messages(uint64_t seed) {
  Rng rng(seed);
  switch (seed % 6) {
    case 0: return failed_collective(rng);
    case 1: return failed_check(rng);
    case 2: return failed_order(rng);
    case 3: return tested::product_fault(seed, 4, true);
    case 4: return tested::message_fault(rng);
    default: return failed_room();
  }
}

// Short timelines of any jobs, and long ones whose rounds are alike, with changes.
std::string failed_timeline(uint64_t seed) {
  Rng rng(seed);
  const tested::Draw draw = {rng, rng.chance(0.5)};
  const bool is_long = seed % 4 == 3;
  Jobs jobs = is_long ? tested::rounds_of_jobs(3, 60) : tested::random_jobs(rng, draw);
  Timeline timeline = Timeline::open(jobs).value();
  if (!is_long)
    if (std::string wrong = against_slow(timeline, jobs); !wrong.empty()) return wrong;
  for (int i = 0; i < 6 && !jobs.jobs.empty(); ++i) {
    if (const Status good = tested::change(rng, draw, jobs, timeline); !good.ok())
      return good.error().to_string();
    timeline.update();
    if (std::string wrong = against_new(timeline, jobs); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hone::planted_cases
