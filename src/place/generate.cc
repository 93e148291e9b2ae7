#include "place/generate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "place/plain_system.h"

namespace hone {

std::string_view name(PlaceFamily family) {
  constexpr std::string_view kNames[] = {"layers",   "branches", "recurrent",
                                         "training", "tree",     "butterfly"};
  return kNames[static_cast<size_t>(family)];
}

namespace {

constexpr double kBandwidth = 1e9;  // bytes per second
constexpr double kMeanSeconds = 1e-3;
constexpr double kMeanHeld = 1e6;

// Adds nodes one by one; each makes one tensor for those that take it.
class Grower {
 public:
  Grower(PlaceProblem& problem, const DrawnPlace& drawn, Rng& rng)
      : problem_(problem), drawn_(drawn), rng_(rng) {}

  int64_t room() const { return drawn_.nodes - std::ssize(problem_.nodes); }

  uint32_t add(std::span<const uint32_t> inputs, bool backward = false) {
    const auto made = static_cast<uint32_t>(problem_.nodes.size());
    PlaceNode node;
    node.id = made;
    // A few nodes are of no cost, as views and reshapes are.
    const double seconds = rng_.chance(0.1) ? 0 : kMeanSeconds * spread(0.8);
    node.seconds = {seconds};
    if (drawn_.two_kinds) node.seconds.push_back(seconds * rng_.uniform(1.5, 4));
    node.held = static_cast<int64_t>(kMeanHeld * spread(1));
    node.backward = backward;
    problem_.nodes.push_back(node);
    PlaceTensor tensor;
    tensor.maker = made;
    tensor.bytes = std::floor(drawn_.traffic * kBandwidth * kMeanSeconds * spread(0.8));
    if (drawn_.is_tight) tensor.held = static_cast<int64_t>(0.1 * kMeanHeld * spread(0.5));
    tensors_.push_back(tensor);
    for (const uint32_t input : inputs)
      if (tensors_[input].users.empty() || tensors_[input].users.back() != made)
        tensors_[input].users.push_back(made);
    return made;
  }
  uint32_t add(std::initializer_list<uint32_t> inputs) {
    return add(std::span(inputs.begin(), inputs.size()));
  }

  void finish() {
    for (PlaceTensor& tensor : tensors_)
      if (!tensor.users.empty()) problem_.tensors.push_back(std::move(tensor));
  }

 private:
  double spread(double deviation) {
    return std::exp(deviation * rng_.normal() - deviation * deviation / 2);
  }

