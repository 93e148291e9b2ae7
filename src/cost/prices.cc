#include "cost/prices.h"

#include <cmath>
#include <set>
#include <vector>

#include "base/text.h"
#include "base/text_lexer.h"

namespace hone {
namespace {

struct Row {
  std::string_view name;
  double Prices::* member;
  std::string_view doc;
};
constexpr Row kRows[] = {
#define HONE_PRICE(member, value, doc) {#member, &Prices::member, doc},
#include "cost/prices.def"
};

// The limit of a coefficient. Counts of a program times such coefficients add up to a number.
constexpr double kMaxPrice = 1e12;

std::string all_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return join(names, ", ");
}

class PricesParser {
 public:
  PricesParser(std::string_view text, std::string_view file) : lexer_(text), file_(file) {}

  Result<Prices> run(std::string_view target) {
    HONE_TRY(expect("prices"));
    HONE_TRY(expect("on"));
    const Token name = lexer_.take();
    if (name.kind != TokenKind::string) return at(name, bad_input("expected a target in quotes"));
    if (name.text != quoted(target))
      return at(name, bad_input("the prices are for the target {}, not for {}", excerpt(name.text),
                                quoted(target)));
    HONE_TRY(expect("{"));
    Prices prices;
    std::set<std::string_view> seen;
    while (!lexer_.peek().is("}")) HONE_TRY(entry(prices, seen));
    const Token end = lexer_.take();
    if (lexer_.peek().kind != TokenKind::end)
      return at(lexer_.peek(),
                bad_input("the prices end before '{}'", excerpt(lexer_.peek().text)));
    for (const Row& row : kRows)
      if (!seen.contains(row.name))
        return at(end, bad_input("the coefficient '{}' is missing", row.name))
            .with_hint("there are " + all_names());
    return prices;
  }

 private:
  Error at(const Token& token, Error error) const {
    return std::move(error).within(
        fmt::format("{}:{}", file_, line_and_column(lexer_.source(), token.offset)));
  }

  Status expect(std::string_view spelling) {
    const Token token = lexer_.take();
    if (token.is(spelling)) return {};
    return at(token, bad_input("expected '{}', found '{}'", spelling, excerpt(token.text)))
        .with_hint("the form is: prices on \"TARGET\" { NAME = NUMBER ... }");
  }

  Status entry(Prices& prices, std::set<std::string_view>& seen) {
    const Token word = lexer_.take();
    const Row* row = nullptr;
    for (const Row& each : kRows)
      if (word.kind == TokenKind::word && word.text == each.name) row = &each;
    if (row == nullptr)
      return at(word, bad_input("there is no coefficient '{}'", excerpt(word.text)))
          .with_hint("there are " + all_names());
    if (!seen.insert(row->name).second)
      return at(word, bad_input("the coefficient '{}' stands twice", row->name));
    HONE_TRY(expect("="));
    const Token number = lexer_.take();
    const Result<double> value = parse_double(number.text);
    if (!value.ok() || !(*value >= 0 && *value <= kMaxPrice))
      return at(number, bad_input("the coefficient '{}' is '{}', not a number from 0 to {}",
                                  row->name, excerpt(number.text), kMaxPrice))
          .with_hint("there are " + all_names());
    prices.*row->member = *value;
    return {};
  }

  Lexer lexer_;
  const std::string_view file_;
};

}  // namespace

std::string print(const Prices& prices, std::string_view target) {
  std::string text = fmt::format("prices on {} {{\n", quoted(target));
  for (const Row& row : kRows)
    text +=
        fmt::format("  {:26}# {}\n", fmt::format("{} = {}", row.name, prices.*row.member), row.doc);
  return text + "}\n";
}

Result<Prices> parse_prices(std::string_view text, std::string_view target, std::string_view file) {
  if (static_cast<int64_t>(text.size()) > kMaxPricesText)
    return over_limit("prices of {} bytes, more than {}", text.size(), kMaxPricesText);
  return PricesParser(text, file).run(target);
}

}  // namespace hone
