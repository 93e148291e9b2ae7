#include "target/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "target/places.h"

namespace hone {

// ---- Building ----------------------------------------------------------------------------------

class TopologyBuilder {
 public:
  TopologyBuilder(Topology& topology, const System& system)
      : topology_(topology), system_(system), places_(system) {}

  void build() {
    topology_.devices_ = static_cast<uint32_t>(system_.device_count());
    for (const auto& [name, place] : places_.all())
      for (int64_t group = 0; place.has_switch() && group < place.groups; ++group)
        topology_.switches_.push_back(fmt::format("{} {}", name, group));
    topology_.arcs_.resize(topology_.devices_ + 2 * topology_.switches_.size());
    for (row_ = 0; row_ < system_.links.size(); ++row_) {
      topology_.rows_.push_back(system_.links[row_].name);
      add_links();
    }
  }

 private:
  const Links& links() const { return system_.links[row_]; }

  void add_links() {
    if (links().shape == Shape::cable) {
      const uint32_t from = static_cast<uint32_t>(links().from);
      const uint32_t to = static_cast<uint32_t>(links().to);
      return join(from, to, to, from);
    }
    const Place& place = *places_.find(links().over);
    for (int64_t group = 0; group < place.groups; ++group) {
      if (links().shape == Shape::star)
        add_star(place, group);
      else if (links().shape == Shape::bus)
        add_bus(place, group);
      else
        add_neighbours(place, group);
    }
  }

  void add_neighbours(const Place& place, int64_t group) {
    const int64_t count = place.members();
    int64_t left = joints(links(), count);
    for (int64_t i = 0; i < count && left > 0; ++i) {
      const int64_t last = links().shape == Shape::pairs ? count - 1 : i + 1;
      for (int64_t j = i + 1; j <= last && left > 0; ++j, --left)
        join(source(place, group, i), sink(place, group, j % count),
             source(place, group, j % count), sink(place, group, i));
    }
  }

  void add_star(const Place& place, int64_t group) {
    const uint32_t in = switch_of(place, group), out = in + 1;
    for (int64_t i = 0; i < place.members(); ++i)
      join(source(place, group, i), in, out, sink(place, group, i));
    if (!place.has_bus) add_free(in, out);
  }

  void add_bus(const Place& place, int64_t group) {
    const uint32_t in = switch_of(place, group), out = in + 1;
    add_arc(in, out, add_link(in, out, false), true);
    for (int64_t i = 0; i < place.members() && !place.has_star; ++i) {
      add_free(source(place, group, i), in);
      add_free(out, sink(place, group, i));
    }
  }

  // ---- Points

  uint32_t switch_of(const Place& place, int64_t group) const {  // the side that messages enter
    return topology_.devices_ + 2 * static_cast<uint32_t>(place.first_switch + group);
  }
  // Where messages to a member arrive, and where those that it sends begin.
  uint32_t sink(const Place& place, int64_t group, int64_t member) const {
    if (place.inner != nullptr) return switch_of(*place.inner, group * place.members() + member);
    return static_cast<uint32_t>(place.device(group, member));
  }
  uint32_t source(const Place& place, int64_t group, int64_t member) const {
    return sink(place, group, member) + (place.inner == nullptr ? 0 : 1);
  }

  // ---- Links and arcs

  // Links from `from` to `to`, and from `back_from` to `back_to`.
  void join(uint32_t from, uint32_t to, uint32_t back_from, uint32_t back_to) {
    const Duplex duplex = links().duplex;
    const uint32_t forward = add_link(from, to, duplex == Duplex::half);
    add_arc(from, to, forward, true);
    if (duplex == Duplex::one_way) return;
    add_arc(back_from, back_to,
            duplex == Duplex::half ? forward : add_link(back_from, back_to, false), false);
  }

  uint32_t add_link(uint32_t from, uint32_t to, bool both_ways) {
    topology_.links_.push_back({links().bytes_per_second, links().latency, links().shared});
    topology_.ends_.push_back({static_cast<uint32_t>(row_), from, to, both_ways});
    return static_cast<uint32_t>(topology_.links_.size() - 1);
  }
  void add_arc(uint32_t from, uint32_t to, uint32_t link, bool is_forward) {
    const uint32_t rank = 2 * static_cast<uint32_t>(row_) + (is_forward ? 2 : 1);
    topology_.arcs_[from].push_back({to, link, rank});
  }
  void add_free(uint32_t from, uint32_t to) {
    topology_.arcs_[from].push_back({to, Topology::kFree, 0});
  }

