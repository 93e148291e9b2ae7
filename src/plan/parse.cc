#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "base/text.h"
#include "ir/text_parser.h"
#include "kernel/schedule_text.h"
#include "plan/collectives.h"
#include "plan/plan.h"

// Recursive descent. True if names and values fit a graph is left to check().

namespace hone {
namespace {

class PlanParser {
 public:
  PlanParser(std::string_view text, const ParseOptions& options) : text_(text, options) {}

  bool at_plan() const { return text_.peek().is("plan"); }
  size_t offset() const { return text_.peek().offset; }
  Status end(std::string_view wanted) const {
    if (text_.peek().kind == TokenKind::end) return {};
    return text_.expected(wanted);
  }

  // The offsets of the last plan's entries.
  const std::map<std::string, size_t, std::less<>>& offsets() const { return offsets_; }

  Result<Plan> plan() {
    Plan plan;
    offsets_.clear();
    HONE_TRY(text_.expect("plan"));
    plan.graph = HONE_TRY(text_.label(TokenKind::global, "the graph's name, like @main")).name;
    if (text_.eat("hash")) plan.graph_hash = HONE_TRY(hash());
    if (text_.eat("on")) plan.target = HONE_TRY(string("the target's name in quotes"));
    HONE_TRY(body(plan, true));
    return plan;
  }

 private:
  Status body(Plan& plan, bool is_outermost) {
    TextParser::Nesting nesting(text_);
    HONE_TRY(text_.check_depth("regions"));
    HONE_TRY(text_.expect("{"));
    std::set<std::string_view> kernels;
    while (!text_.eat("}")) HONE_TRY(entry(plan, kernels, is_outermost));
    return {};
  }

  // Notes where the entry stands.
  void note(const Token& word, std::string_view key) {
    std::string entry = path_.empty() ? "" : path_ + ", ";
    entry += word.text;
    if (!key.empty()) entry.append(" ") += key;
    offsets_.emplace(std::move(entry), word.offset);
  }

