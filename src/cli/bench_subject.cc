#include "cli/bench_subject.h"

#include "base/text.h"
#include "target/probe.h"

#include <algorithm>
#include <optional>

namespace hone::cli {
namespace {

constexpr double kPeakSeconds = 0.1;

// Rates are shares of what the machine reaches now: an estimate is lower than the peak of a
// processor that clocks up.
Result<Target> target_now(const BenchModel& model) {
  if (model.options.target.gpu) return model.options.target;
  return with_peaks_of_now(model.options.target, kPeakSeconds, model.face.cancel);
}

class PlainSubject : public BenchSubject {
 public:
  PlainSubject(const BenchModel& model, std::shared_ptr<const NativeModel> native)
      : model_(model), native_(std::move(native)) {
    if (model.is_profiled || model.is_compared) native_->code().keep_sources();
  }

  Status run() override {
    HONE_TRY(native_->run(model_.inputs.tensors, {.cancel = model_.face.cancel, .trace = runs_},
                          is_profiled_ ? &times_ : nullptr));
    return {};
  }

  Result<std::vector<Tensor>> outputs() override {
    return native_->run(model_.inputs.tensors, {.cancel = model_.face.cancel});
  }

  void unload() override { native_->code().unload(); }
  Status load_elsewhere() override { return native_->code().load_elsewhere(rng_); }
  void start_profile() override { is_profiled_ = true; }
  void start_trace(RunTrace& runs) override {
    start_profile();
    runs_ = &runs;
  }
  Status add_runs(Trace& trace, const RunTrace& runs) override {
    return hone::add_runs(trace, runs, times_, *native_, model_.source.layers);
  }

  Result<std::vector<SegmentProfile>> profile(int64_t runs) override {
    return profile_of(times_, runs, *native_, HONE_TRY(target_now(model_)), model_.source.layers);
  }

 private:
  const BenchModel model_;
  const std::shared_ptr<const NativeModel> native_;
  Rng rng_ = Rng(0);  // of places
  std::vector<UnitTimes> times_;
  RunTrace* runs_ = nullptr;
  bool is_profiled_ = false;
};

// Inputs that are given up where outputs may lie in them, which are the next run's inputs.
class DonatedInputs {
 public:
  explicit DonatedInputs(std::vector<Tensor> inputs) : inputs_(std::move(inputs)) {}

  Status prepare(const Executable& executable) {
    is_given_up_.resize(inputs_.size());
    for (const std::optional<uint32_t>& donor : executable.donors())
      if (donor) is_given_up_[*donor] = true;
    if (std::ranges::find(is_given_up_, true) == is_given_up_.end())
      return usage_error("--donate: the model changes no input in place")
          .with_hint(
              "a graph says 'donate' after inputs that updates or elementwise ops may change");
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_given_up_[i]) inputs_[i] = Tensor::copy_of(inputs_[i].type(), inputs_[i].bytes());
    return {};
  }

  Status run(const Executable& executable, const RunOptions& options) {
    std::vector<Tensor> given;
    for (size_t i = 0; i < inputs_.size(); ++i)
      given.push_back(is_given_up_[i] ? std::move(inputs_[i]) : inputs_[i]);
    std::vector<Tensor> outputs = HONE_TRY(executable.run_donating(std::move(given), options));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const std::optional<uint32_t> donor = executable.donors()[i])
        inputs_[*donor] = std::move(outputs[i]);
    return {};
  }

 private:
  std::vector<Tensor> inputs_;
  std::vector<bool> is_given_up_;  // by input
};

class DonatingSubject : public BenchSubject {
 public:
  DonatingSubject(const BenchModel& model, std::unique_ptr<Compilation> compilation)
      : model_(model), compilation_(std::move(compilation)), inputs_(model.inputs.tensors) {}

  Status run() override {
    if (executable_ == nullptr) {
      executable_ = HONE_TRY(compilation_->executable());
      HONE_TRY(inputs_.prepare(*executable_));
    }
    return inputs_.run(*executable_, {.cancel = model_.face.cancel,
                                      .profile = is_profiled_ ? &times_ : nullptr,
                                      .trace = runs_});
  }

  void start_profile() override { is_profiled_ = true; }
  void start_trace(RunTrace& runs) override {
    start_profile();
    runs_ = &runs;
  }
  Status add_runs(Trace& trace, const RunTrace& runs) override {
    trace.add(runs, 0, times_,
              HONE_TRY(command_facts(*HONE_TRY(compilation_->graph()),
                                     *HONE_TRY(compilation_->plan()), compilation_->target(),
                                     model_.source.layers)));
    trace.add_lost(runs.lost);
    return {};
  }

