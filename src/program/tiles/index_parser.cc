#include "program/tiles/index_parser.h"

#include "base/text.h"

namespace hone {

bool IndexParser::define(std::string_view name, tile::Index index) {
  return names_.emplace(name, index).second;
}

void IndexParser::leave(std::string_view name) { names_.erase(name); }

Result<Dim> IndexParser::dim() {
  const size_t offset = text_.peek().offset;
  const IndexExpr value = HONE_TRY(expr());
  if (std::optional<Dim> dim = value.as_constant()) return *dim;
  return text_.at(offset, bad_input("an index may not be written here"));
}

Result<IndexExpr> IndexParser::expr() {
  TextParser::Nesting nesting(text_);
  HONE_TRY(text_.check_depth("brackets"));
  const bool is_negative = text_.eat("-");
  IndexExpr sum = HONE_TRY(product());
  if (is_negative) sum = std::move(sum) * -1;
  for (;;) {
    if (text_.eat("+"))
      sum = std::move(sum) + HONE_TRY(product());
    else if (text_.eat("-"))
      sum = std::move(sum) - HONE_TRY(product());
    else
      return sum;
  }
}

Result<IndexExpr> IndexParser::product() {
  IndexExpr value = HONE_TRY(atom());
  for (;;) {
    const Token sign = text_.peek();
    if (text_.eat("*")) {
      IndexExpr factor = HONE_TRY(atom());
      if (!value.as_constant()) std::swap(value, factor);
      const std::optional<Dim> dim = value.as_constant();
      if (!dim) return text_.at(sign, bad_input("a product of two indices"));
      value = std::move(factor) * *dim;
    } else if (text_.eat("/")) {
      const int64_t divisor = HONE_TRY(text_.integer("a divisor"));
      if (divisor < 1 || !value.as_constant())
        return text_.at(sign, bad_input("dims are divided by positive numbers"));
      value = floordiv(*value.as_constant(), divisor);
    } else {
      return value;
    }
  }
}

Result<IndexExpr> IndexParser::atom() {
  if (text_.peek().kind == TokenKind::number) {
    const int64_t number = HONE_TRY(text_.integer("a number"));
    return IndexExpr(number);
  }
  if (text_.eat("(")) {
    IndexExpr value = HONE_TRY(expr());
    HONE_TRY(text_.expect(")"));
    return value;
  }
  if (text_.peek().kind != TokenKind::word) return text_.expected("an index");
  const Token word = text_.take();
  if (word.is("floordiv") || word.is("mod")) return quotient(word);
  if (auto found = names_.find(word.text); found != names_.end())
    return IndexExpr::iter(found->second);
  for (Symbol symbol : text_.symbols())
    if (symbol.name() == word.text) return IndexExpr(Dim(symbol));
  return text_.at(word, bad_input("there is no index '{}' here", excerpt(word.text)));
}

Result<IndexExpr> IndexParser::quotient(const Token& word) {
  HONE_TRY(text_.expect("("));
  IndexExpr dividend = HONE_TRY(expr());
  HONE_TRY(text_.expect(","));
  const Dim divisor = HONE_TRY(dim());
  HONE_TRY(text_.expect(")"));
  if (divisor.range().low < 1)
    return text_.at(word,
                    bad_input("{} by {}, which can be below 1", word.text, divisor.to_string()));
  return word.is("mod") ? mod(std::move(dividend), divisor)
                        : floordiv(std::move(dividend), divisor);
}

}  // namespace hone
