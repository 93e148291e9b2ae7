#include "cli/small_sets.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/console.h"
#include "cost/analytic.h"
#include "lab/data/collect_layouts.h"
#include "tune/build_data_set.h"

namespace hone::cli {
namespace {

constexpr int64_t kSmallBytes = 2'000'000;  // packed
constexpr size_t kLayoutPrograms = 6;       // beside the given ones: each takes its time
constexpr double kSmallFill = 0.94;         // a last record comes after its bytes were counted

// A set below the folder, with its share of time and bytes. Two of one name go into one set.
struct SmallPart {
  std::string name;
  Target target;
  int64_t threads = 1;
  bool is_cold = false;
  DataTask task = DataTask::tile;
  bool has_layouts = false;
  double share = 1;
};

// All that decides about a kernel: at the machine's own level everything, at lower ones schedules
// and groups.
std::vector<SmallPart> small_parts(const Target& target) {
  const std::string own(name(target.isa));
  std::vector<SmallPart> parts = {
      {.name = own, .target = target, .share = 4},
      {.name = own, .target = target, .task = DataTask::fusion, .share = 2}};
  for (auto isa = kIsas.rbegin(); isa != kIsas.rend(); ++isa) {
    if (*isa >= target.isa) continue;
    const Target lower = restricted(target, *isa);
    parts.push_back({.name = std::string(name(*isa)), .target = lower, .share = 1.5});
  }
  if (target.cores > 1)
    parts.push_back({.name = fmt::format("{}-{}-threads", own, target.cores),
                     .target = target,
                     .threads = target.cores,
                     .share = 1.5});
  parts.push_back({.name = own + "-cold", .target = target, .is_cold = true, .share = 1.5});
  parts.push_back({.name = own + "-layouts", .target = target, .has_layouts = true});
  return parts;
}

// Each part begins with other programs behind the given ones, so that all together see many.
std::vector<NamedProgram> in_part(std::span<const NamedProgram> programs, size_t given,
                                  size_t part) {
  std::vector<NamedProgram> all(programs.begin(), programs.end());
  const auto rest = std::span(all).subspan(given);
  if (rest.empty()) return all;
  std::ranges::rotate(rest, rest.begin() + static_cast<ptrdiff_t>(5 * part % rest.size()));
  return all;
}

// Files of layouts are written as a whole, so that some of them may be too many.
void drop_layouts(const std::string& folder, int64_t most) {
  namespace fs = std::filesystem;
  std::error_code failed;
  while (packed_bytes(folder) > most) {
    fs::path largest;
    for (fs::directory_iterator at(fs::path(folder) / "layout", failed), end; !failed && at != end;
         at.increment(failed))
      if (largest.empty() || at->file_size(failed) > fs::file_size(largest, failed))
        largest = at->path();
    if (largest.empty() || !fs::remove(largest, failed)) return;
  }
}

}  // namespace

Status build_small_sets(const std::string& folder, const BuildOptions& options,
                        std::span<const NamedProgram> programs, size_t given,
                        LayoutCollector& layouts, const Target& target, Console& console) {
  const std::vector<SmallPart> parts = small_parts(target);
  double all = 0, done = 0;
  for (const SmallPart& part : parts) all += part.share;
  const Console::Keeping keeping(console);
  for (size_t p = 0; p < parts.size() && !console.cancel().cancelled(); ++p) {
    const SmallPart& part = parts[p];
    done += part.share;
    const std::string own = (std::filesystem::path(folder) / (part.name + ".set")).native();
    BuildOptions its = options;
    its.seconds = part.share / all * options.seconds;
    its.probe_seconds = std::min(options.probe_seconds, its.seconds / 8);
    its.seconds -= its.probe_seconds;
    its.kernel_seconds = std::min(options.kernel_seconds, its.seconds / 8);
    its.threads = part.threads;
    its.is_cold = part.is_cold;
    its.task = part.task;
    its.collector = part.has_layouts ? &layouts : nullptr;
    // Bytes that parts before have left over are for those behind them.
    const auto allowed = static_cast<int64_t>(kSmallFill * kSmallBytes * done / all);
    const int64_t others = packed_bytes(folder) - packed_bytes(own);
    its.most_bytes = std::max<int64_t>(allowed - others, 0);
    const AnalyticCost cost(part.target);
    its.cost = &cost;
    std::vector<NamedProgram> own_programs = in_part(programs, given, p);
    if (part.has_layouts)
      own_programs.resize(std::min(own_programs.size(), given + kLayoutPrograms));
    const BuiltSet built = HONE_TRY(build_data_set(own, own_programs, part.target, its));
    if (part.has_layouts) drop_layouts(own, kSmallBytes - others);
    console.say(fmt::format("{}: {} of {} kernels", own, built.collected, built.wanted));
  }
  console.write(fmt::format("{} as an archive: the sets in {}\n",
                            format_bytes(packed_bytes(folder)), folder));
  return console.cancel().check();
}

}  // namespace hone::cli
