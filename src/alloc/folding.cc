#include "alloc/folding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {
namespace {

// What an attempt takes apart.
constexpr double kFewApart = 3, kMostApart = 40;
constexpr size_t kMostOpen = 12;  // roots; where more meet, to join all of them again takes long
constexpr double kLeastRiskApart = 1e-4, kMostRiskApart = 1;
// Joints that are surer than what it takes apart are looked for too.
constexpr double kFromSurer = 8;
constexpr double kLittleNoise = 0.5, kMuchNoise = 3;
constexpr double kAdds = 0.4;  // the share of attempts that look for sums
// Where thousands begin at one moment, an attempt ends early: some hundredths of a second.
constexpr int64_t kMostLooks = 2'000'000;
// Of a joint that could be another one; not looked for where more chains touch.
constexpr float kDoubt = 0.5;
constexpr size_t kMostSeams = 100;

}  // namespace

Folding::Folding(std::span<const Box> boxes, int32_t sections) : boxes_(boxes.size()) {
  nodes_.reserve(3 * boxes.size());
  begins_.resize(static_cast<size_t>(sections) + 1);
  ends_.resize(begins_.size());
  seams_.resize(begins_.size());
  is_touched_.resize(begins_.size());
  waits_.resize(begins_.size());
  with_life_.resize(begins_.size());
  for (const Box& box : boxes) {
    nodes_.push_back({.box = {box.first, box.end, box.size}});
    unit_ = std::gcd(unit_, box.size);
    put(static_cast<int32_t>(nodes_.size()) - 1);
  }
  std::vector<int32_t> all(begins_.size());
  std::iota(all.begin(), all.end(), 0);
  fold(all, 0);
  stack_alone();
}

std::vector<Box> Folding::roots() const {
  std::vector<Box> result;
  for (int32_t i : roots_) {
    const Rect& box = node(i).box;
    result.push_back({.first = box.first, .end = box.end, .size = box.size});
  }
  return result;
}

std::vector<int64_t> Folding::unfold(std::span<const int64_t> offsets) const {
  std::vector<int64_t> result(boxes_);
  std::vector<std::pair<int32_t, int64_t>> open;
  for (size_t i = 0; i < roots_.size(); ++i) open.emplace_back(roots_[i], offsets[i]);
  while (!open.empty()) {
    const auto [i, offset] = open.back();
    open.pop_back();
    const auto [one, other] = node(i).parts;
    if (one < 0) {
      result[static_cast<size_t>(i)] = offset;
      continue;
    }
    open.emplace_back(one, offset);
    open.emplace_back(other, node(i).behind ? offset : offset + node(one).box.size);
  }
  return result;
}

void Folding::put(int32_t i) {
  Node& root = node(i);
  const auto add = [](auto& to, const auto& what) {
    to.push_back(what);
    return static_cast<int32_t>(to.size()) - 1;
  };
  const auto& [first, end, size] = root.box;
  root.root = add(roots_, i);
  root.begin = add(begins(first), Edge{size, end, i});
  root.end = add(ends(end), Edge{size, first, i});
  root.whole = -1;
  root.attempt = attempt_;
  put_.push_back(i);
}

void Folding::take(int32_t i) {
  Node& root = node(i);
  const auto remove = [&](auto& from, int32_t last, int32_t Node::* place) {
    node(last).*place = root.*place;
    from[static_cast<size_t>(root.*place)] = from.back();
    from.pop_back();
    root.*place = -1;
  };
  std::vector<Edge>&begin = begins(root.box.first), &end = ends(root.box.end);
  remove(roots_, roots_.back(), &Node::root);
  remove(begin, begin.back().box, &Node::begin);
  remove(end, end.back().box, &Node::end);
  if (root.attempt != attempt_) taken_.push_back(i);
}

void Folding::touch(int32_t section) {
  if (is_touched_[static_cast<size_t>(section)]) return;
  is_touched_[static_cast<size_t>(section)] = true;
  touched_.push_back(section);
}

// Of two chains of one size that touch in one section the ends may belong to each other crosswise,
// however unlikely that was.
void Folding::sew(int32_t i) {
  if (!node(i).behind) return;
  std::vector<Seam>& here = seams(node(i));
  for (const Seam& seam : here) {
    if (here.size() > kMostSeams) break;
    if (seam.size != node(i).box.size) continue;
    doubt(seam.box);
    doubt(i);
  }
  node(i).seam = static_cast<int32_t>(here.size());
  here.push_back({node(i).box.size, i});
}

