#pragma once

#include <pybind11/pybind11.h>

namespace hone::python {

// Language models: python/hone/_language.py has the class that users see.
void define_language(pybind11::module_& module);

}  // namespace hone::python
