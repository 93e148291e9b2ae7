#include "place/policy_view.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "place/sort_by.h"

namespace hone {
namespace {

constexpr double kOrderedNodes = 30;  // mean ones, on the longest way: offsets count whole

float log_more(double x) { return static_cast<float>(std::log1p(std::max(x, 0.0))); }

double part_of(double a, double b) { return b > 0 ? a / b : 0; }

// Fills a view: first what follows from the whole graph, then a row for each node.
class ViewMaker {
 public:
  ViewMaker(PlaceRun& run, PolicyView& view)
      : run_(run), problem_(run.problem()), devices_(run.judge().devices()), view_(view) {
    find_least();
    rank_devices();
    find_levels();
    for (uint32_t r = 0; r < view.rows(); ++r) add_node(r);
    for (uint32_t k = 0; k < view.ranks(); ++k) add_device(k);
    add_links();
  }

 private:
  size_t count() const { return problem_.nodes.size(); }

  void find_least() {
    least_.assign(count(), kCannotRun);
    most_.assign(count(), 0);
    for (size_t i = 0; i < count(); ++i)
      for (const PlaceDevice& device : devices_) {
        const double seconds = problem_.nodes[i].seconds[device.target];
        if (seconds == kCannotRun) continue;
        least_[i] = std::min(least_[i], seconds);
        most_[i] = std::max(most_[i], seconds);
      }
    double sum = 0;
    for (const double one : least_) sum += one;
    work_ = sum;
    if (sum > 0) view_.unit = sum / static_cast<double>(count());
    double memory = 0;
    for (const PlaceDevice& device : devices_) {
      memory += static_cast<double>(device.memory) / static_cast<double>(devices_.size());
      most_memory_ = std::max(most_memory_, static_cast<double>(device.memory));
      port_ = std::max(port_, device.port);
    }
    memory_ = memory;
  }

  // The time of all nodes that a device can run, over that of the same nodes where they are
  // fastest.
  double slowness(const PlaceDevice& device) const {
    double here = 0, fastest = 0;
    for (size_t i = 0; i < count(); ++i) {
      const double seconds = problem_.nodes[i].seconds[device.target];
      if (seconds == kCannotRun) continue;
      here += seconds;
      fastest += least_[i];
    }
    return fastest > 0 ? here / fastest : 1;
  }

  void rank_devices() {
    for (const PlaceDevice& device : devices_) slowness_.push_back(slowness(device));
    view_.device_of.resize(devices_.size());
    for (uint32_t d = 0; d < devices_.size(); ++d) view_.device_of[d] = d;
    sort_by(view_.device_of,
            [&](uint32_t d) { return std::pair(slowness_[d], -devices_[d].memory); });
    view_.rank_of.resize(devices_.size());
    for (uint32_t k = 0; k < devices_.size(); ++k) view_.rank_of[view_.device_of[k]] = k;
  }

  void find_levels() {
    view_.node_of = run_.judge().order();
    view_.row_of.resize(count());
    for (uint32_t r = 0; r < view_.rows(); ++r) view_.row_of[view_.node_of[r]] = r;
    in_bytes_.assign(count(), 0);
    out_bytes_.assign(count(), 0);
    in_.assign(count(), 0);
    out_.assign(count(), 0);
    std::vector<std::vector<uint32_t>> made(count());
    for (uint32_t t = 0; t < problem_.tensors.size(); ++t) {
      const PlaceTensor& tensor = problem_.tensors[t];
      made[tensor.maker].push_back(t);
      out_bytes_[tensor.maker] += tensor.bytes;
      bytes_ += tensor.bytes;
      for (const uint32_t user : tensor.users) {
        in_bytes_[user] += tensor.bytes;
        ++in_[user];
        ++out_[tensor.maker];
        view_.sources.push_back(view_.row_of[tensor.maker]);
        view_.targets.push_back(view_.row_of[user]);
      }
    }
    head_.assign(count(), 0);
    for (const uint32_t i : view_.node_of)
      for (const uint32_t t : made[i])
        for (const uint32_t user : problem_.tensors[t].users)
          head_[user] = std::max(head_[user], head_[i] + least_[i]);
    std::vector<double> urgency = run_.judge().urgency();
    const double highest = std::max(std::ranges::max(urgency), 1e-300);
    view_.order_scale = std::min(1.0, kOrderedNodes * view_.unit / highest);
    for (const uint32_t i : view_.node_of) {
      view_.urgency.push_back(urgency[i] / highest);
      path_ = std::max(path_, head_[i] + least_[i]);
    }
  }

