#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "alloc/folding.h"

// The risk of a joint is how many boxes, or pairs of them, would fit as well by chance.

namespace hone {
namespace {

// Joints are tried from the surest on.
constexpr double kLeastRisk = 1e-6, kMostRisk = 200, kRiskStep = 10;
// Of one box that begins where only one ends, and is as large: others may have been taken.
constexpr double kNotAlone = 0.5;
// Where more joints are possible, none is sure by what comes next, and to look takes long.
constexpr size_t kMostForeseen = 64;
// So much surer a further step makes a path at most.
constexpr double kSurerByStep = 1e-4;
// What made joints sure by what comes next may have been a coincidence.
constexpr double kRiskOfPath = 1e-3;

size_t logarithm(int64_t n) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(n))) - 1;
}

}  // namespace

double Folding::as_large(int64_t size) const { return as_large_[logarithm(size)]; }
double Folding::as_long(int32_t length) const { return as_long_[logarithm(length)]; }

// A size is as likely as all within a factor of two, and so is a length.
void Folding::measure() {
  as_large_.fill(0.5);
  as_long_.fill(0.5);
  for (int32_t i : roots_) {
    ++as_large_[logarithm(node(i).box.size)];
    ++as_long_[logarithm(node(i).box.length())];
  }
  for (int k = 0; k < 64; ++k) {
    const double lengths = std::ldexp(1.0, k);
    const double sizes = std::max(1.0, lengths / static_cast<double>(unit_));
    as_large_[static_cast<size_t>(k)] /= number(roots_) * sizes;
    as_long_[static_cast<size_t>(k)] /= number(roots_) * lengths;
  }
}

// From the surest joints on, the first ones up to a risk.
void Folding::fold(std::span<const int32_t> sections, double risk) {
  for (most_risk_ = std::max(risk, kLeastRisk); most_risk_ < kMostRisk; most_risk_ *= kRiskStep) {
    if (rng_ == nullptr) measure();  // an attempt changes little
    for (int32_t s : sections)
      if (waits_[static_cast<size_t>(s)] <= most_risk_) touch(s);
    fold_touched();
  }
}

// All joints where something was touched, also those that were not allowed.
void Folding::fold_anew(double risk) {
  for (int32_t s : touched_) waits_[static_cast<size_t>(s)] = 0;
  fold(std::vector<int32_t>(touched_), risk);
}

void Folding::fold_touched() {
  for (size_t i = 0; i < touched_.size(); ++i) {
    const int32_t section = touched_[i];
    is_touched_[static_cast<size_t>(section)] = false;
    while (looks_ < most_looks_ && fold_at(section)) {
    }
    waits_[static_cast<size_t>(section)] = least_;
  }
  touched_.clear();
}

bool Folding::fold_at(int32_t section) {
  looks_ += 1 + std::ssize(begins(section)) + std::ssize(ends(section));
  least_ = std::numeric_limits<double>::infinity();
  find_stacks(section);
  if (join_sure()) return true;
  find_chains(section);
  return join_sure() || (adds_ && (join_sums(section) || join_lives(section)));
}

// Ties are broken by the index, or by chance.
void Folding::sort(std::vector<Edge>& edges, auto key) const {
  std::ranges::sort(edges, {}, [&](const Edge& edge) {
    return std::pair(edge.*key, static_cast<uint32_t>(edge.box) ^ salt_);
  });
}

void Folding::find_stacks(int32_t section) {
  found_.clear();
  if (begins(section).size() < 2) return;
  behind_ = begins(section);
  sort(behind_, &Edge::other);
  for (auto one = behind_.begin(); one != behind_.end(); ++one)
    for (auto other = one + 1; other != behind_.end(); ++other) {
      if (one->other != other->other) break;
      found_.push_back({one->box, other->box, false});
      if (found_.size() > kMostForeseen) break;
    }
}

