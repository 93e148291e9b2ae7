#include "lab/tpu/graph.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lab/tpu/features.h"

namespace hone::tpu {
namespace {

// ---- Reading ------------------------------------------------------------------------------------

// The arrays of a file by name, each asked for its type and shape.
class Arrays {
 public:
  explicit Arrays(std::span<const NamedTensor> arrays) : arrays_(arrays) {}

  const Tensor* find(std::string_view name) const {
    for (const NamedTensor& array : arrays_)
      if (array.name == name) return &array.tensor;
    return nullptr;
  }
  // -1 stands for any size.
  Result<Tensor> need(std::string_view name, std::span<const DType> dtypes,
                      std::initializer_list<int64_t> shape) const {
    const Tensor* tensor = find(name);
    if (tensor == nullptr) return bad_input("the array '{}' is missing", name);
    if (std::ranges::find(dtypes, tensor->dtype()) == dtypes.end())
      return bad_input("the array '{}' is {}, not {}", name, hone::name(tensor->dtype()),
                       hone::name(dtypes[0]));
    const Ints dims = tensor->type().static_dims();
    std::vector<std::string> wanted;
    for (int64_t size : shape) wanted.push_back(size < 0 ? "any" : std::to_string(size));
    if (!std::ranges::equal(dims, shape,
                            [](int64_t is, int64_t wanted) { return wanted < 0 || is == wanted; }))
      return bad_input("the array '{}' is {}, its shape should be [{}]", name,
                       tensor->type().to_string(), join(wanted, ", "));
    return *tensor;
  }

  template <class T>
  Result<std::vector<T>> integers(std::string_view name, int64_t size) const {
    return integers_of<T>(HONE_TRY(need(name, kIntegers, {size})), name);
  }
  // The shape of the published files, where they are one row.
  Result<std::vector<int64_t>> splits(std::string_view name) const {
    const Tensor* tensor = find(name);
    const bool is_row = tensor != nullptr && tensor->type().rank() == 2;
    return integers_of<int64_t>(
        HONE_TRY(is_row ? need(name, kIntegers, {1, -1}) : need(name, kIntegers, {-1})), name);
  }
  Result<std::vector<std::string>> names(std::string_view name, int64_t columns) const {
    constexpr DType kDtypes[] = {DType::u8};
    const Tensor tensor = HONE_TRY(need(name, kDtypes, {-1}));
    const std::span<const std::byte> bytes = tensor.bytes();
    std::vector<std::string> names;
    for (std::string_view each :
         split({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, '\n'))
      names.emplace_back(each);
    if (static_cast<int64_t>(names.size()) != columns)
      return bad_input("the array '{}' has {} names, but there are {} columns", name, names.size(),
                       columns);
    return names;
  }

 private:
  static constexpr DType kIntegers[] = {DType::i64, DType::i32, DType::u8, DType::u16, DType::i16};

  template <class T>
  static Result<std::vector<T>> integers_of(const Tensor& tensor, std::string_view name) {
    std::vector<int64_t> wide(static_cast<size_t>(tensor.elements()));
    tensor.read_integers(0, wide);
    std::vector<T> narrow;
    for (int64_t each : wide) {
      if (each < std::numeric_limits<T>::min() || each > std::numeric_limits<T>::max())
        return bad_input("the array '{}' has {}, which is out of range", name, each);
      narrow.push_back(static_cast<T>(each));
    }
    return narrow;
  }

  std::span<const NamedTensor> arrays_;
};

// ---- Limits -------------------------------------------------------------------------------------

struct Limit {
  std::string_view name;
  std::vector<int64_t> most;  // by axis
};

// The arrays that may be larger than kMaxConfigs, or must be smaller.
const std::vector<Limit>& limits() {
  static const std::vector<Limit> limits = {
      {"node_feat", {kMaxNodes, kMaxColumns}},
      {"node_opcode", {kMaxNodes}},
      {"edge_index", {kMaxEdges, 2}},
      {"config_feat", {kMaxConfigs, kMaxColumns}},
      {"node_config_ids", {kMaxNodes}},
      {"node_config_feat", {kMaxConfigs, kMaxNodes, kMaxColumns}},
  };
  return limits;
}

// The type of an array as its header declares it.
Status check_size(std::string_view name, Type type) {
  const Ints dims = type.static_dims();
  const auto limit = std::ranges::find(limits(), name, &Limit::name);
  if (limit == limits().end() || limit->most.size() != dims.size()) {
    if (type.static_elements() <= kMaxConfigs) return {};
    return over_limit("it is {}; there may be at most {} numbers", type.to_string(), kMaxConfigs);
  }
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] > limit->most[axis])
      return over_limit("it is {}; axis {} may be at most {}", type.to_string(), axis,
                        limit->most[axis]);
  return {};
}

// The arrays of a file as their headers declare them.
class Declared {
 public:
  Status add(std::string_view name, Type type) {
    HONE_TRY(check_size(name, type));
    bytes_ += type.static_bytes();
    if (name == "node_feat" && type.rank() == 2) nodes_ = type.static_dims()[0];
    if (name == "node_config_ids") config_nodes_ = type.static_elements();
    return {};
  }
  Status check(int64_t file_bytes) const {
    if (config_nodes_ > nodes_)
      return bad_input("the array 'node_config_ids' has {} nodes, but the graph has {}",
                       config_nodes_, nodes_);
    if (bytes_ > kFreeArrayBytes + file_bytes * kMaxArrayInflation)
      return over_limit("its arrays have {}, more than {} and {} times the {} of the file",
                        format_bytes(bytes_), format_bytes(kFreeArrayBytes), kMaxArrayInflation,
                        format_bytes(file_bytes));
    return {};
  }

