#include "plan/random_plan.h"

#include <algorithm>
#include <ranges>
#include <tuple>

#include "plan/collectives.h"
#include "plan/plan_space.h"

namespace hone {
namespace {

constexpr size_t kMaxGroup = 16;     // nodes
constexpr int kRounds = 4;           // of joining kernels, each of which may double them
constexpr size_t kMaxPacked = 4000;  // values that share an arena; more lie side by side

class RandomFrame {
 public:
  RandomFrame(FrameEditor& frame, Rng& rng) : frame_(frame), planned_(frame.planned()), rng_(rng) {}

  // An edit that does not fit those before it is refused, and left out.
  void decide() {
    copies();
    views();
    kernels();
    updates();
    layouts();
    schedules();
    collectives();
    frame_.set_order(random_order(planned_, rng_)).value();
    for (const auto& [key, inner] : frame_.regions()) RandomFrame(*inner, rng_).decide();
  }

  void offsets(Plan& plan) {
    if (frame_.view().graph().is_static()) place(plan);
    for (const auto& [key, inner] : frame_.regions())
      RandomFrame(*inner, rng_).offsets(plan.region[key]);
  }

 private:
  std::vector<OpenEdit> edits(EditKind kind) const { return PlanSpace(frame_).edits(kind); }

  // In three plans of ten some values have copies, in places two.
  void copies() {
    if (!rng_.chance(0.3)) return;
    for (const OpenEdit& edit : edits(EditKind::copy))
      for (int i = 0; i < 2 && rng_.chance(0.3); ++i) std::ignore = apply(frame_, edit, rng_);
  }

  void views() {
    for (const OpenEdit& edit : edits(EditKind::view))
      if (rng_.chance(0.6))
        std::ignore =
            frame_.set_view(NodeId{edit.subject}, rng_.chance(0.8) ? Said::yes : Said::no);
  }

  void kernels() {
    for (const OpenEdit& edit : edits(EditKind::form)) frame_.form(edit.subject).value();
    const double share = 0.1 * static_cast<double>(rng_.between(1, 5));  // of kernels that join
    for (int round = 0; round < kRounds; ++round) {
      // Steps change their numbers with each join, nodes stay.
      std::vector<std::pair<NodeId, NodeId>> pairs;
      for (const OpenEdit& edit : edits(EditKind::join))
        pairs.emplace_back(node_of(edit.subject), node_of(edit.other));
      rng_.shuffle(pairs);
      for (const auto& [first, second] : pairs) {
        const uint32_t a = planned_.step_of[first.index], b = planned_.step_of[second.index];
        const size_t nodes = planned_.steps[a].nodes.size() + planned_.steps[b].nodes.size();
        if (a != b && nodes <= kMaxGroup && rng_.chance(share)) std::ignore = frame_.join(a, b);
      }
    }
  }

  NodeId node_of(uint32_t step) const { return planned_.steps[step].nodes[0]; }

  // From the last on: what changes an input needs those behind it to change it, too.
  void updates() {
    for (const OpenEdit& edit : std::views::reverse(edits(EditKind::in_place))) {
      const NodeId n{edit.subject};
      if (rng_.chance(0.6))
        std::ignore = frame_.set_in_place(n, Said::yes);
      else if (rng_.chance(0.6))
        std::ignore = frame_.set_in_place(n, Said::no);
    }
  }

  // Views do not fit every layout of the memory that they lie in.
  void layouts() {
    for (const OpenEdit& edit : edits(EditKind::layout)) {
      if (apply(frame_, edit, rng_).ok()) continue;
      const ValueId v{edit.subject};
      frame_.set_layout(v, Layout::row_major(frame_.view().type(v).rank())).value();
    }
  }

  void schedules() {
    for (const OpenEdit& edit : edits(EditKind::schedule))
      if (frame_.whole().schedule(frame_.kernel(edit.subject).hash) == nullptr)
        apply(frame_, edit, rng_).value();
  }

  void collectives() {
    for (const Step& step : planned_.steps) {
      const NodeId n = step.nodes[0];
      if (const Op op = frame_.view().op(n); !step.is_kernel && exchanges_data(op))
        frame_.set_collective(n, random_schedule(op, rng_)).value();
    }
  }

  // ---- Places -----------------------------------------------------------------------------------

  void place(Plan& plan) {
    const auto offset = [&](const Lifetime& life) -> int64_t& {
      return plan.offset[std::string(frame_.view().name(life.value))];
    };
    std::vector<Lifetime> lives = lifetimes(planned_, planned_.order);
    rng_.shuffle(lives);
    if (lives.size() > kMaxPacked) {
      int64_t end = 0;
      for (const Lifetime& life : lives)
        offset(life) = std::exchange(end, end + padded(life.bytes));
      return;
    }
    struct Placed {
      int64_t begin;
      const Lifetime* life;
    };
    std::vector<Placed> placed;  // by place
    for (const Lifetime& life : lives) {
      std::vector<int64_t> gaps;  // where it fits
      int64_t end = 0;
      for (const Placed& other : placed) {
        if (other.life->last < life.first || life.last < other.life->first) continue;
        if (other.begin - end >= padded(life.bytes)) gaps.push_back(end);
        end = std::max(end, other.begin + padded(other.life->bytes));
      }
      gaps.push_back(end + kOffsetAlignment * (rng_.chance(0.2) ? rng_.between(1, 8) : 0));
      const int64_t begin = offset(life) = rng_.pick(gaps);
      placed.insert(std::ranges::upper_bound(placed, begin, {}, &Placed::begin), {begin, &life});
    }
  }

  static int64_t padded(int64_t bytes) {
    return (bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
  }

  FrameEditor& frame_;
  const PlannedGraph& planned_;
  Rng& rng_;
};

}  // namespace

Plan random_plan(const Graph& graph, const Target& target, uint64_t seed) {
  Rng rng(seed);
  Plan start;
  if (!graph.name().empty()) start.graph = graph.name();
  start.graph_hash = hash_without_weights(graph);
  start.target = target.name;
  start.threads = rng.between(1, target.cores);
  const std::unique_ptr<PlanEditor> editor = PlanEditor::open(graph, start, target).value();
  RandomFrame frame(editor->main(), rng);
  frame.decide();
  Plan plan = editor->to_plan();
  frame.offsets(plan);
  return plan;
}

}  // namespace hone
