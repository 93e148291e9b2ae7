#include "alloc/section_lanes.h"

#include <algorithm>

namespace hone {
namespace {

// Each text is compiled for several sets of instructions: by being inlined into functions for them.
#define HONE_INLINED [[gnu::always_inline]] inline

template <class Int>
struct VectorOf {
  using Type
      [[gnu::may_alias, gnu::aligned(alignof(Int)), gnu::vector_size(kLanes * sizeof(Int))]] = Int;
};
template <class Int>
using Vector = typename VectorOf<Int>::Type;

template <class Int>
HONE_INLINED Vector<Int>& chunk_of(std::vector<Int>& of, int32_t chunk) {
  return *reinterpret_cast<Vector<Int>*>(of.data() + chunk * kLanes);
}
template <class Int>
HONE_INLINED const Vector<Int>& chunk_of(const std::vector<Int>& of, int32_t chunk) {
  return *reinterpret_cast<const Vector<Int>*>(of.data() + chunk * kLanes);
}
template <class Int>
HONE_INLINED const Vector<Int>& vector_of(const Int (&of)[kLanes]) {
  return *reinterpret_cast<const Vector<Int>*>(of);
}

template <class Int>
HONE_INLINED void fill(std::vector<Int>& of, size_t chunk, Int value) {
  std::fill_n(of.begin() + static_cast<ptrdiff_t>(chunk * kLanes), kLanes, value);
}

template <class Int>
HONE_INLINED void stack_text(const OpenBlocks<Int>& blocks, const uint8_t* dirty,
                             SectionFacts<Int>& facts) {
  for (size_t chunk = 0; chunk < facts.top.size() / kLanes; ++chunk) {
    if (!dirty[chunk]) continue;
    fill(facts.top, chunk, Int{0});
    fill(facts.open, chunk, Int{0});
    fill(facts.low, chunk, kNothing<Int>);
  }
  for (size_t i = 0; i < blocks.count; ++i) {
    const uint16_t block = blocks.order[i];
    const Int floor = blocks.floor[block];
    for (uint32_t l = blocks.begin[block]; l < blocks.begin[block + 1]; ++l) {
      const BlockLanes<Int>& lanes = blocks.lanes[l];
      if (!dirty[lanes.chunk]) continue;
      const Vector<Int>&size = vector_of(lanes.size), &inside = vector_of(lanes.inside);
      const Vector<Int> from = inside & floor;
      Vector<Int>& top = chunk_of(facts.top, lanes.chunk);
      top = (top > from ? top : from) + size;
      chunk_of(facts.open, lanes.chunk) += size;
      Vector<Int>& low = chunk_of(facts.low, lanes.chunk);
      const Vector<Int> here = from | (~inside & kNothing<Int>);
      low = low < here ? low : here;
    }
  }
}

template <class Int>
HONE_INLINED void find_firsts_text(const OpenBlocks<Int>& blocks, const uint8_t* dirty,
                                   Int capacity, SectionFacts<Int>& facts) {
  for (size_t chunk = 0; chunk < facts.top.size() / kLanes; ++chunk) {
    if (!dirty[chunk]) continue;
    fill(facts.firsts, chunk, Int{0});
    fill(facts.next, chunk, kNothing<Int>);
  }
  for (size_t i = 0; i < blocks.count; ++i) {
    const uint16_t block = blocks.order[i];
    const Int floor = blocks.floor[block];
    for (uint32_t l = blocks.begin[block]; l < blocks.begin[block + 1]; ++l) {
      const BlockLanes<Int>& lanes = blocks.lanes[l];
      if (!dirty[lanes.chunk]) continue;
      const Vector<Int> can =
          vector_of(lanes.inside) & (chunk_of(facts.open, lanes.chunk) + floor <= capacity);
      chunk_of(facts.firsts, lanes.chunk) -= can;
      const Vector<Int> end = ((vector_of(lanes.size) + floor) & can) | (~can & kNothing<Int>);
      Vector<Int>& next = chunk_of(facts.next, lanes.chunk);
      next = next < end ? next : end;
    }
  }
}

template <class Int>
HONE_INLINED Int behind_firsts_text(const OpenBlocks<Int>& blocks, uint16_t block,
                                    const uint8_t* dirty, Int capacity,
                                    const SectionFacts<Int>& facts) {
  const Int floor = blocks.floor[block];
  Vector<Int> behind = {};
  for (uint32_t l = blocks.begin[block]; l < blocks.begin[block + 1]; ++l) {
    const BlockLanes<Int>& lanes = blocks.lanes[l];
    if (!dirty[lanes.chunk]) continue;
    const Vector<Int> cannot =
        vector_of(lanes.inside) & (chunk_of(facts.open, lanes.chunk) + floor > capacity);
    const Vector<Int> here = cannot & chunk_of(facts.next, lanes.chunk);
    behind = behind > here ? behind : here;
  }
  Int most = floor;
  for (int k = 0; k < kLanes; ++k) most = std::max<Int>(most, behind[k]);
  return most;
}

template <class Int>
HONE_INLINED bool is_lowest_text(const OpenBlocks<Int>& blocks, uint16_t block,
                                 const SectionFacts<Int>& facts) {
  const Int floor = blocks.floor[block];
  for (uint32_t l = blocks.begin[block]; l < blocks.begin[block + 1]; ++l) {
    const BlockLanes<Int>& lanes = blocks.lanes[l];
    const Vector<Int> lower = vector_of(lanes.inside) & (chunk_of(facts.low, lanes.chunk) < floor);
    Int any = 0;
    for (int k = 0; k < kLanes; ++k) any |= lower[k];
    if (any) return false;
  }
  return true;
}

#define HONE_KERNELS(NAME, ATTRIBUTE)                                                             \
  template <class Int>                                                                            \
  struct NAME {                                                                                   \
    ATTRIBUTE static void stack(const OpenBlocks<Int>& blocks, const uint8_t* dirty,              \
                                SectionFacts<Int>& facts) {                                       \
      stack_text(blocks, dirty, facts);                                                           \
    }                                                                                             \
    ATTRIBUTE static void find_firsts(const OpenBlocks<Int>& blocks, const uint8_t* dirty,        \
                                      Int capacity, SectionFacts<Int>& facts) {                   \
      find_firsts_text(blocks, dirty, capacity, facts);                                           \
    }                                                                                             \
    ATTRIBUTE static Int behind_firsts(const OpenBlocks<Int>& blocks, uint16_t block,             \
                                       const uint8_t* dirty, Int capacity,                        \
                                       const SectionFacts<Int>& facts) {                          \
      return behind_firsts_text(blocks, block, dirty, capacity, facts);                           \
    }                                                                                             \
    ATTRIBUTE static bool is_lowest(const OpenBlocks<Int>& blocks, uint16_t block,                \
                                    const SectionFacts<Int>& facts) {                             \
      return is_lowest_text(blocks, block, facts);                                                \
    }                                                                                             \
    static constexpr SectionKernels<Int> table{&stack, &find_firsts, &behind_firsts, &is_lowest}; \
  }

HONE_KERNELS(Plain, );
HONE_KERNELS(Avx2, [[gnu::target("avx2")]]);
HONE_KERNELS(Avx512, [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]);

}  // namespace

template <class Int>
const SectionKernels<Int>& section_kernels(Isa isa) {
  if (isa == Isa::avx512) return Avx512<Int>::table;
  return isa == Isa::avx2 ? Avx2<Int>::table : Plain<Int>::table;
}

template <class Int>
const SectionKernels<Int>& section_kernels() {
  static const Result<Instructions> machine = host_instructions();  // asks for some microseconds
  return section_kernels<Int>(machine.ok() ? machine->isa : Isa::v2);
}

template const SectionKernels<int32_t>& section_kernels(Isa);
template const SectionKernels<int64_t>& section_kernels(Isa);
template const SectionKernels<int32_t>& section_kernels();
template const SectionKernels<int64_t>& section_kernels();

}  // namespace hone
