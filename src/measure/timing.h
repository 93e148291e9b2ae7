#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/progress.h"

// How long something takes: samples, what they say, and how sure that is. Whoever measures uses it;
// it prints nothing.

namespace hone {

struct Interval {
  double low = 0;
  double high = 0;
};

// How long something took each time, in order of size.
struct Timing {
  std::vector<double> seconds;

  void add(std::span<const double> more);
  double min() const { return seconds.front(); }
  double median() const;
  double quantile(double fraction) const;  // this share of the samples took at most this
};

// Where the median of what is sampled lies, with a confidence of 95 % at least and whatever its
// distribution; `sorted` are independent samples of it. None: fewer than 6 cannot tell.
std::optional<Interval> median_interval(std::span<const double> sorted);

// "" or why the figures mean little: "p90 is 1.8 x the median".
std::string noise_of(const Timing& timing);

struct MeasureOptions {
  double seconds = 1;  // to go on for; at least three runs
  int64_t warmup = 3;  // runs that do not count, before
  int64_t runs = 0;    // this many, however long they take; 0: by the time
};

// The number of times that something of `one` second fits into `seconds`, from `least` to `most`.
// A clock may have said 0 of it.
int64_t times_in(double seconds, double one, int64_t least, int64_t most);

Result<double> measure_once(const std::function<Status()>& run);  // seconds
Result<Timing> measure(const MeasureOptions& options, const CancelToken& cancel,
                       const std::function<Status()>& run);

// ---- Memory ------------------------------------------------------------------------------------

// The most memory that this process had at once since the last call of start(), in bytes; since it
// began where the system cannot tell (Linux can).
class PeakMemory {
 public:
  static void start();
  static int64_t bytes();
};

}  // namespace hone
