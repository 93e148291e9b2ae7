#include "lab/data/collect_layouts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
constexpr KernelTime kUnknown = {std::numeric_limits<double>::infinity()};

class Collector {
 public:
  Collector(DataSet& set, const std::string& program, const Target& target, VariedLayouts& varied,
            MeasuredKernels& known, const LayoutOptions& options)
      : set_(set),
        program_(program),
        target_(target),
        varied_(varied),
        known_(known),
        options_(options) {}

  Result<CollectedPlans> run() {
    result_.plans = varied_.assignments().size();
    HONE_TRY(add_kernels());
    HONE_TRY(keep_whole());
    varied_.compose(HONE_TRY(time_kernels()));
    const Status runs = run_whole();
    HONE_TRY(write());
    HONE_TRY(runs);
    for (const LayoutAssignment& each : varied_.assignments())
      if (each.whole > 0) result_.errors.push_back(each.composed / each.whole);
    result_.is_done = has_kernels_ && tried_ >= options_.whole;
    return std::move(result_);
  }

 private:
  fs::path path(bool is_random) const { return layout_path(set_.folder(), program_, is_random); }

  Status add_kernels() {
    std::vector<DefaultKernel> kernels;
    for (const DefaultKernel& kernel : varied_.kernels())
      if (kernel.facts != nullptr) kernels.push_back(kernel);
    result_.kernels = kernels.size();
    return hone::add_kernels(set_, program_, KernelOrigin::layouts, kernels);
  }

  Status keep_whole() {
    std::error_code failed;
    for (bool is_random : {true, false}) {
      if (!fs::exists(path(is_random), failed)) continue;
      const Result<LayoutFile> file = read_layout_file(path(is_random));
      if (!file.ok()) return Error(file.error()).about(path(is_random).native());
      varied_.keep_whole(*file, is_random);
    }
    return {};
  }

  // Known times come first, however little time there is. Then those in which most assignments
  // spend most.
  Result<std::vector<KernelTime>> time_kernels() {
    const std::vector<DefaultKernel>& kernels = varied_.kernels();
    std::vector<KernelTime> times(kernels.size(), kUnknown);
    std::vector<double> weight(kernels.size(), 0);
    for (const LayoutAssignment& assignment : varied_.assignments())
      for (uint32_t kernel : assignment.kernels) weight[kernel] += kernels[kernel].price;
    std::vector<size_t> order;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].facts == nullptr) continue;
      if (options_.vary.cancel != nullptr) HONE_TRY(options_.vary.cancel->check());
      const auto time = HONE_TRY(known_time(kernels[i], target_, known_, options_.meter));
      if (time) times[i] = *time;
      if (!time) order.push_back(i);
    }
    std::ranges::sort(order, std::greater<>(), [&](size_t i) { return weight[i]; });
    size_t done = 0;
    while (done < order.size() && !is_over(options_.whole == 0 ? 1 : 0.5)) {
      const size_t i = order[done++];
      times[i] = HONE_TRY(time_planned(kernels[i], target_, known_, options_.meter));
    }
    has_kernels_ = done == order.size();
    return times;
  }

  bool is_over(double share) const { return options_.renews || options_.is_over(share); }

  // An error: somebody cancelled.
  Status run_whole() {
    const std::vector<LayoutAssignment>& all = varied_.assignments();
    for (tried_ = 0; tried_ < all.size(); ++tried_) {
      if (all[tried_].whole > 0) continue;
      // The first is the default, against itself: the noise.
      if (tried_ >= options_.whole || (tried_ > 0 && is_over(1)) || options_.renews) return {};
      const Status status = varied_.run_whole(tried_, options_.whole_seconds, options_.vary.cancel);
      if (!status.ok() && status.error().code() == ErrorCode::interrupted) return status;
      if (all[tried_].whole > 0) ++result_.whole;
    }
    tried_ = std::max(tried_, options_.whole);  // there are no more
    return {};
  }

  Status write() const {
    HONE_TRY(make_folders(path(true).parent_path().native()));
    for (bool is_random : {true, false}) {
      LayoutFile file = varied_.file(is_random);
      file.program = program_;
      file.progress = {.seed = static_cast<int64_t>(options_.vary.seed),
                       .plans = static_cast<int64_t>(options_.vary.assignments),
                       .whole = static_cast<int64_t>(tried_),
                       .has_kernels = has_kernels_};
      HONE_TRY(write_npz(path(is_random), arrays_of(file)));
    }
    return {};
  }

  DataSet& set_;
  const std::string& program_;
  const Target& target_;
  VariedLayouts& varied_;
  MeasuredKernels& known_;
  const LayoutOptions& options_;
  CollectedPlans result_;
  bool has_kernels_ = false;
  size_t tried_ = 0;  // whole runs, the first ones
};

}  // namespace

Result<bool> has_layouts(const DataSet& set, const std::string& program,
                         const LayoutOptions& options) {
  for (bool is_random : {true, false}) {
    const fs::path path = layout_path(set.folder(), program, is_random);
    const Result<std::optional<LayoutProgress>> found = read_progress(path);
    if (!found.ok()) return Error(found.error()).about(path.native());
    const std::optional<LayoutProgress>& progress = *found;
    if (!progress || !progress->has_kernels ||
        progress->seed != static_cast<int64_t>(options.vary.seed) ||
        progress->plans < static_cast<int64_t>(options.vary.assignments) ||
        progress->whole < static_cast<int64_t>(options.whole))
      return false;
  }
  return true;
}

Result<CollectedPlans> collect_layouts(DataSet& set, const std::string& program, Graph graph,
                                       const Target& target, std::shared_ptr<const Cost> cost,
                                       MeasuredKernels& known, const LayoutOptions& options) {
  VariedLayouts varied =
      HONE_TRY(VariedLayouts::draw(std::move(graph), target, std::move(cost), options.vary));
  return Collector(set, program, target, varied, known, options).run();
}

// ---- A task of data sets ------------------------------------------------------------------------

LayoutOptions LayoutCollector::layout_options(const BuildOptions& options) const {
  return {.vary = {.threads = options.threads,
                   .assignments = options.plans,
                   .seed = static_cast<uint64_t>(options.seed),
                   .rival = rival,
                   .cancel = options.cancel},
          .whole = whole,
          .renews = renews,
          .meter = meter_options(options)};
}

Result<bool> LayoutCollector::is_done(const DataSet& set, const std::string& program,
                                      const BuildOptions& options) const {
  if (renews) return false;
  return has_layouts(set, program, layout_options(options));
}

Result<CollectedPlans> LayoutCollector::collect(
    DataSet& set, const std::string& program, Graph graph, const Target& target,
    MeasuredKernels& known, const BuildOptions& options,
    const std::function<bool(double share)>& is_over) const {
  LayoutOptions layouts = layout_options(options);
  layouts.is_over = is_over;
  // The caller keeps the price.
  const std::shared_ptr<const Cost> cost(std::shared_ptr<const Cost>(), options.cost);
  return collect_layouts(set, program, std::move(graph), target, cost, known, layouts);
}

}  // namespace hone
