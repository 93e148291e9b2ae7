#include "search/choices.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include "kernel/kernel_name.h"
#include "search/layouts.h"

namespace hone {
namespace {

constexpr size_t kMostExamples = 3;

class Counting {
 public:
  explicit Counting(const PlanEditor& plan) : plan_(plan) {
    for (EditKind kind : kEditKinds) found_.edits.push_back({.kind = kind});
  }

  void add(const FrameEditor& frame, const std::string& region) {
    const std::vector<Step>& steps = frame.planned().steps;
    found_.steps += steps.size();
    for (uint32_t s = 0; s < steps.size(); ++s)
      if (steps[s].is_kernel) add_kernel(frame, s, region);
    for (EditChoices& kind : found_.edits) add_edits(frame, region, kind);
    for (const auto& [key, inner] : frame.regions()) add(*inner, key);
  }

  PlanChoices finish() { return std::move(found_); }

 private:
  static std::string placed(std::string text, const std::string& region) {
    return region.empty() ? text : fmt::format("{} in {}", text, region);
  }

  void add_kernel(const FrameEditor& frame, uint32_t s, const std::string& region) {
    const uint64_t hash = frame.kernel(s).hash;
    const auto [at, is_new] = kernels_.try_emplace(hash, found_.kernels.size());
    if (!is_new) {
      ++found_.kernels[at->second].steps;
      return;
    }
    const KernelFacts facts(frame.body(s), hash);
    const ScheduleSpace space(facts.body, facts, plan_.target());
    KernelChoices kernel{.label = placed(label(frame.view(), frame.planned().steps[s]), region),
                         .name = kernel_name(facts.body.graph),
                         .hash = hash,
                         .steps = 1};
    if (const Schedule* said = plan_.schedule(hash)) kernel.planned = said->algorithm();
    for (Algorithm algorithm : kAlgorithms)
      if (const double schedules = space.size(algorithm); schedules > 0)
        kernel.algorithms.push_back({algorithm, schedules, space.decisions(algorithm)});
    found_.kernels.push_back(std::move(kernel));
  }

  void add_edits(const FrameEditor& frame, const std::string& region, EditChoices& kind) const {
    for (const OpenEdit& edit : PlanSpace(frame).edits(kind.kind)) {
      ++kind.open;
      kind.values += values(frame, edit);
      if (kind.examples.size() < kMostExamples)
        kind.examples.push_back(placed(text(frame, edit), region));
    }
  }

  double values(const FrameEditor& frame, const OpenEdit& edit) const {
    switch (edit.kind) {
      case EditKind::layout: {
        const ValueId v{edit.subject};
        const bool is_constant = frame.planned().home[edit.subject] == Home::constant;
        return static_cast<double>(
            usual_layouts(frame.view().type(v), is_constant, kUsualBlocks).size());
      }
      case EditKind::copy: {  // readers that read it, or not
        const std::span<const NodeId> users = frame.users().of(ValueId{edit.subject});
        const std::set<NodeId> readers(users.begin(), users.end());
        return std::exp2(static_cast<double>(readers.size())) - 1;
      }
      case EditKind::schedule: {
        double schedules = 0;
        const KernelChoices& kernel = found_.kernels[kernels_.at(frame.kernel(edit.subject).hash)];
        for (const AlgorithmChoices& algorithm : kernel.algorithms)
          schedules += algorithm.schedules;
        return schedules;
      }
      case EditKind::order: return std::numeric_limits<double>::infinity();
      case EditKind::threads: return static_cast<double>(plan_.target().cores);
      default: return 1;
    }
  }

  const PlanEditor& plan_;
  PlanChoices found_;
  std::unordered_map<uint64_t, size_t> kernels_;  // by hash: their places
};

}  // namespace

PlanChoices choices_of(const PlanEditor& plan) {
  Counting counting(plan);
  counting.add(plan.main(), "");
  return counting.finish();
}

}  // namespace hone
