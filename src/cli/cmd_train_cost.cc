#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/graphs.h"
#include "cli/native.h"
#include "cli/price_training.h"
#include "cli/prices.h"
#include "cli/programs.h"
#include "cost/analytic.h"
#include "cost/learned_cost.h"
#include "cost/shipped_model.h"
#include "lab/data/configured_graph.h"
#include "learn/fit_gpu_model.h"
#include "report/data_set_text.h"
#include "report/price_text.h"
#include "session/native.h"
#include "tune/build_data_set.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// Networks learn in the rest of a quarter of an hour what is measured in it.
constexpr double kShareOfMeasuring = 0.8;
// Many kernels by some schedules tell more than few by many.
constexpr int64_t kSchedulesOfKernel = 32;
constexpr double kSecondsOfKernel = 6;

// Goes on with the set in the folder; a new one is of the zoo.
Status measure(const std::string& folder, bool is_of_zoo, const Target& target, double seconds,
               Console& console) {
  HONE_TRY(check_runs_here(target, Console::labels()));
  const AnalyticCost cost(target);
  const std::unique_ptr<Progress> progress = console.progress();
  const BuildOptions options = {.seconds = seconds,
                                .kernel_seconds = kSecondsOfKernel,
                                .schedules = kSchedulesOfKernel,
                                .version = HONE_VERSION,
                                .probe_seconds = std::min(4.0, seconds / 20),
                                .cost = &cost,
                                .cancel = &console.cancel(),
                                .progress = progress.get()};
  std::vector<NamedProgram> programs;
  if (is_of_zoo) programs = zoo_programs(console);
  const Console::Keeping keeping(console);
  console.say(built_text(HONE_TRY(build_data_set(folder, programs, target, options))));
  return console.cancel().check();
}

// The folder to learn from: of DATA or, for this machine, of the user; measured first if a budget
// says so.
Result<std::string> data_to_train_on(const Arguments& arguments, Console& console) {
  if (!arguments.given("budget")) {
    if (arguments.given("isa")) return usage_error("--isa goes with --budget");
    if (arguments.given("DATA")) return arguments.list("DATA")[0];
    return usage_error("DATA names the folder of a data set; or --budget TIME measures first");
  }
  const double seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  Target target = HONE_TRY(host_target());
  if (arguments.given("isa"))
    target = restricted(std::move(target), *isa_from_name(arguments.text("isa")));
  std::string folder;
  if (arguments.given("DATA")) {
    folder = arguments.list("DATA")[0];
  } else {
    HONE_TRY(user_prices().check_keeps(target));
    folder = HONE_TRY(user_prices().data_folder(target));
  }
  std::error_code failed;
  const bool is_of_zoo =
      !arguments.given("DATA") || !fs::exists(fs::path(folder) / "dataset.json", failed);
  HONE_TRY(measure(folder, is_of_zoo, target, kShareOfMeasuring * seconds, console));
  return folder;
}

// The kernels of a split's part, of programs that the data has.
Result<std::vector<KernelSample>> part_of(const KernelData& data, const std::string& file,
                                          Part wanted) {
  const ProgramSplit split = HONE_TRY(read_split(file));
  if (Status status = check(split, data); !status.ok())
    return std::move(status).error().within(file);
  std::vector<KernelSample> kernels = part(data, split, wanted);
  if (kernels.empty()) return bad_input("no kernel is in its part {}", name(wanted)).within(file);
  return kernels;
}

// The start of networks: a file, or the model that comes with hone. None: random numbers. The
// measurements of a budget are too few to begin with these.
Result<std::optional<KernelModel>> start_model(const Arguments& arguments, const KernelData& data,
                                               Console& console) {
  const std::string word = arguments.text("from");
  if (word == kShippedModel || (word.empty() && arguments.given("budget"))) {
    console.say("networks begin with those of the model that comes with hone");
    return std::optional(HONE_TRY(shipped_model_on(data.probe ? *data.probe : data.target)));
  }
  if (word.empty() || word == "none") return std::optional<KernelModel>();
  KernelModel model = HONE_TRY(read_kernel_model(word));
  if (!model.is_of_several()) return std::optional(std::move(model));
  return std::optional(HONE_TRY(model_on(std::move(model), data.target)));
}

