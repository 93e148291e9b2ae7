#include "kernel/algorithms/block_winograd.h"

#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "program/build/tile_parts.h"
#include "program/build/winograd_tile.h"

namespace hone {
namespace {

// Phases: threads transform the data of a channel of a tile each. Blocks multiply them by the
// weights, which are transformed already (prepared.h), a matrix for each product of a tile. Then
// threads make the results of a feature of a tile each, with what comes behind the conv.
//
// Threads side by side have channels or features if these are neighbours in memory, else tiles.
class BlockWinogradBuilder : BlockBuilder {
 public:
  BlockWinogradBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name, prepared_input(body, schedule)),
        facts_(body),
        all_(block_winograd(body, facts_, schedule.get<BlockWinogradFields>().points).value()),
        product_(schedule.get<BlockWinogradFields>().stages.at(0)),
        weights_(prepared_input(body, schedule)->parameter) {
    data_ = shared("transformed", all_.data_dims());
    sums_ = shared("multiplied", all_.sums_dims());
  }

  TileProgram build() && {
    each_line(all_.shape.channels, all_.channels_last, [&](const Line& line) { data_of(line); });
    StagePlace place;
    place.inputs = {{data_}, {place_.inputs[weights_].buffer}};
    place.outputs = {{sums_}};
    build_block_tiles(all_.product, product_, place, tiles_);
    each_line(all_.shape.features, all_.features_last, [&](const Line& line) { results_of(line); });
    return finished();
  }

 private:
  // A channel or feature of a tile.
  struct Line {
    IndexExpr group, number, batch, tile = 0;
    Indices across = {};  // by spatial dim
  };

  tile::BufferId shared(std::string_view name, const std::vector<Dim>& dims) {
    return tiles_.buffer(name, Type::get(all_.dtype, dims), BufferRole::shared);
  }

  // A thread for each of the `lines` of a group at each tile. Lines are innermost if they are last.
  void each_line(int64_t lines, bool are_last, const std::function<void(const Line&)>& body) {
    std::vector<Dim> dims = {all_.batch};
    dims.insert(dims.end(), all_.across.begin(), all_.across.end());
    dims.insert(are_last ? dims.end() : dims.begin(), lines);
    dims.insert(dims.begin(), all_.dims.groups);
    each_point(tiles_, dims, [&](const Indices& point) {
      const size_t first = are_last ? 1 : 2, spatial = all_.across.size();  // of batch and tiles
      Line line = {
          .group = point[0], .number = are_last ? point.back() : point[1], .batch = point[first]};
      line.tile = line.batch;
      for (size_t i = 0; i < spatial; ++i) {
        line.across.push_back(point[first + 1 + i]);
        line.tile = line.tile * all_.across[i] + line.across.back();
      }
      body(line);
    });
  }

  WinogradTile tile_at(const Line& line, PointBuilder& points) {
    std::vector<int64_t> covered;
    for (int64_t tiles : all_.across) covered.push_back(tiles * all_.shape.points);
    WinogradTile tile(facts_, all_.dims, all_.shape.points, covered, all_.dtype, tiles_, points);
    tile.at(all_.dims.batch) = line.batch;
    for (size_t i = 0; i < line.across.size(); ++i)
      tile.corner(i) = line.across[i] * all_.shape.points;
    return tile;
  }

  void data_of(const Line& line) {
    PointBuilder points = points_here();
    WinogradTile tile = tile_at(line, points);
    // The group decides where its channels are.
    tile.at(all_.dims.features) = line.group * all_.shape.features;
    tile.at(all_.dims.channels) = line.number;
    int64_t product = 0;
    for (tile::Scalar number : tile.data({}))
      tiles_.store(data_,
                   all_.place(line.group, product++, line.tile, line.number, all_.channels_last),
                   number);
  }

  void results_of(const Line& line) {
    PointBuilder points = points_here();
    points.pin(facts_.space.anchor);
    WinogradTile tile = tile_at(line, points);
    tile.at(all_.dims.features) = line.group * all_.shape.features + line.number;
    WinogradTile::Line sums;
    for (int64_t product = 0; product < all_.shape.products; ++product)
      sums.push_back(tiles_.load(
          sums_, all_.place(line.group, product, line.tile, line.number, all_.features_last)));
    tile.store_results(sums, {});
  }

  const KernelFacts facts_;
  const BlockWinograd all_;
  const Schedule& product_;
  const size_t weights_;  // the parameter
  tile::BufferId data_ = 0, sums_ = 0;
};

}  // namespace

Result<TileProgram> build_block_winograd(const KernelBody& body, const Schedule& schedule,
                                         std::string_view name) {
  return BlockWinogradBuilder(body, schedule, name).build();
}

}  // namespace hone
