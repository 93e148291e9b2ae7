#include "assign/window.h"

#include <algorithm>

namespace hone {
namespace {

constexpr uint32_t kOutside = UINT32_MAX;
// Additions that the elimination of one node may take.
constexpr size_t kMaxWork = size_t{1} << 18;

// least[x] = min(least[x], row[x] + more), for a whole row.
inline void lower(double* __restrict least, const double* row, double more, size_t length) {
#pragma clang loop vectorize_width(4) interleave_count(1)
  for (size_t x = 0; x < length; ++x) {
    const double cost = row[x] + more;
    least[x] = cost < least[x] ? cost : least[x];
  }
}

}  // namespace

Window::Window(const Core& core, const CoreTables& tables)
    : core_(core), tables_(tables), member_of_(core.nodes.size(), kOutside) {}

double* Window::room(size_t reals) {
  if (made_count_ == made_.size()) made_.emplace_back();
  std::vector<double>& made = made_[made_count_++];
  made.assign(reals, kNever);
  return made.data();
}

void Window::mark(uint32_t member) {
  if (members_[member].links.size() <= 2) ready_.push_back(member);
}

void Window::enter(std::span<const uint32_t> nodes, const std::vector<std::vector<double>>& costs,
                   const std::vector<uint32_t>& options) {
  count_ = nodes.size();
  if (members_.size() < count_) members_.resize(count_);
  links_.clear();
  ready_.clear();
  step_count_ = made_count_ = 0;
  for (uint32_t m = 0; m < count_; ++m) member_of_[nodes[m]] = m;
  for (uint32_t m = 0; m < count_; ++m) {
    Member& member = members_[m];
    member.node = nodes[m];
    member.is_done = false;
    member.links.clear();
    member.costs = costs[nodes[m]];
    member.costs.resize(row_length(member.costs.size()), kNever);
  }
  for (uint32_t m = 0; m < count_; ++m) {
    Member& member = members_[m];
    for (uint32_t e : core_.nodes[member.node].edges) {
      const uint32_t other = core_.edges[e].other(member.node);
      if (member_of_[other] == kOutside) {
        const double* row = tables_.rows(e, other) + options[other] * member.costs.size();
        for (size_t x = 0; x < member.costs.size(); ++x) member.costs[x] += row[x];
      } else if (member_of_[other] > m) {
        add_link(m, member_of_[other], tables_.rows(e, member.node), tables_.rows(e, other));
      }
    }
  }
  for (uint32_t m = 0; m < count_; ++m) member_of_[nodes[m]] = kOutside;
}

// Adds to the link that there is, if there is one.
void Window::add_link(uint32_t a, uint32_t b, const double* by_a, const double* by_b) {
  for (uint32_t l : members_[a].links) {
    Link& link = links_[l];
    if (link.other(a) != b) continue;
    const size_t of_a = options_of(a) * row_length(options_of(b));
    const size_t of_b = options_of(b) * row_length(options_of(a));
    double *sum_a = room(of_a), *sum_b = room(of_b);
    const double *old_a = link.rows(a), *old_b = link.rows(b);
    for (size_t i = 0; i < of_a; ++i) sum_a[i] = old_a[i] + by_a[i];
    for (size_t i = 0; i < of_b; ++i) sum_b[i] = old_b[i] + by_b[i];
    link = {a, b, sum_a, sum_b};
    return;
  }
  const auto index = static_cast<uint32_t>(links_.size());
  links_.push_back({a, b, by_a, by_b});
  members_[a].links.push_back(index);
  members_[b].links.push_back(index);
}

void Window::unlink(uint32_t member, uint32_t link) {
  std::erase(members_[member].links, link);
  mark(member);
}

// A member keeps its option: it is like a node outside.
void Window::keep(uint32_t index, uint32_t option) {
  Member& member = members_[index];
  member.is_done = true;
  for (uint32_t l : member.links) {
    const uint32_t other = links_[l].other(index);
    std::vector<double>& costs = members_[other].costs;
    const double* row = links_[l].rows(index) + option * costs.size();
    for (size_t x = 0; x < costs.size(); ++x) costs[x] += row[x];
    unlink(other, l);
  }
  member.links.clear();
}

void Window::eliminate(uint32_t index) {
  Member& member = members_[index];
  if (step_count_ == steps_.size()) steps_.emplace_back();
  Step& step = steps_[step_count_++];
  step.member = index;
  step.links = member.links;
  member.is_done = true;
}

void Window::eliminate_leaf(uint32_t index) {
  eliminate(index);
  const Member& member = members_[index];
  if (member.links.empty()) return;
  const uint32_t l = member.links[0], other = links_[l].other(index);
  std::vector<double>& costs = members_[other].costs;
  double* const least = room(costs.size());
  const double* row = links_[l].rows(index);
  for (size_t z = 0; z < options_of(index); ++z, row += costs.size())
    lower(least, row, member.costs[z], costs.size());
  for (size_t x = 0; x < costs.size(); ++x) costs[x] += least[x];
  unlink(other, l);
}

// False, if it takes too much work.
bool Window::eliminate_between(uint32_t index) {
  const Member& member = members_[index];
  const uint32_t to_a = member.links[0], to_b = member.links[1];
  const uint32_t a = links_[to_a].other(index), b = links_[to_b].other(index);
  const size_t own = options_of(index), own_length = member.costs.size();
  const size_t rows = options_of(a), columns = options_of(b);
  const size_t row = row_length(columns), column = row_length(rows);
  if (own * rows * row > kMaxWork) return false;
  eliminate(index);
  double *by_a = room(rows * row), *by_b = room(columns * column);
  const double *of_a = links_[to_a].rows(a), *of_b = links_[to_b].rows(index);
  for (size_t x = 0; x < rows; ++x)
    for (size_t z = 0; z < own; ++z) {
      const double cost = of_a[x * own_length + z] + member.costs[z];
      if (cost < kNever) lower(by_a + x * row, of_b + z * row, cost, row);
    }
  for (size_t x = 0; x < rows; ++x)
    for (size_t y = 0; y < columns; ++y) by_b[y * column + x] = by_a[x * row + y];
  unlink(a, to_a);
  unlink(b, to_b);
  add_link(a, b, by_a, by_b);
  return true;
}

size_t Window::improve(std::span<const uint32_t> nodes,
                       const std::vector<std::vector<double>>& costs,
                       std::vector<uint32_t>& options) {
  enter(nodes, costs, options);
  for (uint32_t m = 0; m < count_; ++m) mark(m);
  // Members with few links go; if none has, the widest keeps its option.
  size_t kept = 0, left = count_;
  while (left > 0) {
    uint32_t widest = kOutside;
    while (!ready_.empty()) {
      const uint32_t m = ready_.back();
      ready_.pop_back();
      if (members_[m].is_done || members_[m].links.size() > 2) continue;
      if (members_[m].links.size() <= 1) {
        eliminate_leaf(m);
        --left;
      } else if (eliminate_between(m)) {
        --left;
      } else {
        widest = m;
        break;
      }
    }
    if (left == 0) break;
    if (widest == kOutside)
      for (uint32_t m = 0; m < count_; ++m)
        if (!members_[m].is_done &&
            (widest == kOutside || members_[m].links.size() > members_[widest].links.size()))
          widest = m;
    keep(widest, options[members_[widest].node]);
    ++kept;
    --left;
  }
  for (size_t s = step_count_; s-- > 0;) {
    Member& member = members_[steps_[s].member];
    for (uint32_t l : steps_[s].links) {
      const uint32_t other = links_[l].other(steps_[s].member);
      const double* row =
          links_[l].rows(other) + options[members_[other].node] * member.costs.size();
      for (size_t x = 0; x < member.costs.size(); ++x) member.costs[x] += row[x];
    }
    const auto least = std::ranges::min_element(member.costs);
    options[member.node] = static_cast<uint32_t>(least - member.costs.begin());
  }
  return kept;
}

}  // namespace hone
