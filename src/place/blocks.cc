#include "place/blocks.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace hone {
namespace {

// Tarjan's circles, without recursion: the number of the circle of each point. A circle gets its
// number after all that it leads to.
class Circles {
 public:
  explicit Circles(const std::vector<std::vector<uint32_t>>& next)
      : next_(next), of_(next.size(), kNew), low_(next.size()), seen_(next.size(), kNew) {
    for (uint32_t i = 0; i < next.size(); ++i)
      if (seen_[i] == kNew) walk(i);
  }
  const std::vector<uint32_t>& of() const { return of_; }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kNew = UINT32_MAX;

  void enter(uint32_t i) {
    seen_[i] = low_[i] = time_++;
    open_.push_back(i);
    path_.emplace_back(i, 0);
  }
  void walk(uint32_t from) {
    enter(from);
    while (!path_.empty()) {
      const uint32_t at = path_.back().first;
      if (path_.back().second < next_[at].size()) {
        const uint32_t to = next_[at][path_.back().second++];
        if (seen_[to] == kNew)
          enter(to);
        else if (of_[to] == kNew)
          low_[at] = std::min(low_[at], seen_[to]);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[at]);
      if (low_[at] == seen_[at]) close(at);
    }
  }
  void close(uint32_t first) {
    for (uint32_t i = kNew; i != first;) {
      i = open_.back();
      open_.pop_back();
      of_[i] = count_;
    }
    ++count_;
  }

  const std::vector<std::vector<uint32_t>>& next_;
  std::vector<uint32_t> of_, low_, seen_, open_;
  std::vector<std::pair<uint32_t, size_t>> path_;
  uint32_t time_ = 0, count_ = 0;
};

}  // namespace

OrderedBlocks ordered_blocks(const std::vector<std::vector<uint32_t>>& next) {
  const Circles circles(next);
  const std::vector<uint32_t>& of = circles.of();
  std::vector<std::vector<uint32_t>> members(circles.count()), after(circles.count());
  for (uint32_t point = 0; point < next.size(); ++point) {
    members[of[point]].push_back(point);
    for (const uint32_t to : next[point])
      if (of[point] != of[to]) after[of[point]].push_back(of[to]);
  }
  std::vector<uint32_t> waits(members.size()), place(members.size());
  for (std::vector<uint32_t>& list : after) {
    std::ranges::sort(list);
    const auto [first, last] = std::ranges::unique(list);
    list.erase(first, last);
    for (const uint32_t to : list) ++waits[to];
  }
  using Ready = std::pair<uint32_t, uint32_t>;  // first point, circle
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> open;
  for (uint32_t c = 0; c < members.size(); ++c)
    if (waits[c] == 0) open.emplace(members[c][0], c);
  OrderedBlocks made;
  while (!open.empty()) {
    const uint32_t c = open.top().second;
    open.pop();
    place[c] = static_cast<uint32_t>(made.members.size());
    made.members.push_back(members[c]);
    for (const uint32_t to : after[c])
      if (--waits[to] == 0) open.emplace(members[to][0], to);
  }
  made.before.resize(members.size());
  for (uint32_t c = 0; c < members.size(); ++c)
    for (const uint32_t to : after[c]) made.before[place[to]].push_back(place[c]);
  for (std::vector<uint32_t>& list : made.before) std::ranges::sort(list);
  return made;
}

}  // namespace hone
