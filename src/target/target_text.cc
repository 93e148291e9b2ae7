#include "base/checked_math.h"
#include "base/text.h"
#include "base/text_lexer.h"
#include "target/target.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace hone {
namespace {

// Powers of ten and of 1024 by their place; the first entry is 1.
constexpr std::string_view kBytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};

struct Unit {
  std::string_view name;
  int exponent;  // of ten
};
constexpr Unit kBandwidths[] = {{"GB/s", 9}, {"B/s", 0}, {"kB/s", 3}, {"MB/s", 6}, {"TB/s", 12}};
constexpr Unit kOperations[] = {
    {"Gop/s", 9}, {"op/s", 0}, {"kop/s", 3}, {"Mop/s", 6}, {"Top/s", 12}};
constexpr Unit kSeconds[] = {{"us", -6}, {"ns", -9}, {"ms", -3}, {"s", 0}};

// ---- Printing ----------------------------------------------------------------------------------

// The value in the unit's first spelling. The decimal point is moved in the shortest decimal
// representation, so that reading moves it back to exactly the same value.
std::string with_unit(double value, const Unit& unit) {
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const size_t sign = text[e + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + e + sign, end, exponent);
  const int point = value == 0 ? 1 : exponent - unit.exponent + 1;  // digits before the point
  const int count = static_cast<int>(digits.size());
  if (point < -3 || point > 15) {
    if (count > 1) digits.insert(1, ".");
    return fmt::format("{}e{} {}", digits, point - 1, unit.name);
  }
  if (point <= 0)
    digits = fmt::format("0.{:0>{}}", digits, count - point);
  else if (point >= count)
    digits.append(static_cast<size_t>(point - count), '0');
  else
    digits.insert(static_cast<size_t>(point), ".");
  return fmt::format("{} {}", digits, unit.name);
}

std::string bytes_text(int64_t bytes) {
  size_t unit = 0;
  for (; bytes % 1024 == 0 && bytes > 0 && unit + 1 < std::size(kBytes); ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kBytes[unit]);
}

// ---- Parsing -----------------------------------------------------------------------------------

// Words, quoted strings, = + , { } and ends of lines.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { next(); }

  std::string_view peek() const { return word_; }  // "\n": the line ends; empty: the text does
  size_t offset() const { return offset_; }
  std::string_view take() {
    const std::string_view word = word_;
    next();
    return word;
  }

 private:
  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    if (at_ < text_.size() && text_[at_] == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
    offset_ = at_;
    if (at_ < text_.size()) at_ = end_of_word();
    word_ = text_.substr(offset_, at_ - offset_);
  }

  size_t end_of_word() const {
    constexpr std::string_view single = "=+,{}\n";
    if (single.find(text_[at_]) != std::string_view::npos) return at_ + 1;
    if (text_[at_] == '"') return end_of_string();
    return std::min(text_.find_first_of(" \t\r\n#\"=+,{}", at_), text_.size());
  }

  // A string that is not closed ends with its line.
  size_t end_of_string() const {
    size_t at = at_ + 1;
    for (; at < text_.size() && text_[at] != '\n'; ++at) {
      if (text_[at] == '"') return at + 1;
      if (text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] != '\n') ++at;
    }
    return at;
  }

  std::string_view text_;
  size_t at_ = 0;      // behind the word
  size_t offset_ = 0;  // of the word
  std::string_view word_;
};

class TargetParser {
 public:
  TargetParser(std::string_view text, std::string_view file)
      : text_(text), file_(file), scanner_(text) {}

  Result<Target> parse() {
    skip_empty_lines();
    HONE_TRY(expect("target"));
    target_.name = HONE_TRY(string("the target's name in quotes"));
    HONE_TRY(expect("{"));
    HONE_TRY(end_of_line());
    while (scanner_.peek() != "}") HONE_TRY(field());
    scanner_.take();
    skip_empty_lines();
    if (!scanner_.peek().empty()) return expected("the end of the text");
    for (std::string_view key :
         {"isa", "cores", "cache", "memory", "peak f64", "peak f32", "fork_join"})
      if (!seen_.contains(std::string(key)))
        return at(0, bad_input("the target does not say its {}", key));
    if (Status good = check(target_); !good.ok()) return at(0, std::move(good).error());
    return std::move(target_);
  }

 private:
  // ---- Fields

  Status field() {
    const size_t offset = scanner_.offset();
    const std::string_view key = scanner_.peek();
    if (key.empty()) return expected("'}'");
    if (find(key) == nullptr)
      return at(
          offset,
          bad_input("there is no field '{}'", excerpt(key)).with_hint(did_you_mean(key, names())));
    scanner_.take();
    std::string full(key);
    if (key == "peak") {
      const size_t place = scanner_.offset();
      const std::string_view type = scanner_.take();
      const std::optional<DType> dtype = dtype_from_name(type);
      if (!dtype) return at(place, bad_input("'{}' is not an element type", excerpt(type)));
      peak_ = *dtype;
      full = fmt::format("peak {}", type);
    }
    if (!seen_.insert(full).second && key != "cache")
      return at(offset, bad_input("{} is given twice", full));
    HONE_TRY(expect("="));
    HONE_TRY((this->*find(key)->read)());
    return end_of_line();
  }

