#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Columns for a terminal:
//
//   kernel  algorithm     time
//   k0      gemm       12.3 ms
//   k1      direct      1.2 ms
class TextTable {
 public:
  // One letter per column, 'l' or 'r' (left or right); as many titles, or none for no heading.
  explicit TextTable(std::string_view alignment, std::vector<std::string> titles = {});

  // As many cells as columns.
  void add_row(std::vector<std::string> cells);
  // A line of dashes.
  void add_rule();

  bool empty() const { return rows_.empty(); }

  // Each line ends with "\n" and has no blanks at its end; columns are two blanks apart. Width
  // counts code points of UTF-8.
  std::string to_string(std::string_view indent = "") const;

 private:
  std::string alignment_;
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;  // A row without cells is a rule.
};

}  // namespace hone
