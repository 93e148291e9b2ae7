#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone::bench {

// An argument of a benchmark of its own, --NAME=VALUE or, without a value, --NAME:
//
//   const bench::Flag kernels("kernels", "300"), alone("alone");
//
// The main of the benchmarks reads them before anything runs; --help is Google Benchmark's.
class Flag {
 public:
  Flag(std::string_view name, std::string fallback);
  explicit Flag(std::string_view name);
  const std::string& text() const { return text_; }
  double number() const;  // ends the process if it is none
  bool is_given() const { return is_given_; }

  // Takes "--NAME=VALUE" or "--NAME" if there is such a flag.
  static bool take(std::string_view argument);

 private:
  const std::string name_;
  const bool has_value_;
  std::string text_ = {};
  bool is_given_ = false;
};

// Rows that depend on flags: they are registered once those are read.
class Rows {
 public:
  explicit Rows(std::function<void()> add);
  static void add_all();
};

}  // namespace hone::bench
