#include "learn/memory_budget.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "cost/kernel_store.h"
#include "planner/memory.h"

namespace hone {
namespace {

// ---- Text ---------------------------------------------------------------------------------------

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
                           {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9}};
constexpr double kMaxBytes = 1e15;

// ---- Ways to store less -------------------------------------------------------------------------

constexpr double kShares[] = {0.25, 0.5, 0.75, 0.9, 0.97};
constexpr size_t kPartCounts[] = {1, 2, 3, 4, 6, 8, 12, 16};

// The cost of computing again: arithmetic and memory of a core, roughly. It only sorts the ways.
double seconds_of(const Rematerialized& made) { return made.flops / 1e11 + made.bytes / 2e10; }

struct Way {
  Storage storage;
  Rematerialized made;
};

// Cheap ones first; none twice.
Result<std::vector<Way>> ways_of(const Graph& step, std::span<const uint32_t> forward) {
  std::vector<Way> ways;
  const auto add = [&](const Storage& storage) -> Status {
    Rematerialized made = HONE_TRY(rematerialize(step, forward, storage));
    const bool is_known = std::ranges::any_of(ways, [&](const Way& way) {
      return way.made.nodes == made.nodes && way.made.flops == made.flops &&
             way.made.bytes == made.bytes;
    });
    if (made.nodes > 0 && !is_known) ways.push_back({storage, std::move(made)});
    return {};
  };
  for (const bool cheap : {true, false}) {
    if (cheap) HONE_TRY(add({.leaves_out_cheap = true}));
    for (const double share : kShares)
      for (const size_t parts : kPartCounts)
        HONE_TRY(add({.leaves_out_cheap = cheap, .share = share, .parts = parts}));
  }
  std::ranges::sort(ways, {}, [](const Way& way) {
    return std::tuple(seconds_of(way.made), way.storage.parts, way.storage.share);
  });
  return ways;
}

// Plans the ways, which have most kernels in common.
class Counter {
 public:
  Counter(const Target& target, const CompileOptions& options)
      : target_(target), options_(options) {
    options_.cache = nullptr;
    options_.progress = nullptr;
    if (options_.known == nullptr) options_.known = &known_;
  }

  Result<int64_t> bytes(const Graph& graph) {
    Compilation compilation(graph, target_, options_);
    const Plan* plan = HONE_TRY(compilation.plan());
    const std::optional<MemoryBounds> bounds =
        HONE_TRY(memory_of(*HONE_TRY(compilation.graph()), *plan));
    return bounds ? bounds->height : 0;
  }

 private:
  const Target& target_;
  CompileOptions options_;
  KernelStore known_;
};

Error too_small(int64_t limit, int64_t least, int64_t all) {
  return over_limit(
             "the step cannot store as little as {}: the least that was found is {} ({} bytes), "
             "and {} with everything stored",
             format_bytes(limit), format_bytes(least), least, format_bytes(all))
      .with_hint("allow more, or make the batch smaller");
}

SmallerStep chosen(Way way, int64_t bytes, int64_t all) {
  return {.graph = std::move(way.made.graph),
          .storage = way.storage,
          .bytes = bytes,
          .bytes_all = all,
          .nodes = way.made.nodes};
}

}  // namespace

Result<MemoryBudget> parse_memory_budget(std::string_view text) {
  if (text == "all") return MemoryBudget();
  if (text == "cheap") return MemoryBudget{.kind = MemoryBudget::Kind::cheap};
  const auto refuse = [&](std::string_view why) {
    return usage_error("'{}' is not an amount of memory: {}", excerpt(text), why)
        .with_hint("all, cheap, a number of bytes such as 64MiB, or a share such as 50%");
  };
  std::string_view number = text;
  double unit = 1;
  const bool is_share = number.ends_with('%');
  if (is_share) number.remove_suffix(1);
  for (const Unit& each : kUnits)
    if (!is_share && number.ends_with(each.name)) {
      number.remove_suffix(each.name.size());
      unit = each.bytes;
      break;
    }
  const Result<double> parsed = parse_double(number);
  if (!parsed.ok()) return refuse("it does not begin with a number");
  if (!(*parsed > 0)) return refuse("it is not above 0");
  if (is_share) {
    if (*parsed > 100) return refuse("a share is at most 100%");
    return MemoryBudget{.kind = MemoryBudget::Kind::share, .share = *parsed / 100};
  }
  if (*parsed * unit > kMaxBytes) return refuse("no machine has that much");
  return MemoryBudget{.kind = MemoryBudget::Kind::bytes,
                      .bytes = static_cast<int64_t>(*parsed * unit)};
}

Result<SmallerStep> within_budget(const Graph& step, std::span<const uint32_t> forward,
                                  const MemoryBudget& budget, const Target& target,
                                  const CompileOptions& options) {
  using Kind = MemoryBudget::Kind;
  if (budget.kind == Kind::all) return SmallerStep{.graph = step};
  Counter counter(target, options);
  const int64_t all = HONE_TRY(counter.bytes(step));
  SmallerStep stored = {.graph = step, .bytes = all, .bytes_all = all};
  if (budget.kind == Kind::cheap) {
    const Storage cheap = {.leaves_out_cheap = true};
    Way way = {cheap, HONE_TRY(rematerialize(step, forward, cheap))};
    const int64_t bytes = HONE_TRY(counter.bytes(way.made.graph));
    // Never worse than what it is for.
    return bytes < all ? chosen(std::move(way), bytes, all) : std::move(stored);
  }
  const int64_t limit = budget.kind == Kind::bytes
                            ? budget.bytes
                            : static_cast<int64_t>(static_cast<double>(all) * budget.share);
  int64_t least = all;
  if (all <= limit) return stored;
  for (Way& way : HONE_TRY(ways_of(step, forward))) {
    const int64_t bytes = HONE_TRY(counter.bytes(way.made.graph));
    if (bytes <= limit) return chosen(std::move(way), bytes, all);
    least = std::min(least, bytes);
  }
  return too_small(limit, least, all);
}

}  // namespace hone
