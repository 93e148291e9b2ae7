#include <algorithm>
#include <cmath>
#include <numeric>

#include "place/placer.h"
#include "place/sort_by.h"

// Multilevel partitioning, as METIS does it (Karypis and Kumar 1998): pairs of units with heavy
// edges become one, again and again. The smallest graph is divided, and each step back to a larger
// one mends the borders. It knows no direction and no time; memory is a limit of each part. It is
// our own, since parts of unlike devices, pins and memory are not METIS's.

namespace hone {
namespace {

constexpr size_t kPerPart = 12;  // points of the smallest graph, for each device
constexpr double kLeastShrink = 0.95;
constexpr int kPasses = 6;  // of mending, at each level
constexpr double kImbalances[] = {0.05, 0.2, 0.6};
constexpr int kStarts = 2;  // divisions of the smallest graph: in order, and drawn

struct CoarseEdge {
  uint32_t to;
  double weight;
};

// Points with what they weigh, and edges in both directions.
struct CoarseGraph {
  std::vector<std::vector<CoarseEdge>> edges;
  std::vector<double> time, held, place;  // place: the mean position in the order
  std::vector<std::vector<uint32_t>> devices;
  std::vector<uint32_t> coarse_of;  // in the next smaller graph

  size_t size() const { return time.size(); }
};

class Multilevel {
 public:
  explicit Multilevel(PlaceRun& run) : run_(run) {
    const std::vector<PlaceDevice>& devices = run.judge().devices();
    speed_.assign(devices.size(), 0);
    make_first();
    while (graphs_.back().size() > kPerPart * devices.size() && !run.is_late()) {
      const size_t before = graphs_.back().size();
      CoarseGraph next = coarser(graphs_.back());
      if (static_cast<double>(next.size()) > kLeastShrink * static_cast<double>(before)) break;
      graphs_.push_back(std::move(next));
    }
  }

  void offer_all() {
    for (const double imbalance : kImbalances)
      for (int start = 0; start < kStarts; ++start) {
        if (run_.is_late()) return run_.note("there was no time");
        std::vector<uint32_t> part = first_parts(graphs_.back(), start == 0);
        for (size_t level = graphs_.size(); level-- > 0;) {
          mend(graphs_[level], part, imbalance);
          if (level > 0) part = finer(graphs_[level - 1], part);
        }
        run_.offer(part);
      }
  }

 private:
  size_t parts() const { return speed_.size(); }

  void make_first() {
    const std::vector<PlaceUnit>& units = run_.units().units();
    CoarseGraph& graph = graphs_.emplace_back();
    graph.edges.resize(units.size());
    std::vector<double> position(run_.problem().nodes.size());
    for (size_t k = 0; k < run_.judge().order().size(); ++k)
      position[run_.judge().order()[k]] = static_cast<double>(k);
    std::vector<double> own(parts()), fastest(parts());
    for (const PlaceUnit& unit : units) {
      double least = kCannotRun, place = 0;
      for (const uint32_t d : unit.devices) least = std::min(least, unit.seconds[d]);
      for (const uint32_t d : unit.devices) own[d] += unit.seconds[d], fastest[d] += least;
      for (const uint32_t node : unit.nodes)
        place += position[node] / static_cast<double>(unit.nodes.size());
      graph.time.push_back(least);
      graph.held.push_back(static_cast<double>(unit.held));
      graph.place.push_back(place);
      graph.devices.push_back(unit.devices);
    }
    double sum = 0;
    for (size_t d = 0; d < parts(); ++d)
      sum += speed_[d] = own[d] > 0 && fastest[d] > 0 ? fastest[d] / own[d] : 1;
    for (double& one : speed_) one /= sum;
    double port = 0;
    for (const PlaceDevice& device : run_.judge().devices()) port = std::max(port, device.port);
    for (const PlaceTensor& tensor : run_.problem().tensors) {
      const uint32_t from = run_.units().of(tensor.maker);
      for (const uint32_t user : tensor.users) {
        const uint32_t to = run_.units().of(user);
        if (from == to) continue;
        // A tensor with many users crosses once for each part, not for each user.
        const double weight =
            (tensor.bytes * port + 1e-12) / static_cast<double>(tensor.users.size());
        graph.edges[from].push_back({to, weight});
        graph.edges[to].push_back({from, weight});
      }
    }
    for (auto& edges : graph.edges) edges = merged_edges(edges);
  }

  static std::vector<CoarseEdge> merged_edges(std::vector<CoarseEdge> edges) {
    sort_by(edges, [](const CoarseEdge& edge) { return edge.to; });
    std::vector<CoarseEdge> merged;
    for (const CoarseEdge& edge : edges)
      if (!merged.empty() && merged.back().to == edge.to)
        merged.back().weight += edge.weight;
      else
        merged.push_back(edge);
    return merged;
  }

