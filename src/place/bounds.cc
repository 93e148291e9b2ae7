#include "place/bounds.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hone {
namespace {

constexpr double kNone = -1;  // no such path
constexpr int kWorkRounds = 400;
constexpr size_t kMostPins = 64;  // pairs of pinned nodes that are looked at: its square

class Bounds {
 public:
  explicit Bounds(const PlaceJudge& judge)
      : judge_(judge), problem_(judge.problem()), least_(problem_.nodes.size(), kCannotRun) {
    for (uint32_t i = 0; i < problem_.nodes.size(); ++i)
      for (const PlaceDevice& device : judge.devices())
        least_[i] = std::min(least_[i], problem_.nodes[i].seconds[device.target]);
    find_fastest_link();
    find_paths();
  }

  PlaceBounds all() const {
    PlaceBounds found;
    for (size_t i = 0; i < least_.size(); ++i)
      found.path = std::max(found.path, head_[i] + least_[i] + tail_[i]);
    found.work = work();
    found.memory = memory();
    found.links = links();
    found.company = company();
    return found;
  }

 private:
  // No message is faster than this.
  void find_fastest_link() {
    const Topology topology(problem_.system);
    if (topology.links().empty()) return;
    latency_ = kMaxLatency;
    double rate = 0;
    for (const Link& link : topology.links()) {
      rate = std::max(rate, link.bytes_per_second);
      latency_ = std::min(latency_, link.latency);
    }
    per_byte_ = 1 / rate;
  }
  double moved(const PlaceTensor& tensor) const { return latency_ + tensor.bytes * per_byte_; }

  // head_: the longest path before each node; tail_: behind it.
  void find_paths() {
    head_.assign(least_.size(), 0);
    tail_.assign(least_.size(), 0);
    std::vector<std::vector<uint32_t>> made(least_.size());
    for (uint32_t t = 0; t < problem_.tensors.size(); ++t)
      made[problem_.tensors[t].maker].push_back(t);
    for (const uint32_t i : judge_.order())
      for (const uint32_t t : made[i])
        for (const uint32_t user : problem_.tensors[t].users)
          head_[user] = std::max(head_[user], head_[i] + least_[i]);
    for (size_t k = judge_.order().size(); k-- > 0;)
      for (const uint32_t t : made[judge_.order()[k]])
        for (const uint32_t user : problem_.tensors[t].users) {
          double& tail = tail_[judge_.order()[k]];
          tail = std::max(tail, least_[user] + tail_[user]);
        }
    made_ = std::move(made);
  }

  // For any weights of devices that add up to 1, a time T of all devices is at least the sum over
  // the nodes of the least weighted time. The weights are raised where a device would have more.
  double work() const {
    const std::vector<PlaceDevice>& devices = judge_.devices();
    // Devices of one target have the same weight.
    std::vector<double> count(problem_.system.targets.size());
    for (const PlaceDevice& device : devices) ++count[device.target];
    std::vector<double> weight(count.size());
    for (size_t k = 0; k < count.size(); ++k)
      weight[k] = count[k] > 0 ? 1 / static_cast<double>(devices.size()) : 0;
    double best = 0;
    for (int round = 0; round < kWorkRounds; ++round) {
      std::vector<double> taken(count.size());
      double sum = 0;
      for (const PlaceNode& node : problem_.nodes) {
        size_t at = count.size();
        double least = kCannotRun;
        for (size_t k = 0; k < count.size(); ++k) {
          if (count[k] == 0 || node.seconds[k] == kCannotRun) continue;
          if (const double price = weight[k] * node.seconds[k]; price < least)
            least = price, at = k;
        }
        if (at == count.size()) continue;
        taken[at] += node.seconds[at] / count[at];
        sum += least;
      }
      best = std::max(best, sum);
      double most = 0, total = 0;
      for (const double one : taken) most = std::max(most, one);
      if (most == 0) break;
      const double step = 1 / std::sqrt(1.0 + round);
      for (size_t k = 0; k < count.size(); ++k) weight[k] *= std::exp(step * (taken[k] / most - 1));
      for (size_t k = 0; k < count.size(); ++k) total += weight[k] * count[k];
      for (double& one : weight) one /= total;
    }
    return best;
  }

