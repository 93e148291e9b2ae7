#include "place/generate.h"

#include <algorithm>
#include <cmath>

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

System drawn_system(const DrawnPlace& drawn, int64_t memory, Rng& rng) {
  System system;
  system.name = "drawn";
  system.targets = {plain_target("fast", memory)};
  system.devices = {{drawn.devices, 0, memory}};
  if (drawn.two_kinds) {
    const int64_t slow = std::max<int64_t>(1, drawn.devices / 3);
    system.targets.push_back(plain_target("slow", memory));
    system.devices = {{drawn.devices - slow, 0, memory}, {slow, 1, memory}};
  }
  Links links = star_links("link", kBandwidth);
  links.shape = drawn.shape;
  if (drawn.shape == Shape::bus) links.duplex = Duplex::half;
  links.latency = rng.chance(0.5) ? 0 : rng.uniform(1e-6, 1e-4);
  system.links = {links};
  return system;
}

}  // namespace

DrawnPlace draw_place(int64_t nodes, bool is_held_out, Rng& rng) {
  constexpr Shape kSeen[] = {Shape::star, Shape::ring, Shape::pairs},
                  kUnseen[] = {Shape::line, Shape::bus};
  DrawnPlace drawn;
  drawn.family = kPlaceFamilies[is_held_out ? 4 + rng.below(2) : rng.below(4)];
  drawn.shape = is_held_out ? rng.pick(kUnseen) : rng.pick(kSeen);
  drawn.devices = is_held_out ? rng.between(7, 8) : rng.between(2, 6);
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
  int64_t held = 0, most = 0;
  std::vector<int64_t> company(problem.nodes.size() + 1);
  for (const PlaceNode& node : problem.nodes) {
    held += node.held;
    int64_t& own = company[node.together == kAnywhere ? problem.nodes.size()
                                                      : static_cast<size_t>(node.together)];
    own = node.together == kAnywhere ? node.held : own + node.held;
    most = std::max(most, own);
  }
  const int64_t memory = drawn.is_tight
                             ? std::max(most + held / drawn.devices, 3 * held / (2 * drawn.devices))
                             : int64_t{1} << 40;
  problem.system = drawn_system(drawn, memory, rng);
  if (drawn.has_fusions) add_drawn_fusions(problem, rng);
  HONE_CHECK(check(problem.system).ok() && check(problem).ok(), "a drawn problem is wrong");
  return problem;
}

}  // namespace hone
