#include <algorithm>

#include "place/draft.h"
#include "place/solver_program.h"
#include "place/sort_by.h"

// List schedulers: they put one node after another where it seems best.

namespace hone {
namespace {

constexpr size_t kMostCandidates = 64;  // ready nodes that are looked at in a step

struct Put {
  uint32_t node = UINT32_MAX, device = 0;
  double start = kCannotRun;

  explicit operator bool() const { return node != UINT32_MAX; }
};

// The most urgent of the ready nodes, the first one first.
std::vector<uint32_t> candidates(const PlaceDraft& draft, const std::vector<double>& urgency,
                                 size_t most) {
  std::vector<uint32_t> nodes = draft.ready();
  most = std::min(most, nodes.size());
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(most), nodes.end(),
                    [&](uint32_t a, uint32_t b) {
                      return urgency[a] != urgency[b] ? urgency[a] > urgency[b] : a < b;
                    });
  nodes.resize(most);
  return nodes;
}

// ---- By urgency --------------------------------------------------------------------------------

// Puts the most urgent of the ready nodes, one after another. choose(draft, node) gives its device
// and its start, or nothing if it has no room.
template <class Choose>
std::optional<DevicePlacement> by_urgency(PlaceRun& run, double share, const Choose& choose) {
  const std::vector<double> urgency = run.judge().urgency();
  PlaceDraft draft(run, share, false);
  while (!draft.ready().empty()) {
    if (run.is_late()) return std::nullopt;
    const Put best = choose(draft, candidates(draft, urgency, 1)[0]);
    if (!best) return std::nullopt;
    draft.put(best.node, best.device, best.start);
  }
  return draft.finished();
}

// HEFT: the device where the node ends first.
std::optional<DevicePlacement> heft(PlaceRun& run, double share) {
  return by_urgency(run, share, [&](PlaceDraft& draft, uint32_t node) {
    Put best;
    double least = kCannotRun;
    for (uint32_t d = 0; d < run.problem().devices(); ++d) {
      const std::optional<double> takes = draft.seconds(node, d);
      if (!takes) continue;
      const double start = draft.soonest(node, d, true);
      if (start + *takes < least) best = {node, d, start}, least = start + *takes;
    }
    return best;
  });
}

// The critical path: the device where the node starts first, or any of several.
std::optional<DevicePlacement> critical(PlaceRun& run, double share) {
  return by_urgency(run, share, [&](PlaceDraft& draft, uint32_t node) {
    Put best;
    int equal = 0;
    for (uint32_t d = 0; d < run.problem().devices(); ++d) {
      if (!draft.seconds(node, d)) continue;
      const double start = draft.soonest(node, d, false);
      if (start > best.start) continue;
      equal = start < best.start ? 1 : equal + 1;
      if (equal == 1 || run.rng().below(static_cast<uint64_t>(equal)) == 0) best = {node, d, start};
    }
    return best;
  });
}

// ---- ETF and SCT -------------------------------------------------------------------------------

// The favourite child of each node is at most one, and a node is that of at most one: pairs by
// falling time that is lost if they are apart.
std::vector<uint32_t> favourites(const PlaceRun& run, const std::vector<double>& urgency) {
  struct Pair {
    double lost;
    uint32_t parent, child;
  };
  double port = 0;
  for (const PlaceDevice& device : run.judge().devices()) port = std::max(port, device.port);
  std::vector<Pair> pairs;
  for (const PlaceTensor& tensor : run.problem().tensors)
    for (const uint32_t user : tensor.users)
      pairs.push_back({tensor.bytes * port + urgency[user], tensor.maker, user});
  sort_by(pairs, [](const Pair& pair) { return -pair.lost; });
  std::vector<uint32_t> child(urgency.size(), UINT32_MAX);
  std::vector<bool> has_parent(urgency.size());
  for (const Pair& pair : pairs) {
    if (child[pair.parent] != UINT32_MAX || has_parent[pair.child]) continue;
    child[pair.parent] = pair.child;
    has_parent[pair.child] = true;
  }
  return child;
}

// `children`: favourites, or empty.
std::optional<DevicePlacement> by_start(PlaceRun& run, double share,
                                        const std::vector<uint32_t>& children) {
  const std::vector<double> urgency = run.judge().urgency();
  PlaceDraft draft(run, share, true);
  std::vector<uint32_t> awaited(run.problem().devices(), UINT32_MAX);  // by each device
  while (!draft.ready().empty()) {
    if (run.is_late()) return std::nullopt;
    Put best;
    for (const bool keeps_waiting : {true, false}) {
      for (const uint32_t node : candidates(draft, urgency, kMostCandidates))
        for (uint32_t d = 0; d < run.problem().devices(); ++d) {
          // A device that waits for a child takes that alone, as long as another one takes the
          // rest.
          if (keeps_waiting && awaited[d] != UINT32_MAX && awaited[d] != node) continue;
          if (!draft.seconds(node, d)) continue;
          const double start = draft.soonest(node, d, false);
          if (start < best.start) best = {node, d, start};
        }
      if (best) break;
    }
    if (!best) return std::nullopt;
    draft.put(best.node, best.device, best.start);
    for (uint32_t& child : awaited)
      if (child == best.node) child = UINT32_MAX;
    if (children.empty()) continue;
    const uint32_t child = children[best.node];
    if (child != UINT32_MAX && !draft.is_put(child)) awaited[best.device] = child;
  }
  return draft.finished();
}

}  // namespace

void place_heft(PlaceRun& run) {
  run.build([&](double share) { return heft(run, share); });
}

void place_critical(PlaceRun& run) {
  run.build([&](double share) { return critical(run, share); });
}

void place_etf(PlaceRun& run) {
  run.build([&](double share) { return by_start(run, share, {}); });
}

void place_sct(PlaceRun& run) {
  // Alone it solves the method's linear program; among quick placers that would take too long.
  std::vector<uint32_t> children;
  if (run.options().by == "sct") {
    Result<std::vector<uint32_t>> solved = favourites_by_program(run);
    if (solved.ok()) children = *std::move(solved);
    run.note(solved.ok()
                 ? "favourite children by the linear program"
                 : fmt::format("favourite children by greedy pairs: {}", solved.error().what()));
  } else {
    run.note("favourite children by greedy pairs");
  }
  if (children.empty()) children = favourites(run, run.judge().urgency());
  run.build([&](double share) { return by_start(run, share, children); });
}

}  // namespace hone
