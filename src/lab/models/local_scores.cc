#include "lab/models/local_scores.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lab/tpu/features.h"

namespace hone {
namespace {

// to += x weights, where weights are [x.size(), to.size()]
void add_product(std::span<const float> x, const float* weights, std::span<float> to) {
  for (const float each : x) {
    for (size_t j = 0; j < to.size(); ++j) to[j] += each * weights[j];
    weights += to.size();
  }
}

}  // namespace

Result<LocalScores> LocalScores::make(const GraphModel& model, const ConfiguredGraph& given,
                                      size_t config) {
  HONE_TRY(check_fits(model, given));
  if (model.network.reduction != GraphReduction::additive ||
      model.network.passing != MessagePassing::sage)
    return bad_input("the model is of {} with {} reduction; only sums of scores by sage are local",
                     name(model.network.passing), name(model.network.reduction))
        .with_hint("'hone train layout --passing sage --reduction additive' makes such a model");
  if (config >= given.times.size())
    return bad_input("the graph has {} configurations, so there is no number {}",
                     given.times.size(), config);
  const ConfiguredGraph graph = model.hops < 0 ? given : compressed(given, model.hops);
  LocalScores local;
  local.scale_ = model.scale;
  local.config_nodes_ = graph.config_nodes;
  HONE_TRY(local.take_weights(model));
  const ScaledGraph all = scaled(graph, model.scale);
  local.neighbours_.resize(graph.graph.opcodes.size());
  for (size_t i = 0; i < all.sources.size(); ++i)
    local.neighbours_[static_cast<size_t>(all.targets[i])].push_back(
        static_cast<int32_t>(all.sources[i]));
  local.begin(all);
  const std::span<const float> rows = graph.config(config);
  const size_t columns = graph.configs.names.size();
  local.configs_.resize(graph.config_nodes.size() * local.width_);
  std::vector<float> row;
  for (size_t k = 0; k < graph.config_nodes.size(); ++k) {
    local.add_config(rows.subspan(k * columns, columns), row);
    std::ranges::copy(row, local.row_of(local.configs_, k).begin());
  }
  local.levels_.resize(local.layers_.size() + 1);
  local.compute(local.levels_);
  for (size_t i = 0; i < local.nodes(); ++i)
    local.scores_.push_back(local.score_of(&local.levels_.back().x[i * local.width_]));
  local.score_ = std::accumulate(local.scores_.begin(), local.scores_.end(), 0.0);
  local.listed_.resize(local.nodes());
  return local;
}

Status LocalScores::take_weights(const GraphModel& model) {
  width_ = static_cast<size_t>(model.network.width);
  embedding_ = static_cast<size_t>(model.network.embedding);
  const size_t inputs = embedding_ + scale_.nodes.size() + scale_.configs.size() + 1;
  const auto take = [&](const std::string& name, size_t size, std::vector<float>& to) -> Status {
    const auto at = std::ranges::find(model.weights, name, &NamedTensor::name);
    if (at == model.weights.end() || at->tensor.dtype() != DType::f32 ||
        at->tensor.elements() != static_cast<int64_t>(size))
      return bad_input("the model has no weight '{}' of {} numbers", name, size);
    const std::span<const float> numbers = at->tensor.as<float>();
    to.assign(numbers.begin(), numbers.end());
    return {};
  };
  std::vector<float> bias;
  HONE_TRY(take("opcode/weight", static_cast<size_t>(tpu::kLastOpcode + 1) * embedding_, opcode_));
  HONE_TRY(take("input/weight", inputs * width_, input_));
  HONE_TRY(take("input/bias", width_, input_bias_));
  HONE_TRY(take("node/weight", width_, node_));
  HONE_TRY(take("node/bias", 1, bias));
  node_bias_ = bias[0];
  if (model.network.skeleton) {
    std::vector<float> share;
    HONE_TRY(take(std::string(kShareWeight), 1, share));
    for (float& each : node_) each *= share[0];
    node_bias_ *= share[0];
  }
  layers_.resize(static_cast<size_t>(model.network.layers));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = fmt::format("passing{}/", i);
    HONE_TRY(take(name + "self/weight", width_ * width_, layers_[i].self));
    HONE_TRY(take(name + "self/bias", width_, layers_[i].bias));
    HONE_TRY(take(name + "heard/weight", width_ * width_, layers_[i].heard));
  }
  return {};
}

std::span<float> LocalScores::row_of(std::vector<float>& x, size_t node) const {
  return std::span(x).subspan(node * width_, width_);
}

void LocalScores::begin(const ScaledGraph& graph) {
  const size_t columns = scale_.nodes.size();
  fixed_.reserve(nodes() * width_);
  for (size_t i = 0; i < nodes(); ++i) {
    std::vector<float> x = input_bias_;
    const auto opcode = static_cast<size_t>(graph.graph->graph.opcodes[i]);
    add_product(std::span(opcode_).subspan(opcode * embedding_, embedding_), input_.data(), x);
    add_product(std::span(graph.nodes).subspan(i * columns, columns),
                input_.data() + embedding_ * width_, x);
    fixed_.insert(fixed_.end(), x.begin(), x.end());
  }
}

