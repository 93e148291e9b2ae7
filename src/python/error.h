#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "base/error.h"

// Errors of hone as exceptions of Python: python/hone/_errors.py has their classes.

namespace hone::python {

// With the GIL held.
[[noreturn]] void raise(const Error& error);

template <class T>
T take(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}
inline void take(const Status& status) {
  if (!status.ok()) raise(status.error());
}

template <class Work>
auto without_gil(const Work& work) {
  const pybind11::gil_scoped_release free;
  return work();
}

// A fault of hone, and memory that ran out, become exceptions of the module, too.
void translate_faults();

}  // namespace hone::python
