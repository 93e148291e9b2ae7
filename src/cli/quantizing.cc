#include "cli/quantizing.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/console.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/source.h"
#include "cost/gpu_cost.h"

namespace hone::cli {
namespace {

constexpr double kMostError = 1;
constexpr std::string_view kMark = "# levels: ";

// "0.5%", or the share: 0.005.
Result<double> drop_of(const Arguments& arguments) {
  const std::string given = arguments.text("drop");
  std::string_view text = given;
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  const Result<double> number = parse_double(text);
  const double share = number.ok() ? *number / (is_percent ? 100 : 1) : -1;
  if (!(share >= 0) || share >= 1)
    return usage_error("--drop {} is not a share from 0% to 100%", given).with_hint("--drop 0.5%");
  return share;
}

// "3 of 4 layers have fewer bits (2 int8, 1 w8)"
std::string counts_text(const quantize::QuantizeResult& result) {
  std::map<quantize::Precision, int> counts;
  size_t changed = 0;
  for (const quantize::LayerReport& each : result.reports)
    if (each.level != quantize::Precision::f32) ++counts[each.level], ++changed;
  std::vector<std::string> parts;
  for (const auto& [level, count] : counts)
    parts.push_back(fmt::format("{} {}", count, quantize::name(level)));
  return fmt::format("{} of {} layers have fewer bits ({})", changed, result.reports.size(),
                     join(parts, ", "));
}

}  // namespace

double share_of(int64_t part, int64_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(all, 1));
}

Result<quantize::QuantizeOptions> quantize_options(const Arguments& arguments) {
  quantize::QuantizeOptions options;
  const std::string to = arguments.text("to");
  if (const std::optional<quantize::Precision> level = quantize::precision_of(to)) {
    options.levels = {*level};
  } else {
    for (quantize::Precision each : quantize::kPrecisions)
      if (each != quantize::Precision::f32) options.levels.push_back(each);
    options.only_faster = true;
  }
  if (arguments.given("error")) options.error = arguments.real("error");
  if (!(options.error > 0) || options.error > kMostError)
    return usage_error("--error {} is outside of what is useful: above 0, at most 1", options.error)
        .with_hint("--error 1e-2");
  if (arguments.given("drop")) {
    if (arguments.given("error"))
      return usage_error("--drop and --error are two ways to say how much may be lost")
          .with_hint("take one of them");
    options.drop = HONE_TRY(drop_of(arguments));
  }
  if (arguments.given("labels") && !arguments.given("data"))
    return usage_error("--labels names an array of the files of --data");
  options.trials = arguments.integer("trials");
  options.keep = arguments.list("keep");
  options.group = arguments.integer("group");
  if ((options.group & (options.group - 1)) != 0)
    return usage_error("--group {} is not a power of 2", options.group);
  return options;
}

Result<Model> model_to_measure(const Source& source, std::string_view who, Console& console) {
  Model model = HONE_TRY(with_sizes(source.model, HONE_TRY(given_sizes(source, console))));
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return no_single_graph(model, who);
  if (!graph->is_static())
    return usage_error("times and errors depend on the open sizes, such as {}",
                       graph->symbols()[0].name())
        .with_hint("--dim NAME=N and --shape NAME=DIMS choose them");
  return model;
}

Result<Samples> samples_of(const Graph& graph, const Arguments& arguments, int64_t seed,
                           const NativeOptions& native, Console& console) {
  const Face face = limited_face(arguments, console);
  Samples samples;
  samples.batches =
      HONE_TRY(batches_of(graph, arguments.text("data"), arguments.text("labels"), seed, face));
  const std::shared_ptr<const Cost> analytic = analytic_cost(native.target);
  const Cost& cost = native.cost == nullptr ? *analytic : *native.cost;
  samples.machine = native_machine(native, cost, face);
  // The price reads the cost.
  const auto price = samples.machine.seconds;
  samples.machine.seconds = [analytic, price](const Graph& alone) { return price(alone); };
  return samples;
}

Result<Levels> chosen_levels(const Graph& graph, const quantize::QuantizeOptions& options,
                             const Arguments& arguments, int64_t seed, const NativeOptions& native,
                             Console& console) {
  Levels levels;
  levels.samples = HONE_TRY(samples_of(graph, arguments, seed, native, console));
  const std::unique_ptr<Progress> progress = console.progress();
  quantize::QuantizeOptions now = options;
  const auto is_for_gpus = [](quantize::Precision level) {
    return level == quantize::Precision::tf32;
  };
  if (!native.target.gpu && std::erase_if(now.levels, is_for_gpus) > 0 && now.levels.empty())
    return usage_error("GPUs alone multiply tf32").with_hint("--device cuda, or another level");
  now.seed = static_cast<uint64_t>(seed);
  now.progress = progress.get();
  now.cancel = &console.cancel();
  levels.result =
      HONE_TRY(quantize::choose_levels(graph, now, levels.samples.batches, levels.samples.machine));
  return levels;
}

std::string difference_text(const quantize::Difference& difference) {
  std::string text =
      fmt::format("error {:.3g}, largest difference {:.3g}", difference.error, difference.largest);
  if (const std::optional<double> equal = difference.equal_best())
    text += fmt::format(", equal best answers {:.1f} %", 100 * *equal);
  const quantize::Answers& answers = difference.answers;
  if (answers.are_labelled)
    text += fmt::format(", right answers {:.2f} % (f32 {:.2f} %)",
                        100 * share_of(answers.right, answers.rows),
                        100 * share_of(answers.right_of_f32, answers.rows));
  return text;
}

Result<std::optional<Lowered>> lowered_source(const Source& source, const Arguments& arguments,
                                              int64_t seed, const NativeOptions& native,
                                              Console& console) {
  if (!arguments.given("error") && !arguments.given("drop")) {
    for (std::string_view option : {"to", "data", "labels", "trials", "keep", "group"})
      if (arguments.given(option))
        return usage_error("--{} chooses levels of precision, within --error or --drop", option)
            .with_hint("--error 1e-2");
    return std::optional<Lowered>();
  }
  const quantize::QuantizeOptions options = HONE_TRY(quantize_options(arguments));
  if (!native.plans.empty())
    return usage_error("--plan is for a model whose levels are chosen; --error chooses them")
        .with_hint("'hone quantize MODEL -o OUT' writes that model");
  if (native.target.gpu && native.device == nullptr)
    return unsupported("--error measures the model, and no GPU runs code for '{}'",
                       native.target.name)
        .with_hint("--device cuda measures on the GPU of this machine");
  HONE_TRY(check_runs_here(native, Console::labels()));
  const Model model = HONE_TRY(model_to_measure(source, "--error", console));
  const Levels levels =
      HONE_TRY(chosen_levels(*single_graph(model), options, arguments, seed, native, console));
  Lowered lowered = {.source = {.model = model_of(levels.result.graph), .open = {}}, .said = {}};
  lowered.said = fmt::format("{}; on unseen arrays {}", counts_text(levels.result),
                             difference_text(levels.result.unseen));
  console.note("levels: {}", lowered.said);
  return std::optional(std::move(lowered));
}

std::string with_levels(const std::string& said, std::string plan) {
  return fmt::format("{}{}\n{}", kMark, said, plan);
}

std::optional<std::string> levels_of_plan(std::string_view plan) {
  if (!plan.starts_with(kMark)) return std::nullopt;
  return std::string(plan.substr(kMark.size(), plan.find('\n') - kMark.size()));
}

}  // namespace hone::cli
