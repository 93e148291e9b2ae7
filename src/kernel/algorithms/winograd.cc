#include "kernel/algorithms/winograd.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/planted.h"
#include "ir/op_facts.h"
#include "kernel/algorithms/loops.h"

namespace hone {
namespace {

// The iter that the expression is, from `low` to `high`; -1: it is none.
int plain_iter(const IndexExpr& expr, int low, int high) {
  for (int iter = low; iter < high; ++iter)
    if (expr == IndexExpr::iter(iter)) return iter;
  return -1;
}

// The iter that the expression goes along point by point; -1: none, or several.
int step_iter(const IndexExpr& expr, int low, int high) {
  int found = -1;
  for (int iter = low; iter < high; ++iter) {
    if (!expr.mentions(iter)) continue;
    if (found >= 0 || expr.coefficient(iter) != 1) return -1;
    found = iter;
  }
  return found;
}

const WinogradDims dims_of(const ScheduleSite& site) {
  return *winograd_dims(site.body, site.facts);
}
int features_of(const ScheduleSite& site) { return dims_of(site).features; }
int64_t permitted(const ScheduleSite& site) {
  return site.body.graph.op(site.facts.space.anchor).integer("winograd");
}

// ---- Domains ------------------------------------------------------------------------------------

constexpr int kCuts[] = {0, 2, 4, 8};  // parts of the features of a group; 0: they are not cut
bool may_be_cut(const ScheduleSite& site, const WinogradDims& dims, int parts) {
  return std::ranges::find(kCuts, parts) != std::end(kCuts) &&
         (parts == 0 || site.extent(dims.features) / dims.groups % parts == 0);
}
std::vector<int> numbers_of_parts(const ScheduleSite& site) {
  const WinogradDims dims = dims_of(site);
  std::vector<int> all;
  for (int parts : kCuts)
    if (may_be_cut(site, dims, parts)) all.push_back(parts);
  return all;
}
Counts lanes_of_features(const ScheduleSite& site, const Schedule& so_far, int dim) {
  return dim == features_of(site) ? lane_counts(site, so_far, dim) : Counts();
}
Counts register_tiles(const ScheduleSite& site, const Schedule&, int dim) {
  const WinogradDims dims = dims_of(site);
  if (dim == dims.features) return {.size = 8};
  return dim == dims.spatial.back() ? Counts{.size = 16} : Counts();
}
int64_t tiles_along(const ScheduleSite& site, const Schedule& schedule, int dim) {
  const int64_t points = schedule.get<WinogradFields>().points;
  return (site.extent(dim) + points - 1) / points;
}
Counts tiles_together(const ScheduleSite& site, const Schedule& so_far, int dim) {
  const std::vector<int> spatial = dims_of(site).spatial;
  const bool is_spatial = std::ranges::find(spatial, dim) != spatial.end();
  if (!is_spatial || so_far.if_is<WinogradFields>() == nullptr) return {};
  return {.size = tiles_along(site, so_far, dim)};
}
bool any(const ScheduleSite&, const std::vector<Tile>&) { return true; }

template <auto counts>
void draw_tiles(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& tiles,
                Rng& rng) {
  for (int dim = 0; dim < site.parallel(); ++dim) {
    const Counts all = counts(site, so_far, dim);
    if (all.size > 0 && rng.chance(0.6))
      tiles.push_back({dim, all.at(rng.between(0, std::min<int64_t>(all.size, 8) - 1))});
  }
}

const NumberDecision kPoints("points", own_field<WinogradFields, &WinogradFields::points>(),
                             winograd_numbers_of_points);
const NumberDecision kParts("parts", own_field<WinogradFields, &WinogradFields::parts>(),
                            numbers_of_parts);
const OrderDecision kFeaturesLast(features_of);
const CountDecision kThreadsOfAll("threads", shared_field<&Schedule::threads>(), 0.6, most_threads);
const TileDecision kFeatureLanes("lanes", shared_field<&Schedule::lanes>(),
                                 {lanes_of_features, any, draw_tiles<lanes_of_features>});
const TileDecision kRegisterTiles("unroll", shared_field<&Schedule::unroll>(),
                                  {register_tiles, any, draw_tiles<register_tiles>});
const TileDecision kWinogradBlock("block", own_field<WinogradFields, &WinogradFields::block>(),
                                  {tiles_together, any, draw_tiles<tiles_together>});

Status check_tiles_of(const ScheduleSite& site, const WinogradDims& dims,
                      const Schedule& schedule) {
  for (const Tile& tile : schedule.lanes)
    if (tile.dim != dims.features)
      return unsupported("winograd has lanes of the features, not of dim {}", tile.dim);
  for (const Tile& tile : schedule.unroll)
    if (tile.dim != dims.features && tile.dim != dims.spatial.back())
      return unsupported("winograd unrolls the features and dim {}, not dim {}",
                         dims.spatial.back(), tile.dim);
  const int parts = schedule.get<WinogradFields>().parts;
  if (!may_be_cut(site, dims, parts))
    return unsupported(
        "winograd cannot cut its features into {} parts, only into 2, 4 or 8 that divide "
        "those of a group",
        parts);
  std::set<int> seen;
  for (const Tile& tile : schedule.get<WinogradFields>().block) {
    if (std::ranges::find(dims.spatial, tile.dim) == dims.spatial.end())
      return unsupported("winograd has blocks of the image's dims, not of dim {}", tile.dim);
    if (!seen.insert(tile.dim).second) return bad_input("dim {} has two blocks", tile.dim);
    const int64_t all = tiles_along(site, schedule, tile.dim);
    if (tile.count < 1 || tile.count > all)
      return bad_input("a block of {} tiles, outside of 1..{}, those along dim {}", tile.count, all,
                       tile.dim);
  }
  return {};
}

class Winograd : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_loops(site, schedule));
    const WinogradDims dims = HONE_TRY(winograd_dims(site.body, site.facts));
    if (site.is_stage()) return unsupported("winograd is for whole kernels");
    HONE_TRY(check_winograd_points(site, schedule.get<WinogradFields>().points));
    if (schedule.order.back() != dims.features)
      return bad_input("dim {} of the features is not the innermost loop", dims.features);
    HONE_TRY(check_tiles_of(site, dims, schedule));
    const WinogradShape shape(dims, site.facts.space, schedule);
    const int parts = schedule.get<WinogradFields>().parts;
    if (parts > 1 && shape.features % shape.panel() != 0)
      return unsupported("{} parts of the features are not whole panels of {}", parts,
                         shape.panel());
    // Tiles of features, of rows and of channels may each have another one at the end.
    const double statements =
        kWinogradStatements * static_cast<double>(shape.products * 4) +
        static_cast<double>(site.facts.work.statements) * static_cast<double>(shape.products) +
        4 * static_cast<double>(shape.rows * shape.vectors);
    HONE_TRY(check_code(site, statements));
    const double numbers =
        static_cast<double>(shape.products) * static_cast<double>(shape.tiles) *
        (static_cast<double>(shape.channels) + static_cast<double>(shape.panel()));
    return check_scratch(site, kMaxElementBytes * numbers, "transformed tiles");
  }
  bool takes(const ScheduleSite& site) const override {
    return all_have_points(site) && !site.is_stage() && winograd_dims(site.body, site.facts).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kPoints,        &kFeaturesLast,  &kThreadsOfAll, &kFeatureLanes,
            &kRegisterTiles, &kWinogradBlock, &kParts};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    return {.order = kFeaturesLast.simplest(site), .own = WinogradFields()};
  }
  uint64_t weight() const override { return 2; }

  // The transformed weights.
  std::optional<PreparedInput> prepared(const KernelBody& body,
                                        const Schedule& schedule) const override {
    const KernelFacts facts(body);
    const WinogradDims dims = winograd_dims(body, facts).value();
    return winograd_input(body, facts, dims, WinogradShape(dims, facts.space, schedule));
  }
  bool saves_products() const override { return true; }
  double share_of_products(const ScheduleSite& site, const Schedule& schedule) const override {
    const Result<WinogradDims> dims = winograd_dims(site.body, site.facts);
    return dims.ok() ? winograd_share(WinogradShape(*dims, site.facts.space, schedule)) : 1;
  }
  std::shared_ptr<const void> roles(const KernelFacts& facts) const override {
    Result<WinogradDims> dims = winograd_dims(facts.body, facts);
    if (!dims.ok()) return nullptr;
    return std::make_shared<WinogradRoles>(*std::move(dims), facts.space);
  }
};

