#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "ir/op_facts.h"
#include "kernel/kernel_body.h"
#include "kernel/words.h"
#include "plan/in_place.h"
#include "plan/view.h"
#include "planner/launches.h"
#include "planner/packed_sources.h"
#include "planner/steps.h"

namespace hone {
namespace {

// A second layout of weights takes memory, too. It has to make its reader faster by this share.
constexpr double kLeastGain = 0.05;

constexpr size_t kMaxCopiedName = 1000;  // bytes of a name, to which more is added

enum class Channels : uint8_t { second, in_blocks, last };  // second: row-major

// Sets the layouts of values that may have any and that nobody decided, by price. A learned price
// may be sure that other layouts cost less than the cheapest ones by the usual price. It is asked
// about kernels with the schedules of the usual price.
//   * weights of dot and conv so that lanes find neighbours side by side, without packing at run
//     time;
//   * what convs, and pools and pointwise kernels next to them, pass to each other: with channels
//     in blocks of a vector, or last. All of a region lie alike, or nothing changes; what reads a
//     region from outside is part of its price. Concats that are views and
//     `joined` stop being views where their operands do not lie side by side in the layout.
// Gives copies of weights whose readers want them in several layouts, for kernels that are `open`,
// by step.
class LayoutChooser {
 public:
  LayoutChooser(PlanningFrame& frame, const std::vector<bool>& open, std::span<const NodeId> joined,
                PlanCost& cost, AskedCost* learned)
      : editor_(frame.edited()),
        frame_(editor_.planned()),
        graph_(editor_.view()),
        users_(editor_.users()),
        plan_(frame.plan()),
        open_(open),
        joined_(joined),
        cost_(cost),
        learned_(learned),
        on_(frame.on()),
        block_(frame.freedom().block) {}

  Result<std::vector<LayoutCopy>> run() {
    for (NodeId n : joined_)
      if (!is_image(frame_.base[graph_.result(n).index])) HONE_TRY(take_apart(n));
    grow_regions();
    for (std::vector<uint32_t>& steps : regions()) HONE_TRY(choose(steps));
    for (uint32_t s = 0; s < frame_.steps.size(); ++s) HONE_TRY(price(s, learned_));
    return copies();
  }

 private:
  bool is_decided(ValueId v) const { return plan_.layout.contains(std::string(graph_.name(v))); }
  bool is_free(ValueId v) const { return frame_.has_layout(v) && !is_decided(v); }
  bool is_copy(ValueId v) const { return plan_.copy.contains(std::string(graph_.name(v))); }
  bool may_be_copied(ValueId v) const {
    return !is_copy(v) && graph_.name(v).size() <= kMaxCopiedName && !is_number(graph_, v);
  }

  // ---- Regions ----------------------------------------------------------------------------------

  uint32_t find(uint32_t step) {
    while (region_of_[step] != step) step = region_of_[step] = region_of_[region_of_[step]];
    return step;
  }

  // True if the step computes each point of its images from points around it.
  bool is_local(const Step& step) const {
    return step.is_kernel && std::ranges::all_of(step.nodes, [&](NodeId n) {
             const OpDef& def = graph_.op(n).def();
             return def.traits.is_local || is_elementwise(def.opcode) || is_copy(graph_.result(n));
           });
  }

  bool is_image(ValueId v) const {
    const Type type = graph_.type(v);
    return type.rank() >= 3 && type.rank() <= 5 && type.is_static() && is_free(v);
  }

  void grow_regions() {
    const size_t count = frame_.steps.size();
    region_of_.resize(count);
    has_conv_.resize(count);
    beside_.resize(count);
    std::iota(region_of_.begin(), region_of_.end(), 0);
    for (uint32_t s = 0; s < count; ++s) {
      const Step& step = frame_.steps[s];
      is_local_.push_back(is_local(step));
      if (!is_local_[s]) continue;
      for (NodeId n : step.nodes) has_conv_[s] = has_conv_[s] || is_convolution(graph_.opcode(n));
    }
    std::vector<std::vector<uint32_t>> writers(graph_.value_count());  // of images, by their base
    const auto meet_writers = [&](uint32_t s, ValueId v) {
      for (uint32_t writer : writers[frame_.base[v.index].index]) {
        beside_[writer].push_back(s);
        if (is_local_[writer] && is_local_[s]) region_of_[find(s)] = find(writer);
      }
    };
    for (uint32_t s = 0; s < count; ++s) {
      for (ValueId v : frame_.steps[s].writes) {
        if (!is_image(frame_.base[v.index])) continue;
        writers[frame_.base[v.index].index].push_back(s);
        meet_writers(s, v);
      }
    }
    for (uint32_t s = 0; s < count; ++s)
      for (ValueId v : frame_.steps[s].reads) meet_writers(s, v);
  }

