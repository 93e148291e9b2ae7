#include "learn/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compile/cached_executable.h"
#include "compile/divided_code.h"
#include "compile/resident_code.h"
#include "learn/first_bad.h"

namespace hone {
namespace {

using Role = Network::Role;

constexpr size_t kMaxCompiled = 64;  // the last used ones stay

Progress& progress_of(const TrainingOptions& options) {
  return options.compile.progress != nullptr ? *options.compile.progress : no_progress();
}

Status check_cancelled(const TrainingOptions& options) {
  return options.compile.cancel != nullptr ? options.compile.cancel->check() : Status();
}

Tensor integer(DType dtype, int64_t value) {
  return Tensor::from_integers(Type::scalar(dtype), std::vector{value});
}

// Compiled code reads elements at addresses that they divide.
Tensor aligned(const Tensor& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.bytes().data());
  return address % sizeof(uint64_t) == 0 ? tensor : Tensor::copy_of(tensor.type(), tensor.bytes());
}

// The names by which people say how the inputs of a step are divided: those of a checkpoint, and of
// the batch.
void name_inputs(Graph& step, std::span<const NamedTensor> state, const Forward& forward) {
  std::vector<std::string> names;
  for (const NamedTensor& each : state) names.push_back(each.name);
  names.insert(names.end(), {"rate", "step", "seed"});
  for (const Network::Port& port : forward.of(Role::input)) names.push_back(port.name);
  std::vector<Network::Port> ports;
  for (size_t i = 0; i < names.size(); ++i)
    ports.push_back({Role::input, names[i], step.type(step.inputs()[i])});
  name_ports(step, ports);
}

Status check_options(const TrainingOptions& options) {
  if (options.epochs < 0 || options.patience < 0 || options.save_every < 0)
    return usage_error("epochs, patience and save_every must be at least 0");
  if (!(options.update.clip_norm >= 0))
    return usage_error("gradients are clipped to a norm above 0, not {}", options.update.clip_norm);
  if (!(options.update.average >= 0 && options.update.average < 1))
    return usage_error("a running mean keeps a share from 0 to below 1, not {}",
                       options.update.average);
  return {};
}

}  // namespace

Trainer::Trainer(Definition definition, Loader loader, const Dataset& data, Target target,
                 TrainingOptions options)
    : definition_(std::move(definition)),
      loader_(std::move(loader)),
      data_(&data),
      target_(std::move(target)),
      options_(std::move(options)) {
  if (options_.compile.device != nullptr) on_gpu_.emplace(options_.compile.device);
}

Result<Trainer> Trainer::make(Definition definition, const Dataset& data, Target target,
                              TrainingOptions options) {
  HONE_TRY(check_options(options));
  const Optimizer*& optimizer = options.update.optimizer;
  if (optimizer == nullptr) optimizer = HONE_TRY(find_optimizer("adam"));
  if (!options.rate) options.rate = constant_rate(optimizer->rate);
  if (options.compile.device != nullptr && (!options.devices.empty() || options.divide))
    return usage_error("a GPU takes the steps alone; several devices are named");
  if (options.compile.team == nullptr && options.devices.empty() && !options.divide &&
      options.compile.device == nullptr)
    options.compile.team = HONE_TRY(
        Team::create({.threads = std::clamp<int64_t>(
                          options.compile.plan.threads.value_or(target.cores), 1, target.cores)}));
  options.loader.seed = options.seed;
  Loader loader = HONE_TRY(Loader::make(data, options.loader));
  const Batch first = HONE_TRY(loader.batch(0, 0));
  Trainer trainer(std::move(definition), std::move(loader), data, std::move(target),
                  std::move(options));
  const Compiled* used = HONE_TRY(trainer.compiled(Network::Mode::training, first));
  trainer.state_ = first_state(used->forward, trainer.options_.update, trainer.options_.seed);
  return trainer;
}

size_t Trainer::stride() const {
  return 1 + options_.update.optimizer->states.size() + (options_.update.average > 0 ? 1 : 0);
}

// ---- Compiling ----------------------------------------------------------------------------------

