#include "transport/link_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hone {
namespace {

// The sums of the normal equations of T = a + b k, where each equation is divided by its T.
struct Sums {
  double x = 0, y = 0;            // of 1/T and k/T
  double xx = 0, xy = 0, yy = 0;  // of their products
};

Sums sums_of(std::span<const MessageTime> times) {
  Sums sums;
  for (const MessageTime& each : times) {
    const double x = 1 / each.seconds, y = static_cast<double>(each.bytes) / each.seconds;
    sums.x += x, sums.y += y;
    sums.xx += x * x, sums.xy += x * y, sums.yy += y * y;
  }
  return sums;
}

Status check(std::span<const MessageTime> times) {
  bool differ = false;
  for (const MessageTime& each : times) {
    if (!(each.seconds > 0) || !std::isfinite(each.seconds) || each.bytes < 0)
      return bad_input("a message of {} bytes in {} s", each.bytes, each.seconds);
    differ = differ || each.bytes != times[0].bytes;
  }
  if (!differ) return bad_input("a line needs messages of two sizes");
  return {};
}

void add_errors(LinkFit& fit, std::span<const MessageTime> times) {
  std::vector<double> errors;
  for (const MessageTime& each : times) {
    const double error = std::abs(fit.seconds(each.bytes) - each.seconds) / each.seconds;
    errors.push_back(error);
    if (error < fit.worst_error) continue;
    fit.worst_error = error;
    fit.worst_bytes = each.bytes;
  }
  std::ranges::sort(errors);
  fit.median_error = errors[errors.size() / 2];
}

}  // namespace

Result<LinkFit> fit_link(std::span<const MessageTime> times) {
  HONE_TRY(check(times));
  const Sums sums = sums_of(times);
  const double determinant = sums.xx * sums.yy - sums.xy * sums.xy;
  double latency = (sums.x * sums.yy - sums.y * sums.xy) / determinant;
  double per_byte = (sums.y * sums.xx - sums.x * sums.xy) / determinant;
  // The best line of those that a link can have lies on the border then.
  if (!(latency >= 0)) {
    latency = 0;
    per_byte = sums.y / sums.yy;
  } else if (!(per_byte > 0)) {
    latency = sums.x / sums.xx;
    per_byte = std::numeric_limits<double>::min();
  }
  LinkFit fit = {.latency = latency, .bytes_per_second = 1 / per_byte};
  add_errors(fit, times);
  return fit;
}

}  // namespace hone
