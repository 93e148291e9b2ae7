#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/op_def.h"
#include "kernel/schedule_facts.h"
#include "kernel/stages.h"

namespace hone {

namespace {

constexpr int64_t kMaxLanes = 64;
constexpr int64_t kMaxUnroll = 64;
constexpr int64_t kMaxCode = 1 << 14;    // statements, each unrolled one on its own
constexpr double kMinScratch = 1 << 20;  // bytes that every machine has
constexpr double kMaxBytes = 8;          // of an element

class ScheduleCheck {
 public:
  ScheduleCheck(const KernelBody& body, const ScheduleFacts& facts, const Schedule& schedule,
                const Target& target)
      : body_(body),
        graph_(body.graph),
        facts_(facts),
        space_(facts.space),
        schedule_(schedule),
        target_(target) {}

  Status run() const {
    const Algorithm algorithm = schedule_.algorithm();
    if (algorithm == Algorithm::generic) return generic();
    for (NodeId node : facts_.nodes)
      if (!has_points(graph_.opcode(node)))
        return unsupported("{} is built by the generic algorithm only", graph_.describe(node));
    if (schedule_.threads > 0 && has_sub_byte_output())
      return unsupported("threads would share bytes of an output");
    if (algorithm == Algorithm::chain) return chain(schedule_.get<ChainFields>());
    HONE_TRY(order());
    HONE_TRY(tiles());
    HONE_TRY(code());
    return algorithm == Algorithm::nest ? nest(schedule_.get<NestFields>())
                                        : gemm(schedule_.get<GemmFields>());
  }

 private:
  Status generic() const {
    if (facts_.nodes.size() != 1)
      return unsupported("the generic algorithm takes one op, not {}", facts_.nodes.size());
    if (schedule_ != Schedule{}) return bad_input("the generic algorithm has nothing to decide");
    return {};
  }

  Status order() const {
    std::vector<int> sorted = schedule_.order;
    std::ranges::sort(sorted);
    for (int d = 0; d < static_cast<int>(sorted.size()); ++d)
      if (sorted[static_cast<size_t>(d)] != d)
        return bad_input("the order is no permutation of the results' {} dims", space_.parallel);
    if (static_cast<int>(sorted.size()) != space_.parallel)
      return bad_input("the order has {} dims, the results {}", sorted.size(), space_.parallel);
    if (schedule_.threads < 0 || schedule_.threads > space_.parallel)
      return bad_input("threads divide {} of {} loops", schedule_.threads, space_.parallel);
    return {};
  }

  Status tiles() const {
    if (schedule_.lanes.size() > 1)
      return unsupported("lanes on {} dims, not on one", schedule_.lanes.size());
    for (const Tile& lanes : schedule_.lanes) {
      HONE_TRY(tile(lanes, "lanes"));
      if (lanes.count < 2 || lanes.count > kMaxLanes || (lanes.count & (lanes.count - 1)) != 0)
        return bad_input("{} lanes, which is no power of 2 up to {}", lanes.count, kMaxLanes);
      if (has_sub_byte_value()) return unsupported("lanes would share bytes");
    }
    int64_t unrolled = 1;
    for (size_t i = 0; i < schedule_.unroll.size(); ++i) {
      const Tile& unroll = schedule_.unroll[i];
      HONE_TRY(tile(unroll, "unroll"));
      if (std::ranges::count(schedule_.unroll, unroll.dim, &Tile::dim) > 1)
        return bad_input("dim {} is unrolled twice", unroll.dim);
      if (unroll.count < 1 || unroll.count > kMaxUnroll)
        return bad_input("unrolled {} times, outside of 1..{}", unroll.count, kMaxUnroll);
      unrolled *= unroll.count;
    }
    if (unrolled > kMaxUnroll)
      return over_limit("{} points are unrolled, more than {}", unrolled, kMaxUnroll);
    return {};
  }

