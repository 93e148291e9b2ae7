#include "python/error.h"

#include <exception>
#include <new>

namespace hone::python {
namespace {

namespace py = pybind11;

void set(const Error& error) {
  const py::object made = py::module_::import("hone._errors")
                              .attr("of_code")(static_cast<int>(error.code()), error.what(),
                                               error.where(), error.hint());
  PyErr_SetObject(py::type::handle_of(made).ptr(), made.ptr());
}

}  // namespace

void raise(const Error& error) {
  set(error);
  throw py::error_already_set();
}

void translate_faults() {
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const InternalError& internal) {
      set(fault("{}", internal.what()));
    } catch (const std::bad_alloc&) {
      set(over_limit("there is not enough memory"));
    }
  });
}

}  // namespace hone::python