  PlaceProblem& problem_;
  const DrawnPlace& drawn_;
  Rng& rng_;
  std::vector<PlaceTensor> tensors_;
};

void grow_layers(Grower& grow, Rng& rng) {
  const auto width = rng.between(2, 12);
  std::vector<uint32_t> before, older;
  while (grow.room() > 0) {
    std::vector<uint32_t> layer;
    for (int64_t i = 0; i < width && grow.room() > 0; ++i) {
      std::vector<uint32_t> inputs;
      const auto count = before.empty() ? 0 : rng.between(1, 3);
      for (int64_t k = 0; k < count; ++k)
        inputs.push_back(rng.pick(!older.empty() && rng.chance(0.2) ? older : before));
      layer.push_back(grow.add(inputs));
    }
    older = std::move(before);
    before = std::move(layer);
  }
}

void grow_branches(Grower& grow, Rng& rng) {
  uint32_t last = grow.add({});
  while (grow.room() > 1) {
    std::vector<uint32_t> ends;
    const auto branches = rng.between(2, 6);
    for (int64_t b = 0; b < branches && grow.room() > 1; ++b) {
      uint32_t at = last;
      for (auto k = rng.between(1, 4); k > 0 && grow.room() > 1; --k) at = grow.add({at});
      ends.push_back(at);
    }
    last = grow.add(ends);
  }
}

void grow_recurrent(Grower& grow, Rng& rng) {
  const auto layers = rng.between(2, 6);
  std::vector<uint32_t> before;
  while (grow.room() > 0) {
    std::vector<uint32_t> now;
    for (int64_t l = 0; l < layers && grow.room() > 0; ++l) {
      std::vector<uint32_t> inputs;
      if (!before.empty()) inputs.push_back(before[static_cast<size_t>(l)]);
      if (l > 0) inputs.push_back(now.back());
      now.push_back(grow.add(inputs));
    }
    before = std::move(now);
  }
}

void grow_training(PlaceProblem& problem, Grower& grow, Rng& rng) {
  const int64_t half = grow.room() / 2;
  std::vector<uint32_t> forward;
  for (int64_t i = 0; i < half; ++i) {
    std::vector<uint32_t> inputs;
    if (i > 0) inputs.push_back(forward.back());
    if (i > 3 && rng.chance(0.3)) inputs.push_back(forward[forward.size() - 3]);
    std::ranges::sort(inputs);
    forward.push_back(grow.add(inputs));
  }
  uint32_t last = forward.back();
  for (int64_t i = half; i-- > 0;) {
    const uint32_t of = forward[static_cast<size_t>(i)];
    std::vector<uint32_t> inputs = {of};
    if (last != of) inputs.push_back(last);
    last = grow.add(inputs, true);
    problem.nodes[of].together = problem.nodes[last].together = i;
  }
}

void grow_tree(Grower& grow) {
  std::vector<uint32_t> open;
  const int64_t leaves = (grow.room() + 1) / 2;
  for (int64_t i = 0; i < leaves; ++i) open.push_back(grow.add({}));
  for (size_t at = 0; at + 1 < open.size(); at += 2)
    open.push_back(grow.add({open[at], open[at + 1]}));
}

void grow_butterfly(Grower& grow) {
  std::vector<uint32_t> before;
  size_t width = 1;
  while (static_cast<int64_t>(2 * width) * 4 <= grow.room()) width *= 2;
  for (size_t i = 0; i < width; ++i) before.push_back(grow.add({}));
  for (size_t stride = 1; grow.room() >= static_cast<int64_t>(width);
       stride = 2 * stride < width ? 2 * stride : 1) {
    std::vector<uint32_t> now;
    for (size_t i = 0; i < width; ++i) {
      const size_t other = width > 1 ? i ^ stride : i;
      now.push_back(grow.add({before[std::min(i, other)], before[std::max(i, other)]}));
    }
    before = std::move(now);
  }
}

// Light nodes are mostly overhead and traffic, so a fusion saves more of them.
void add_drawn_fusions(PlaceProblem& problem, Rng& rng) {
  std::vector<uint32_t> tensors(problem.nodes.size());
  for (const PlaceTensor& tensor : problem.tensors) ++tensors[tensor.maker];
  for (const PlaceTensor& tensor : problem.tensors) {
    if (tensor.users.size() != 1 || tensors[tensor.maker] != 1) continue;
    PlaceFusion fusion = {tensor.maker, tensor.users[0], {}};
    const double share = rng.uniform(0.1, 0.6);
    for (size_t k = 0; k < problem.system.targets.size(); ++k)
      fusion.saves.push_back(share * std::min(problem.nodes[fusion.maker].seconds[k],
                                              problem.nodes[fusion.user].seconds[k]));
    problem.fusions.push_back(std::move(fusion));
  }
}

// Bytes of a device: if it is tight, one and a half times its share, and room for any company.
int64_t drawn_memory(const PlaceProblem& problem, const DrawnPlace& drawn) {
  constexpr int64_t kRoomy = int64_t{1} << 40;
  if (!drawn.is_tight) return kRoomy;
  int64_t held = 0, most = 0;
  std::map<int64_t, int64_t> company;
  for (const PlaceNode& node : problem.nodes) {
    held = sum_of_bytes(held, node.held);
    int64_t alone = 0;
    int64_t& own = node.together == kAnywhere ? alone : company[node.together];
    own = sum_of_bytes(own, node.held);
    most = std::max(most, own);
  }
  if (held == 0) return kRoomy;
  return std::clamp(std::max(most + held / drawn.devices, 3 * held / (2 * drawn.devices)),
                    int64_t{1}, kMaxPlaceHeld);
}

System drawn_system(const DrawnPlace& drawn, int64_t memory, Rng& rng,
                    double bandwidth = kBandwidth) {
  System system;
  system.name = "drawn";
  system.targets = {plain_target("fast", memory)};
  system.devices = {{drawn.devices, 0, memory}};
  if (drawn.two_kinds) {
    const int64_t slow = std::max<int64_t>(1, drawn.devices / 3);
    system.targets.push_back(plain_target("slow", memory));
    system.devices = {{drawn.devices - slow, 0, memory}, {slow, 1, memory}};
  }
  Links links = star_links("link", bandwidth);
  links.shape = drawn.shape;
  if (drawn.shape == Shape::bus) links.duplex = Duplex::half;
  links.latency = rng.chance(0.5) ? 0 : rng.uniform(1e-6, 1e-4);
  system.links = {links};
  return system;
}

}  // namespace

DrawnPlace draw_place(int64_t nodes, bool is_held_out, Rng& rng, int64_t devices) {
  constexpr Shape kSeen[] = {Shape::star, Shape::ring, Shape::pairs},
                  kUnseen[] = {Shape::line, Shape::bus};
  DrawnPlace drawn;
  drawn.family = kPlaceFamilies[is_held_out ? 4 + rng.below(2) : rng.below(4)];
  drawn.shape = is_held_out ? rng.pick(kUnseen) : rng.pick(kSeen);
  drawn.devices = is_held_out ? rng.between(7, 8) : rng.between(2, devices);
  drawn.nodes = rng.between(nodes / 3, nodes);
  drawn.two_kinds = rng.chance(0.4);
  drawn.is_tight = rng.chance(0.3);
  drawn.traffic = std::exp(rng.uniform(std::log(0.03), std::log(3.0)));
  drawn.goal = rng.chance(0.3) ? PlaceGoal::load : PlaceGoal::step;
  return drawn;
}

PlaceProblem make_place(const DrawnPlace& drawn, Rng& rng) {
  PlaceProblem problem;
  problem.name = fmt::format("{} on {} {}", name(drawn.family), drawn.devices, name(drawn.shape));
  Grower grow(problem, drawn, rng);
  switch (drawn.family) {
    case PlaceFamily::layers: grow_layers(grow, rng); break;
    case PlaceFamily::branches: grow_branches(grow, rng); break;
    case PlaceFamily::recurrent: grow_recurrent(grow, rng); break;
    case PlaceFamily::training: grow_training(problem, grow, rng); break;
    case PlaceFamily::tree: grow_tree(grow); break;
    case PlaceFamily::butterfly: grow_butterfly(grow); break;
  }
  grow.finish();
  problem.system = drawn_system(drawn, drawn_memory(problem, drawn), rng);
  if (drawn.has_fusions) add_drawn_fusions(problem, rng);
  HONE_CHECK(check(problem.system).ok() && check(problem).ok(), "a drawn problem is wrong");
  return problem;
}

// ---- Known graphs ------------------------------------------------------------------------------

namespace {

constexpr double kSlowest = 4;  // times the seconds of the faster target

// A run of at most `most` nodes of the order, from a drawn place on.
PlaceProblem run_of_order(const PlaceProblem& graph, int64_t most, Rng& rng) {
  const std::vector<uint32_t> order = place_order(graph);
  const int64_t count = std::min(most, std::ssize(order));
  const auto first = static_cast<size_t>(rng.between(0, std::ssize(order) - count));
  PlaceProblem part;
  part.name = graph.name;
  part.system = graph.system;
  std::vector<uint32_t> place(graph.nodes.size(), UINT32_MAX);
  for (size_t k = first; k < first + static_cast<size_t>(count); ++k) {
    place[order[k]] = static_cast<uint32_t>(part.nodes.size());
    part.nodes.push_back(graph.nodes[order[k]]);
  }
  for (const PlaceTensor& tensor : graph.tensors) {
    if (place[tensor.maker] == UINT32_MAX) continue;
    PlaceTensor kept = tensor;
    kept.maker = place[tensor.maker];
    kept.users.clear();
    for (const uint32_t user : tensor.users)
      if (place[user] != UINT32_MAX) kept.users.push_back(place[user]);
    std::ranges::sort(kept.users);
    if (!kept.users.empty()) part.tensors.push_back(std::move(kept));
  }
  return part;
}

// The bandwidth at which a mean message takes `traffic` mean times of a node.
double bandwidth_of(const PlaceProblem& graph, double traffic) {
  double seconds = 0, bytes = 0;
  for (const PlaceNode& node : graph.nodes) seconds += node.seconds[0];
  for (const PlaceTensor& tensor : graph.tensors) bytes += tensor.bytes;
  if (!(seconds > 0) || !(bytes > 0) || seconds == kCannotRun) return kBandwidth;
  const double mean_seconds = seconds / static_cast<double>(graph.nodes.size());
  const double mean_bytes = bytes / static_cast<double>(graph.tensors.size());
  return std::clamp(mean_bytes / (traffic * mean_seconds), 1e3, 1e15);
}

}  // namespace

Result<PlaceProblem> place_on_drawn(const PlaceProblem& graph, const DrawnPlace& drawn, Rng& rng) {
  PlaceProblem part = run_of_order(graph, drawn.nodes, rng);
  const double slower = rng.uniform(1.5, kSlowest);
  for (PlaceNode& node : part.nodes) {
    node.pinned = kAnywhere;
    // The fastest of its targets; a slower one has to be in range, too.
    node.seconds = {std::min(std::ranges::min(node.seconds), kMaxPlaceSeconds / kSlowest)};
    if (drawn.two_kinds) node.seconds.push_back(slower * node.seconds[0]);
  }
  part.system =
      drawn_system(drawn, drawn_memory(part, drawn), rng, bandwidth_of(part, drawn.traffic));
  part.name = fmt::format("{} on {} {}", part.name, drawn.devices, name(drawn.shape));
  HONE_TRY(check(part.system));
  HONE_TRY(check(part));
  return part;
}

}  // namespace hone
