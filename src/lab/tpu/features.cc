#include "lab/tpu/features.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace hone::tpu {
namespace {

// Indexed by number. 97 and 101 are opcodes that XLA has no more.
constexpr std::string_view kOpcodes[kLastOpcode + 1] = {"",
                                                        "abs",
                                                        "add",
                                                        "add-dependency",
                                                        "after-all",
                                                        "all-reduce",
                                                        "all-to-all",
                                                        "atan2",
                                                        "batch-norm-grad",
                                                        "batch-norm-inference",
                                                        "batch-norm-training",
                                                        "bitcast",
                                                        "bitcast-convert",
                                                        "broadcast",
                                                        "call",
                                                        "ceil",
                                                        "cholesky",
                                                        "clamp",
                                                        "collective-permute",
                                                        "count-leading-zeros",
                                                        "compare",
                                                        "complex",
                                                        "concatenate",
                                                        "conditional",
                                                        "constant",
                                                        "convert",
                                                        "convolution",
                                                        "copy",
                                                        "copy-done",
                                                        "copy-start",
                                                        "cosine",
                                                        "custom-call",
                                                        "divide",
                                                        "domain",
                                                        "dot",
                                                        "dynamic-slice",
                                                        "dynamic-update-slice",
                                                        "exponential",
                                                        "exponential-minus-one",
                                                        "fft",
                                                        "floor",
                                                        "fusion",
                                                        "gather",
                                                        "get-dimension-size",
                                                        "set-dimension-size",
                                                        "get-tuple-element",
                                                        "imag",
                                                        "infeed",
                                                        "iota",
                                                        "is-finite",
                                                        "log",
                                                        "log-plus-one",
                                                        "and",
                                                        "not",
                                                        "or",
                                                        "xor",
                                                        "map",
                                                        "maximum",
                                                        "minimum",
                                                        "multiply",
                                                        "negate",
                                                        "outfeed",
                                                        "pad",
                                                        "parameter",
                                                        "partition-id",
                                                        "popcnt",
                                                        "power",
                                                        "real",
                                                        "recv",
                                                        "recv-done",
                                                        "reduce",
                                                        "reduce-precision",
                                                        "reduce-window",
                                                        "remainder",
                                                        "replica-id",
                                                        "reshape",
                                                        "reverse",
                                                        "rng",
                                                        "rng-get-and-update-state",
                                                        "rng-bit-generator",
                                                        "round-nearest-afz",
                                                        "rsqrt",
                                                        "scatter",
                                                        "select",
                                                        "select-and-scatter",
                                                        "send",
                                                        "send-done",
                                                        "shift-left",
                                                        "shift-right-arithmetic",
                                                        "shift-right-logical",
                                                        "sign",
                                                        "sine",
                                                        "slice",
                                                        "sort",
                                                        "sqrt",
                                                        "subtract",
                                                        "tanh",
                                                        "trace",
                                                        "transpose",
                                                        "triangular-solve",
                                                        "tuple",
                                                        "tuple-select",
                                                        "while",
                                                        "cbrt",
                                                        "all-gather",
                                                        "collective-permute-start",
                                                        "collective-permute-done",
                                                        "logistic",
                                                        "dynamic-reshape",
                                                        "all-reduce-start",
                                                        "all-reduce-done",
                                                        "reduce-scatter",
                                                        "all-gather-start",
                                                        "all-gather-done",
                                                        "opt-barrier",
                                                        "async-start",
                                                        "async-update",
                                                        "async-done",
                                                        "round-nearest-even",
                                                        "stochastic-convert",
                                                        "tan"};

// The columns that say which type a node has, by XLA's number of the type.
constexpr std::pair<int64_t, std::string_view> kTypes[] = {
    {0, "invalid"}, {1, "pred"},   {2, "s8"},      {3, "s16"},   {4, "s32"},
    {5, "s64"},     {6, "u8"},     {7, "u16"},     {8, "u32"},   {9, "u64"},
    {10, "f16"},    {11, "f32"},   {12, "f64"},    {16, "bf16"}, {15, "c64"},
    {18, "c128"},   {13, "tuple"}, {14, "opaque"}, {17, "token"}};

constexpr size_t kRank = 6;      // dims that columns have
constexpr int64_t kLanes = 128;  // of a register of the machine that the data is of
constexpr int64_t kSublanes = 8;

// One row of features: each is said once, with its name.
class Row {
 public:
  // Either is left out where nobody asks for it.
  Row(std::vector<std::string>* names, std::vector<float>* values)
      : names_(names), values_(values) {}

