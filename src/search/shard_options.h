#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "search/shard_prices.h"
#include "shard/node_division.h"

// The ways to divide a node or an output that a search compares.

namespace hone {

struct ShardOptions {
  std::vector<NodeDivision> kept = {};  // the undivided one first, if it is permitted
  size_t all = 0;                       // that there are
};

// Options that are compared for a node.
inline constexpr size_t kMostNodeOptions = 128;

// Options are by whole axes of the mesh, in their order. If a value is stated otherwise, by a part
// of an axis or in another order, so may be those nodes before and behind it that can take it.
//
// More than kMostNodeOptions are spread over the numbers of devices that share the work. For each
// number those are kept that take the least time, then the least memory, then the fewest dims.
//
// If the time is over, the options that have no price yet are left out. One always stays.
class ShardOptionFinder {
 public:
  ShardOptionFinder(const Graph& graph, MeshRef mesh, ShardPrices& prices,
                    std::function<bool()> is_late);

  // Errors: a result cannot be divided as it says, and why.
  Result<ShardOptions> of_node(NodeId n);
  Result<ShardOptions> of_output(uint32_t index);
  // The undivided one alone, for who has no time to compare; none: something is stated, and these
  // have to be asked for.
  Result<std::optional<NodeDivision>> whole_node(NodeId n) const;
  std::optional<NodeDivision> whole_output(uint32_t index) const;

  const Sharding* stated(ValueId v) const;  // where the value is made; null: nothing is said

 private:
  bool is_stated(NodeId n) const;
  bool fits(const ShardLayout& layout, std::string_view kind, const Sharding* said) const;
  bool is_plain(const ShardLayout& layout) const;

  void spread_stated();
  void add_special(ValueId v, const ShardLayout& layout);
  void spread_back(NodeId n);
  void spread_on(NodeId n);
  std::vector<NodeDivision> special_divisions(NodeId n, const NodeDivider& divider) const;

  Result<std::vector<NodeDivision>> divided(NodeId n) const;
  Result<std::optional<NodeDivision>> as_stated(NodeId n) const;
  std::vector<NodeDivision> layouts(ValueId v) const;
  std::string obstacle(NodeId n, size_t result, const Sharding& said) const;
  Result<ShardOptions> limited(std::optional<NodeId> n, std::vector<NodeDivision> options);

  const Graph& graph_;
  const MeshRef mesh_;
  ShardPrices& prices_;
  const std::function<bool()> is_late_;
  std::vector<std::vector<ShardLayout>> special_;  // of each value
};

}  // namespace hone
