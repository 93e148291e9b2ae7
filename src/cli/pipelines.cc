#include "cli/pipelines.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/machines.h"
#include "cli/placed_model.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "search/pipeline.h"

namespace hone::cli {
namespace {

constexpr std::string_view kAuto = "auto";

// The number of stages, or 0 for `auto`; and the mesh of each.
Result<PipelineOptions> said_stages(const Arguments& arguments) {
  PipelineOptions options;
  const std::string stages = arguments.text("pipeline");
  if (stages != kAuto) {
    const Result<int64_t> number = parse_int(stages);
    if (!number.ok() || *number < 1 || *number > 4096)
      return usage_error("'{}' does not say how many stages", excerpt(stages))
          .about("--pipeline")
          .with_hint("write auto, or a number from 1 on");
    options.stages = static_cast<int32_t>(*number);
  }
  if (!arguments.given("mesh")) return options;
  Result<MeshRef> mesh = parse_mesh(arguments.text("mesh"));
  if (!mesh.ok()) return std::move(mesh).error().as(ErrorCode::usage).about("--mesh");
  options.mesh = *std::move(mesh);
  return options;
}

Result<PipelineOptions> pipeline_options(const Arguments& arguments, Console& console) {
  PipelineOptions options = HONE_TRY(said_stages(arguments));
  if (arguments.takes("batch")) options.batch = arguments.list("batch");
  options.cancel = &console.cancel();
  if (arguments.given("micro-batches"))
    options.micro_batches = static_cast<int32_t>(arguments.integer("micro-batches"));
  if (arguments.given("schedule"))
    options.schedule = schedule_from_name(arguments.text("schedule"));
  const AutoShardOptions limits = HONE_TRY(auto_shard_options(arguments, console));
  options.memory = limits.memory;
  options.seconds = limits.seconds;
  return options;
}

// As many parts of this machine as stages have devices, unless a system is said.
Result<System> system_of_stages(const PipelineOptions& options, const Arguments& arguments) {
  const int64_t each = options.mesh == nullptr ? 1 : options.mesh->device_count();
  const std::string target = arguments.takes("target") ? arguments.text("target") : "";
  if (arguments.given("system")) return load_system(arguments.text("system"), target);
  if (options.stages == 0)
    return usage_error("--pipeline auto needs devices").with_hint("add --system local:4");
  return load_system(fmt::format("local:{}", options.stages * each), target);
}

std::vector<std::string> words_of(const std::vector<int32_t>& numbers) {
  std::vector<std::string> words;
  for (const int32_t number : numbers) words.push_back(std::to_string(number));
  return words;
}

// "[x = 2]": its devices divide values. Nothing for one device.
std::string mesh_of_stage(const PipelinePlan::Stage& stage) {
  return stage.devices.size() == 1 ? "" : axes_text(*stage.mesh());
}

std::string stages_text(const ChosenPipeline& chosen) {
  TextTable table("rllrrrrl");
  table.add_row({"stage", "devices", "mesh", "nodes", "busy", "memory", "", "first node"});
  for (size_t s = 0; s < chosen.plan.stages.size(); ++s) {
    const PipelinePlan::Stage& stage = chosen.plan.stages[s];
    double busy = 0;
    int64_t memory = 0;
    for (const int32_t device : stage.devices) {
      busy = std::max(busy, chosen.times.busy[static_cast<size_t>(device)]);
      memory = std::max(memory, chosen.times.memory[static_cast<size_t>(device)]);
    }
    table.add_row({std::to_string(s), join(words_of(stage.devices), " "), mesh_of_stage(stage),
                   std::to_string(stage.nodes.size()), format_seconds(busy), format_bytes(memory),
                   "", stage.nodes.empty() ? "" : "%" + escape(stage.nodes.front())});
  }
  return table.to_string();
}

// The best of each schedule and number of stages.
std::string candidates_text(const ChosenPipeline& chosen) {
  std::vector<const PipelineCandidate*> best;
  for (const PipelineCandidate& one : chosen.candidates) {
    const auto same = std::ranges::find_if(best, [&](const PipelineCandidate* other) {
      return other->stages == one.stages && other->schedule == one.schedule;
    });
    if (same == best.end())
      best.push_back(&one);
    else if (std::pair(!one.fits, one.times.seconds) <
             std::pair(!(*same)->fits, (*same)->times.seconds))
      *same = &one;
  }
  std::ranges::sort(best, {}, [](const auto* one) {
    return std::tuple(!one->fits, one->times.seconds, one->stages, one->schedule);
  });
  constexpr size_t kShown = 12;
  TextTable table("rlrrrrl");
  table.add_row({"stages", "schedule", "micro-batches", "step", "idle", "memory", ""});
  for (const PipelineCandidate* one : std::span(best).first(std::min(kShown, best.size())))
    table.add_row({std::to_string(one->stages), std::string(name(one->schedule)),
                   std::to_string(one->micro_batches), format_seconds(one->times.seconds),
                   fmt::format("{:.0f} %", 100 * one->times.idle()),
                   format_bytes(std::ranges::max(one->times.memory)),
                   one->fits ? "" : "too much memory"});
  return table.to_string();
}

// "2 stages on 4 devices", "1 stage on 1 of 6 devices"
std::string stages_and_devices(const PipelinePlan& plan, const System& system) {
  const int64_t all = system.device_count();
  const std::string part = plan.devices() < all ? fmt::format("{} of ", plan.devices()) : "";
  return fmt::format("{} on {}{} {}", stages_of(plan), part, all, all == 1 ? "device" : "devices");
}

// Both prices add up those of nodes: whole programs take more or less, as the timeline of a mesh
// has them.
void tell_step(const PipelinePlan& plan, const System& system, double seconds, double one_device,
               Console& console) {
  console.note("{}, {}: a step takes {}, and {} on one device, by the prices of nodes alone",
               stages_and_devices(plan, system), turns_of(plan), format_seconds(seconds),
               format_seconds(one_device));
}

// A word about the choice, and not the file of a plan.
bool names_stages(const std::string& text) { return text == kAuto || parse_int(text).ok(); }

}  // namespace

Result<PipelineRequest> pipeline_request(const Arguments& arguments, Console& console) {
  const std::string text = arguments.text("pipeline");
  PipelineRequest made;
  HONE_TRY(given_gpu(arguments));  // which a pipeline does not go with
  if (names_stages(text)) {
    made.options = HONE_TRY(pipeline_options(arguments, console));
    made.system = HONE_TRY(system_of_stages(made.options, arguments));
    return made;
  }
  for (const std::string_view option : {"mesh", "micro-batches", "schedule", "memory", "budget"})
    if (arguments.given(option))
      return usage_error("--{} is of a choice by price, and '{}' is a plan", option, excerpt(text));
  made.plan = HONE_TRY(given_pipeline(arguments));
  made.system = HONE_TRY(system_of_plan(made.plan->devices(), arguments));
  return made;
}

Result<int64_t> devices_of_pipeline(const Arguments& arguments) {
  if (names_stages(arguments.text("pipeline")))
    return HONE_TRY(system_of_stages(HONE_TRY(said_stages(arguments)), arguments)).device_count();
  return HONE_TRY(given_pipeline(arguments))->devices();
}

Status shard_pipeline(const Graph& graph, const Arguments& arguments, Console& console) {
  for (const std::string_view option : {"shard", "search", "all"})
    if (arguments.given(option))
      return usage_error("--{} is about values; with --pipeline prices divide them", option)
          .with_hint("--mesh says the devices of each stage; -o FILE writes a plan to edit");
  PipelineOptions options = HONE_TRY(pipeline_options(arguments, console));
  options.mesh = HONE_TRY(mesh_of_stages(graph, options.mesh));
  const System system = HONE_TRY(system_of_stages(options, arguments));
  const ChosenPipeline chosen =
      HONE_TRY(choose_pipeline(graph, system, costs_of(system, console), options));
  const std::string path = arguments.text("output");
  if (path != "-") {
    console.write(stages_text(chosen));
    console.print("\n");
    console.write(candidates_text(chosen));
  }
  tell_step(chosen.plan, system, chosen.times.seconds, chosen.one_device, console);
  return path.empty() ? Status() : write_text(path, print(chosen.plan), console);
}

namespace {

std::string stages_text(const PipelinePlan& plan, const JudgedPipeline& judged) {
  TextTable table("rlrrrrrrr");
  table.add_row(
      {"stage", "devices", "forward", "backward", "update", "gets", "gets back", "keeps", "holds"});
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StageFacts& stage = judged.stages[s];
    const auto bytes = [](double count) { return format_bytes(static_cast<int64_t>(count)); };
    table.add_row({std::to_string(s), join(words_of(plan.stages[s].devices), " "),
                   format_seconds(stage.forward), format_seconds(stage.backward),
                   format_seconds(stage.update), bytes(stage.received_forward),
                   bytes(stage.received_backward), format_bytes(stage.kept),
                   format_bytes(stage.held)});
  }
  return table.to_string();
}

// "F0 F1 B0 ...": a device that has several stages says which.
std::string order_text(std::span<const PipelineTask> order) {
  constexpr size_t kShown = 16;
  const bool has_several = std::ranges::any_of(
      order, [&](const PipelineTask& task) { return task.stage != order[0].stage; });
  std::vector<std::string> words;
  for (const PipelineTask& task : order.first(std::min(kShown, order.size())))
    words.push_back(fmt::format("{}{}{}", task.kind == PipelineTask::Kind::forward ? "F" : "B",
                                task.batch, has_several ? fmt::format(":{}", task.stage) : ""));
  if (order.size() > kShown) words.push_back("...");
  return join(words, " ");
}

std::string devices_text(const JudgedPipeline& judged) {
  TextTable table("rrrl");
  table.add_row({"device", "busy", "memory", "order"});
  for (size_t d = 0; d < judged.orders.size(); ++d)
    table.add_row({std::to_string(d), format_seconds(judged.times.busy[d]),
                   format_bytes(judged.times.memory[d]), order_text(judged.orders[d])});
  return table.to_string();
}

std::string schedules_text(const PipelinePlan& plan, const JudgedPipeline& judged) {
  TextTable table("lrrr");
  table.add_row({"schedule", "step", "idle", "memory"});
  const auto add = [&](std::string name, const PipelineTimes& times) {
    table.add_row({std::move(name), format_seconds(times.seconds),
                   fmt::format("{:.0f} %", 100 * times.idle()),
                   format_bytes(std::ranges::max(times.memory))});
  };
  add(fmt::format("{}, the plan", name(plan.schedule)), judged.times);
  for (const PipelineCandidate& one : judged.others)
    add(std::string(name(one.schedule)), one.times);
  return table.to_string();
}

}  // namespace

Status tell_pipeline(const Graph& graph, const Arguments& arguments, Console& console) {
  const PipelinePlan plan = *HONE_TRY(given_pipeline(arguments));
  const System system = HONE_TRY(system_of_plan(plan.devices(), arguments));
  const JudgedPipeline judged =
      HONE_TRY(judged_pipeline(graph, plan, system, costs_of(system, console), &console.cancel()));
  console.write(stages_text(plan, judged));
  console.write("\n" + devices_text(judged));
  console.write("\n" + schedules_text(plan, judged));
  tell_step(plan, system, judged.times.seconds, judged.one_device, console);
  return {};
}

}  // namespace hone::cli
