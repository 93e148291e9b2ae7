#pragma once

#include <pybind11/pybind11.h>

#include "session/devices.h"
#include "session/native.h"
#include "session/source.h"

// The request of Python for a model and how to compile it: the keyword arguments of hone.compile
// and hone.tune, which python/hone/_compile.py has checked for their names.

namespace hone::python {

struct Request {
  Source source;
  NativeOptions options;
  DeviceOptions devices = {};  // no names: one device
};

// The entries: "source" is a path, bytes, or a Graph. "sizes" is {symbol: number} and "shapes"
// {input: sizes}. "threads" and "isa" choose the code, "devices" and "batch" who runs it. "donate"
// is {input: output}, "plan" a text, "cache" a folder, "log" a file that exists, whose best plans
// count. "cost" is an object with a method price. All but the source may be none. Takes what needs
// the GIL; the function that it returns is called without.
std::function<Result<Request>(const Face&)> request_of(const pybind11::dict& given);
// The options alone, without the plan and the log's plans: the planner's own choice.
std::function<Result<NativeOptions>(const Face&)> plain_options_of(const pybind11::dict& given);

}  // namespace hone::python
