#pragma once

#include <pybind11/pybind11.h>

namespace hone::python {

// The page of `hone report` about a model.
void define_report(pybind11::module_& module);

}  // namespace hone::python