// The given ones, or some at random.
Result<std::vector<ProgramSplit>> splits_of(const Arguments& arguments, const KernelData& data) {
  std::vector<ProgramSplit> splits;
  if (arguments.given("split")) {
    const std::string files = arguments.text("split");
    for (std::string_view file : split(files, ',')) {
      splits.push_back(HONE_TRY(read_split(std::string(file))));
      Status status = check(splits.back(), data);
      if (status.ok() && part(data, splits.back(), Part::test).empty())
        status = bad_input("no kernel is in its part {}", name(Part::test));
      if (!status.ok()) return std::move(status).error().within(std::string(file));
    }
    return splits;
  }
  const std::vector<std::string> programs = programs_of(data);
  for (int64_t s = 0; s < arguments.integer("splits"); ++s)
    splits.push_back(HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1))));
  return splits;
}

// Judges by the kernels of programs that the model has not learned from.
Result<PriceTrial> trial_of(const KernelModel& given, const KernelData& data) {
  const KernelModel model = HONE_TRY(model_on(given, data.target));
  if (model.threads != data.threads)
    return bad_input("the model is of {} threads, the data of {}", model.threads, data.threads);
  std::vector<KernelSample> unseen;
  for (const KernelSample& kernel : data.kernels)
    if (std::ranges::none_of(kernel.programs, [&](const std::string& program) {
          return std::ranges::binary_search(model.programs, program);
        }))
      unseen.push_back(kernel);
  if (unseen.empty())
    return bad_input("the model has learned from all programs of the data")
        .with_hint("without --model, models are trained on parts of the data");
  return judged(model, unseen, data.target);
}

// A model of several sets, which is for all processors.
Status train_for_all(const Arguments& arguments, Console& console) {
  const std::string file = arguments.text("output");
  if (file.empty())
    return usage_error("-o names the file of a model of several sets: it is of no target alone");
  for (std::string_view option : {"budget", "from", "isa"})
    if (arguments.given(option))
      return usage_error("--{} is for one set; {} are named", option,
                         arguments.list("DATA").size());
  std::vector<MeasuredSet> sets;
  for (const std::string& folder : arguments.list("DATA")) {
    KernelData data = HONE_TRY(data_in(folder, console));
    if (arguments.given("split"))
      data.kernels = HONE_TRY(part_of(data, arguments.text("split"), Part::train));
    sets.push_back(measured_set(data, folder, console));
  }
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  ModelTraining options = model_training(arguments, native, console);
  options.folder = file + ".training";
  if (arguments.given("anew")) fs::remove_all(options.folder);
  const Console::Keeping keeping(console);
  const KernelModel model = HONE_TRY(train_kernel_model(sets, options));
  HONE_TRY(write_kernel_model(file, model));
  std::error_code failed;
  fs::remove_all(options.folder, failed);
  console.write(kernel_model_text(model));
  console.note("wrote {}", file);
  return {};
}

// The price of a GPU has scales and factors, which are found in a moment.
Status train_gpu(const Arguments& arguments, const KernelData& data, const std::string& file,
                 Console& console) {
  if (arguments.given("from"))
    return usage_error("--from names networks, and the price of a GPU has none");
  std::vector<TimedKernel> timed;
  for (const KernelSample& kernel : data.kernels) timed.push_back(kernel.timed);
  const FittedGpuModel fitted = HONE_TRY(fit_gpu_model(timed, data.target));
  HONE_TRY(write_file_atomic(file, print(fitted.model)));
  const auto off = [](double loss) { return std::exp(std::sqrt(loss)); };
  console.write(print(fitted.model));
  console.write(fmt::format("prices are off by a factor of {:.3g}, {:.3g} before\n",
                            off(fitted.loss_after), off(fitted.loss_before)));
  return {};
}

}  // namespace