  // Where no device has the memory for all, and the graph hangs together, some tensor crosses.
  double memory() const {
    double held = 0, most = 0;
    for (const PlaceNode& node : problem_.nodes) held += static_cast<double>(node.held);
    for (const PlaceDevice& device : judge_.devices())
      most = std::max(most, static_cast<double>(device.memory));
    if (held <= most || !hangs_together()) return 0;
    double least = kCannotRun;
    for (const PlaceTensor& tensor : problem_.tensors)
      for (const uint32_t user : tensor.users)
        least = std::min(least, head_[tensor.maker] + least_[tensor.maker] + moved(tensor) +
                                    least_[user] + tail_[user]);
    return least == kCannotRun ? 0 : least;
  }

  bool hangs_together() const {
    std::vector<uint32_t> root(least_.size());
    for (uint32_t i = 0; i < root.size(); ++i) root[i] = i;
    const auto find = [&](uint32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    size_t parts = root.size();
    for (const PlaceTensor& tensor : problem_.tensors)
      for (const uint32_t user : tensor.users)
        if (const uint32_t a = find(tensor.maker), b = find(user); a != b) root[a] = b, --parts;
    return parts == 1;
  }

  // From a pinned node to one that is pinned elsewhere: somewhere between them a tensor crosses.
  double links() const {
    std::vector<uint32_t> pinned;
    for (uint32_t i = 0; i < problem_.nodes.size() && pinned.size() < kMostPins; ++i)
      if (problem_.nodes[i].pinned != kAnywhere) pinned.push_back(i);
    double best = 0;
    for (const uint32_t from : pinned) {
      // The least end of each node behind it: on any device, and on another one than it.
      std::vector<double> plain(least_.size(), kNone), crossed(least_.size(), kNone);
      plain[from] = head_[from] + least_[from];
      for (const uint32_t i : judge_.order()) {
        if (plain[i] == kNone) continue;
        for (const uint32_t t : made_[i])
          for (const uint32_t user : problem_.tensors[t].users) {
            const PlaceTensor& tensor = problem_.tensors[t];
            const double one = plain[i] + moved(tensor) + least_[user];
            const double later = crossed[i] == kNone ? kCannotRun : crossed[i] + least_[user];
            // The user is elsewhere: the tensor crosses, or its maker is elsewhere already.
            crossed[user] = std::max(crossed[user], std::min(one, later));
            plain[user] = std::max(plain[user], plain[i] + least_[user]);
          }
      }
      for (const uint32_t to : pinned)
        if (problem_.nodes[to].pinned != problem_.nodes[from].pinned && crossed[to] != kNone)
          best = std::max(best, crossed[to] + tail_[to]);
    }
    return best;
  }

  double company() const {
    std::map<int64_t, std::vector<double>> sums;
    double best = 0;
    for (size_t i = 0; i < problem_.nodes.size(); ++i) {
      const PlaceNode& node = problem_.nodes[i];
      best = std::max(best, least_[i]);
      if (node.together == kAnywhere) continue;
      std::vector<double>& sum = sums[node.together];
      sum.resize(judge_.devices().size());
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += node.seconds[judge_.devices()[d].target];
    }
    for (const auto& [together, sum] : sums) best = std::max(best, std::ranges::min(sum));
    return best;
  }

  const PlaceJudge& judge_;
  const PlaceProblem& problem_;
  std::vector<double> least_, head_, tail_;
  std::vector<std::vector<uint32_t>> made_;
  double per_byte_ = 0, latency_ = 0;
};

struct NamedBound {
  std::string_view name;
  double value;
};

std::vector<NamedBound> bounds_of(const PlaceBounds& bounds, PlaceGoal goal) {
  if (goal == PlaceGoal::load) return {{"work", bounds.work}, {"company", bounds.company}};
  return {{"path", bounds.path},
          {"work", bounds.work},
          {"memory", bounds.memory},
          {"links", bounds.links}};
}

}  // namespace

double PlaceBounds::of(PlaceGoal goal) const {
  double most = 0;
  for (const NamedBound& bound : bounds_of(*this, goal)) most = std::max(most, bound.value);
  return most;
}

std::string_view PlaceBounds::name_of(PlaceGoal goal) const {
  const std::vector<NamedBound> all = bounds_of(*this, goal);
  return std::ranges::max_element(all, {}, &NamedBound::value)->name;
}

PlaceBounds place_bounds(const PlaceJudge& judge) { return Bounds(judge).all(); }

}  // namespace hone
