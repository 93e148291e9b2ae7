#include "rules/numbers.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace hone {
namespace {

// Functions that are no op of their own. Ops have the hash of the op as their key.
enum Key : uint64_t { kLargest = 1, kSelect, kCompare, kInverse, kQuotient, kConstant, kVariable };

uint64_t key_of(std::string_view direction) { return hash_string(direction, kCompare); }

template <class T>
bool holds(std::string_view direction, T a, T b) {
  if (direction == "eq") return a == b;
  if (direction == "ne") return a != b;
  if (direction == "lt") return a < b;
  if (direction == "le") return a <= b;
  if (direction == "gt") return a > b;
  return a >= b;
}

uint64_t mixed(uint64_t seed, uint64_t key) { return hash_combine(hash_mix(seed), key); }

}  // namespace

// ---- The field ----------------------------------------------------------------------------------

FieldElement FieldNumbers::number(double value) const {
  if (std::isfinite(value)) return field_from_real(value);
  const FieldElement kind(std::isnan(value) ? 0 : value > 0 ? 1 : 2);
  return function(kConstant, std::span(&kind, 1));
}

FieldElement FieldNumbers::function(uint64_t key, std::span<const FieldElement> operands) const {
  uint64_t hash = mixed(seed_, key);
  for (FieldElement x : operands) hash = hash_combine(hash, x.residue());
  return FieldElement::from_residue(hash >> 3);
}

FieldElement FieldNumbers::largest(std::span<const FieldElement> list) const {
  std::vector<FieldElement> sorted(list.begin(), list.end());
  std::ranges::sort(sorted, {}, &FieldElement::residue);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  return sorted.size() == 1 ? sorted[0] : function(kLargest, sorted);
}

FieldElement FieldNumbers::compare(std::string_view direction, FieldElement a,
                                   FieldElement b) const {
  const FieldElement both[] = {a, b};
  return function(key_of(direction), both);
}

FieldElement FieldNumbers::select(FieldElement predicate, FieldElement a, FieldElement b) const {
  const FieldElement all[] = {predicate, a, b};
  return function(kSelect, all);
}

// ---- Other fields -------------------------------------------------------------------------------

namespace {

uint64_t product(uint64_t a, uint64_t b, uint64_t modulus) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % modulus);
}

uint64_t power_of(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = product(result, base, modulus);
    base = product(base, base, modulus);
  }
  return result;
}

// The test of Miller and Rabin; these bases are enough for all numbers of 64 bits.
bool is_prime(uint64_t n) {
  const int twos = std::countr_zero(n - 1);
  for (uint64_t base : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}) {
    if (n % base == 0) return n == base;
    uint64_t x = power_of(base, (n - 1) >> twos, n);
    bool passes = x == 1 || x == n - 1;
    for (int i = 1; i < twos && !passes; ++i) {
      x = product(x, x, n);
      passes = x == n - 1;
    }
    if (!passes) return false;
  }
  return true;
}

}  // namespace

PrimeNumbers::PrimeNumbers(Rng& rng) : seed_(rng.next()) {
  do prime_ = (uint64_t{1} << 61) + (rng.next() >> 3 | 1);
  while (!is_prime(prime_));
}

uint64_t PrimeNumbers::power(Number base, uint64_t exponent) const {
  return power_of(base, exponent, prime_);
}

// A whole number times a power of two.
uint64_t PrimeNumbers::number(double value) const {
  if (!std::isfinite(value)) {
    const uint64_t kind = std::isnan(value) ? 0 : value > 0 ? 1 : 2;
    return function(kConstant, std::span(&kind, 1));
  }
  int exponent = 0;
  const int64_t whole = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  const uint64_t scale = exponent >= 0 ? power(2, static_cast<uint64_t>(exponent))
                                       : power((prime_ + 1) / 2, static_cast<uint64_t>(-exponent));
  const uint64_t size = multiply(static_cast<uint64_t>(std::abs(whole)), scale);
  return whole < 0 ? negate(size) : size;
}

uint64_t PrimeNumbers::multiply(Number a, Number b) const { return product(a, b, prime_); }

uint64_t PrimeNumbers::divide(Number a, Number b) const {
  return multiply(a, power(b, prime_ - 2));
}

