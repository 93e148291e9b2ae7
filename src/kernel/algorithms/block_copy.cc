#include "kernel/algorithms/block_copy.h"

#include <algorithm>

#include "ir/op_def.h"
#include "kernel/algorithms/loops.h"

namespace hone {
namespace {

constexpr size_t kMostCopied = 8;  // parameters: 4 KiB of memory of a block each, 8 of f64

std::vector<int> copy_warps(const ScheduleSite&) { return {1, 2, 4, 8, 16, 32}; }

const NumberDecision kCopyWarps("warps", own_field<BlockCopyFields, &BlockCopyFields::warps>(),
                                copy_warps);

class BlockCopy : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_gpu_blocks(site, schedule));
    HONE_TRY(check_work(site.facts.work));
    if (schedule.threads != site.parallel())
      return bad_input("blocks have {} of {} dims, not all", schedule.threads, site.parallel());
    const std::vector<int> counts = copy_warps(site);
    const auto& own = schedule.get<BlockCopyFields>();
    if (std::ranges::find(counts, own.warps) == counts.end())
      return bad_input("a block has {} warps, not 1, 2, 4, 8, 16 or 32", own.warps);
    if (!site.body.graph.donations().empty())
      return unsupported("a result cannot lie in memory that other threads read");
    HONE_TRY(copied_reads(site.body, site.facts.space, schedule));
    return {};
  }
  // Some order may suit it.
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           !has_sub_byte_output(site) && check_work(site.facts.work).ok() &&
           site.body.graph.donations().empty() && site.parallel() >= 2 && only_copies(site);
  }
  std::vector<const Decision*> decisions() const override { return {&kAnyOrder, &kCopyWarps}; }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.threads = site.parallel();
    schedule.own = BlockCopyFields();
    return schedule;
  }
  bool is_for_gpu() const override { return true; }

 private:
  static bool only_copies(const ScheduleSite& site) {
    return std::ranges::all_of(site.facts.nodes, [&](NodeId node) {
      const OpClass of_node = class_of(site.body.graph.opcode(node));
      return of_node == OpClass::elementwise || of_node == OpClass::movement;
    });
  }
};

}  // namespace

Result<std::vector<BlockRow::Read>> copied_reads(const KernelBody& body, const KernelSpace& space,
                                                 const Schedule& schedule) {
  if (space.parallel < 2) return unsupported("results have no two dims");
  for (NodeId node : computing_nodes(body.graph)) {
    const OpClass of_node = class_of(body.graph.opcode(node));
    if (of_node != OpClass::elementwise && of_node != OpClass::movement)
      return unsupported("{} does not move elements", body.graph.describe(node));
  }
  const BlockRow row = HONE_TRY(block_row(body, space, schedule));
  const size_t rank = schedule.order.size();
  const int across = schedule.order[rank - 2], along = schedule.order[rank - 1];
  std::vector<BlockRow::Read> reads;
  for (const BlockRow::Read& read : row.reads) {
    const bool is_alone = std::ranges::count(row.reads, read.parameter,
                                             [](const auto& each) { return each.parameter; }) == 1;
    const auto at = std::ranges::find(body.graph.inputs(), read.parameter);
    const auto input = static_cast<size_t>(at - body.graph.inputs().begin());
    const std::vector<IndexExpr> stored = stored_index(body.inputs[input], read.index);
    if (is_alone && !stored.empty() && stored.back().coefficient(across) == 1 &&
        !stored.back().mentions(along))
      reads.push_back(read);
  }
  if (reads.empty())
    return unsupported("no operand that is read once has its neighbours along dim {}", across);
  if (reads.size() > kMostCopied)
    return over_limit("{} operands are copied, more than {}", reads.size(), kMostCopied);
  return reads;
}

const AlgorithmDef& algorithm_block_copy() {
  static const BlockCopy def;
  return def;
}

}  // namespace hone
