#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

// The words, numbers and units that the texts of machines consist of: one field a line, and #
// before a comment.

namespace hone {

// ---- Units -------------------------------------------------------------------------------------

struct Unit {
  std::string_view name;
  int exponent;  // of ten
};
inline constexpr Unit kBandwidths[] = {
    {"GB/s", 9}, {"B/s", 0}, {"kB/s", 3}, {"MB/s", 6}, {"TB/s", 12}};
inline constexpr Unit kOperations[] = {
    {"Gop/s", 9}, {"op/s", 0}, {"kop/s", 3}, {"Mop/s", 6}, {"Top/s", 12}};
inline constexpr Unit kSeconds[] = {{"us", -6}, {"ns", -9}, {"ms", -3}, {"s", 0}};

// The value in the unit's spelling. Reading it gives exactly the same value.
std::string with_unit(double value, const Unit& unit);
// "24 GiB"; the largest unit of which there is a whole number.
std::string bytes_text(int64_t bytes);

// ---- Reading -----------------------------------------------------------------------------------

// Words, quoted strings, = + , { } and ends of lines.
class FieldReader {
 public:
  // `file` is for error texts, "file:line:column".
  FieldReader(std::string_view text, std::string_view file) : text_(text), file_(file) { next(); }

  std::string_view peek() const { return word_; }  // "\n": the line ends; empty: the text does
  size_t offset() const { return offset_; }
  std::string_view take() {
    const std::string_view word = word_;
    next();
    return word;
  }

  void skip_empty_lines();
  Status end_of_line();
  Status expect(std::string_view word);
  Error expected(std::string_view what) const;
  // The error, at this place of the text.
  Error at(size_t offset, Error error) const;

  Result<std::string> string(std::string_view what);  // in quotes
  Result<std::string> plain_name(std::string_view what);
  Result<int64_t> integer(int64_t least, int64_t most);
  Result<int64_t> bytes(int64_t most);
  // A number with a unit.
  Result<double> quantity(std::span<const Unit> units, double least, double most);

 private:
  void next();
  size_t end_of_word() const;
  size_t end_of_string() const;  // one that is not closed ends with its line

  std::string_view text_;
  std::string_view file_;
  size_t at_ = 0;      // behind the word
  size_t offset_ = 0;  // of the word
  std::string_view word_;
};

// "'x' is not a known level", with the names that are.
template <class T, size_t n>
Error unknown_name(std::string_view what, std::string_view word, std::span<const T, n> all) {
  std::vector<std::string_view> names;
  for (const T& each : all) names.push_back(name(each));
  return bad_input("'{}' is not a known {}", excerpt(word), what)
      .with_hint(fmt::format("the known ones are {}", join(names, ", ")));
}

}  // namespace hone
