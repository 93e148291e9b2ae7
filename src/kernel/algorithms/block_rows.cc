#include "kernel/algorithms/block_rows.h"

#include <algorithm>
#include <map>

#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "kernel/algorithms/loops.h"
#include "kernel/group_work.h"
#include "target/gpu.h"

namespace hone {
namespace {

// True if the op combines numbers in any order.
bool reduces(Opcode opcode) { return is_contraction(opcode) || combines_by_kind(opcode); }

// From the results to what they need, each value at the index where it is needed. Iters are the
// results' dims, then dims of reductions.
class RowWalk {
 public:
  RowWalk(const KernelBody& body, const KernelSpace& space, const Schedule& schedule)
      : graph_(body.graph), seen_(graph_.value_count()) {
    for (int dim = 0; dim < space.parallel; ++dim)
      extents_.push_back(space.dims[static_cast<size_t>(dim)].extent);
    parallel_ = extents_.size();
    is_blocked_.resize(parallel_);
    for (int i = 0; i < schedule.threads; ++i)
      is_blocked_[static_cast<size_t>(schedule.order[static_cast<size_t>(i)])] = true;
  }

  Result<BlockRow> run() && {
    for (ValueId output : graph_.outputs())
      HONE_TRY(visit(output, identity_index(static_cast<int>(parallel_))));
    for (const auto& [parameter, reads] : reads_) {
      keep(ValueId{parameter}, reads);
      for (const Index& read : reads) row_.reads.push_back({ValueId{parameter}, read});
    }
    return std::move(row_);
  }

 private:
  using Index = std::vector<IndexExpr>;

  bool is_of_row(const Index& index) const {
    for (size_t i = 0; i < extents_.size(); ++i)
      if (i >= parallel_ || !is_blocked_[i])
        for (const IndexExpr& expr : index)
          if (expr.mentions(static_cast<int>(i))) return true;
    return false;
  }

  Status visit(ValueId value, const Index& index) {
    std::vector<Index>& seen = seen_[value.index];
    if (std::ranges::find(seen, index) != seen.end()) return {};
    if (++visits_ > kMaxStatements)
      return over_limit("a row needs values at more than {} places", kMaxStatements);
    seen.push_back(index);
    const NodeId node = graph_.producer(value);
    const Opcode opcode = graph_.opcode(node);
    if (is_parameter(opcode)) {
      reads_[value.index].push_back(index);
      return {};
    }
    if (graph_.operands(node).empty()) return {};
    const bool is_known = reduces(opcode) || class_of(opcode) == OpClass::elementwise ||
                          class_of(opcode) == OpClass::movement;
    if (!is_known)
      return unsupported("threads of a block do not share the work of {}", graph_.describe(node));
    // A product of single numbers has nothing that threads could divide.
    const bool is_shared = reduces(opcode) && !is_of_row(index) &&
                           relation_of(graph_, node).dims.size() > index.size();
    if (reduces(opcode) && seen.size() > 1)
      return unsupported("a row needs {} at two places", graph_.describe(node));
    HONE_TRY(visit_operands(node, index));
    if (is_shared) row_.shared.push_back({node, index});
    return {};
  }

  Status visit_operands(NodeId node, const Index& index) {
    const AccessRelation relation = relation_of(graph_, node);
    Index iters = index;
    for (size_t d = index.size(); d < relation.dims.size(); ++d) {
      iters.push_back(IndexExpr::iter(static_cast<int>(extents_.size())));
      extents_.push_back(relation.dims[d].extent);
    }
    const auto operands = graph_.operands(node);
    for (size_t i = 0; i < operands.size(); ++i)
      for (const Access& access : relation.operands[i]) {
        Index at;
        for (const IndexExpr& expr : access.index) at.push_back(expr.substitute(iters));
        HONE_TRY(visit(operands[i], at));
      }
    return {};
  }

