#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "python/array.h"
#include "runtime/executable.h"

// A model as Python calls it. Both modules have it, each for models of its own: the compiler's
// library has the runtime inside, too.

namespace hone::python {

class Core {
 public:
  Core(std::vector<Port> inputs, std::vector<Port> outputs, std::shared_ptr<const Runnable> model);

  // A list of tuples: name, element type, numpy's element type, sizes (a number, or a text if
  // open).
  pybind11::list inputs() const { return described(inputs_); }
  pybind11::list outputs() const { return described(outputs_); }

  // The outputs' arrays. `inputs` is a sequence in order or a mapping by name; `out` is none, or
  // the same for outputs: arrays to write to, which are returned.
  pybind11::tuple run(pybind11::handle inputs, pybind11::handle out) const;

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
  pybind11::tuple run_fixed(const Executable& code, std::vector<GivenArray> inputs,
                            pybind11::handle out) const;
  pybind11::tuple run_open(std::vector<GivenArray> inputs, pybind11::handle out) const;
  void write_to(pybind11::handle out, std::vector<Tensor> computed) const;

  const Side inputs_;
  const Side outputs_;
  const std::shared_ptr<const Runnable> model_;
};

// A name of a model as Python has it: names are any bytes.
pybind11::object text_of(std::string_view name);

// Registers the class, for this module alone.
void define_core(pybind11::module_& module);

}  // namespace hone::python
