#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "ir/sharding.h"
#include "shard/node_division.h"
#include "target/system.h"
#include "timeline/collective_rates.h"

// Prices on a System: of a node on the parts of a device, and of the way from one division of a
// value to another. Each is priced alone.

namespace hone {

class ShardPrices {
 public:
  // `costs` are of the system's targets.
  ShardPrices(const System& system, std::span<const std::shared_ptr<const Cost>> costs,
              MeshRef mesh, const CancelToken* cancel = nullptr)
      : system_(system),
        costs_(costs),
        mesh_(std::move(mesh)),
        cancel_(cancel),
        collectives_(system) {}

  // Seconds on the slowest target. Elementwise ops and copies count a part of their bytes, since
  // most are fused into their readers; other nodes are planned alone.
  Result<double> node(const Graph& graph, NodeId n, const NodeDivision& division);

  // Seconds of the cheapest way by bytes (shard/reshard.h), one exchange after the other, each by
  // its best schedule.
  Result<double> change(const ShardLayout& from, const ShardLayout& to,
                        const std::vector<int64_t>& sizes, int64_t element_bytes);

 private:
  Result<double> planned(const Graph& alone) const;
  Result<double> exchange(const ReshardStep& step, int64_t element_bytes);
  double copied(double bytes) const;

  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const MeshRef mesh_;
  const CancelToken* cancel_;
  CollectiveRates collectives_;
  std::map<uint64_t, double> nodes_;  // by the hash of the node on its parts
  using ExchangeKey = std::tuple<int, size_t, int64_t, int64_t, int64_t, int64_t>;
  std::map<ExchangeKey, double> exchanges_;
  std::map<std::vector<int64_t>, double> changes_;
};

}  // namespace hone
