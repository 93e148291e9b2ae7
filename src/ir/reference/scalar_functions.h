#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// The meaning of binary ops for two scalars, as elementwise.h wants it; collectives use them too.
// Integers compute modulo 2^bits; bool is meant only where a function says so.

namespace hone::scalar {

struct Add {
  static constexpr bool kRing = true;
  template <class T>
  static T real(T a, T b) {
    return a + b;
  }
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};

struct Sub {
  static constexpr bool kRing = true;
  template <class T>
  static T real(T a, T b) {
    return a - b;
  }
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};

struct Mul {
  static constexpr bool kRing = true;
  template <class T>
  static T real(T a, T b) {
    return a * b;
  }
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

struct Div {
  static constexpr bool kRing = true;
  template <class T>
  static T real(T a, T b) {
    return a / b;
  }
  template <class T>
  static T integer(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub::integer(T(0), a);  // lowest / -1 overflows
    }
    return static_cast<T>(a / b);
  }
};

struct Rem {
  template <class T>
  static T real(T a, T b) {
    return std::fmod(a, b);
  }
  template <class T>
  static T integer(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;  // lowest % -1 traps
    }
    return static_cast<T>(a % b);
  }
};

struct Pow {
  template <class T>
  static T real(T a, T b) {
    return std::pow(a, b);
  }
  template <class T>
  static T integer(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return static_cast<T>(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
    }
    uint64_t result = 1;
    uint64_t square = static_cast<uint64_t>(a);
    for (uint64_t bits = static_cast<uint64_t>(b); bits != 0; bits >>= 1, square *= square) {
      if (bits & 1) result *= square;
    }
    return static_cast<T>(result);
  }
};

// NaN wins, and -0 is below +0.
struct Max {
  template <class T>
  static T real(T a, T b) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
  template <class T>
  static T integer(T a, T b) {
    return a > b ? a : b;
  }
};

struct Min {
  template <class T>
  static T real(T a, T b) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
  template <class T>
  static T integer(T a, T b) {
    return a < b ? a : b;
  }
};

struct Atan2 {
  template <class T>
  static T real(T a, T b) {
    return std::atan2(a, b);
  }
};

struct And {  // bool too
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {  // bool too
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {  // bool too
  template <class T>
  static T integer(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T>
bool shifts_all_out(T amount) {
  return static_cast<uint64_t>(amount) >= 8 * sizeof(T);  // a negative amount is a huge one
}

struct ShiftLeft {
  template <class T>
  static T integer(T a, T amount) {
    if (shifts_all_out(amount)) return 0;
    return static_cast<T>(static_cast<uint64_t>(a) << static_cast<uint64_t>(amount));
  }
};

struct ShiftRight {
  template <class T>
  static T integer(T a, T amount) {
    if (shifts_all_out(amount)) return static_cast<T>(a < 0 ? -1 : 0);
    return static_cast<T>(a >> static_cast<uint64_t>(amount));
  }
};

// Comparisons; NaN is unequal to everything.
#define HONE_COMPARISON(Name, symbol) \
  struct Name {                       \
    template <class T>                \
    static bool real(T a, T b) {      \
      return a symbol b;              \
    }                                 \
    template <class T>                \
    static bool integer(T a, T b) {   \
      return a symbol b;              \
    }                                 \
  };
HONE_COMPARISON(Eq, ==)
HONE_COMPARISON(Ne, !=)
HONE_COMPARISON(Lt, <)
HONE_COMPARISON(Le, <=)
HONE_COMPARISON(Gt, >)
HONE_COMPARISON(Ge, >=)
#undef HONE_COMPARISON

}  // namespace hone::scalar
