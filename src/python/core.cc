#include "python/core.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <pybind11/stl.h>

#include "base/text.h"
#include "python/dlpack.h"
#include "python/error.h"
#include "python/gpu_array.h"

namespace hone::python {

namespace py = pybind11;

namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  if (a.empty() || b.empty()) return false;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// Keeps as much as the outputs need.
std::shared_ptr<MemoryPool> memory_for(std::span<const Port> outputs) {
  size_t bytes = 0;
  for (const Port& port : outputs)
    if (port.type.is_static()) bytes += static_cast<size_t>(port.type.static_bytes());
  return std::make_shared<MemoryPool>(bytes);
}

// The same on a GPU. Who reads a result while the next run makes another has two of each.
std::shared_ptr<CudaMemoryPool> gpu_memory_for(const CudaExecutable& code) {
  int64_t bytes = 0;
  for (const image::Port& port : code.outputs()) bytes += 2 * port.type.static_bytes();
  return std::make_shared<CudaMemoryPool>(code.device(), bytes);
}

}  // namespace

py::object text_of(std::string_view name) {
  PyObject* text =
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "backslashreplace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(text);
}

Core::Core(std::vector<Port> inputs, std::vector<Port> outputs,
           std::shared_ptr<const Runnable> model, const CudaExecutable* gpu)
    : inputs_(side("input", std::move(inputs))),
      outputs_(side("output", std::move(outputs))),
      model_(std::move(model)),
      gpu_(gpu),
      output_memory_(memory_for(outputs_.ports)),
      gpu_memory_(gpu == nullptr ? nullptr : gpu_memory_for(*gpu)) {}

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

const Executable& Core::fixed(std::string_view what) const {
  if (const Executable* const code = model_->single()) return *code;
  raise(usage_error("{} is for a model of one graph whose sizes are numbers", what)
            .with_hint("hone.compile(..., sizes={'N': 4}) chooses them"));
}

py::dict Core::donors() const {
  py::dict all;
  std::span<const std::optional<uint32_t>> donors;
  if (const Executable* const code = model_->single()) donors = code->donors();
  if (gpu_ != nullptr) donors = gpu_->donors();
  for (size_t i = 0; i < donors.size(); ++i)
    if (const std::optional<uint32_t> donor = donors[i])
      all[outputs_.names[i]] = inputs_.names[*donor];
  return all;
}

// Indexed by input; empty: none.
std::vector<bool> Core::given_up(std::span<const std::optional<uint32_t>> donors,
                                 py::handle donate) const {
  if (donate.is_none() || donate.ptr() == Py_False) return {};
  std::vector<bool> may(inputs_.ports.size());
  for (const std::optional<uint32_t>& donor : donors)
    if (donor) may[*donor] = true;
  const std::string hint = "hone.compile(..., donate={'INPUT': 'OUTPUT'}) asks for it";
  if (donate.ptr() == Py_True) {
    if (std::ranges::find(may, true) == may.end())
      raise(usage_error("the model changes no input in place").with_hint(hint));
    return may;
  }
  std::vector<bool> all(may.size());
  const py::object names = PyUnicode_Check(donate.ptr())
                               ? py::object(py::make_tuple(donate))
                               : py::reinterpret_borrow<py::object>(donate);
  for (const py::handle one : names) {
    const auto found = std::ranges::find_if(
        inputs_.names, [&](const py::object& name) { return name.equal(one); });
    if (found == inputs_.names.end())
      raise(bad_input("there is no input {}", py::repr(one).cast<std::string>()));
    const auto i = static_cast<size_t>(found - inputs_.names.begin());
    if (!may[i]) raise(usage_error("no output may lie in {}", inputs_.labels[i]).with_hint(hint));
    all[i] = true;
  }
  return all;
}

