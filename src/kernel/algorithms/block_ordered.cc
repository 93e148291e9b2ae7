#include "kernel/algorithms/block_ordered.h"

#include <algorithm>

#include "ir/op_def.h"
#include "kernel/algorithms/domains.h"
#include "kernel/algorithms/loops.h"
#include "target/gpu.h"

namespace hone {
namespace {

constexpr int64_t kMostOrdered = int64_t{1} << 30;  // whose positions a u32 holds, three times
constexpr int64_t kPositionBytes = 4;
constexpr int64_t kBetweenBuffers = 64;  // bytes at most, so that each is aligned

NodeId ordered_node(const KernelBody& body) { return body.graph.producer(body.graph.outputs()[0]); }
Type ordered_operand(const KernelBody& body, size_t i) {
  return body.graph.type(body.graph.operands(ordered_node(body))[i]);
}
Op ordered_op(const KernelBody& body) { return body.graph.op(ordered_node(body)); }
int64_t wide_bytes(DType dtype) { return is_real(dtype) ? std::max(bits(dtype), 32) / 8 : 8; }

// The elements of a row, and rows.
int64_t row_length(const KernelBody& body) {
  return ordered_operand(body, 0).dim(static_cast<int>(ordered_op(body).integer("axis"))).value();
}
int64_t ordered_rows(const KernelBody& body) {
  return ordered_operand(body, 0).static_elements() / row_length(body);
}

// The last dim, if rows go across it and a warp has enough to do there; else -1.
int column_dim_of(const KernelBody& body) {
  const Type type = ordered_operand(body, 0);
  const int last = type.rank() - 1;
  const bool is_wide = last >= 0 && type.dim(last).value() >= kWarpLanes / 2;
  return is_wide && ordered_op(body).integer("axis") != last ? last : -1;
}

int64_t scan_bytes(const KernelBody& body, const ScanShape& shape) {
  const int64_t numbers = shape.slots() * shape.columns * (shape.pitch() + 2) + 2 * shape.columns +
                          shape.threads / kWarpLanes;
  return numbers * wide_bytes(ordered_operand(body, 0).dtype()) + kBetweenBuffers;
}

int64_t sort_bytes(const KernelBody& body, const SortShape& shape) {
  int64_t bytes = kPositionBytes;
  for (int64_t k = 0; k < ordered_op(body).integer("keys"); ++k)
    bytes += (bits(ordered_operand(body, static_cast<size_t>(k)).dtype()) + 7) / 8;
  return bytes * shape.piece();
}

SortShape shape_of_sort(const KernelBody& body, const BlockSortFields& own) {
  const int axis = static_cast<int>(ordered_op(body).integer("axis"));
  const int64_t kept = body.graph.type(body.graph.outputs()[0]).dim(axis).value();
  return sort_shape(row_length(body), kept, own.warps, own.pairs);
}
SortShape shape_of_sort(const KernelBody& body, const BlockScatterFields& own) {
  const int64_t lookups = ScatterPlaces(body).lookups;
  return sort_shape(lookups, lookups, own.warps, own.pairs);
}

int64_t scatter_bytes(const SortShape& shape) { return 2 * kPositionBytes * shape.piece(); }

// ---- Legality -----------------------------------------------------------------------------------

bool has_open_values(const Graph& graph) {
  const auto is_open = [&](ValueId value) { return !graph.type(value).is_static(); };
  return std::ranges::any_of(graph.inputs(), is_open) ||
         std::ranges::any_of(graph.outputs(), is_open);
}

Status check_ordered_site(const ScheduleSite& site, Opcode opcode) {
  if (!site.target.gpu) return unsupported("blocks of threads need a GPU");
  const std::vector<NodeId>& nodes = site.facts.nodes;
  if (nodes.size() != 1 || site.is_stage() || site.body.graph.opcode(nodes[0]) != opcode)
    return unsupported("the kernel is not one {}", name(opcode));
  if (!site.body.graph.donations().empty())
    return unsupported("a result cannot lie in memory that other threads read");
  if (has_sub_byte_output(site)) return unsupported("threads would share bytes of an output");
  if (has_open_values(site.body.graph)) return unsupported("sizes are not numbers");
  return {};
}

Status check_ordered_row(const ScheduleSite& site) {
  if (ordered_operand(site.body, 0).static_elements() == 0)
    return unsupported("rows have no elements");
  if (const int64_t length = row_length(site.body); length > kMostOrdered)
    return over_limit("a row has {} elements, more than {}", length, kMostOrdered);
  return {};
}

Status check_scatter(const ScheduleSite& site) {
  for (size_t i = 0; i < 3; ++i)
    if (ordered_operand(site.body, i).static_elements() == 0)
      return unsupported("nothing is scattered");
  const ScatterPlaces places(site.body);
  if (std::max(places.lookups, places.places) > kMostOrdered)
    return over_limit("{} updates go to {} places, of {} at most", places.lookups, places.places,
                      kMostOrdered);
  return {};
}

Status check_ordered_field(std::string_view what, int number, const std::vector<int>& numbers) {
  if (std::ranges::find(numbers, number) != numbers.end()) return {};
  return bad_input("{} is {}, not one of {} to {}", what, number, numbers.front(), numbers.back());
}

// The least block is legal for any row.
Status check_ordered_block(int64_t elements, int64_t least, int64_t length) {
  if (elements <= least || elements < 2 * length) return {};
  return bad_input("a block has {} elements at a time, but a row {}", elements, length);
}

Status check_piece(const SortShape& shape) {
  return check_ordered_block(shape.piece(), 2 * kWarpLanes, shape.length);
}

// The numbers with which a block of as many `unit`s is not too large by itself.
std::vector<int> fitting(std::vector<int> numbers, int64_t unit, int64_t length) {
  std::erase_if(numbers, [&](int n) { return n > 1 && n * unit >= 2 * length; });
  return numbers;
}
std::vector<int> fitting_scan(const ScheduleSite& site, std::vector<int> numbers) {
  const int64_t unit = column_dim_of(site.body) < 0 ? kWarpLanes : 1;
  return fitting(std::move(numbers), unit, row_length(site.body));
}
std::vector<int> fitting_sort(const ScheduleSite& site, std::vector<int> numbers) {
  return fitting(std::move(numbers), 2 * kWarpLanes, row_length(site.body));
}
std::vector<int> fitting_scatter(const ScheduleSite& site, std::vector<int> numbers) {
  return fitting(std::move(numbers), 2 * kWarpLanes, ScatterPlaces(site.body).lookups);
}

constexpr auto kWarpCounts = {1, 2, 4, 8, 16, 32};
std::vector<int> scan_warps(const ScheduleSite& site) { return fitting_scan(site, kWarpCounts); }
std::vector<int> scan_points(const ScheduleSite& site) {
  return fitting_scan(site, {1, 2, 4, 8, 16});
}
std::vector<int> scan_parts(const ScheduleSite& site) {
  return fitting_scan(site, {1, 2, 4, 8, 16, 32, 64, 128});
}
std::vector<int> sort_warps(const ScheduleSite& site) { return fitting_sort(site, kWarpCounts); }
std::vector<int> sort_pairs(const ScheduleSite& site) { return fitting_sort(site, {1, 2, 4, 8}); }
std::vector<int> scatter_warps(const ScheduleSite& site) {
  return fitting_scatter(site, kWarpCounts);
}
std::vector<int> scatter_pairs(const ScheduleSite& site) {
  return fitting_scatter(site, {1, 2, 4, 8});
}

const NumberDecision kScanWarps("warps", own_field<BlockScanFields, &BlockScanFields::warps>(),
                                scan_warps);
const NumberDecision kScanPoints("points", own_field<BlockScanFields, &BlockScanFields::points>(),
                                 scan_points);
const NumberDecision kScanParts("parts", own_field<BlockScanFields, &BlockScanFields::parts>(),
                                scan_parts);
const NumberDecision kSortWarps("warps", own_field<BlockSortFields, &BlockSortFields::warps>(),
                                sort_warps);
const NumberDecision kSortPairs("pairs", own_field<BlockSortFields, &BlockSortFields::pairs>(),
                                sort_pairs);
const NumberDecision kScatterWarps("warps",
                                   own_field<BlockScatterFields, &BlockScatterFields::warps>(),
                                   scatter_warps);
const NumberDecision kScatterPairs("pairs",
                                   own_field<BlockScatterFields, &BlockScatterFields::pairs>(),
                                   scatter_pairs);

template <class Fields>
class BlockOrdered : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_body(site));
    if (schedule != Schedule{.own = schedule.own})
      return bad_input("an ordered op has no loops that a schedule orders or divides");
    HONE_TRY(check_fields(site, schedule.get<Fields>()));
    return check_block_memory(site, ordered_shape(site.body, schedule).bytes);
  }
  bool takes(const ScheduleSite& site) const override { return check_body(site).ok(); }
  Schedule simplest(const ScheduleSite&) const override { return {.own = Fields()}; }
  bool is_for_gpu() const override { return true; }

 protected:
  virtual Status check_body(const ScheduleSite& site) const = 0;
  virtual Status check_fields(const ScheduleSite& site, const Fields& own) const = 0;
};

