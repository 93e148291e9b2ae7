#pragma once

#include <pybind11/pybind11.h>

namespace hone::python {

// What `hone report` tells of a model, as a page.
void define_report(pybind11::module_& module);

}  // namespace hone::python
