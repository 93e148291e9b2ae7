#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cost/model_file.h"
#include "formats/safetensors.h"
#include "lab/models/graph_model.h"
#include "log/hash_text.h"

// Files of graph models.

namespace hone {
namespace {

constexpr int64_t kMostWidth = 4096, kMostLayers = 64, kMostHops = 1000;
constexpr int64_t kMostColumns = 1 << 16;

// A row of three numbers for each column: which one, mean, factor.
NamedTensor tensor_of(std::string name, std::span<const ScaledColumn> columns) {
  std::vector<float> numbers;
  for (const ScaledColumn& each : columns)
    numbers.insert(numbers.end(), {static_cast<float>(each.column), each.mean, each.factor});
  return {std::move(name), Tensor::of(Type::get(DType::f32, {std::ssize(columns), 3}),
                                      std::span<const float>(numbers))};
}

class Reader {
 public:
  explicit Reader(const Safetensors& content) : content_(content) {}

  Result<GraphModel> run() {
    const std::string format = HONE_TRY(text("format"));
    if (format != kGraphModelFormat)
      return bad_input("the format is '{}', not '{}'", excerpt(format), kGraphModelFormat);
    if (HONE_TRY(text("checksum")) != hex_text(checksum_of(content_)))
      return bad_input("the checksum does not fit: the file is damaged");
    const int64_t version = HONE_TRY(number("features", 0, INT32_MAX));
    if (version != tpu::kFeatureVersion)
      return bad_input("the model knows features of version {}, this hone has {}", version,
                       tpu::kFeatureVersion)
          .with_hint("'hone train layout' makes a model for this hone");
    GraphNetworkOptions& network = model_.network;
    network.passing = HONE_TRY(one_of<MessagePassing>("passing", kMessagePassings));
    network.reduction = HONE_TRY(one_of<GraphReduction>("reduction", kGraphReductions));
    network.loss = HONE_TRY(one_of<GraphLoss>("loss", kGraphLosses));
    network.compares = HONE_TRY(number("compares", 0, 1)) == 1;
    network.skeleton = HONE_TRY(number("skeleton", 0, 1)) == 1;
    network.width = HONE_TRY(number("width", 1, kMostWidth));
    network.embedding = HONE_TRY(number("embedding", 1, kMostWidth));
    network.layers = HONE_TRY(number("layers", 0, kMostLayers));
    model_.hops = HONE_TRY(number("hops", -1, kMostHops));
    model_.by_node = HONE_TRY(number("by_node", 0, 1)) == 1;
    model_.segments = HONE_TRY(number("segments", 0, INT32_MAX));
    if (network.skeleton && (network.compares || model_.segments > 0))
      return bad_input("a model with a skeleton can neither compare nor sum segments");
    if (const std::string target = HONE_TRY(text("target")); !target.empty()) {
      const std::optional<uint64_t> hash = parse_hash(target);
      if (!hash) return bad_input("the entry 'target' is not a fingerprint");
      model_.target = *hash;
    }
    model_.programs = HONE_TRY(lines("programs"));
    model_.node_columns = HONE_TRY(lines("node_columns"));
    model_.config_columns = HONE_TRY(lines("config_columns"));
    HONE_TRY(read_scale("scale/nodes", model_.node_columns.size(), model_.scale.nodes));
    HONE_TRY(read_scale("scale/configs", model_.config_columns.size(), model_.scale.configs));
    for (const NamedTensor& each : content_.tensors)
      if (!each.name.starts_with("scale/"))
        model_.weights.push_back(
            {each.name, Tensor::copy_of(each.tensor.type(), each.tensor.bytes())});
    return std::move(model_);
  }

 private:
  Result<std::string> text(const std::string& key) const {
    const auto at = content_.metadata.find(key);
    if (at == content_.metadata.end()) return bad_input("the entry '{}' is missing", key);
    return at->second;
  }
  Result<int64_t> number(const std::string& key, int64_t low, int64_t high) const {
    const Result<int64_t> number = parse_int(HONE_TRY(text(key)));
    if (!number.ok() || *number < low || *number > high)
      return bad_input("the entry '{}' is not a number from {} to {}", key, low, high);
    return *number;
  }
  template <class Choice>
  Result<Choice> one_of(const std::string& key, int64_t count) const {
    const std::string word = HONE_TRY(text(key));
    for (int64_t i = 0; i < count; ++i)
      if (name(static_cast<Choice>(i)) == word) return static_cast<Choice>(i);
    return bad_input("the entry '{}' is '{}', which this hone does not know", key, excerpt(word));
  }
  Result<std::vector<std::string>> lines(const std::string& key) const {
    std::vector<std::string> lines;
    const std::string all = HONE_TRY(text(key));
    for (std::string_view line : split(all, '\n')) lines.emplace_back(line);
    return lines;
  }
  Status read_scale(std::string_view key, size_t columns, std::vector<ScaledColumn>& to) const {
    const Tensor* tensor = content_.find(key);
    if (tensor == nullptr) return bad_input("the tensor '{}' is missing", key);
    const Type type = tensor->type();
    if (type.dtype() != DType::f32 || type.rank() != 2 || !type.dim(1).is(3) ||
        type.dim(0).value() > kMostColumns)
      return bad_input("the tensor '{}' is {}, not f32[any, 3]", key, type.to_string());
    const std::span<const float> numbers = tensor->as<float>();
    for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
      const float column = numbers[i];
      if (!(column >= 0 && column < static_cast<float>(columns)) ||
          !std::isfinite(numbers[i + 1]) || !std::isfinite(numbers[i + 2]))
        return bad_input("the tensor '{}' has no column in row {}", key, i / 3);
      to.push_back({static_cast<int64_t>(column), numbers[i + 1], numbers[i + 2]});
    }
    return {};
  }

  const Safetensors& content_;
  GraphModel model_;
};

}  // namespace

Status write_graph_model(const std::filesystem::path& path, const GraphModel& model) {
  const GraphNetworkOptions& network = model.network;
  Safetensors content;
  content.metadata = {{"format", std::string(kGraphModelFormat)},
                      {"features", std::to_string(tpu::kFeatureVersion)},
                      {"passing", std::string(name(network.passing))},
                      {"reduction", std::string(name(network.reduction))},
                      {"loss", std::string(name(network.loss))},
                      {"compares", network.compares ? "1" : "0"},
                      {"skeleton", network.skeleton ? "1" : "0"},
                      {"width", std::to_string(network.width)},
                      {"embedding", std::to_string(network.embedding)},
                      {"layers", std::to_string(network.layers)},
                      {"hops", std::to_string(model.hops)},
                      {"by_node", model.by_node ? "1" : "0"},
                      {"segments", std::to_string(model.segments)},
                      {"target", model.target == 0 ? "" : hash_text(model.target)},
                      {"programs", join(model.programs, "\n")},
                      {"node_columns", join(model.node_columns, "\n")},
                      {"config_columns", join(model.config_columns, "\n")}};
  content.tensors = model.weights;
  content.tensors.push_back(tensor_of("scale/nodes", model.scale.nodes));
  content.tensors.push_back(tensor_of("scale/configs", model.scale.configs));
  content.metadata["checksum"] = hex_text(checksum_of(content));
  return write_safetensors(path, content);
}

Result<GraphModel> read_graph_model(const std::filesystem::path& path) {
  const Safetensors content = HONE_TRY(read_safetensors(path));
  Result<GraphModel> model = Reader(content).run();
  if (!model.ok()) return Error(model.error()).within(path.native());
  return model;
}

}  // namespace hone
