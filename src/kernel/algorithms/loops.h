#pragma once

#include <string_view>

#include "kernel/algorithms/domains.h"

// Algorithms whose schedules are loops over the points of the results share these: the legality of
// the shared fields, and their decisions.

namespace hone {

inline constexpr int64_t kMaxLanes = 64;
inline constexpr int64_t kMaxUnroll = 64;
inline constexpr double kMaxCode = 1 << 14;  // statements, each unrolled one on its own
inline constexpr double kMaxElementBytes = 8;

// Ops that loops can go over, a permutation of the results' dims, threads, tiles.
Status check_loops(const ScheduleSite& site, const Schedule& schedule);
// The same for loops that blocks of a GPU divide: threads take the place of lanes and unrolling.
Status check_gpu_blocks(const ScheduleSite& site, const Schedule& schedule);
Status check_tile(const ScheduleSite& site, const Tile& tile, std::string_view what);
// Statements of code. Each tile, and each of this many blocks, may have a smaller one at the end,
// with code of its own.
double unrolled_statements(const ScheduleSite& site, const Schedule& schedule, size_t blocks = 0);
Status check_code(const ScheduleSite& site, double statements);
Status check_scratch(const ScheduleSite& site, double bytes, std::string_view what);
// Memory of a block of a GPU, in code that later GPUs run, too.
Status check_block_memory(const ScheduleSite& site, int64_t bytes);

bool all_have_points(const ScheduleSite& site);
// True if lanes, or threads, would share bytes that they write. Operands of the anchor may be
// packed into scratch, so these count as well.
bool shares_bytes_in_lanes(const ScheduleSite& site);
bool has_sub_byte_output(const ScheduleSite& site);

int most_threads(const ScheduleSite& site, const Schedule& so_far);
// Dims that lanes and registers can go along: with those of the reduction, or without.
Counts lane_counts(const ScheduleSite& site, const Schedule& so_far, int dim);
Counts lane_counts_of_results(const ScheduleSite& site, const Schedule& so_far, int dim);
Counts unroll_counts(const ScheduleSite& site, const Schedule& so_far, int dim);
Counts unroll_counts_of_results(const ScheduleSite& site, const Schedule& so_far, int dim);

extern const OrderDecision kAnyOrder;
extern const CountDecision kThreads;
extern const TileDecision kLanes, kLanesOfResults, kUnroll, kUnrollOfResults;

// ---- Counts that are worth a look first: with most bodies the best is among them. ---------------

// The usual lanes along a dim, by the numbers of the widest result in a vector.
std::vector<int64_t> usual_lanes(const ScheduleSite& site, int dim);
std::vector<int64_t> usual_unroll(const ScheduleSite& site, int dim);
int64_t numbers_in_vector(const ScheduleSite& site);

}  // namespace hone