  Status entry(Plan& plan, std::set<std::string_view>& kernels, bool is_outermost) {
    const Token word = text_.peek();
    if (word.kind != TokenKind::word) return text_.expected("a decision or '}'");
    text_.take();
    if (!is_outermost && (word.is("threads") || word.is("schedule")))
      return text_.at(word,
                      bad_input("{} is decided for the whole plan, not in a region", word.text));
    if (word.is("fuse")) return fuse(word, plan.fuse, kernels);
#define HONE_DECISION(member, ...) \
  if (word.is(#member)) return decision(word, plan.member);
#include "plan/decisions.def"
    std::vector<std::string_view> names;
    for (const DecisionInfo& each : decisions()) names.push_back(each.name);
    return text_.at(word, bad_input("there is no decision '{}'", excerpt(word.text))
                              .with_hint(did_you_mean(word.text, names)));
  }

  // ---- Decisions -------------------------------------------------------------------------------

  Status twice(const Token& word) const {
    return text_.at(word, bad_input("{} is decided twice", word.text));
  }

  Status decision(const Token& word, std::optional<int64_t>& number) {
    if (number) return twice(word);
    note(word, "");
    HONE_TRY(text_.expect("="));
    number = HONE_TRY(text_.integer("a number", 1, std::numeric_limits<int32_t>::max()));
    return {};
  }

  Status fuse(const Token& word, std::vector<Group>& groups, std::set<std::string_view>& kernels) {
    const TextParser::Label kernel = HONE_TRY(name(TokenKind::global, "a kernel, like @k0"));
    if (!kernels.insert(kernel.name).second) return twice(kernel.token);
    note(word, fmt::format("@{}", kernel.name));
    HONE_TRY(text_.expect("="));
    HONE_TRY(text_.expect("{"));
    Group group{std::string(kernel.name), {}};
    do group.nodes.emplace_back(HONE_TRY(value()).name);
    while (text_.eat(","));
    HONE_TRY(text_.expect("}"));
    groups.push_back(std::move(group));
    return {};
  }
  Status decision(const Token&, std::vector<Group>&) { return {}; }  // fuse() reads them

  // They stand in their order.
  Status decision(const Token& word, std::vector<Rewrite>& rewrites) {
    const auto next = static_cast<int64_t>(rewrites.size()) + 1;
    if (next > kMaxRewrites)
      return text_.at(word, over_limit("there are more than {} rewrites", kMaxRewrites));
    const Token place = text_.peek();
    const int64_t number = HONE_TRY(text_.integer("the number of the rewrite", 1, kMaxRewrites));
    if (number != next)
      return text_.at(place, bad_input("this is rewrite {}, but the next one is {}", number, next));
    note(word, fmt::format("{}", number));
    HONE_TRY(text_.expect("="));
    rewrites.emplace_back().rule = HONE_TRY(name(TokenKind::global, "a rule, like @fold")).name;
    HONE_TRY(text_.expect("("));
    do rewrites.back().results.emplace_back(HONE_TRY(value()).name);
    while (text_.eat(","));
    HONE_TRY(text_.expect(")"));
    if (text_.eat("match"))
      rewrites.back().match =
          static_cast<int32_t>(
              HONE_TRY(text_.integer("the number of the match", 2, kMaxRewrites)));
    if (text_.eat("range"))
      rewrites.back().range =
          static_cast<int32_t>(
              HONE_TRY(text_.integer("the decades of the inputs", 1, kMaxAssumedDecades)));
    return {};
  }

  Status decision(const Token& word, std::vector<std::string>& order) {
    if (!order.empty()) return twice(word);
    note(word, "");
    HONE_TRY(text_.expect("="));
    HONE_TRY(text_.expect("["));
    do {
      const TokenKind kind =
          text_.peek().kind == TokenKind::global ? TokenKind::global : TokenKind::value;
      order.emplace_back(HONE_TRY(name(kind, "a kernel or a value")).name);
    } while (text_.eat(","));
    return text_.expect("]");
  }

  template <class T>
  Status decision(const Token& word, std::map<std::string, T>& map) {
    const TextParser::Label key = HONE_TRY(value());
    const auto [at, is_new] = map.try_emplace(std::string(key.name));
    if (!is_new) return twice(key.token);
    note(word, fmt::format("%{}", key.name));
    HONE_TRY(text_.expect("="));
    return read(at->second);
  }

  Status decision(const Token& word, std::map<std::string, Plan>& map) {
    const TextParser::Label key = HONE_TRY(value());
    const auto [at, is_new] = map.try_emplace(std::string(key.name));
    if (!is_new) return twice(key.token);
    note(word, fmt::format("%{}", key.name));
    const size_t outer = path_.size();
    path_ += fmt::format("{}region %{}", path_.empty() ? "" : ", ", key.name);
    HONE_TRY(body(at->second, false));
    path_.resize(outer);
    return {};
  }

  Status decision(const Token& word, std::map<uint64_t, Schedule>& map) {
    const Token place = text_.peek();
    const uint64_t key = HONE_TRY(hash());
    const auto [at, is_new] = map.try_emplace(key);
    if (!is_new)
      return text_.at(place, bad_input("the schedule of 0x{:016x} is decided twice", key));
    note(word, fmt::format("0x{:016x}", key));
    HONE_TRY(text_.expect("="));
    at->second = HONE_TRY(parse_schedule(text_));
    return {};
  }

  // ---- Values ----------------------------------------------------------------------------------

  Status read(bool& flag) {
    flag = text_.peek().is("yes");
    if (!flag && !text_.peek().is("no")) return text_.expected("'yes' or 'no'");
    text_.take();
    return {};
  }

  Status read(int64_t& number) {
    number = HONE_TRY(text_.integer("a number", 0, std::numeric_limits<int64_t>::max()));
    return {};
  }

  Status read(Copy& copy) {
    copy.of = HONE_TRY(value()).name;
    HONE_TRY(text_.expect("for"));
    HONE_TRY(text_.expect("["));
    do copy.readers.emplace_back(HONE_TRY(value()).name);
    while (text_.eat(","));
    return text_.expect("]");
  }

  Status read(Layout& layout) {
    const Token bracket = text_.peek();
    if (!bracket.is("[")) return text_.expected("a layout, like [0, 1]");
    const std::string_view text = text_.take_brackets();
    if (text.empty()) return text_.at(bracket, bad_input("this layout has no ']'"));
    Result<Layout> parsed = parse_layout(text);
    if (!parsed.ok()) return text_.at(bracket, std::move(parsed).error());
    layout = std::move(*parsed);
    return {};
  }

  Status read(CollectiveSchedule& schedule) {
    schedule = HONE_TRY(parse_collective_schedule(text_));
    return {};
  }

  // ---- Words -----------------------------------------------------------------------------------

  Result<TextParser::Label> name(TokenKind kind, std::string_view what) {
    const TextParser::Label label = HONE_TRY(text_.label(kind, what));
    if (label.is_number)
      return text_.at(label.token,
                      bad_input("{} is a number, but plans use names", label.token.text));
    return label;
  }
  Result<TextParser::Label> value() { return name(TokenKind::value, "a value, like %h"); }

  // "0x" and 16 digits: to the lexer a number and a word.
  Result<uint64_t> hash() {
    const Token zero = text_.peek();
    const auto wanted = [&] {
      return text_.at(zero, bad_input("expected a hash, like 0x0123456789abcdef"));
    };
    if (zero.text != "0") return wanted();
    text_.take();
    const Token digits = text_.peek();
    uint64_t value = 0;
    if (digits.offset != zero.offset + 1 || digits.text.size() != 17 || digits.text[0] != 'x')
      return wanted();
    const char* end = digits.text.data() + digits.text.size();
    if (std::from_chars(digits.text.data() + 1, end, value, 16).ptr != end) return wanted();
    text_.take();
    return value;
  }

  Result<std::string> string(std::string_view what) {
    if (text_.peek().kind != TokenKind::string) return text_.expected(what);
    const Token token = text_.take();
    Result<std::string> text = unescape(token.text.substr(1, token.text.size() - 2));
    if (!text.ok()) return text_.at(token, std::move(text).error());
    if (text->empty()) return text_.at(token, bad_input("a name must not be empty"));
    return text;
  }

  TextParser text_;
  std::string path_;                                    // of regions that are open
  std::map<std::string, size_t, std::less<>> offsets_;  // of entries
};

Status check_size(std::string_view text, std::string_view file) {
  if (static_cast<int64_t>(text.size()) <= kMaxPlanText) return {};
  return over_limit("the text of a plan has {} bytes, more than {}", text.size(), kMaxPlanText)
      .within(file);
}

ParseOptions options_of(std::string_view file) {
  ParseOptions options;
  options.file = file;
  return options;
}

// Lines of offsets that do not go back.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}

  int64_t at(size_t offset) {
    line_ += std::count(text_.begin() + seen_, text_.begin() + offset, '\n');
    seen_ = offset;
    return line_;
  }

 private:
  const std::string_view text_;
  size_t seen_ = 0;
  int64_t line_ = 1;
};

PlanLines lines_of(const std::map<std::string, size_t, std::less<>>& offsets,
                   LineCounter& counter) {
  std::vector<std::pair<size_t, std::string_view>> sorted;
  for (const auto& [entry, offset] : offsets) sorted.emplace_back(offset, entry);
  std::ranges::sort(sorted);
  PlanLines lines;
  for (const auto& [offset, entry] : sorted) lines.emplace(entry, counter.at(offset));
  return lines;
}

}  // namespace

std::string PlacedPlan::place_of(std::string_view entry) const {
  // Errors say more about some entries: "schedule 0x..., @k0".
  for (size_t end = entry.size(); end > 0 && end != std::string_view::npos;
       end = entry.substr(0, end).rfind(", ")) {
    const auto found = lines.find(entry.substr(0, end));
    if (found != lines.end())
      return fmt::format("{}:{}", place.substr(0, place.rfind(':')), found->second);
  }
  return place;
}

Error PlacedPlan::placed(Error error) const {
  const std::string place = place_of(error.where());
  return std::move(error).within(place);
}

Result<Plan> parse_plan(std::string_view text, std::string_view file) {
  HONE_TRY(check_size(text, file));
  PlanParser parser(text, options_of(file));
  Plan plan = HONE_TRY(parser.plan());
  HONE_TRY(parser.end("the end of the text"));
  return plan;
}

Result<std::vector<PlacedPlan>> parse_plans(std::string_view text, std::string_view file) {
  HONE_TRY(check_size(text, file));
  PlanParser parser(text, options_of(file));
  std::vector<PlacedPlan> plans;
  LineCounter counter(text);
  do {
    std::string place = fmt::format("{}:{}", file, counter.at(parser.offset()));
    if (plans.size() == kMaxPlans)
      return over_limit("there are more than {} plans", kMaxPlans).within(place);
    Plan plan = HONE_TRY(parser.plan());
    plans.push_back({std::move(plan), std::move(place), lines_of(parser.offsets(), counter)});
  } while (parser.at_plan());
  HONE_TRY(parser.end("another plan or the end of the text"));
  return plans;
}

}  // namespace hone
