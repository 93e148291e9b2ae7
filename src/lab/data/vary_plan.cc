#include "lab/data/vary_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "compile/compilation.h"
#include "cost/plan_cost.h"
#include "lab/data/tile_graph.h"
#include "lab/tpu/features.h"
#include "lab/tpu/from_graph.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "search/layout_search.h"
#include "search/plan_search.h"
#include "target/fingerprint.h"
#include "tune/plan_duel.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

// An interval of 95 %, which files have, for one of 99 %: of a normal number.
constexpr double kOf95Percent = 1.960 / 2.576;

}  // namespace

Result<VariedLayouts> VariedLayouts::draw(Graph graph, const Target& target,
                                          std::shared_ptr<const Cost> cost,
                                          const VaryOptions& options) {
  VariedLayouts varied(std::move(graph), target, std::move(cost), options);
  HONE_TRY(varied.draw());
  return varied;
}

Status VariedLayouts::draw() {
  default_ = HONE_TRY(default_plan(*graph_, *target_, *cost_, options_.threads, options_.cancel));
  const auto editor = HONE_TRY(PlanEditor::open(*graph_, default_, *target_));
  editor->main().clear_offsets();
  KernelStore store;
  PlanCost price(*editor, *cost_, store, planner_schedules(*target_, *cost_, store));
  LayoutSearch space(editor->main(), price);
  if (space.variable_values().empty()) return bad_input("no value can have another layout");
  const FrameEditor& frame = editor->main();
  planned_ = frame.planned().layout;
  std::vector<size_t> configurable;  // of the variables, those that the graph has, and no copies
  for (size_t i = 0; const ValueId value : space.variable_values()) {
    if (value.index < graph_->value_count()) {
      configurable.push_back(i);
      values_.push_back(value);
    }
    ++i;
  }
  std::unordered_map<uint64_t, uint32_t> numbers;
  // False: these layouts cannot be.
  const auto take = [&](Point point, bool is_random) -> Result<bool> {
    const double seconds = HONE_TRY(space.seconds(point));
    if (!std::isfinite(seconds)) return false;
    LayoutAssignment assignment{.is_random = is_random, .priced = seconds};
    const std::vector<Layout> layouts = space.layouts(point);
    for (size_t i : configurable) assignment.layouts.push_back(layouts[i]);
    for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
      if (!frame.planned().steps[s].is_kernel) continue;
      const auto [at, is_new] =
          numbers.try_emplace(frame.kernel(s).hash, static_cast<uint32_t>(kernels_.size()));
      if (is_new) {
        std::optional<DefaultKernel> kernel = HONE_TRY(kernel_at(frame, s, price));
        // One with nothing to choose has its price and no more.
        kernels_.push_back(kernel ? *std::move(kernel) : DefaultKernel());
      }
      assignment.kernels.push_back(at->second);
    }
    assignments_.push_back(std::move(assignment));
    return true;
  };
  HONE_TRY(take(space.start(), false));
  Rng rng(options_.seed);
  constexpr size_t kMostTries = 20;  // for each that is wanted
  constexpr size_t kMostChanges = 4;
  std::set<Point> seen = {space.start()};
  for (size_t tries = 0;
       assignments_.size() < options_.assignments && tries < kMostTries * options_.assignments;
       ++tries) {
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    const bool is_random = assignments_.size() % 2 == 1;
    Point point = space.start();
    if (is_random) {
      // From nearly as by default to anyhow: whole lists of random layouts are seldom possible.
      const std::optional<Point> any = space.sample(rng);
      const double share = rng.uniform();
      std::vector<uint32_t> values = space.values(point);
      const std::vector<uint32_t> others = space.values(*any);
      for (size_t i = 0; i < values.size(); ++i)
        if (rng.chance(share)) values[i] = others[i];
      point = space.point(values);
    } else {
      for (uint64_t i = 1 + rng.below(kMostChanges); i > 0; --i) {
        const size_t coordinate = rng.below(space.coordinates(point));
        const std::vector<Point> near = space.neighbours(point, coordinate, 1, rng);
        if (!near.empty()) point = near[0];
      }
    }
    if (seen.insert(point).second) HONE_TRY(take(point, is_random));
  }
  price_by_rival();
  return {};
}

