#include "report/profile.h"

#include <algorithm>

#include "base/text.h"
#include "program/tasks.h"
#include "report/kernel_work.h"

namespace hone {

namespace {

// The layer of a value. A value on the way to it has its name and more: "conv1.mul_2".
const std::string* layer_of(std::string_view value, const LayerNames& layers) {
  while (!value.empty()) {
    if (const auto found = layers.find(value); found != layers.end()) return &found->second;
    const size_t dot = value.rfind('.');
    if (dot == std::string_view::npos) break;
    value = value.substr(0, dot);
  }
  return nullptr;
}

// Copies come to one step.
std::vector<StepTime> measured_steps(std::span<const CommandTime> times, double runs) {
  std::vector<StepTime> steps;
  std::optional<size_t> copies;
  for (const CommandTime& time : times) {
    const bool is_copy = time.kernel.empty();
    if (!is_copy || !copies) {
      if (is_copy) copies = steps.size();
      steps.emplace_back();
      steps.back().command = is_copy ? "" : time.command;
      steps.back().kernel = time.kernel;
    }
    StepTime& step = is_copy ? steps[*copies] : steps.back();
    const double launches = static_cast<double>(time.runs) / runs;
    step.launches += launches;
    step.seconds += time.least * launches;
  }
  std::ranges::sort(steps, std::greater<>(), &StepTime::seconds);
  return steps;
}

SegmentProfile measured_profile(std::span<const CommandTime> times, int64_t runs,
                                std::string name) {
  SegmentProfile profile = {.name = std::move(name), .sizes = {}, .runs = 1, .steps = {}};
  profile.steps = measured_steps(times, static_cast<double>(std::max<int64_t>(runs, 1)));
  for (const StepTime& step : profile.steps) profile.seconds += step.seconds;
  return profile;
}

// The sizes of a unit's code, if it is for all.
Result<Bindings> sizes_of(const UnitTimes& one, const HonecFile& file) {
  for (const HonecFile::Program& program : file.programs())
    if (program.unit == one.unit && program.is_open) return bind_ports(program.inputs, one.inputs);
  return Bindings();
}

std::string sizes_text(const Bindings& sizes) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : sizes)
    texts.push_back(fmt::format("{} = {}", name, size.to_string()));
  return join(texts, ", ");
}

// Adds what the tasks of a plan know of its steps: the bytes that they move and the places of
// kernels without weights. These have no layer of their own, so the task before tells. A name that
// several regions use says nothing.
void add_tasks(std::vector<StepTime>& steps, const Tasks& tasks, const Bindings& sizes) {
  std::map<std::string_view, StepTime*> by_command;
  for (StepTime& step : steps) by_command.emplace(step.command, &step);
  const std::map<std::string_view, const Task*> named = launches_by_name(tasks);
  std::string last;
  for (const Task* task : in_order(tasks)) {
    const auto found = by_command.find(task->name);
    if (found == by_command.end() || !named.contains(task->name) || task->kernels.empty()) continue;
    StepTime& step = *found->second;
    if (const Dim moved = task->moved.bind(sizes); moved.is_static())
      step.bytes = static_cast<double>(moved.value()) * step.launches;
    if (step.layers.empty())
      step.after = last;
    else
      last = step.layers[0];
  }
}

}  // namespace

std::vector<std::string> layers_of(const PlannedKernel& kernel, const LayerNames& layers) {
  std::vector<std::string> found;
  const auto add = [&](std::string_view layer) {
    if (std::ranges::find(found, layer) == found.end()) found.emplace_back(layer);
  };
  for (const std::string& value : kernel.computes)
    if (const std::string* layer = layer_of(value, layers)) add(*layer);
  if (!found.empty()) return found;
  // Where values have no names, weights may: "layer1/0/conv1/weight".
  for (const std::string& weight : kernel.weights)
    if (const size_t slash = weight.rfind('/'); slash != std::string::npos && slash > 0)
      add(std::string_view(weight).substr(0, slash));
  return found;
}

