#include "ir/access.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/application.h"
#include "ir/op_def.h"

namespace hone {

// ---- Relations ----------------------------------------------------------------------------------

std::string_view iter_name(int n) {
  static constexpr std::array<std::string_view, kMaxRank> kNames = {
      "i0", "i1", "i2",  "i3",  "i4",  "i5",  "i6",  "i7",
      "i8", "i9", "i10", "i11", "i12", "i13", "i14", "i15"};
  return kNames.at(static_cast<size_t>(n));
}

std::vector<IterDim> parallel_dims(Type type) {
  std::vector<IterDim> dims;
  for (int i = 0; i < type.rank(); ++i) dims.push_back({iter_name(i), type.dim(i)});
  return dims;
}

double mean_trips(std::span<const IterDim> dims, size_t dim) {
  const auto most = [&](size_t d) {
    return static_cast<double>(std::max<int64_t>(dims[d].extent.range().high, 0));
  };
  if (dims[dim].divided_by < 0) return most(dim);
  return most(dim) / std::max(most(static_cast<size_t>(dims[dim].divided_by)), 1.0);
}

std::vector<IndexExpr> identity_index(int rank) {
  std::vector<IndexExpr> index;
  for (int i = 0; i < rank; ++i) index.push_back(IndexExpr::iter(i));
  return index;
}

bool has_access(const Application& application) {
  const OpDef& def = application.op.def();
  return def.access != nullptr || is_elementwise(def.opcode);
}

AccessRelation access_of(const Application& application, std::span<const Type> results) {
  const OpDef& def = application.op.def();
  if (def.access != nullptr) return def.access(application, results);
  HONE_CHECK(is_elementwise(def.opcode), "{} has no access relation", application.op.name());
  Access identity = {.index = identity_index(results[0].rank())};
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  for (Type operand : application.operands) {
    relation.operands.push_back(operand ? std::vector<Access>{identity} : std::vector<Access>{});
  }
  relation.results.assign(results.size(), identity);
  return relation;
}

// ---- Regions ------------------------------------------------------------------------------------

Region Region::whole(Type type) {
  Region region;
  for (int64_t size : type.static_dims()) region.dims.push_back({0, size - 1});
  return region.empty() ? none(type.rank()) : region;
}

Region Region::none(int rank) {
  return {std::vector<Range>(static_cast<size_t>(std::max(rank, 1)), Range{0, -1})};
}

bool Region::empty() const {
  return std::any_of(dims.begin(), dims.end(), [](Range r) { return r.low > r.high; });
}

bool Region::contains(const Region& other) const {
  if (other.empty()) return true;
  if (empty() || dims.size() != other.dims.size()) return false;
  return std::equal(dims.begin(), dims.end(), other.dims.begin(), [](Range ours, Range theirs) {
    return ours.low <= theirs.low && theirs.high <= ours.high;
  });
}

namespace {

using Box = std::vector<Range>;

bool is_empty(const Box& box) {
  return std::any_of(box.begin(), box.end(), [](Range r) { return r.low > r.high; });
}

Box whole_box(const AccessRelation& relation) {
  Box box;
  for (const IterDim& dim : relation.dims) box.push_back({0, dim.extent.value() - 1});
  return box;
}

bool mentions(const Access& access, int iter_dim) {
  auto in = [&](const IndexExpr& e) { return e.mentions(iter_dim); };
  return std::any_of(access.index.begin(), access.index.end(), in) ||
         std::any_of(access.guards.begin(), access.guards.end(),
                     [&](const Guard& guard) { return in(guard.value); });
}

// The box for one access: dims that do not matter to it become a single point.
Box box_for(const AccessRelation& relation, const Access& access, Box box) {
  for (size_t d = 0; d < box.size(); ++d) {
    bool matters =
        relation.dims[d].kind == IterKind::parallel || mentions(access, static_cast<int>(d));
    if (!matters) box[d] = {0, 0};
  }
  return box;
}

// Narrows the box to points that access an element of `target`, as far as intervals can tell.
// False: there are none. Each constraint may help the others, hence the rounds; stopping early
// only leaves more points than needed.
bool narrow_to(const Access& access, const Region& target, Box& box) {
  constexpr int kRounds = 16;
  for (int round = 0; round < kRounds; ++round) {
    Box before = box;
    for (const Guard& guard : access.guards) {
      Range allowed = {guard.lower.value(), guard.upper.value() - 1};
      if (allowed.low > allowed.high || !guard.value.narrow(allowed, box)) return false;
    }
    for (size_t i = 0; i < access.index.size(); ++i) {
      if (access.is_data_dependent(static_cast<int>(i))) continue;
      if (!access.index[i].narrow(target.dims[i], box)) return false;
    }
    if (box == before) break;
  }
  return true;
}

// Bounds of the elements accessed in the box, which is known to be not empty.
Region accessed(const Access& access, const Region& whole, const Box& box) {
  Region region = whole;
  for (size_t i = 0; i < access.index.size(); ++i) {
    if (access.is_data_dependent(static_cast<int>(i))) continue;
    Range range = access.index[i].over(box);
    region.dims[i] = {std::max(range.low, whole.dims[i].low),
                      std::min(range.high, whole.dims[i].high)};
  }
  return region.empty() ? Region::none(static_cast<int>(access.index.size())) : region;
}

void unite(Region& region, const Region& other) {
  if (other.empty()) return;
  if (region.empty()) {
    region = other;
    return;
  }
  for (size_t i = 0; i < region.dims.size(); ++i) {
    region.dims[i] = {std::min(region.dims[i].low, other.dims[i].low),
                      std::max(region.dims[i].high, other.dims[i].high)};
  }
}

// The elements of a tensor that `access` reads when the iteration stays in `box`.
Region read_in(const AccessRelation& relation, const Access& access, Type type, const Box& box) {
  Region whole = Region::whole(type);
  Box mine = box_for(relation, access, box);
  if (whole.empty() || is_empty(mine) || !narrow_to(access, whole, mine)) {
    return Region::none(type.rank());
  }
  return accessed(access, whole, mine);
}

}  // namespace

std::vector<Region> needed_regions(const AccessRelation& relation, std::span<const Type> operands,
                                   int result, const Region& wanted) {
  Box box = whole_box(relation);
  bool any = !wanted.empty();
  if (any) {
    const Access& access = relation.results[static_cast<size_t>(result)];
    Box mine = box_for(relation, access, box);
    any = !is_empty(mine) && narrow_to(access, wanted, mine);
    for (size_t d = 0; d < box.size(); ++d) {
      if (!mentions(access, static_cast<int>(d))) continue;
      bool sequential = relation.dims[d].kind == IterKind::sequential;
      box[d] = {sequential ? 0 : mine[d].low, mine[d].high};
    }
  }
  std::vector<Region> regions;
  for (size_t i = 0; i < operands.size(); ++i) {
    Region region = Region::none(operands[i] ? operands[i].rank() : 0);
    for (const Access& access : relation.operands[i]) {
      if (any) unite(region, read_in(relation, access, operands[i], box));
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

std::vector<Region> reached_regions(const AccessRelation& relation, std::span<const Type> results,
                                    int operand, const Region& changed) {
  std::vector<Region> regions;
  for (Type type : results) regions.push_back(Region::none(type.rank()));
  if (changed.empty()) return regions;
  for (const Access& access : relation.operands[static_cast<size_t>(operand)]) {
    Box box = box_for(relation, access, whole_box(relation));
    if (is_empty(box) || !narrow_to(access, changed, box)) continue;
    for (size_t d = 0; d < box.size(); ++d) {
      if (relation.dims[d].kind == IterKind::sequential) {
        box[d].high = relation.dims[d].extent.value() - 1;
      }
    }
    for (size_t r = 0; r < results.size(); ++r) {
      unite(regions[r], read_in(relation, relation.results[r], results[r], box));
    }
  }
  return regions;
}

// ---- Work ---------------------------------------------------------------------------------------

namespace {

double points(const AccessRelation& relation) {
  double count = 1;
  for (size_t d = 0; d < relation.dims.size(); ++d) count *= mean_trips(relation.dims, d);
  return count;
}

double graph_flops(const Graph& graph) {
  double total = 0;
  for (NodeId node : graph.nodes()) {
    std::vector<Type> operands = graph.operand_types(node);
    std::vector<Type> results = graph.result_types(node);
    std::vector<const Graph*> regions;
    for (const GraphRef& region : graph.regions(node)) regions.push_back(region.get());
    total += flops({graph.op(node), operands, regions}, results);
  }
  return total;
}

double expansion_flops(const Application& application) {
  Result<Graph> graph = expansion(application.op, application.operands);
  HONE_CHECK(graph.ok(), "the expansion of {} fails: {}", application.op.name(),
             graph.error().to_string());
  return graph_flops(*graph);
}

double scan_steps(const Application& application) {
  const Dims& length = application.op.dims("length");
  if (!length.empty()) return static_cast<double>(length[0].value());
  int first_scanned = static_cast<int>(application.op.integer("carried"));
  return static_cast<double>(application.operand(first_scanned).dim(0).value());
}

double region_flops(const Application& application) {
  double sum = 0;
  double highest = 0;
  for (const Graph* region : application.regions) {
    double one = graph_flops(*region);
    sum += one;
    highest = std::max(highest, one);
  }
  switch (application.op.opcode()) {
    case Opcode::if_: return highest;
    case Opcode::scan: return sum * scan_steps(application);
    default: return sum;
  }
}

double element_bytes(Type type) { return bits(type.dtype()) / 8.0; }

// An upper bound of the elements that an access touches: it cannot touch more than it has points.
double touched_elements(const AccessRelation& relation, const Access& access) {
  bool by_value = std::any_of(access.data_dependent.begin(), access.data_dependent.end(),
                              [](bool dependent) { return dependent; });
  double count = 1;
  for (size_t d = 0; d < relation.dims.size(); ++d) {
    if (by_value || mentions(access, static_cast<int>(d))) {
      count *= static_cast<double>(relation.dims[d].extent.value());
    }
  }
  return count;
}

double elements(const Region& region) {
  double count = 1;
  for (Range range : region.dims) count *= static_cast<double>(range.high - range.low + 1);
  return region.empty() ? 0 : count;
}

double operand_bytes(const AccessRelation& relation, const std::vector<Access>& pieces, Type type) {
  Region region = Region::none(type.rank());
  double touched = 0;
  for (const Access& access : pieces) {
    unite(region, read_in(relation, access, type, whole_box(relation)));
    touched += touched_elements(relation, access);
  }
  return std::min(elements(region), touched) * element_bytes(type);
}

}  // namespace

double flops(const Application& application, std::span<const Type> results) {
  const OpDef& def = application.op.def();
  if (def.expand != nullptr) return expansion_flops(application);
  if (!application.regions.empty()) return region_flops(application);
  if (def.flops_per_point == 0) return 0;
  if (has_access(application)) {
    return points(access_of(application, results)) * def.flops_per_point;
  }
  double count = 0;
  for (Type type : results) count += static_cast<double>(type.static_elements());
  return count * def.flops_per_point;
}

double bytes(const Application& application, std::span<const Type> results) {
  double total = 0;
  for (Type type : results) total += static_cast<double>(type.static_bytes());
  if (!has_access(application)) {
    for (Type type : application.operands) {
      if (type) total += static_cast<double>(type.static_bytes());
    }
    return total;
  }
  AccessRelation relation = access_of(application, results);
  for (size_t i = 0; i < application.operands.size(); ++i) {
    if (application.operands[i]) {
      total += operand_bytes(relation, relation.operands[i], application.operands[i]);
    }
  }
  return total;
}

}  // namespace hone
