#pragma once

#include <string>
#include <string_view>

namespace hone::bench {

// An argument of a benchmark of its own, --NAME=VALUE:
//
//   const bench::Flag kernels("kernels", "300");
//
// The main of the benchmarks reads them before anything runs; --help is Google Benchmark's.
class Flag {
 public:
  Flag(std::string_view name, std::string fallback);
  const std::string& text() const { return text_; }
  double number() const;  // ends the process if it is none

  // Takes "--NAME=VALUE" if there is such a flag.
  static bool take(std::string_view argument);

 private:
  const std::string name_;
  std::string text_;
};

}  // namespace hone::bench