  Status tile(const Tile& tile, std::string_view what) const {
    const int dims = static_cast<int>(space_.dims.size());
    if (tile.dim < 0 || tile.dim >= dims)
      return bad_input("{} on dim {} of {}", what, tile.dim, dims);
    if (tile.dim >= space_.parallel && graph_.opcode(space_.anchor) == Opcode::arg_reduce)
      return unsupported("{} on the dim that arg_reduce searches in order", what);
    return {};
  }

  // Statements. Each tile or block of a dim may have a smaller one at the end, with code of its
  // own.
  double unrolled() const {
    double statements = static_cast<double>(facts_.work.statements);
    for (const Tile& unroll : schedule_.unroll) statements *= 2 * static_cast<double>(unroll.count);
    for (const Tile& lanes : schedule_.lanes)
      statements *= 2 * std::max(static_cast<double>(lanes.count) / 16, 1.0);
    if (const auto* own = schedule_.if_is<GemmFields>())
      for (size_t i = 0; i < own->block.size(); ++i) statements *= 2;
    return statements;
  }

  Status code() const {
    if (facts_.work.statements > kMaxStatements)
      return over_limit("one point takes more than {} statements", kMaxStatements);
    const double statements = unrolled();
    if (statements > kMaxCode)
      return over_limit("{} statements when unrolled, more than {}", statements, kMaxCode);
    return {};
  }

  Status nest(const NestFields& own) const {
    HONE_TRY(check_work(facts_.work));
    if (own.row < 0 || own.row > space_.parallel)
      return bad_input("a row of {} of {} dims", own.row, space_.parallel);
    if (own.row > 0 && own.row < schedule_.threads)
      return bad_input("threads divide {} loops, a row is inside of {}", schedule_.threads,
                       own.row);
    return {};
  }

  Status gemm(const GemmFields& own) const {
    if (!facts_.contraction.ok()) return facts_.contraction.error();
    for (const std::vector<Tile>* tiles : {&schedule_.lanes, &schedule_.unroll})
      for (const Tile& tile : *tiles)
        if (tile.dim >= space_.parallel)
          return unsupported("gemm has no register tile along dim {} of the reduction", tile.dim);
    HONE_TRY(blocks(own));
    return fits(HONE_TRY(scratch(own)), "packed operands");
  }

  Status blocks(const GemmFields& own) const {
    int reduced = 0;
    for (const Tile& block : own.block) {
      HONE_TRY(tile(block, "a block"));
      if (std::ranges::count(own.block, block.dim, &Tile::dim) > 1)
        return bad_input("dim {} has two blocks", block.dim);
      if (block.count < 1) return bad_input("a block of {} points", block.count);
      if (block.dim >= space_.parallel) {
        ++reduced;
        continue;
      }
      const int64_t points = register_tile(schedule_, block.dim);
      if (block.count % points != 0)
        return bad_input("a block of {} does not hold whole tiles of {}", block.count, points);
    }
    if (reduced > 1) return unsupported("blocks along {} dims of the reduction", reduced);
    return {};
  }

  // Bytes that a gemm takes.
  Result<double> scratch(const GemmFields& own) const {
    const Contraction& contraction = *facts_.contraction;
    auto bytes = [&](const std::vector<bool>& dims, int64_t depth) {
      const BlockShape shape = block_shape(schedule_, space_, dims);
      return static_cast<double>(shape.tiles) * static_cast<double>(shape.points) *
             static_cast<double>(depth) * kMaxBytes;
    };
    const int64_t depth = block_depth(schedule_, space_);
    double all = 0;
    for (size_t side = 0; side < 2; ++side) {
      const Packing packing = side == 0 ? own.pack_lhs : own.pack_rhs;
      if (packing == Packing::panels) all += bytes(contraction.sides[side], depth);
      if (packing != Packing::window) continue;
      double elements = kMaxBytes;
      for (int64_t extent : HONE_TRY(window_of(contraction, space_, schedule_, side)))
        elements *= static_cast<double>(extent);
      all += elements;
    }
    if (blocks_reduction(schedule_, space_))
      all += bytes(std::vector<bool>(static_cast<size_t>(space_.parallel), true), 1);
    return all;
  }

