#include "lab/models/segment_slates.h"

#include <algorithm>

#include "learn/graph_layers.h"

namespace hone {
namespace {}  // namespace

SegmentSums::SegmentSums(const GraphNetworkOptions& network, const CompileOptions& compile)
    : network_(network), compile_(compile) {
  compile_.progress = nullptr;
}

Result<Tensor> SegmentSums::run(const Batch& batch, std::span<const NamedTensor> weights) {
  if (executable_ == nullptr) HONE_TRY(compile(batch));
  std::vector<Tensor> inputs;
  for (const Network::Port& port : ports_) {
    if (port.role == Network::Role::input) {
      inputs.push_back(batch.find(port.name)->second);
      continue;
    }
    const auto at = std::ranges::find(weights, port.name, &NamedTensor::name);
    HONE_CHECK(at != weights.end(), "the network has no weight '{}'", port.name);
    inputs.push_back(at->tensor);
  }
  return HONE_TRY(executable_->run(inputs))[0];
}

Status SegmentSums::compile(const Batch& batch) {
  const BatchTypes types = types_of(batch);
  Builder b("segments");
  Network net(b, Network::Mode::evaluation, types);
  const Value sums = segment_sum(node_states(net, network_), segments_in(net, "graphs"));
  const Graph graph = HONE_TRY(b.finish(std::vector{sums}));
  ports_ = net.ports();
  executable_ = HONE_TRY(Compilation(graph, HONE_TRY(host_target()), compile_).executable());
  return {};
}

SegmentSlates::SegmentSlates(std::vector<SegmentedGraph>& graphs, const GraphScale& scale,
                             const GraphTraining& options, const SegmentOptions& segments)
    : graphs_(graphs), scale_(scale), options_(options), segments_(segments), rng_(options.seed) {
  for (const SegmentedGraph& graph : graphs)
    for (const ScaledGraph& segment : graph.scaled) room_.hold(segment);
  draw();
}

Result<Batch> SegmentSlates::batch(std::span<const int64_t> /*samples*/, int64_t /*bucket*/) const {
  std::vector<Slate> slates;
  std::vector<float> others, weights;
  for (const Drawn& each : drawn_) {
    slates.push_back(each.slate);
    const SegmentedGraph& graph = graphs_[each.graph];
    weights.push_back(segments_.corrects
                          ? static_cast<float>(segment_weight(segments_, graph.segments.size()))
                          : 1.0F);
    for (size_t config : each.slate.configs) add_others(graph, each, config, others);
  }
  Batch batch = HONE_TRY(graph_batch(slates, scale_, room_, false));
  const Dim width = options_.network.width;
  batch.insert_or_assign(
      "others", Tensor::of(reals({size(), options_.slate, width}), std::span<const float>(others)));
  batch.insert_or_assign("weight",
                         Tensor::of(reals({size(), 1, 1}), std::span<const float>(weights)));
  return batch;
}

void SegmentSlates::draw() {
  drawn_.clear();
  for (int64_t i = 0; i < size(); ++i) {
    Drawn& one = drawn_.emplace_back();
    one.graph = rng_.below(graphs_.size());
    const SegmentedGraph& graph = graphs_[one.graph];
    one.segment = rng_.below(graph.segments.size());
    one.slate = {&graph.scaled[one.segment], draw_configs(graph.times, options_.slate, rng_)};
    for (size_t s = 0; s < graph.segments.size(); ++s)
      one.counts.push_back(s != one.segment && rng_.chance(segments_.keeps));
  }
}

Status SegmentSlates::refresh(SegmentSums& summer, const Batch& batch,
                              std::span<const NamedTensor> weights) {
  const Tensor sums = HONE_TRY(summer.run(batch, weights));
  size_t row = 0;
  for (const Drawn& each : drawn_)
    for (size_t config : each.slate.configs)
      write(graphs_[each.graph].tables[each.segment], config, sums, row++);
  return {};
}

Status SegmentSlates::refresh_all(SegmentSums& summer, std::span<const NamedTensor> weights) {
  for (SegmentedGraph& graph : graphs_)
    for (size_t s = 0; s < graph.segments.size(); ++s)
      for (size_t first = 0; first < graph.times.size();) {
        // As many as a step has, so that one compiled network takes them.
        std::vector<Slate> slates;
        std::vector<size_t> configs;
        for (int64_t i = 0; i < size(); ++i) {
          Slate slate = {&graph.scaled[s], {}};
          for (int64_t c = 0; c < options_.slate; ++c)
            slate.configs.push_back(std::min(first++, graph.times.size() - 1));
          configs.insert(configs.end(), slate.configs.begin(), slate.configs.end());
          slates.push_back(std::move(slate));
        }
        const Batch batch = HONE_TRY(graph_batch(slates, scale_, room_, false));
        const Tensor sums = HONE_TRY(summer.run(batch, weights));
        for (size_t row = 0; row < configs.size(); ++row)
          write(graph.tables[s], configs[row], sums, row);
      }
  return {};
}

void SegmentSlates::add_others(const SegmentedGraph& graph, const Drawn& drawn, size_t config,
                               std::vector<float>& others) const {
  const auto width = static_cast<size_t>(options_.network.width);
  std::vector<float> sum(width);
  for (size_t s = 0; s < graph.segments.size(); ++s)
    for (size_t j = 0; drawn.counts[s] && j < width; ++j)
      sum[j] += graph.tables[s][config * width + j];
  others.insert(others.end(), sum.begin(), sum.end());
}

void SegmentSlates::write(std::vector<float>& table, size_t config, const Tensor& sums,
                          size_t row) const {
  const auto width = static_cast<size_t>(options_.network.width);
  const std::span<const float> from = sums.as<float>().subspan(row * width, width);
  std::ranges::copy(from, table.begin() + static_cast<std::ptrdiff_t>(config * width));
}

}  // namespace hone
