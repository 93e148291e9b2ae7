#include "python/core.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "python/error.h"

namespace hone::python {

namespace py = pybind11;

namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  if (a.empty() || b.empty()) return false;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

}  // namespace

py::object text_of(std::string_view name) {
  PyObject* text =
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "backslashreplace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(text);
}

Core::Core(std::vector<Port> inputs, std::vector<Port> outputs,
           std::shared_ptr<const Runnable> model)
    : inputs_(side("input", std::move(inputs))),
      outputs_(side("output", std::move(outputs))),
      model_(std::move(model)) {}

Core::Side Core::side(std::string_view what, std::vector<Port> ports) {
  Side side = {what, std::move(ports), {}, {}};
  for (const Port& port : side.ports) {
    side.labels.push_back(fmt::format("{} '{}'", what, excerpt(port.name)));
    side.names.push_back(text_of(port.name));
  }
  return side;
}

py::list Core::described(const Side& side) {
  py::list all;
  for (size_t i = 0; i < side.ports.size(); ++i) {
    const Type type = side.ports[i].type;
    all.append(py::make_tuple(side.names[i], py::str(std::string(name(type.dtype()))),
                              numpy_name(type.dtype()), shape_of(type)));
  }
  return all;
}

// Indexed by port; borrowed from `given`.
std::vector<py::handle> Core::arranged(const Side& side, py::handle given) {
  const size_t count = side.ports.size();
  std::vector<py::handle> arrays(count);
  if (PyDict_Check(given.ptr())) {
    const auto named = py::reinterpret_borrow<py::dict>(given);
    for (size_t i = 0; i < count; ++i) {
      arrays[i] = PyDict_GetItemWithError(named.ptr(), side.names[i].ptr());
      if (!arrays[i]) raise(bad_input("{} is missing", side.labels[i]));
    }
    if (named.size() == count) return arrays;
    for (const auto& [key, array] : named) {
      bool is_known = false;
      for (const py::object& one : side.names) is_known = is_known || one.equal(key);
      if (is_known) continue;
      std::vector<std::string> known;
      for (const Port& port : side.ports) known.push_back(excerpt(port.name));
      raise(bad_input("there is no {} {}", side.what, py::repr(key).cast<std::string>())
                .with_hint(fmt::format("the model has {}", join(known, ", "))));
    }
    return arrays;
  }
  if (!PyTuple_Check(given.ptr()) && !PyList_Check(given.ptr()))
    raise(usage_error("{}s are a dict by name, a list or a tuple", side.what));
  const auto sequence = static_cast<size_t>(PySequence_Fast_GET_SIZE(given.ptr()));
  if (sequence != count)
    raise(bad_input("the model has {} {}s, {} are given", count, side.what, sequence));
  for (size_t i = 0; i < count; ++i)
    arrays[i] = PySequence_Fast_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i));
  return arrays;
}

std::vector<GivenArray> Core::given(const Side& side, py::handle arrays,
                                    GivenArray::Use use) const {
  const std::vector<py::handle> order = arranged(side, arrays);
  std::vector<GivenArray> all;
  all.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) all.emplace_back(order[i], side.labels[i], use);
  return all;
}

py::tuple Core::run(py::handle inputs, py::handle out) const {
  std::vector<GivenArray> arrays = given(inputs_, inputs, GivenArray::Use::read);
  const Executable* const code = model_->single();
  return code != nullptr ? run_fixed(*code, std::move(arrays), out)
                         : run_open(std::move(arrays), out);
}

py::tuple Core::run_fixed(const Executable& code, std::vector<GivenArray> inputs,
                          py::handle out) const {
  std::vector<const void*> from;
  from.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    from.push_back(inputs[i].elements(inputs[i].fit(inputs_.ports[i], inputs_.labels[i])));

  const size_t count = outputs_.ports.size();
  py::tuple results(count);
  std::vector<void*> to(count);
  std::vector<GivenArray> written;
  if (!out.is_none()) {
    const std::vector<py::handle> order = arranged(outputs_, out);
    written = given(outputs_, out, GivenArray::Use::write);
    for (size_t i = 0; i < count; ++i) {
      const Type type = written[i].fit(outputs_.ports[i], outputs_.labels[i]);
      to[i] = written[i].place(type, outputs_.labels[i]);
      results[i] = py::reinterpret_borrow<py::object>(order[i]);
    }
  } else {
    for (size_t i = 0; i < count; ++i) {
      NewArray made = new_array(outputs_.ports[i].type);
      to[i] = made.data;
      results[i] = std::move(made.array);
    }
  }
  Status status;
  {
    const py::gil_scoped_release free;
    status = code.run(from, to);
  }
  take(status);
  return results;
}

py::tuple Core::run_open(std::vector<GivenArray> inputs, py::handle out) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type type = inputs[i].fit(inputs_.ports[i], inputs_.labels[i]);
    tensors.push_back(tensor_of(std::move(inputs[i]), type));
  }
  std::vector<Tensor> computed;
  Status status;
  {
    const py::gil_scoped_release free;
    Result<std::vector<Tensor>> result = model_->run(tensors);
    if (result.ok())
      computed = *std::move(result);
    else
      status = result.error();
  }
  take(status);

  py::tuple results(computed.size());
  if (out.is_none()) {
    for (size_t i = 0; i < computed.size(); ++i) results[i] = array_of(std::move(computed[i]));
    return results;
  }
  write_to(out, std::move(computed));
  const std::vector<py::handle> order = arranged(outputs_, out);
  for (size_t i = 0; i < order.size(); ++i)
    results[i] = py::reinterpret_borrow<py::object>(order[i]);
  return results;
}

// Nothing is written before all is known to fit. A model may return an input as it is, in the
// memory of its array; what lies where outputs are written to is copied before.
void Core::write_to(py::handle out, std::vector<Tensor> computed) const {
  const std::vector<GivenArray> written = given(outputs_, out, GivenArray::Use::write);
  std::vector<std::span<std::byte>> places;
  for (size_t i = 0; i < computed.size(); ++i) {
    const std::string& label = outputs_.labels[i];
    const Type type = written[i].fit({outputs_.ports[i].name, computed[i].type()}, label);
    const std::span place(written[i].place(type, label), static_cast<size_t>(type.static_bytes()));
    for (size_t k = 0; k < places.size(); ++k)
      if (overlap(place, places[k])) raise(bad_input("{} overlaps {}", label, outputs_.labels[k]));
    places.push_back(place);
  }
  for (Tensor& tensor : computed)
    for (const std::span<std::byte> place : places)
      if (overlap(place, tensor.bytes())) tensor = Tensor::copy_of(tensor.type(), tensor.bytes());
  for (size_t i = 0; i < places.size(); ++i)
    if (!places[i].empty()) std::ranges::copy(computed[i].bytes(), places[i].begin());
}

void define_core(py::module_& module) {
  define_arrays();
  py::class_<Core, std::shared_ptr<Core>>(module, "Core", py::module_local())
      .def_property_readonly("inputs", &Core::inputs)
      .def_property_readonly("outputs", &Core::outputs)
      .def("run", &Core::run);
}

}  // namespace hone::python
