#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "oracle/size_classes.h"

// Which sizes of a graph go together. The access relations of its ops say it: dims that
// one iteration dim runs through are divided alike.

namespace hone {

// The dims of one graph, in a SizeClasses.
struct GraphSizes {
  const Graph* graph = nullptr;
  std::vector<int> first = {};  // per value: its dim 0; the others follow
  std::map<uint32_t, std::vector<GraphSizes>> regions = {};  // by node
  std::map<uint32_t, int> steps = {};                        // by node: the trips of a scan
  std::shared_ptr<const Graph> owned = nullptr;              // of an expansion

  int dim(ValueId v, int i) const { return first[v.index] + i; }
};

// Arithmetic of a loop nest with the sizes as given. Now it is divided by the divisors of these
// dims.
struct WorkOfSizes {
  double operations = 0;
  std::vector<int> dims = {};
};

class ModelSizes {
 public:
  // A static graph, which outlives it.
  static Result<ModelSizes> of(const Graph& graph, int64_t least);

  const GraphSizes& top() const { return top_; }
  SizeClasses& classes() { return classes_; }
  const SizeClasses& classes() const { return classes_; }
  double operations() const;  // for the sizes as they are now

  // Facts about the dims of a class.
  bool is_summed(int dim) const;  // a product or sum runs over it
  bool is_steps(int dim) const;   // a scan takes its steps along it

  // The type with the sizes as they are now; `dim` is its dim 0.
  Type sized(Type type, int dim) const;

 private:
  explicit ModelSizes(int64_t least) : classes_(least) {}

  struct Loops {  // around a region
    double trips = 1;
    std::vector<int> dims = {};
  };
  Result<GraphSizes> walk(const Graph& graph, const Loops& loops);
  Status node(GraphSizes& sizes, NodeId n, const Loops& loops);
  Status control(GraphSizes& sizes, NodeId n, const Loops& loops);
  Status composite(const GraphSizes& sizes, NodeId n, const Loops& loops);
  void collective(const GraphSizes& sizes, NodeId n);
  void reshape(const GraphSizes& sizes, NodeId n);
  void relation(const GraphSizes& sizes, NodeId n, const Loops& loops);
  void link(const Access& access, Type type, int first, const AccessRelation& relation, int iters);
  void join_dims(int a, int b, int count);
  void pin_dims(Type type, int first);

  SizeClasses classes_;
  GraphSizes top_;
  std::vector<WorkOfSizes> work_;
  std::vector<int> summed_;
  std::vector<int> steps_;
};

// True if the constant can be had in another size: all of its elements are equal, or they are
// weights, which are cut. Numbers that count or point keep their places.
bool can_be_cut(const Tensor& constant);
// Its first elements along each dim.
Tensor cut_to(const Tensor& constant, Type type);

}  // namespace hone
