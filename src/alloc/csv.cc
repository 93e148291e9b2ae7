#include "alloc/csv.h"

#include <algorithm>
#include <unordered_map>

#include "alloc/problem_fault.h"
#include "base/checked_math.h"
#include "base/text.h"

namespace hone {
namespace {

// The last moment instead of the one behind it.
constexpr std::string_view kInclusiveEnd = "end";

// Spreadsheets write this before UTF-8 text.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct ColumnName {
  std::string_view name;
  MemoryColumn column;
};
// The first name of each column is what errors say if it is missing.
constexpr ColumnName kNames[] = {
    {"id", MemoryColumn::id},         {"buffer", MemoryColumn::id},
    {"buffer_id", MemoryColumn::id},  {"lower", MemoryColumn::lower},
    {"begin", MemoryColumn::lower},   {"start", MemoryColumn::lower},
    {"upper", MemoryColumn::upper},   {kInclusiveEnd, MemoryColumn::upper},
    {"size", MemoryColumn::size},     {"alignment", MemoryColumn::alignment},
    {"hint", MemoryColumn::hint},     {"gaps", MemoryColumn::gaps},
    {"offset", MemoryColumn::offset}, {"alias", MemoryColumn::alias},
    {"space", MemoryColumn::space},
};

MemoryColumn column_of(MemoryField field) {
  switch (field) {
    case MemoryField::life: return MemoryColumn::upper;
    case MemoryField::size: return MemoryColumn::size;
    case MemoryField::alignment: return MemoryColumn::alignment;
    case MemoryField::offset: return MemoryColumn::offset;
    case MemoryField::gaps: return MemoryColumn::gaps;
    case MemoryField::alias: return MemoryColumn::alias;
    case MemoryField::space: return MemoryColumn::space;
  }
  return MemoryColumn::id;
}

// "FILE:LINE:COLUMN" of a field, blanks before it not counted in.
std::string place_of(const MemoryCsv& csv, const MemoryCsv::Row& row, size_t field) {
  const std::vector<std::string_view> texts = split(row.text, ',');
  const std::string_view text = texts[std::min(field, texts.size() - 1)];
  const size_t blanks = std::min(text.find_first_not_of(" \t"), text.size());
  return fmt::format("{}:{}:{}", csv.name, row.line, text.data() - row.text.data() + blanks + 1);
}

Error about_buffer(const MemoryCsv& csv, size_t buffer, MemoryColumn column, Error error) {
  return std::move(error)
      .about(fmt::format("buffer '{}'", excerpt(csv.ids[buffer])))
      .at(place_of(csv, csv.rows[buffer], csv.field(column).value_or(0)));
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    csv_.name = name;
    csv_.text = std::make_shared<const std::string>(text);
  }

  Result<MemoryCsv> parse() {
    int64_t line = 0;
    for (std::string_view text : split_lines(*csv_.text)) {
      ++line;
      text = text.substr(0, text.find_last_not_of(" \t\r") + 1);  // npos + 1 is 0
      if (text.empty()) continue;
      row_ = {line, text};
      fields_ = split(text, ',');
      for (std::string_view& field : fields_) field = trim(field);
      HONE_TRY(csv_.header.line == 0 ? read_header() : read_row());
    }
    if (csv_.header.line == 0)
      return bad_input("there is no header, such as id,lower,upper,size")
          .at(fmt::format("{}:1:1", csv_.name));
    HONE_TRY(find_aliases());
    if (std::optional<ProblemFault> fault = fault_of(csv_.problem))
      return about_buffer(csv_, fault->buffer, column_of(fault->field), std::move(fault->error));
    return std::move(csv_);
  }

 private:
  Error at_field(size_t field, Error error) const {
    return std::move(error).at(place_of(csv_, row_, field));
  }
  Error at_column(MemoryColumn column, Error error) const {
    const size_t field = *csv_.field(column);
    return at_field(field, std::move(error).about(columns_[field]));
  }

  // ---- The header

