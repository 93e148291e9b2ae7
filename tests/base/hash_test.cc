#include "base/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <unordered_set>
#include <vector>

namespace hone::HONE_FILE {
namespace {

// Written down once: a difference means that every cache on disk would be lost.
TEST(Hash, ValuesAreStable) {
  EXPECT_EQ(hash_string(""), 0x5e9c27a326e2892bu);
  EXPECT_EQ(hash_string("hone"), 0x327c23432332b47du);
  EXPECT_EQ(hash_string(std::string(1000, 'x')), 0x0a9b122741895a43u);
  EXPECT_EQ(hash_combine(1, 2), 0x26dafbee4332b426u);
}

TEST(Hash, EveryLengthAndEveryByteCounts) {
  std::unordered_set<uint64_t> seen;
  for (size_t length = 0; length <= 200; ++length) {
    std::string text(length, '\0');
    EXPECT_TRUE(seen.insert(hash_string(text)).second) << length;
    for (size_t at = 0; at < length; ++at) {
      text[at] = 1;
      EXPECT_TRUE(seen.insert(hash_string(text)).second) << length << " " << at;
      text[at] = 0;
    }
  }
}

TEST(Hash, SeedAndOrderMatter) {
  EXPECT_NE(hash_string("abc", 1), hash_string("abc", 2));
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
}

// One flipped input bit flips each output bit with a probability close to one half.
TEST(Hash, Avalanches) {
  for (size_t length : {4, 8, 16, 40, 100}) {
    const int trials = 400;
    std::vector<int> flips(64, 0);
    for (int trial = 0; trial < trials; ++trial) {
      std::string text(length, '\0');
      for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>(hash_mix(trial * 131 + i));
      const uint64_t before = hash_string(text);
      const size_t bit = hash_mix(trial) % (8 * length);
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
      const uint64_t changed = before ^ hash_string(text);
      for (int i = 0; i < 64; ++i) flips[i] += changed >> i & 1;
    }
    for (int i = 0; i < 64; ++i) EXPECT_NEAR(flips[i], trials / 2, 55) << length << " bit " << i;
  }
}

TEST(Hash, CombineHasNoCollisionsOnSmallPairs) {
  std::unordered_set<uint64_t> seen;
  std::unordered_set<uint64_t> low;
  for (uint64_t a = 0; a < 300; ++a) {
    for (uint64_t b = 0; b < 300; ++b) {
      EXPECT_TRUE(seen.insert(hash_combine(a, b)).second);
      low.insert(hash_combine(a, b) & 0xffff);
    }
  }
  // 90,000 balls in 65,536 bins leave about exp(-1.37) = 25 % empty.
  EXPECT_NEAR(static_cast<double>(low.size()), 65536 * (1 - std::exp(-90000.0 / 65536)), 600);
}

TEST(Hasher, StringsAreDelimited) {
  EXPECT_NE(Hasher().add("ab").add("c").value(), Hasher().add("a").add("bc").value());
  EXPECT_NE(Hasher().add("").value(), Hasher().value());
}

TEST(Hasher, IntegersCountByValueAndRangesByLength) {
  EXPECT_EQ(Hasher().add(int32_t{-7}).value(), Hasher().add(int64_t{-7}).value());
  EXPECT_NE(Hasher().add(0.0).value(), Hasher().add(-0.0).value());
  const std::vector<std::vector<int>> ranges = {{}, {0}, {0, 0}, {1, 0}, {0, 1}};
  std::unordered_set<uint64_t> seen;
  for (const std::vector<int>& range : ranges) seen.insert(Hasher().add_range(range).value());
  EXPECT_EQ(seen.size(), ranges.size());
}

}  // namespace
}  // namespace hone::HONE_FILE
