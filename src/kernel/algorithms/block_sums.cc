#include "kernel/algorithms/block_sums.h"

#include <algorithm>

#include "ir/op_facts.h"
#include "kernel/algorithms/block_rows.h"
#include "kernel/algorithms/loops.h"
#include "target/gpu.h"

namespace hone {
namespace {

constexpr int64_t kMostSumRows = 8;  // sums of a thread

std::vector<int> sums_warps(const ScheduleSite&) { return {1, 2, 4, 8, 16, 32}; }
std::vector<int> sums_columns(const ScheduleSite& site) {
  return site.parallel() > 0 ? std::vector{1, 32} : std::vector{1};
}
std::vector<int> sums_splits(const ScheduleSite&) { return {1, 2, 4, 8, 16, 32, 64, 128}; }

const NumberDecision kSumsWarps("warps", own_field<BlockSumsFields, &BlockSumsFields::warps>(),
                                sums_warps);
const NumberDecision kSumsColumns("columns",
                                  own_field<BlockSumsFields, &BlockSumsFields::columns>(),
                                  sums_columns);
const NumberDecision kSumsSplits("splits", own_field<BlockSumsFields, &BlockSumsFields::splits>(),
                                 sums_splits);

bool has(const std::vector<int>& numbers, int number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

bool has_open_dims(const ScheduleSite& site, NodeId node) {
  return std::ranges::any_of(relation_of(site.body.graph, node).dims,
                             [](const IterDim& dim) { return !dim.extent.is_static(); });
}

class BlockSums : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_gpu_blocks(site, schedule));
    HONE_TRY(check_work(site.facts.work));
    const auto& own = schedule.get<BlockSumsFields>();
    if (schedule.threads != site.parallel())
      return bad_input("blocks have {} of {} dims, not all", schedule.threads, site.parallel());
    if (!has(sums_warps(site), own.warps))
      return bad_input("a block has {} warps, not 1, 2, 4, 8, 16 or 32", own.warps);
    if (!has(sums_columns(site), own.columns))
      return bad_input("a block has {} columns, not 1 or 32 of a dim", own.columns);
    if (!has(sums_splits(site), own.splits))
      return bad_input("a sum has {} parts, not a power of 2 up to 128", own.splits);
    const NodeId node = HONE_TRY(summed_node(site.body, site.facts.space));
    if (has_open_dims(site, node)) return unsupported("sizes are not numbers");
    const SumsShape shape = sums_shape(site.body, node, schedule);
    const AccessRelation relation = relation_of(site.body.graph, node);
    const int64_t points = relation.dims[static_cast<size_t>(shape.slots_dim)].extent.value();
    if (own.splits > 1 && shape.parts() > points)
      return bad_input("{} parts of a sum divide {} points", shape.parts(), points);
    return {};
  }
  bool takes(const ScheduleSite& site) const override {
    if (!site.target.gpu || site.is_stage() || site.body.in_place || !all_have_points(site) ||
        has_sub_byte_output(site) || !check_work(site.facts.work).ok())
      return false;
    const Result<NodeId> node = summed_node(site.body, site.facts.space);
    return node.ok() && !has_open_dims(site, *node);
  }
  std::vector<const Decision*> decisions() const override {
    return {&kAnyOrder, &kSumsWarps, &kSumsColumns, &kSumsSplits};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.threads = site.parallel();
    schedule.own = BlockSumsFields();
    return schedule;
  }
  uint64_t weight() const override { return 4; }
  bool is_for_gpu() const override { return true; }
};

}  // namespace

// Slots divide the longest dim. Where threads side by side have points of one sum, they divide the
// last dim, whose points are neighbours more often than those of others.
SumsShape sums_shape(const KernelBody& body, NodeId node, const Schedule& schedule) {
  const auto& own = schedule.get<BlockSumsFields>();
  SumsShape shape = {
      .threads = own.warps * kWarpLanes, .columns = own.columns, .splits = own.splits};
  const AccessRelation relation = relation_of(body.graph, node);
  const int first = body.graph.type(body.graph.result(node)).rank();
  int end = static_cast<int>(relation.dims.size());
  if (own.columns == 1 && end - first > 1) shape.lanes_dim = --end;
  const auto extent = [&](int dim) {
    return relation.dims[static_cast<size_t>(dim)].extent.value();
  };
  shape.slots_dim = first;
  for (int dim = first; dim < end; ++dim)
    if (extent(dim) > extent(shape.slots_dim)) shape.slots_dim = dim;
  shape.slots = shape.threads / (shape.lanes_dim ? kWarpLanes : shape.columns);
  const size_t dims = schedule.order.size();
  if (dims > 1 && is_contraction(body.graph.opcode(node))) {
    const int rows = schedule.order[dims - 2];
    if (extent(rows) > 1 && extent(rows) <= kMostSumRows) {
      shape.rows = extent(rows);
      shape.rows_dim = rows;
    }
  }
  return shape;
}

Result<NodeId> summed_node(const KernelBody& body, const KernelSpace& space) {
  Schedule points = plain_nest(space.parallel);
  points.threads = space.parallel;
  const BlockRow row = HONE_TRY(block_row(body, space, points));
  if (row.shared.size() != 1 || row.shared[0].index != identity_index(space.parallel))
    return unsupported("a result does not need one sum of its own");
  return row.shared[0].node;
}

const AlgorithmDef& algorithm_block_sums() {
  static const BlockSums def;
  return def;
}

}  // namespace hone