Status cmd_train_cost(const Arguments& arguments, Console& console) {
  if (arguments.list("DATA").size() > 1) return train_for_all(arguments, console);
  const std::string output = arguments.text("output");
  KernelData data = HONE_TRY(data_in(HONE_TRY(data_to_train_on(arguments, console)), console));
  if (arguments.given("split")) {
    const std::string& file = arguments.text("split");
    data.kernels = HONE_TRY(part_of(data, file, Part::train));
  }
  std::string file = output;
  if (output.empty()) {
    HONE_TRY(user_prices().check_keeps(data.target));
    file = HONE_TRY(user_prices().model_file(data.target));
  }
  const std::string used =
      output.empty() ? "; commands that plan for this target use it from now on" : "";
  if (data.target.gpu) {
    HONE_TRY(train_gpu(arguments, data, file, console));
    console.note("wrote {}{}", file, used);
    return {};
  }
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  ModelTraining options = model_training(arguments, native, console);
  options.folder = file + ".training";
  const std::optional<KernelModel> start = HONE_TRY(start_model(arguments, data, console));
  if (start) options.start = &*start;
  if (arguments.given("anew")) fs::remove_all(options.folder);
  const Console::Keeping keeping(console);
  const KernelModel model =
      HONE_TRY(train_kernel_model(data.kernels, data.target, data.threads, options));
  HONE_TRY(write_kernel_model(file, model));
  std::error_code failed;
  fs::remove_all(options.folder, failed);
  console.write(kernel_model_text(model));
  console.note("wrote {}{}", file, used);
  return {};
}

namespace {

Status eval_times(const Arguments& arguments, Console& console) {
  if (arguments.given("model"))
    return usage_error("--task fusion trains models on parts of the data; it takes no --model");
  const DataSet set = HONE_TRY(DataSet::open(arguments.text("DATA")));
  const KernelData tiles = HONE_TRY(load_kernel_data(set)), fusion =
                                                                HONE_TRY(load_fusion_data(set));
  console.say(fmt::format("{} kernels of {} programs, {} of them by several schedules",
                          fusion.kernels.size(), programs_of(fusion).size(), tiles.kernels.size()));
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  const ModelTraining options = model_training(arguments, native, console);
  const std::vector<ProgramSplit> splits = HONE_TRY(splits_of(arguments, fusion));
  std::vector<std::vector<TimeVerdict>> trials;
  for (const ProgramSplit& split : splits) {
    trials.push_back(HONE_TRY(time_trial(tiles, fusion, split, options)));
    console.say(fmt::format("split {} of {}", trials.size(), splits.size()));
  }
  return tell_table(arguments, console, time_trials_text(trials), time_trials_json(trials));
}

}  // namespace

Status cmd_eval(const Arguments& arguments, Console& console) {
  if (arguments.given("split") && arguments.given("model"))
    return usage_error("--split trains models on parts of the data; it takes no --model");
  if (arguments.text("task") == "layout" || are_graphs(arguments.text("DATA")))
    return eval_graphs(arguments, console);
  if (arguments.text("task") == "fusion") return eval_times(arguments, console);
  const KernelData data = HONE_TRY(data_in(arguments.text("DATA"), console));
  std::vector<PriceTrial> trials;
  if (arguments.given("model")) {
    const std::string& file = arguments.text("model");
    Result<PriceTrial> trial = trial_of(HONE_TRY(read_kernel_model(file)), data);
    if (!trial.ok()) return Error(trial.error()).within(file);
    trials.push_back(*std::move(trial));
  } else {
    const NativeOptions native = HONE_TRY(native_options(arguments, console));
    const ModelTraining options = model_training(arguments, native, console);
    const std::vector<ProgramSplit> splits = HONE_TRY(splits_of(arguments, data));
    for (size_t s = 0; s < splits.size(); ++s) {
      trials.push_back(HONE_TRY(price_trial(data, splits[s], options)));
      console.say(fmt::format("split {} of {}: trained in {:.0f} s", s + 1, splits.size(),
                              trials.back().seconds));
    }
  }
  return tell_table(arguments, console, price_trials_text(trials), price_trials_json(trials));
}

}  // namespace hone::cli
