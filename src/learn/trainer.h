#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/compilation.h"
#include "formats/safetensors.h"
#include "learn/data.h"
#include "learn/events.h"
#include "learn/memory_budget.h"
#include "learn/network_step.h"
#include "learn/schedule.h"
#include "learn/state_on_gpu.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/many_devices.h"
#include "target/system.h"

// Trains a network: each kind of batch gets a step of its own, compiled like any graph.
//
//   Trainer trainer = HONE_TRY(Trainer::make(digits, data, host, {.epochs = 5}));
//   TrainingResult result = HONE_TRY(trainer.train(&validation));
//
// The same seed gives the same bits on the same machine with the same number of threads and of
// devices, and the same system. So it does if training was interrupted and resumed. A checkpoint
// does not say how many devices wrote it: any number goes on from it.

namespace hone {

// The result of a step, or of all batches of an epoch together.
struct StepResult {
  int64_t step = 0;   // steps done, this one included
  int64_t epoch = 0;  // from 0 on
  double loss = 0;
  double gradient_norm = 0;  // before it was clipped
  double rate = 0;
  std::vector<std::pair<std::string, double>> metrics = {};
};
struct EpochResult {
  int64_t epoch = 0;
  double loss = 0;                            // the mean of its steps
  std::optional<StepResult> validation = {};  // means over the samples
};
struct TrainingResult {
  std::vector<EpochResult> epochs = {};  // of this call
  bool stopped_early = false;
  double best_loss = 0;  // of validation, or else of training
  int64_t best_epoch = 0;
};

struct TrainingOptions {
  UpdateOptions update = {};  // no optimizer: adam
  RateSchedule rate = {};     // none: the optimizer's own
  LoaderOptions loader = {};  // its seed is the one below
  int64_t epochs = 10;
  // Training ends after this many epochs in a row without a better loss; 0: it does not.
  int64_t patience = 0;
  uint64_t seed = 0;
  // Gets last.safetensors, best.safetensors and event files; empty: nothing is written.
  std::filesystem::path folder = {};
  int64_t save_every = 0;    // steps; 0: after each epoch
  MemoryBudget memory = {};  // of each step's temporaries
  // With its device a GPU takes the steps of train(), and keeps the state between them: it comes
  // back for checkpoints and at the end of an epoch.
  CompileOptions compile = {};
  // The names of devices of this machine, which divide each batch along dim 0 of its tensors; none:
  // one device has all of it. The threads of the plan are those of each device.
  std::vector<std::string> devices = {};
  // As many devices, and their links, which schedule the sums of gradients; null: sizes do.
  std::shared_ptr<const System> system = nullptr;
  // Makes the code of devices that divide the values of a graph in any way, in place of `devices`:
  // it takes and gives whole tensors. None: batches alone are divided.
  std::function<Result<std::shared_ptr<const Runnable>>(const Graph&)> divide = {};
  std::function<void(const StepResult&)> on_step = {};
  std::function<void(const EpochResult&)> on_epoch = {};
};

class Trainer {
 public:
  // Compiles the step of the first batch, so that faults of a definition are told at once. The
  // data outlives the trainer.
  static Result<Trainer> make(Definition definition, const Dataset& data, Target target,
                              TrainingOptions options = {});

  // Goes on from last.safetensors in the folder. Says whether there was one.
  Result<bool> resume();
  // From where it stands to the last epoch. Cancelled, it saves and says ErrorCode::interrupted.
  Result<TrainingResult> train(const Dataset* validation = nullptr);

  // One step on the next batch; weights() are those behind it. A loss or a gradient that is not
  // finite is an error, which names the tensor that went bad first; the state is the one before the
  // step.
  Result<StepResult> step();
  // Means over all samples, with the running mean of the weights if there is one.
  Result<StepResult> evaluate(const Dataset& data);

  // Weights of these names have these numbers from now on; all of them are weights of the network.
  Status begin_with(std::span<const NamedTensor> weights);
  // The trained weights by name: the running mean if there is one.
  std::vector<NamedTensor> weights() const;
  // A graph of the trained network for batches of these types; weights are constants.
  using Forwards = std::function<std::vector<Value>(Network&)>;
  Result<Graph> frozen(const Forwards& outputs, const BatchTypes& types) const;

  Status save(const std::filesystem::path& path);
  Status load(const std::filesystem::path& path);
  int64_t steps() const { return position_.step; }

 private:
  // Where training stands; with the state and the seed, all that later numbers depend on.
  struct Position {
    int64_t step = 0;
    int64_t epoch = 0;
    int64_t batch = 0;    // of the epoch: the next one
    double loss_sum = 0;  // of the epoch's steps
    double best_loss = std::numeric_limits<double>::infinity();
    int64_t best_epoch = 0;
    int64_t waited = 0;  // epochs since the best one
  };
  // The code for batches of some types.
  struct Compiled {
    Network::Mode mode = Network::Mode::training;
    BatchTypes types = {};
    Forward forward = {};
    NetworkStep step = {};  // in training
    std::shared_ptr<const Executable> executable = nullptr;
    // In its place: several devices, or a GPU, where the state lies.
    std::shared_ptr<const Runnable> elsewhere = nullptr;
    std::shared_ptr<const CudaExecutable> on_gpu = nullptr;
  };

  Trainer(Definition definition, Loader loader, const Dataset& data, Target target,
          TrainingOptions options);
  Result<const Compiled*> compiled(Network::Mode mode, const Batch& batch);
  Result<Compiled> compile(Network::Mode mode, BatchTypes types) const;
  Result<std::shared_ptr<const Runnable>> divided(const Compiled& compiled) const;
  Status check_weights(const Forward& forward) const;
  Result<std::shared_ptr<const CudaExecutable>> code_on_gpu(const Compiled& compiled) const;
  Tensor argument(const Network::Port& port, const Batch& batch) const;  // not of a weight
  // Where the weights begin in the state: those of the running mean if `averaged`.
  size_t first_weight(bool averaged) const;
  // The inputs of a network's ports.
  std::vector<Tensor> arguments(const Forward& forward, const Batch& batch, bool averaged) const;
  // Runs a step on the state, where it lies. Gives StepOutputs.
  Result<std::vector<Tensor>> run_in_place(const Compiled& used, const Batch& batch, double rate);
  // The same on several devices: the state is new.
  Result<std::vector<Tensor>> run_elsewhere(const Runnable& code, std::vector<Tensor> others);
  // Loss and metrics, with the running mean of the weights if there is one.
  Result<std::vector<Tensor>> run_forward(const Compiled& used, const Batch& batch);
  // step(), but on a GPU the state stays there.
  Result<StepResult> advance();
  Status read_back();
  Error went_bad(const Compiled& used, const Batch& batch, double loss) const;
  size_t stride() const;  // tensors of the state per weight
  std::filesystem::path last() const { return options_.folder / "last.safetensors"; }
  Status write_events(const StepResult& result, std::string_view prefix);
  Status after_step(const StepResult& result);
  Result<EpochResult> finish_epoch(const Dataset* validation);
  std::map<std::string, std::string> metadata() const;
  Status set_metadata(const std::map<std::string, std::string>& metadata);

  Definition definition_;
  Loader loader_;
  const Dataset* data_;
  Target target_;
  TrainingOptions options_;
  std::vector<NamedTensor> state_;
  std::optional<StateOnGpu> on_gpu_;  // ahead of it while train() takes steps
  Position position_;
  std::list<Compiled> compiled_;
  std::optional<EventWriter> events_;
};

}  // namespace hone
