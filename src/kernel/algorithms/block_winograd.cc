#include "kernel/algorithms/block_winograd.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ir/builder.h"
#include "ir/ops/contraction.h"
#include "kernel/algorithms/domains.h"
#include "kernel/algorithms/loops.h"
#include "target/gpu_presets.h"

namespace hone {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 31;

// Transformed numbers lie in the memory of a run, beside all else that the model keeps there. Code
// for a preset runs on cards with less memory than the preset's.
Status check_memory(const BlockWinograd& all, const Target& target) {
  constexpr int64_t kPartOfMemory = 8, kOnAnyCard = int64_t{512} << 20;
  int64_t most = target.memory_bytes / kPartOfMemory;
  const int64_t bytes = all.bytes();
  if (bytes > kOnAnyCard && preset_gpu(target.name) == target) most = std::min(most, kOnAnyCard);
  if (bytes <= most) return {};
  return over_limit("the transformed numbers take {}, more than {}", format_bytes(bytes),
                    format_bytes(most))
      .with_hint("a smaller batch, or another algorithm, takes less memory");
}

// True if neighbours along the dim lie side by side in an array that `is_meant`.
bool are_neighbours(const KernelFacts& facts, int dim, const auto& is_meant) {
  return std::ranges::any_of(facts.arrays, [&](const KernelFacts::Array& array) {
    const auto at = static_cast<size_t>(dim);
    return is_meant(array) && at < array.stride.size() && std::abs(array.stride[at]) == 1;
  });
}

// All features of a group make a panel, all tiles stand alone.
WinogradShape shape_of(const WinogradDims& dims, const KernelSpace& space, int points) {
  const int64_t features = space.dims[static_cast<size_t>(dims.features)].extent.value();
  return {dims, space,
          Schedule{.unroll = {{dims.features, features / dims.groups}},
                   .own = WinogradFields{.points = points}}};
}

// The product of the transformed data and weights, which lie in this order.
KernelBody product_of(const BlockWinograd& all, const Op& conv) {
  Builder b("product");
  const Value data = b.parameter("data", all.dtype, all.data_dims());
  const Value weights =
      b.parameter("weights", all.dtype,
                  {all.dims.groups, all.shape.products, all.shape.channels, all.shape.features});
  const Ints batch = {0, 1}, of_data = {all.channels_last ? 3 : 2}, of_weights = {2};
  const bool first = all.features_last;
  const bool is_tf32 = conv.integer("parts") == kTf32Parts;  // since somebody asked for it
  const Value sums = b.op(Opcode::dot, {first ? data : weights, first ? weights : data},
                          {{"lhs_batch", batch},
                           {"rhs_batch", batch},
                           {"lhs_contract", first ? of_data : of_weights},
                           {"rhs_contract", first ? of_weights : of_data},
                           {"flush", conv.flag("flush")},
                           {"parts", is_tf32 ? kTf32Parts : kAllParts}});
  const Layout plain = Layout::row_major(4);
  return {.graph = b.finish({sums}).value(), .inputs = {plain, plain}, .outputs = {plain}};
}

// ---- The schedule of the products ---------------------------------------------------------------

const AlgorithmDef& product_algorithm() { return def_of(Algorithm::block_tiles); }

// Calls f with the site of the product, if there is one.
void at_product(const ScheduleSite& site, const Schedule& schedule, const auto& f) {
  const auto* own = schedule.if_is<BlockWinogradFields>();
  if (own == nullptr || own->stages.size() != 1) return;
  const Result<BlockWinograd> all = block_winograd(site.body, site.facts, own->points);
  if (!all.ok()) return;
  const KernelFacts facts(all->product);
  f(ScheduleSite{all->product, facts, site.target}, own->stages[0]);
}

Schedule with_stage(Schedule schedule, Schedule stage) {
  schedule.get<BlockWinogradFields>().stages = {std::move(stage)};
  return schedule;
}

// One of block_tiles, for the product.
class ProductDecision : public Decision {
 public:
  explicit ProductDecision(const Decision& of_tiles) : of_tiles_(of_tiles) {}
  std::string_view name() const override { return of_tiles_.name(); }
  double bound(const ScheduleSite& site) const override {
    double most = 1;
    for (int points : winograd_numbers_of_points(site))
      at_product(site, {.own = BlockWinogradFields{.points = points, .stages = {{}}}},
                 [&](const ScheduleSite& product, const Schedule&) {
                   most = std::max(most, of_tiles_.bound(product));
                 });
    return most;
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    bool wants_more = true;
    at_product(site, so_far, [&](const ScheduleSite& product, const Schedule& stage) {
      wants_more = of_tiles_.each(
          product, stage, [&](const Schedule& next) { return visit(with_stage(so_far, next)); });
    });
    return wants_more;
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    at_product(site, so_far, [&](const ScheduleSite& product, Schedule stage) {
      of_tiles_.draw(product, stage, rng);
      so_far = with_stage(so_far, std::move(stage));
    });
  }
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    return changed(site, schedule, &Decision::near);
  }
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override {
    return changed(site, schedule, &Decision::simpler);
  }
  void copy(const Schedule& from, Schedule& to, Rng& rng) const override {
    const auto *source = from.if_is<BlockWinogradFields>(),
               *target = to.if_is<BlockWinogradFields>();
    if (source == nullptr || target == nullptr) return;
    Schedule stage = target->stages.at(0);
    of_tiles_.copy(source->stages.at(0), stage, rng);
    to = with_stage(to, std::move(stage));
  }