 private:
  int64_t nodes_ = kMaxNodes, config_nodes_ = 0;
  int64_t bytes_ = 0;
};

constexpr DType kF32[] = {DType::f32};

Result<bool> is_wide(const Arrays& arrays) {
  if (arrays.find("feature_version") == nullptr) return false;
  const int64_t version = HONE_TRY(arrays.integers<int64_t>("feature_version", 1))[0];
  if (version != kFeatureVersion)
    return bad_input("its features are of version {}, but this hone has version {}", version,
                     kFeatureVersion);
  return true;
}

// `values` with the published number of columns, or any number with names.
Result<Features> features_of(const Arrays& arrays, const Tensor& tensor, std::string_view name,
                             std::span<const std::string> published) {
  const int64_t columns = tensor.type().static_dims().back();
  Features features;
  if (HONE_TRY(is_wide(arrays))) {
    features.names = HONE_TRY(arrays.names(fmt::format("{}_names", name), columns));
    if (features.names.size() < published.size() ||
        !std::ranges::equal(published, std::span(features.names).first(published.size())))
      return bad_input("the first names of '{}_names' are not the published ones", name);
  } else if (columns == static_cast<int64_t>(published.size())) {
    features.names.assign(published.begin(), published.end());
  } else {
    return bad_input("the array '{}' has {} columns, not {}, and the file has no 'feature_version'",
                     name, columns, published.size());
  }
  const std::span<const float> values = tensor.as<float>();
  features.values.assign(values.begin(), values.end());
  return features;
}

Result<OpGraph> graph_of(const Arrays& arrays) {
  OpGraph graph;
  graph.nodes = HONE_TRY(features_of(arrays, HONE_TRY(arrays.need("node_feat", kF32, {-1, -1})),
                                     "node_feat", node_feature_names()));
  graph.opcodes =
      HONE_TRY(arrays.integers<int32_t>("node_opcode", static_cast<int64_t>(graph.nodes.rows())));
  constexpr DType kDtypes[] = {DType::i32, DType::i64};
  const Tensor edges = HONE_TRY(arrays.need("edge_index", kDtypes, {-1, 2}));
  std::vector<int64_t> ends(static_cast<size_t>(edges.elements()));
  edges.read_integers(0, ends);
  const auto nodes = static_cast<int64_t>(graph.opcodes.size());
  for (size_t i = 0; i + 1 < ends.size(); i += 2) {
    for (int64_t end : {ends[i], ends[i + 1]})
      if (end < 0 || end >= nodes)
        return bad_input("the array 'edge_index' has the node {}, but the graph has {}", end,
                         nodes);
    if (ends[i] == ends[i + 1])
      return bad_input("the array 'edge_index' has an edge from the node {} to itself", ends[i]);
    graph.edges.push_back({static_cast<int32_t>(ends[i]), static_cast<int32_t>(ends[i + 1])});
  }
  return graph;
}

Status check_features(const Features& features, std::string_view name) {
  for (size_t i = 0; i < features.values.size(); ++i)
    if (!std::isfinite(features.values[i]))
      return bad_input("the array '{}' has {} in row {}", name, features.values[i],
                       i / features.names.size());
  return {};
}

Status check_times(std::span<const int64_t> times, std::string_view name) {
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] <= 0)
      return bad_input("the array '{}' has a time of {} ns at {}", name, times[i], i);
  return {};
}

Status check_graph(const OpGraph& graph) {
  if (graph.opcodes.empty()) return bad_input("the graph has no nodes");
  HONE_TRY(check_features(graph.nodes, "node_feat"));
  for (size_t i = 0; i < graph.opcodes.size(); ++i)
    if (graph.opcodes[i] < 0 || graph.opcodes[i] > kLastOpcode)
      return bad_input("the array 'node_opcode' has {} at {}; opcodes are 0 to {}",
                       graph.opcodes[i], i, kLastOpcode);
  return {};
}

