#include "search/device_plan.h"

#include <algorithm>
#include <limits>

#include "ir/text_parser.h"
#include "ir/text_printer.h"

namespace hone {
namespace {

constexpr std::string_view kBlock = "devices";

// Where the block begins: a line of its own. npos: nowhere.
size_t block_of(std::string_view text) {
  for (size_t at = text.find(kBlock); at != text.npos; at = text.find(kBlock, at + 1)) {
    const size_t end = at + kBlock.size();
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (begins_line && end < text.size() && (text[end] == ' ' || text[end] == '\t')) return at;
  }
  return text.npos;
}

ParseOptions options_in(std::string_view file) {
  ParseOptions options;
  options.file = file;
  return options;
}

// devices @g { device @k0 = 1 priority @k0 = 7 }
class DevicesParser {
 public:
  DevicesParser(std::string_view text, std::string_view file)
      : whole_(text), text_(text, options_in(file)) {}

  Status read(DevicePlan& plan) {
    HONE_TRY(text_.expect(kBlock));
    const Token place = text_.peek();
    const TextParser::Label graph =
        HONE_TRY(text_.label(TokenKind::global, "the graph's name, like @main"));
    if (graph.name != plan.plan.plan.graph)
      return text_.at(place, bad_input("the plan before is of @{}", plan.plan.plan.graph));
    HONE_TRY(text_.expect("{"));
    while (!text_.eat("}")) HONE_TRY(entry(plan));
    if (text_.peek().kind != TokenKind::end) return text_.expected("the end of the text");
    return {};
  }

 private:
  Status entry(DevicePlan& plan) {
    const Token word = text_.peek();
    const bool is_device = word.is("device");
    if (!is_device && !word.is("priority")) return text_.expected("device, priority or '}'");
    text_.take();
    const bool is_kernel = text_.peek().kind == TokenKind::global;
    const TextParser::Label step = HONE_TRY(
        text_.label(is_kernel ? TokenKind::global : TokenKind::value, "a kernel or a value"));
    if (step.is_number)
      return text_.at(step.token,
                      bad_input("{} is a number, but plans use names", step.token.text));
    const std::string key = fmt::format("{}{}", is_kernel ? '@' : '%', step.name);
    auto& numbers = is_device ? plan.steps.device : plan.steps.priority;
    const auto [at, is_new] = numbers.try_emplace(key);
    if (!is_new) return text_.at(step.token, bad_input("{} is decided twice", key));
    plan.lines.emplace(fmt::format("{} {}", word.text, key), line_of(word.offset));
    HONE_TRY(text_.expect("="));
    at->second =
        static_cast<int32_t>(
            HONE_TRY(text_.integer("a number", 0, std::numeric_limits<int32_t>::max())));
    return {};
  }

  // Offsets only grow, so no part of a long text is looked at twice.
  int line_of(size_t offset) {
    const std::string_view next = whole_.substr(counted_, offset - counted_);
    line_ += static_cast<int>(std::ranges::count(next, '\n'));
    counted_ = offset;
    return line_;
  }

  const std::string_view whole_;
  TextParser text_;
  size_t counted_ = 0;
  int line_ = 1;
};

}  // namespace

Error DevicePlan::placed(Error error) const {
  const auto own = lines.find(error.where());
  if (own == lines.end()) return plan.placed(std::move(error));
  const std::string file = plan.place.substr(0, plan.place.rfind(':'));
  return std::move(error).within(fmt::format("{}:{}", file, own->second));
}

bool has_devices(std::string_view text) { return block_of(text) != text.npos; }

std::string print(const Plan& plan, const StepDevices& steps) {
  std::string out = print(plan);
  out += kBlock;
  out += ' ';
  append_label(out, '@', plan.graph);
  out += " {\n";
  const auto add = [&](std::string_view what, const std::map<std::string, int32_t>& numbers) {
    for (const auto& [key, number] : numbers) {
      out.append("  ").append(what) += ' ';
      append_label(out, key[0], std::string_view(key).substr(1));
      out += fmt::format(" = {}\n", number);
    }
  };
  add("device", steps.device);
  add("priority", steps.priority);
  return out + "}\n";
}

Result<DevicePlan> parse_device_plan(std::string_view text, std::string_view file) {
  if (static_cast<int64_t>(text.size()) > kMaxPlanText)
    return over_limit("the text of a plan has {} bytes, more than {}", text.size(), kMaxPlanText)
        .within(std::string(file));
  DevicePlan made;
  const size_t block = block_of(text);
  std::vector<PlacedPlan> plans =
      HONE_TRY(parse_plans(text.substr(0, std::min(block, text.size())), file));
  if (plans.size() != 1)
    return bad_input("there are {} plans; a graph that is placed has one", plans.size())
        .within(std::string(file));
  made.plan = std::move(plans[0]);
  if (block == text.npos) return made;
  // Blanks keep the place of what is behind them.
  std::string rest(text);
  for (size_t i = 0; i < block; ++i)
    if (rest[i] != '\n') rest[i] = ' ';
  HONE_TRY(DevicesParser(rest, file).read(made));
  return made;
}

}  // namespace hone
