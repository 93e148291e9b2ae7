#include "shard/reshard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

namespace hone {
namespace {

constexpr std::string_view kKindNames[] = {"slice",          "all_gather", "all_to_all",
                                           "reduce_scatter", "all_reduce", "permute"};

// Cuts axes where one of the layouts cuts them, so that steps move whole parts.
class CutAxes {
 public:
  void look(const ShardLayout& layout) {
    for (const MeshParts& dim : layout.dims) look(dim);
    look(layout.partial);
  }
  ShardLayout cut(const ShardLayout& layout) const {
    ShardLayout made;
    for (const MeshParts& dim : layout.dims) made.dims.push_back(cut(dim));
    made.partial = cut(layout.partial);
    return made;
  }

 private:
  void look(const MeshParts& parts) {
    for (const MeshPart& part : parts) {
      ends_[part.axis].insert(part.before);
      ends_[part.axis].insert(part.end());
    }
  }
  MeshParts cut(const MeshParts& parts) const {
    MeshParts made;
    for (const MeshPart& part : parts) {
      MeshPart rest = part;
      for (const int64_t end : ends_.at(part.axis)) {
        if (end <= rest.before || end >= part.end()) continue;
        if (end % rest.before != 0 || part.end() % end != 0) continue;
        made.push_back({part.axis, rest.before, end / rest.before});
        rest = {part.axis, end, part.end() / end};
      }
      made.push_back(rest);
    }
    return made;
  }
  std::map<size_t, std::set<int64_t>> ends_;
};

class ReshardSearch {
 public:
  ReshardSearch(ShardLayout target, const std::vector<int64_t>& sizes, int64_t element_bytes)
      : target_(std::move(target)), sizes_(sizes), element_bytes_(element_bytes) {}

  std::vector<ReshardStep> find(const ShardLayout& from) {
    reach(from, 0, std::nullopt, -1);
    while (!waiting_.empty() && found_.size() < kMostLayouts) {
      const auto [bytes, depth, number] = waiting_.top();
      waiting_.pop();
      if (found_[number].is_done) continue;
      found_[number].is_done = true;
      if (found_[number].layout == target_) return path(number);
      extend(number);
    }
    return through_whole(from);
  }

 private:
  // More layouts than this come of many axes and dims; then any way will do.
  static constexpr size_t kMostLayouts = 2000;

  // Makes the value whole, then takes the parts.
  std::vector<ReshardStep> through_whole(ShardLayout at) const {
    std::vector<ReshardStep> steps;
    while (!at.partial.empty()) {
      const MeshPart part = at.partial.back();
      at.partial.pop_back();
      steps.push_back({.kind = ReshardKind::all_reduce,
                       .part = part,
                       .bytes = 2 * (local_bytes(at) / part.size * (part.size - 1))});
    }
    for (size_t d = 0; d < sizes_.size(); ++d)
      for (MeshParts& parts = at.dims[d]; !parts.empty(); parts.pop_back())
        steps.push_back({.kind = ReshardKind::all_gather,
                         .part = parts.back(),
                         .from = d,
                         .bytes = local_bytes(at) * (parts.back().size - 1)});
    for (size_t d = 0; d < sizes_.size(); ++d)
      for (const MeshPart& part : target_.dims[d])
        steps.push_back({.kind = ReshardKind::slice, .part = part, .to = d});
    return steps;
  }

  struct Found {
    ShardLayout layout;
    int64_t bytes;
    int depth;
    std::optional<ReshardStep> step;
    int before;
    bool is_done = false;
  };

  std::vector<ReshardStep> path(size_t number) const {
    std::vector<ReshardStep> steps;
    for (int at = static_cast<int>(number); at >= 0; at = found_[static_cast<size_t>(at)].before)
      if (const auto& step = found_[static_cast<size_t>(at)].step) steps.push_back(*step);
    std::ranges::reverse(steps);
    return steps;
  }

