#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/type.h"

// Which elements of its operands an op reads for which elements of its results, said once per op
// as data. Regions, work, bytes, tiling, fusion legality and sharding rules derive from it.

namespace hone {

enum class IterKind : uint8_t {
  parallel,    // points are independent; every result element belongs to one
  reduction,   // points are combined in any order
  sequential,  // points are combined in order
};

struct IterDim {
  std::string_view name;
  Dim extent;
  IterKind kind = IterKind::parallel;
};

// A quasi-affine function of the iteration point: sums, products with dims, floordiv and mod by
// positive dims. A cheap value.
class IndexExpr {
 public:
  IndexExpr(Dim number);  // NOLINT: implicit
  IndexExpr(int number) : IndexExpr(Dim(number)) {}  // NOLINT: implicit
  static IndexExpr iter(int iter_dim);

  friend IndexExpr operator+(IndexExpr a, IndexExpr b);
  friend IndexExpr operator-(IndexExpr a, IndexExpr b);
  friend IndexExpr operator*(IndexExpr a, Dim factor);
  friend IndexExpr floordiv(IndexExpr a, Dim positive);
  friend IndexExpr mod(IndexExpr a, Dim positive);

  // Static dims only:
  int64_t at(std::span<const int64_t> point) const;
  Range over(std::span<const Range> box) const;  // bounds over a box of iteration points
  // If the expression is a*iter(d) + (terms without iter(d)): a; 0 if it does not depend on d;
  // nullopt if it depends on d in another way.
  std::optional<int64_t> coefficient(int iter_dim) const;

  std::string to_string(std::span<const IterDim> dims) const;

 private:
  struct Node;
  explicit IndexExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// lower <= value < upper; an access happens only where all of its guards hold.
struct Guard {
  IndexExpr value;
  Dim lower;
  Dim upper;
};

// One map from iteration points to the elements of one tensor.
struct Access {
  std::vector<IndexExpr> index;         // one per tensor dim
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

// Half-open ranges per tensor dim; a Region with an empty dim has no elements.
struct Region {
  std::vector<Range> dims;  // inclusive bounds; low > high: empty
  static Region whole(Type type);
  bool empty() const;
  bool contains(const Region& other) const;
  bool operator==(const Region&) const = default;
};

struct Application;

// The relation of an application; elementwise ops need not write one.
bool has_access(const Application& application);
AccessRelation access_of(const Application& application, std::span<const Type> results);

// The box of each operand that the given box of one result needs. Never too small; tight for
// affine maps. nullopt-free: an operand that is not read gives an empty region. Static types only.
std::vector<Region> needed_regions(const AccessRelation& relation, std::span<const Type> operands,
                                   int result, const Region& wanted);
// The box of each result that the given box of one operand can influence. Never too small.
std::vector<Region> reached_regions(const AccessRelation& relation, std::span<const Type> results,
                                    int operand, const Region& changed);

// Arithmetic of the application: iteration points x OpDef::flops_per_point; expansions and regions
// are summed (a loop counts its trip count where it is known, else once).
double flops(const Application& application, std::span<const Type> results);
// Bytes of operands that are read plus bytes of results, each once.
double bytes(const Application& application, std::span<const Type> results);

}  // namespace hone