Status check_op(const Graph& graph, const KernelSpace& space) {
  const Op op = graph.op(space.anchor);
  const bool is_conv = is_convolution(op.opcode());
  const int dims = static_cast<int>(space.dims.size());
  if (!is_conv || space.parallel < 3 || space.parallel > 4 || dims != 2 * space.parallel - 1)
    return unsupported("winograd is for convs of one or two spatial dims, not for {}",
                       graph.describe(space.anchor));
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  const DType dtype = graph.type(graph.result(space.anchor)).dtype();
  if (std::ranges::find(kTypes, dtype) == std::end(kTypes))
    return unsupported("winograd multiplies by fractions, which {} does not have", name(dtype));
  if (op.integer("winograd") < kWinogradPoints[0])
    return unsupported("the conv does not permit that its products are transformed");
  return {};
}

// Only the conv reads the weights, and nothing is between the parameter and the conv.
Status check_weights(const KernelBody& body, NodeId conv) {
  const Graph& graph = body.graph;
  const ValueId weights = graph.operands(conv)[1];
  if (std::ranges::find(graph.inputs(), weights) == graph.inputs().end())
    return unsupported("winograd needs weights that the kernel does not compute");
  int64_t reads = std::ranges::count(graph.outputs(), weights);
  for (NodeId n : graph.nodes()) reads += std::ranges::count(graph.operands(n), weights);
  if (reads > 1) return unsupported("winograd needs weights that only the conv reads");
  return {};
}