  Topology& topology_;
  const System& system_;
  const Places places_;
  size_t row_ = 0;
};

Topology::Topology(const System& system) {
  TopologyBuilder(*this, system).build();
  find_branches();
}

uint32_t Topology::node_of(uint32_t point) const {
  return point < devices_ ? point : devices_ + (point - devices_) / 2;
}

// Takes away nodes with one neighbour, again and again. Nothing but the way to what hangs there
// leads into such a branch, so routes leave out all others.
void Topology::find_branches() {
  const size_t nodes = devices_ + switches_.size();
  std::vector<std::set<uint32_t>> neighbours(nodes);
  for (uint32_t from = 0; from < arcs_.size(); ++from)
    for (const Arc& arc : arcs_[from])
      if (const uint32_t a = node_of(from), b = node_of(arc.to); a != b) {
        neighbours[a].insert(b);
        neighbours[b].insert(a);
      }
  hangs_from_.assign(nodes, kFree);
  std::vector<uint32_t> open(nodes);
  std::iota(open.begin(), open.end(), 0);
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (hangs_from_[node] != kFree || neighbours[node].size() != 1) continue;
    const uint32_t other = *neighbours[node].begin();
    hangs_from_[node] = other;
    neighbours[node].clear();
    neighbours[other].erase(node);
    open.push_back(other);
  }
}

// ---- Names -------------------------------------------------------------------------------------

bool Topology::same_switch(uint32_t a, uint32_t b) const {
  return a >= devices_ && b >= devices_ && (a - devices_) / 2 == (b - devices_) / 2;
}

std::string Topology::point_name(uint32_t point) const {
  return point < devices_ ? std::to_string(point) : switches_[(point - devices_) / 2];
}

std::string Topology::link_name(uint32_t link) const {
  const Ends& ends = ends_[link];
  const std::string& row = rows_[ends.row];
  if (same_switch(ends.from, ends.to)) return fmt::format("{} of {}", row, point_name(ends.from));
  return fmt::format("{} {} {} {}", row, point_name(ends.from), ends.both_ways ? "-" : ">",
                     point_name(ends.to));
}

// ---- Routes ------------------------------------------------------------------------------------

namespace {

// Latencies are added in picoseconds: the sum does not depend on the order.
int64_t picoseconds(double seconds) { return std::llround(seconds * 1e12); }

struct Reached {
  int64_t latency = INT64_MAX;  // picoseconds
  int64_t links = 0;
  uint32_t before = 0;    // the point
  uint32_t arc_link = 0;  // crossed from there
  uint32_t arc_rank = 0;
};

}  // namespace

std::vector<uint32_t> Topology::route(int64_t from, int64_t to) const {
  if (from == to) return {};
  const uint32_t source = static_cast<uint32_t>(from), target = static_cast<uint32_t>(to);
  std::unordered_map<uint32_t, Reached> reached;        // most routes look at few points
  using Open = std::tuple<int64_t, int64_t, uint32_t>;  // latency, links, point
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  std::unordered_set<uint32_t> branch;  // the nodes from which the target hangs, and itself
  for (uint32_t node = target; node != kFree; node = hangs_from_[node]) branch.insert(node);
  reached[source].latency = 0;
  open.emplace(0, 0, source);
  while (!open.empty()) {
    const auto [latency, links, point] = open.top();
    open.pop();
    const Reached& end = reached[target];
    if (std::tie(latency, links) > std::tie(end.latency, end.links)) break;
    if (std::tie(latency, links) > std::tie(reached[point].latency, reached[point].links)) continue;
    for (const Arc& arc : arcs_[point]) {
      const uint32_t node = node_of(arc.to);
      if (hangs_from_[node] == node_of(point) && !branch.contains(node)) continue;
      const bool is_free = arc.link == kFree;
      const int64_t sum = latency + (is_free ? 0 : picoseconds(links_[arc.link].latency));
      const int64_t count = links + (is_free ? 0 : 1);
      Reached& next = reached[arc.to];
      if (arc.to == source || std::tie(sum, count) > std::tie(next.latency, next.links)) continue;
      const bool is_equal = std::tie(sum, count) == std::tie(next.latency, next.links);
      if (is_equal && arc.rank <= next.arc_rank) continue;
      next = {sum, count, point, arc.link, arc.rank};
      if (!is_equal) open.emplace(sum, count, arc.to);
    }
  }
  std::vector<uint32_t> route;
  if (reached[target].latency == INT64_MAX) return route;
  for (uint32_t at = target; at != source; at = reached[at].before)
    if (reached[at].arc_link != kFree) route.push_back(reached[at].arc_link);
  std::reverse(route.begin(), route.end());
  return route;
}

double Topology::latency(std::span<const uint32_t> route) const {
  double sum = 0;
  for (uint32_t link : route) sum += links_[link].latency;
  return sum;
}

int64_t Topology::unreached() const {
  const size_t points = arcs_.size();
  std::vector<std::vector<uint32_t>> forward(points), backward(points);
  for (uint32_t from = 0; from < points; ++from)
    for (const Arc& arc : arcs_[from]) {
      forward[from].push_back(arc.to);
      backward[arc.to].push_back(from);
    }
  for (const auto* next : {&forward, &backward}) {
    std::vector<bool> seen(points);
    std::vector<uint32_t> open = {0};
    seen[0] = true;
    while (!open.empty()) {
      const uint32_t point = open.back();
      open.pop_back();
      for (uint32_t to : (*next)[point])
        if (!seen[to]) {
          seen[to] = true;
          open.push_back(to);
        }
    }
    for (uint32_t device = 0; device < devices_; ++device)
      if (!seen[device]) return device;
  }
  return -1;
}

}  // namespace hone