// ---- Writing ------------------------------------------------------------------------------------

template <class T>
void add(std::vector<NamedTensor>& arrays, std::string name, DType dtype, Dims dims,
         std::span<const T> values) {
  arrays.push_back({std::move(name), Tensor::of(Type::get(dtype, std::move(dims)), values)});
}

Dims dims_of(std::initializer_list<size_t> sizes) {
  Dims dims;
  for (size_t size : sizes) dims.push_back(static_cast<int64_t>(size));
  return dims;
}

void add_names(std::vector<NamedTensor>& arrays, std::string name, const Features& features) {
  const std::string text = join(features.names, "\n");
  add(arrays, std::move(name), DType::u8, dims_of({text.size()}),
      std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

void add_graph(std::vector<NamedTensor>& arrays, const OpGraph& graph) {
  add(arrays, "node_feat", DType::f32, dims_of({graph.nodes.rows(), graph.nodes.names.size()}),
      std::span<const float>(graph.nodes.values));
  add(arrays, "node_opcode", DType::i32, dims_of({graph.opcodes.size()}),
      std::span<const int32_t>(graph.opcodes));
  std::vector<int32_t> ends;
  for (const auto& edge : graph.edges) ends.insert(ends.end(), edge.begin(), edge.end());
  add(arrays, "edge_index", DType::i32, dims_of({graph.edges.size(), 2}),
      std::span<const int32_t>(ends));
}

// If the columns are others than the published ones.
void add_version(std::vector<NamedTensor>& arrays, const OpGraph& graph, const Features& configs,
                 std::string_view name, size_t published) {
  if (graph.nodes.names.size() == kNodeFeatures && configs.names.size() == published) return;
  add_names(arrays, "node_feat_names", graph.nodes);
  add_names(arrays, fmt::format("{}_names", name), configs);
  const int64_t version = kFeatureVersion;
  add(arrays, "feature_version", DType::i64, dims_of({1}), std::span<const int64_t>(&version, 1));
}

void cut(Features& features, size_t columns, std::vector<std::string>& lost) {
  if (features.names.size() <= columns) return;
  std::vector<float> values;
  for (size_t i = 0; i < features.rows(); ++i) {
    const std::span<const float> row = features.row(i).first(columns);
    values.insert(values.end(), row.begin(), row.end());
  }
  lost.insert(lost.end(), features.names.begin() + static_cast<std::ptrdiff_t>(columns),
              features.names.end());
  features.names.resize(columns);
  features.values = std::move(values);
}

template <class T>
Result<T> read(const std::filesystem::path& path, Result<T> (*make)(std::span<const NamedTensor>)) {
  Result<T> graph = make(HONE_TRY(read_arrays(path)));
  if (!graph.ok()) return std::move(graph).error().within(path.native());
  return graph;
}

}  // namespace

Result<std::vector<NamedTensor>> read_arrays(const std::filesystem::path& path) {
  Declared declared;
  const auto declare = [&](std::string_view name, Type type) -> Result<bool> {
    HONE_TRY(declared.add(name, type));
    return false;
  };
  HONE_TRY(read_npz(path, declare));
  std::error_code failed;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, failed));
  if (Status good = declared.check(failed ? 0 : size); !good.ok())
    return std::move(good).error().within(path.native());
  // Again, in case that the file is another one by now.
  return read_npz(path, [](std::string_view name, Type type) -> Result<bool> {
    HONE_TRY(check_size(name, type));
    return true;
  });
}

Result<TileGraph> tile_graph_of(std::span<const NamedTensor> given) {
  const Arrays arrays(given);
  TileGraph tile;
  tile.graph = HONE_TRY(graph_of(arrays));
  tile.configs = HONE_TRY(features_of(arrays, HONE_TRY(arrays.need("config_feat", kF32, {-1, -1})),
                                      "config_feat", tile_feature_names()));
  const auto count = static_cast<int64_t>(tile.configs.rows());
  tile.runtimes = HONE_TRY(arrays.integers<int64_t>("config_runtime", count));
  tile.normalizers = HONE_TRY(arrays.integers<int64_t>("config_runtime_normalizers", count));
  HONE_TRY(check(tile));
  return tile;
}

