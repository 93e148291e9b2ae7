#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/votes.h"
#include "kernel/facts.h"
#include "kernel/schedule.h"

namespace hone {

class LearnedCost;

// A part of a price, such as the time that memory takes. Parts may overlap: the price is at most
// their sum.
struct PriceTerm {
  std::string_view name;  // one word
  double seconds = 0;
};

// A kernel that a Cost has looked at once, to price schedules of it. For one thread at a time.
class PricedKernel {
 public:
  virtual ~PricedKernel() = default;
  // Seconds of one launch under each of the schedules, which check_schedule() accepts. A price at
  // or above the limit may be any number that is not below it: nobody will choose it.
  virtual void price(std::span<const Schedule> schedules, double limit,
                     std::span<double> seconds) = 0;
  // The terms of the price of one launch, for people. Empty: the price has no parts, as one that
  // was measured.
  virtual std::vector<PriceTerm> terms(const Schedule& /*schedule*/) { return {}; }
  // The source of the schedule's price, a word for people.
  virtual std::string_view source(const Schedule& /*schedule*/) { return "analytic"; }
  // The number of candidates that are worth measuring, the cheapest first. Then the best of them is
  // hardly ever slower than the best of all by more than noise. If no number that the price knows
  // is enough, it is the largest of these; none: it knows nothing.
  virtual std::optional<int64_t> worth_measuring() const { return std::nullopt; }
  // True if a schedule takes the place of the one that Cost::baseline() has chosen: it is cheaper,
  // and that is sure enough.
  virtual bool is_surely_cheaper(const Schedule& /*other*/, const Schedule& /*usual*/) {
    return false;
  }
  // The part of what the price says of the kernel that Cost::baseline() does not say. Without
  // choices the planner does not search for a schedule.
  enum class Knows : uint8_t {
    nothing,  // its price is that of the baseline
    price,    // is_surely_cheaper() is true of no schedule
    choices,
  };
  virtual Knows knows() const { return Knows::choices; }
  // The cost of a launch by each voice of the price.
  virtual Votes votes(const Schedule& schedule) { return {.seconds = {seconds(schedule)}}; }

  double seconds(const Schedule& schedule, double limit = std::numeric_limits<double>::infinity()) {
    double result = 0;
    price({&schedule, 1}, limit, {&result, 1});
    return result;
  }
};

// A price for the parts that programs are made of, in seconds. The planner chooses by it, and
// price() (program_price.h) makes that of a Program from it. AnalyticCost (analytic.h) is the one
// that needs no measurement.
class Cost {
 public:
  virtual ~Cost() = default;
  // Names the answers: equal versions give equal answers, so what was chosen by them may be kept.
  // Empty: answers may change, and nothing is kept.
  virtual std::string version() const = 0;
  // `threads` is the most that a launch runs on. Symbols count as their largest values.
  virtual std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                               int64_t threads) const = 0;
  virtual double copy(double bytes) const = 0;
  // Beginning a command, whatever it does.
  virtual double command() const = 0;

  // For people: what priced a plan, and the learned price in it; null: there is none.
  std::string name() const { return version().empty() ? "times of the log" : version(); }
  virtual const LearnedCost* learned() const { return nullptr; }

  // A Cost that may be wrong names another one, whose choices stay where its own are not surely
  // cheaper.
  virtual const Cost* baseline() const { return nullptr; }
  // With a baseline: how probable it has to be that groups and chains of its own are
  // cheaper, by votes(). None: it is trusted with schedules alone.
  virtual std::optional<double> sureness() const { return std::nullopt; }

  // One launch of a kernel that is priced once.
  double launch(const KernelBody& body, const Schedule& schedule, int64_t threads) const {
    return kernel(std::make_shared<KernelFacts>(body), threads)->seconds(schedule);
  }
};

}  // namespace hone
