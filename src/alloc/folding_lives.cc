#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <tuple>

#include "alloc/folding.h"

// Many boxes of one life that together are as large as all of another life at their side, or as a
// single box there, without one or two of them perhaps: a rectangle that was cut in one direction
// only.

namespace hone {
namespace {

// Fewer may well come from several rectangles, and are added up in all ways.
constexpr size_t kLeastOfLife = 20;
// So much less sure than two sizes that are equal, by how many have the life.
constexpr double kLessSureByBox = 2000;
// Where more boxes meet, to look takes long.
constexpr size_t kMostMeeting = 1000;
constexpr double kRiskAlone = 0.5;

}  // namespace

// Where many have one life, and nothing else lives within it, only what is at their sides could
// tell where each of them lies; and did not so far.
void Folding::stack_alone() {
  left_out_.clear();
  int32_t soonest = std::numeric_limits<int32_t>::max();  // end of those that begin later
  for (size_t s = begins_.size(); s-- > 0;) {
    if (begins_[s].empty()) continue;
    const int32_t end = std::ranges::min(begins_[s], {}, &Edge::other).other;
    if (end < soonest && begins_[s].size() >= kLeastOfLife) {
      group_.clear();
      std::ranges::copy_if(begins_[s], std::back_inserter(group_),
                           [&](const Edge& edge) { return edge.other == end; });
      if (group_.size() >= kLeastOfLife) stack(group_, kRiskAlone);
    }
    soonest = std::min(soonest, end);
  }
  fold_anew(0);
}

bool Folding::join_lives(int32_t section) {
  const std::vector<Edge>&ends_here = ends(section), &begins_here = begins(section);
  if (ends_here.size() + begins_here.size() > kMostMeeting || ends_here.empty() ||
      begins_here.empty() || !(has_life(ends_here) || has_life(begins_here)))
    return false;
  before_ = ends_here;
  behind_ = begins_here;
  find_parties(before_, parties_before_);
  find_parties(behind_, parties_behind_);
  looks_ += std::ssize(before_) + std::ssize(behind_);
  const double ways = number(parties_before_) * number(parties_behind_);
  return join_equal(ways) || join_nearly_all(ways, false) || join_nearly_all(ways, true);
}

// Mostly none does, and to sort takes long.
bool Folding::has_life(std::span<const Edge> edges) {
  if (edges.size() < kLeastOfLife) return false;
  bool any = false;
  for (const Edge& edge : edges)
    any |= std::cmp_greater_equal(++with_life_[static_cast<size_t>(edge.other)], kLeastOfLife);
  for (const Edge& edge : edges) with_life_[static_cast<size_t>(edge.other)] = 0;
  return any;
}

void Folding::find_parties(std::vector<Edge>& edges, std::vector<Party>& parties) const {
  parties.clear();
  std::ranges::sort(edges, {}, [](const Edge& e) { return std::tuple(e.other, e.size, e.box); });
  for (auto from = edges.begin(); from != edges.end();) {
    int64_t all = 0;
    auto to = from;
    for (; to != edges.end() && to->other == from->other; ++to) {
      parties.push_back({to->size, {to, 1}});
      all += to->size;
    }
    if (std::cmp_greater_equal(to - from, kLeastOfLife)) parties.push_back({all, {from, to}});
    from = to;
  }
  std::ranges::sort(parties, {}, [](const Party& p) {
    return std::tuple(p.size, p.boxes.size(), p.boxes.front().box);
  });
}

bool Folding::join_equal(double ways) {
  left_out_.clear();
  for (const Party& one : parties_before_) {
    const auto others = std::ranges::equal_range(parties_behind_, one.size, {}, &Party::size);
    for (const Party& other : std::ranges::reverse_view(others)) {
      if (!one.is_life() && !other.is_life()) break;  // lives come last
      ++looks_;
      const Party& larger = one.boxes.size() > other.boxes.size() ? one : other;
      const double risk = ways * less_sure(larger) * as_large(one.size);
      if (!allows(risk)) continue;
      const int32_t first = stack(one.boxes, risk);
      join({first, stack(other.boxes, risk), true}, risk);
      return true;
    }
  }
  return false;
}

// All of a life but few, behind single boxes or before them.
bool Folding::join_nearly_all(double ways, bool behind) {
  const std::vector<Party>& lives = behind ? parties_behind_ : parties_before_;
  const std::vector<Party>& singles = behind ? parties_before_ : parties_behind_;
  for (const Party& life : lives) {
    if (!life.is_life()) continue;
    const int64_t two_largest = life.boxes.back().size + life.boxes[life.boxes.size() - 2].size;
    auto single = std::ranges::lower_bound(singles, life.size - two_largest, {}, &Party::size);
    for (; single != singles.end() && single->size < life.size; ++single) {
      if (single->is_life()) continue;
      double risk = ways * less_sure(life) * as_large(single->size);
      if (!leave_out(life.boxes, life.size - single->size, risk)) continue;
      join_stack(life.boxes, single->boxes.front(), behind, risk);
      return true;
    }
  }
  return false;
}

// One or two boxes that are the excess; false if there are none, or that would not be sure.
bool Folding::leave_out(std::span<const Edge> boxes, int64_t excess, double& risk) {
  ++looks_;
  left_out_.clear();
  risk *= number(boxes);
  if (!allows(risk)) return false;
  const auto alone = std::ranges::lower_bound(boxes, excess, {}, &Edge::size);
  if (alone != boxes.end() && alone->size == excess) {
    left_out_ = {alone->box};
    return true;
  }
  risk *= number(boxes) / 2;
  if (!allows(risk)) return false;
  looks_ += std::ssize(boxes);
  for (auto low = boxes.begin(), high = boxes.end() - 1; low < high;) {
    const int64_t both = low->size + high->size;
    if (both == excess) {
      left_out_ = {low->box, high->box};
      return true;
    }
    both < excess ? ++low : --high;
  }
  return false;
}

double Folding::less_sure(const Party& life) const { return kLessSureByBox / number(life.boxes); }

}  // namespace hone
