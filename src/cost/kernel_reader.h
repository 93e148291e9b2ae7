#pragma once

#include <map>

#include "cost/kernel_price.h"

namespace hone {

// Follows a body from its results to its parameters, as kernels compute it: what is needed at one
// point of the results, and of which loops its index is made.
class KernelReader {
 public:
  KernelReader(const KernelBody& body, KernelPrice& price);
  void run();

 private:
  // A place where a value is needed.
  struct Visit {
    std::vector<IndexExpr> index;  // over loops
    uint32_t guards = 0;           // loops that decide whether it is needed
    uint32_t data = 0;             // loops of what was read to find the index
    int side = -1;                 // operand of the anchor
    bool operator==(const Visit& other) const {
      return index == other.index && guards == other.guards && data == other.data;
    }
  };

  Visit updated(ValueId output, Visit visit) const;
  void add(ValueId value, Visit visit);
  void node(NodeId n);
  void access(ValueId value, const Layout& layout, const Visit& visit, bool is_store);
  void look_along(size_t loop, const Layout& layout, Type stored, const Visit& visit,
                  KernelPrice::Access& access) const;
  static double steps(const Layout::Part& part, const IndexExpr& index, size_t loop);
  void work(uint32_t loops, double slots, bool is_sum);
  void keep_largest();
  uint32_t loops_of(const IndexExpr& expr) const;
  uint32_t loops_of(const Visit& visit) const;
  size_t open(NodeId n, size_t reduction, Dim extent);

  const KernelBody& body_;
  const Graph& graph_;
  const KernelSpace space_;
  KernelPrice& price_;
  std::map<uint32_t, std::vector<Visit>> visits_;  // by value
};

}  // namespace hone