  // The groups with a conv that passes on an image.
  std::vector<std::vector<uint32_t>> regions() {
    std::vector<std::vector<uint32_t>> steps(frame_.steps.size());
    std::vector<bool> counts(frame_.steps.size());
    for (uint32_t s = 0; s < frame_.steps.size(); ++s) {
      if (!is_local_[s]) continue;
      steps[find(s)].push_back(s);
      if (has_conv_[s]) counts[find(s)] = true;
    }
    std::vector<std::vector<uint32_t>> regions;
    for (uint32_t s = 0; s < frame_.steps.size(); ++s)
      if (counts[s]) regions.push_back(std::move(steps[s]));
    return regions;
  }

  Status choose(const std::vector<uint32_t>& steps) {
    std::vector<uint32_t> priced = steps;
    for (uint32_t s : steps) priced.insert(priced.end(), beside_[s].begin(), beside_[s].end());
    std::ranges::sort(priced);
    priced.erase(std::unique(priced.begin(), priced.end()), priced.end());
    std::vector<Channels> tried;
    SureChoice choice;
    const Undo before = editor_.whole().now();
    const auto count = static_cast<uint32_t>(frame_.steps.size());
    for (const Channels channels : {Channels::second, Channels::in_blocks, Channels::last}) {
      if ((channels == Channels::in_blocks && !on_.blocked_images) ||
          (channels == Channels::last && !on_.last_images))
        continue;
      HONE_TRY(lay(steps, channels));
      std::vector<uint32_t> all = priced;
      for (uint32_t s = count; s < frame_.steps.size(); ++s) all.push_back(s);
      // Each way costs what it costs by the usual price alone. It is compared as it would be
      // carried out.
      const Undo laid = editor_.whole().now();
      const double seconds = HONE_TRY(price_all(all, nullptr));
      if (learned_ != nullptr) {
        editor_.whole().undo(laid);
        HONE_TRY(price_all(all, learned_));
      }
      choice.add(seconds, HONE_TRY(launches_of(all)));
      tried.push_back(channels);
      editor_.whole().undo(before);
    }
    return lay(steps, tried[choice.best(learned_)]);
  }

  Status lay(const std::vector<uint32_t>& steps, Channels channels) {
    for (uint32_t s : steps)
      for (ValueId v : std::vector<ValueId>(frame_.steps[s].writes))  // steps may come meanwhile
        HONE_TRY(lay(frame_.base[v.index], channels));
    return {};
  }

  // Concats whose operands do not lie side by side then are computed. A value that lies there
  // because the plan says so, or as a slice, keeps the image row-major.
  Status lay(ValueId v, Channels channels) {
    if (!is_image(v)) return {};
    const Layout layout = image(graph_.type(v), channels);
    if (frame_.said_layout[v.index] && frame_.layout[v.index] == layout) return {};
    if (editor_.set_layout(v, layout).ok()) return {};
    std::vector<NodeId> inside;
    for (NodeId n : joined_)
      if (frame_.is_view(n) && frame_.base[graph_.result(n).index] == v) inside.push_back(n);
    if (inside.empty()) {
      HONE_TRY(editor_.set_layout(v, Layout::row_major(graph_.type(v).rank())));
      return {};
    }
    for (NodeId n : inside) HONE_TRY(take_apart(n));
    for (NodeId n : inside) {
      HONE_TRY(lay(graph_.result(n), channels));
      for (ValueId part : graph_.operands(n)) HONE_TRY(lay(part, channels));
    }
    return {};
  }

  Status take_apart(NodeId concat) {
    HONE_TRY(editor_.set_view(concat, Said::nothing));
    return {};
  }

