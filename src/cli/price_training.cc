#include "cli/price_training.h"

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/source.h"
#include "session/native.h"

namespace hone::cli {

namespace {

template <class Options>
Options training_options(const Arguments& arguments, const NativeOptions& native,
                         Console& console) {
  Options options;
  options.members = arguments.integer("members");
  options.epochs = arguments.integer("epochs");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.compile = compile_options(native, nullptr);
  options.cancel = &console.cancel();
  options.told = [&console](std::string_view line) { console.say(line); };
  return options;
}

}  // namespace

ModelTraining model_training(const Arguments& arguments, const NativeOptions& native,
                             Console& console) {
  return training_options<ModelTraining>(arguments, native, console);
}

PlanTraining plan_training(const Arguments& arguments, const NativeOptions& native,
                           Console& console) {
  return training_options<PlanTraining>(arguments, native, console);
}

Result<KernelData> data_in(const std::string& folder, Console& console) {
  KernelData data = HONE_TRY(load_kernel_data(folder));
  size_t schedules = 0;
  for (const KernelSample& kernel : data.kernels) schedules += kernel.timed.seconds.size();
  console.say(fmt::format("{} schedules of {} kernels of {} programs", schedules,
                          data.kernels.size(), programs_of(data).size()));
  return data;
}

MeasuredSet measured_set(const KernelData& data, const std::string& folder, Console& console) {
  console.say(fmt::format("{}: {}, rates {}", folder, processor_of(data.target),
                          data.probe ? "of its probe" : "that its kernels imply"));
  return measured_set(data);
}

Status tell_table(const Arguments& arguments, Console& console, const std::string& text,
                  const std::string& data) {
  const std::string json = arguments.text("json");
  if (json == "-") {
    console.write(data);
    return {};
  }
  if (!json.empty()) HONE_TRY(write_text(json, data, console));
  console.write(text);
  return {};
}

}  // namespace hone::cli
