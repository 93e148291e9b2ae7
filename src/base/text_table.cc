#include "base/text_table.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace hone {

namespace {

size_t width_of(std::string_view text) {
  // Bytes 10xxxxxx continue a code point.
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

}  // namespace

TextTable::TextTable(std::string_view alignment, std::vector<std::string> titles)
    : alignment_(alignment), titles_(std::move(titles)) {
  HONE_CHECK(!alignment_.empty() && alignment_.find_first_not_of("lr") == std::string::npos,
             "column alignment '{}'", alignment_);
  HONE_CHECK(titles_.empty() || titles_.size() == alignment_.size(), "{} titles for {} columns",
             titles_.size(), alignment_.size());
}

void TextTable::add_row(std::vector<std::string> cells) {
  HONE_CHECK(cells.size() == alignment_.size(), "{} cells for {} columns", cells.size(),
             alignment_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

std::string TextTable::to_string(std::string_view indent) const {
  std::vector<size_t> widths(alignment_.size());
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  };
  measure(titles_);
  for (const std::vector<std::string>& row : rows_) measure(row);

  std::string out;
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line(indent);
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string cell = cells.empty() ? std::string(widths[i], '-') : cells[i];
      const std::string padding(widths[i] - width_of(cell), ' ');
      line += alignment_[i] == 'r' ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  if (!titles_.empty()) print(titles_);
  for (const std::vector<std::string>& row : rows_) print(row);
  return out;
}

}  // namespace hone
