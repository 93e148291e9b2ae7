#include "alloc/niches.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <queue>

#include "base/error.h"

namespace hone {
namespace {

// The boxes that are not yet placed, by where they begin; those that are longer come first.
class OpenBoxes {
 public:
  OpenBoxes(std::span<const Box> boxes, int32_t sections, std::span<const uint32_t> order)
      : boxes_(order.begin(), order.end()),
        leaves_(static_cast<int32_t>(std::bit_ceil(boxes.size()))) {
    std::ranges::sort(boxes_, {}, [&](uint32_t i) {
      return std::tuple(boxes[i].first, -boxes[i].end, -boxes[i].size, i);
    });
    std::vector<int32_t> rank(boxes.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int32_t>(i);
    nodes_.resize(2 * static_cast<size_t>(leaves_));
    for (int32_t i = 0; i < size(); ++i) {
      const Box& box = boxes[boxes_[static_cast<size_t>(i)]];
      node(leaves_ + i) = {box.end, rank[boxes_[static_cast<size_t>(i)]]};
    }
    for (int32_t i = leaves_ - 1; i > 0; --i) join(i);
    begins_.assign(static_cast<size_t>(sections) + 2, size());
    for (int32_t i = size() - 1; i >= 0; --i)
      begins_[static_cast<size_t>(boxes[boxes_[static_cast<size_t>(i)]].first)] = i;
    for (size_t s = begins_.size() - 1; s > 0; --s)
      begins_[s - 1] = std::min(begins_[s - 1], begins_[s]);
  }

  uint32_t box(int32_t at) const { return boxes_[static_cast<size_t>(at)]; }

  // The one of the least rank that lives within [first, end); -1 if none does.
  int32_t best(int32_t first, int32_t end) const {
    int32_t at = -1, rank = kNone;
    best(1, 0, leaves_, begin_of(first), begin_of(end), end, rank, at);
    return at;
  }
  // The same, of those that begin first.
  int32_t best_of_leftmost(int32_t first, int32_t end, std::span<const Box> boxes) const {
    const int32_t left = leftmost(1, 0, leaves_, begin_of(first), end);
    if (left < 0) return -1;
    const int32_t begin = boxes[box(left)].first;
    int32_t at = -1, rank = kNone;
    best(1, 0, leaves_, left, begin_of(begin + 1), end, rank, at);
    return at;
  }

  void remove(int32_t at) {
    node(leaves_ + at) = {};
    for (int32_t i = (leaves_ + at) / 2; i > 0; i /= 2) join(i);
  }

 private:
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  struct Node {
    int32_t end = kNone;   // the least
    int32_t rank = kNone;  // the least
  };

  int32_t size() const { return static_cast<int32_t>(boxes_.size()); }
  int32_t begin_of(int32_t section) const { return begins_[static_cast<size_t>(section)]; }
  Node& node(int32_t i) { return nodes_[static_cast<size_t>(i)]; }
  const Node& node(int32_t i) const { return nodes_[static_cast<size_t>(i)]; }
  void join(int32_t i) {
    const Node &a = node(2 * i), &b = node(2 * i + 1);
    node(i) = {std::min(a.end, b.end), std::min(a.rank, b.rank)};
  }

  void best(int32_t i, int32_t low, int32_t high, int32_t from, int32_t to, int32_t end,
            int32_t& rank, int32_t& at) const {
    if (high <= from || low >= to || node(i).end > end || node(i).rank >= rank) return;
    if (high - low == 1) {
      rank = node(i).rank;
      at = low;
      return;
    }
    const int32_t middle = (low + high) / 2;
    const bool is_left = node(2 * i).rank < node(2 * i + 1).rank;
    if (is_left) best(2 * i, low, middle, from, to, end, rank, at);
    best(2 * i + 1, middle, high, from, to, end, rank, at);
    if (!is_left) best(2 * i, low, middle, from, to, end, rank, at);
  }
  int32_t leftmost(int32_t i, int32_t low, int32_t high, int32_t from, int32_t end) const {
    if (high <= from || node(i).end > end) return -1;
    if (high - low == 1) return low;
    const int32_t middle = (low + high) / 2;
    const int32_t at = leftmost(2 * i, low, middle, from, end);
    return at >= 0 ? at : leftmost(2 * i + 1, middle, high, from, end);
  }

  std::vector<uint32_t> boxes_;
  int32_t leaves_;
  std::vector<Node> nodes_;
  std::vector<int32_t> begins_;  // per section: the first box that begins there or later
};

// The placed blocks, as heights of stretches of sections.
class Skyline {
 public:
  explicit Skyline(int32_t sections) { push({.first = 0, .end = sections, .height = 0}); }

  struct Step {
    int32_t first = 0;
    int32_t end = 0;
    int64_t height = 0;
    int32_t before = -1;
    int32_t behind = -1;
    bool is_gone = false;
  };

  // The lowest step; the first of those that are as low.
  int32_t lowest() {
    for (;; queue_.pop()) {
      const auto& [height, first, i] = queue_.top();
      const Step& step = at(i);
      if (!step.is_gone && step.height == height && step.first == first) return i;
    }
  }
  const Step& step(int32_t i) const { return steps_[static_cast<size_t>(i)]; }

