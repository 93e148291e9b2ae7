#include "alloc/arena.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/rng.h"

namespace hone {
namespace {

bool overlap(const ArenaItem& a, int64_t at, const ArenaItem& b, int64_t bt) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  return in_time && at < bt + b.bytes && bt < at + a.bytes;
}

void expect_valid(std::span<const ArenaItem> items, const Arena& arena) {
  int64_t end = 0;
  ASSERT_EQ(arena.offsets.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_GE(arena.offsets[i], 0);
    if (items[i].offset) {
      EXPECT_EQ(arena.offsets[i], *items[i].offset);
    } else {
      EXPECT_EQ(arena.offsets[i] % items[i].alignment, 0);
    }
    end = std::max(end, arena.offsets[i] + items[i].bytes);
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(overlap(items[i], arena.offsets[i], items[j], arena.offsets[j]))
          << i << " " << j;
  }
  EXPECT_EQ(arena.bytes, end);
  EXPECT_GE(arena.bytes, peak_bytes(items));
}

std::vector<ArenaItem> random_items(uint64_t seed, int64_t count) {
  Rng rng(seed);
  std::vector<ArenaItem> items;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = rng.between(0, count);
    items.push_back({first, first + rng.between(0, 20), rng.between(0, 1000),
                     rng.chance(0.5) ? 64 : rng.between(1, 100)});
  }
  return items;
}

TEST(Arena, OfNothingIsEmpty) { EXPECT_EQ(place({}).bytes, 0); }

TEST(Arena, ReusesMemory) {
  const ArenaItem items[] = {{0, 1, 100}, {1, 2, 200}, {2, 3, 100}, {3, 4, 200}};
  const Arena arena = place(items);
  expect_valid(items, arena);
  EXPECT_LE(arena.bytes, 356);
  EXPECT_EQ(peak_bytes(items), 300);
}

TEST(Arena, RandomItemsAreApart) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<ArenaItem> items = random_items(seed, 1 + static_cast<int64_t>(seed));
    expect_valid(items, place(items));
  }
}

TEST(Arena, OthersAvoidItemsWithAPlace) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<ArenaItem> items = random_items(seed, 60);
    const Arena free = place(items);
    for (size_t i = 0; i < items.size(); i += 3) items[i].offset = free.offsets[i] + 6400;
    expect_valid(items, place(items));
  }
}

TEST(Arena, IsCloseToTheBoundOnTensorsOfANetwork) {
  Rng rng(1);
  std::vector<ArenaItem> items;
  for (int64_t i = 0; i < 500; ++i)
    items.push_back({i, i + rng.between(1, 4), 64 * rng.between(1, 4096)});
  EXPECT_LE(static_cast<double>(place(items).bytes), 1.3 * static_cast<double>(peak_bytes(items)));
}

TEST(Arena, HundredThousandItemsTakeTwoSeconds) {
  const std::vector<ArenaItem> items = random_items(7, 100'000);
  const auto start = std::chrono::steady_clock::now();
  const Arena arena = place(items);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
#ifdef NDEBUG
  EXPECT_LT(seconds.count(), 2);
#endif
  EXPECT_LE(static_cast<double>(arena.bytes), 1.5 * static_cast<double>(peak_bytes(items)));
}

}  // namespace
}  // namespace hone
