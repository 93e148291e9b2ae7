#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"
#include "tensor/dim_expr.h"

// Dims as text: "2*N + 1", "(N + 3)/4", "3*(M/2)*N".

namespace hone {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return starts_name(c) || ('0' <= c && c <= '9'); }

// The coefficient is what is left after the symbols took their multiples: 16 * (N/8) is 2*N.
struct Product {
  int64_t coefficient;
  std::vector<std::string> factors;
};

// A leading minus binds tighter than the / that follows, so it wants parentheses: -(N/2).
Product product_of(const DimTerm& term, bool leading) {
  Product product = {term.coefficient, {}};
  bool alone = term.monomial->atoms.size() == 1;
  for (const DimAtom* atom : term.monomial->atoms) {
    std::string text;
    bool bare = false;
    if (atom->symbol != nullptr) {
      int64_t multiple = atom->symbol->multiple_of;
      bare = product.coefficient % multiple == 0;
      if (bare) product.coefficient /= multiple;
      text = bare ? atom->symbol->name : fmt::format("{}/{}", atom->symbol->name, multiple);
    } else {
      std::string dividend = DimExpr::wrap(atom->dividend).to_string();
      bool is_name = std::all_of(dividend.begin(), dividend.end(), continues_name);
      text = is_name ? fmt::format("{}/{}", dividend, atom->divisor)
                     : fmt::format("({})/{}", dividend, atom->divisor);
    }
    bool needs_parentheses =
        !bare && !(alone && (product.coefficient == 1 || (product.coefficient == -1 && !leading)));
    product.factors.push_back(needs_parentheses ? fmt::format("({})", text) : text);
  }
  return product;
}

// "expr := term {(+|-) term}   term := factor {(*|/) factor}   factor := [-] (number|name|(expr))"
class Parser {
 public:
  Parser(std::string_view text, const std::vector<Symbol>& scope) : text_(text), scope_(scope) {}

  Result<Dim> parse() {
    Dim dim = HONE_TRY(sum());
    if (!at_end()) return wrong("expected an operator");
    return dim;
  }

 private:
  static constexpr int kMaxDepth = 100;
  static constexpr size_t kMaxTerms = 256;

  bool at_end() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }
  bool eat(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Error wrong(std::string_view what) {
    constexpr size_t kShown = 60;  // a hostile dim may be a megabyte
    std::string_view tail = text_.size() > kShown ? "..." : "";
    return bad_input("dim \"{}{}\": {} at column {}", escape(text_.substr(0, kShown)), tail, what,
                     at_ + 1);
  }

  Result<Dim> sum() {
    Dim total = HONE_TRY(product());
    for (;;) {
      if (eat('+')) {
        total = total + HONE_TRY(product());
      } else if (eat('-')) {
        total = total - HONE_TRY(product());
      } else {
        return total;
      }
      if (total.term_count() > kMaxTerms) return wrong("too many terms");
    }
  }

  Result<Dim> product() {
    Dim total = HONE_TRY(factor());
    for (;;) {
      if (eat('*')) {
        Dim other = HONE_TRY(factor());
        if (total.term_count() * other.term_count() > kMaxTerms) return wrong("too many terms");
        total = total * other;
      } else if (eat('/')) {
        Dim divisor = HONE_TRY(factor());
        if (!divisor.is_static() || divisor.value() <= 0) {
          return wrong("the divisor is not a positive number");
        }
        total = floordiv(total, divisor.value());
      } else {
        return total;
      }
    }
  }

  Result<Dim> factor() {
    if (depth_ >= kMaxDepth) return wrong("too deeply nested");
    ++depth_;
    Result<Dim> result = unguarded_factor();
    --depth_;
    return result;
  }

  Result<Dim> unguarded_factor() {
    if (eat('-')) return HONE_TRY(factor()) * -1;
    if (eat('(')) {
      Dim inner = HONE_TRY(sum());
      if (!eat(')')) return wrong("expected ')'");
      return inner;
    }
    if (at_end()) return wrong("expected a number, a symbol or '('");
    size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return wrong("expected a number, a symbol or '('");
    Result<Dim> result = starts_name(word[0]) ? symbol(word) : number(word);
    if (!result.ok()) at_ = begin;
    return result.ok() ? result : wrong(result.error().what());
  }

  Result<Dim> number(std::string_view word) {
    Result<int64_t> value = parse_int(word);
    if (!value.ok() || *value > kDimLimit) return bad_input("{} is not a number up to 2^62", word);
    return Dim(*value);
  }

  Result<Dim> symbol(std::string_view word) {
    for (const Symbol& symbol : scope_) {
      if (symbol.name() == word) return Dim(symbol);
    }
    return bad_input("symbol '{}' is not declared", word);
  }

  std::string_view text_;
  const std::vector<Symbol>& scope_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool is_symbol_name(std::string_view text) {
  return !text.empty() && starts_name(text[0]) &&
         std::all_of(text.begin(), text.end(), continues_name);
}

std::string Dim::to_string() const {
  if (is_static()) return fmt::format("{}", number_);
  std::string text;
  auto append = [&text](int64_t coefficient, std::string_view rest) {
    bool negative = coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    text += rest;
  };
  for (const DimTerm& term : expr_->terms) {
    Product product = product_of(term, text.empty());
    std::string factors = join(product.factors, "*");
    int64_t size = std::abs(product.coefficient);
    append(product.coefficient, size == 1 ? factors : fmt::format("{}*{}", size, factors));
  }
  if (expr_->constant != 0) {
    append(expr_->constant, fmt::format("{}", std::abs(expr_->constant)));
  }
  return text;
}

Result<Dim> parse_dim(std::string_view text, const std::vector<Symbol>& scope) {
  return Parser(text, scope).parse();
}

}  // namespace hone