  Result<std::vector<SegmentProfile>> profile(int64_t runs) override {
    return std::vector{HONE_TRY(
        profile_of(times_, runs, *HONE_TRY(compilation_->graph()), *HONE_TRY(compilation_->plan()),
                   HONE_TRY(target_now(model_)), compilation_->cost(), model_.source.layers))};
  }

 private:
  const BenchModel model_;
  const std::unique_ptr<Compilation> compilation_;
  std::shared_ptr<const Executable> executable_;
  DonatedInputs inputs_;
  Profile times_;
  RunTrace* runs_ = nullptr;
  bool is_profiled_ = false;
};

class CompiledSubject : public BenchSubject {
 public:
  CompiledSubject(CompiledModel& model, const CompiledRuns& how)
      : model_(model), how_(how), inputs_(model.inputs.tensors) {}

  Status prepare() {
    if (!how_.donates) return {};
    if (model_.runnable->single() == nullptr)
      return usage_error(
                 "--donate is for models that are one graph of one device; '{}' is {}",
                 excerpt(model_.file.name()),
                 model_.file.division() != nullptr ? "for several devices" : "a tree of segments")
          .with_hint("without it: inputs are kept, as others may read them");
    return inputs_.prepare(*model_.runnable->single());
  }

  Status run() override {
    RunOptions options = {
        .cancel = how_.cancel, .trace = runs_, .flush_denormals = how_.flushes_denormals};
    if (!how_.donates) {
      HONE_TRY(
          model_.runnable->run(model_.inputs.tensors, options, is_profiled_ ? &times_ : nullptr));
      return {};
    }
    if (is_profiled_) {
      if (times_.empty()) times_.emplace_back();
      ++times_.front().runs;
      options.profile = &times_.front().times;
    }
    return inputs_.run(*model_.runnable->single(), options);
  }

  void unload() override { hone::unload(model_); }
  Status load_elsewhere() override { return hone::load_elsewhere(model_); }
  void start_profile() override { is_profiled_ = true; }
  void start_trace(RunTrace& runs) override {
    start_profile();
    runs_ = &runs;
  }
  Status add_runs(Trace& trace, const RunTrace& runs) override {
    hone::add_runs(trace, runs, times_);
    return {};
  }

  Result<std::vector<SegmentProfile>> profile(int64_t runs) override {
    return profile_of(times_, runs, model_.file);
  }

 private:
  CompiledModel& model_;
  const CompiledRuns how_;
  DonatedInputs inputs_;
  std::vector<UnitTimes> times_;
  RunTrace* runs_ = nullptr;
  bool is_profiled_ = false;
};

}  // namespace

Status DividedSubject::run() {
  HONE_TRY(devices_->run(inputs_, {.cancel = cancel_}, std::span(times_)));
  ++runs_;
  return {};
}

std::vector<BenchReport::Device> DividedSubject::mean_times() const {
  std::vector<BenchReport::Device> all;
  const auto runs = static_cast<double>(std::max<int64_t>(runs_, 1));
  for (size_t i = 0; i < times_.size(); ++i) {
    const DeviceShare& device = devices_->devices()[i];
    all.push_back({device.name, divides_batch_ ? device.count : 0, times_[i].computing / runs,
                   times_[i].moving / runs, times_[i].waiting / runs});
  }
  return all;
}

Result<std::unique_ptr<BenchSubject>> plain_subject(const BenchModel& model) {
  return std::unique_ptr<BenchSubject>(new PlainSubject(
      model, HONE_TRY(native_model(model.source.model, model.inputs, model.options, model.face))));
}

Result<std::unique_ptr<BenchSubject>> compiled_subject(CompiledModel& model,
                                                       const CompiledRuns& how) {
  auto subject = std::make_unique<CompiledSubject>(model, how);
  HONE_TRY(subject->prepare());
  return std::unique_ptr<BenchSubject>(std::move(subject));
}

Result<std::unique_ptr<BenchSubject>> donating_subject(const BenchModel& model) {
  const Graph graph =
      HONE_TRY(specialize(*single_graph(model.source.model), model.inputs.bindings));
  CompileOptions compile = HONE_TRY(
      compile_options(graph, model.source.model, model.inputs.bindings, model.options, model.face));
  compile.memory_limit = model.inputs.memory_left.native;
  return std::unique_ptr<BenchSubject>(new DonatingSubject(
      model, std::make_unique<Compilation>(graph, model.options.target, std::move(compile))));
}

}  // namespace hone::cli
