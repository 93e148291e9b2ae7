#include "cost/plan_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "cost/features.h"
#include "cost/task_seconds.h"
#include "program/frame.h"
#include "program/tasks.h"

namespace hone {
namespace {

using program::BufferId;

constexpr double kKiB = 1024, kMicrosecond = 1e-6;

float in_kib(double bytes) { return log_feature(bytes / kKiB); }

// The uses of memory by the tasks of a run so far. The clock counts bytes that were used.
class UsedMemory {
 public:
  explicit UsedMemory(const program::Frame& frame)
      : frame_(frame), last_(frame.buffers.size()), writer_(frame.buffers.size()) {}

  // The bytes that were used since this memory was; a temporary shares its place with others.
  double distance(BufferId buffer) const {
    const BufferId place = program::place_of(frame_, buffer);
    std::optional<double> last = last_[place];
    const program::Buffer& own = frame_.buffers[place];
    if (own.role == program::Role::temporary && own.offset)
      for (BufferId other = 0; other < frame_.buffers.size(); ++other)
        if (last_[other] && overlap(own, frame_.buffers[other]))
          last = std::max(last.value_or(0), *last_[other]);
    return clock_ - last.value_or(0);
  }
  std::optional<uint32_t> writer(BufferId buffer) const {
    return writer_[program::place_of(frame_, buffer)];
  }
  void use(BufferId buffer) {
    clock_ += bytes(buffer);
    last_[program::place_of(frame_, buffer)] = clock_;
  }
  void write(BufferId buffer, uint32_t task) { writer_[program::place_of(frame_, buffer)] = task; }
  // The next run: nobody has written its values yet.
  void begin_again() { std::ranges::fill(writer_, std::nullopt); }

  double bytes(BufferId buffer) const {
    return static_cast<double>(frame_.buffers[buffer].type.static_bytes());
  }

 private:
  static bool overlap(const program::Buffer& a, const program::Buffer& b) {
    return b.role == program::Role::temporary && b.offset &&
           *a.offset < *b.offset + b.type.static_bytes() &&
           *b.offset < *a.offset + a.type.static_bytes();
  }

  const program::Frame& frame_;
  std::vector<std::optional<double>> last_;      // by buffer: the clock then
  std::vector<std::optional<uint32_t>> writer_;  // by buffer: a node
  double clock_ = 0;
};

class Describer {
 public:
  Describer(const Program& program, const Target& target, const Cost& cost)
      : program_(program), target_(target), cost_(cost), memory_(*program.main) {}

  Result<PlanGraph> run() {
    for (const program::Buffer& buffer : program_.main->buffers)
      if (!buffer.type.is_static())
        return unsupported("the sizes of '{}' are open: plans are described for numbers",
                           buffer.name);
    HONE_TRY(price_tasks());
    for (const program::Command& command : program_.main->commands) {
      for (BufferId b : program::reads_of(command)) memory_.use(b);
      for (BufferId b : program::writes_of(command)) memory_.use(b);
    }
    memory_.begin_again();
    for (size_t c = 0; c < program_.main->commands.size(); ++c) {
      HONE_TRY(add(program_.main->commands[c], seconds_[c]));
      if (graph_.nodes.size() > kMostPlanNodes)
        return over_limit("the plan has more than {} tasks and uses of memory", kMostPlanNodes);
    }
    return std::move(graph_);
  }

 private:
  Status price_tasks() {
    std::unordered_map<uint64_t, double> launches;
    for (const program::Kernel& kernel : program_.kernels) {
      if (kernel.body == nullptr || !kernel.schedule)
        return unsupported("nobody knows what kernel '{}' was built from", kernel.tiles.name);
      auto facts = std::make_shared<const KernelFacts>(*kernel.body);
      kinds_.push_back(kernel_kind(*facts, kernel.schedule->algorithm()));
      launches[task_kernel(kernel)] =
          cost_.kernel(std::move(facts), program_.threads)->seconds(*kernel.schedule);
    }
    const std::vector<TaskSeconds> tasks =
        HONE_TRY(task_seconds(tasks_of(program_), launches, cost_, {}));
    if (tasks.size() != program_.main->commands.size())
      return unsupported("plans that exchange data with other devices are not described");
    for (const TaskSeconds& task : tasks) {
      seconds_.push_back(task.total());
      graph_.seconds += task.total();
    }
    if (!(graph_.seconds > 0)) return unsupported("a plan without a price is not described");
    return {};
  }