Result<const Trainer::Compiled*> Trainer::compiled(Network::Mode mode, const Batch& batch) {
  const BatchTypes types = types_of(batch);
  const auto known = std::ranges::find_if(
      compiled_, [&](const Compiled& one) { return one.mode == mode && one.types == types; });
  if (known != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, known);
  } else {
    compiled_.push_front(HONE_TRY(compile(mode, types)));
    if (compiled_.size() > kMaxCompiled) compiled_.pop_back();
  }
  return &compiled_.front();
}

Result<Trainer::Compiled> Trainer::compile(Network::Mode mode, BatchTypes types) const {
  Compiled made = {.mode = mode, .types = std::move(types)};
  made.forward = HONE_TRY(trace(definition_, mode, made.types));
  HONE_TRY(check_weights(made.forward));
  const bool trains = mode == Network::Mode::training;
  CompileOptions options = options_.compile;
  options.progress = nullptr;  // it shows the steps
  if (trains) {
    made.step = HONE_TRY(network_step(made.forward, options_.update));
    made.step.graph = HONE_TRY(within_budget(made.step.graph, made.step.forward(), options_.memory,
                                             target_, options))
            .graph;
    if (options_.divide)
      name_inputs(
          made.step.graph,
          state_.empty() ? first_state(made.forward, options_.update, options_.seed) : state_,
          made.forward);
  }
  const Graph& graph = trains ? made.step.graph : made.forward.graph;
  if (options_.divide)
    made.elsewhere = HONE_TRY(options_.divide(graph));
  else if (!options_.devices.empty())
    made.elsewhere = HONE_TRY(divided(made));
  else if (options.device != nullptr)
    made.on_gpu = HONE_TRY(code_on_gpu(made));
  else
    made.executable = HONE_TRY(cached_executable(graph, target_, options));
  return made;
}

// The state lies there: the first inputs of a step, and the weights of a network.
Result<std::shared_ptr<const CudaExecutable>> Trainer::code_on_gpu(const Compiled& compiled) const {
  const Forward& forward = compiled.forward;
  const bool trains = compiled.mode == Network::Mode::training;
  std::vector<uint32_t> resident;
  if (trains) {
    resident.resize(forward.of(Role::weight).size() * stride());
    std::iota(resident.begin(), resident.end(), 0U);
  }
  for (uint32_t i = 0; i < forward.ports.size() && !trains; ++i)
    if (forward.ports[i].role == Role::weight) resident.push_back(i);
  CompileOptions options = options_.compile;
  options.progress = nullptr;
  Compilation code(trains ? compiled.step.graph : forward.graph, target_, options);
  return resident_code(code, std::move(resident), options);
}

// Tensors of the batch have samples along dim 0; all devices have the state and what else there is.
Result<std::shared_ptr<const Runnable>> Trainer::divided(const Compiled& compiled) const {
  const bool trains = compiled.mode == Network::Mode::training;
  const Graph& graph = trains ? compiled.step.graph : compiled.forward.graph;
  BatchInputs batch = {.rows = 0, .dims = std::vector<int>(graph.inputs().size(), kWhole)};
  const std::vector<Network::Port> ports =
      trains ? compiled.forward.of(Role::input) : compiled.forward.ports;
  const size_t first = graph.inputs().size() - ports.size();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].role != Role::input || ports[i].type.rank() == 0) continue;
    const int64_t samples = ports[i].type.dim(0).value();
    if (batch.rows == 0) batch.rows = samples;
    if (batch.rows == samples) batch.dims[first + i] = 0;
  }
  CompileOptions options = options_.compile;
  options.progress = nullptr;
  options.team = nullptr;
  const auto devices = std::ssize(options_.devices);
  const int64_t threads =
      options.plan.threads.value_or(std::max<int64_t>(1, target_.cores / devices));
  options.plan.threads = threads;
  const DividedCode code =
      HONE_TRY(divided_code(graph, batch, devices, target_, options, options_.system.get()));
  return std::shared_ptr<const Runnable>(HONE_TRY(ManyDevices::load(
      code.division, code.inputs, code.outputs, code.images,
      {.names = options_.devices, .threads = threads, .memory_limit = options.memory_limit})));
}