  void reach(ShardLayout layout, int64_t bytes, std::optional<ReshardStep> step, int before) {
    const int depth = before < 0 ? 0 : found_[static_cast<size_t>(before)].depth + 1;
    for (Found& one : found_)
      if (one.layout == layout) {
        if (one.is_done || std::pair(one.bytes, one.depth) <= std::pair(bytes, depth)) return;
        one.is_done = true;  // a dearer way
      }
    found_.push_back({std::move(layout), bytes, depth, step, before});
    waiting_.emplace(bytes, depth, found_.size() - 1);
  }

  int64_t local_bytes(const ShardLayout& layout) const {
    int64_t bytes = element_bytes_;
    for (size_t d = 0; d < sizes_.size(); ++d) bytes *= sizes_[d] / count_of(layout.dims[d]);
    return bytes;
  }

  bool is_free(const ShardLayout& layout, const MeshPart& part) const {
    const auto has = [&](const MeshParts& parts) {
      return std::ranges::any_of(parts,
                                 [&](const MeshPart& other) { return clashes(part, other); });
    };
    return !has(layout.partial) && std::ranges::none_of(layout.dims, has);
  }

  bool fits(const ShardLayout& layout, size_t d, const MeshPart& part) const {
    return sizes_[d] % (count_of(layout.dims[d]) * part.size) == 0;
  }

  void extend(size_t number) {
    const ShardLayout at = found_[number].layout;
    const int64_t bytes = found_[number].bytes, held = local_bytes(at);
    const auto step = [&](ShardLayout layout, ReshardStep one) {
      reach(std::move(layout), bytes + one.bytes, one, static_cast<int>(number));
    };
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const MeshParts& wanted = target_.dims[d];
      if (at.dims[d].size() < wanted.size()) {
        const MeshPart& part = wanted[at.dims[d].size()];
        ShardLayout next = at;
        next.dims[d].push_back(part);
        if (is_free(at, part) && fits(at, d, part))
          step(std::move(next), {.kind = ReshardKind::slice, .part = part, .to = d});
      }
      if (at.dims[d].empty()) continue;
      const MeshPart part = at.dims[d].back();
      ShardLayout without = at;
      without.dims[d].pop_back();
      step(without, {.kind = ReshardKind::all_gather,
                     .part = part,
                     .from = d,
                     .bytes = held * (part.size - 1)});
      for (size_t e = 0; e < sizes_.size(); ++e) {
        if (e == d || !fits(at, e, part)) continue;
        ShardLayout next = without;
        next.dims[e].push_back(part);
        step(std::move(next), {.kind = ReshardKind::all_to_all,
                               .part = part,
                               .from = d,
                               .to = e,
                               .bytes = held / part.size * (part.size - 1)});
      }
    }
    if (at.partial.empty()) return;
    const MeshPart part = at.partial.back();
    ShardLayout without = at;
    without.partial.pop_back();
    const int64_t share = held / part.size * (part.size - 1);
    step(without, {.kind = ReshardKind::all_reduce, .part = part, .bytes = 2 * share});
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (!fits(at, d, part)) continue;
      ShardLayout next = without;
      next.dims[d].push_back(part);
      step(std::move(next),
           {.kind = ReshardKind::reduce_scatter, .part = part, .to = d, .bytes = share});
    }
  }

  const ShardLayout target_;
  const std::vector<int64_t>& sizes_;
  const int64_t element_bytes_;
  std::vector<Found> found_;
  using Waiting = std::tuple<int64_t, int, size_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace

std::string_view name(ReshardKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::vector<ReshardStep> reshard_steps(const ShardLayout& from, const ShardLayout& to,
                                       const std::vector<int64_t>& sizes, int64_t element_bytes) {
  CutAxes axes;
  axes.look(from);
  axes.look(to);
  return ReshardSearch(axes.cut(to), sizes, element_bytes).find(axes.cut(from));
}

}  // namespace hone