  // Where blocks do not divide the channels, they stand last.
  Layout image(Type type, Channels channels) const {
    if (channels == Channels::second || type.dim(1).is(1)) return Layout::row_major(type.rank());
    std::vector<int> others{0};
    for (int dim = 2; dim < type.rank(); ++dim) others.push_back(dim);
    if (channels == Channels::last || !type.dim(1).divisible_by(block_))
      return with_last(others, 1, 1);
    Layout layout = with_last(others, 1, block_);
    std::swap(layout.parts[0], layout.parts[1]);  // images apart
    return layout;
  }

  // Makes the launches of these steps, in the layouts that they have. Without a learned price it
  // makes none.
  Result<Launches> launches_of(std::span<const uint32_t> steps) {
    Launches all;
    for (uint32_t s : steps)
      if (learned_ != nullptr && frame_.steps[s].is_kernel) HONE_TRY(add_launch(s, {}, all));
    return all;
  }
  Status add_launch(uint32_t s, const PlanCost::Layouts& layouts, Launches& all) {
    PlanCost::Launch launch = HONE_TRY(cost_.launch_if(editor_, s, with_shared(s, layouts)));
    all.add(launch.kernel, std::move(launch.facts), launch.schedule);
    return {};
  }

  // These, and those that the step wants for shared weights: they are copies that are made later.
  PlanCost::Layouts with_shared(uint32_t s, PlanCost::Layouts layouts) const {
    for (auto at = shared_.lower_bound({s, ValueId{0}}); at != shared_.end(); ++at) {
      const auto& [step, v] = at->first;
      if (step != s) break;
      if (std::ranges::find(layouts, v, &PlanCost::Layouts::value_type::first) == layouts.end())
        layouts.emplace_back(v, at->second);
    }
    return layouts;
  }

  // ---- Weights ----------------------------------------------------------------------------------

  // The price of the step with the best layouts of its weights, which are left in the frame, or in
  // shared_. The usual price takes them, unless `learned` is sure of others.
  Result<double> price(uint32_t s, AskedCost* learned) {
    if (!frame_.steps[s].is_kernel) return 0;
    shared_.erase(shared_.lower_bound({s, ValueId{0}}), shared_.lower_bound({s + 1, ValueId{0}}));
    double seconds = HONE_TRY(cost_.seconds(editor_, s));
    for (NodeId n : contractions_of(s)) seconds = HONE_TRY(price_with_weights(s, n, learned));
    if (on_.weight_layouts) seconds = HONE_TRY(price_with_sources(s, seconds, learned));
    return seconds;
  }
  Result<double> price_all(std::span<const uint32_t> steps, AskedCost* learned) {
    double seconds = 0;
    for (uint32_t s : steps) seconds += HONE_TRY(price(s, learned));
    return seconds;
  }

  // The same for constants that the kernel computes weights from.
  Result<double> price_with_sources(uint32_t s, double as_it_lies, AskedCost* learned) {
    std::vector<PlanCost::Layouts> ways = layouts_of_sources(editor_, s, block_);
    if (ways.empty()) return as_it_lies;
    ways.insert(ways.begin(), PlanCost::Layouts());
    SureChoice choice;
    for (PlanCost::Layouts& layouts : ways) {
      std::erase_if(layouts, [&](const auto& each) { return is_decided(each.first); });
      HONE_TRY(add_way(s, layouts, 0, learned, choice));
    }
    const size_t best = choice.best(learned);
    for (const auto& [v, layout] : ways[best]) HONE_TRY(editor_.set_layout(v, layout));
    return choice.seconds(best);
  }

  Result<double> price_with_weights(uint32_t s, NodeId contraction, AskedCost* learned) {
    const ValueId weights = graph_.operands(contraction)[1];
    const bool is_shared = users_.of(weights).size() > 1;
    std::vector<Layout> ways = layouts_of_weights(contraction);
    SureChoice choice;
    for (size_t way = 0; way < ways.size(); ++way) {
      const double lead = is_shared && way > 0 ? kLeastGain : 0;
      HONE_TRY(add_way(s, {{weights, ways[way]}}, lead, learned, choice));
    }
    const size_t best = choice.best(learned);
    if (is_shared)
      shared_[{s, weights}] = std::move(ways[best]);
    else
      HONE_TRY(editor_.set_layout(weights, ways[best]));
    return choice.seconds(best);
  }