uint64_t PrimeNumbers::function(uint64_t key, std::span<const Number> operands) const {
  uint64_t hash = mixed(seed_, key);
  for (Number x : operands) hash = hash_combine(hash, x);
  return hash % prime_;
}

uint64_t PrimeNumbers::largest(std::span<const Number> list) const {
  std::vector<Number> sorted(list.begin(), list.end());
  std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  return sorted.size() == 1 ? sorted[0] : function(kLargest, sorted);
}

uint64_t PrimeNumbers::compare(std::string_view direction, Number a, Number b) const {
  const Number both[] = {a, b};
  return function(key_of(direction), both);
}

uint64_t PrimeNumbers::select(Number predicate, Number a, Number b) const {
  const Number all[] = {predicate, a, b};
  return function(kSelect, all);
}

// ---- Whole numbers ------------------------------------------------------------------------------

namespace {

constexpr __int128 kBound = __int128{1} << 100;
constexpr __int128 kLowest = -kBound;
constexpr int64_t kFunctionRange = 1000;

}  // namespace

__int128 OrderedNumbers::checked(Number a) {
  if (a > kBound || a < -kBound) {
    exact_ = false;
    return 0;
  }
  return a;
}

__int128 OrderedNumbers::number(double value) const {
  if (std::isinf(value)) return value > 0 ? kBound : kLowest;
  if (std::abs(value) <= 0x1p53 && value == std::floor(value)) return static_cast<int64_t>(value);
  const Number bits = static_cast<int64_t>(hash_mix(std::bit_cast<uint64_t>(value)) >> 2);
  return function(kConstant, std::span(&bits, 1));
}

__int128 OrderedNumbers::multiply(Number a, Number b) {
  const Number size = a < 0 ? -a : a, other = b < 0 ? -b : b;
  if (size != 0 && other > kBound / size) {
    exact_ = false;
    return 0;
  }
  return a * b;
}

__int128 OrderedNumbers::divide(Number a, Number b) const {
  const Number both[] = {a, b};
  return function(kQuotient, both);
}

__int128 OrderedNumbers::largest(std::span<const Number> list) const {
  return list.empty() ? kLowest : *std::ranges::max_element(list);
}

__int128 OrderedNumbers::compare(std::string_view direction, Number a, Number b) const {
  return holds(direction, a, b);
}

__int128 OrderedNumbers::function(uint64_t key, std::span<const Number> operands) const {
  uint64_t hash = mixed(seed_, key);
  for (Number x : operands) {
    hash = hash_combine(hash, static_cast<uint64_t>(x));
    hash = hash_combine(hash, static_cast<uint64_t>(x >> 64));
  }
  return static_cast<int64_t>(hash % (2 * kFunctionRange + 1)) - kFunctionRange;
}

// ---- Polynomials --------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxPolynomialTerms = 4096;
constexpr size_t kMaxStored = size_t{1} << 21;  // polynomials and terms, about 100 bytes each

}  // namespace

Polynomials::Polynomials() { intern({}); }

Polynomials::Number Polynomials::intern(Terms terms) {
  if (terms.size() > kMaxPolynomialTerms || polynomials_.size() + stored_ > kMaxStored) {
    exact_ = false;
    return 0;
  }
  const auto [at, is_new] =
      numbers_.emplace(std::move(terms), static_cast<Number>(polynomials_.size()));
  if (is_new) {
    stored_ += at->first.size();
    polynomials_.push_back(&at->first);
  }
  return at->second;
}

uint32_t Polynomials::atom(uint64_t key, std::vector<uint32_t> operands) {
  Atom atom = {key, std::move(operands)};
  const auto [at, is_new] = atom_ids_.emplace(atom, static_cast<uint32_t>(atoms_.size()));
  if (is_new) atoms_.push_back(std::move(atom));
  return at->second;
}

Polynomials::Number Polynomials::of_atom(uint32_t atom) { return intern({{{atom}, 1}}); }

void Polynomials::add_term(Terms& terms, const Monomial& monomial, int64_t coefficient) {
  const auto at = terms.emplace(monomial, 0).first;
  if (__builtin_add_overflow(at->second, coefficient, &at->second)) exact_ = false;
  if (at->second == 0) terms.erase(at);
}