// A definition asks for the same weights whatever the batch; the first one says which.
Status Trainer::check_weights(const Forward& forward) const {
  if (state_.empty()) return {};
  const std::vector<Network::Port> weights = forward.of(Role::weight);
  const size_t count = state_.size() / stride();
  for (size_t i = 0; i < std::max(weights.size(), count); ++i) {
    const bool fits = i < weights.size() && i < count &&
                      weights[i].name == state_[i * stride()].name &&
                      weights[i].type == state_[i * stride()].tensor.type();
    if (fits) continue;
    const std::string asked =
        i < weights.size() ? fmt::format("'{}' as {}", weights[i].name, weights[i].type.to_string())
                           : "no more weights";
    const std::string there = i < count
                                  ? fmt::format("'{}', {}", state_[i * stride()].name,
                                                state_[i * stride()].tensor.type().to_string())
                                  : "none";
    return bad_input("the network asks for {}, but that of the first batch has {}", asked, there)
        .with_hint("weights and their order must not depend on the sizes of a batch or the mode");
  }
  return {};
}

// ---- Steps --------------------------------------------------------------------------------------

Tensor Trainer::argument(const Network::Port& port, const Batch& batch) const {
  switch (port.role) {
    case Role::input: return batch.find(port.name)->second;
    case Role::seed: return integer(DType::u64, static_cast<int64_t>(options_.seed));
    case Role::step: return integer(DType::i64, position_.step);
    case Role::weight: break;
  }
  HONE_CHECK(false, "port '{}' has no argument", port.name);
}

size_t Trainer::first_weight(bool averaged) const {
  return averaged && options_.update.average > 0 ? stride() - 1 : 0;
}

std::vector<Tensor> Trainer::arguments(const Forward& forward, const Batch& batch,
                                       bool averaged) const {
  std::vector<Tensor> all;
  size_t weight = first_weight(averaged);
  for (const Network::Port& port : forward.ports)
    all.push_back(port.role == Role::weight
                      ? state_[std::exchange(weight, weight + stride())].tensor
                      : argument(port, batch));
  return all;
}

Result<std::vector<Tensor>> Trainer::run_in_place(const Compiled& used, const Batch& batch,
                                                  double rate) {
  std::vector<Tensor> others = {Tensor::scalar(DType::f32, rate),
                                integer(DType::i64, position_.step),
                                integer(DType::u64, static_cast<int64_t>(options_.seed))};
  for (const Network::Port& port : used.forward.of(Role::input))
    others.push_back(aligned(batch.find(port.name)->second));
  if (used.elsewhere != nullptr) return run_elsewhere(*used.elsewhere, std::move(others));
  if (on_gpu_) {
    HONE_TRY(on_gpu_->put(state_));
    std::vector<Tensor> results = HONE_TRY(used.on_gpu->run_beside(others, on_gpu_->arrays(0, 1)));
    on_gpu_->change();
    return results;
  }
  std::vector<const void*> from;
  std::vector<void*> to;
  for (NamedTensor& each : state_) {
    if (!each.tensor.is_writable())
      each.tensor = Tensor::copy_of(each.tensor.type(), each.tensor.bytes());
    to.push_back(each.tensor.mutable_bytes().data());
    from.push_back(to.back());
  }
  for (const Tensor& other : others) from.push_back(other.bytes().data());
  std::vector<Tensor> results;
  for (const image::Port& port : used.executable->outputs().subspan(state_.size()))
    to.push_back(results.emplace_back(Tensor::zeros(port.type)).mutable_bytes().data());
  HONE_TRY(used.executable->run(from, to));
  return results;
}

Result<std::vector<Tensor>> Trainer::run_elsewhere(const Runnable& code,
                                                   std::vector<Tensor> others) {
  std::vector<Tensor> inputs;
  for (const NamedTensor& each : state_) inputs.push_back(aligned(each.tensor));
  inputs.insert(inputs.end(), others.begin(), others.end());
  std::vector<Tensor> outputs = HONE_TRY(code.run(inputs));
  for (size_t i = 0; i < state_.size(); ++i) state_[i].tensor = std::move(outputs[i]);
  outputs.erase(outputs.begin(), outputs.begin() + std::ssize(state_));
  return outputs;
}

Result<std::vector<Tensor>> Trainer::run_forward(const Compiled& used, const Batch& batch) {
  if (used.elsewhere != nullptr) return used.elsewhere->run(arguments(used.forward, batch, true));
  if (!on_gpu_) return used.executable->run(arguments(used.forward, batch, true));
  HONE_TRY(on_gpu_->put(state_));
  std::vector<Tensor> others;
  for (const Network::Port& port : used.forward.ports)
    if (port.role != Role::weight) others.push_back(argument(port, batch));
  return used.on_gpu->run_beside(others, on_gpu_->arrays(first_weight(true), stride()));
}