  void add(std::string name, int64_t value) {
    if (names_ != nullptr) names_->push_back(std::move(name));
    if (values_ != nullptr) values_->push_back(static_cast<float>(value));
  }
  // The first `count`, and `pad` for those that there are not.
  void list(std::string_view name, std::span<const int64_t> values, size_t count, int64_t pad = 0) {
    for (size_t i = 0; i < count; ++i)
      add(fmt::format("{}_{}", name, i), i < values.size() ? values[i] : pad);
  }
  // And the sum and the product of all. They wrap around, as those of the published files do.
  void sequence(std::string_view name, std::span<const int64_t> values, size_t count,
                int64_t empty_product = 1) {
    list(name, values, count);
    uint64_t sum = 0, product = 1;
    for (int64_t value : values) {
      sum += static_cast<uint64_t>(value);
      product *= static_cast<uint64_t>(value);
    }
    add(fmt::format("{}_sum", name), static_cast<int64_t>(sum));
    add(fmt::format("{}_product", name),
        values.empty() ? empty_product : static_cast<int64_t>(product));
  }
  // For each: the rest over whole registers, and the number of these.
  void registers(std::string_view name, std::span<const int64_t> values, size_t count,
                 int64_t size) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t value = i < values.size() ? values[i] : 0;
      add(fmt::format("{}_{}_mod_{}", name, i, size), value % size);
      add(fmt::format("{}_{}_div_{}", name, i, size), value / size);
    }
  }

 private:
  std::vector<std::string>* names_;
  std::vector<float>* values_;
};

// One member of each.
template <class T>
Integers each(const std::vector<T>& all, int64_t T::* member) {
  Integers values;
  for (const T& one : all) values.push_back(one.*member);
  return values;
}

void add_window(Row& row, const std::vector<HloWindowDim>& window) {
  const auto sequence = [&](std::string_view name, int64_t HloWindowDim::* member) {
    row.sequence(fmt::format("window_{}", name), each(window, member), kRank);
  };
  sequence("size", &HloWindowDim::size);
  sequence("stride", &HloWindowDim::stride);
  sequence("padding_low", &HloWindowDim::padding_low);
  sequence("padding_high", &HloWindowDim::padding_high);
  sequence("window_dilation", &HloWindowDim::window_dilation);
  sequence("base_dilation", &HloWindowDim::base_dilation);
  Integers reversed;
  for (const HloWindowDim& dim : window) reversed.push_back(dim.is_reversed ? 1 : 0);
  row.list("window_reversal", reversed, kRank);
  const auto count = std::ranges::count(reversed, 1);
  row.add("window_reversal_true_count", count);
  row.add("window_reversal_false_count", static_cast<int64_t>(reversed.size()) - count);
}

void add_conv(Row& row, const HloConvDims& conv) {
  row.add("conv_input_batch", conv.input_batch);
  row.add("conv_input_feature", conv.input_feature);
  row.list("conv_input_spatial", conv.input_spatial, 4);
  row.add("conv_kernel_input_feature", conv.kernel_input_feature);
  row.add("conv_kernel_output_feature", conv.kernel_output_feature);
  row.list("conv_kernel_spatial", conv.kernel_spatial, 4);
  row.add("conv_output_batch", conv.output_batch);
  row.add("conv_output_feature", conv.output_feature);
}

void add_extended(Row& row, const HloInstruction& op) {
  row.list("dot_lhs_contract", op.dot.lhs_contract, 2, -1);
  row.list("dot_rhs_contract", op.dot.rhs_contract, 2, -1);
  row.list("dot_lhs_batch", op.dot.lhs_batch, 2, -1);
  row.list("dot_rhs_batch", op.dot.rhs_batch, 2, -1);
  row.registers("dim", op.shape.dims, kRank, kLanes);
  row.registers("dim", op.shape.dims, kRank, kSublanes);
}

