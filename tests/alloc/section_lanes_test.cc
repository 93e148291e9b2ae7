#include "alloc/section_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

constexpr int kSections = 40;
constexpr int kChunks = (kSections + kLanes - 1) / kLanes;

// Blocks in some sections, sorted by floor; what the kernels should say is found one by one.
template <class Int>
struct Example {
  explicit Example(Rng& rng) {
    for (uint16_t i = 0; i < 30; ++i) {
      const int64_t from = rng.between(0, kSections - 1), to = rng.between(from + 1, kSections);
      first.push_back(static_cast<int>(from));
      end.push_back(static_cast<int>(to));
      size.push_back(static_cast<Int>(rng.between(1, 20)));
      floor.push_back(static_cast<Int>(rng.between(0, 60)));
      begin.push_back(static_cast<uint32_t>(lanes.size()));
      for (int chunk = first[i] / kLanes; chunk <= (end[i] - 1) / kLanes; ++chunk) {
        BlockLanes<Int> part{{}, {}, chunk};
        for (int k = 0; k < kLanes; ++k)
          if (is_in(i, chunk * kLanes + k)) {
            part.size[k] = size[i];
            part.inside[k] = -1;
          }
        lanes.push_back(part);
      }
      if (rng.chance(0.8)) order.push_back(i);
    }
    begin.push_back(static_cast<uint32_t>(lanes.size()));
    std::ranges::sort(order, {}, [&](uint16_t i) { return floor[i]; });
    for (std::vector<Int>* each : facts.all())
      for (int s = 0; s < kChunks * kLanes; ++s) each->push_back(static_cast<Int>(7));
    for (int chunk = 0; chunk < kChunks; ++chunk) dirty.push_back(rng.chance(0.7));
  }

  bool is_in(uint16_t i, int section) const { return first[i] <= section && section < end[i]; }
  OpenBlocks<Int> open() const {
    return {lanes.data(), begin.data(), floor.data(), order.data(), order.size()};
  }

  std::vector<int> first, end;
  std::vector<Int> size, floor;
  std::vector<uint16_t> order;
  std::vector<BlockLanes<Int>> lanes;
  std::vector<uint32_t> begin;
  std::vector<uint8_t> dirty;
  SectionFacts<Int> facts;
};

template <class Int>
void expect_facts(const Example<Int>& example, const SectionFacts<Int>& facts, Int capacity) {
  for (int section = 0; section < kSections; ++section) {
    const auto s = static_cast<size_t>(section);
    if (!example.dirty[s / kLanes]) {
      EXPECT_EQ(facts.top[s], 7);
      EXPECT_EQ(facts.next[s], 7);
      continue;
    }
    Int top = 0, low = kNothing<Int>, open = 0, firsts = 0, next = kNothing<Int>;
    for (uint16_t i : example.order) {
      if (!example.is_in(i, section)) continue;
      top = std::max(top, example.floor[i]) + example.size[i];
      low = std::min(low, example.floor[i]);
      open += example.size[i];
    }
    for (uint16_t i : example.order) {
      if (!example.is_in(i, section) || example.floor[i] + open > capacity) continue;
      ++firsts;
      next = std::min<Int>(next, example.floor[i] + example.size[i]);
    }
    EXPECT_EQ(facts.top[s], top);
    EXPECT_EQ(facts.low[s], low);
    EXPECT_EQ(facts.open[s], open);
    EXPECT_EQ(facts.firsts[s], firsts);
    EXPECT_EQ(facts.next[s], next);
  }
}

template <class Int>
void expect_kernels(Isa isa) {
  const SectionKernels<Int>& kernels = section_kernels<Int>(isa);
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    Example<Int> example(rng);
    const auto capacity = static_cast<Int>(rng.between(60, 300));
    kernels.stack(example.open(), example.dirty.data(), example.facts);
    kernels.find_firsts(example.open(), example.dirty.data(), capacity, example.facts);
    expect_facts(example, example.facts, capacity);
    for (uint16_t block : example.order) {
      Int behind = example.floor[block];
      bool is_lowest = true;
      for (int section = example.first[block]; section < example.end[block]; ++section) {
        const auto s = static_cast<size_t>(section);
        is_lowest &= example.facts.low[s] >= example.floor[block];
        if (example.dirty[s / kLanes] && example.floor[block] + example.facts.open[s] > capacity)
          behind = std::max(behind, example.facts.next[s]);
      }
      EXPECT_EQ(kernels.behind_firsts(example.open(), block, example.dirty.data(), capacity,
                                      example.facts),
                behind);
      EXPECT_EQ(kernels.is_lowest(example.open(), block, example.facts), is_lowest);
    }
  }
}

class SectionLanes : public testing::TestWithParam<Isa> {};

TEST_P(SectionLanes, SayWhatOneSectionAfterTheOtherSays) {
  if (host_instructions().value().isa < GetParam()) GTEST_SKIP() << "not on this processor";
  expect_kernels<int32_t>(GetParam());
  expect_kernels<int64_t>(GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, SectionLanes, testing::ValuesIn(kIsas));

}  // namespace
}  // namespace hone::HONE_FILE
