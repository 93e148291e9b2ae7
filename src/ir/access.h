#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/index_expr.h"
#include "tensor/type.h"

// An access relation says which operand elements an op reads for each result element. Each op
// states it once, as data; regions, work, bytes, tiling, fusion legality and sharding rules derive
// from it.

namespace hone {

// lower <= value < upper; an access happens only where all of its guards hold.
struct Guard {
  IndexExpr value;
  Dim lower;
  Dim upper;
};

// A map from iteration points to the elements of one tensor. The access happens once per point of
// the parallel dims and of the other dims that it mentions. So an access that mentions no reduction
// dim happens even if the reduction is over nothing.
struct Access {
  std::vector<IndexExpr> index;           // one per tensor dim
  std::vector<bool> data_dependent = {};  // dims where the index depends on values: any element
  std::vector<Guard> guards = {};
  bool is_data_dependent(int dim) const {
    return static_cast<size_t>(dim) < data_dependent.size() &&
           data_dependent[static_cast<size_t>(dim)];
  }
};

struct AccessRelation {
  std::vector<IterDim> dims;
  std::vector<std::vector<Access>> operands;  // pieces per operand; none: never read
  std::vector<Access> results;                // over parallel and sequential dims only
};

// The trips over a dim for one point of the dims before it: on average, where data divides it.
// Symbols count as their largest values.
double mean_trips(std::span<const IterDim> dims, size_t dim);

// The parallel iteration dims of an op that computes each element of `type` on its own: i0, i1, ...
std::vector<IterDim> parallel_dims(Type type);
// The name "i<n>" that parallel_dims gives to dim n.
std::string_view iter_name(int n);
// iter(0), ..., iter(rank - 1)
std::vector<IndexExpr> identity_index(int rank);

// A box of elements of a tensor.
struct Region {
  std::vector<Range> dims;  // inclusive bounds; low > high: no elements
  static Region whole(Type type);
  // Without elements: every dim is [0, -1]. At rank 0, where no dim could say so, one such range.
  static Region none(int rank);
  bool empty() const;
  bool contains(const Region& other) const;
  bool operator==(const Region&) const = default;
};

struct Application;

// The relation of an application; elementwise ops need not write one.
bool has_access(const Application& application);
AccessRelation access_of(const Application& application, std::span<const Type> results);

// The box of each operand that the given box of one result needs. Never too small; tight for
// affine maps. An operand that is not read gives Region::none. Static types only.
std::vector<Region> needed_regions(const AccessRelation& relation, std::span<const Type> operands,
                                   int result, const Region& wanted);
// The box of each result that the given box of one operand can influence. Never too small.
std::vector<Region> reached_regions(const AccessRelation& relation, std::span<const Type> results,
                                    int operand, const Region& changed);

// Arithmetic of the application: iteration points x OpDef::flops_per_point. Expansions and regions
// are summed (a scan counts each step, a while one, an if its costlier branch). Static types only.
double flops(const Application& application, std::span<const Type> results);
// Bytes of operand elements that are read plus bytes of results, each once: the traffic that no
// schedule avoids. Elements that a gather or a strided slice skips do not count. Opaque ops and
// composites count all of their operands. Static types only.
double bytes(const Application& application, std::span<const Type> results);

}  // namespace hone
