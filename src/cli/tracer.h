#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "report/trace.h"
#include "session/native.h"

// --trace FILE: what a command did and when.

namespace hone::cli {

class Arguments;
class Console;

// Without --trace, nothing is noted and nothing is written.
class Tracer {
 public:
  static Status check(const Arguments& arguments);  // whether the file can be written
  explicit Tracer(const Arguments& arguments);
  Tracer(const Tracer&) = delete;

  bool is_wanted() const { return !path_.empty(); }
  // Notes the stages of compilations and their kernels. It outlives the options.
  void watch(NativeOptions& options);
  // Notes work as an event of the command.
  template <class Work>
  auto timed(std::string_view name, const Work& work) {
    const SpanClock clock;
    auto result = work();
    if (is_wanted()) trace_.add({"command", std::string(name)}, clock.span());
    return result;
  }
  RunTrace& runs() { return runs_; }
  Trace& trace() { return trace_; }

  Status write(Console& console) const;

 private:
  const std::string path_;
  const std::string process_;
  Trace trace_;
  RunTrace runs_;
};

}  // namespace hone::cli