  // As high as the lower of its walls: nothing fits there.
  void fill(int32_t i) {
    const auto wall = [&](int32_t beside) { return beside < 0 ? INT64_MAX : at(beside).height; };
    at(i).height = std::min(wall(at(i).before), wall(at(i).behind));
    HONE_CHECK(at(i).height != INT64_MAX, "a box fits nowhere");
    merge(i);
  }

  // A part of a step becomes higher.
  void raise(int32_t i, int32_t first, int32_t end, int64_t height) {
    const Step old = at(i);
    if (old.first < first) {
      const int32_t left = push({old.first, first, old.height, old.before, i});
      if (old.before >= 0) at(old.before).behind = left;
      at(i).before = left;
      at(i).first = first;
    }
    if (end < old.end) {
      const int32_t right = push({end, old.end, old.height, i, old.behind});
      if (old.behind >= 0) at(old.behind).before = right;
      at(i).behind = right;
      at(i).end = end;
    }
    at(i).height = height;
    merge(i);
  }

 private:
  Step& at(int32_t i) { return steps_[static_cast<size_t>(i)]; }

  int32_t push(const Step& step) {
    steps_.push_back(step);
    const int32_t i = static_cast<int32_t>(steps_.size()) - 1;
    queue_.emplace(step.height, step.first, i);
    return i;
  }

  // With those beside that are as high.
  void merge(int32_t i) {
    if (const int32_t b = at(i).before; b >= 0 && at(b).height == at(i).height) {
      at(i).first = at(b).first;
      at(i).before = at(b).before;
      if (at(i).before >= 0) at(at(i).before).behind = i;
      at(b).is_gone = true;
    }
    if (const int32_t b = at(i).behind; b >= 0 && at(b).height == at(i).height) {
      at(i).end = at(b).end;
      at(i).behind = at(b).behind;
      if (at(i).behind >= 0) at(at(i).behind).before = i;
      at(b).is_gone = true;
    }
    queue_.emplace(at(i).height, at(i).first, i);
  }

  using Entry = std::tuple<int64_t, int32_t, int32_t>;  // height, first, step
  std::vector<Step> steps_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

// The highest load in each box's sections, in parts of the peak.
std::vector<int32_t> crowds(std::span<const Box> boxes, int32_t sections) {
  constexpr double kParts = 32;
  std::vector<double> change(static_cast<size_t>(sections) + 1);
  for (const Box& box : boxes) {
    change[static_cast<size_t>(box.first)] += static_cast<double>(box.size);
    change[static_cast<size_t>(box.end)] -= static_cast<double>(box.size);
  }
  // highest[k][s]: of the 2^k sections from s on.
  std::vector<std::vector<double>> highest(1);
  std::partial_sum(change.begin(), change.end() - 1, std::back_inserter(highest[0]));
  for (size_t k = 1; size_t{1} << k <= highest[0].size(); ++k) {
    highest.push_back(highest[k - 1]);
    const size_t half = size_t{1} << (k - 1);
    for (size_t s = 0; s + half < highest[k].size(); ++s)
      highest[k][s] = std::max(highest[k - 1][s], highest[k - 1][s + half]);
  }
  const double peak = *std::ranges::max_element(highest[0]);
  std::vector<int32_t> result;
  for (const Box& box : boxes) {
    const size_t k = std::bit_width(static_cast<uint32_t>(box.length())) - 1;
    const double high = std::max(highest[k][static_cast<size_t>(box.first)],
                                 highest[k][static_cast<size_t>(box.end) - (size_t{1} << k)]);
    result.push_back(static_cast<int32_t>(kParts * high / peak));
  }
  return result;
}

}  // namespace

std::vector<uint32_t> ranked(std::span<const Box> boxes, int32_t sections, BoxRank rank,
                             bool crowded) {
  std::vector<int32_t> crowd(boxes.size());
  if (crowded) crowd = crowds(boxes, sections);
  std::vector<double> key;
  for (const Box& box : boxes)
    key.push_back(rank == BoxRank::length ? box.length()
                  : rank == BoxRank::area ? box.area()
                                          : static_cast<double>(box.size));
  std::vector<uint32_t> order(boxes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {},
                    [&](uint32_t i) { return std::tuple(-crowd[i], -key[i], -boxes[i].size, i); });
  return order;
}

std::vector<int64_t> fill_niches(std::span<const Box> boxes, int32_t sections,
                                 std::span<const uint32_t> order, bool leftmost) {
  std::vector<int64_t> offsets(boxes.size());
  if (boxes.empty()) return offsets;
  OpenBoxes open(boxes, sections, order);
  Skyline skyline(sections);
  for (size_t placed = 0; placed < boxes.size();) {
    const int32_t niche = skyline.lowest();
    const Skyline::Step step = skyline.step(niche);
    const int32_t at = leftmost ? open.best_of_leftmost(step.first, step.end, boxes)
                                : open.best(step.first, step.end);
    if (at < 0) {
      skyline.fill(niche);
      continue;
    }
    const uint32_t i = open.box(at);
    const Box& box = boxes[i];
    offsets[i] = box.aligned_up(step.height);
    skyline.raise(niche, box.first, box.end, offsets[i] + box.size);
    open.remove(at);
    ++placed;
  }
  return offsets;
}

}  // namespace hone