 private:
  static Schedules wrapped(const Schedule& schedule, const Schedules& stages) {
    Schedules all;
    for (const Schedule& stage : stages) all.push_back(with_stage(schedule, stage));
    return all;
  }
  Schedules changed(const ScheduleSite& site, const Schedule& schedule,
                    Schedules (Decision::*change)(const ScheduleSite&, const Schedule&)
                        const) const {
    Schedules all;
    at_product(site, schedule, [&](const ScheduleSite& product, const Schedule& stage) {
      all = wrapped(schedule, (of_tiles_.*change)(product, stage));
    });
    return all;
  }

  const Decision& of_tiles_;
};

const std::vector<ProductDecision>& product_decisions() {
  static const std::vector<ProductDecision> all = [] {
    std::vector<ProductDecision> made;
    for (const Decision* decision : product_algorithm().decisions()) made.emplace_back(*decision);
    return made;
  }();
  return all;
}

const NumberDecision kPointsOfTiles("points",
                                    own_field<BlockWinogradFields, &BlockWinogradFields::points>(),
                                    winograd_numbers_of_points);

class BlockWinogradDef : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_gpu_blocks(site, schedule));
    if (!std::ranges::is_sorted(schedule.order) || schedule.threads != site.parallel())
      return bad_input("threads divide all {} dims, in ascending order", site.parallel());
    const auto& [points, stages] = schedule.get<BlockWinogradFields>();
    HONE_TRY(winograd_dims(site.body, site.facts));
    HONE_TRY(check_winograd_points(site, points));
    const BlockWinograd all = HONE_TRY(block_winograd(site.body, site.facts, points));
    HONE_TRY(check_memory(all, site.target));
    if (stages.size() != 1 || stages[0].algorithm() != Algorithm::block_tiles)
      return bad_input("a winograd on a GPU has one stage, by block_tiles");
    const KernelFacts product(all.product);
    if (Status good = product_algorithm().check({all.product, product, site.target}, stages[0]);
        !good.ok())
      return std::move(good).error().within("stage 0");
    const auto products = static_cast<double>(all.shape.products);
    return check_code(
        site, (kWinogradStatements + static_cast<double>(site.facts.work.statements)) * products);
  }
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           !has_sub_byte_output(site) && winograd_dims(site.body, site.facts).ok() &&
           std::ranges::any_of(winograd_numbers_of_points(site), [&](int points) {
             const Result<BlockWinograd> all = block_winograd(site.body, site.facts, points);
             return all.ok() && check_memory(*all, site.target).ok();
           });
  }
  std::vector<const Decision*> decisions() const override {
    std::vector<const Decision*> all = {&kPointsOfTiles};
    for (const ProductDecision& decision : product_decisions()) all.push_back(&decision);
    return all;
  }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.threads = site.parallel();
    schedule.own = BlockWinogradFields{.stages = {{}}};
    at_product(site, schedule, [&](const ScheduleSite& product, const Schedule&) {
      schedule = with_stage(schedule, product_algorithm().simplest(product));
    });
    return schedule;
  }
  uint64_t weight() const override { return 2; }
  bool is_for_gpu() const override { return true; }

  std::optional<PreparedInput> prepared(const KernelBody& body,
                                        const Schedule& schedule) const override {
    const KernelFacts facts(body);
    const BlockWinograd all =
        block_winograd(body, facts, schedule.get<BlockWinogradFields>().points).value();
    return winograd_input(body, facts, all.dims, all.shape);
  }
  bool saves_products() const override { return true; }
  double share_of_products(const ScheduleSite& site, const Schedule& schedule) const override {
    const Result<BlockWinograd> all =
        block_winograd(site.body, site.facts, schedule.get<BlockWinogradFields>().points);
    return all.ok() ? winograd_share(all->shape) : 1;
  }
  std::optional<OwnProduct> product(const KernelFacts& facts,
                                    const Schedule& schedule) const override {
    const auto& [points, stages] = schedule.get<BlockWinogradFields>();
    Result<BlockWinograd> all = block_winograd(facts.body, facts, points);
    if (!all.ok() || stages.size() != 1) return std::nullopt;
    return OwnProduct{std::move(all->product), stages[0]};
  }
  std::shared_ptr<const void> roles(const KernelFacts& facts) const override {
    auto roles = std::make_shared<BlockWinogradRoles>();
    if (!winograd_dims(facts.body, facts).ok()) return roles;
    const int64_t permitted = facts.body.graph.op(facts.space.anchor).integer("winograd");
    for (int64_t points : kWinogradPoints) {
      if (points > permitted) return roles;
      Result<BlockWinograd> one = block_winograd(facts.body, facts, static_cast<int>(points));
      if (!one.ok()) return roles;
      KernelFacts product(one->product);
      roles->all.push_back({*std::move(one), std::move(product)});
    }
    return roles;
  }
};

}  // namespace

