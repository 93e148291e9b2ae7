#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "cost/cost.h"
#include "search/search.h"
#include "target/target.h"

// Prices and searches that are written in Python. hone calls them from threads of its own.

namespace hone::python {

// An object that threads without the GIL may have, and let go.
using Held = std::shared_ptr<const pybind11::object>;
Held hold(pybind11::handle object);

// The cost of an object that has a method price(kernel, schedules, threads); with copy(bytes) and
// command(), or those of the analytic price. Its answers may change, so plans that it chose are not
// kept.
std::shared_ptr<const Cost> cost_of(Held object, const Target& target);
// The search of an object that has a method look(run).
std::shared_ptr<const Search> search_of(Held object);

// Registers Kernel, Schedule and SearchRun.
void define_cost(pybind11::module_& module);

}  // namespace hone::python