  Status read_header() {
    csv_.header = row_;
    columns_ = fields_;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto* const known = std::ranges::find(kNames, columns_[i], &ColumnName::name);
      if (known == std::end(kNames)) return at_field(i, unknown(columns_[i]));
      std::optional<size_t>& field = csv_.fields[static_cast<size_t>(known->column)];
      if (field)
        return at_field(
            i, bad_input("the columns '{}' and '{}' say the same", columns_[*field], columns_[i]));
      field = i;
      if (known->name == kInclusiveEnd) behind_end_ = 1;
    }
    for (MemoryColumn needed :
         {MemoryColumn::id, MemoryColumn::lower, MemoryColumn::upper, MemoryColumn::size})
      if (!csv_.field(needed))
        return at_field(0, bad_input("there is no column '{}'",
                                     std::ranges::find(kNames, needed, &ColumnName::column)->name));
    return {};
  }

  static Error unknown(std::string_view column) {
    std::vector<std::string_view> names;
    for (const ColumnName& each : kNames) names.push_back(each.name);
    const std::string hint = did_you_mean(column, names);
    return bad_input("there is no column '{}'", excerpt(column))
        .with_hint(hint.empty() ? fmt::format("there are {}", join(names, ", ")) : hint);
  }

  // ---- Rows

  Status read_row() {
    if (static_cast<int64_t>(csv_.rows.size()) == kMaxMemoryCsvRows)
      return at_field(0, over_limit("more than {} rows", kMaxMemoryCsvRows));
    if (fields_.size() != columns_.size())
      return at_field(
          std::min(fields_.size(), columns_.size()),
          bad_input("{} fields, but the header has {}", fields_.size(), columns_.size()));
    HONE_TRY(read_id());
    MemoryBuffer buffer;
    buffer.begin = HONE_TRY(number(MemoryColumn::lower, 0));
    buffer.end = HONE_TRY(number(MemoryColumn::upper, 0));
    if (!behind(buffer.end))
      return at_column(MemoryColumn::upper, bad_input("{} is too large", buffer.end));
    if (buffer.end < buffer.begin)
      return at_column(MemoryColumn::upper, bad_input("{} is before the begin, {}",
                                                      buffer.end - behind_end_, buffer.begin));
    buffer.size = HONE_TRY(number(MemoryColumn::size, 0));
    buffer.alignment = HONE_TRY(number_or(1, MemoryColumn::alignment, 1));
    HONE_TRY(number_or(-1, MemoryColumn::hint, -1));
    const int64_t offset = HONE_TRY(number_or(-1, MemoryColumn::offset, -1));
    if (offset >= 0) buffer.offset = offset;
    const int64_t space = HONE_TRY(number_or(0, MemoryColumn::space, 0));
    if (space >= kMaxMemorySpaces)
      return at_column(MemoryColumn::space,
                       bad_input("{} is above {}", space, kMaxMemorySpaces - 1));
    buffer.space = static_cast<uint32_t>(space);
    if (is_said(MemoryColumn::gaps)) HONE_TRY(read_gaps(buffer));
    csv_.rows.push_back(row_);
    csv_.problem.buffers.push_back(std::move(buffer));
    return {};
  }

  std::string_view text_of(MemoryColumn column) const { return fields_[*csv_.field(column)]; }
  bool is_said(MemoryColumn column) const { return csv_.field(column) && !text_of(column).empty(); }

  Result<int64_t> number(MemoryColumn column, int64_t least) const {
    Result<int64_t> value = parse_int(text_of(column));
    if (!value.ok()) return at_column(column, std::move(value).error());
    if (*value < least)
      return at_column(column, *value < 0 ? bad_input("{} is negative", *value)
                                          : bad_input("{} is below {}", *value, least));
    return value;
  }

  Result<int64_t> number_or(int64_t fallback, MemoryColumn column, int64_t least) const {
    if (!is_said(column)) return fallback;
    return number(column, least);
  }

  // From the end as it is written to the moment behind it.
  bool behind(int64_t& end) const {
    const std::optional<int64_t> moment = checked_add(end, behind_end_);
    end = moment.value_or(end);
    return moment.has_value();
  }

  Status read_id() {
    const std::string_view id = text_of(MemoryColumn::id);
    if (id.empty()) return at_column(MemoryColumn::id, bad_input("it is empty"));
    const auto [other, is_new] =
        buffers_.emplace(id, static_cast<uint32_t>(csv_.problem.buffers.size()));
    if (!is_new)
      return at_column(MemoryColumn::id, bad_input("'{}' is the one of line {}, too", excerpt(id),
                                                   csv_.rows[other->second].line));
    csv_.ids.push_back(id);
    return {};
  }

  Status read_gaps(MemoryBuffer& buffer) {
    for (std::string_view word : split_words(text_of(MemoryColumn::gaps))) {
      const std::optional<MemoryGap> gap = gap_from(word);
      if (!gap)
        return at_column(
            MemoryColumn::gaps,
            bad_input("'{}' has not the form LOWER-{} or LOWER-{}@FROM:TO", excerpt(word),
                      behind_end_ ? "END" : "UPPER", behind_end_ ? "END" : "UPPER"));
      buffer.gaps.push_back(*gap);
    }
    std::ranges::sort(buffer.gaps, {},
                      [](const MemoryGap& gap) { return std::pair(gap.begin, gap.end); });
    return {};
  }

  std::optional<MemoryGap> gap_from(std::string_view word) const {
    MemoryGap gap;
    const size_t sign = std::min(word.find('@'), word.size());
    if (!pair_from(word.substr(0, sign), '-', gap.begin, gap.end) || !behind(gap.end)) return {};
    if (sign < word.size() && !pair_from(word.substr(sign + 1), ':', gap.low, gap.high)) return {};
    return gap;
  }

  static bool pair_from(std::string_view text, char between, int64_t& first, int64_t& second) {
    const size_t sign = text.find(between);
    if (sign == std::string_view::npos) return false;
    const Result<int64_t> left = parse_int(text.substr(0, sign));
    const Result<int64_t> right = parse_int(text.substr(sign + 1));
    if (!left.ok() || !right.ok() || *left < 0 || *right < 0) return false;
    first = *left;
    second = *right;
    return true;
  }

  // ---- Aliases, which may be of later rows

  Status find_aliases() {
    if (!csv_.field(MemoryColumn::alias)) return {};
    for (size_t i = 0; i < csv_.rows.size(); ++i) {
      row_ = csv_.rows[i];
      const std::string_view text = trim(split(row_.text, ',')[*csv_.field(MemoryColumn::alias)]);
      if (!text.empty()) csv_.problem.buffers[i].alias = HONE_TRY(alias_from(text));
    }
    return {};
  }

  // An id may have a sign in it: then the whole is looked for first.
  Result<MemoryAlias> alias_from(std::string_view text) const {
    if (const auto found = buffers_.find(text); found != buffers_.end())
      return MemoryAlias{found->second, 0};
    const size_t sign = std::min(text.rfind('+'), text.size());
    const std::string_view id = trim(text.substr(0, sign));
    const auto found = buffers_.find(id);
    if (found == buffers_.end())
      return at_column(MemoryColumn::alias, bad_input("no buffer has the id '{}'", excerpt(id)));
    if (sign == text.size()) return MemoryAlias{found->second, 0};
    Result<int64_t> shift = parse_int(trim(text.substr(sign + 1)));
    if (!shift.ok()) return at_column(MemoryColumn::alias, std::move(shift).error());
    return MemoryAlias{found->second, *shift};
  }

  MemoryCsv csv_;
  std::vector<std::string_view> columns_;  // by field, as the header names them
  int64_t behind_end_ = 0;                 // what turns ends into the moments behind them
  std::unordered_map<std::string_view, uint32_t> buffers_;  // by id

  MemoryCsv::Row row_;
  std::vector<std::string_view> fields_;  // of it, trimmed
};

}  // namespace