Result<LayoutGraph> layout_graph_of(std::span<const NamedTensor> given) {
  const Arrays arrays(given);
  LayoutGraph layout;
  layout.graph = HONE_TRY(graph_of(arrays));
  layout.config_nodes = HONE_TRY(arrays.integers<int32_t>("node_config_ids", -1));
  layout.runtimes = HONE_TRY(arrays.integers<int64_t>("config_runtime", -1));
  const Tensor configs =
      HONE_TRY(arrays.need("node_config_feat", kF32,
                           {static_cast<int64_t>(layout.runtimes.size()),
                            static_cast<int64_t>(layout.config_nodes.size()), -1}));
  layout.configs =
      HONE_TRY(features_of(arrays, configs, "node_config_feat", layout_feature_names()));
  if (arrays.find("node_splits") != nullptr) layout.splits = HONE_TRY(arrays.splits("node_splits"));
  HONE_TRY(check(layout));
  return layout;
}

Result<TileGraph> read_tile_npz(const std::filesystem::path& path) {
  return read<TileGraph>(path, &tile_graph_of);
}

Result<LayoutGraph> read_layout_npz(const std::filesystem::path& path) {
  return read<LayoutGraph>(path, &layout_graph_of);
}

std::vector<NamedTensor> arrays_of(const TileGraph& tile) {
  std::vector<NamedTensor> arrays;
  add_graph(arrays, tile.graph);
  add(arrays, "config_feat", DType::f32, dims_of({tile.configs.rows(), tile.configs.names.size()}),
      std::span<const float>(tile.configs.values));
  add(arrays, "config_runtime", DType::i64, dims_of({tile.runtimes.size()}),
      std::span<const int64_t>(tile.runtimes));
  add(arrays, "config_runtime_normalizers", DType::i64, dims_of({tile.normalizers.size()}),
      std::span<const int64_t>(tile.normalizers));
  add_version(arrays, tile.graph, tile.configs, "config_feat", kTileFeatures);
  return arrays;
}

std::vector<NamedTensor> arrays_of(const LayoutGraph& layout) {
  std::vector<NamedTensor> arrays;
  add_graph(arrays, layout.graph);
  add(arrays, "node_config_ids", DType::i32, dims_of({layout.config_nodes.size()}),
      std::span<const int32_t>(layout.config_nodes));
  add(arrays, "node_config_feat", DType::f32,
      dims_of({layout.runtimes.size(), layout.config_nodes.size(), layout.configs.names.size()}),
      std::span<const float>(layout.configs.values));
  // As published, if the times fit.
  const bool is_narrow = std::ranges::all_of(
      layout.runtimes, [](int64_t each) { return each <= std::numeric_limits<int32_t>::max(); });
  const std::vector<int32_t> narrow(layout.runtimes.begin(), layout.runtimes.end());
  if (is_narrow)
    add(arrays, "config_runtime", DType::i32, dims_of({narrow.size()}),
        std::span<const int32_t>(narrow));
  else
    add(arrays, "config_runtime", DType::i64, dims_of({layout.runtimes.size()}),
        std::span<const int64_t>(layout.runtimes));
  if (!layout.splits.empty())
    add(arrays, "node_splits", DType::i64, dims_of({layout.splits.size()}),
        std::span<const int64_t>(layout.splits));
  add_version(arrays, layout.graph, layout.configs, "node_config_feat", kLayoutFeatures);
  return arrays;
}

std::vector<std::string> keep_published(TileGraph& tile) {
  std::vector<std::string> lost;
  cut(tile.graph.nodes, kNodeFeatures, lost);
  cut(tile.configs, kTileFeatures, lost);
  return lost;
}

std::vector<std::string> keep_published(LayoutGraph& layout) {
  std::vector<std::string> lost;
  cut(layout.graph.nodes, kNodeFeatures, lost);
  cut(layout.configs, kLayoutFeatures, lost);
  return lost;
}

Status check(const TileGraph& tile) {
  HONE_TRY(check_graph(tile.graph));
  HONE_TRY(check_features(tile.configs, "config_feat"));
  HONE_TRY(check_times(tile.runtimes, "config_runtime"));
  return check_times(tile.normalizers, "config_runtime_normalizers");
}

Status check(const LayoutGraph& layout) {
  HONE_TRY(check_graph(layout.graph));
  HONE_TRY(check_features(layout.configs, "node_config_feat"));
  HONE_TRY(check_times(layout.runtimes, "config_runtime"));
  const auto nodes = static_cast<int64_t>(layout.graph.opcodes.size());
  for (int32_t node : layout.config_nodes)
    if (node < 0 || node >= nodes)
      return bad_input("the array 'node_config_ids' has the node {}, but the graph has {}", node,
                       nodes);
  for (size_t i = 0; i < layout.splits.size(); ++i)
    if (layout.splits[i] < (i == 0 ? 0 : layout.splits[i - 1]) || layout.splits[i] > nodes)
      return bad_input("the array 'node_splits' has {} at {}", layout.splits[i], i);
  return {};
}

}  // namespace hone::tpu