void VariedLayouts::price_by_rival() {
  std::vector<double> more(kernels_.size(), 0);  // than the plan's price
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const DefaultKernel& kernel = kernels_[k];
    if (options_.rival == nullptr || kernel.facts == nullptr) continue;
    const auto priced = options_.rival->kernel(kernel.facts, options_.threads);
    more[k] = priced->seconds(kernel.planned) - kernel.price;
  }
  for (LayoutAssignment& assignment : assignments_) {
    assignment.rival = assignment.priced;
    for (uint32_t kernel : assignment.kernels) assignment.rival += more[kernel];
  }
}

void VariedLayouts::compose(std::span<const KernelTime> times) {
  HONE_CHECK(times.size() == kernels_.size(), "{} times of {} kernels", times.size(),
             kernels_.size());
  for (LayoutAssignment& assignment : assignments_) {
    assignment.composed = assignment.priced;
    double measured = 0;
    std::map<uint32_t, double> launches;  // more than the default has
    for (uint32_t kernel : assignments_[0].kernels) launches[kernel] -= 1;
    for (uint32_t kernel : assignment.kernels) {
      launches[kernel] += 1;
      const double seconds = times[kernel].seconds;
      if (kernels_[kernel].facts == nullptr || !std::isfinite(seconds)) continue;
      assignment.composed += seconds - kernels_[kernel].price;
      measured += seconds;
    }
    assignment.known = measured / assignment.composed;
    double squares = 0;
    for (const auto& [kernel, count] : launches)
      if (std::isfinite(times[kernel].seconds))
        squares += std::pow(count * times[kernel].seconds * times[kernel].noise, 2);
    assignment.noise = std::sqrt(squares) / assignment.composed;
  }
}

Result<Plan> VariedLayouts::plan_of(const LayoutAssignment& assignment) const {
  const auto editor = HONE_TRY(PlanEditor::open(*graph_, default_, *target_));
  FrameEditor& frame = editor->main();
  frame.clear_offsets();
  for (size_t i = 0; i < values_.size(); ++i)
    if (frame.planned().layout[values_[i].index] != assignment.layouts[i])
      HONE_TRY(frame.set_layout(values_[i], assignment.layouts[i]));
  KernelStore store;
  PlanCost price(*editor, *cost_, store, planner_schedules(*target_, *cost_, store));
  PlanSearch whole(*editor, {});
  return complete(*graph_, HONE_TRY(whole.plan(whole.start(), price)), *target_, *cost_,
                  {.cancel = options_.cancel});
}

Status VariedLayouts::run_whole(size_t number, double seconds, const CancelToken* cancel) {
  LayoutAssignment& assignment = assignments_[number];
  const auto compile = [&](Plan plan) {
    CompileOptions options;
    options.plan = std::move(plan);
    options.cost = cost_;
    options.cancel = cancel;
    return std::make_shared<Compilation>(*graph_, *target_, std::move(options));
  };
  if (code_ == nullptr) {
    code_ = compile(default_);
    inputs_ = HONE_TRY(random_inputs(*graph_, options_.seed));
  }
  const Image& first = *HONE_TRY(code_->image());
  const auto code = compile(HONE_TRY(plan_of(assignment)));
  const PlanDuel found = HONE_TRY(
      duel(first, *HONE_TRY(code->image()), inputs_, {.seconds = seconds, .cancel = cancel}));
  if (found.outcome != Outcome::measured) return over_limit("{}", found.detail);
  // The machine's other work met both: the ratio counts.
  if (default_seconds_ == 0) default_seconds_ = found.times.a.median();
  assignment.whole = default_seconds_ * found.times.ratio;
  if (const auto& interval = found.times.interval)
    assignment.whole_noise =
        kOf95Percent * (interval->high - interval->low) / 2 / found.times.ratio;
  return {};
}

// ---- Files --------------------------------------------------------------------------------------

