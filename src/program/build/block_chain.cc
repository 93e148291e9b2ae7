#include "kernel/algorithms/block_chain.h"

#include "ir/op_facts.h"
#include "program/build/algorithms.h"
#include "program/build/tile_parts.h"
#include "target/gpu.h"

namespace hone {

namespace {

// Stage by stage, with a barrier between them. A stage keeps a window of its value in memory of the
// block, which begins at the block's first points.
class BlockChainBuilder {
 public:
  BlockChainBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : body_(body),
        schedule_(schedule),
        stages_(block_stages(body, schedule).value()),
        tiles_(name),
        results_(body.graph.type(body.graph.outputs()[0])),
        threads_(block_chain_threads(schedule.get<BlockChainFields>())),
        first_(static_cast<size_t>(results_.rank()), 0) {
    StagePlace whole = kernel_place(body, tiles_);
    sources_ = std::move(whole.inputs);
    outputs_ = std::move(whole.outputs);
    for (size_t s = 0; s + 1 < stages_.size(); ++s) {
      const KernelBody& stage = stages_[s].stage.body;
      const DType dtype = stage.graph.type(stage.graph.outputs()[0]).dtype();
      const Type window =
          Type::get(dtype, std::vector<Dim>(stage.window.begin(), stage.window.end()));
      sources_.push_back(
          {tiles_.buffer("kept", stored_type(stage.outputs[0], window), BufferRole::block),
           std::vector<IndexExpr>(stage.window.size(), 0)});
    }
    for (const BlockStage& stage : stages_)
      sums_.push_back(!stage.is_by_warp
                          ? 0
                          : tiles_.buffer("sum", Type::get(sum_type(stage), {}), BufferRole::own));
  }

  TileProgram build() && {
    blocks(0);
    return std::move(tiles_).finish();
  }

 private:
  using Indices = PointBuilder::Indices;
  using Guards = PointBuilder::Guards;

  static DType sum_type(const BlockStage& stage) {
    const Graph& graph = stage.stage.body.graph;
    return wide_type(graph.type(graph.result(*stage.fold)).dtype());
  }

  void blocks(size_t at) {
    if (at == schedule_.order.size() && at > 0) return all_stages();
    if (at == schedule_.order.size())
      return tiles_.loop(Exec::blocks, "once", 1, [&](const IndexExpr&) { all_stages(); });
    const int dim = schedule_.order[at];
    const int64_t points = block_chain_points(body_, schedule_, dim);
    const int64_t trips = (results_.dim(dim).value() + points - 1) / points;
    tiles_.loop(Exec::blocks, iter_name(dim), trips, [&](const IndexExpr& i) {
      first_[static_cast<size_t>(dim)] = i * points;
      blocks(at + 1);
    });
  }

  void all_stages() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (s > 0) tiles_.barrier();
      const StagePlace place = place_of(s);
      if (stages_[s].is_by_warp)
        by_warps(s, place);
      else
        by_threads(s, place);
    }
  }

  StagePlace place_of(size_t s) {
    const Stage& stage = stages_[s].stage;
    StagePlace place;
    for (const Along& along : stage.along)
      place.first.push_back(along.is_whole() ? IndexExpr(0)
                                             : first_[static_cast<size_t>(along.dim)]);
    const size_t parameters = body_.graph.inputs().size();
    if (s + 1 < stages_.size()) {
      sources_[parameters + s].first = place.first;
      place.outputs = {sources_[parameters + s]};
    } else {
      place.outputs = outputs_;
    }
    for (size_t source : stage.sources) place.inputs.push_back(sources_[source]);
    return place;
  }

  // The point of the stage's results that has this number in the block. Guards tell whether it is
  // there.
  Indices point(size_t s, const StagePlace& place, const IndexExpr& number, bool may_lack,
                Guards& guards) const {
    const Stage& stage = stages_[s].stage;
    if (may_lack) guards.push_back({number, 0, stages_[s].points});
    Indices index(stage.along.size(), 0);
    IndexExpr left = number;
    for (size_t d = stage.along.size(); d-- > 0;) {
      const int64_t points = stage.body.window[d];
      const IndexExpr own = points == 1 ? IndexExpr(0) : mod(left, points);
      left = floordiv(left, points);
      index[d] = place.first[d] + own;
      const Along& along = stage.along[d];
      if (along.is_whole() || results_.dim(along.dim).divisible_by(points)) continue;
      guards.push_back({index[d], 0, results_.dim(along.dim)});
    }
    return index;
  }

  // Threads side by side have neighbours along the last dim.
  void by_threads(size_t s, const StagePlace& place) {
    const BlockStage& stage = stages_[s];
    const int64_t threads = std::min(threads_, stage.points);
    tiles_.loop(Exec::threads, "t", threads, [&](const IndexExpr& thread) {
      PointBuilder points(stage.stage.body, tiles_, place);
      open_loop(tiles_, Exec::loop, "u", (stage.points + threads - 1) / threads,
                [&](const IndexExpr& u) {
                  Guards guards;
                  const Indices index =
                      point(s, place, u * threads + thread, stage.points % threads != 0, guards);
                  points.store_outputs(index, guards);
                });
    });
  }

  // A warp takes a point, and each of its threads every 32nd term along the longest dim.
  void by_warps(size_t s, const StagePlace& place) {
    const BlockStage& stage = stages_[s];
    const Graph& graph = stage.stage.body.graph;
    const int64_t warps = threads_ / kWarpLanes, rounds = (stage.points + warps - 1) / warps;
    open_loop(tiles_, Exec::loop, "round", rounds, [&](const IndexExpr& round) {
      const auto here = [&](const IndexExpr& thread, Guards& guards) {
        return point(s, place, round * warps + floordiv(thread, kWarpLanes),
                     stage.points % warps != 0, guards);
      };
      tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
        PointBuilder points(stage.stage.body, tiles_, place);
        points.split_by([&](NodeId node) { return splits(stage, node, thread); });
        Guards guards;
        const Indices index = here(thread, guards);
        tiles_.store(sums_[s], {}, points.at(graph.result(*stage.fold), index, guards));
      });
      tiles_.combine(sums_[s], {}, combining(stage));
      tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
        PointBuilder points(stage.stage.body, tiles_, place);
        Guards guards = {{mod(thread, kWarpLanes), 0, 1}};
        const Indices index = here(thread, guards);
        points.store(0, index, tiles_.load(sums_[s], {}), guards);
      });
    });
  }

  static PointBuilder::Splits splits(const BlockStage& stage, NodeId node,
                                     const IndexExpr& thread) {
    if (node != *stage.fold) return {};
    return {{.dim = stage.split, .lanes = kWarpLanes, .lane = mod(thread, kWarpLanes)}};
  }

  static Opcode combining(const BlockStage& stage) {
    const Op op = stage.stage.body.graph.op(*stage.fold);
    return is_contraction(op.opcode()) ? Opcode::add : combine_of(op.word("kind"));
  }

  const KernelBody& body_;
  const Schedule& schedule_;
  const std::vector<BlockStage> stages_;
  TileBuilder tiles_;
  const Type results_;
  const int64_t threads_;
  std::vector<IndexExpr> first_;                     // points of the results' dims, of the block
  std::vector<StagePlace::Port> sources_, outputs_;  // sources as stages count them
  std::vector<tile::BufferId> sums_;                 // by stage
};

}  // namespace

Result<TileProgram> build_block_chain(const KernelBody& body, const Schedule& schedule,
                                      std::string_view name) {
  return BlockChainBuilder(body, schedule, name).build();
}

}  // namespace hone
