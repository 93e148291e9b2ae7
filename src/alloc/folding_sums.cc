#include <algorithm>
#include <tuple>

#include "alloc/folding.h"

// Several boxes with one life that are together as large as a single one at their side. Where many
// have one life, this alone tells which of them lie on each other.

namespace hone {
namespace {

// Sums are less sure than two sizes that are equal: which of a group is in them is chosen from many
// ways, and all of it is lost for others.
constexpr double kLessSure = 100;
// Where more boxes meet, nothing is sure, and to look takes long.
constexpr size_t kMostMeeting = 150;

}  // namespace

bool Folding::join_sums(int32_t section) {
  if (begins(section).size() + ends(section).size() > kMostMeeting) return false;
  for (const bool behind : {false, true}) {
    // Groups of boxes behind single ones, or before them.
    group_ = behind ? begins(section) : ends(section);
    singles_ = behind ? ends(section) : begins(section);
    if (group_.size() < 2 || singles_.empty()) continue;
    std::ranges::sort(group_, {},
                      [](const Edge& e) { return std::tuple(e.other, -e.size, e.box); });
    if (rng_) rng_->shuffle(singles_);
    for (auto from = group_.begin(); from != group_.end();) {
      const auto to =
          std::find_if(from, group_.end(), [&](const Edge& e) { return e.other != from->other; });
      if (to - from > 1 && join_sums(std::span(from, to), behind)) return true;
      from = to;
    }
  }
  return false;
}

bool Folding::join_sums(std::span<const Edge> group, bool behind) {
  group = group.first(std::min(group.size(), SubsetSum::kMostNumbers));
  int64_t all = 0;
  for (const Edge& edge : group) all += edge.size;
  bool are_set = false;
  for (const Edge& single : singles_) {
    if (single.size >= all) continue;
    const double likely = kLessSure * number(singles_) * as_large(single.size);
    if (!allows(likely * number(group))) continue;
    if (!are_set) {
      sizes_.clear();
      for (const Edge& edge : group) sizes_.push_back(edge.size);
      subsets_.set(sizes_);
      are_set = true;
    }
    if (join_sum(group, single, behind, likely)) return true;
  }
  return false;
}

// The fewest that do it, or that are left out. All of a group are stacked in the end without this.
bool Folding::join_sum(std::span<const Edge> group, const Edge& single, bool behind,
                       double likely) {
  const int64_t others = subsets_.all() - single.size;
  looks_ += subsets_.steps();
  const bool by_others = others < single.size;
  const std::span<const int32_t> found = subsets_.find(by_others ? others : single.size);
  if (found.empty()) return false;
  double ways = 1;
  for (size_t k = 0; k < found.size(); ++k)
    ways *= static_cast<double>(group.size() - k) / static_cast<double>(k + 1);
  if (!allows(likely * ways)) return false;
  left_out_.clear();
  for (size_t i = 0; i < group.size(); ++i) {
    const bool is_found = std::ranges::find(found, static_cast<int32_t>(i)) != found.end();
    if (is_found == by_others) left_out_.push_back(group[i].box);
  }
  join_stack(group, single, behind, likely * ways);
  return true;
}

// What is not left out, one on the other.
int32_t Folding::stack(std::span<const Edge> boxes, double risk) {
  int32_t all = -1;
  for (const Edge& edge : boxes) {
    if (std::ranges::find(left_out_, edge.box) != left_out_.end()) continue;
    all = all < 0 ? edge.box : join({all, edge.box, false}, risk);
  }
  return all;
}

// The stack lies behind the single box, or before it.
void Folding::join_stack(std::span<const Edge> boxes, const Edge& single, bool behind,
                         double risk) {
  const int32_t all = stack(boxes, risk);
  join(behind ? Joint{single.box, all, true} : Joint{all, single.box, true}, risk);
}

}  // namespace hone