  Status fits(double bytes, std::string_view what) const {
    const double most =
        target_.caches.empty()
            ? kMinScratch
            : std::max(static_cast<double>(target_.caches.back().bytes), kMinScratch);
    if (bytes <= most) return {};
    return over_limit("{:.3g} bytes of {} do not fit the largest cache", bytes, what);
  }

  Status chain(const ChainFields& own) const {
    if (!schedule_.lanes.empty() || !schedule_.unroll.empty())
      return bad_input("a chain has tiles in its stages only");
    if (body_.in_place) return unsupported("an update in place is no chain");
    if (!graph_.donations().empty())
      return unsupported("a chain whose result lies in what it reads");
    if (own.keep.empty()) return bad_input("a chain that keeps nothing");
    if (own.stages.size() != own.keep.size() + 1)
      return bad_input("{} stages, where {} values are kept", own.stages.size(), own.keep.size());
    if (schedule_.threads < 0 || schedule_.threads > std::ssize(schedule_.order))
      return bad_input("threads divide {} of {} loops", schedule_.threads, schedule_.order.size());
    const std::vector<Stage> stages = HONE_TRY(stages_of(body_, schedule_));
    double bytes = 0, statements = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
      Status good = repetition(stages[i]);
      if (good.ok()) good = stage(stages[i], own.stages[i], statements, bytes);
      if (!good.ok()) return std::move(good).error().within(fmt::format("stage {}", i));
      double kept = i + 1 < stages.size() ? kMaxBytes : 0;
      for (int64_t points : stages[i].body.window) kept *= static_cast<double>(points);
      bytes += kept;
    }
    for (int dim : schedule_.order)
      if (!graph_.type(graph_.outputs()[0])
               .dim(dim)
               .divisible_by(block_points(body_, schedule_, dim)))
        statements *= 2;
    if (statements > kMaxCode)
      return over_limit("{} statements in all stages, more than {}", statements, kMaxCode);
    return fits(bytes, "what is kept and packed");
  }

  // Along dims that a stage does not go along, it is done again for each block.
  Status repetition(const Stage& stage) const {
    double times = 1;
    for (int dim : schedule_.order)
      if (std::ranges::find(stage.along, dim) == stage.along.end())
        times *= std::ceil(static_cast<double>(graph_.type(graph_.outputs()[0]).dim(dim).value()) /
                           static_cast<double>(block_points(body_, schedule_, dim)));
    if (times <= kMaxRepetition) return {};
    return over_limit("it is done {} times, more than {}", times, kMaxRepetition);
  }

  Status stage(const Stage& stage, const Schedule& schedule, double& statements,
               double& bytes) const {
    if (schedule.algorithm() != Algorithm::nest && schedule.algorithm() != Algorithm::gemm)
      return unsupported("a stage is a nest or a gemm");
    if (schedule.threads != 0) return unsupported("a stage runs on one thread");
    const ScheduleFacts facts(stage.body);
    const ScheduleCheck alone(stage.body, facts, schedule, target_);
    HONE_TRY(alone.run());
    statements += alone.unrolled();
    if (const auto* gemm = schedule.if_is<GemmFields>()) bytes += HONE_TRY(alone.scratch(*gemm));
    return {};
  }

  bool has_sub_byte_output() const {
    return std::ranges::any_of(graph_.outputs(),
                               [&](ValueId v) { return bits(graph_.type(v).dtype()) < 8; });
  }
  bool has_sub_byte_value() const {
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      if (bits(graph_.type(ValueId{v}).dtype()) < 8) return true;
    return false;
  }

  const KernelBody& body_;
  const Graph& graph_;
  const ScheduleFacts& facts_;
  const KernelSpace& space_;
  const Schedule& schedule_;
  const Target& target_;
};

}  // namespace

Status check_schedule(const KernelBody& body, const ScheduleFacts& facts, const Schedule& schedule,
                      const Target& target) {
  return ScheduleCheck(body, facts, schedule, target).run();
}

Status check_schedule(const KernelBody& body, const Schedule& schedule, const Target& target) {
  return check_schedule(body, ScheduleFacts(body), schedule, target);
}

}  // namespace hone
