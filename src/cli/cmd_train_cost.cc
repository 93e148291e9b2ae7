#include <algorithm>
#include <filesystem>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/graphs.h"
#include "cli/native.h"
#include "cli/prices.h"
#include "cli/source.h"
#include "cost/learned_cost.h"
#include "learn/configured_graph.h"
#include "report/price_text.h"
#include "session/native.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// Training is a program like others, whatever its prices are for. The native options outlive it.
ModelTraining training(const Arguments& arguments, const NativeOptions& native, Console& console) {
  ModelTraining options;
  options.members = arguments.integer("members");
  options.epochs = arguments.integer("epochs");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.compile = compile_options(native, nullptr);
  options.cancel = &console.cancel();
  options.told = [&console](std::string_view line) { console.say(line); };
  return options;
}

Result<KernelData> data_of(const Arguments& arguments, Console& console) {
  KernelData data = HONE_TRY(load_kernel_data(arguments.text("DATA")));
  size_t schedules = 0;
  for (const KernelSample& kernel : data.kernels) schedules += kernel.timed.seconds.size();
  console.say(fmt::format("{} schedules of {} kernels of {} programs", schedules,
                          data.kernels.size(), programs_of(data).size()));
  return data;
}

// By the kernels of programs that the model has not learned from.
Result<PriceTrial> trial_of(const KernelModel& model, const KernelData& data) {
  HONE_TRY(check_is_for(model, data.target));
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

}  // namespace

Status cmd_train_cost(const Arguments& arguments, Console& console) {
  const KernelData data = HONE_TRY(data_of(arguments, console));
  const std::string output = arguments.text("output");
  HONE_TRY(check_writable(output));
  std::string file = output;
  if (output.empty()) {
    HONE_TRY(user_prices().check_keeps(data.target));
    file = HONE_TRY(user_prices().model_file(data.target));
  }
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  ModelTraining options = training(arguments, native, console);
  options.folder = file + ".training";
  if (arguments.given("anew")) fs::remove_all(options.folder);
  const KernelModel model =
      HONE_TRY(train_kernel_model(data.kernels, data.target, data.threads, options));
  HONE_TRY(write_kernel_model(file, model));
  std::error_code failed;
  fs::remove_all(options.folder, failed);
  console.write(kernel_model_text(model));
  console.note("wrote {}{}", file,
               output.empty() ? "; commands that plan for this target use it from now on" : "");
  return {};
}

Status cmd_eval(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  HONE_TRY(check_writable(json));
  if (arguments.text("task") == "layout" || are_graphs(arguments.text("DATA")))
    return eval_graphs(arguments, console);
  const KernelData data = HONE_TRY(data_of(arguments, console));
  std::vector<PriceTrial> trials;
  if (arguments.given("model")) {
    const std::string& file = arguments.text("model");
    Result<PriceTrial> trial = trial_of(HONE_TRY(read_kernel_model(file)), data);
    if (!trial.ok()) return Error(trial.error()).within(file);
    trials.push_back(*std::move(trial));
  } else {
    const NativeOptions native = HONE_TRY(native_options(arguments, console));
    const ModelTraining options = training(arguments, native, console);
    const std::vector<std::string> programs = programs_of(data);
    for (int64_t s = 0; s < arguments.integer("splits"); ++s) {
      const ProgramSplit split = HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1)));
      trials.push_back(HONE_TRY(price_trial(data, split, options)));
      console.say(fmt::format("split {} of {}: trained in {:.0f} s", s + 1,
                              arguments.integer("splits"), trials.back().seconds));
    }
  }
  if (json == "-") {
    console.write(price_trials_json(trials));
    return {};
  }
  if (!json.empty()) HONE_TRY(write_text(json, price_trials_json(trials), console));
  console.write(price_trials_text(trials));
  return {};
}

}  // namespace hone::cli