  void add_node(uint32_t row) {
    const uint32_t i = view_.node_of[row];
    const PlaceNode& node = problem_.nodes[i];
    const PlaceUnit& unit = run_.units().units()[run_.units().of(i)];
    const double head = part_of(head_[i], path_), urgency = view_.urgency[row];
    const double unit_bytes = port_ / view_.unit;
    const float features[] = {
        log_more(least_[i] / view_.unit),
        least_[i] > 0 ? static_cast<float>(std::log(most_[i] / least_[i])) : 0.0F,
        static_cast<float>(urgency),
        static_cast<float>(head),
        static_cast<float>(1 - urgency - head),
        static_cast<float>((row + 0.5) / static_cast<double>(count())),
        log_more(in_[i]),
        log_more(out_[i]),
        log_more(in_bytes_[i] * unit_bytes),
        log_more(out_bytes_[i] * unit_bytes),
        log_more(part_of(static_cast<double>(unit.held), memory_)),
        log_more(static_cast<double>(unit.nodes.size() - 1)),
        node.backward ? 1.0F : 0.0F,
        node.pinned == kAnywhere ? 0.0F : 1.0F,
        static_cast<float>(part_of(static_cast<double>(unit.devices.size()),
                                   static_cast<double>(devices_.size()))),
        run_.goal() == PlaceGoal::load ? 1.0F : 0.0F,
    };
    static_assert(std::size(features) == PolicyView::kNode);
    view_.node.insert(view_.node.end(), std::begin(features), std::end(features));
    for (const uint32_t d : view_.device_of)
      view_.can.push_back(std::ranges::binary_search(unit.devices, d) ? 1 : 0);
  }

  void add_device(uint32_t rank) {
    const PlaceDevice& device = devices_[view_.device_of[rank]];
    const auto all = static_cast<double>(devices_.size());
    double held = 0;
    for (const PlaceUnit& unit : run_.units().units()) held += static_cast<double>(unit.held);
    const double place = (rank + 0.5) / all, angle = std::numbers::pi * place;
    const float features[] = {
        static_cast<float>(std::log(slowness_[view_.device_of[rank]])),
        static_cast<float>(part_of(static_cast<double>(device.memory), most_memory_)),
        log_more(part_of(held, memory_ * all)),
        log_more(part_of(bytes_ * device.port, work_)),
        static_cast<float>(place),
        static_cast<float>(std::cos(angle)),
        static_cast<float>(std::cos(2 * angle)),
        static_cast<float>(std::cos(3 * angle)),
        static_cast<float>(1 / all),
        static_cast<float>(std::log(all)),
    };
    static_assert(std::size(features) == PolicyView::kDevice);
    view_.device.insert(view_.device.end(), std::begin(features), std::end(features));
  }

  void add_links() {
    const size_t all = view_.ranks();
    view_.links.assign(all * all, 0);
    for (size_t a = 0; a < all; ++a) {
      std::vector<double> near(all);
      double sum = 0;
      for (size_t b = 0; b < all; ++b) {
        if (a == b) continue;
        const PlaceRun::Way& way = run_.way(view_.device_of[a], view_.device_of[b]);
        // A message of a node's mean bytes.
        const double bytes = part_of(bytes_, static_cast<double>(problem_.tensors.size()));
        near[b] = 1 / (way.latency + (bytes + 1) * way.per_byte + 1e-300);
        sum += near[b];
      }
      for (size_t b = 0; b < all; ++b)
        view_.links[a * all + b] = static_cast<float>(part_of(near[b], sum));
    }
  }

  PlaceRun& run_;
  const PlaceProblem& problem_;
  const std::vector<PlaceDevice>& devices_;
  PolicyView& view_;
  std::vector<double> least_, most_, head_, in_bytes_, out_bytes_, slowness_;
  std::vector<double> in_, out_;  // uses
  double work_ = 0, path_ = 0, bytes_ = 0, memory_ = 0, most_memory_ = 0, port_ = 0;
};

}  // namespace

PolicyView::PolicyView(PlaceRun& run) { ViewMaker(run, *this); }

}  // namespace hone
