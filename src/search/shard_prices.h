#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/progress.h"
#include "cost/cost.h"
#include "ir/sharding.h"
#include "shard/node_division.h"
#include "target/system.h"
#include "timeline/collective_rates.h"

// Prices on a System: of a node on the parts of a device, and of the way from one division of a
// value to another. Each is priced alone.

namespace hone {

// Where a mesh lies in a System, and how its devices exchange data.
struct MeshPlace {
  std::vector<int32_t> devices = {};  // by their place in the mesh; none: the first ones
  std::vector<size_t> targets = {};   // that compute, the slowest counts; none: all of the system
  // Each sends to each other one (shard/device_nodes.h); else by the best schedule.
  bool sends_directly = false;
};

// Seconds of nodes on parts, planned alone: by target and by the hash of the node.
using NodeSeconds = std::map<std::pair<size_t, uint64_t>, double>;

class ShardPrices {
 public:
  // `costs` are of the system's targets. Prices of other meshes of the system may share `known`.
  ShardPrices(const System& system, std::span<const std::shared_ptr<const Cost>> costs,
              MeshRef mesh, const CancelToken* cancel = nullptr, MeshPlace place = {},
              std::shared_ptr<NodeSeconds> known = nullptr);

  // Seconds on the slowest of the targets, with what devices tell each other within the node.
  // Elementwise ops and copies count a part of their bytes, since most are fused into their
  // readers; other nodes are planned alone.
  Result<double> node(const Graph& graph, NodeId n, const NodeDivision& division);

  // Seconds of the cheapest way (shard/reshard.h), one exchange after the other, each by its best
  // schedule.
  Result<double> change(const ShardLayout& from, const ShardLayout& to,
                        const std::vector<int64_t>& sizes, int64_t element_bytes);

  // Prices the steps of ways by which change() goes; this outlives it. Null where bytes decide: all
  // ways go along one axis, or there are more axes than searches take.
  ReshardPrice steps();

 private:
  struct HashOfKey {
    size_t operator()(const std::vector<int64_t>& key) const {
      return Hasher().add_range(key).value();
    }
  };

  std::vector<int64_t> key_of_change(const ShardLayout& from, const ShardLayout& to,
                                     const std::vector<int64_t>& sizes,
                                     int64_t element_bytes) const;
  Result<double> planned(const Graph& alone, size_t target) const;
  Result<double> computed(const Graph& graph, NodeId n, const NodeDivision& division);
  Result<double> exchange(const MeshExchange& exchange);
  Result<double> sent(const std::vector<Collective>& groups, int64_t element_bytes);
  std::vector<Collective> groups_of(const MeshExchange& exchange, Collective one) const;
  double copied(double bytes) const;

  const System& system_;
  const std::vector<std::shared_ptr<const Cost>> costs_;
  const MeshRef mesh_;
  const CancelToken* cancel_;
  MeshPlace place_;
  CollectiveRates collectives_;
  const std::shared_ptr<NodeSeconds> nodes_;
  std::map<std::vector<int64_t>, double> exchanges_;
  std::unordered_map<std::vector<int64_t>, double, HashOfKey> changes_;
};

// The layout as numbers, behind those that are there.
void append_layout(const ShardLayout& layout, std::vector<int64_t>& numbers);

}  // namespace hone