  Status read_cpu() {
    target_.cpu = HONE_TRY(string("the processor's name in quotes"));
    return {};
  }

  Status read_isa() {
    const size_t offset = scanner_.offset();
    const std::string_view level = scanner_.take();
    const std::optional<Isa> isa = isa_from_name(level);
    if (!isa) return at(offset, unknown("level", level, kIsas));
    target_.isa = *isa;
    while (scanner_.peek() == "+") {
      scanner_.take();
      const size_t place = scanner_.offset();
      const std::string_view word = scanner_.take();
      const std::optional<Extension> extension = extension_from_name(word);
      if (!extension) return at(place, unknown("extension", word, kExtensions));
      target_.extensions.insert(*extension);
    }
    return {};
  }

  Status read_cores() {
    target_.cores = HONE_TRY(integer(kMaxTargetCores));
    return {};
  }

  Status read_cache() {
    if (target_.caches.size() == kMaxCacheLevels)
      return at(scanner_.offset(), over_limit("more than {} cache levels", kMaxCacheLevels));
    CacheLevel cache;
    cache.bytes = HONE_TRY(bytes());
    HONE_TRY(expect("for"));
    cache.cores = HONE_TRY(integer(kMaxTargetCores));
    if (scanner_.peek() != "core")
      HONE_TRY(expect("cores"));
    else
      scanner_.take();
    HONE_TRY(expect("at"));
    cache.bytes_per_second = HONE_TRY(quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    target_.caches.push_back(cache);
    return {};
  }

  Status read_memory() {
    target_.memory_bytes = HONE_TRY(bytes());
    HONE_TRY(expect("at"));
    target_.memory_one_core = HONE_TRY(quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    for (std::string_view word : {"a", "core", ","}) HONE_TRY(expect(word));
    target_.memory_all_cores = HONE_TRY(quantity(kBandwidths, kMinTargetRate, kMaxTargetRate));
    HONE_TRY(expect("in"));
    return expect("all");
  }

  Status read_peak() {
    target_.peak(peak_) = HONE_TRY(quantity(kOperations, kMinTargetRate, kMaxTargetRate));
    return {};
  }

  Status read_fork_join() {
    target_.fork_join = HONE_TRY(quantity(kSeconds, 0, kMaxForkJoin));
    return {};
  }

  Status read_measured() {
    if (scanner_.peek() != "true" && scanner_.peek() != "false")
      return expected("'true' or 'false'");
    target_.measured = scanner_.take() == "true";
    return {};
  }

  struct Field {
    std::string_view name;
    Status (TargetParser::*read)();
  };
  static std::span<const Field> fields() {
    static constexpr Field all[] = {{"cpu", &TargetParser::read_cpu},
                                    {"isa", &TargetParser::read_isa},
                                    {"cores", &TargetParser::read_cores},
                                    {"cache", &TargetParser::read_cache},
                                    {"memory", &TargetParser::read_memory},
                                    {"peak", &TargetParser::read_peak},
                                    {"fork_join", &TargetParser::read_fork_join},
                                    {"measured", &TargetParser::read_measured}};
    return all;
  }
  static const Field* find(std::string_view key) {
    for (const Field& field : fields())
      if (field.name == key) return &field;
    return nullptr;
  }
  static std::vector<std::string_view> names() {
    std::vector<std::string_view> names;
    for (const Field& field : fields()) names.push_back(field.name);
    return names;
  }

  // ---- Values

  Result<std::string> string(std::string_view what) {
    const std::string_view word = scanner_.peek();
    if (word.size() < 2 || word.front() != '"' || word.back() != '"') return expected(what);
    Result<std::string> text = unescape(word.substr(1, word.size() - 2));
    if (!text.ok()) return at(scanner_.offset(), std::move(text).error());
    scanner_.take();
    return text;
  }

  Result<int64_t> integer(int64_t most) {
    const size_t offset = scanner_.offset();
    Result<int64_t> value = parse_int(scanner_.peek());
    if (!value.ok()) return at(offset, std::move(value).error());
    if (*value < 1 || *value > most)
      return at(offset, bad_input("{} is outside of 1..{}", *value, most));
    scanner_.take();
    return value;
  }

  Result<int64_t> bytes() {
    const size_t offset = scanner_.offset();
    int64_t bytes = HONE_TRY(integer(kMaxTargetBytes));
    for (std::string_view unit : kBytes) {
      if (bytes > kMaxTargetBytes) break;
      if (scanner_.peek() == unit) {
        scanner_.take();
        return bytes;
      }
      bytes *= 1024;  // at most 2^60
    }
    if (bytes > kMaxTargetBytes && is_byte_unit(scanner_.peek()))
      return at(offset, bad_input("the size is above {} bytes", kMaxTargetBytes));
    return expected(fmt::format("one of {}", join(kBytes, ", ")));
  }
  static bool is_byte_unit(std::string_view word) {
    return std::find(std::begin(kBytes), std::end(kBytes), word) != std::end(kBytes);
  }

  // A number with a unit.
  Result<double> quantity(std::span<const Unit> units, double least, double most) {
    const size_t offset = scanner_.offset();
    const std::string_view number = scanner_.take();
    const std::string_view word = scanner_.peek();
    const Unit* unit = nullptr;
    for (const Unit& each : units)
      if (each.name == word) unit = &each;
    Result<double> plain = parse_double(number);
    if (!plain.ok()) return at(offset, std::move(plain).error());
    if (!std::isfinite(*plain)) return at(offset, bad_input("the number must be finite"));
    if (unit == nullptr) {
      std::vector<std::string_view> all;
      for (const Unit& each : units) all.push_back(each.name);
      return expected(fmt::format("one of {}", join(all, ", ")));
    }
    Result<double> value = moved(number, unit->exponent);
    if (!value.ok()) return at(offset, std::move(value).error());
    if (!(*value >= least && *value <= most))
      return at(offset, bad_input("{} {} is outside of {} to {} {}", number, word, least, most,
                                  base_unit(units)));
    scanner_.take();
    return value;
  }

  // The number times ten to the exponent, rounded once.
  static Result<double> moved(std::string_view number, int exponent) {
    const size_t e = number.find_first_of("eE");
    if (e == std::string_view::npos) return parse_double(fmt::format("{}e{}", number, exponent));
    const int64_t stated = HONE_TRY(parse_int(number.substr(e + 1)));
    const std::optional<int64_t> sum = checked_add(stated, exponent);
    if (!sum) return bad_input("'{}' is outside of the range of f64", excerpt(number));
    return parse_double(fmt::format("{}e{}", number.substr(0, e), *sum));
  }

  static std::string_view base_unit(std::span<const Unit> units) {
    for (const Unit& each : units)
      if (each.exponent == 0) return each.name;
    return "";
  }

  template <class T, size_t n>
  static Error unknown(std::string_view what, std::string_view word, const std::array<T, n>& all) {
    std::vector<std::string_view> names;
    for (T each : all) names.push_back(name(each));
    return bad_input("'{}' is not a known {}", excerpt(word), what)
        .with_hint(fmt::format("the known ones are {}", join(names, ", ")));
  }

  // ---- Words

  void skip_empty_lines() {
    while (scanner_.peek() == "\n") scanner_.take();
  }

  Status end_of_line() {
    if (scanner_.peek() != "\n") return expected("the end of the line");
    skip_empty_lines();
    return {};
  }

  Status expect(std::string_view word) {
    if (scanner_.peek() != word) return expected(fmt::format("'{}'", word));
    scanner_.take();
    return {};
  }

  Error expected(std::string_view what) const {
    const std::string_view word = scanner_.peek();
    const std::string found = word.empty()   ? "the end of the text"
                              : word == "\n" ? "the end of the line"
                                             : fmt::format("'{}'", excerpt(word));
    return at(scanner_.offset(), bad_input("expected {}, found {}", what, found));
  }

  Error at(size_t offset, Error error) const {
    return std::move(error).within(fmt::format("{}:{}", file_, line_and_column(text_, offset)));
  }

  std::string_view text_;
  std::string_view file_;
  Scanner scanner_;
  Target target_;
  DType peak_ = DType::f32;  // of the field at hand
  std::set<std::string> seen_;
};

}  // namespace

std::string print(const Target& target) {
  std::string out = fmt::format("target {} {{\n", hone::quoted(target.name));
  if (!target.cpu.empty()) out += fmt::format("  cpu = {}\n", hone::quoted(target.cpu));
  out += fmt::format("  isa = {}", name(target.isa));
  for (Extension e : kExtensions)
    if (target.extensions.contains(e)) out += fmt::format(" + {}", name(e));
  out += fmt::format("\n  cores = {}\n", target.cores);
  for (const CacheLevel& cache : target.caches)
    out += fmt::format("  cache = {} for {} {} at {}\n", bytes_text(cache.bytes), cache.cores,
                       cache.cores == 1 ? "core" : "cores",
                       with_unit(cache.bytes_per_second, kBandwidths[0]));
  out += fmt::format("  memory = {} at {} a core, {} in all\n", bytes_text(target.memory_bytes),
                     with_unit(target.memory_one_core, kBandwidths[0]),
                     with_unit(target.memory_all_cores, kBandwidths[0]));
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType type = static_cast<DType>(i);
    if (target.peak(type) != 0)
      out +=
          fmt::format("  peak {} = {}\n", name(type), with_unit(target.peak(type), kOperations[0]));
  }
  out += fmt::format("  fork_join = {}\n", with_unit(target.fork_join, kSeconds[0]));
  return out + fmt::format("  measured = {}\n}}\n", target.measured);
}

Result<Target> parse_target(std::string_view text, std::string_view file) {
  if (text.size() > kMaxTargetText)
    return over_limit("the text of a target has {} bytes, more than {}", text.size(),
                      kMaxTargetText)
        .within(file);
  return TargetParser(text, file).parse();
}

}  // namespace hone