  Status add_way(uint32_t s, const PlanCost::Layouts& layouts, double lead, AskedCost* learned,
                 SureChoice& choice) {
    const double seconds = HONE_TRY(cost_.seconds_if(editor_, s, with_shared(s, layouts)));
    Launches launches;
    if (learned != nullptr) HONE_TRY(add_launch(s, layouts, launches));
    choice.add(seconds, std::move(launches), lead);
    return {};
  }

  // The contractions of the step whose weights may lie as they want them: constants that only one
  // reads, or of which it may have a copy.
  std::vector<NodeId> contractions_of(uint32_t s) const {
    std::vector<NodeId> contractions;
    if (!on_.weight_layouts) return contractions;
    for (NodeId n : frame_.steps[s].nodes) {
      if (class_of(graph_.opcode(n)) != OpClass::contraction) continue;
      const ValueId v = graph_.operands(n)[1];
      if (frame_.home[v.index] != Home::constant || is_decided(v)) continue;
      const bool has_copies =
          on_.weight_copies && open_[s] && may_be_copied(v) && graph_.type(v).rank() > 0;
      if (users_.of(v).size() == 1 ? frame_.has_layout(v) : has_copies) contractions.push_back(n);
    }
    return contractions;
  }

  // As it is; what becomes a dim of the results last, or in blocks. Then neighbours in lanes are
  // neighbours in memory.
  std::vector<Layout> layouts_of_weights(NodeId node) const {
    const Type type = graph_.type(graph_.operands(node)[1]);
    std::vector<Layout> layouts = {Layout::row_major(type.rank())};
    const AccessRelation relation = relation_of(graph_, node);
    const int results = graph_.type(graph_.result(node)).rank();
    int last = -1;
    std::vector<int> others;
    for (int dim = 0; dim < type.rank(); ++dim) {
      const IndexExpr& at = relation.operands[1].at(0).index[static_cast<size_t>(dim)];
      bool is_result = false;
      for (int d = 0; d < results; ++d) is_result = is_result || at.mentions(d);
      if (!is_result) continue;
      const bool is_larger = last < 0 || provably_lt(type.dim(last), type.dim(dim));
      if (is_larger) last = dim;
    }
    if (last < 0) return layouts;
    for (int dim = 0; dim < type.rank(); ++dim)
      if (dim != last) others.push_back(dim);
    // Channels within what a window takes: [2, 3, 1].
    if (is_convolution(graph_.opcode(node))) std::ranges::rotate(others, others.begin() + 1);
    // A kernel reads blocks from one end to the other.
    const int64_t block = type.dim(last).divisible_by(block_) ? block_ : 1;
    layouts.push_back(with_last(others, last, block));
    const std::optional<WordProducts> words = word_products(graph_, node, relation);
    if (!words || !is_on(on_, words->products)) return layouts;
    const std::vector<IndexExpr>& index = relation.operands[1].at(0).index;
    const auto along =
        std::ranges::find_if(index, [&](auto& e) { return e.mentions(words->iter); });
    if (std::optional<Layout> layout = in_words(
            type, words->each(), static_cast<int>(along - index.begin()), others, last, block))
      layouts.push_back(*std::move(layout));
    return layouts;
  }

  // ---- Copies -----------------------------------------------------------------------------------

  Result<std::vector<LayoutCopy>> copies() {
    std::map<ValueId, std::vector<LayoutCopy>> wanted;  // a layout each
    for (const auto& [place, layout] : shared_) {
      const auto& [s, v] = place;
      std::vector<LayoutCopy>& of_value = wanted[v];
      auto at = std::ranges::find(of_value, layout, &LayoutCopy::layout);
      if (at == of_value.end()) at = of_value.insert(at, {v, {}, layout});
      for (NodeId n : frame_.steps[s].nodes)
        if (std::ranges::find(graph_.operands(n), v) != graph_.operands(n).end())
          at->readers.push_back(n);
    }
    std::vector<LayoutCopy> result;
    for (auto& [v, copies] : wanted) {
      if (nobody_reads_as_it_is(v, copies)) HONE_TRY(editor_.set_layout(v, copies[0].layout));
      for (LayoutCopy& copy : copies)
        if (copy.layout != frame_.layout[v.index]) result.push_back(std::move(copy));
    }
    return result;
  }

