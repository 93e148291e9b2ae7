#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "compile/native_engine.h"

#include <algorithm>
#include <chrono>

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sorts; of an even number the mean of the middle two.
double median(std::vector<double>& samples) {
  std::ranges::sort(samples);
  const size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

}  // namespace

Status cmd_bench(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options.target));
  const Source source =
      HONE_TRY(load_model_source(arguments.text("MODEL"), sizes_of(arguments), console));
  const RunInputs inputs =
      HONE_TRY(resolve_inputs(face_of(source.model), source.open, arguments, console));

  const Clock::time_point start = Clock::now();
  NativeModel model = HONE_TRY(native_model(source.model, inputs, options, console));
  HONE_TRY(model.run(inputs.tensors));
  const double first = seconds_since(start);

  const double budget = arguments.real("seconds");
  std::vector<double> samples;
  for (const Clock::time_point begin = Clock::now();
       samples.size() < 3 || seconds_since(begin) < budget;) {
    HONE_TRY(console.cancel().check());
    const Clock::time_point one = Clock::now();
    HONE_TRY(model.run(inputs.tensors));
    samples.push_back(seconds_since(one));
  }
  const double middle = median(samples);
  const double tenth = samples[samples.size() / 10], ninth = samples[samples.size() * 9 / 10];
  console.print("median {}, 10% {}, 90% {}, of {} runs\n", format_seconds(middle),
                format_seconds(tenth), format_seconds(ninth), samples.size());
  console.note("compiled and run once in {}", format_seconds(first));
  return {};
}

}  // namespace hone::cli