  Status add(const program::Command& command, double seconds) {
    const std::vector<BufferId> reads = program::reads_of(command);
    const std::vector<BufferId> writes = program::writes_of(command);
    PlanFeatures task = of_command(command);
    task.share = static_cast<float>(seconds / graph_.seconds);
    task.seconds = log_feature(seconds / kMicrosecond);
    double in = 0, out = 0;
    for (BufferId b : reads) in += memory_.bytes(b);
    for (BufferId b : writes) out += memory_.bytes(b);
    task.bytes_in = in_kib(in);
    task.bytes_out = in_kib(out);
    std::vector<uint32_t> read;
    for (BufferId b : reads) {
      read.push_back(add_node(use(b, false), 0));
      if (const auto writer = memory_.writer(b)) graph_.edges.push_back({*writer, read.back()});
    }
    const uint32_t node = add_node(task, task.share);
    for (uint32_t each : read) graph_.edges.push_back({each, node});
    for (BufferId b : writes) {
      const uint32_t written = add_node(use(b, true), 0);
      graph_.edges.push_back({node, written});
      memory_.write(b, node);
    }
    for (BufferId b : reads) memory_.use(b);
    for (BufferId b : writes) memory_.use(b);
    return {};
  }

  PlanFeatures of_command(const program::Command& command) const {
    PlanFeatures task;
    if (const auto* const launch = std::get_if<program::Launch>(&command.kind)) {
      const auto at = std::ranges::find(kKernelKinds, kinds_[launch->kernel]);
      task.kind[static_cast<size_t>(at - std::begin(kKernelKinds))] = 1;
      const bool divides = program_.kernels[launch->kernel].schedule->threads > 0;
      task.threads = divides ? static_cast<float>(std::log2(program_.threads)) : 0;
    } else if (std::holds_alternative<program::Copy>(command.kind)) {
      task.is_copy = 1;
    } else {
      task.is_region = 1;
    }
    return task;
  }

  PlanFeatures use(BufferId buffer, bool is_written) const {
    const double bytes = memory_.bytes(buffer), distance = memory_.distance(buffer);
    const program::Role role =
        program_.main->buffers[program::base_of(*program_.main, buffer)].role;
    const auto fits = [&](const CacheLevel& level) {
      return bytes + distance <= static_cast<double>(level.bytes) ? 1.0F : 0.0F;
    };
    const std::vector<CacheLevel>& caches = target_.caches;
    PlanFeatures use;
    use.is_use = 1;
    use.bytes = in_kib(bytes);
    use.distance = in_kib(distance);
    if (!caches.empty()) {
      use.is_in_first = fits(caches[0]);
      use.is_in_second = fits(caches[std::min<size_t>(1, caches.size() - 1)]);
      use.is_in_last = fits(caches.back());
    }
    use.is_written = is_written ? 1 : 0;
    use.is_constant = role == program::Role::constant ? 1 : 0;
    use.is_port = role == program::Role::input || role == program::Role::output ? 1 : 0;
    return use;
  }

  uint32_t add_node(const PlanFeatures& features, float share) {
    graph_.nodes.push_back(std::bit_cast<PlanRow>(features));
    graph_.share.push_back(share);
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }

  const Program& program_;
  const Target& target_;
  const Cost& cost_;
  UsedMemory memory_;
  std::vector<std::string_view> kinds_;  // by kernel
  std::vector<double> seconds_;          // by command
  PlanGraph graph_;
};

}  // namespace

std::string plan_feature_version() {
  Hasher hasher;
#define HONE_PLAN_FEATURE(member, doc) \
  hasher.add(std::string_view(#member)).add(std::string_view(doc));
#include "cost/plan_features.def"
  for (std::string_view kind : kKernelKinds) hasher.add(kind);
  return fmt::format("{:016x}", hasher.value());
}

Result<PlanGraph> plan_graph(const Program& program, const Target& target, const Cost& cost) {
  return Describer(program, target, cost).run();
}

}  // namespace hone
