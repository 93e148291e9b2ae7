#pragma once

#include "base/hash.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hone {

// Hash-consing: equal values get the same pointer, so that comparing and hashing them later is
// comparing and hashing a pointer. T has `hash() const` (any integer) and operator==, and equal
// values have equal hashes. The pointers live as long as the interner, which never forgets.
//
// Safe for concurrent use. Finding a known value takes no lock; adding one locks a shard.
template <class T>
class Interner {
 public:
  Interner() = default;
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  const T* intern(T value) {
    const uint64_t hash = hash_mix(static_cast<uint64_t>(value.hash()));
    Shard& shard = shard_of(hash);
    if (const T* known = shard.find(value, hash)) return known;
    return shard.insert(std::move(value), hash);
  }

  // The pointer of an interned value, null if the value was never interned.
  const T* find(const T& value) const {
    const uint64_t hash = hash_mix(static_cast<uint64_t>(value.hash()));
    return shard_of(hash).find(value, hash);
  }

  size_t size() const {
    size_t total = 0;
    for (const Shard& shard : shards_) total += shard.size();
    return total;
  }

 private:
  struct Entry {
    uint64_t hash;
    T value;
  };

  // Open addressing with linear probing; slots go from null to an entry once and never back.
  struct Table {
    explicit Table(size_t capacity) : mask(capacity - 1), slots(capacity) {}
    size_t mask;
    std::vector<std::atomic<const Entry*>> slots;
  };

  class alignas(64) Shard {
   public:
    const T* find(const T& value, uint64_t hash) const {
      const Table* table = current_.load(std::memory_order_acquire);
      if (table == nullptr) return nullptr;
      for (size_t at = hash & table->mask;; at = (at + 1) & table->mask) {
        const Entry* entry = table->slots[at].load(std::memory_order_acquire);
        if (entry == nullptr) return nullptr;
        if (entry->hash == hash && entry->value == value) return &entry->value;
      }
    }

    const T* insert(T&& value, uint64_t hash) {
      std::lock_guard lock(mutex_);
      // Another thread may have come first.
      if (const T* known = find(value, hash)) return known;
      if (tables_.empty() || 2 * (entries_.size() + 1) > tables_.back()->slots.size()) grow();
      const Entry& entry = entries_.emplace_back(Entry{hash, std::move(value)});
      place(*tables_.back(), entry);
      return &entry.value;
    }

    size_t size() const {
      std::lock_guard lock(mutex_);
      return entries_.size();
    }

   private:
    // Readers may still be in the old table, so it stays; all old ones together are no larger
    // than the current one.
    void grow() {
      const size_t capacity = tables_.empty() ? 16 : 2 * tables_.back()->slots.size();
      tables_.push_back(std::make_unique<Table>(capacity));
      for (const Entry& entry : entries_) place(*tables_.back(), entry);
      current_.store(tables_.back().get(), std::memory_order_release);
    }

    static void place(Table& table, const Entry& entry) {
      size_t at = entry.hash & table.mask;
      while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
      table.slots[at].store(&entry, std::memory_order_release);
    }

    std::atomic<const Table*> current_ = nullptr;
    mutable std::mutex mutex_;                    // Guards what follows.
    std::vector<std::unique_ptr<Table>> tables_;  // The last one is *current_.
    std::deque<Entry> entries_;                   // A deque never moves its elements.
  };

  static constexpr int shard_bits = 4;

  // The high bits choose the shard, the low ones the slot.
  Shard& shard_of(uint64_t hash) { return shards_[hash >> (64 - shard_bits)]; }
  const Shard& shard_of(uint64_t hash) const { return shards_[hash >> (64 - shard_bits)]; }

  std::array<Shard, size_t{1} << shard_bits> shards_;
};

}  // namespace hone
