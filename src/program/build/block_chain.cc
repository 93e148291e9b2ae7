#include "kernel/algorithms/block_chain.h"

#include <map>
#include <memory>

#include "ir/op_facts.h"
#include "program/build/algorithms.h"
#include "program/build/tile_parts.h"
#include "program/build/warp_products.h"
#include "target/gpu.h"

namespace hone {

namespace {

// Stage by stage, with a barrier between them. A stage keeps a window of its value in memory of the
// block, which begins at the block's first points.
//
// If a block takes the row of a softmax in steps, the last stages are done for each of them. Their
// order is fixed, so bits are the same from run to run. With the scores s and data v of a step,
//   m' = max(m, max s), scale = exp(m - m'), t' = t * scale + sum exp(s - m'),
//   y' = y * scale + sum exp(s - m') * v,
// and the product is y / t in the end, or y if weights are not divided. A maximum of -inf counts as
// 0 for exponentials, so that these are 0. If it stays so, the product is 0 / 0: NaN, as for the
// whole row.
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
    for (const BlockStage& stage : stages_) {
      if (stage.held)
        sources_.push_back({tiles_.buffer("kept", *stage.held, BufferRole::block),
                            std::vector<IndexExpr>(stage.stage.body.window.size(), 0)});
      if (stage.row.part == RowPart::maxima) {
        largest_ = tiles_.buffer("largest", *stage.held, BufferRole::block);
        scale_ = tiles_.buffer("scale", *stage.held, BufferRole::block);
      }
      if (stage.tiles) products_.emplace(&stage, WarpProducts(tiles_, *stage.tiles));
    }
    for (const BlockStage& stage : stages_)
      sums_.push_back(!stage.is_by_warp
                          ? 0
                          : tiles_.buffer("sum", Type::get(sum_type(stage), {}), BufferRole::own));
    if (has_row() && !stages_.back().tiles)
      sums_.back() = tiles_.buffer(
          "sums", Type::get(sum_type(stages_.back()), {points_of_thread(stages_.back())}),
          BufferRole::own);
  }