RunArrays Core::arrays_of(const Executable& code, GivenArray::Use use, py::handle inputs,
                          py::handle out, py::handle donate) const {
  const std::vector<bool> donated = given_up(code.donors(), donate);
  const std::vector<py::handle> given_inputs = arranged(inputs_, inputs);
  RunArrays all;
  all.inputs.reserve(given_inputs.size());
  all.from.reserve(given_inputs.size());
  for (size_t i = 0; i < given_inputs.size(); ++i) {
    const std::string& label = inputs_.labels[i];
    const bool is_donated = !donated.empty() && donated[i];
    GivenArray& array =
        all.inputs.emplace_back(given_inputs[i], label, is_donated ? GivenArray::Use::write : use);
    const Type type = array.fit(inputs_.ports[i], label);
    const bool stays = is_donated || use == GivenArray::Use::watch;
    all.from.push_back(stays ? array.place(type, label) : array.elements(type));
  }

  const size_t count = outputs_.ports.size();
  const std::vector<py::handle> given_outputs =
      out.is_none() ? std::vector<py::handle>(count, py::none()) : arranged(outputs_, out);
  all.outputs.reserve(count);
  all.to.reserve(count);
  all.results = py::tuple(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& label = outputs_.labels[i];
    const std::optional<uint32_t> donor = code.donors()[i];
    if (!given_outputs[i].is_none()) {
      const GivenArray& array =
          all.outputs.emplace_back(given_outputs[i], label, GivenArray::Use::write);
      all.to.push_back(array.place(array.fit(outputs_.ports[i], label), label));
      all.results[i] = py::reinterpret_borrow<py::object>(given_outputs[i]);
    } else if (donor && !donated.empty() && donated[*donor]) {
      all.to.push_back(const_cast<void*>(all.from[*donor]));  // it is writable
      all.results[i] = py::reinterpret_borrow<py::object>(given_inputs[*donor]);
    } else {
      NewArray made = new_array(outputs_.ports[i].type, output_memory_);
      all.to.push_back(made.data);
      all.results[i] = std::move(made.array);
    }
  }
  return all;
}

py::tuple Core::run(py::handle inputs, py::handle out, py::handle donate,
                    std::optional<uint64_t> stream) const {
  const std::vector<py::handle> order =
      gpu_ == nullptr ? std::vector<py::handle>() : arranged(inputs_, inputs);
  if (std::ranges::any_of(order, is_on_gpu)) {
    return run_on_gpu(order, out, given_up(gpu_->donors(), donate), stream.value_or(0));
  }
  if (stream)
    raise(usage_error("stream is for inputs in memory of a GPU that the model was loaded for"));
  const Executable* const code = model_->single();
  if (code == nullptr) {
    if (!donate.is_none() && donate.ptr() != Py_False) fixed("donate");
    return run_open(inputs, out);
  }
  const RunArrays arrays = arrays_of(*code, GivenArray::Use::read, inputs, out, donate);
  take(without_gil([&] { return code->run(arrays.from, arrays.to); }));
  return arrays.results;
}

py::tuple Core::run_on_gpu(const std::vector<py::handle>& inputs, py::handle out,
                           const std::vector<bool>& donated, uint64_t stream) const {
  constexpr uint64_t kDefaultStream = 1;  // DLPack's number of the one whose handle is 0
  const auto number = static_cast<int64_t>(stream == 0 ? kDefaultStream : stream);
  const int device = gpu_->device()->number();
  const std::vector<py::handle> given_out =
      out.is_none() ? std::vector<py::handle>(outputs_.ports.size(), py::none())
                    : arranged(outputs_, out);
  std::vector<GivenArray> lent;
  std::vector<cuda::Address> from, to;
  lent.reserve(inputs.size() + given_out.size());
  const auto borrow = [&](py::handle array, const Port& port, const std::string& label,
                          GivenArray::Use use) {
    const GivenArray& given =
        lent.emplace_back(borrow_dlpack_on_gpu(array, label, device, number), label, use);
    const Type type = given.fit(port, label);
    return reinterpret_cast<cuda::Address>(given.place(type, label));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_donated = !donated.empty() && donated[i];
    from.push_back(borrow(inputs[i], inputs_.ports[i], inputs_.labels[i],
                          is_donated ? GivenArray::Use::write : GivenArray::Use::read));
  }
  py::tuple results(outputs_.ports.size());
  const auto handle = reinterpret_cast<cuda::Stream>(stream == kDefaultStream ? 0 : stream);
  for (size_t i = 0; i < outputs_.ports.size(); ++i) {
    const std::optional<uint32_t> donor = gpu_->donors()[i];
    if (!given_out[i].is_none()) {
      to.push_back(
          borrow(given_out[i], outputs_.ports[i], outputs_.labels[i], GivenArray::Use::write));
      results[i] = py::reinterpret_borrow<py::object>(given_out[i]);
    } else if (donor && !donated.empty() && donated[*donor]) {
      to.push_back(from[*donor]);
      results[i] = py::reinterpret_borrow<py::object>(inputs[*donor]);
    } else {
      GpuArray made = take(GpuArray::make(*gpu_memory_, device, outputs_.ports[i].type, handle));
      to.push_back(made.address());
      results[i] = py::cast(std::move(made));
    }
  }
  take(without_gil(
      [&] { return gpu_->run_on_device(from, to, reinterpret_cast<cuda::Stream>(stream)); }));
  return results;
}