  // Then one of the copies can be the value itself.
  bool nobody_reads_as_it_is(ValueId v, const std::vector<LayoutCopy>& copies) const {
    if (!is_free(v)) return false;
    size_t readers = 0;
    for (const LayoutCopy& copy : copies) {
      if (copy.layout == frame_.layout[v.index]) return false;
      readers += copy.readers.size();
    }
    const std::span<const NodeId> users = users_.of(v);
    return readers == std::set<NodeId>(users.begin(), users.end()).size();
  }

  FrameEditor& editor_;
  const PlannedGraph& frame_;
  const GraphView graph_;
  const UsersView users_;
  const Plan& plan_;
  const std::vector<bool>& open_;         // by step
  const std::span<const NodeId> joined_;  // concats
  PlanCost& cost_;
  AskedCost* const learned_;  // null: there is none
  const Heuristics& on_;
  const int64_t block_;
  std::vector<uint32_t> region_of_;        // by step: a union-find forest
  std::vector<bool> is_local_, has_conv_;  // by step
  std::vector<std::vector<uint32_t>>
      beside_;  // by step: readers of its images, and who writes there
  // The layouts that steps want for weights that others read, too.
  std::map<std::pair<uint32_t, ValueId>, Layout> shared_;
};

// Changes nodes whose group was open: the others may have schedules. The plan's lines about the
// changed value, the result or memory may not fit either.
Status change_in_place(PlanningFrame& frame) {
  const Graph& graph = frame.graph();
  Plan& plan = frame.plan();
  const std::vector<NodeId> found = more_in_place(frame.planned(), frame.users(), [&](NodeId n) {
    if (!frame.freedom().is_free[n.index]) return false;
    const ValueId changed = changed_by(graph, n);
    const std::string result = frame.name(graph.result(n)), operand = frame.name(changed);
    return !plan.in_place.contains(result) && !plan.layout.contains(result) &&
           !plan.layout.contains(operand) && !plan.offset.contains(result) &&
           !plan.offset.contains(frame.name(frame.planned().base[changed.index]));
  });
  if (found.empty()) return {};
  for (NodeId n : found) plan.in_place[frame.name(graph.result(n))] = true;
  return frame.read();
}

// Chooses layouts by price. Concats whose images do not lie side by side then are kernels.
Status choose_by_price(PlanningFrame& frame) {
  const Graph& graph = frame.graph();
  // A kernel that the plan has may have a schedule, so it reads no copies.
  std::vector<bool> open;  // by step
  for (const Step& step : frame.planned().steps)
    open.push_back(step.is_kernel && frame.freedom().is_free[step.nodes[0].index]);
  std::vector<NodeId> joined;  // concats, by the planner
  for (NodeId n : graph.nodes())
    if (joins_operands(graph.opcode(n)) && frame.planned().is_view(n) &&
        frame.freedom().is_free[n.index])
      joined.push_back(n);
  {
    PlanCost price = frame.price(frame.choosers().usual);
    LayoutChooser layouts(frame, open, joined, price, frame.choosers().sure);
    frame.ask_for(HONE_TRY(layouts.run()));
  }
  const PlannedGraph& edited = frame.edited().planned();
  const std::vector<Layout> layouts = edited.layout;
  std::erase_if(joined, [&](NodeId n) { return edited.is_view(n); });
  for (NodeId n : joined) frame.plan().view.erase(frame.name(graph.result(n)));
  if (!joined.empty()) HONE_CHECK(frame.take(frame.edited_groups()), "groups that do not fit");
  frame.take_layouts(layouts);
  return {};
}

}  // namespace

Status choose_layouts(PlanningFrame& frame) {
  if (frame.on().in_place) HONE_TRY(change_in_place(frame));
  if (frame.on().layouts) return choose_by_price(frame);
  frame.take_layouts(std::vector<Layout>(frame.planned().layout));  // row-major, or as said
  return {};
}

}  // namespace hone
