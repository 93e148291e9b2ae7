#include "cost/votes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace hone {
namespace {

double voice(const Votes& votes, size_t at) {
  return votes.seconds.size() == 1 ? votes.seconds[0] : votes.seconds[at];
}

}  // namespace

double deviations_for(double sureness) {
  HONE_CHECK(sureness >= 0.5 && sureness < 1, "a probability of {}", sureness);
  double low = 0, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > 1 - sureness ? low : high) = middle;
  }
  return high;
}

void Votes::add(const Votes& part, double times) {
  const size_t count = std::max({seconds.size(), part.seconds.size(), size_t{1}});
  if (seconds.empty()) seconds.resize(count);
  if (seconds.size() < count) seconds.resize(count, seconds[0]);
  for (size_t i = 0; i < count; ++i) seconds[i] += times * voice(part, i);
  variance += times * times * part.variance;
}

Gain gain_of(const Votes& other, const Votes& usual) {
  const size_t count = std::max(other.seconds.size(), usual.seconds.size());
  double sum = 0, squares = 0, least = INFINITY;
  for (size_t i = 0; i < count; ++i) {
    const double gain = std::log(voice(usual, i) / voice(other, i));
    sum += gain;
    squares += gain * gain;
    least = std::min({least, voice(usual, i), voice(other, i)});
  }
  const auto voices = static_cast<double>(count);
  const double mean = sum / voices;
  const double spread =
      count < 2 ? 0 : std::max(squares - voices * mean * mean, 0.0) / (voices - 1);
  const double unknown = (other.variance + usual.variance) / (least * least);
  return {mean, std::sqrt(spread + unknown)};
}

}  // namespace hone
