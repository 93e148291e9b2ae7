#include "compile/divided_code.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "cost/program_price.h"
#include "cost/system_timeline.h"
#include "plan/planned.h"
#include "rewrite/passes.h"
#include "shard/batch_part.h"

namespace hone {

Status DividedCode::add(Compilation& compilation) {
  images.push_back(*HONE_TRY(compilation.image()));
  const std::span<const GpuKernel> kernels = compilation.gpu_kernels();
  gpu_kernels.emplace_back(kernels.begin(), kernels.end());
  plans.push_back(print(*HONE_TRY(compilation.plan())));
  prices = compilation.cost().name();
  return {};
}

void keep_order(const Graph& graph, Plan& plan) {
  std::vector<std::string> order;
  for (NodeId n : graph.nodes())
    if (has_effect(graph, n)) order.push_back(step_name(graph, n));
  if (order.size() > 1) plan.order = std::move(order);
  for (const RegionRef& region : regions_of(graph)) {
    Plan inner;
    keep_order(*region.graph, inner);
    if (inner != Plan()) plan.region[region.key] = std::move(inner);
  }
}

CompileOptions options_of(const CompileOptions& options, const GpuPart* gpu) {
  CompileOptions made = options;
  if (gpu == nullptr) return made;
  made.device = gpu->device;
  made.prepare.is_for_gpu = true;
  made.plan.threads = Plan().threads;
  made.cost = gpu->cost;
  made.known = nullptr;  // kernels of the CPU
  made.revise = {};
  return made;
}

LoadDivided load_options(const DividedCode& code, const GpuParts& gpus, LoadDivided options) {
  for (const std::shared_ptr<const GpuPart>& one : gpus)
    options.gpus.push_back(one == nullptr ? nullptr : one->device);
  options.gpu_kernels = code.gpu_kernels;
  return options;
}

namespace {

Status add_code(BatchPart part, const Target& target, CompileOptions options, const System* system,
                DividedCode& made) {
  Graph graph = std::move(part.graph);
  if (part.has_sums) {
    graph = HONE_TRY(name_values(graph));
    keep_order(graph, options.plan);
    if (system != nullptr) HONE_TRY(add_best_schedules(graph, *system, options.plan));
    options.drops_unfit = true;  // passes may have moved a loop; the order is checked below
  }
  Compilation compilation(std::move(graph), target, std::move(options));
  return made.add(compilation);
}

}  // namespace

std::vector<image::Port> ports_of(const Graph& graph, std::span<const ValueId> values,
                                  std::string_view kind) {
  std::vector<image::Port> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view name = graph.name(values[i]);
    all.push_back(
        {name.empty() ? fmt::format("{}{}", kind, i) : std::string(name), graph.type(values[i])});
  }
  return all;
}

namespace {

const GpuPart* gpu_of(const GpuParts& gpus, size_t device) {
  return device < gpus.size() ? gpus[device].get() : nullptr;
}

// The name of a GPU's target; that of the CPU has none.
std::string sort_of(const GpuPart* gpu) { return gpu == nullptr ? "" : gpu->target.name; }

int64_t bytes_of(const Graph& graph) {
  int64_t bytes = 0;
  for (const auto& values : {graph.inputs(), graph.outputs()})
    for (ValueId v : values) bytes += graph.type(v).static_bytes();
  return bytes;
}

// The price of a run on one device, with the way of its data to a GPU and back.
Result<double> priced_seconds(const Graph& graph, const Target& target, CompileOptions options,
                              bool is_on_gpu) {
  constexpr double kBusBytesPerSecond = 12e9;  // of memory that the driver has not pinned
  options.observer = {};
  options.kernel_observer = {};
  Compilation compilation(graph, target, std::move(options));
  const Program& program = *HONE_TRY(compilation.program());
  const double moving = is_on_gpu ? static_cast<double>(bytes_of(graph)) / kBusBytesPerSecond : 0;
  return HONE_TRY(price(program, compilation.cost())).total() + moving;
}

// A line through the prices of all rows and of half of them.
Result<RowTimes> row_times(const Graph& whole, const BatchInputs& batch, const Target& target,
                           const CompileOptions& options, const GpuPart* gpu) {
  constexpr double kShortest = 1e-12;  // of a graph without work
  const auto seconds = [&](const Graph& graph) {
    return priced_seconds(graph, gpu == nullptr ? target : gpu->target, options_of(options, gpu),
                          gpu != nullptr);
  };
  const int64_t half = batch.rows / 2;
  const BatchShare share = {.rows = batch.rows, .first = 0, .count = half, .devices = 2};
  const double all = HONE_TRY(seconds(whole));
  const double less = HONE_TRY(seconds(HONE_TRY(batch_part(whole, batch.dims, share)).graph));
  const auto rows = static_cast<double>(batch.rows);
  const double row = std::clamp((all - less) / static_cast<double>(batch.rows - half), kShortest,
                                std::max(kShortest, all / rows));
  return RowTimes{.start = std::max(0.0, all - row * rows), .row = row};
}

}  // namespace

