#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/type.h"

// The numbers that the reference evaluator computes with. A domain names two scalars: one for the
// elements of real tensors, one for integers and bools. An op's evaluation is written once, as a
// template on the domain.

namespace hone {

// The prime field of 2^61 - 1: exact, so two programs of ring operations that agree on random
// inputs are equal with overwhelming probability.
class FieldElement {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  constexpr FieldElement() = default;
  constexpr FieldElement(int64_t number)  // NOLINT: implicit
      : residue_(number >= 0 ? static_cast<uint64_t>(number) % kPrime
                             : kPrime - 1 - static_cast<uint64_t>(-(number + 1)) % kPrime) {}
  static constexpr FieldElement from_residue(uint64_t r) {
    FieldElement e;
    e.residue_ = r % kPrime;
    return e;
  }
  constexpr uint64_t residue() const { return residue_; }
  constexpr bool operator==(const FieldElement&) const = default;

  friend constexpr FieldElement operator+(FieldElement a, FieldElement b) {
    return reduced(a.residue_ + b.residue_);
  }
  friend constexpr FieldElement operator-(FieldElement a, FieldElement b) {
    return reduced(a.residue_ + kPrime - b.residue_);
  }
  friend constexpr FieldElement operator-(FieldElement a) { return FieldElement() - a; }
  friend constexpr FieldElement operator*(FieldElement a, FieldElement b) {
    unsigned __int128 product = static_cast<unsigned __int128>(a.residue_) * b.residue_;
    return reduced(static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61));
  }
  // The inverse; 0 gives 0.
  constexpr FieldElement inverse() const {
    FieldElement result(1), base = *this;
    for (uint64_t e = kPrime - 2; e != 0; e >>= 1, base = base * base)
      if (e & 1) result = result * base;
    return result;
  }
  friend constexpr FieldElement operator/(FieldElement a, FieldElement b) {
    return a * b.inverse();
  }
  FieldElement& operator+=(FieldElement b) { return *this = *this + b; }

 private:
  static constexpr FieldElement reduced(uint64_t r) {
    FieldElement e;
    e.residue_ = r >= kPrime ? r - kPrime : r;
    return e;
  }
  uint64_t residue_ = 0;
};

// The field element of a finite number: m * 2^e, where 2^61 = 1.
FieldElement field_from_real(double value);

// A sorted set of the ids of input elements; shared, since most results copy one.
class DependencySet {
 public:
  DependencySet() = default;
  explicit DependencySet(uint32_t id) : ids_(std::make_shared<std::vector<uint32_t>>(1, id)) {}
  std::span<const uint32_t> ids() const {
    return ids_ ? std::span<const uint32_t>(*ids_) : std::span<const uint32_t>();
  }
  friend DependencySet operator|(const DependencySet& a, const DependencySet& b);

 private:
  std::shared_ptr<const std::vector<uint32_t>> ids_;
};

inline DependencySet operator|(const DependencySet& a, const DependencySet& b) {
  if (!a.ids_ || a.ids_ == b.ids_) return b;
  if (!b.ids_) return a;
  auto merged = std::make_shared<std::vector<uint32_t>>();
  std::set_union(a.ids_->begin(), a.ids_->end(), b.ids_->begin(), b.ids_->end(),
                 std::back_inserter(*merged));
  DependencySet set;
  set.ids_ = std::move(merged);
  return set;
}

// A number together with the input elements that it was computed from.
template <class T>
struct Tracked {
  T value{};
  DependencySet from;
  Tracked() = default;
  Tracked(T v) : value(v) {}  // NOLINT: implicit
  Tracked(T v, DependencySet f) : value(v), from(std::move(f)) {}
  friend Tracked operator+(const Tracked& a, const Tracked& b) {
    return {a.value + b.value, a.from | b.from};
  }
  friend Tracked operator-(const Tracked& a, const Tracked& b) {
    return {a.value - b.value, a.from | b.from};
  }
  friend Tracked operator*(const Tracked& a, const Tracked& b) {
    return {a.value * b.value, a.from | b.from};
  }
  friend Tracked operator/(const Tracked& a, const Tracked& b) {
    return {a.value / b.value, a.from | b.from};
  }
  friend Tracked operator-(const Tracked& a) { return {-a.value, a.from}; }
  Tracked& operator+=(const Tracked& b) { return *this = *this + b; }
};

