#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "compile/compilation.h"
#include "cost/cost.h"
#include "lab/data/layout_file.h"
#include "tune/collect_kernel.h"

// Plans whose layouts are near the default ones and far from them, for data sets: what their
// kernels are, and what whole runs take.

namespace hone {

// One way to lay the values of a graph out.
struct LayoutAssignment {
  bool is_random = false;            // each value anyhow; otherwise a few are not as by default
  std::vector<Layout> layouts = {};  // by configurable value
  std::vector<uint32_t> kernels =
      {};               // that its plan launches, as numbers of VariedLayouts::kernels
  double priced = 0;    // seconds of a run, by price
  double rival = 0;     // the same with kernels by VaryOptions::rival
  double composed = 0;  // the same with kernels by their times, where they are known
  double noise = 0;     // of it, as far as its kernels are not the default's: a relative deviation
  double known = 0;     // the share of it that was measured
  double whole = 0;     // seconds of a run as it was measured; 0: it was not
  double whole_noise = 0;  // half its interval of 95 %, relative
};

struct VaryOptions {
  int64_t threads = 1;
  size_t assignments = 400;  // half of them random; the first one is the default
  uint64_t seed = 1;
  // Another price of kernels, which decides about nothing: the rival of models in files. Null: that
  // of the plan.
  const Cost* rival = nullptr;
  const CancelToken* cancel = nullptr;
};

// Assignments of layouts of a prepared graph, all else as in its default plan: groups stay, and
// schedules are the planner's.
class VariedLayouts {
 public:
  static Result<VariedLayouts> draw(Graph graph, const Target& target,
                                    std::shared_ptr<const Cost> cost, const VaryOptions& options);

  const std::vector<DefaultKernel>& kernels() const { return kernels_; }
  const std::vector<LayoutAssignment>& assignments() const { return assignments_; }
  // Composes all runs of what the kernels take. Infinity: that is not known.
  void compose(std::span<const KernelTime> kernels);
  // Runs an assignment in turns with the default one.
  Status run_whole(size_t assignment, double seconds, const CancelToken* cancel);
  // Takes over whole runs from a file of the same program, of the assignments that it has, too. If
  // it lacks one of the default, nothing says what the others compare to.
  void keep_whole(const LayoutFile& file, bool is_random);

  // The file of those that are random, or not, and of the default. Configurable are the nodes whose
  // results may lie differently; times are composed ones.
  LayoutFile file(bool is_random) const;

 private:
  VariedLayouts(Graph graph, const Target& target, std::shared_ptr<const Cost> cost,
                const VaryOptions& options)
      : graph_(std::make_shared<const Graph>(std::move(graph))),
        target_(&target),
        cost_(std::move(cost)),
        options_(options) {}
  Status draw();
  void price_by_rival();
  std::vector<size_t> those(bool are_random) const;
  tpu::LayoutGraph layout_graph(std::span<const size_t> assignments) const;
  Result<Plan> plan_of(const LayoutAssignment& assignment) const;

  std::shared_ptr<const Graph> graph_;
  const Target* target_;
  std::shared_ptr<const Cost> cost_;
  VaryOptions options_;
  Plan default_;
  std::vector<ValueId> values_;  // configurable ones
  std::vector<Layout> planned_;  // by value of the graph
  std::vector<DefaultKernel> kernels_;
  std::vector<LayoutAssignment> assignments_;
  std::shared_ptr<Compilation> code_;  // of the default plan
  std::vector<Tensor> inputs_;
  double default_seconds_ = 0;  // of a whole run
};

}  // namespace hone
