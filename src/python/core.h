#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/array.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/cuda_memory_pool.h"
#include "runtime/executable.h"

// A model as Python calls it. Both modules have it, each for models of its own: the compiler's
// library has the runtime inside, too.

namespace hone::python {

// The arrays of a run, and where in memory they are. Made and destroyed with the GIL.
struct RunArrays {
  std::vector<GivenArray> inputs;
  std::vector<GivenArray> outputs;  // those that are given
  std::vector<const void*> from;    // by input
  std::vector<void*> to;            // by output
  pybind11::tuple results;          // the outputs' arrays
};

// A model with its arrays, which were looked at once: each run reads and writes the same memory.
class Binding {
 public:
  Binding(std::shared_ptr<const Runnable> model, RunArrays arrays)
      : model_(std::move(model)), arrays_(std::move(arrays)) {}

  // Raises if another thread is running it.
  void run();
  pybind11::tuple results() const { return arrays_.results; }

 private:
  const std::shared_ptr<const Runnable> model_;
  const RunArrays arrays_;
  bool is_running_ = false;  // guarded by the GIL
};

class Core {
 public:
  // `gpu`: the model's code, if it is one graph on a GPU. The model keeps it.
  Core(std::vector<Port> inputs, std::vector<Port> outputs, std::shared_ptr<const Runnable> model,
       const CudaExecutable* gpu = nullptr);

  // A list of tuples: name, element type, numpy's element type, sizes (a number, or a text if
  // open).
  pybind11::list inputs() const { return described(inputs_); }
  pybind11::list outputs() const { return described(outputs_); }

  // A dict: the outputs that may lie in inputs that the caller gives up, and these inputs.
  pybind11::dict donors() const;

  // The outputs' arrays. `inputs` is a sequence in order or a mapping by name. `out` is none, or
  // the same for outputs: arrays to write to, which are returned; none among them is made here.
  // `donate` has names of inputs that the caller gives up, or is true for all donors: their outputs
  // are returned in the same arrays.
  //
  // A model on a GPU takes arrays there, too, all of them at once. They are used where they lie,
  // behind what is in the caller's stream; results are new arrays there, those of `out`, or donated
  // ones. `stream` is its handle; none or 0: the default stream.
  pybind11::tuple run(pybind11::handle inputs, pybind11::handle out, pybind11::handle donate,
                      std::optional<uint64_t> stream) const;
  // The same for any number of runs; nothing is copied in them.
  std::unique_ptr<Binding> bind(pybind11::handle inputs, pybind11::handle out,
                                pybind11::handle donate) const;

 private:
  struct Side {
    std::string_view what;  // "input"
    std::vector<Port> ports;
    std::vector<std::string> labels;      // "input 'x'"
    std::vector<pybind11::object> names;  // as Python has them
  };
  static Side side(std::string_view what, std::vector<Port> ports);
  static pybind11::list described(const Side& side);
  static std::vector<pybind11::handle> arranged(const Side& side, pybind11::handle given);
  std::vector<GivenArray> given(const Side& side, pybind11::handle arrays,
                                GivenArray::Use use) const;
  const Executable& fixed(std::string_view what) const;
  std::vector<bool> given_up(std::span<const std::optional<uint32_t>> donors,
                             pybind11::handle donate) const;
  RunArrays arrays_of(const Executable& code, GivenArray::Use use, pybind11::handle inputs,
                      pybind11::handle out, pybind11::handle donate) const;
  pybind11::tuple run_open(pybind11::handle inputs, pybind11::handle out) const;
  pybind11::tuple run_on_gpu(const std::vector<pybind11::handle>& inputs, pybind11::handle out,
                             const std::vector<bool>& donated, uint64_t stream) const;
  void write_to(const std::vector<pybind11::handle>& out, std::span<Tensor> computed) const;

  const Side inputs_;
  const Side outputs_;
  const std::shared_ptr<const Runnable> model_;
  const CudaExecutable* const gpu_;
  const std::shared_ptr<MemoryPool> output_memory_;
  const std::shared_ptr<CudaMemoryPool> gpu_memory_;  // of results; null: it is of no GPU
};

// A name of a model as Python has it: names are any bytes.
pybind11::object text_of(std::string_view name);

// Registers the class, for this module alone.
void define_core(pybind11::module_& module);

}  // namespace hone::python