struct WideDomain {  // the oracle: double, exact integers
  using Real = double;
  using Int = int64_t;
};
struct Fp32Domain {  // plain float arithmetic
  using Real = float;
  using Int = int64_t;
};
struct FieldDomain {  // ring operations only; integers stay integers
  using Real = FieldElement;
  using Int = int64_t;
};
struct DependencyDomain {  // wide, and where each number came from
  using Real = Tracked<double>;
  using Int = Tracked<int64_t>;
};

// Real numbers with order, exp, and so on; false for field elements.
template <class T>
inline constexpr bool is_ordered_real = !std::is_same_v<T, FieldElement>;
template <class T>
inline constexpr bool is_tracked = false;
template <class T>
inline constexpr bool is_tracked<Tracked<T>> = true;

// The plain number inside; for control decisions and indices.
inline double plain(double x) { return x; }
inline float plain(float x) { return x; }
inline int64_t plain(int64_t x) { return x; }
template <class T>
T plain(const Tracked<T>& x) {
  return x.value;
}

// fn applied to the number inside; a tracked result remembers its operands.
template <class Fn, class T>
auto lift(const Fn& fn, const T& a) {
  if constexpr (is_tracked<T>) {
    return Tracked<decltype(fn(a.value))>(fn(a.value), a.from);
  } else {
    return fn(a);
  }
}
template <class Fn, class A, class B>
auto lift(const Fn& fn, const A& a, const B& b) {
  if constexpr (is_tracked<A>) {
    return Tracked<decltype(fn(a.value, b.value))>(fn(a.value, b.value), a.from | b.from);
  } else {
    return fn(a, b);
  }
}
// `x` that also came from `other`: for values chosen by an index or a predicate.
template <class T, class U>
T depending_on(T x, const U& other) {
  if constexpr (is_tracked<T> && is_tracked<U>) x.from = x.from | other.from;
  return x;
}

// Leaves numbers unwritten where a vector would make them zero.
template <class T>
struct UnwrittenAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnwrittenAllocator<U>;
  };
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

enum class Initial : uint8_t { zero, unwritten };

// A tensor during evaluation: row-major elements of the domain's scalars. Integers are held as
// canonical images (dtype.h: wrap_to), bools as 0 or 1.
template <class D>
class Buffer {
 public:
  using Real = typename D::Real;
  using Int = typename D::Int;

  Buffer() = default;
  explicit Buffer(Type type, Initial initial = Initial::zero) : type_(type) {
    size_t count = static_cast<size_t>(type.static_elements());
    auto make = [&]<class T>(std::type_identity<T>) {
      auto& elements = data_.template emplace<Elements<T>>();
      if (initial == Initial::zero)
        elements.resize(count, T{});
      else
        elements.resize(count);
    };
    if (is_real(type.dtype()))
      make(std::type_identity<Real>());
    else
      make(std::type_identity<Int>());
    // Evaluations take offsets from the first element before they find that there is none; from a
    // null pointer that would be undefined.
    if (count == 0) std::visit([](auto& elements) { elements.reserve(1); }, data_);
  }

  Type type() const { return type_; }
  DType dtype() const { return type_.dtype(); }
  Ints dims() const { return type_.static_dims(); }
  size_t size() const {
    return std::visit([](const auto& v) { return v.size(); }, data_);
  }
  bool holds_reals() const { return data_.index() == 0; }
  std::span<const Real> reals() const { return std::get<0>(data_); }
  std::span<Real> reals() { return std::get<0>(data_); }
  std::span<const Int> ints() const { return std::get<1>(data_); }
  std::span<Int> ints() { return std::get<1>(data_); }
  template <class T>
  std::span<const T> as() const {
    return std::get<Elements<T>>(data_);
  }
  template <class T>
  std::span<T> as() {
    return std::get<Elements<T>>(data_);
  }

  // The same elements under another type of equal element count and scalar (reshape).
  Buffer retyped(Type type) && {
    Buffer b;
    b.type_ = type;
    b.data_ = std::move(data_);
    return b;
  }

 private:
  template <class T>
  using Elements = std::vector<T, UnwrittenAllocator<T>>;

  Type type_;
  std::variant<Elements<Real>, Elements<Int>> data_;
};

}  // namespace hone
