#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/arguments.h"
#include "search/pipeline.h"
#include "search/placed_graph.h"
#include "session/inputs.h"
#include "session/source.h"
#include "worker/each_device.h"

// Models under a plan that says which device computes what: of kernels, or of the stages of a
// pipeline.

namespace hone::cli {

class Console;
struct Processes;

// An error if an option is given that says how one device computes; `except`: it may be. `plan`
// says who computes what.
Status check_options_of_placed(const Arguments& arguments, std::string_view except = {},
                               std::string_view plan = "a plan that places kernels on devices");

// The plan of --plan, if it says who computes what: it is for one graph.
Result<std::optional<DevicePlan>> given_device_plan(const Arguments& arguments);

// The plan of --pipeline, if there is one.
Result<std::optional<PipelinePlan>> given_pipeline(const Arguments& arguments);

// Native code on devices that takes and gives the tensors of a model: each device gets those that
// it needs, and outputs come from the devices that have them.
class PlacedCode final : public Runnable {
 public:
  // `pipeline` has parts of the tensors of the graph; null: devices have whole ones.
  PlacedCode(const Graph& graph, PlacedPrograms programs,
             std::shared_ptr<const PipelinePrograms> pipeline,
             std::shared_ptr<const EachDevice> code);

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return code_->threads(); }
  const Executable* single() const override { return nullptr; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;
  // The outputs of several runs (worker/each_device.h).
  Result<std::vector<std::vector<Tensor>>> run_all(std::span<const std::vector<Tensor>> inputs,
                                                   const RunOptions& options = {}) const;

 private:
  std::vector<Tensor> given(std::span<const Tensor> inputs) const;
  std::vector<Tensor> made(std::span<const Tensor> outputs) const;

  const Graph graph_;
  const PlacedPrograms programs_;
  const std::shared_ptr<const PipelinePrograms> pipeline_;
  const std::shared_ptr<const EachDevice> code_;
  const std::vector<image::Port> inputs_, outputs_;
};

// A model whose parts are on the devices that the plan says.
struct PlacedModel {
  System system = {};
  Graph graph = Graph();  // that all devices compute together
  PlacedPrograms programs = {};
  std::shared_ptr<const PipelinePrograms> pipeline = nullptr;  // if devices have parts of tensors
  std::string how = {};                                        // "2 devices of 'ring:2'"

  Result<std::shared_ptr<const PlacedCode>> code(const Processes& processes, int64_t memory_limit,
                                                 const Arguments& arguments,
                                                 Console& console) const;
};

// As many devices as a plan has, unless the command line says others.
Result<System> system_of_plan(int64_t devices, const Arguments& arguments);

// The placement that a plan of devices says. It fits their memory.
struct SaidPlacement {
  System system = {};
  PlacedGraph placed = {};
  DevicePlacement placement = {};
  std::vector<std::shared_ptr<const Cost>> costs = {};
};
// The devices are those of --system, else as many parts of this machine as the plan or --devices
// say.
Result<SaidPlacement> said_by_plan(const DevicePlan& plan, const Graph& graph,
                                   const Arguments& arguments, Console& console);
Result<PlacedModel> placed_model(const DevicePlan& plan, const Graph& graph,
                                 const Arguments& arguments, Console& console);
Result<PlacedModel> pipelined_model(const PipelinePlan& plan, const Graph& graph,
                                    const Arguments& arguments, Console& console);
// The same for a model, which is one graph, with the sizes of its inputs.
Result<PlacedModel> pipelined_model(const PipelinePlan& plan, const Source& source,
                                    const RunInputs& inputs, const Arguments& arguments,
                                    Console& console);
// The same on these devices, whatever options say.
Result<PlacedModel> pipelined_on(System system, const PipelinePlan& plan, const Graph& graph,
                                 Console& console);

}  // namespace hone::cli