Status Trainer::read_back() { return on_gpu_ ? on_gpu_->read_back(state_) : Status(); }

Result<StepResult> Trainer::step() {
  StepResult done = HONE_TRY(advance());
  HONE_TRY(read_back());
  return done;
}

Result<StepResult> Trainer::advance() {
  if (position_.batch >= loader_.batches()) {
    ++position_.epoch;
    position_.batch = 0;
    position_.loss_sum = 0;
  }
  const Batch batch = HONE_TRY(loader_.batch(position_.epoch, position_.batch));
  const Compiled* used = HONE_TRY(compiled(Network::Mode::training, batch));
  const double rate = options_.rate(position_.step);
  const std::vector<Tensor> results = HONE_TRY(run_in_place(*used, batch, rate));
  const double loss = results[StepOutputs::loss].real_at(0);
  if (results[StepOutputs::is_finite].integer_at(0) == 0) {
    HONE_TRY(read_back());
    return went_bad(*used, batch, loss);
  }
  position_.loss_sum += loss;
  ++position_.step;
  ++position_.batch;
  StepResult result = {.step = position_.step,
                       .epoch = position_.epoch,
                       .loss = loss,
                       .gradient_norm = results[StepOutputs::norm].real_at(0),
                       .rate = rate};
  for (size_t i = 0; i < used->forward.metrics.size(); ++i)
    result.metrics.emplace_back(used->forward.metrics[i],
                                results[StepOutputs::metrics + i].real_at(0));
  return result;
}

Error Trainer::went_bad(const Compiled& used, const Batch& batch, double loss) const {
  const auto bad = first_bad_value(used.step.gradients, arguments(used.forward, batch, false));
  std::string first;
  if (!bad.ok())
    first = fmt::format("which tensor went bad first is not known: {}", bad.error().what());
  else if (bad->has_value())
    first = fmt::format("first went bad: {}", **bad);
  else
    first = "the sum of the squares of the gradients is too large";
  return check_failed("the loss of step {} is {}, and training cannot go on; {}",
                      position_.step + 1, loss, first)
      .with_hint(
          "the weights are those before the step; try a lower rate or update.clip_norm, "
          "and look for such numbers in the data");
}

Result<StepResult> Trainer::evaluate(const Dataset& data) {
  LoaderOptions options = options_.loader;
  options.shuffles = false;
  Loader loader = HONE_TRY(Loader::make(data, options));
  StepResult mean = {.step = position_.step, .epoch = position_.epoch};
  double samples = 0;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    HONE_TRY(check_cancelled(options_));
    const Batch batch = HONE_TRY(loader.batch(0, i));
    const Compiled* used = HONE_TRY(compiled(Network::Mode::evaluation, batch));
    const std::vector<Tensor> values = HONE_TRY(run_forward(*used, batch));
    const auto count = static_cast<double>(loader.samples(0, i).size());
    samples += count;
    mean.loss += count * values[0].real_at(0);
    for (size_t k = 0; k < used->forward.metrics.size(); ++k) {
      if (k == mean.metrics.size()) mean.metrics.emplace_back(used->forward.metrics[k], 0);
      mean.metrics[k].second += count * values[1 + k].real_at(0);
    }
  }
  mean.loss /= samples;
  for (auto& [name, value] : mean.metrics) value /= samples;
  return mean;
}

Status Trainer::begin_with(std::span<const NamedTensor> weights) {
  HONE_TRY(read_back());
  if (on_gpu_) on_gpu_->forget();
  for (const NamedTensor& weight : weights) {
    size_t at = 0;
    while (at < state_.size() && state_[at].name != weight.name) at += stride();
    if (at >= state_.size() || state_[at].tensor.type() != weight.tensor.type())
      return bad_input("the network has no weight '{}' of {}", weight.name,
                       weight.tensor.type().to_string());
    const auto copy = [&] { return Tensor::copy_of(weight.tensor.type(), weight.tensor.bytes()); };
    state_[at].tensor = copy();
    if (options_.update.average > 0) state_[at + stride() - 1].tensor = copy();
  }
  return {};
}