Result<MemoryCsv> parse_memory_csv(std::string_view text, std::string_view name) {
  if (static_cast<int64_t>(text.size()) > kMaxMemoryCsvBytes)
    return over_limit("{} has {} bytes, above the limit of {}", name, text.size(),
                      kMaxMemoryCsvBytes);
  return Parser(text, name).parse();
}

Status check_each_alone(const MemoryCsv& csv) {
  for (size_t i = 0; i < csv.problem.buffers.size(); ++i) {
    const MemoryBuffer& buffer = csv.problem.buffers[i];
    const int64_t capacity = csv.problem.capacity_of(buffer.space);
    if (buffer.size > capacity)
      return about_buffer(csv, i, MemoryColumn::size,
                          check_failed("size {} is above the capacity {}", buffer.size, capacity));
    if (!buffer.offset) continue;
    if (*buffer.offset > capacity - buffer.size)
      return about_buffer(csv, i, MemoryColumn::offset,
                          check_failed("{} bytes at offset {} end above the capacity {}",
                                       buffer.size, *buffer.offset, capacity));
    if (*buffer.offset % buffer.alignment != 0)
      return about_buffer(csv, i, MemoryColumn::offset,
                          bad_input("offset {} is not a multiple of the alignment {}",
                                    *buffer.offset, buffer.alignment));
  }
  return {};
}

std::string print_memory_csv(const MemoryCsv& csv, std::span<const int64_t> offsets) {
  HONE_CHECK(offsets.size() == csv.rows.size(), "{} offsets of {} rows", offsets.size(),
             csv.rows.size());
  const std::optional<size_t> field = csv.field(MemoryColumn::offset);
  std::string text(csv.header.text);
  text += field ? "\n" : ",offset\n";
  for (size_t i = 0; i < csv.rows.size(); ++i) {
    const std::string offset = std::to_string(offsets[i]);
    if (!field) {
      text.append(csv.rows[i].text).append(",").append(offset).append("\n");
      continue;
    }
    std::vector<std::string_view> fields = split(csv.rows[i].text, ',');
    fields[*field] = offset;
    text.append(join(fields, ",")).append("\n");
  }
  return text;
}

}  // namespace hone
