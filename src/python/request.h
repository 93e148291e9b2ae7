#pragma once

#include <pybind11/pybind11.h>

#include "session/native.h"
#include "session/source.h"

// The request of Python for a model and how to compile it: the keyword arguments of hone.compile
// and hone.tune, which python/hone/_compile.py has checked for their names.

namespace hone::python {

struct Request {
  Source source;
  NativeOptions options;
};

// "source": a path, bytes, or a Graph; "sizes": {symbol: number}; "shapes": {input: sizes};
// "threads", "plan" (text), "isa", "cache" (a folder), "log" (a file that is there, whose best
// plans count), "cost" (an object with a method price). All but the source may be none. Takes what
// needs the GIL; the function that it returns is called without.
std::function<Result<Request>(const Face&)> request_of(const pybind11::dict& given);
// The options alone, without the plan and the log's plans: the planner's own choice.
std::function<Result<NativeOptions>(const Face&)> plain_options_of(const pybind11::dict& given);

}  // namespace hone::python