// Fills in what the conv's data say; -1 where they do not.
void find_data_dims(const Contraction& contraction, const KernelSpace& space,
                    const ConvOrder& order, WinogradDims& roles) {
  const int dims = static_cast<int>(space.dims.size());
  roles.batch = roles.channels = -1;
  for (size_t d = 0; d < contraction.reads[0].size(); ++d) {
    const IndexExpr& expr = contraction.reads[0][d];
    if (static_cast<int>(d) == order.input_feature) {
      // The channels before those of a feature's group go by the feature.
      roles.channels = step_iter(expr, space.parallel, dims);
    } else if (const int batch = plain_iter(expr, 0, space.parallel); batch >= 0) {
      roles.batch = batch;
    } else {
      roles.spatial.push_back(step_iter(expr, 0, space.parallel));
      roles.window.push_back(step_iter(expr, space.parallel, dims));
    }
  }
}

void find_weights_dims(const Contraction& contraction, const KernelSpace& space,
                       WinogradDims& roles) {
  roles.weights.window.resize(roles.window.size());
  for (size_t d = 0; d < contraction.reads[1].size(); ++d) {
    const int iter = plain_iter(contraction.reads[1][d], 0, static_cast<int>(space.dims.size()));
    const int dim = static_cast<int>(d);
    if (iter == roles.features) roles.weights.features = dim;
    if (iter == roles.channels) roles.weights.channels = dim;
    const auto window = std::ranges::find(roles.window, iter);
    if (window != roles.window.end())
      roles.weights.window[static_cast<size_t>(window - roles.window.begin())] = dim;
  }
}

}  // namespace

