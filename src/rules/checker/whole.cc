#include "rules/checker/whole.h"

#include <algorithm>
#include <cctype>

#include "base/checked_math.h"

namespace hone::checker {
namespace {

constexpr size_t kMaxWholeTerms = 4096;
constexpr int kMaxDepth = 24;
constexpr size_t kMaxQuestions = 2'000'000;  // questions about bounds for one rule

}  // namespace

// ---- Polynomials --------------------------------------------------------------------------------

Whole Whole::atom(uint32_t atom) {
  Whole whole;
  whole.terms_[{atom}] = 1;
  return whole;
}

Whole Whole::bad() {
  Whole whole;
  whole.is_bad_ = true;
  return whole;
}

std::optional<int64_t> Whole::as_number() const {
  if (is_bad_ || terms_.size() > 1) return std::nullopt;
  if (terms_.empty()) return 0;
  if (!terms_.begin()->first.empty()) return std::nullopt;
  return terms_.begin()->second;
}

int64_t Whole::constant() const {
  const auto at = terms_.find({});
  return at == terms_.end() ? 0 : at->second;
}

bool Whole::mentions(uint32_t atom) const {
  return std::ranges::any_of(
      terms_, [&](const auto& term) { return std::ranges::binary_search(term.first, atom); });
}

void Whole::add(const Monomial& monomial, int64_t coefficient) {
  const auto at = terms_.emplace(monomial, 0).first;
  if (__builtin_add_overflow(at->second, coefficient, &at->second)) is_bad_ = true;
  if (at->second == 0) terms_.erase(at);
}

Whole operator+(const Whole& a, const Whole& b) {
  if (a.is_bad_ || b.is_bad_) return Whole::bad();
  Whole sum = a;
  for (const auto& [monomial, coefficient] : b.terms_) sum.add(monomial, coefficient);
  return sum;
}

Whole operator*(const Whole& a, const Whole& b) {
  if (a.is_bad_ || b.is_bad_ || a.terms_.size() * b.terms_.size() > kMaxWholeTerms)
    return Whole::bad();
  Whole product;
  for (const auto& [left, x] : a.terms_)
    for (const auto& [right, y] : b.terms_) {
      Monomial both;
      std::ranges::merge(left, right, std::back_inserter(both));
      int64_t coefficient = 0;
      if (__builtin_mul_overflow(x, y, &coefficient)) return Whole::bad();
      product.add(both, coefficient);
    }
  return product;
}

namespace {

// Sorts by degree first, so that the largest term of a product is the product of the largest ones.
bool is_before(const Monomial& a, const Monomial& b) {
  return a.size() != b.size() ? a.size() < b.size() : std::ranges::lexicographical_compare(b, a);
}

const std::pair<const Monomial, int64_t>& largest(const std::map<Monomial, int64_t>& terms) {
  return *std::ranges::max_element(terms, is_before, [](const auto& term) { return term.first; });
}

}  // namespace

std::optional<Whole> Whole::divided_by(const Whole& divisor) const {
  if (is_bad_ || divisor.is_bad_ || divisor.terms_.empty()) return std::nullopt;
  const auto& [head, factor] = largest(divisor.terms_);
  Whole rest = *this, quotient;
  for (size_t i = 0; i < kMaxWholeTerms && !rest.terms_.empty(); ++i) {
    const auto [monomial, coefficient] = largest(rest.terms_);
    if (!std::ranges::includes(monomial, head) || coefficient % factor != 0) return std::nullopt;
    Monomial left;
    std::ranges::set_difference(monomial, head, std::back_inserter(left));
    Whole part;
    part.add(left, coefficient / factor);
    quotient = quotient + part;
    rest = rest - part * divisor;
    if (rest.is_bad_) return std::nullopt;
  }
  if (!rest.terms_.empty()) return std::nullopt;
  return quotient;
}

// ---- Atoms --------------------------------------------------------------------------------------

Status Atoms::add_symbol(const std::string& name, int64_t low, int64_t high, int64_t step) {
  if (step < 1) return bad_input("symbol '{}' has step {}", name, step);
  Atom atom = {.kind = symbol, .name = name, .of = {}, .divisor = {}};
  atom.low = ceil_div(low, step);
  atom.high = floor_div(high, step);
  atom.step = step;
  if (atom.low > atom.high) return bad_input("symbol '{}' has no values", name);
  atoms_.push_back(std::move(atom));
  return {};
}

uint32_t Atoms::add_loop(const Whole& extent) {
  atoms_.push_back({.kind = loop, .of = extent, .divisor = {}});
  return static_cast<uint32_t>(atoms_.size() - 1);
}

uint32_t Atoms::intern(Kind kind, const Whole& of, const Whole& divisor) {
  for (uint32_t i = 0; i < atoms_.size(); ++i)
    if (atoms_[i].kind == kind && atoms_[i].of == of && atoms_[i].divisor == divisor) return i;
  atoms_.push_back({.kind = kind, .of = of, .divisor = divisor});
  return static_cast<uint32_t>(atoms_.size() - 1);
}

bool Atoms::mentions(const Whole& a, uint32_t atom) const {
  for (const auto& [monomial, coefficient] : a.terms())
    for (uint32_t i : monomial) {
      if (i == atom) return true;
      const bool is_part = atoms_[i].kind == quotient || atoms_[i].kind == remainder;
      if (is_part && mentions(atoms_[i].of, atom)) return true;
    }
  return false;
}

// A number divides each term on its own. Else terms are taken together by what they have
// besides symbols, and what stands before it is divided as one. 0 <= rest < divisor: the rest is
// the remainder.
Atoms::Parts Atoms::divide(const Whole& a, const Whole& divisor) {
  if (a.is_bad() || divisor.is_bad()) return {Whole::bad(), Whole::bad()};
  const std::optional<int64_t> by = divisor.as_number();
  std::map<Monomial, Whole> groups;
  for (const auto& [monomial, coefficient] : a.terms()) {
    Monomial others;
    Whole factor = coefficient;
    for (uint32_t i : monomial)
      if (atoms_[i].kind == symbol && !by)
        factor = factor * Whole::atom(i);
      else
        others.push_back(i);
    groups[others] = groups[others] + factor;
  }
  Whole whole, rest;
  for (const auto& [others, factor] : groups) {
    Whole atoms = 1;
    for (uint32_t i : others) atoms = atoms * Whole::atom(i);
    const std::optional<int64_t> number = factor.as_number();
    if (const std::optional<Whole> part = factor.divided_by(divisor)) {
      whole = whole + atoms * *part;
    } else if (others.empty() && number && by && *by > 0) {
      whole = whole + Whole(floor_div(*number, *by));
      rest = rest + Whole(floor_mod(*number, *by));
    } else {
      rest = rest + atoms * factor;
    }
  }
  if (is_never_negative(rest) && is_never_negative(divisor - rest - 1)) return {whole, rest};
  return {whole + Whole::atom(intern(quotient, rest, divisor)),
          Whole::atom(intern(remainder, rest, divisor))};
}

Whole Atoms::put(const Whole& a, uint32_t atom, const Whole& value) {
  if (a.is_bad()) return a;
  Whole sum;
  for (const auto& [monomial, coefficient] : a.terms()) {
    Whole product = coefficient;
    for (uint32_t i : monomial) {
      const Atom known = atoms_[i];
      const bool is_part = known.kind == quotient || known.kind == remainder;
      if (i == atom) {
        product = product * value;
      } else if (is_part && mentions(known.of, atom)) {
        const Parts parts = divide(put(known.of, atom, value), known.divisor);
        product = product * (known.kind == quotient ? parts.quotient : parts.remainder);
      } else {
        product = product * Whole::atom(i);
      }
    }
    sum = sum + product;
  }
  return sum;
}

// ---- Bounds -------------------------------------------------------------------------------------

// Symbols count from their least values. If no factor is negative then, nothing is; else the
// positive terms count as nothing and the negative ones as the most that they can be.
bool Atoms::of_symbols(const Whole& a) const {
  Whole shifted;
  for (const auto& [monomial, coefficient] : a.terms()) {
    Whole product = coefficient;
    for (uint32_t i : monomial) product = product * (Whole::atom(i) + Whole(atoms_[i].low));
    shifted = shifted + product;
  }
  if (shifted.is_bad()) return false;
  __int128 least = 0;
  for (const auto& [monomial, coefficient] : shifted.terms()) {
    if (coefficient > 0 && !monomial.empty()) continue;
    __int128 most = coefficient;
    for (uint32_t i : monomial) {
      most *= static_cast<__int128>(atoms_[i].high) - atoms_[i].low;
      if (most < -(__int128{1} << 62)) return false;
    }
    least += most;
  }
  return least >= 0;
}

bool Atoms::is_never_negative(const Whole& a, int depth) const {
  if (a.is_bad() || depth > kMaxDepth || ++work_ > kMaxQuestions) return false;
  // The newest atom: no other one is told by it.
  uint32_t newest = 0;
  bool is_plain = true;
  for (const auto& [monomial, coefficient] : a.terms())
    for (uint32_t i : monomial)
      if (atoms_[i].kind != symbol && (is_plain || i > newest)) newest = i, is_plain = false;
  if (is_plain) return of_symbols(a);
  Whole factor, rest;  // a = factor * atom + rest
  for (const auto& [monomial, coefficient] : a.terms()) {
    const auto count = std::ranges::count(monomial, newest);
    if (count > 1) return false;
    Whole term = coefficient;
    for (uint32_t i : monomial)
      if (i != newest) term = term * Whole::atom(i);
    (count == 1 ? factor : rest) = (count == 1 ? factor : rest) + term;
  }
  const bool rises = is_never_negative(factor, depth + 1);
  if (!rises && !is_never_negative(factor * Whole(-1), depth + 1)) return false;
  const Atom& atom = atoms_[newest];
  if (atom.kind == loop)
    return is_never_negative(rises ? rest : rest + factor * (atom.of - 1), depth + 1);
  if (atom.kind == remainder)
    return is_never_negative(rises ? rest : rest + factor * (atom.divisor - 1), depth + 1);
  // divisor * quotient lies between of - divisor + 1 and of.
  if (rises && is_never_negative(atom.of, depth + 1) && is_never_negative(rest, depth + 1))
    return true;
  const Whole times = rises ? atom.of - atom.divisor + 1 : atom.of;
  return is_never_negative(atom.divisor - 1, depth + 1) &&
         is_never_negative(factor * times + rest * atom.divisor, depth + 1);
}

// ---- Text ---------------------------------------------------------------------------------------

// "sum := product {(+|-) product}   product := factor {(*|/) factor}
//  factor := [-] (number | name | (sum))"
class Atoms::Parser {
 public:
  Parser(Atoms& atoms, std::string_view text) : atoms_(atoms), text_(text) {}

