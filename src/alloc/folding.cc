#include "alloc/folding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace hone {
namespace {

// Joints are tried from the surest on.
constexpr double kLeastRisk = 1e-6, kMostRisk = 1e3, kRiskStep = 3;
// What an attempt takes apart.
constexpr double kFewApart = 3, kMostApart = 100;
constexpr double kLeastRiskApart = 1e-4, kMostRiskApart = 100;

size_t logarithm(int64_t n) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(n))) - 1;
}

}  // namespace

Folding::Folding(std::span<const Box> boxes, int32_t sections) : boxes_(boxes.size()) {
  nodes_.reserve(3 * boxes.size());
  begins_.resize(static_cast<size_t>(sections) + 1);
  ends_.resize(begins_.size());
  is_touched_.resize(begins_.size());
  for (const Box& box : boxes) {
    nodes_.push_back({.box = box});
    unit_ = std::gcd(unit_, box.size);
    put(static_cast<int32_t>(nodes_.size()) - 1);
  }
  fold();
}

std::vector<Box> Folding::roots() const {
  std::vector<Box> result;
  for (int32_t i : roots_) result.push_back(node(i).box);
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
  root.root = static_cast<int32_t>(roots_.size());
  root.attempt = attempt_;
  roots_.push_back(i);
  begins(root.box.first).push_back(i);
  ends(root.box.end).push_back(i);
  put_.push_back(i);
}

void Folding::take(int32_t i) {
  const auto remove = [&](std::vector<int32_t>& from) {
    *std::ranges::find(from, i) = from.back();
    from.pop_back();
  };
  Node& root = node(i);
  remove(begins(root.box.first));
  remove(ends(root.box.end));
  node(roots_.back()).root = root.root;
  roots_[static_cast<size_t>(root.root)] = roots_.back();
  roots_.pop_back();
  root.root = -1;
  if (root.attempt != attempt_) taken_.push_back(i);
}

void Folding::touch(int32_t section) {
  if (is_touched_[static_cast<size_t>(section)]) return;
  is_touched_[static_cast<size_t>(section)] = true;
  touched_.push_back(section);
}

// A size is as likely as all within a factor of two, and so is a length.
void Folding::measure() {
  as_large_.fill(0.5);
  as_long_.fill(0.5);
  for (int32_t i : roots_) {
    ++as_large_[logarithm(node(i).box.size / unit_)];
    ++as_long_[logarithm(node(i).box.length())];
  }
  for (int k = 0; k < 64; ++k) {
    const double all = std::ldexp(static_cast<double>(roots_.size()), k);
    as_large_[static_cast<size_t>(k)] /= all;
    as_long_[static_cast<size_t>(k)] /= all;
  }
}

void Folding::fold() {
  for (most_risk_ = kLeastRisk; most_risk_ < kMostRisk; most_risk_ *= kRiskStep) {
    measure();
    for (size_t s = 0; s < begins_.size(); ++s) touch(static_cast<int32_t>(s));
    fold_touched();
  }
}

void Folding::fold_touched() {
  for (size_t i = 0; i < touched_.size(); ++i) {
    const int32_t section = touched_[i];
    is_touched_[static_cast<size_t>(section)] = false;
    while (fold_at(section)) {
    }
  }
  touched_.clear();
}

bool Folding::fold_at(int32_t section) {
  looks_ += 1 + std::ssize(begins(section)) + std::ssize(ends(section));
  return (begins(section).size() > 1 && stack_at(section)) ||
         (!begins(section).empty() && !ends(section).empty() && chain_at(section));
}

// Ties are broken by the index, or by chance.
void Folding::sort(std::vector<int32_t>& boxes, const auto& key) {
  keyed_.clear();
  for (int32_t i : boxes) keyed_.emplace_back(key(node(i).box), rng_ ? rng_->next() : 0, i);
  std::ranges::sort(keyed_);
  for (size_t k = 0; k < boxes.size(); ++k) boxes[k] = std::get<2>(keyed_[k]);
}

bool Folding::stack_at(int32_t section) {
  std::vector<int32_t>& open = behind_;
  open = begins(section);
  sort(open, [](const Box& box) { return box.end; });
  for (size_t i = 0; i + 1 < open.size(); ++i) {
    const Box& box = node(open[i]).box;
    if (box.end != node(open[i + 1]).box.end) continue;
    const double others =
        static_cast<double>(open.size() - 1) * static_cast<double>(ends(box.end).size() - 1) - 1;
    const double risk = others * as_long_[logarithm(box.length())];
    if (!allows(risk)) continue;
    join(open[i], open[i + 1], false, risk);
    return true;
  }
  return false;
}

