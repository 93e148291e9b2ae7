#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

// Sizes that are divided together, and by which numbers.
//
// A divisor is a product of primes, and the primes are taken one at a time. Dims of one class are
// divided by the same number. A balance says that the divisors of two sets of dims have the same
// product, as those on the two sides of a reshape. Both hold for each prime alone: the exponents
// of equal primes add up to the same number.

namespace hone {

class SizeClasses {
 public:
  // No size above 1 becomes smaller than `least`, which is at least 1.
  explicit SizeClasses(int64_t least) : least_(least) {}

  // A dim of this size, alone in its class.
  int add(int64_t size);
  void join(int a, int b);
  void balance(std::vector<int> left, std::vector<int> right);
  // The dim keeps its size.
  void pin(int dim);

  bool is_pinned(int dim) const;
  int class_of(int dim) const;  // one of the dims of the class
  int64_t divisor(int dim) const { return classes_[at(class_of(dim))].divisor; }
  int64_t size(int dim) const { return sizes_[at(dim)] / divisor(dim); }
  // The largest size in the class as it is now.
  int64_t largest(int dim) const;
  // The number by which all sizes of the class can be divided.
  int64_t common(int dim) const;
  std::vector<int> classes() const;

  // Divides the class by the prime, and what must be divided with it. False: it cannot be; all is
  // as before.
  bool divide(int dim, int64_t prime);
  // All divisors are 1 again.
  void reset();

 private:
  struct Class {
    int64_t largest = 0;  // as given
    int64_t smallest = 0;
    int64_t common = 0;
    int64_t divisor = 1;
    bool pinned = false;
    std::vector<int> balances = {};
  };
  struct Balance {
    std::vector<int> left;
    std::vector<int> right;
  };
  using Raised = std::map<int, int>;  // class -> how often it is divided by the prime

  static size_t at(int i) { return static_cast<size_t>(i); }
  bool can_raise(int c, int64_t prime, const Raised& raised) const;
  int excess(const Balance& balance, const Raised& raised) const;  // of the left side
  bool settle(int64_t prime, Raised& raised, std::vector<int> open, int& steps) const;

  const int64_t least_;
  std::vector<int64_t> sizes_;
  mutable std::vector<int> parent_;
  std::vector<Class> classes_;  // by dim; of those that stand for their class
  std::vector<Balance> balances_;
};

}  // namespace hone