void Folding::find_chains(int32_t section) {
  found_.clear();
  if (begins(section).empty() || ends(section).empty()) return;
  before_ = ends(section);
  behind_ = begins(section);
  for (std::vector<Edge>* edges : {&before_, &behind_}) sort(*edges, &Edge::size);
  auto from = behind_.begin();
  for (const Edge& one : before_) {
    while (from != behind_.end() && from->size < one.size) ++from;
    for (auto other = from; other != behind_.end() && other->size == one.size; ++other) {
      found_.push_back({one.box, other->box, true});
      if (found_.size() > kMostForeseen) break;
    }
    if (found_.size() > kMostForeseen && from != behind_.end() && from->size == one.size) ++from;
  }
}

bool Folding::join_sure() {
  bool any = false;
  for (const Joint& joint : found_) {
    if (node(joint.one).root < 0 || node(joint.other).root < 0) continue;
    const double risk = risk_of(joint);
    if (allows(risk))
      join(joint, risk);
    else if (found_.size() > kMostForeseen || !foresees(joint))
      continue;
    any = true;
  }
  return any;
}

double Folding::risk_of(const Joint& joint) {
  const Rect& box = node(joint.one).box;
  if (joint.behind)
    return (number(ends(box.end)) * number(begins(box.end)) - kNotAlone) * as_large(box.size);
  return (number(begins(box.first)) - 1) * (number(ends(box.end)) - 1) * as_long(box.length());
}

bool Folding::allows(double risk) {
  if (rng_) risk *= std::exp(noise_ * (rng_->uniform() - 0.5));
  if (risk <= most_risk_) return true;
  least_ = std::min(least_, risk);
  return false;
}

// Joins the two and what follows, if that shows that they belong together. Each of the joints that
// are possible here could be followed by chance.
bool Folding::foresees(const Joint& joint) {
  Rect box = node(joint.one).box;
  if (joint.behind)
    box.end = node(joint.other).box.end;
  else
    box.size += node(joint.other).box.size;
  path_.clear();
  used_ = {joint.one, joint.other};
  if (!follows(box, joint.behind, std::max(risk_of(joint), number(found_)), depth_)) return false;
  const double risk = std::max(risk_of_path_, kRiskOfPath);
  int32_t at = join(joint, risk);
  for (const Step& step : path_)
    at = step.before ? join({step.box, at, step.behind}, risk)
                     : join({at, step.box, step.behind}, risk);
  return true;
}

// Can a box that is not there yet be joined on, so that less risk than the most is left? In the
// direction in which it came about that tells nothing, but what comes then may.
bool Folding::follows(const Rect& box, bool behind, double risk, int depth) {
  struct Side {
    const std::vector<Edge>& edges;
    bool behind, before;
    double likely;  // that one of them fits
  };
  const Side sides[] = {{begins(box.first), false, false, as_long(box.length())},
                        {begins(box.end), true, false, as_large(box.size)},
                        {ends(box.first), true, true, as_large(box.size)}};
  for (const Side& side : sides) {
    const auto fits = [&](const Edge& edge) {
      return (side.behind ? edge.size == box.size : edge.other == box.end) &&
             std::ranges::find(used_, edge.box) == used_.end();
    };
    const bool is_same = side.behind == behind;
    if (is_same && depth == 1) continue;
    looks_ += std::ssize(side.edges);
    const auto ways = static_cast<double>(is_same ? std::ranges::count_if(side.edges, fits) : 0);
    const double left = risk * (is_same ? std::max(ways, 1.0) : number(side.edges) * side.likely);
    const double at_best = depth > 1 ? left * kSurerByStep : left;
    if (at_best > most_risk_) {
      least_ = std::min(least_, at_best);
      continue;
    }
    for (const Edge& edge : side.edges) {
      if (!fits(edge)) continue;
      Rect joined = box;
      if (!side.behind)
        joined.size += edge.size;
      else if (side.before)
        joined.first = edge.other;
      else
        joined.end = edge.other;
      path_.push_back({edge.box, side.behind, side.before});
      used_.push_back(edge.box);
      risk_of_path_ = left;
      if (left <= most_risk_ || follows(joined, side.behind, left, depth - 1)) return true;
      path_.pop_back();
      used_.pop_back();
    }
  }
  return false;
}

}  // namespace hone
