#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/instructions.h"

// The questions that the floor search asks about all sections at each step, many sections at once.

namespace hone {

constexpr int kLanes = 16;  // sections of one chunk

// The part of a block that is in one chunk of sections.
template <class Int>
struct alignas(64) BlockLanes {
  Int size[kLanes];    // the block's, in the sections that it is in; 0 in others
  Int inside[kLanes];  // -1 in those; 0 in others
  int32_t chunk;
};

// Open blocks, by their floors: how low they may lie.
template <class Int>
struct OpenBlocks {
  const BlockLanes<Int>* lanes;
  const uint32_t* begin;  // per block: its first lanes; one more at the end
  const Int* floor;       // per block
  const uint16_t* order;
  size_t count;
};

// Per section, of the blocks that are open in it.
template <class Int>
struct SectionFacts {
  std::vector<Int> top;     // of no placement of them all is the end lower
  std::vector<Int> low;     // the least floor
  std::vector<Int> open;    // the sum of their sizes
  std::vector<Int> firsts;  // how many could be the lowest
  std::vector<Int> next;    // the least end of such a one
  void resize(size_t sections) {
    for (auto* each : all()) each->resize(sections);
  }
  std::array<std::vector<Int>*, 5> all() { return {&top, &low, &open, &firsts, &next}; }
};

template <class Int>
constexpr Int kNothing = static_cast<Int>((Int{1} << (8 * sizeof(Int) - 2)) - 1);  // all ones

// Compiled for several sets of instructions. Each looks at the chunks that are dirty.
template <class Int>
struct SectionKernels {
  void (*stack)(const OpenBlocks<Int>& blocks, const uint8_t* dirty, SectionFacts<Int>& facts);
  // After that: `firsts` and `next`.
  void (*find_firsts)(const OpenBlocks<Int>& blocks, const uint8_t* dirty, Int capacity,
                      SectionFacts<Int>& facts);
  // Where a block cannot be the lowest, it lies above one that can: how low it may lie then.
  Int (*behind_firsts)(const OpenBlocks<Int>& blocks, uint16_t block, const uint8_t* dirty,
                       Int capacity, const SectionFacts<Int>& facts);
  // True if no open block has a lower floor where the block is.
  bool (*is_lowest)(const OpenBlocks<Int>& blocks, uint16_t block, const SectionFacts<Int>& facts);
};

template <class Int>
const SectionKernels<Int>& section_kernels(Isa isa);
template <class Int>
const SectionKernels<Int>& section_kernels();  // the best for this processor

}  // namespace hone