void add_node(Row& row, const HloInstruction& op, bool is_root, FeatureSet set) {
  row.add("is_root", is_root ? 1 : 0);
  row.add("element_bits", 0);
  for (const auto& [number, name] : kTypes)
    row.add(fmt::format("is_{}", name), op.shape.element_type == number ? 1 : 0);
  row.sequence("dim", op.shape.dims, kRank);
  row.add("tuple_size", op.shape.tuple_size);
  row.add("parameter_number", op.parameter_number);
  row.list("dimensions", op.dimensions, kRank);
  add_window(row, op.window);
  add_conv(row, op.conv);
  row.add("feature_groups", op.feature_groups);
  row.add("batch_groups", op.batch_groups);
  row.sequence("slice_start", each(op.slice, &HloSliceDim::start), 2);
  row.sequence("slice_stride", each(op.slice, &HloSliceDim::stride), 2);
  row.sequence("slice_limit", each(op.slice, &HloSliceDim::limit), 2);
  row.sequence("dynamic_slice_size", op.dynamic_slice_sizes, 2);
  row.sequence("pad_low", each(op.padding, &HloPadDim::low), 2);
  row.sequence("pad_high", each(op.padding, &HloPadDim::high), 2);
  row.add("is_stable", op.is_stable ? 1 : 0);
  row.list("minor_to_major", op.shape.minor_to_major, kRank);
  if (set == FeatureSet::extended) add_extended(row, op);
}

void add_tile(Row& row, const TuningRun& run, FeatureSet set) {
  row.sequence("kernel_bounds", run.kernel, kRank, 0);
  row.sequence("output_bounds", run.output, kRank, 0);
  row.sequence("input_bounds", run.input, kRank, 0);
  if (set == FeatureSet::published) return;
  row.registers("kernel_bounds", run.kernel, kRank, kLanes);
  row.registers("output_bounds", run.output, kRank, kLanes);
}

constexpr std::string_view kLayoutTensors[] = {"output", "input", "kernel"};

// `dims`: of the node's result, which say how large what lies side by side is.
void add_layouts(Row& row, const std::vector<Integers>& tensors, const Integers& dims,
                 FeatureSet set) {
  for (size_t t = 0; t < std::size(kLayoutTensors); ++t)
    row.list(kLayoutTensors[t], t < tensors.size() ? tensors[t] : Integers(), kRank, -1);
  if (set == FeatureSet::published) return;
  Integers minor;
  if (!tensors.empty())
    for (int64_t dim : tensors[0])
      if (dim >= 0 && dim < static_cast<int64_t>(dims.size()))
        minor.push_back(dims[static_cast<size_t>(dim)]);
  row.registers("output_minor", minor, 2, kLanes);
}

// The names are those of a row of nothing.
template <class Add>
std::vector<std::string> names_of(const Add& add) {
  std::vector<std::string> names;
  Row row(&names, nullptr);
  add(row);
  return names;
}

std::vector<std::string> node_names(FeatureSet set) {
  return names_of([&](Row& row) { add_node(row, {}, false, set); });
}
std::vector<std::string> tile_names(FeatureSet set) {
  return names_of([&](Row& row) { add_tile(row, {}, set); });
}
std::vector<std::string> layout_names(FeatureSet set) {
  return names_of([&](Row& row) { add_layouts(row, {}, {}, set); });
}

// ---- The graph ----------------------------------------------------------------------------------

using Positions = std::unordered_map<int64_t, int32_t>;

Result<int32_t> position(const Positions& positions, int64_t id, std::string_view what) {
  const auto at = positions.find(id);
  if (at == positions.end()) return bad_input("there is no {} {}", what, id);
  return at->second;
}

Result<Positions> positions_of(const HloModule& module) {
  Positions positions;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& op : computation.instructions)
      if (!positions.emplace(op.id, static_cast<int32_t>(positions.size())).second)
        return bad_input("two instructions are called {}", op.id);
  return positions;
}

Result<std::vector<std::array<int32_t, 2>>> edges_of(const HloModule& module) {
  const Positions positions = HONE_TRY(positions_of(module));
  Positions roots;
  for (const HloComputation& computation : module.computations)
    if (const auto at = positions.find(computation.root); at != positions.end())
      roots[computation.id] = at->second;
  std::vector<std::array<int32_t, 2>> edges;
  int32_t node = 0;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& op : computation.instructions) {
      for (int64_t operand : op.operands)
        edges.push_back({node, HONE_TRY(position(positions, operand, "instruction"))});
      for (int64_t called : op.called)
        edges.push_back({node, HONE_TRY(position(roots, called, "root of the computation"))});
      ++node;
    }
  std::ranges::sort(edges);
  const auto repeated = std::ranges::unique(edges);
  edges.erase(repeated.begin(), repeated.end());
  for (const auto& [reader, read] : edges)
    if (reader == read) return bad_input("the instruction at {} reads itself", reader);
  return edges;
}

