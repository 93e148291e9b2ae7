#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone {

// States of a search that are known to fail, by sums of their parts' hashes. If two want one place,
// the newer one stays. Sums have 128 bits, so that no two states share one in practice.
class Nogoods {
 public:
  struct Key {
    uint64_t high = 0;
    uint64_t low = 0;
    bool operator==(const Key&) const = default;
    void operator+=(const Key& other) {
      high += other.high;
      low += other.low;
    }
  };
  static Key hash(uint64_t part, uint64_t value) {
    const uint64_t seed = mixed(part * 0x9E3779B97F4A7C15 + value);
    return {seed, mixed(seed ^ (value * 0xC2B2AE3D27D4EB4F + part))};
  }

  explicit Nogoods(size_t places) : table_(places) {}  // a power of 2

  bool has(const Key& key) const { return table_[place(key)] == key; }
  void add(const Key& key) { table_[place(key)] = key; }

 private:
  static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  size_t place(const Key& key) const { return key.low & (table_.size() - 1); }

  std::vector<Key> table_;
};

}  // namespace hone
