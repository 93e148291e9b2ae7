#include "program/build/algorithms.h"

#include "base/planted.h"
#include "kernel/stages.h"
#include "program/build/tile_parts.h"

namespace hone {

namespace {

// From outside in: loops over blocks, those at the end of dims apart; in a block one stage after
// another.
class ChainBuilder {
 public:
  ChainBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : body_(body),
        schedule_(schedule),
        stages_(stages_of(body, schedule).value()),
        tiles_(name),
        results_(body.graph.type(body.graph.outputs()[0])),
        dims_(static_cast<size_t>(results_.rank())),
        scratch_(stages_.size()) {
    StagePlace whole = kernel_place(body, tiles_);
    sources_ = std::move(whole.inputs);
    outputs_ = std::move(whole.outputs);
    for (size_t s = 0; s + 1 < stages_.size(); ++s) {
      const Graph& stage = stages_[s].body.graph;
      const std::vector<int64_t>& window = stages_[s].body.window;
      const Type block = Type::get(stage.type(stage.outputs()[0]).dtype(),
                                   std::vector<Dim>(window.begin(), window.end()));
      const Type held = stored_type(stages_[s].body.outputs[0], block);
      sources_.push_back({tiles_.buffer(fmt::format("kept{}", s), held, BufferRole::scratch),
                          std::vector<IndexExpr>(window.size(), 0)});
    }
  }

  TileProgram build() && {
    phases(0);
    return std::move(tiles_).finish();
  }

 private:
  // Where the loops are in a dim that is taken in blocks.
  struct Place {
    TilePart block = {};  // its `unroll` is the block's extent
    IndexExpr trip = 0;
    IndexExpr first() const { return block.point(trip, 0, 0); }
  };

  Place& place(size_t at) { return dims_[static_cast<size_t>(schedule_.order[at])]; }
  std::vector<TilePart> blocks(size_t at) const {
    const int dim = schedule_.order[at];
    return tile_parts(results_.dim(dim), block_points(body_, schedule_, dim), 1);
  }

  // A phase for each choice of parts of the dims that threads divide: a threads loop has nothing
  // beside it.
  void phases(size_t at) {
    if (at < static_cast<size_t>(schedule_.threads)) {
      for (const TilePart& block : blocks(at)) {
        place(at).block = block;
        phases(at + 1);
      }
      return;
    }
    if (schedule_.threads > 0) return loops(0);
    tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { loops(0); });
  }

  void loops(size_t at) {
    if (at == schedule_.order.size()) return all_stages();
    const std::string_view name = iter_name(schedule_.order[at]);
    const auto inside = [&](const IndexExpr& trip) {
      place(at).trip = trip;
      loops(at + 1);
    };
    if (at < static_cast<size_t>(schedule_.threads))
      return tiles_.loop(Exec::threads, name, place(at).block.trips, inside);
    for (const TilePart& block : blocks(at)) {
      place(at).block = block;
      open_loop(tiles_, Exec::loop, name, block.trips, inside);
    }
  }

  void all_stages() {
    for (size_t s = 0; s < stages_.size(); ++s) stage(s);
  }

  void stage(size_t s) {
    const Stage& stage = stages_[s];
    KernelBody body = stage.body;
    StagePlace at;
    for (size_t d = 0; d < stage.along.size(); ++d) {
      const Along& along = stage.along[d];
      if (along.is_whole()) {
        at.first.push_back(0);
        continue;
      }
      const Place& block = dims_[static_cast<size_t>(along.dim)];
      at.first.push_back(HONE_PLANT(halo_first, along, Along{along.dim}).origin(block.first()));
      body.window[d] = along.points(block.block.unroll);
    }
    const size_t parameters = body_.graph.inputs().size();
    if (s + 1 < stages_.size()) {
      StagePlace::Port& kept = sources_[parameters + s];
      kept.first = at.first;
      at.first = HONE_PLANT(kept_first, kept.first, std::vector<IndexExpr>(kept.first.size(), 0));
      at.outputs = {{kept.buffer, at.first}};
    } else {
      at.outputs = outputs_;
    }
    for (size_t source : stage.sources) at.inputs.push_back(sources_[source]);
    at.scratch = &scratch_[s];
    const Schedule& schedule = schedule_.get<ChainFields>().stages[s];
    if (schedule.algorithm() == Algorithm::gemm)
      build_gemm(body, schedule, at, tiles_);
    else
      build_nest(body, schedule, at, tiles_);
  }

  const KernelBody& body_;
  const Schedule& schedule_;
  const std::vector<Stage> stages_;
  TileBuilder tiles_;
  const Type results_;
  std::vector<Place> dims_;
  std::vector<StagePlace::Port> sources_, outputs_;   // sources as stages count them
  std::vector<std::vector<tile::BufferId>> scratch_;  // by stage
};

}  // namespace

Result<TileProgram> build_chain(const KernelBody& body, const Schedule& schedule,
                                std::string_view name) {
  return ChainBuilder(body, schedule, name).build();
}

}  // namespace hone