Result<WinogradDims> winograd_dims(const KernelBody& body, const KernelFacts& facts) {
  if (!facts.contraction.ok()) return facts.contraction.error();
  const Contraction& contraction = *facts.contraction;
  const KernelSpace& space = facts.space;
  const Op op = body.graph.op(space.anchor);
  HONE_TRY(check_op(body.graph, space));
  HONE_TRY(check_weights(body, space.anchor));
  for (const IndexExpr& expr : contraction.index)
    if (plain_iter(expr, 0, space.parallel) < 0)
      return unsupported("winograd needs each point of the conv at one place");
  const int dims = static_cast<int>(space.dims.size());
  const size_t spatial = static_cast<size_t>(space.parallel) - 2;
  WinogradDims roles;
  roles.groups = op.integer("groups");
  find_data_dims(contraction, space, *parse_conv_order(op.word("order"), space.parallel - 2),
                 roles);
  const auto has_three = [&](int dim) {
    return dim >= 0 && space.dims[static_cast<size_t>(dim)].extent.is(kWinogradWindow);
  };
  const bool fits = roles.batch >= 0 && roles.channels >= 0 && roles.spatial.size() == spatial &&
                    std::ranges::all_of(roles.window, has_three) &&
                    std::ranges::min(roles.spatial) >= 0 && !contraction.has_holes[0];
  if (!fits) return unsupported("winograd is for windows of 3 with stride 1, without dilation");
  for (int dim = 0; dim < dims; ++dim)
    if (dim != roles.batch && !space.dims[static_cast<size_t>(dim)].extent.is_static())
      return unsupported("winograd needs an image of a known size");
  if (roles.groups > 1 && space.dims[static_cast<size_t>(roles.channels)].extent.is(1))
    return unsupported("winograd sums over channels, of which a group of a depthwise conv has one");
  roles.features = space.parallel * (space.parallel - 1) / 2 - roles.batch;
  for (int dim : roles.spatial) roles.features -= dim;
  find_weights_dims(contraction, space, roles);
  return roles;
}

WinogradShape::WinogradShape(const WinogradDims& dims, const KernelSpace& space,
                             const Schedule& schedule) {
  const auto extent = [&](int dim) { return space.dims[static_cast<size_t>(dim)].extent.value(); };
  const WinogradFields& own = schedule.get<WinogradFields>();
  points = own.points;
  products = 1;
  for (int dim : dims.spatial) {
    products *= points + kWinogradWindow - 1;
    block.push_back(tile_of(own.block, dim));
    tiles *= block.back();
  }
  rows = tile_of(schedule.unroll, dims.spatial.back());
  lanes = tile_of(schedule.lanes, dims.features);
  vectors = tile_of(schedule.unroll, dims.features);
  channels = extent(dims.channels);
  parts = dims.groups * std::max(own.parts, 1);
  features = extent(dims.features) / parts;
}

std::vector<int> winograd_numbers_of_points(const ScheduleSite& site) {
  std::vector<int> all;
  for (int64_t points : kWinogradPoints)
    if (all.empty() || points <= permitted(site)) all.push_back(static_cast<int>(points));
  return all;
}

Status check_winograd_points(const ScheduleSite& site, int points) {
  if (std::ranges::find(kWinogradPoints, points) == std::end(kWinogradPoints))
    return bad_input("winograd has no transform of {} points", points);
  if (points > permitted(site))
    return unsupported("the conv permits transforms of at most {} points, not of {}",
                       permitted(site), points);
  return {};
}

double winograd_share(const WinogradShape& shape) {
  double products = 1;  // of the conv, for a tile of results
  for (size_t i = 0; i < shape.block.size(); ++i)
    products *= static_cast<double>(shape.points * kWinogradWindow);
  return static_cast<double>(shape.products) / products;
}

// ---- Weights ------------------------------------------------------------------------------------