std::vector<BatchShare> shares_by_speed(const Graph& whole, const BatchInputs& batch,
                                        int64_t devices, const Target& target,
                                        const CompileOptions& options, const GpuParts& gpus) {
  std::vector<std::string> sorts;
  for (size_t i = 0; i < static_cast<size_t>(devices); ++i)
    sorts.push_back(sort_of(gpu_of(gpus, i)));
  const std::vector<BatchShare> equal = batch_shares(batch.rows, devices);
  if (batch.rows <= devices ||
      std::ranges::adjacent_find(sorts, std::not_equal_to()) == sorts.end())
    return equal;
  std::map<std::string, RowTimes> times_of;
  std::vector<RowTimes> times;
  for (size_t i = 0; i < sorts.size(); ++i) {
    const auto [known, is_new] = times_of.try_emplace(sorts[i]);
    if (is_new) {
      const Result<RowTimes> made = row_times(whole, batch, target, options, gpu_of(gpus, i));
      if (!made.ok()) return equal;
      known->second = *made;
    }
    times.push_back(known->second);
  }
  return batch_shares(batch.rows, times);
}

Result<DividedCode> divided_code(const Graph& whole, const BatchInputs& batch, int64_t devices,
                                 const Target& target, const CompileOptions& options,
                                 const System* system, const GpuParts& gpus) {
  DividedCode made = {.division = {.rows = batch.rows},
                      .inputs = ports_of(whole, whole.inputs(), "input"),
                      .outputs = ports_of(whole, whole.outputs(), "output")};
  made.division.inputs.assign(made.inputs.size(), kWhole);
  made.division.outputs.assign(made.outputs.size(), kWhole);
  const std::vector<BatchShare> shares =
      shares_by_speed(whole, batch, devices, target, options, gpus);
  if (system != nullptr && (system->device_count() != std::ssize(shares) || !gpus.empty()))
    system = nullptr;
  const auto add = [&](const BatchShare& share, uint32_t code) {
    made.division.shares.push_back({share.first, share.count, code});
  };
  const auto add_part = [&](BatchPart part, const GpuPart* gpu) {
    return add_code(std::move(part), gpu == nullptr ? target : gpu->target,
                    options_of(options, gpu), system, made);
  };
  if (shares.size() == 1) {
    system = nullptr;
    HONE_TRY(add_part({.graph = whole}, gpu_of(gpus, 0)));
    add(shares[0], 0);
    return made;
  }
  // Where the place does not matter: by rows and the name of the GPU.
  std::map<std::pair<int64_t, std::string>, uint32_t> known;
  for (size_t device = 0; device < shares.size(); ++device) {
    const BatchShare& share = shares[device];
    const GpuPart* const gpu = gpu_of(gpus, device);
    const std::pair key(share.count, sort_of(gpu));
    if (const auto found = known.find(key); found != known.end()) {
      add(share, found->second);
      continue;
    }
    BatchPart part = HONE_TRY(batch_part(whole, batch.dims, share));
    made.division.inputs = part.inputs;
    made.division.outputs = part.outputs;
    const auto code = static_cast<uint32_t>(made.images.size());
    if (!part.depends_on_first) known.emplace(key, code);
    HONE_TRY(add_part(std::move(part), gpu));
    add(share, code);
  }
  return made;
}

}  // namespace hone