  TileProgram build() && {
    blocks(0);
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
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

  bool has_row() const { return stages_.back().row.part != RowPart::none; }
  int64_t threads_of(const BlockStage& stage) const { return std::min(threads_, stage.points); }
  int64_t points_of_thread(const BlockStage& stage) const {
    return (stage.points + threads_of(stage) - 1) / threads_of(stage);
  }

  void all_stages() {
    size_t s = 0;
    for (; s < stages_.size() && stages_[s].row.part == RowPart::none; ++s) {
      if (s > 0) tiles_.barrier();
      stage(s);
    }
    if (s == stages_.size()) return;
    if (s > 0) tiles_.barrier();
    begin_row();
    const RowSteps& row = stages_[s].row;
    const auto step = [&](const IndexExpr& first, int64_t points) {
      step_ = first;
      step_points_ = points;
      for (RowPart part :
           {RowPart::scores, RowPart::maxima, RowPart::weights, RowPart::sums, RowPart::product}) {
        // A product needs no sums, which the end of the row reads.
        if (part != RowPart::scores && part != RowPart::product) tiles_.barrier();
        stage(stage_of(part));
      }
    };
    open_loop(tiles_, Exec::loop, "step", row.length / row.step,
              [&](const IndexExpr& i) { step(i * row.step, row.step); });
    if (row.length % row.step != 0) step(row.length / row.step * row.step, row.length % row.step);
    tiles_.barrier();
    end_row();
  }

  void stage(size_t s) {
    const StagePlace place = place_of(s);
    if (stages_[s].row.part == RowPart::product) return add_to_row(s, place);
    if (stages_[s].tiles) return by_tiles(s, place);
    if (stages_[s].is_by_warp) return by_warps(s, place);
    by_threads(s, place);
  }

  StagePlace place_of(size_t s) {
    const Stage& stage = stages_[s].stage;
    StagePlace place;
    for (const Along& along : stage.along)
      place.first.push_back(along.is_whole() ? IndexExpr(0)
                                             : first_[static_cast<size_t>(along.dim)]);
    if (has_points_of_row(stages_[s])) place.first[static_cast<size_t>(stages_[s].row.dim)] = step_;
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

  static bool has_points_of_row(const BlockStage& stage) {
    return stage.row.part == RowPart::scores || stage.row.part == RowPart::weights;
  }
  // The part of the row that is at hand, of those that the stage combines.
  PointBuilder::Splits splits_of_row(const BlockStage& stage) const {
    if (stage.row.part == RowPart::none || has_points_of_row(stage)) return {};
    return {{.dim = stage.row.dim, .first = step_, .extent = step_points_}};
  }
  // Guards tell whether a point of the stage's results is there: it may be behind the end of a dim.
  void add_guards(size_t s, const Indices& index, Guards& guards) const {
    const BlockStage& stage = stages_[s];
    for (size_t d = 0; d < index.size(); ++d) {
      const Along& along = stage.stage.along[d];
      if (has_points_of_row(stage) && static_cast<int>(d) == stage.row.dim) {
        if (step_points_ < stage.row.step) guards.push_back({index[d], 0, stage.row.length});
      } else if (!along.is_whole() &&
                 !results_.dim(along.dim).divisible_by(stage.stage.body.window[d])) {
        guards.push_back({index[d], 0, results_.dim(along.dim)});
      }
    }
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
    }
    add_guards(s, index, guards);
    return index;
  }

  static bool combines_row(const BlockStage& stage) {
    return stage.row.part == RowPart::maxima || stage.row.part == RowPart::sums;
  }

  // Threads side by side have neighbours along the last dim. `u` counts the points of a thread.
  using PointBody = std::function<void(PointBuilder&, const IndexExpr& u, const Indices& index,
                                       const Guards& guards)>;
  void each_point(size_t s, const StagePlace& place, Exec exec, const PointBody& body) {
    const BlockStage& stage = stages_[s];
    const int64_t threads = threads_of(stage);
    tiles_.loop(Exec::threads, "t", threads, [&](const IndexExpr& thread) {
      PointBuilder points(stage.stage.body, tiles_, place);
      take_one_for_sums(stage, points);
      open_loop(tiles_, exec, "u", points_of_thread(stage), [&](const IndexExpr& u) {
        Guards guards;
        const Indices index =
            point(s, place, u * threads + thread, stage.points % threads != 0, guards);
        body(points, u, index, guards);
      });
    });
  }

  void by_threads(size_t s, const StagePlace& place) {
    const BlockStage& stage = stages_[s];
    each_point(s, place, Exec::loop,
               [&](PointBuilder& points, const auto&, const Indices& index, const Guards& guards) {
                 if (!combines_row(stage)) return points.store_outputs(index, guards);
                 points.split_by([&](NodeId) { return splits_of_row(stage); });
                 store_so_far(s, place, points, index, guards,
                              combined(s, place, points, index, guards, 1, 0));
               });
  }

  // A warp takes a point, and each of its threads every 32nd term along the longest dim.
  void by_warps(size_t s, const StagePlace& place) {
    const BlockStage& stage = stages_[s];
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
        tiles_.store(
            sums_[s], {},
            combined(s, place, points, index, guards, kWarpLanes, mod(thread, kWarpLanes)));
      });
      tiles_.combine(sums_[s], {}, combining(stage));
      tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
        PointBuilder points(stage.stage.body, tiles_, place);
        Guards guards = {{mod(thread, kWarpLanes), 0, 1}};
        const Indices index = here(thread, guards);
        const Scalar sum = tiles_.load(sums_[s], {});
        if (!combines_row(stage)) return points.store(0, index, sum, guards);
        store_so_far(s, place, points, index, guards, sum);
      });
    });
  }

  PointBuilder::Splits splits(const BlockStage& stage, NodeId node, const IndexExpr& thread) const {
    if (node != *stage.fold) return {};
    PointBuilder::Splits splits = splits_of_row(stage);
    if (splits.empty()) splits.push_back({.dim = stage.split});
    splits[0].lanes = kWarpLanes;
    splits[0].lane = mod(thread, kWarpLanes);
    return splits;
  }

  // The combination of all terms of the fold, or of each that a lane has. Weights of a row are
  // there already: their sum takes them.
  Scalar combined(size_t s, const StagePlace& place, PointBuilder& points, const Indices& index,
                  const Guards& guards, int64_t lanes, const IndexExpr& lane) {
    const BlockStage& stage = stages_[s];
    if (stage.row.part != RowPart::sums)
      return points.at(stage.stage.body.graph.result(*stage.fold), index, guards);
    const tile::BufferId weights = kept(RowPart::weights);
    const DType dtype = tiles_.program().buffers[weights].type.dtype();
    Indices at = in_block(index, place);
    const auto row = at.begin() + stages_[stage_of(RowPart::weights)].row.dim;
    const auto where = static_cast<size_t>(at.insert(row, 0) - at.begin());
    const Scalar zero = points.zero(stage.held->dtype());
    return tiles_.carry(
        Exec::loop, "k", (step_points_ + lanes - 1) / lanes, zero, Opcode::add,
        [&](const IndexExpr& k, Scalar so_far) {
          Guards all = guards;
          at[where] = k * lanes + lane;
          if (step_points_ % lanes != 0) all.push_back({at[where], 0, step_points_});
          const Scalar weight = all.empty() ? tiles_.load(weights, at)
                                            : tiles_.load(weights, at, all, points.zero(dtype));
          return tiles_.compute(Opcode::add, {so_far, tiles_.cast(weight, wide_type(dtype))});
        });
  }

  static Opcode combining(const BlockStage& stage) {
    const Op op = stage.stage.body.graph.op(*stage.fold);
    return is_contraction(op.opcode()) ? Opcode::add : combine_of(op.word("kind"));
  }

  // ---- Tensor cores ----------------------------------------------------------------------------

  void by_tiles(size_t s, const StagePlace& place) {
    products_.at(&stages_[s]).clear();
    multiply(s, place);
    store_products(s, place);
  }

  void multiply(size_t s, const StagePlace& place) {
    const bool has_row = !splits_of_row(stages_[s]).empty();
    products_.at(&stages_[s])
        .multiply(has_row ? step_points_ : stages_[s].tiles->product.points,
                  [&] { return numbers(s, place); });
  }

  // For a loop over threads.
  WarpProducts::NumberOf numbers(size_t s, const StagePlace& place) {
    const auto points = std::make_shared<PointBuilder>(stages_[s].stage.body, tiles_, place);
    return [this, s, place, points](size_t side, const IndexExpr& line, const IndexExpr& depth) {
      const BlockStage& stage = stages_[s];
      const WarpTiles& tiles = *stage.tiles;
      const bool has_row = !splits_of_row(stage).empty();
      Guards gaps;
      Indices point = place.first;
      add_line(s, place, side, line, point, gaps);
      add_guards_of_side(s, side, point, gaps);
      const int64_t depths = has_row ? step_points_ : tiles.product.points;
      if (depths % WarpTiles::kDepth != 0) gaps.push_back({depth, 0, depths});
      Indices iters;
      for (const IndexExpr& expr : tiles.index) iters.push_back(expr.substitute(point));
      const AccessRelation relation = relation_of(stage.stage.body.graph, *stage.fold);
      const size_t rank = iters.size();
      iters.resize(relation.dims.size(), 0);
      IndexExpr left = depth;
      for (size_t d = relation.dims.size(); d-- > rank;) {
        const Dim extent = relation.dims[d].extent;
        iters[d] = d == rank ? left : mod(left, extent);
        left = floordiv(left, extent);
      }
      if (has_row) iters[rank] = step_ + depth;
      // A number that lies there in the type of factors is taken as it is.
      const auto from = points->element_of_factor(*stage.fold, side, iters, gaps);
      if (!from || tiles_.program().buffers[from->buffer].type.dtype() != tiles.numbers)
        return points->factor(*stage.fold, side, iters, {}, gaps);
      if (from->guards.empty()) return tiles_.load(from->buffer, from->index);
      return tiles_.load(from->buffer, from->index, from->guards, tiles_.zero(tiles.numbers));
    };
  }

  // Moves the point to this line of the block's product.
  void add_line(size_t s, const StagePlace& place, size_t side, const IndexExpr& line,
                Indices& point, Guards& guards) const {
    const WarpTiles& tiles = *stages_[s].tiles;
    const std::vector<int>& dims = tiles.product.sides[side];
    const bool has_all = tiles.product.lines[side] == tiles.lines(side);
    if (!has_all) guards.push_back({line, 0, tiles.product.lines[side]});
    IndexExpr left = line;
    for (size_t i = dims.size(); i-- > 0;) {
      const auto d = static_cast<size_t>(dims[i]);
      const int64_t points = stages_[s].stage.body.window[d];
      point[d] = place.first[d] + (i == 0 && has_all ? left : mod(left, points));
      left = floordiv(left, points);
    }
  }

  void add_guards_of_side(size_t s, size_t side, const Indices& point, Guards& guards) const {
    Guards all;
    add_guards(s, point, all);
    const std::vector<int>& dims = stages_[s].tiles->product.sides[side];
    for (const Guard& guard : all)
      if (std::ranges::any_of(dims,
                              [&](int d) { return point[static_cast<size_t>(d)] == guard.value; }))
        guards.push_back(guard);
  }

  // For each sum of a thread: the point of the results, and the guards that tell whether they are
  // there.
  using SumBody = std::function<void(PointBuilder&, const Indices& sum, const Indices& index,
                                     const Guards& guards)>;
  void each_product(size_t s, const StagePlace& place, const SumBody& body) {
    WarpProducts& products = products_.at(&stages_[s]);
    tiles_.loop(Exec::threads, "t", products.threads(), [&](const IndexExpr& thread) {
      PointBuilder points(stages_[s].stage.body, tiles_, place);
      points.pin(*stages_[s].fold);
      products.each_sum(thread,
                        [&](const Indices& sum, const IndexExpr& row, const IndexExpr& column) {
                          Guards guards;
                          Indices index = place.first;
                          add_line(s, place, 0, row, index, guards);
                          add_line(s, place, 1, column, index, guards);
                          add_guards(s, index, guards);
                          body(points, sum, index, guards);
                        });
    });
  }

  void store_products(size_t s, const StagePlace& place) {
    const ValueId product = stages_[s].stage.body.graph.result(*stages_[s].fold);
    each_product(
        s, place,
        [&](PointBuilder& points, const Indices& at, const Indices& index, const Guards& guards) {
          Scalar sum = tiles_.load(products_.at(&stages_[s]).sums(), at);
          if (stages_[s].row.part == RowPart::product)
            sum = of_whole_row(points, sum, index, guards);
          points.bind(product, sum);
          points.store_outputs(index, guards);
        });
  }

  // ---- The row of a softmax, step by step ------------------------------------------------------

  size_t stage_of(RowPart part) const {
    return static_cast<size_t>(
        std::ranges::find(stages_, part, [](const BlockStage& stage) { return stage.row.part; }) -
        stages_.begin());
  }
  tile::BufferId kept(RowPart part) const {
    return sources_[body_.graph.inputs().size() + stage_of(part)].buffer;
  }

  void begin_row() {
    const size_t maxima = stage_of(RowPart::maxima);
    const DType dtype = stages_[maxima].held->dtype();
    const StagePlace place = place_of(maxima);
    each_point(maxima, place, Exec::loop,
               [&](PointBuilder& points, const auto&, const Indices& index, const Guards& guards) {
                 const Indices at = in_block(index, place);
                 tiles_.store(largest_, at, points.identity(Opcode::max, dtype), guards);
                 tiles_.store(kept(RowPart::sums), at, points.zero(dtype), guards);
               });
    const size_t last = stages_.size() - 1;
    if (stages_[last].tiles) return products_.at(&stages_[last]).clear();
    each_point(last, place_of(last), Exec::unroll,
               [&](PointBuilder& points, const IndexExpr& u, const auto&, const auto&) {
                 tiles_.store(sums_[last], {u}, points.zero(dtype));
               });
  }

  static Indices in_block(const Indices& index, const StagePlace& place) {
    Indices at = index;
    for (size_t d = 0; d < at.size(); ++d) at[d] = at[d] - place.first[d];
    return at;
  }

  // Joins what a step has found with what there was.
  void store_so_far(size_t s, const StagePlace& place, PointBuilder& points, const Indices& index,
                    const Guards& guards, Scalar found) {
    const Indices at = in_block(index, place);
    const DType dtype = stages_[s].held->dtype();
    const Scalar zero = points.zero(dtype);
    const auto load = [&](tile::BufferId buffer) {
      return guards.empty() ? tiles_.load(buffer, at) : tiles_.load(buffer, at, guards, zero);
    };
    if (stages_[s].row.part == RowPart::sums) {
      const tile::BufferId sums = kept(RowPart::sums);
      return tiles_.store(sums, at, tiles_.fma(load(sums), load(scale_), found), guards);
    }
    const auto select = [&](Scalar condition, Scalar a, Scalar b) {
      return tiles_.compute(Opcode::select, {condition, a, b});
    };
    const Scalar before = load(largest_), now = tiles_.compute(Opcode::max, {before, found});
    const Scalar none = points.identity(Opcode::max, dtype), one = points.number(dtype, 1.0);
    const Scalar scale = tiles_.compute(Opcode::exp, {tiles_.compute(Opcode::sub, {before, now})});
    tiles_.store(scale_, at, select(points.compare("eq", before, none), one, scale), guards);
    tiles_.store(largest_, at, now, guards);
    points.store(0, index, select(points.compare("eq", now, none), zero, now), guards);
  }

  // Weights are exponentials until the row has ended.
  void take_one_for_sums(const BlockStage& stage, PointBuilder& points) const {
    if (stage.row.part != RowPart::weights || !stage.row.is_divided) return;
    const size_t sums = body_.graph.inputs().size() + stage_of(RowPart::sums);
    points.take_elements_from([this, &stage, &points, sums](ValueId parameter, const Indices&) {
      const std::span<const ValueId> inputs = stage.stage.body.graph.inputs();
      const auto at = std::ranges::find(inputs, parameter) - inputs.begin();
      if (stage.stage.sources[static_cast<size_t>(at)] != sums) return std::optional<Scalar>();
      return std::optional(points.number(stages_[stage_of(RowPart::sums)].held->dtype(), 1.0));
    });
  }

  // A number of the row that a point of the results belongs to.
  Scalar of_row(tile::BufferId buffer, const Indices& index, const Guards& guards) {
    Indices at;
    for (const Along& along : stages_[stage_of(RowPart::maxima)].stage.along) {
      const auto d = static_cast<size_t>(std::max(along.dim, 0));
      at.push_back(along.is_whole() ? IndexExpr(0) : index[d] - first_[d]);
    }
    if (guards.empty()) return tiles_.load(buffer, std::move(at));
    return tiles_.load(buffer, std::move(at), guards,
                       tiles_.real(tiles_.program().buffers[buffer].type.dtype(), 1));
  }
  // The product of the weights as they are where the row has ended.
  Scalar of_whole_row(PointBuilder& points, Scalar sum, const Indices& index,
                      const Guards& guards) {
    const tile::BufferId sums = kept(RowPart::sums);
    const Scalar total = of_row(sums, index, guards);
    const Scalar divided = tiles_.compute(Opcode::div, {sum, total});
    if (stages_.back().row.is_divided) return divided;
    const Scalar zero = points.zero(tiles_.program().buffers[sums].type.dtype());
    return tiles_.compute(Opcode::select, {points.compare("eq", total, zero), divided, sum});
  }

  // Scales the sums of products so far, and adds those of a step.
  void add_to_row(size_t s, const StagePlace& place) {
    const BlockStage& stage = stages_[s];
    if (stage.tiles) {
      const tile::BufferId sums = products_.at(&stage).sums();
      each_product(
          s, place,
          [&](PointBuilder&, const Indices& at, const Indices& index, const Guards& guards) {
            tiles_.store(sums, at,
                         tiles_.compute(Opcode::mul,
                                        {tiles_.load(sums, at), of_row(scale_, index, guards)}));
          });
      return multiply(s, place);
    }
    each_point(
        s, place, Exec::unroll,
        [&](PointBuilder& points, const IndexExpr& u, const Indices& index, const Guards& guards) {
          points.split_by([&](NodeId) { return splits_of_row(stage); });
          Indices product;
          const KernelFacts facts(stage.stage.body);
          for (const IndexExpr& expr : facts.contraction->index)
            product.push_back(expr.substitute(index));
          const Scalar before = tiles_.compute(
              Opcode::mul, {tiles_.load(sums_[s], {u}), of_row(scale_, index, guards)});
          tiles_.store(sums_[s], {u}, points.sum_of_products(*stage.fold, product, guards, before));
        });
  }

  void end_row() {
    const size_t last = stages_.size() - 1;
    const StagePlace place = place_of(last);
    const BlockStage& stage = stages_[last];
    if (stage.tiles) return store_products(last, place);
    each_point(
        last, place, Exec::unroll,
        [&](PointBuilder& points, const IndexExpr& u, const Indices& index, const Guards& guards) {
          points.pin(*stage.fold);
          const Scalar sum = tiles_.load(sums_[last], {u});
          points.bind(stage.stage.body.graph.result(*stage.fold),
                      of_whole_row(points, sum, index, guards));
          points.store_outputs(index, guards);
        });
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
  std::map<const BlockStage*, WarpProducts> products_;
  tile::BufferId largest_ = 0, scale_ = 0;  // of each row: the largest score so far; of its sums
  IndexExpr step_ = 0;                      // the first point of the row that is at hand
  int64_t step_points_ = 0;
};

}  // namespace

Result<TileProgram> build_block_chain(const KernelBody& body, const Schedule& schedule,
                                      std::string_view name) {
  return BlockChainBuilder(body, schedule, name).build();
}

}  // namespace hone
