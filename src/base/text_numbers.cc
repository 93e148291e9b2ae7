#include "base/text.h"

#include <array>
#include <cmath>

namespace hone {

namespace {

// Divides by the step until the quotient prints as less than one step, and appends the unit.
std::string scaled(double value, double step, std::span<const std::string_view> units) {
  size_t unit = 0;
  // 0.05 is half of the last digit that is printed.
  while (std::abs(value) >= step - 0.05 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  const bool whole = unit == 0 && value == std::floor(value);
  const std::string number = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
  return units[unit].empty() ? number : fmt::format("{} {}", number, units[unit]);
}

// Three digits: 1.23, 12.3, 123. Needs 0 <= value < 999.5.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string format_count(double count) {
  static constexpr std::string_view units[] = {"", "k", "M", "G", "T", "P", "E"};
  if (!(std::abs(count) < 1e21)) return format_double(count);
  return scaled(count, 1000, units);
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes), 1024, units);
}

std::string format_seconds(double seconds) {
  if (seconds < 0) return "-" + format_seconds(-seconds);
  if (!(seconds < 1e14)) return format_double(seconds) + " s";
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " us";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  const int64_t whole = std::llround(seconds);
  const int64_t minutes = whole / 60;
  const int64_t hours = minutes / 60;
  if (hours == 0) return fmt::format("{}m{:02}s", minutes, whole % 60);
  if (hours < 24) return fmt::format("{}h{:02}m", hours, minutes % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

// fmt prints the shortest digits that round-trip; only the sign of a NaN is dropped here.
std::string format_double(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string format_float(float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace hone