std::unique_ptr<Binding> Core::bind(py::handle inputs, py::handle out, py::handle donate) const {
  return std::make_unique<Binding>(
      model_, arrays_of(fixed("bind"), GivenArray::Use::watch, inputs, out, donate));
}

void Binding::run() {
  if (is_running_)
    raise(usage_error("another thread is running this binding")
              .with_hint("each thread binds arrays of its own"));
  struct Mark {
    explicit Mark(bool& it) : is_set(it) { is_set = true; }
    ~Mark() { is_set = false; }
    bool& is_set;
  };
  const Mark mark(is_running_);
  take(without_gil([&] { return model_->single()->run(arrays_.from, arrays_.to); }));
}

py::tuple Core::run_open(py::handle given_inputs, py::handle out) const {
  std::vector<GivenArray> inputs = given(inputs_, given_inputs, GivenArray::Use::read);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type type = inputs[i].fit(inputs_.ports[i], inputs_.labels[i]);
    tensors.push_back(tensor_of(std::move(inputs[i]), type));
  }
  std::vector<Tensor> computed = take(without_gil([&] { return model_->run(tensors); }));

  const std::vector<py::handle> order = out.is_none()
                                            ? std::vector<py::handle>(computed.size(), py::none())
                                            : arranged(outputs_, out);
  write_to(order, computed);
  py::tuple results(computed.size());
  for (size_t i = 0; i < order.size(); ++i)
    results[i] = order[i].is_none() ? array_of(std::move(computed[i]))
                                    : py::reinterpret_borrow<py::object>(order[i]);
  return results;
}

// Nothing is written before all is known to fit. A model may return an input as it is, in the
// memory of its array; what lies where outputs are written to is copied before.
void Core::write_to(const std::vector<py::handle>& out, std::span<Tensor> computed) const {
  std::vector<GivenArray> written;
  written.reserve(out.size());
  std::vector<std::span<std::byte>> places(out.size());  // empty: the output is made
  for (size_t i = 0; i < computed.size(); ++i) {
    if (out[i].is_none()) continue;
    const std::string& label = outputs_.labels[i];
    const GivenArray& array = written.emplace_back(out[i], label, GivenArray::Use::write);
    const Type type = array.fit({outputs_.ports[i].name, computed[i].type()}, label);
    places[i] = {array.place(type, label), static_cast<size_t>(type.static_bytes())};
    for (size_t k = 0; k < i; ++k)
      if (overlap(places[i], places[k]))
        raise(bad_input("{} overlaps {}", label, outputs_.labels[k]));
  }
  for (Tensor& tensor : computed)
    for (const std::span<std::byte> place : places)
      if (overlap(place, tensor.bytes())) tensor = Tensor::copy_of(tensor.type(), tensor.bytes());
  for (size_t i = 0; i < places.size(); ++i)
    if (!places[i].empty()) std::ranges::copy(computed[i].bytes(), places[i].begin());
}

void define_core(py::module_& module) {
  define_arrays();
  define_gpu_arrays(module);
  py::class_<Core, std::shared_ptr<Core>>(module, "Core", py::module_local())
      .def_property_readonly("inputs", &Core::inputs)
      .def_property_readonly("outputs", &Core::outputs)
      .def_property_readonly("donors", &Core::donors)
      .def("run", &Core::run, py::arg("inputs"), py::arg("out") = py::none(),
           py::arg("donate") = py::none(), py::arg("stream") = py::none())
      .def("bind", &Core::bind, py::arg("inputs"), py::arg("out") = py::none(),
           py::arg("donate") = py::none());
  py::class_<Binding>(module, "Binding", py::module_local())
      .def_property_readonly("results", &Binding::results)
      .def("run", &Binding::run);
}

}  // namespace hone::python