bool Folding::chain_at(int32_t section) {
  before_ = ends(section);
  behind_ = begins(section);
  const double others =
      static_cast<double>(before_.size()) * static_cast<double>(behind_.size()) - 1;
  for (std::vector<int32_t>* boxes : {&before_, &behind_})
    sort(*boxes, [](const Box& box) { return box.size; });
  while (!before_.empty() && !behind_.empty()) {
    const int64_t size = node(before_.back()).box.size, other = node(behind_.back()).box.size;
    const double risk = others * as_large_[logarithm(size / unit_)];
    if (size == other && allows(risk)) {
      join(before_.back(), behind_.back(), true, risk);
      return true;
    }
    if (size >= other) before_.pop_back();
    if (size <= other) behind_.pop_back();
  }
  return false;
}

bool Folding::allows(double risk) {
  return (rng_ ? risk * std::exp(noise_ * (rng_->uniform() - 0.5)) : risk) <= most_risk_;
}

void Folding::join(int32_t a, int32_t b, bool behind, double risk) {
  Node joined{.box = node(a).box, .parts = {a, b}, .behind = behind};
  if (behind)
    joined.box.end = node(b).box.end;
  else
    joined.box.size += node(b).box.size;
  joined.risk = std::max({node(a).risk, node(b).risk, static_cast<float>(risk)});
  if (behind) touch(node(b).box.first);
  touch(joined.box.first);
  touch(joined.box.end);
  take(a);
  take(b);
  int32_t i = static_cast<int32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.push_back(joined);
  } else {
    i = free_.back();
    free_.pop_back();
    node(i) = joined;
  }
  joined_.push_back(i);
  put(i);
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
  take_apart(one, risk, most);
  take_apart(other, risk, most);
}

// Those that begin or end where one does; or those that touch these.
std::vector<int32_t> Folding::neighbours(Rng& rng) {
  constexpr size_t kMost = 60;
  const Box box = node(rng.pick(roots_)).box;
  const int32_t section = rng.chance(0.5) ? box.first : box.end;
  std::vector<int32_t> result = begins(section);
  result.insert(result.end(), ends(section).begin(), ends(section).end());
  if (rng.chance(0.5)) {
    const size_t near = result.size();
    for (size_t i = 0; i < near && result.size() < kMost; ++i)
      for (int32_t s : {node(result[i]).box.first, node(result[i]).box.end})
        for (const auto* of : {&begins(s), &ends(s)})
          result.insert(result.end(), of->begin(), of->end());
  }
  std::ranges::sort(result);
  result.erase(std::ranges::unique(result).begin(), result.end());
  return result;
}

int64_t Folding::refold(Rng& rng) {
  const size_t before = count();
  ++attempt_;
  looks_ = 0;
  for (std::vector<int32_t>* list : {&taken_, &put_, &apart_, &joined_}) list->clear();
  rng_ = &rng;
  noise_ = rng.chance(0.5) ? 3 : 0.5;
  const auto between = [&](double low, double high) {
    return std::exp(rng.uniform(std::log(low), std::log(high)));
  };
  const double risk = between(kLeastRiskApart, kMostRiskApart);
  const std::vector<int32_t> open = neighbours(rng);
  for (int32_t i : open) take(i);
  int64_t most = static_cast<int64_t>(between(kFewApart, kMostApart));
  for (int32_t i : open) take_apart(i, risk, most);
  const std::vector<int32_t> sections = touched_;
  for (most_risk_ = risk / 8; most_risk_ < kMostRisk; most_risk_ *= kRiskStep) {
    for (int32_t s : sections) touch(s);
    fold_touched();
  }
  rng_ = nullptr;

  if (count() <= before) {
    free_.insert(free_.end(), apart_.begin(), apart_.end());
    return looks_;
  }
  for (int32_t i : std::vector<int32_t>(put_))
    if (node(i).root >= 0) take(i);
  ++attempt_;
  for (int32_t i : std::vector<int32_t>(taken_)) put(i);
  free_.insert(free_.end(), joined_.begin(), joined_.end());
  return looks_;
}

}  // namespace hone