int64_t BlockWinograd::numbers() const {
  return dims.groups * shape.products * tiles * (shape.channels + shape.features);
}

int64_t BlockWinograd::bytes() const { return numbers() * bits(dtype) / 8; }

Result<BlockWinograd> block_winograd(const KernelBody& body, const KernelFacts& facts, int points) {
  BlockWinograd all;
  all.dims = HONE_TRY(winograd_dims(body, facts));
  const auto extent = [&](int dim) { return facts.space.dims[static_cast<size_t>(dim)].extent; };
  if (!extent(all.dims.batch).is_static())
    return unsupported("winograd on a GPU needs a batch of a known size");
  all.shape = shape_of(all.dims, facts.space, points);
  all.batch = all.tiles = extent(all.dims.batch).value();
  for (int dim : all.dims.spatial) {
    all.across.push_back((extent(dim).value() + points - 1) / points);
    all.tiles *= all.across.back();
  }
  if (all.tiles == 0 || all.shape.features == 0 || all.shape.channels == 0)
    return unsupported("winograd has nothing to transform");
  if (all.numbers() > kMostNumbers)
    return over_limit("{} transformed numbers, more than {}", all.numbers(), kMostNumbers);
  const Graph& graph = body.graph;
  const NodeId conv = facts.space.anchor;
  if (graph.type(graph.result(conv)).dtype() == DType::f64) all.dtype = DType::f64;
  all.channels_last =
      are_neighbours(facts, all.dims.channels, [](const auto& array) { return array.side == 0; });
  all.features_last =
      are_neighbours(facts, all.dims.features, [](const auto& array) { return array.is_store; });
  all.product = product_of(all, graph.op(conv));
  return all;
}

const BlockWinogradRoles::One* BlockWinogradRoles::with(int64_t points) const {
  const auto at =
      std::ranges::find(all, points, [](const One& one) { return one.winograd.shape.points; });
  return at == all.end() ? nullptr : &*at;
}

const AlgorithmDef& algorithm_block_winograd() {
  static const BlockWinogradDef def;
  return def;
}

}  // namespace hone