void LocalScores::add_config(std::span<const float> row, std::vector<float>& to) const {
  const float* weights = input_.data() + (embedding_ + scale_.nodes.size()) * width_;
  const float* is_configurable = weights + scale_.configs.size() * width_;
  to.assign(is_configurable, is_configurable + width_);
  for (const ScaledColumn& each : scale_.configs) {
    const float x = each.of(row[static_cast<size_t>(each.column)]);
    if (x != 0) add_product({&x, 1}, weights, to);
    weights += width_;
  }
}

void LocalScores::pass(const Layer& layer, const Level& level, size_t node, float* to) const {
  const std::span<const float> x = std::span(level.x).subspan(node * width_, width_);
  const double share = 1 / std::max(static_cast<double>(neighbours_[node].size()), 1.0);
  std::vector<float> y = layer.bias;
  std::vector<float> heard(width_);
  for (size_t j = 0; j < width_; ++j)
    heard[j] = static_cast<float>(level.heard[node * width_ + j] * share);
  add_product(x, layer.self.data(), y);
  add_product(heard, layer.heard.data(), y);
  for (size_t j = 0; j < width_; ++j) to[j] = x[j] + std::max(y[j], 0.0F);
}

void LocalScores::compute(std::vector<Level>& levels) const {
  levels[0].x = fixed_;
  for (size_t k = 0; k < config_nodes_.size(); ++k) {
    const std::span<float> x = row_of(levels[0].x, static_cast<size_t>(config_nodes_[k]));
    for (size_t j = 0; j < width_; ++j) x[j] += configs_[k * width_ + j];
  }
  for (float& each : levels[0].x) each = std::max(each, 0.0F);
  for (size_t l = 0; l < layers_.size(); ++l) {
    Level& level = levels[l];
    level.heard.assign(nodes() * width_, 0);
    for (size_t i = 0; i < nodes(); ++i)
      for (int32_t other : neighbours_[i])
        for (size_t j = 0; j < width_; ++j)
          level.heard[i * width_ + j] +=
              static_cast<double>(level.x[static_cast<size_t>(other) * width_ + j]);
    levels[l + 1].x.resize(nodes() * width_);
    for (size_t i = 0; i < nodes(); ++i) pass(layers_[l], level, i, &levels[l + 1].x[i * width_]);
  }
}

double LocalScores::score_of(const float* x) const {
  double score = static_cast<double>(node_bias_);
  for (size_t j = 0; j < width_; ++j)
    score += static_cast<double>(x[j]) * static_cast<double>(node_[j]);
  return score;
}

double LocalScores::full_pass() const {
  std::vector<Level> levels(layers_.size() + 1);
  compute(levels);
  double score = 0;
  for (size_t i = 0; i < nodes(); ++i) score += score_of(&levels.back().x[i * width_]);
  return score;
}

double LocalScores::change(size_t node, std::span<const float> row) {
  HONE_CHECK(node < config_nodes_.size(), "configurable node {} of {}", node, config_nodes_.size());
  const auto first = static_cast<size_t>(config_nodes_[node]);
  std::vector<float> now(width_);
  add_config(row, now);
  std::ranges::copy(now, row_of(configs_, node).begin());
  for (size_t j = 0; j < width_; ++j) now[j] = std::max(fixed_[first * width_ + j] + now[j], 0.0F);
  // The nodes that differ behind a level, with what they have there now.
  std::vector<size_t> changed = {first};
  for (size_t l = 0; l < layers_.size(); ++l) {
    Level& level = levels_[l];
    std::vector<size_t> next = changed;
    ++number_;
    for (size_t i : changed) listed_[i] = number_;
    for (size_t c = 0; c < changed.size(); ++c) {
      const std::span<float> x = row_of(level.x, changed[c]);
      for (size_t j = 0; j < width_; ++j) {  // `now` becomes the difference
        const float before = std::exchange(x[j], now[c * width_ + j]);
        now[c * width_ + j] -= before;
      }
      for (int32_t other : neighbours_[changed[c]]) {
        const auto hears = static_cast<size_t>(other);
        for (size_t j = 0; j < width_; ++j)
          level.heard[hears * width_ + j] += static_cast<double>(now[c * width_ + j]);
        if (listed_[hears] != number_) next.push_back(hears);
        listed_[hears] = number_;
      }
    }
    changed = std::move(next);
    now.resize(changed.size() * width_);
    for (size_t c = 0; c < changed.size(); ++c)
      pass(layers_[l], level, changed[c], &now[c * width_]);
  }
  for (size_t c = 0; c < changed.size(); ++c) {
    std::ranges::copy(std::span(now).subspan(c * width_, width_),
                      row_of(levels_.back().x, changed[c]).begin());
    const double score = score_of(&now[c * width_]);
    score_ += score - std::exchange(scores_[changed[c]], score);
  }
  return score_;
}

}  // namespace hone
