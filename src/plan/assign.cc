#include "plan/assign.h"

#include <algorithm>

#include "base/text.h"
#include "plan/rewritten.h"

namespace hone {
namespace {

Result<uint64_t> prepared_hash(const Graph& graph, const PrepareOptions& prepared) {
  return hash_without_weights(HONE_TRY(prepare(graph, prepared)));
}

class Assignment {
 public:
  Assignment(std::span<const PlacedPlan> plans, std::span<const Graph* const> graphs,
             const PrepareOptions& prepared)
      : plans_(plans),
        graphs_(graphs),
        prepared_(prepared),
        hashes_(graphs.size()),
        of_graph_(graphs.size()) {}

  Result<std::vector<const PlacedPlan*>> run() {
    const auto says_hash = [](const PlacedPlan& one) { return one.plan.graph_hash != 0; };
    if (std::ranges::any_of(plans_, says_hash))
      for (size_t i = 0; i < graphs_.size(); ++i)
        hashes_[i] = HONE_TRY(prepared_hash(*graphs_[i], prepared_));
    std::vector<bool> is_done(plans_.size());
    // Graphs may share a hash, a name, or both: what fits best is found first.
    for (const Fit fit : {Fit::both, Fit::hash, Fit::name})
      for (size_t i = 0; i < plans_.size(); ++i)
        if (!is_done[i]) is_done[i] = give(plans_[i], fit);
    for (size_t i = 0; i < plans_.size(); ++i)
      if (!is_done[i]) return refusal(plans_[i]);
    return std::move(of_graph_);
  }

 private:
  enum class Fit : uint8_t { both, hash, name };

  bool fits(const Plan& plan, size_t i, Fit fit) const {
    if ((plan.graph_hash == 0) != (fit == Fit::name)) return false;
    return (fit == Fit::hash || plan.graph == graphs_[i]->name()) &&
           (fit == Fit::name || plan.graph_hash == hash(plan, i));
  }

  // The hash of the graph that the plan's rewrites make; 0: they are of another one.
  uint64_t hash(const Plan& plan, size_t i) const {
    if (!has_rewrites(plan)) return hashes_[i];
    const Result<Graph> graph = rewritten(*graphs_[i], plan);
    const Result<uint64_t> hash = graph.ok() ? prepared_hash(*graph, prepared_) : graph.error();
    return hash.ok() ? *hash : 0;
  }

  bool give(const PlacedPlan& one, Fit fit) {
    for (size_t i = 0; i < graphs_.size(); ++i) {
      if (of_graph_[i] != nullptr || !fits(one.plan, i, fit)) continue;
      of_graph_[i] = &one;
      return true;
    }
    return false;
  }

  Error refusal(const PlacedPlan& one) const {
    const Plan& plan = one.plan;
    std::vector<std::string> names;
    bool has_name = false;
    for (size_t i = 0; i < graphs_.size(); ++i) {
      if (fits(plan, i, plan.graph_hash != 0 ? Fit::hash : Fit::name))
        return bad_input("segment '{}' has two plans", excerpt(graphs_[i]->name()))
            .within(one.place)
            .with_hint(fmt::format("the other is at {}", of_graph_[i]->place));
      has_name = has_name || plan.graph == graphs_[i]->name();
      names.emplace_back(graphs_[i]->name());
    }
    if (has_name)
      return bad_input(
                 "the plan is for another graph: segment '{}' does not have its hash, 0x{:016x}",
                 excerpt(plan.graph), plan.graph_hash)
          .within(one.place);
    std::string hint = did_you_mean(plan.graph, names);
    if (hint.empty() && !names.empty())
      hint = fmt::format("the first segment is '{}'", excerpt(names[0]));
    return bad_input("the plan '@{}' is not for a segment of the model", excerpt(plan.graph))
        .within(one.place)
        .with_hint(hint);
  }

  const std::span<const PlacedPlan> plans_;
  const std::span<const Graph* const> graphs_;
  const PrepareOptions& prepared_;
  std::vector<uint64_t> hashes_;  // by graph, if a plan says one
  std::vector<const PlacedPlan*> of_graph_;
};

}  // namespace

Result<std::vector<const PlacedPlan*>> assign_plans(std::span<const PlacedPlan> plans,
                                                    std::span<const Graph* const> graphs,
                                                    const PrepareOptions& prepared) {
  if (plans.size() != 1 || graphs.size() != 1) return Assignment(plans, graphs, prepared).run();
  const Plan& plan = plans[0].plan;
  if (plan.graph_hash != 0) {
    const Result<Graph> graph = rewritten(*graphs[0], plan);
    if (!graph.ok()) return plans[0].placed(graph.error());
    Status good = check_graph(plan, HONE_TRY(prepare(*graph, prepared)));
    if (!good.ok()) return std::move(good).error().within(plans[0].place);
  }
  return std::vector<const PlacedPlan*>{&plans[0]};
}

}  // namespace hone