// The default one is in both.
std::vector<size_t> VariedLayouts::those(bool are_random) const {
  std::vector<size_t> some;
  for (size_t i = 0; i < assignments_.size(); ++i)
    if (i == 0 || assignments_[i].is_random == are_random) some.push_back(i);
  return some;
}

tpu::LayoutGraph VariedLayouts::layout_graph(std::span<const size_t> assignments) const {
  tpu::LayoutGraph layout;
  const tpu::HloModule module =
      tpu::hlo_of(*graph_, [&](ValueId value) { return minor_to_major(planned_[value.index]); });
  layout.graph = tpu::op_graph_of(module).value();
  std::vector<Layout> by_node;
  for (NodeId node : graph_->nodes()) by_node.push_back(planned_[graph_->result(node).index]);
  layout.graph.nodes = with_blocks(layout.graph.nodes, by_node);
  for (ValueId value : values_)
    layout.config_nodes.push_back(static_cast<int32_t>(graph_->producer(value).index));
  layout.splits = {0, static_cast<int64_t>(layout.graph.opcodes.size())};

  tpu::Features& configs = layout.configs;
  configs.names = {tpu::layout_feature_names().begin(), tpu::layout_feature_names().end()};
  std::vector<Layout> rows;
  for (size_t i : assignments) {
    for (const Layout& each : assignments_[i].layouts) {
      tpu::Integers dims = minor_to_major(each);
      dims.resize(6, -1);                     // of the result
      dims.resize(tpu::kLayoutFeatures, -1);  // operands have values of their own
      for (int64_t dim : dims) configs.values.push_back(static_cast<float>(dim));
      rows.push_back(each);
    }
    layout.runtimes.push_back(std::max<int64_t>(1, std::llround(1e9 * assignments_[i].composed)));
  }
  configs = with_blocks(configs, rows);
  return layout;
}

LayoutFile VariedLayouts::file(bool is_random) const {
  const std::vector<size_t> which = those(is_random);
  LayoutFile file = {.layout = layout_graph(which)};
  for (size_t i : which) {
    const LayoutAssignment& assignment = assignments_[i];
    file.times.priced.push_back(static_cast<float>(1e9 * assignment.rival));
    file.times.noise.push_back(static_cast<float>(assignment.noise));
    file.times.known.push_back(static_cast<float>(assignment.known));
    file.times.whole.push_back(static_cast<float>(1e9 * assignment.whole));
    file.times.whole_noise.push_back(static_cast<float>(assignment.whole_noise));
  }
  file.priced_by = options_.rival == nullptr ? cost_->version() : options_.rival->version();
  file.target = fingerprint(*target_);
  return file;
}

void VariedLayouts::keep_whole(const LayoutFile& known, bool is_random) {
  if (known.times.whole.empty() || known.times.whole[0] == 0) return;
  const std::vector<size_t> which = those(is_random);
  const tpu::LayoutGraph mine = layout_graph(which);
  const tpu::LayoutGraph& its = known.layout;
  if (its.graph != mine.graph || its.config_nodes != mine.config_nodes ||
      its.configs.names != mine.configs.names)
    return;
  const auto row = [](const tpu::LayoutGraph& layout, size_t config) {
    const size_t size = layout.config_nodes.size() * layout.configs.names.size();
    const auto from = std::span(layout.configs.values).subspan(config * size, size);
    return std::vector<float>(from.begin(), from.end());
  };
  std::map<std::vector<float>, size_t> places;
  for (size_t k = 0; k < which.size(); ++k) places.emplace(row(mine, k), which[k]);
  for (size_t c = 0; c < its.runtimes.size(); ++c) {
    const auto at = places.find(row(its, c));
    if (known.times.whole[c] == 0 || at == places.end()) continue;
    LayoutAssignment& assignment = assignments_[at->second];
    assignment.whole = 1e-9 * static_cast<double>(known.times.whole[c]);
    if (!known.times.whole_noise.empty())
      assignment.whole_noise = static_cast<double>(known.times.whole_noise[c]);
  }
  default_seconds_ = assignments_[0].whole;
}

}  // namespace hone