PreparedInput winograd_input(const KernelBody& body, const KernelFacts& facts,
                             const WinogradDims& dims, const WinogradShape& shape) {
  const Graph& graph = body.graph;
  const ValueId weights = graph.operands(facts.space.anchor)[1];
  const auto parameter = std::ranges::find(graph.inputs(), weights) - graph.inputs().begin();
  const DType sums = graph.type(graph.result(facts.space.anchor)).dtype();
  const DType dtype = sums == DType::f64 ? DType::f64 : DType::f32;
  return {static_cast<size_t>(parameter), winograd_weights_type(shape, dtype),
          [=](const Tensor& tensor) { return winograd_weights(tensor, dims, shape, dtype); }};
}

Type winograd_weights_type(const WinogradShape& shape, DType dtype) {
  return Type::get(dtype,
                   {shape.parts * shape.panels(), shape.products, shape.channels, shape.panel()});
}

namespace {

template <class T>
void fill_weights(const WinogradWindows& weights, const WinogradShape& shape, std::span<T> to) {
  const std::vector<double> matrix =
      weights_matrix(WinogradTransform(shape.points), weights.dims());
  std::vector<double> window(weights.taps());
  std::ranges::fill(to, T(0));
  for (int64_t feature = 0; feature < shape.parts * shape.features; ++feature) {
    const int64_t part = feature / shape.features, in_part = feature % shape.features;
    const int64_t panel = part * shape.panels() + in_part / shape.panel();
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      weights.read(feature, channel, window);
      for (int64_t p = 0; p < shape.products; ++p) {
        const int64_t row = (panel * shape.products + p) * shape.channels + channel;
        const int64_t product = HONE_PLANT(winograd_weight, p, shape.products - 1 - p);
        to[static_cast<size_t>(row * shape.panel() + in_part % shape.panel())] =
            static_cast<T>(std::inner_product(window.begin(), window.end(),
                                              matrix.data() + product * std::ssize(window), 0.0));
      }
    }
  }
}

}  // namespace

Tensor winograd_weights(const Tensor& weights, const WinogradDims& dims, const WinogradShape& shape,
                        DType dtype) {
  Hasher hasher;
  hasher.add(weights.content_hash()).add(std::string_view("winograd")).add(shape.points);
  hasher.add(shape.parts).add(shape.panel()).add(dims.weights.features).add(dims.weights.channels);
  for (int dim : dims.weights.window) hasher.add(dim);
  const auto fill = [weights, dims, shape, dtype](std::span<std::byte> to) {
    const WinogradWindows windows(weights, dims.weights);
    if (dtype == DType::f64)
      fill_weights(windows, shape, std::span(reinterpret_cast<double*>(to.data()), to.size() / 8));
    else
      fill_weights(windows, shape, std::span(reinterpret_cast<float*>(to.data()), to.size() / 4));
  };
  return Tensor::lazy(winograd_weights_type(shape, dtype), hasher.value(), fill);
}

// ---- Usual counts -------------------------------------------------------------------------------

// Whole rows of tiles, and the largest parts of them that leave few tiles over.
std::vector<std::vector<Tile>> usual_winograd_blocks(const ScheduleSite& site,
                                                     const WinogradDims& dims,
                                                     const Schedule& so_far) {
  const auto parts = [&](int dim) {
    const int64_t all = tiles_along(site, so_far, dim);
    std::set<int64_t> counts = {1, all};
    for (int64_t part : {2, 3, 4, 7}) counts.insert((all + part - 1) / part);
    for (int64_t count : {2, 4, 8})
      if (count < all) counts.insert(count);
    return counts;
  };
  std::vector<std::vector<Tile>> blocks;
  for (int64_t inner : parts(dims.spatial.back())) {
    if (dims.spatial.size() == 1) {
      blocks.push_back({{dims.spatial[0], inner}});
      continue;
    }
    for (int64_t outer : parts(dims.spatial[0])) {
      std::vector<Tile> block = {{dims.spatial[0], outer}, {dims.spatial[1], inner}};
      std::ranges::sort(block, {}, &Tile::dim);
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

const AlgorithmDef& algorithm_winograd() {
  static const Winograd def;
  return def;
}

}  // namespace hone
