#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "shard/batch_part.h"

// How batch_part() goes through a graph. Values and partial sums are in batch_values.cc, composites
// and regions in batch_control.cc.

namespace hone {

// A parameter that an op meets row by row.
struct RowDemand {
  size_t parameter;
  int dim;
};

// Walks through one graph: the whole one, a region or an expansion. It is done again with more
// parameters cut as long as there are demands.
class BatchWalk {
 public:
  BatchWalk(const Graph& whole, std::span<const int> parameters, const BatchShare& share)
      : whole_(whole),
        share_(share),
        part_(whole.name()),
        dims_(whole.value_count(), kWhole),
        local_(whole.value_count()),
        users_(whole),
        stays_(whole.value_count()) {
    for (size_t i = 0; i < parameters.size(); ++i) dims_[whole.inputs()[i].index] = parameters[i];
  }

  // wanted: kWhole for an output that may be as it comes; kPartialSum for one that stays in parts.
  Status run(std::span<const int> wanted);

  Graph take_graph() { return std::move(part_); }
  const std::vector<int>& outputs() const { return outputs_; }
  const std::vector<RowDemand>& demands() const { return demands_; }
  bool depends_on_first() const { return depends_on_first_; }
  bool has_sums() const { return has_sums_; }
  // True if the parameter is a partial sum, and was never added up.
  bool is_kept(size_t parameter) const {
    return dims_[whole_.inputs()[parameter].index] == kPartialSum;
  }

 private:
  Type local_type(Type type, int dim) const;
  std::vector<int> operand_dims(NodeId n) const;

  Status node(NodeId n);
  void parameter(NodeId n);
  Status whole_node(NodeId n);
  Status row_by_row(NodeId n);
  Status sum_of_rows(NodeId n, const RowRule& rule);
  Status sum_of_sums(NodeId n);
  Status finish_sums(NodeId n);
  Status composite(NodeId n);
  Status control(NodeId n);

  // The local value, with rows along the dim; a whole value is cut.
  Result<ValueId> at(ValueId v, int dim);
  Result<ValueId> cut(ValueId v, int dim);
  Result<ValueId> computed_cut(ValueId v, int dim);
  Result<ValueId> sliced(ValueId v, int dim);
  // The value of a partial sum, and a part of a sum that is the value.
  Status add_up(ValueId v);
  Result<ValueId> counted_once(ValueId v);
  bool is_zero(ValueId v) const;
  static bool keeps_sums(const Graph& graph, NodeId n);
  Result<ValueId> cast_to(ValueId local, DType dtype);
  Result<std::vector<ValueId>> operands_at(NodeId n, std::span<const int> dims);

  Result<NodeId> append(NodeId n, std::span<const ValueId> operands,
                        std::span<const int> operand_dims, std::span<const int> result_dims,
                        std::vector<GraphRef> regions);
  // The dims of sizes and results are as above; types of operands as they are, and of results.
  Result<NodeId> append_as(NodeId n, Op as, std::span<const ValueId> operands,
                           std::span<const int> operand_dims, std::span<const int> result_dims,
                           std::vector<GraphRef> regions, std::span<const Type> wanted);
  std::vector<ValueId> inlined(const Graph& body, std::span<const ValueId> arguments);
  void define(NodeId n, size_t result, ValueId local, int dim);

  const Graph& whole_;
  const BatchShare& share_;
  Graph part_;
  std::vector<int> dims_;       // by value of the whole graph
  std::vector<ValueId> local_;  // what stands for it, along that dim
  const Users users_;
  std::vector<bool> stays_;  // by value: an output that is wanted in parts, and read by nobody else
  std::map<std::pair<ValueId, int>, ValueId> cuts_;  // of whole values
  std::vector<RowDemand> demands_;
  std::vector<int> outputs_;
  bool depends_on_first_ = false;
  bool has_sums_ = false;
  int depth_ = 0;  // of cuts that are computed from cuts
};

struct WalkedRows {
  Graph graph;
  std::vector<int> outputs;
  bool depends_on_first = false;
  bool has_sums = false;
  std::vector<bool> kept;  // of each parameter: BatchWalk::is_kept
};

// Cuts parameters until no op asks for more of them.
Result<WalkedRows> walk_rows(const Graph& graph, std::vector<int>& parameters,
                             std::span<const int> wanted, const BatchShare& share);

// The op is refused, and why.
Error mixes_rows(std::string_view op, std::string_view why);

}  // namespace hone