  Result<Whole> whole() {
    const Whole value = HONE_TRY(sum());
    if (!at_end()) return wrong();
    if (value.is_bad()) return bad_input("'{}' is too large", text_.substr(0, 60));
    return value;
  }

 private:
  Error wrong() const { return bad_input("'{}' is not a size", text_.substr(0, 60)); }
  bool at_end() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }
  bool eat(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<Whole> sum() {
    Whole total = HONE_TRY(product());
    for (;;) {
      if (eat('+'))
        total = total + HONE_TRY(product());
      else if (eat('-'))
        total = total - HONE_TRY(product());
      else
        return total;
    }
  }

  Result<Whole> product() {
    Whole total = HONE_TRY(factor());
    for (;;) {
      if (eat('*')) {
        total = total * HONE_TRY(factor());
      } else if (eat('/')) {
        const std::optional<int64_t> by = HONE_TRY(factor()).as_number();
        if (!by || *by < 1) return wrong();
        total = atoms_.divide(total, *by).quotient;
      } else {
        return total;
      }
    }
  }

  Result<Whole> factor() {
    if (++depth_ > 100) return wrong();
    const bool is_negative = eat('-');
    Whole value;
    if (eat('(')) {
      value = HONE_TRY(sum());
      if (!eat(')')) return wrong();
    } else {
      value = HONE_TRY(word());
    }
    --depth_;
    return is_negative ? value * Whole(-1) : value;
  }

  Result<Whole> word() {
    if (at_end()) return wrong();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty() || name.size() > 200) return wrong();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) {
      for (uint32_t i = 0; i < atoms_.atoms_.size(); ++i)
        if (atoms_.atoms_[i].kind == symbol && atoms_.atoms_[i].name == name)
          return Whole::atom(i) * Whole(atoms_.atoms_[i].step);
      return bad_input("there is no symbol '{}'", name);
    }
    int64_t number = 0;
    for (char c : name) {
      if (c < '0' || c > '9') return wrong();
      if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
          __builtin_add_overflow(number, int64_t{c - '0'}, &number))
        return wrong();
    }
    return Whole(number);
  }

  Atoms& atoms_;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

Result<Whole> Atoms::parse(std::string_view text) { return Parser(*this, text).whole(); }

}  // namespace hone::checker