class BlockScan : public BlockOrdered<BlockScanFields> {
 public:
  std::vector<const Decision*> decisions() const override {
    return {&kScanWarps, &kScanPoints, &kScanParts};
  }

 protected:
  Status check_body(const ScheduleSite& site) const override {
    HONE_TRY(check_ordered_site(site, Opcode::cumulative));
    return check_ordered_row(site);
  }
  // Fewer parts than asked for are the same as with another number.
  Status check_fields(const ScheduleSite& site, const BlockScanFields& own) const override {
    HONE_TRY(check_ordered_field("warps", own.warps, scan_warps(site)));
    HONE_TRY(check_ordered_field("points", own.points, scan_points(site)));
    HONE_TRY(check_ordered_field("parts", own.parts, scan_parts(site)));
    const int64_t length = row_length(site.body);
    const ScanShape shape = scan_shape(site.body, own);
    HONE_TRY(check_ordered_block(shape.step(), kWarpLanes / shape.columns, length));
    if (2 * shape.parts > own.parts) return {};
    return bad_input("a row has {} parts, too few for {}: each has a step of {} elements at least",
                     shape.parts, own.parts, shape.step());
  }
};

class BlockSort : public BlockOrdered<BlockSortFields> {
 public:
  std::vector<const Decision*> decisions() const override { return {&kSortWarps, &kSortPairs}; }