std::vector<NamedTensor> Trainer::weights() const {
  std::vector<NamedTensor> all;
  const size_t from = options_.update.average > 0 ? stride() - 1 : 0;
  for (size_t i = 0; i < state_.size(); i += stride())
    all.push_back({state_[i].name, state_[i + from].tensor});
  return all;
}

Result<Graph> Trainer::frozen(const Forwards& outputs, const BatchTypes& types) const {
  const std::vector<NamedTensor> trained = weights();
  Builder b("network");
  Network net(b, Network::Mode::evaluation, types, &trained);
  Graph graph = HONE_TRY(b.finish(outputs(net)));
  name_ports(graph, net.ports());
  return graph;
}

// ---- The loop -----------------------------------------------------------------------------------

Status Trainer::write_events(const StepResult& result, std::string_view prefix) {
  if (options_.folder.empty()) return {};
  if (!events_) events_ = HONE_TRY(EventWriter::create(options_.folder));
  const auto add = [&](std::string_view name, double value) {
    return events_->add(result.step, fmt::format("{}/{}", prefix, name), value);
  };
  HONE_TRY(add("loss", result.loss));
  if (prefix == "training") {
    HONE_TRY(add("rate", result.rate));
    HONE_TRY(add("gradient norm", result.gradient_norm));
  }
  for (const auto& [name, value] : result.metrics) HONE_TRY(add(name, value));
  return {};
}

Status Trainer::after_step(const StepResult& result) {
  progress_of(options_).advance();
  if (options_.on_step) options_.on_step(result);
  HONE_TRY(write_events(result, "training"));
  const bool is_due = options_.save_every > 0 && position_.step % options_.save_every == 0;
  return is_due && !options_.folder.empty() ? save(last()) : Status();
}

Result<EpochResult> Trainer::finish_epoch(const Dataset* validation) {
  EpochResult result = {.epoch = position_.epoch,
                        .loss = position_.loss_sum / static_cast<double>(loader_.batches())};
  if (validation != nullptr) {
    result.validation = HONE_TRY(evaluate(*validation));
    HONE_TRY(write_events(*result.validation, "validation"));
  }
  const double loss = result.validation ? result.validation->loss : result.loss;
  HONE_TRY(read_back());
  const bool is_best = loss < position_.best_loss;
  if (is_best) {
    position_.best_loss = loss;
    position_.best_epoch = position_.epoch;
  }
  position_.waited = is_best ? 0 : position_.waited + 1;
  ++position_.epoch;
  position_.batch = 0;
  position_.loss_sum = 0;
  if (!options_.folder.empty()) {
    if (is_best) HONE_TRY(save(options_.folder / "best.safetensors"));
    HONE_TRY(save(last()));
  }
  if (options_.on_epoch) options_.on_epoch(result);
  return result;
}

Result<TrainingResult> Trainer::train(const Dataset* validation) {
  if (!options_.folder.empty()) HONE_TRY(make_folders(options_.folder));
  Progress& progress = progress_of(options_);
  const int64_t total = options_.epochs * loader_.batches();
  progress.start(std::max<int64_t>(total - position_.step, 0), "steps");
  const auto has_waited = [&] {
    return options_.patience > 0 && position_.waited >= options_.patience;
  };
  TrainingResult result;
  result.stopped_early = has_waited();
  const auto saved = [&](Error error) {
    progress.finish("stopped");
    if (!read_back().ok())
      return std::move(error).with_hint(
          "the GPU has lost what was trained since the last checkpoint; training goes on from "
          "that");
    const Status status = options_.folder.empty() ? Status() : save(last());
    return status.ok() ? error : Error(status.error());
  };
  while (position_.epoch < options_.epochs && !result.stopped_early) {
    while (position_.batch < loader_.batches()) {
      if (Status status = check_cancelled(options_); !status.ok()) return saved(status.error());
      Result<StepResult> done = advance();
      if (!done.ok()) return saved(done.error());
      HONE_TRY(after_step(*done));
    }
    Result<EpochResult> epoch = finish_epoch(validation);
    if (!epoch.ok()) return saved(epoch.error());
    result.epochs.push_back(*std::move(epoch));
    result.stopped_early = has_waited();
  }
  result.best_loss = position_.best_loss;
  result.best_epoch = position_.best_epoch;
  progress.finish();
  return result;
}

}  // namespace hone