Polynomials::Number Polynomials::variable(uint64_t id) {
  return of_atom(atom(hash_combine(kVariable, id), {}));
}

Polynomials::Number Polynomials::number(double value) {
  if (std::abs(value) <= 0x1p53 && value == std::floor(value)) {
    if (value == 0) return 0;
    return intern({{{}, static_cast<int64_t>(value)}});
  }
  return of_atom(atom(hash_combine(kConstant, std::bit_cast<uint64_t>(value)), {}));
}

Polynomials::Number Polynomials::add(Number a, Number b) {
  if (a == 0) return b;
  if (b == 0) return a;
  Terms sum = terms_of(a);
  for (const auto& [monomial, coefficient] : terms_of(b)) add_term(sum, monomial, coefficient);
  return intern(std::move(sum));
}

Polynomials::Number Polynomials::negate(Number a) {
  Terms negated = terms_of(a);
  for (auto& [monomial, coefficient] : negated) {
    if (coefficient == INT64_MIN)
      exact_ = false;
    else
      coefficient = -coefficient;
  }
  return intern(std::move(negated));
}

Polynomials::Number Polynomials::multiply(Number a, Number b) {
  if (a == 0 || b == 0) return 0;
  Terms product;
  if (terms_of(a).size() * terms_of(b).size() > kMaxPolynomialTerms) {
    exact_ = false;
    return 0;
  }
  for (const auto& [left, x] : terms_of(a)) {
    for (const auto& [right, y] : terms_of(b)) {
      Monomial both;
      std::ranges::merge(left, right, std::back_inserter(both));
      int64_t coefficient = 0;
      if (__builtin_mul_overflow(x, y, &coefficient))
        exact_ = false;
      else
        add_term(product, both, coefficient);
    }
  }
  return intern(std::move(product));
}

// For one monomial: the product of the inverses of its atoms.
Polynomials::Number Polynomials::inverse(Number a) {
  const Terms terms = terms_of(a);
  if (terms.size() != 1) return of_atom(atom(kInverse, {a}));
  const auto& [monomial, coefficient] = *terms.begin();
  Number result = number(1);
  if (coefficient != 1)
    result =
        coefficient == -1 ? number(-1) : of_atom(atom(kInverse, {intern({{{}, coefficient}})}));
  for (uint32_t factor : monomial)
    result = multiply(result, of_atom(atom(kInverse, {of_atom(factor)})));
  return result;
}

Polynomials::Number Polynomials::divide(Number a, Number b) { return multiply(a, inverse(b)); }

std::optional<int64_t> Polynomials::constant(Number a) const {
  const Terms& terms = terms_of(a);
  if (terms.empty()) return 0;
  if (terms.size() > 1 || !terms.begin()->first.empty()) return std::nullopt;
  return terms.begin()->second;
}

// The largest of a set; a largest among them gives its own set.
Polynomials::Number Polynomials::largest(std::span<const Number> list) {
  std::vector<uint32_t> set;
  for (Number a : list) {
    const Terms& terms = terms_of(a);
    const bool is_atom =
        terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1;
    const Atom* inner = is_atom ? &atoms_[terms.begin()->first[0]] : nullptr;
    if (inner != nullptr && inner->key == kLargest)
      set.insert(set.end(), inner->operands.begin(), inner->operands.end());
    else
      set.push_back(a);
  }
  std::ranges::sort(set);
  set.erase(std::ranges::unique(set).begin(), set.end());
  return set.size() == 1 ? set[0] : of_atom(atom(kLargest, std::move(set)));
}

Polynomials::Number Polynomials::compare(std::string_view direction, Number a, Number b) {
  if (const std::optional<int64_t> difference = constant(add(a, negate(b))))
    return number(holds(direction, *difference, int64_t{0}));
  return of_atom(atom(key_of(direction), {a, b}));
}

Polynomials::Number Polynomials::select(Number predicate, Number a, Number b) {
  if (const std::optional<int64_t> known = constant(predicate)) return *known != 0 ? a : b;
  return a == b ? a : of_atom(atom(kSelect, {predicate, a, b}));
}

Polynomials::Number Polynomials::function(uint64_t key, std::span<const Number> operands) {
  return of_atom(atom(key, {operands.begin(), operands.end()}));
}

}  // namespace hone