  // Each point with the neighbour that it has the heaviest edge to, if both are free.
  CoarseGraph coarser(CoarseGraph& graph) {
    const double all = std::accumulate(graph.time.begin(), graph.time.end(), 0.0);
    const double most = 1.5 * all / static_cast<double>(kPerPart * parts());
    std::vector<uint32_t> order(graph.size()), mate(graph.size(), UINT32_MAX);
    std::iota(order.begin(), order.end(), 0);
    run_.rng().shuffle(order);
    for (const uint32_t a : order) {
      if (mate[a] != UINT32_MAX) continue;
      mate[a] = a;
      double heaviest = 0;
      for (const CoarseEdge& edge : graph.edges[a])
        if (mate[edge.to] == UINT32_MAX && edge.weight > heaviest &&
            graph.time[a] + graph.time[edge.to] <= most &&
            graph.devices[a] == graph.devices[edge.to])
          heaviest = edge.weight, mate[a] = edge.to;
      mate[mate[a]] = a;
    }
    CoarseGraph next;
    graph.coarse_of.assign(graph.size(), UINT32_MAX);
    for (uint32_t a = 0; a < graph.size(); ++a) {
      if (graph.coarse_of[a] != UINT32_MAX) continue;
      const uint32_t b = mate[a];
      graph.coarse_of[a] = graph.coarse_of[b] = static_cast<uint32_t>(next.size());
      const bool is_pair = a != b;
      next.time.push_back(graph.time[a] + (is_pair ? graph.time[b] : 0));
      next.held.push_back(graph.held[a] + (is_pair ? graph.held[b] : 0));
      next.place.push_back(is_pair ? (graph.place[a] + graph.place[b]) / 2 : graph.place[a]);
      next.devices.push_back(graph.devices[a]);
    }
    next.edges.resize(next.size());
    for (uint32_t a = 0; a < graph.size(); ++a)
      for (const CoarseEdge& edge : graph.edges[a])
        if (graph.coarse_of[a] != graph.coarse_of[edge.to])
          next.edges[graph.coarse_of[a]].push_back({graph.coarse_of[edge.to], edge.weight});
    for (auto& edges : next.edges) edges = merged_edges(edges);
    return next;
  }

  std::vector<uint32_t> finer(const CoarseGraph& graph, const std::vector<uint32_t>& part) const {
    std::vector<uint32_t> all(graph.size());
    for (size_t a = 0; a < graph.size(); ++a) all[a] = part[graph.coarse_of[a]];
    return all;
  }

  // Parts of about the devices' shares: of the order, or drawn. Memory comes before balance.
  std::vector<uint32_t> first_parts(const CoarseGraph& graph, bool in_order) {
    const double all = std::accumulate(graph.time.begin(), graph.time.end(), 0.0);
    std::vector<uint32_t> order(graph.size()), part(graph.size());
    std::iota(order.begin(), order.end(), 0);
    if (in_order)
      sort_by(order, [&](uint32_t a) { return graph.place[a]; });
    else
      run_.rng().shuffle(order);
    std::vector<double> load(parts()), held(parts());
    for (const uint32_t a : order) {
      // The first part that is not full yet; of full ones the least full.
      double least = kCannotRun;
      for (const uint32_t d : graph.devices[a]) {
        const double share = load[d] / (speed_[d] * std::max(all, 1e-300));
        const double over = (held[d] + graph.held[a]) / memory(d);
        const double price = (over > 1 ? 1e6 * over : 0) + (share < 1 ? 0 : share);
        if (price < least) least = price, part[a] = d;
      }
      load[part[a]] += graph.time[a];
      held[part[a]] += graph.held[a];
    }
    return part;
  }

  double memory(size_t device) const {
    return std::max(1.0, static_cast<double>(run_.judge().devices()[device].memory));
  }

  // Moves points whose edges are lighter elsewhere, where it is not too full; and from parts that
  // are, to where it costs least.
  void mend(const CoarseGraph& graph, std::vector<uint32_t>& part, double imbalance) {
    const double all = std::accumulate(graph.time.begin(), graph.time.end(), 0.0);
    std::vector<double> load(parts()), held(parts()), near(parts());
    for (size_t a = 0; a < graph.size(); ++a) {
      load[part[a]] += graph.time[a];
      held[part[a]] += graph.held[a];
    }
    const auto is_full = [&](size_t d, double time, double bytes) {
      return load[d] + time > (1 + imbalance) * speed_[d] * all || held[d] + bytes > memory(d);
    };
    std::vector<uint32_t> order(graph.size());
    std::iota(order.begin(), order.end(), 0);
    for (int pass = 0; pass < kPasses && !run_.is_late(); ++pass) {
      run_.rng().shuffle(order);
      size_t moved = 0;
      for (const uint32_t a : order) {
        const uint32_t from = part[a];
        std::ranges::fill(near, 0);
        for (const CoarseEdge& edge : graph.edges[a]) near[part[edge.to]] += edge.weight;
        const bool must = is_full(from, 0, 0);
        uint32_t to = from;
        double gain = must ? -kCannotRun : 0;
        for (const uint32_t d : graph.devices[a])
          if (d != from && near[d] - near[from] > gain && !is_full(d, graph.time[a], graph.held[a]))
            gain = near[d] - near[from], to = d;
        if (to == from) continue;
        load[from] -= graph.time[a], held[from] -= graph.held[a];
        load[to] += graph.time[a], held[to] += graph.held[a];
        part[a] = to;
        ++moved;
      }
      if (moved == 0) break;
    }
  }

  PlaceRun& run_;
  std::vector<double> speed_;        // of each device: its share of the work
  std::vector<CoarseGraph> graphs_;  // ever smaller
};

}  // namespace

void place_multilevel(PlaceRun& run) { Multilevel(run).offer_all(); }

}  // namespace hone