void Folding::unpick(int32_t i) {
  if (!node(i).behind) return;
  std::vector<Seam>& here = seams(node(i));
  node(here.back().box).seam = node(i).seam;
  here[static_cast<size_t>(node(i).seam)] = here.back();
  here.pop_back();
}

void Folding::doubt(int32_t i) {
  for (; i >= 0 && node(i).risk < kDoubt; i = node(i).whole) node(i).risk = kDoubt;
}

int32_t Folding::join(const Joint& joint, double risk) {
  const auto [one, other, behind] = joint;
  Node joined{.box = node(one).box, .parts = {one, other}, .behind = behind};
  if (behind)
    joined.box.end = node(other).box.end;
  else
    joined.box.size += node(other).box.size;
  joined.risk = std::max({node(one).risk, node(other).risk, static_cast<float>(risk)});
  if (behind) touch(node(other).box.first);
  touch(joined.box.first);
  touch(joined.box.end);
  take(one);
  take(other);
  int32_t i = static_cast<int32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.push_back(joined);
  } else {
    i = free_.back();
    free_.pop_back();
    node(i) = joined;
  }
  node(one).whole = node(other).whole = i;
  sew(i);
  joined_.push_back(i);
  put(i);
  return i;
}

void Folding::take_apart(int32_t i, double risk, int64_t& most) {
  const auto [one, other] = node(i).parts;
  if (one < 0 || node(i).risk < risk || most == 0) {
    put(i);
    touch(node(i).box.first);
    touch(node(i).box.end);
    return;
  }
  --most;
  apart_.push_back(i);
  unpick(i);
  take_apart(one, risk, most);
  take_apart(other, risk, most);
}

// Some of those that begin or end where one does; or of those that touch these.
std::vector<int32_t> Folding::neighbours(Rng& rng) {
  constexpr size_t kMost = 60;
  const Rect box = node(rng.pick(roots_)).box;
  const int32_t section = rng.chance(0.5) ? box.first : box.end;
  std::vector<int32_t> result;
  const auto add = [&](int32_t s) {
    for (const auto* of : {&begins(s), &ends(s)})
      for (const Edge& edge : *of) result.push_back(edge.box);
  };
  add(section);
  if (rng.chance(0.5)) {
    const size_t near = result.size();
    for (size_t i = 0; i < near && result.size() < kMost; ++i)
      for (int32_t s : {node(result[i]).box.first, node(result[i]).box.end}) add(s);
  }
  std::ranges::sort(result);
  result.erase(std::ranges::unique(result).begin(), result.end());
  if (result.size() > kMostOpen) {
    rng.shuffle(result);
    result.resize(kMostOpen);
  }
  return result;
}

int64_t Folding::refold(Rng& rng) {
  const size_t before = count();
  ++attempt_;
  looks_ = 0;
  most_looks_ = kMostLooks;
  for (std::vector<int32_t>* list : {&taken_, &put_, &apart_, &joined_}) list->clear();
  rng_ = &rng;
  noise_ = rng.chance(0.5) ? kMuchNoise : kLittleNoise;
  salt_ = static_cast<uint32_t>(rng.next());
  depth_ = static_cast<int>(rng.between(1, 2));
  adds_ = rng.chance(kAdds);
  const auto between = [&](double low, double high) {
    return std::exp(rng.uniform(std::log(low), std::log(high)));
  };
  const double risk = between(kLeastRiskApart, kMostRiskApart);
  const std::vector<int32_t> open = neighbours(rng);
  for (int32_t i : open) take(i);
  int64_t most = static_cast<int64_t>(between(kFewApart, kMostApart));
  for (int32_t i : open) take_apart(i, risk, most);
  fold_anew(risk / kFromSurer);
  rng_ = nullptr;

  if (count() <= before) {
    free_.insert(free_.end(), apart_.begin(), apart_.end());
    return looks_;
  }
  for (int32_t i : std::vector<int32_t>(put_))
    if (node(i).root >= 0) take(i);
  for (int32_t i : joined_) unpick(i);
  for (int32_t i : apart_) {
    for (int32_t part : node(i).parts) node(part).whole = i;
    sew(i);
  }
  ++attempt_;
  for (int32_t i : std::vector<int32_t>(taken_)) put(i);
  free_.insert(free_.end(), joined_.begin(), joined_.end());
  return looks_;
}

}  // namespace hone
