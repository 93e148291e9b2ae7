#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernel/contraction.h"
#include "kernel/group_work.h"
#include "kernel/kernel_body.h"

namespace hone {

// The facts of a body for legality, prices, chains and builders, found once. They say what is
// computed and which arrays are read and written, with the loops around each. Nothing here depends
// on a schedule or a target.
//
// Example: a product of f32[64, 256] and f32[256, 32] has the loops {rows 64, columns 32, depth
// 256} and one sum over all three. It reads two arrays, {rows, depth} and {depth, columns}, and
// writes one, {rows, columns}.
struct KernelFacts {
  static constexpr size_t kMaxLoops = 30;  // more share the last one
  using Loops = uint32_t;                  // a set: bits are positions in `loops`

  struct Loop {
    double extent = 1;       // the largest that symbols allow
    bool is_result = false;  // a dim of the results; otherwise of a reduction
    Loops around = 0;        // of a reduction: the loops that its result depends on
    Loops together = 0;      // of a reduction: its loops, this one too
    // The cuts of results: where operands of a concat meet, or the padding of a pad begins;
    // ascending, within the loop. From one cut to the next it is known which of them an element
    // comes from.
    std::vector<int64_t> cuts = {};
    // The cuts of a loop that takes `lanes` points at once: all or none.
    std::span<const int64_t> cuts_between(int64_t lanes) const {
      const bool fit = std::ranges::all_of(cuts, [&](int64_t cut) { return cut % lanes == 0; });
      return fit ? std::span(cuts) : std::span<const int64_t>();
    }
  };
  static constexpr size_t kMaxParts = 64;  // between cuts, of all loops together; more: no cuts
  // Loops that decide which rows a segment has: their points take different trips, so they do not
  // run side by side.
  Loops divided = 0;
  // A node, computed at one place: once per point of `loops`.
  struct Arithmetic {
    NodeId node;
    Loops loops = 0;
    bool is_sum = false;  // each trip of a reduction waits for the one before
    Loops cut = 0;        // whose cuts tell where it is needed,
    double share = 1;     // at this share of the points
  };
  // An array, read or written at one place.
  struct Array {
    ValueId value;  // a parameter or an output
    bool is_store = false;
    int side = -1;               // the operand of the anchor that it serves; -1: none
    Loops loops = 0;             // that decide where and whether
    Loops guards = 0;            // that decide whether: the others may meet padding
    Loops uncut = 0;             // of these, those of guards that no cut decides
    Loops cut = 0;               // whose cuts decide the other guards,
    double share = 1;            // for this share of the points
    Loops data = 0;              // of what was read to find the place
    double element = 4;          // bytes
    double bytes = 0;            // of the whole array
    double run = 1e300;          // the most neighbours that lie side by side
    double jump = 0;             // from one run of them to the next, in elements
    std::vector<double> stride;  // by loop, in elements; NaN: not the same everywhere
    // For each loop, where the stride is NaN and no data decides: the places of the first points.
    std::vector<std::vector<double>> first = {};
    // Per dim of an operand of the anchor: how far each loop goes along it.
    std::vector<std::vector<std::pair<int, double>>> steps = {};
  };

  explicit KernelFacts(KernelBody body);
  KernelFacts(KernelBody body, uint64_t hash);  // kernel_hash(body), where it is known

  KernelBody body;
  uint64_t hash;
  std::vector<NodeId> nodes;  // that compute
  KernelSpace space;
  GroupWork work;  // of a nest; none, if not all nodes have points
  // The loops: those of the space, then the reductions that it leaves out. Without `work` that
  // check_work() accepts by its statements there is none of these three.
  std::vector<Loop> loops;
  std::vector<Arithmetic> arithmetic;
  std::vector<Array> arrays;
  // Or why the gemm algorithm does not take the body.
  Result<Contraction> contraction;

  // Bytes of the arrays whose neighbours along a dim of the results lie side by side.
  double contiguity(int dim) const;
};

// check_schedule() for many schedules of one body.
Status check_schedule(const KernelBody& body, const KernelFacts& facts, const Schedule& schedule,
                      const Target& target);

}  // namespace hone