// Where large computations begin: those that only say how to reduce or fuse belong to the next one.
std::vector<int64_t> splits_of(const HloModule& module) {
  std::vector<int64_t> splits = {0};
  int64_t count = 0;
  for (const HloComputation& computation : module.computations) {
    count += static_cast<int64_t>(computation.instructions.size());
    const auto has = [&](std::string_view word) {
      return computation.name.find(word) != std::string::npos;
    };
    if (has("cluster") || has("while") || has("cond")) splits.push_back(count);
  }
  if (splits.back() < count) splits.push_back(count);
  return splits;
}

}  // namespace

int32_t opcode_number(std::string_view opcode) {
  static const auto numbers = [] {
    std::unordered_map<std::string_view, int32_t> numbers;
    for (int32_t i = 1; i <= kLastOpcode; ++i) numbers.emplace(kOpcodes[i], i);
    return numbers;
  }();
  const auto at = numbers.find(opcode);
  return at == numbers.end() ? 0 : at->second;
}

std::span<const std::string> node_feature_names() {
  static const std::vector<std::string> names = node_names(FeatureSet::published);
  return names;
}
std::span<const std::string> tile_feature_names() {
  static const std::vector<std::string> names = tile_names(FeatureSet::published);
  return names;
}
std::span<const std::string> layout_feature_names() {
  static const std::vector<std::string> names = layout_names(FeatureSet::published);
  return names;
}

Result<OpGraph> op_graph_of(const HloModule& module, FeatureSet set) {
  OpGraph graph;
  graph.edges = HONE_TRY(edges_of(module));
  graph.nodes.names = node_names(set);
  Row row(nullptr, &graph.nodes.values);
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& op : computation.instructions) {
      add_node(row, op, op.id == computation.root, set);
      graph.opcodes.push_back(opcode_number(op.opcode));
    }
  return graph;
}

Result<TileGraph> tile_graph_of(const TuningModule& module, FeatureSet set) {
  TileGraph tile;
  tile.graph = HONE_TRY(op_graph_of(module.module, set));
  tile.configs.names = tile_names(set);
  Row row(nullptr, &tile.configs.values);
  int64_t normalizer = 0;
  for (const TuningRun& run : module.runs) {
    if (!run.has_tile) return bad_input("'{}' has a run without a tile", module.module.name);
    if (!run.is_timed()) continue;
    add_tile(row, run, set);
    tile.runtimes.push_back(run.nanoseconds);
    if (run.is_default && normalizer == 0) normalizer = run.nanoseconds;
  }
  if (normalizer == 0) return bad_input("'{}' has no timed default run", module.module.name);
  tile.normalizers.assign(tile.runtimes.size(), normalizer);
  return tile;
}

Result<LayoutGraph> layout_graph_of(const TuningModule& module, FeatureSet set) {
  LayoutGraph layout;
  layout.graph = HONE_TRY(op_graph_of(module.module, set));
  std::vector<const HloShape*> shapes;
  for (const HloComputation& computation : module.module.computations)
    for (const HloInstruction& op : computation.instructions) shapes.push_back(&op.shape);
  for (int64_t node : module.config_nodes) {
    if (node < 0 || node >= static_cast<int64_t>(shapes.size()))
      return bad_input("the configurable node {} is not one of the {} instructions", node,
                       shapes.size());
    layout.config_nodes.push_back(static_cast<int32_t>(node));
  }
  layout.configs.names = layout_names(set);
  Row row(nullptr, &layout.configs.values);
  for (const TuningRun& run : module.runs) {
    if (!run.has_layout || !run.is_timed()) continue;
    if (run.nodes.size() != layout.config_nodes.size())
      return bad_input("a configuration has {} nodes, but {} are configurable", run.nodes.size(),
                       layout.config_nodes.size());
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      if (run.nodes[i].size() > std::size(kLayoutTensors))
        return bad_input("a configuration has {} tensors of a node, more than {}",
                         run.nodes[i].size(), std::size(kLayoutTensors));
      add_layouts(row, run.nodes[i], shapes[static_cast<size_t>(layout.config_nodes[i])]->dims,
                  set);
    }
    layout.runtimes.push_back(run.nanoseconds);
  }
  layout.splits = splits_of(module.module);
  return layout;
}

}  // namespace hone::tpu