 protected:
  Status check_body(const ScheduleSite& site) const override {
    HONE_TRY(check_ordered_site(site, Opcode::sort));
    return check_ordered_row(site);
  }
  Status check_fields(const ScheduleSite& site, const BlockSortFields& own) const override {
    HONE_TRY(check_ordered_field("warps", own.warps, sort_warps(site)));
    HONE_TRY(check_ordered_field("pairs", own.pairs, sort_pairs(site)));
    return check_piece(shape_of_sort(site.body, own));
  }
};

class BlockScatter : public BlockOrdered<BlockScatterFields> {
 public:
  std::vector<const Decision*> decisions() const override {
    return {&kScatterWarps, &kScatterPairs};
  }

 protected:
  Status check_body(const ScheduleSite& site) const override {
    HONE_TRY(check_ordered_site(site, Opcode::scatter));
    return check_scatter(site);
  }
  Status check_fields(const ScheduleSite& site, const BlockScatterFields& own) const override {
    HONE_TRY(check_ordered_field("warps", own.warps, scatter_warps(site)));
    HONE_TRY(check_ordered_field("pairs", own.pairs, scatter_pairs(site)));
    return check_piece(shape_of_sort(site.body, own));
  }
};

int64_t rounded_up(int64_t all, int64_t each) { return (all + each - 1) / each; }

}  // namespace

ScanShape scan_shape(const KernelBody& body, const BlockScanFields& own) {
  ScanShape shape{.threads = own.warps * kWarpLanes, .points = own.points};
  shape.column_dim = column_dim_of(body);
  if (shape.column_dim >= 0) shape.columns = kWarpLanes;
  const int64_t steps = rounded_up(row_length(body), shape.step());
  shape.steps = rounded_up(steps, own.parts);
  shape.parts = rounded_up(steps, shape.steps);
  return shape;
}

ScatterPlaces::ScatterPlaces(const KernelBody& body)
    : x(ordered_operand(body, 0)),
      indices(ordered_operand(body, 1)),
      updates(ordered_operand(body, 2)),
      op(ordered_op(body)),
      dims(op, op.ints("window_dims"), op.ints("inserted_dims"), x, indices) {
  for (size_t k = 0; k < dims.index_map.size(); ++k)
    chosen.push_back(
        {.dim = static_cast<int>(dims.index_map[k]), .component = static_cast<int>(k)});
  for (size_t i = 0; i < dims.operand_batch_dims.size(); ++i)
    chosen.push_back(
        {.dim = static_cast<int>(dims.operand_batch_dims[i]), .batch = dims.batch_ordinals[i]});
  for (Chosen& each : chosen) {
    each.size = x.dim(each.dim).value();
    each.stride = places;
    places *= each.size;
  }
  numbered = dims.batch_dims;
  for (size_t i = 0; i < dims.window_dims.size(); ++i) {
    const auto at = std::ranges::find(chosen, dims.operand_dims[i], &Chosen::dim);
    if (at == chosen.end()) {
      windows.push_back(i);
      continue;
    }
    at->window = dims.window_dims[i];
    numbered.push_back(at->window);
  }
  std::ranges::sort(numbered);  // as updates follow each other
  for (int dim : numbered) lookups *= updates.dim(dim).value();
}

bool is_ordered_by_blocks(const Schedule& schedule) {
  return schedule.if_is<BlockScanFields>() != nullptr ||
         schedule.if_is<BlockSortFields>() != nullptr ||
         schedule.if_is<BlockScatterFields>() != nullptr;
}

OrderedShape ordered_shape(const KernelBody& body, const Schedule& schedule) {
  if (const auto* own = schedule.if_is<BlockScanFields>()) {
    const ScanShape shape = scan_shape(body, *own);
    return {rounded_up(ordered_rows(body), shape.columns) * shape.parts, shape.threads,
            scan_bytes(body, shape)};
  }
  if (const auto* own = schedule.if_is<BlockSortFields>()) {
    const SortShape shape = shape_of_sort(body, *own);
    return {ordered_rows(body) * shape.pieces(), shape.threads, sort_bytes(body, shape)};
  }
  const auto& own = schedule.get<BlockScatterFields>();
  const SortShape shape = shape_of_sort(body, own);
  return {shape.pieces(), shape.threads, scatter_bytes(shape)};
}

const AlgorithmDef& algorithm_block_scan() {
  static const BlockScan def;
  return def;
}
const AlgorithmDef& algorithm_block_sort() {
  static const BlockSort def;
  return def;
}
const AlgorithmDef& algorithm_block_scatter() {
  static const BlockScatter def;
  return def;
}

}  // namespace hone
