#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/source.h"
#include "report/profile.h"
#include "session/timing.h"

#include <algorithm>
#include <optional>

namespace hone::cli {
namespace {

constexpr size_t kRows = 20;  // of a profile's tables

// A caller of the compiled graph who gives its inputs up.
class Caller {
 public:
  Caller(std::shared_ptr<const Executable> executable, std::span<const Tensor> inputs)
      : executable_(std::move(executable)), inputs_(inputs.begin(), inputs.end()) {}

  // Inputs are given up where outputs may lie in them, and these are the next inputs.
  Status prepare() {
    is_given_up_.resize(inputs_.size());
    for (const std::optional<uint32_t>& donor : executable_->donors())
      if (donor) is_given_up_[*donor] = true;
    if (std::ranges::find(is_given_up_, true) == is_given_up_.end())
      return usage_error("--donate: the model changes no input in place")
          .with_hint(
              "a graph says 'donate' behind inputs that updates or elementwise ops may change");
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_given_up_[i]) inputs_[i] = Tensor::copy_of(inputs_[i].type(), inputs_[i].bytes());
    return {};
  }

  Status run(const RunOptions& options = {}) {
    std::vector<Tensor> given;
    for (size_t i = 0; i < inputs_.size(); ++i)
      given.push_back(is_given_up_[i] ? std::move(inputs_[i]) : inputs_[i]);
    std::vector<Tensor> outputs = HONE_TRY(executable_->run_donating(std::move(given), options));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const std::optional<uint32_t> donor = executable_->donors()[i])
        inputs_[*donor] = std::move(outputs[i]);
    return {};
  }

 private:
  const std::shared_ptr<const Executable> executable_;
  std::vector<Tensor> inputs_;
  std::vector<bool> is_given_up_;  // by input
};

struct Request {
  double seconds;
  bool is_profiled;
};

// One graph for one set of sizes, run by its executable.
Status bench_donating(const Model& model, const RunInputs& inputs, const NativeOptions& options,
                      const Request& request, Console& console) {
  const Graph graph = HONE_TRY(specialize(*single_graph(model), inputs.bindings));
  CompileOptions compile =
      HONE_TRY(compile_options(graph, model, inputs.bindings, options, console.face()));
  compile.memory_limit = inputs.memory_left;
  Compilation compilation(graph, options.target, compile);
  std::optional<Caller> caller;
  const double first = HONE_TRY(measure_once([&]() -> Status {
    caller.emplace(HONE_TRY(compilation.executable()), inputs.tensors);
    HONE_TRY(caller->prepare());
    return caller->run();
  }));
  const Timing timing =
      HONE_TRY(measure(request.seconds, console.cancel(), [&] { return caller->run(); }));
  console.print("{}\n", timing.to_string());
  console.note("compiled and run once in {}", format_seconds(first));
  if (!request.is_profiled) return {};

  Profile profile;
  const RunOptions run = {.cancel = &console.cancel(), .profile = &profile};
  const Timing profiled =
      HONE_TRY(measure(request.seconds, console.cancel(), [&] { return caller->run(run); }));
  const auto runs = static_cast<int64_t>(profiled.seconds.size());
  const std::string table = HONE_TRY(profile_table(profile, runs, *HONE_TRY(compilation.graph()),
                                                   *HONE_TRY(compilation.plan()), options.target,
                                                   compilation.cost(), kRows));
  console.write(table);
  return {};
}

}  // namespace

Status cmd_bench(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options.target, Console::labels()));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Request request = {arguments.real("seconds"), arguments.given("profile")};
  const bool donates = arguments.given("donate");
  if (donates && single_graph(source.model) == nullptr)
    return no_single_graph(source.model, "--donate");
  const RunInputs inputs = HONE_TRY(
      given_inputs(signature_of(source.model), source.open, arguments, Engine::native, console));
  if (donates) return bench_donating(source.model, inputs, options, request, console);

  NativeModel model = HONE_TRY(NativeModel::make(source.model, inputs, options, console.face()));
  if (request.is_profiled) model.engine().keep_code();
  auto run = [&]() -> Status {
    HONE_TRY(model.run(inputs.tensors));
    return {};
  };
  const double first = HONE_TRY(measure_once(run));
  const Timing timing = HONE_TRY(measure(request.seconds, console.cancel(), run));
  console.print("{}\n", timing.to_string());
  console.note("compiled and run once in {}", format_seconds(first));
  if (!request.is_profiled) return {};

  model.engine().start_profile();
  const Timing profiled = HONE_TRY(measure(request.seconds, console.cancel(), run));
  const auto runs = static_cast<int64_t>(profiled.seconds.size());
  console.write(HONE_TRY(profile_text(model.engine(), runs, options.target, kRows)));
  return {};
}

}  // namespace hone::cli
