#include "oracle/size_classes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone {

int SizeClasses::add(int64_t size) {
  const int dim = static_cast<int>(sizes_.size());
  sizes_.push_back(size);
  parent_.push_back(dim);
  classes_.push_back({.largest = size, .smallest = size, .common = size, .pinned = size <= 1});
  return dim;
}

int SizeClasses::class_of(int dim) const {
  while (parent_[at(dim)] != dim) dim = parent_[at(dim)] = parent_[at(parent_[at(dim)])];
  return dim;
}

void SizeClasses::join(int a, int b) {
  a = class_of(a);
  b = class_of(b);
  if (a == b) return;
  if (classes_[at(a)].balances.size() < classes_[at(b)].balances.size()) std::swap(a, b);
  Class& kept = classes_[at(a)];
  Class& gone = classes_[at(b)];
  kept.largest = std::max(kept.largest, gone.largest);
  kept.smallest = std::min(kept.smallest, gone.smallest);
  kept.common = std::gcd(kept.common, gone.common);
  kept.pinned = kept.pinned || gone.pinned;
  kept.balances.insert(kept.balances.end(), gone.balances.begin(), gone.balances.end());
  parent_[at(b)] = a;
}

void SizeClasses::balance(std::vector<int> left, std::vector<int> right) {
  const int number = static_cast<int>(balances_.size());
  for (const std::vector<int>* side : {&left, &right})
    for (int dim : *side) classes_[at(class_of(dim))].balances.push_back(number);
  balances_.push_back({std::move(left), std::move(right)});
}

void SizeClasses::pin(int dim) { classes_[at(class_of(dim))].pinned = true; }

bool SizeClasses::is_pinned(int dim) const { return classes_[at(class_of(dim))].pinned; }

int64_t SizeClasses::largest(int dim) const {
  const Class& one = classes_[at(class_of(dim))];
  return one.largest / one.divisor;
}

int64_t SizeClasses::common(int dim) const {
  const Class& one = classes_[at(class_of(dim))];
  return one.common / one.divisor;
}

std::vector<int> SizeClasses::classes() const {
  std::vector<int> all;
  for (size_t i = 0; i < parent_.size(); ++i)
    if (parent_[i] == static_cast<int>(i)) all.push_back(parent_[i]);
  return all;
}

void SizeClasses::reset() {
  for (Class& one : classes_) one.divisor = 1;
}

bool SizeClasses::can_raise(int c, int64_t prime, const Raised& raised) const {
  const Class& one = classes_[at(c)];
  if (one.pinned) return false;
  const auto found = raised.find(c);
  int64_t common = one.common / one.divisor, smallest = one.smallest / one.divisor;
  for (int times = 1 + (found == raised.end() ? 0 : found->second); times > 0; --times) {
    if (common % prime != 0) return false;
    common /= prime;
    smallest /= prime;
  }
  return smallest >= least_;
}

int SizeClasses::excess(const Balance& balance, const Raised& raised) const {
  const auto sum = [&](const std::vector<int>& dims) {
    int count = 0;
    for (int dim : dims)
      if (const auto found = raised.find(class_of(dim)); found != raised.end())
        count += found->second;
    return count;
  };
  return sum(balance.left) - sum(balance.right);
}

// Depth first: what is open is made even by one class after another on its lighter side.
bool SizeClasses::settle(int64_t prime, Raised& raised, std::vector<int> open, int& steps) const {
  while (!open.empty() && excess(balances_[at(open.back())], raised) == 0) open.pop_back();
  if (open.empty()) return true;
  const Balance& balance = balances_[at(open.back())];
  const std::vector<int>& lighter = excess(balance, raised) > 0 ? balance.right : balance.left;
  std::vector<int> choices;
  for (int dim : lighter) choices.push_back(class_of(dim));
  std::ranges::sort(choices, [&](int a, int b) {
    return largest(a) != largest(b) ? largest(a) > largest(b) : a < b;
  });
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  for (int c : choices) {
    if (!can_raise(c, prime, raised)) continue;
    if (--steps < 0) return false;
    ++raised[c];
    std::vector<int> next = open;
    const std::vector<int>& others = classes_[at(c)].balances;
    next.insert(next.end(), others.begin(), others.end());
    if (settle(prime, raised, std::move(next), steps)) return true;
    if (--raised[c] == 0) raised.erase(c);
  }
  return false;
}

bool SizeClasses::divide(int dim, int64_t prime) {
  constexpr int kMostSteps = 2000;
  int steps = kMostSteps;
  const int c = class_of(dim);
  Raised raised;
  if (!can_raise(c, prime, raised)) return false;
  raised[c] = 1;
  if (!settle(prime, raised, classes_[at(c)].balances, steps)) return false;
  for (const auto& [one, count] : raised)
    for (int i = 0; i < count; ++i) classes_[at(one)].divisor *= prime;
  return true;
}

}  // namespace hone
