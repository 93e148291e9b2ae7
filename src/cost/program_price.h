#pragma once

#include <vector>

#include "cost/cost.h"
#include "program/program.h"

namespace hone {

// The time of one run of a program, in seconds.
struct ProgramPrice {
  double launches = 0;
  double copies = 0;
  double commands = 0;         // beginning them
  std::vector<double> kernel;  // by KernelId: one launch

  double total() const { return launches + copies + commands; }
};

// Commands run one after another. The dearer one of two branches counts; a while loop, of which
// nobody knows how often it runs, counts kAssumedTrips times. Symbols without a value count as
// their largest. An error: nobody knows what a kernel was built from, as in a program that was read
// from text.
inline constexpr double kAssumedTrips = 8;
Result<ProgramPrice> price(const Program& program, const Cost& cost, const Bindings& sizes = {});

}  // namespace hone