  // If several reads differ only in the name of the one dim of the row that they go along.
  void keep(ValueId parameter, const std::vector<Index>& reads) {
    if (reads.size() < 2 || std::ranges::any_of(graph_.donations(), [&](const Donation& donation) {
          return graph_.inputs()[donation.input] == parameter;
        }))
      return;
    std::optional<BlockRow::Kept> kept;
    for (const Index& read : reads) {
      int along = -1;
      for (int i = 0; i < static_cast<int>(extents_.size()); ++i) {
        const bool is_mentioned =
            std::ranges::any_of(read, [&](const IndexExpr& expr) { return expr.mentions(i); });
        const bool is_of_block =
            static_cast<size_t>(i) < parallel_ && is_blocked_[static_cast<size_t>(i)];
        if (!is_mentioned || is_of_block) continue;
        if (along >= 0) return;
        along = i;
      }
      if (along < 0) return;
      Index names = identity_index(static_cast<int>(extents_.size()));
      names[static_cast<size_t>(along)] = IndexExpr::iter(static_cast<int>(parallel_));
      BlockRow::Kept next = {parameter, {}, extents_[static_cast<size_t>(along)]};
      for (const IndexExpr& expr : read) next.index.push_back(expr.substitute(names));
      if (kept && (kept->index != next.index || kept->points != next.points)) return;
      kept = std::move(next);
    }
    row_.kept.push_back(*std::move(kept));
  }

  const Graph& graph_;
  std::vector<std::vector<Index>> seen_;  // per value: where it is needed
  std::vector<Dim> extents_;              // of all iters
  size_t parallel_ = 0;
  std::vector<bool> is_blocked_;
  std::map<uint32_t, std::vector<Index>> reads_;  // by parameter
  int64_t visits_ = 0;
  BlockRow row_;
};

// ---- The algorithm ------------------------------------------------------------------------------

std::vector<int> warp_counts(const ScheduleSite&) { return {1, 2, 4, 8, 16, 32}; }
std::vector<int> yes_or_no(const ScheduleSite&) { return {0, 1}; }

const NumberDecision kWarps("warps", own_field<BlockRowsFields, &BlockRowsFields::warps>(),
                            warp_counts);
const NumberDecision kKept("kept", own_field<BlockRowsFields, &BlockRowsFields::kept>(), yes_or_no);

class BlockRows : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_gpu_blocks(site, schedule));
    const BlockRowsFields& own = schedule.get<BlockRowsFields>();
    HONE_TRY(check_work(site.facts.work));
    const std::vector<int> counts = warp_counts(site);
    if (std::ranges::find(counts, own.warps) == counts.end())
      return bad_input("a block has {} warps, not 1, 2, 4, 8, 16 or 32", own.warps);
    const BlockRow row = HONE_TRY(block_row(site.body, site.facts.space, schedule));
    if (row.shared.empty()) return unsupported("a row has nothing that its points share");
    if (own.kept > 1) return bad_input("kept is 0 or 1, not {}", own.kept);
    return own.kept == 0 ? Status() : check_kept(row, row_threads(own));
  }
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           !has_sub_byte_output(site) && check_work(site.facts.work).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kAnyOrder, &kThreads, &kWarps, &kKept};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.own = BlockRowsFields();
    return schedule;
  }
  uint64_t weight() const override { return 4; }
  bool is_for_gpu() const override { return true; }

 private:
  static Status check_kept(const BlockRow& row, int64_t threads) {
    if (row.kept.empty()) return unsupported("nothing of a row is read twice");
    int64_t numbers = 0;
    for (const BlockRow::Kept& kept : row.kept) {
      if (!kept.points.is_static()) return unsupported("a row of open size cannot be kept");
      numbers += points_of_thread(kept.points, threads).value();
    }
    if (numbers <= kMostKept) return {};
    return over_limit("a thread would keep {} numbers of a row, more than {}", numbers, kMostKept);
  }
};

}  // namespace

Result<BlockRow> block_row(const KernelBody& body, const KernelSpace& space,
                           const Schedule& schedule) {
  return RowWalk(body, space, schedule).run();
}

int divided_dim(const AccessRelation& relation) {
  return static_cast<int>(relation.dims.size()) - 1;
}

int64_t row_threads(const BlockRowsFields& own) { return int64_t{own.warps} * kWarpLanes; }

Dim points_of_thread(const Dim& extent, int64_t threads) { return ceildiv(extent, threads); }

const AlgorithmDef& algorithm_block_rows() {
  static const BlockRows def;
  return def;
}

}  // namespace hone
