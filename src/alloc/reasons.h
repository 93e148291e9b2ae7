#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone {

// A set of blocks.
class BlockSet {
 public:
  explicit BlockSet(size_t count = 0) : words_((count + 63) / 64) {}

  bool has(uint16_t block) const { return (words_[block / 64] >> (block % 64) & 1) != 0; }
  void remove(uint16_t block) { words_[block / 64] &= ~(uint64_t{1} << (block % 64)); }
  void clear() { std::ranges::fill(words_, 0); }

  std::vector<uint64_t>& words() { return words_; }
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
};

// A set for each block, and how they were before.
class Reasons {
 public:
  explicit Reasons(size_t count = 0)
      : words_((count + 63) / 64), sets_(count * words_), saved_at_(count) {}

  // Changes of a set are undone to the last mark.
  void add(uint16_t to, const BlockSet& set) { add(change(to), set.words().data()); }
  void add(uint16_t to, uint16_t of) { add(change(to), &sets_[of * words_]); }
  void add_block(uint16_t to, uint16_t block) {
    change(to)[block / 64] |= uint64_t{1} << (block % 64);
  }
  void add_to(BlockSet& set, uint16_t of) const { add(set.words().data(), &sets_[of * words_]); }

  size_t mark() const { return last_mark_ = saved_.size(); }
  void undo(size_t mark) {
    for (; saved_.size() > mark; saved_.pop_back()) {
      const Saved& last = saved_.back();
      std::copy_n(saved_words_.end() - static_cast<ptrdiff_t>(words_), words_,
                  &sets_[last.block * words_]);
      saved_words_.resize(saved_words_.size() - words_);
      saved_at_[last.block] = last.saved_at;
    }
    last_mark_ = mark;
  }

 private:
  void add(uint64_t* to, const uint64_t* from) const {
    for (size_t w = 0; w < words_; ++w) to[w] |= from[w];
  }
  uint64_t* change(uint16_t block) {
    uint64_t* const set = &sets_[block * words_];
    if (saved_at_[block] <= last_mark_) {
      saved_words_.insert(saved_words_.end(), set, set + words_);
      saved_.push_back({block, saved_at_[block]});
      saved_at_[block] = saved_.size();
    }
    return set;
  }

  struct Saved {
    uint16_t block;
    size_t saved_at;
  };
  size_t words_;
  std::vector<uint64_t> sets_;
  std::vector<size_t> saved_at_;  // behind its last place in saved_; 0: none
  std::vector<Saved> saved_;
  std::vector<uint64_t> saved_words_;
  mutable size_t last_mark_ = 0;
};

}  // namespace hone