std::string kernel_label(std::span<const std::string> layers, const std::string& kernel) {
  if (layers.empty()) return kernel;
  return layers.size() == 1 ? layers[0] : fmt::format("{} +{}", layers[0], layers.size() - 1);
}

std::string StepTime::label() const {
  if (kernel.empty()) return "(copies)";
  if (layers.empty() && after.empty()) return computes.empty() ? kernel : computes;
  const std::string where = layers.empty() ? "after " + after : kernel_label(layers, kernel);
  return computes.empty() ? where : fmt::format("{}: {}", where, computes);
}

Result<SegmentProfile> profile_of(std::span<const CommandTime> times, int64_t runs,
                                  const Graph& graph, const Plan& plan, const Target& target,
                                  const Cost& cost, const LayerNames& layers,
                                  const Bindings& sizes) {
  const std::map<std::string, PlannedKernel> kernels = HONE_TRY(planned_kernels(graph, plan));
  const int64_t threads = plan.threads.value_or(1);
  SegmentProfile profile = measured_profile(times, runs, graph.name());
  profile.sizes = sizes_text(sizes);
  for (StepTime& step : profile.steps) {
    const auto found = kernels.find(step.command);
    if (step.kernel.empty() || found == kernels.end()) continue;
    const PlannedKernel& kernel = found->second;
    KernelBody body = kernel.body;
    const bool is_open = !sizes.empty() && !body.graph.is_static();
    if (is_open) body.graph = HONE_TRY(specialize(body.graph, sizes));
    step.layers = layers_of(kernel, layers);
    step.writes = body.graph.type(body.graph.outputs()[0]).to_string();
    step.algorithm = name(kernel.schedule->algorithm());
    step.schedule = fmt::format("0x{:016x}", kernel.hash);
    step.priced = cost.launch(body, *kernel.schedule, threads) * step.launches;
    step.computes = computes_text(body);
    const KernelWork work = work_of(body, *kernel.schedule, target);
    step.operations = work.operations * step.launches;
    step.peak = work.peak * static_cast<double>(threads);
    if (step.seconds <= 0) continue;
    step.rate = step.operations / step.seconds;
    if (step.peak > 0) step.part_of_peak = step.rate / step.peak;
  }
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  add_tasks(profile.steps, tasks_of(*editor), sizes);
  return profile;
}

Result<std::vector<SegmentProfile>> profile_of(std::span<const UnitTimes> times, int64_t runs,
                                               const NativeModel& model, const Target& target,
                                               const LayerNames& layers) {
  std::vector<SegmentProfile> profile;
  for (const UnitTimes& one : times) {
    const std::optional<NativeCode::Made> made = model.made(one);
    if (!made) continue;
    const Graph& graph = *HONE_TRY(made->from->graph());
    const Plan& plan = *HONE_TRY(made->from->plan());
    SegmentProfile segment = HONE_TRY(
        profile_of(one.times, runs, graph, plan, target, made->from->cost(), layers, made->sizes));
    segment.name = made->name;
    segment.runs = static_cast<double>(one.runs) / static_cast<double>(std::max<int64_t>(runs, 1));
    profile.push_back(std::move(segment));
  }
  std::ranges::sort(profile, std::greater<>(), &SegmentProfile::seconds);
  return profile;
}

Result<std::vector<SegmentProfile>> profile_of(std::span<const UnitTimes> times, int64_t runs,
                                               const HonecFile& file) {
  std::vector<SegmentProfile> profile;
  for (const UnitTimes& one : times) {
    SegmentProfile segment = measured_profile(
        one.times, runs,
        file.segments() == nullptr ? file.name() : file.segments()->units[one.unit]);
    segment.sizes = sizes_text(HONE_TRY(sizes_of(one, file)));
    segment.runs = static_cast<double>(one.runs) / static_cast<double>(std::max<int64_t>(runs, 1));
    profile.push_back(std::move(segment));
  }
  std::ranges::sort(profile, std::greater<>(), &SegmentProfile::seconds);
  return profile;
}

}  // namespace hone
