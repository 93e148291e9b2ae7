#include "lab/models/placement_network.h"

#include <algorithm>
#include <cmath>

#include "learn/graph_data.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/losses.h"

namespace hone {
namespace {

constexpr auto kWide = static_cast<int64_t>(PolicyShape::kWidth);
constexpr auto kHead = static_cast<int64_t>(PolicyShape::kHeads);
constexpr auto kSegmentRows = static_cast<int64_t>(PolicyShape::kSegment);
constexpr auto kStepWidth = static_cast<int64_t>(PolicyShape::kStep);
constexpr auto kPairWidth = static_cast<int64_t>(PolicyShape::kHidden);
constexpr double kOrderWeight = 0.1;  // of the order's part of the loss

// ---- Batches -----------------------------------------------------------------------------------

// A tensor that is filled row by row, and padded.
class Filled {
 public:
  Filled(std::initializer_list<int64_t> dims, float padding = 0) {
    for (const int64_t dim : dims) dims_.push_back(dim), count_ *= dim;
    values_.assign(static_cast<size_t>(count_), padding);
  }
  float& operator[](int64_t at) { return values_[static_cast<size_t>(at)]; }
  Tensor tensor() const {
    return Tensor::of(Type::get(DType::f32, dims_), std::span<const float>(values_));
  }

 private:
  Dims dims_;
  int64_t count_ = 1;
  std::vector<float> values_;
};

Status add_graph(Batch& batch, const PolicyView& view, const PlacementSizes& sizes) {
  const auto edges = static_cast<size_t>(sizes.edges);
  std::vector<int64_t> sources(view.sources.begin(), view.sources.end());
  std::vector<int64_t> targets(view.targets.begin(), view.targets.end());
  std::vector<int64_t> from = targets, to = sources;
  for (std::vector<int64_t>* list : {&sources, &from}) list->resize(edges, 0);
  for (std::vector<int64_t>* list : {&targets, &to}) list->resize(edges, sizes.nodes);
  HONE_TRY(add_edges(batch, "in", sources, targets, sizes.nodes));
  HONE_TRY(add_edges(batch, "out", from, to, sizes.nodes));
  return {};
}

void add_problem(Batch& batch, const PolicyView& view, const PlacementSizes& sizes) {
  constexpr auto kNode = static_cast<int64_t>(PolicyView::kNode);
  constexpr auto kDevice = static_cast<int64_t>(PolicyView::kDevice);
  const auto rows = static_cast<int64_t>(view.rows()), ranks = static_cast<int64_t>(view.ranks());
  Filled nodes({sizes.nodes, kNode}), share({1, sizes.nodes}), can({sizes.nodes, sizes.devices}, 0);
  Filled keys({sizes.nodes / kSegmentRows, 1, 1, 2 * kSegmentRows}, PolicyShape::kNever);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t f = 0; f < kNode; ++f)
      nodes[r * kNode + f] = view.node[static_cast<size_t>(r * kNode + f)];
    share[r] = 1 / static_cast<float>(rows);
    for (int64_t d = 0; d < sizes.devices; ++d) {
      const bool may = d < ranks && view.can[static_cast<size_t>(r * ranks + d)] != 0;
      can[r * sizes.devices + d] = may ? 0 : PolicyShape::kNever;
    }
    // A key is seen by its own segment, in the second half, and by the next one, in the first.
    const int64_t segment = r / kSegmentRows, at = r % kSegmentRows;
    keys[segment * 2 * kSegmentRows + kSegmentRows + at] = 0;
    if (r < sizes.nodes - kSegmentRows) keys[(segment + 1) * 2 * kSegmentRows + at] = 0;
  }
  Filled devices({sizes.devices, kDevice}), links({sizes.devices, sizes.devices});
  for (int64_t a = 0; a < ranks; ++a) {
    for (int64_t f = 0; f < kDevice; ++f)
      devices[a * kDevice + f] = view.device[static_cast<size_t>(a * kDevice + f)];
    for (int64_t b = 0; b < ranks; ++b)
      links[a * sizes.devices + b] = view.links[static_cast<size_t>(a * ranks + b)];
  }
  batch["nodes"] = nodes.tensor();
  batch["share"] = share.tensor();
  batch["can"] = can.tensor();
  batch["keys"] = keys.tensor();
  batch["devices"] = devices.tensor();
  batch["links"] = links.tensor();
}

void add_lessons(Batch& batch, const PolicyView& view, const PlacementSizes& sizes,
                 std::span<const PlacementLesson> lessons) {
  const auto rows = static_cast<int64_t>(view.rows()), ranks = static_cast<int64_t>(view.ranks());
  const int64_t n = sizes.nodes, d = sizes.devices, plans = sizes.plans;
  Filled step({plans, n, d, kStepWidth}), may({plans, n, d}), action({plans, n, d});
  Filled old({plans, n}), advantage({plans, n}), imitated({plans, n}), offset({plans, n}),
      old_offset({plans, n});
  const float weight = 1 / static_cast<float>(rows * std::max<int64_t>(std::ssize(lessons), 1));
  for (int64_t p = 0; p < std::ssize(lessons); ++p) {
    const PlacementLesson& lesson = lessons[static_cast<size_t>(p)];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = p * n + r;
      for (int64_t k = 0; k < d; ++k) {
        const auto from = static_cast<size_t>(r * ranks + k);
        const bool is_there = k < ranks && lesson.steps.can[from] != 0;
        may[row * d + k] = is_there ? 0 : PolicyShape::kNever;
        for (int64_t f = 0; is_there && f < kStepWidth; ++f)
          step[(row * d + k) * kStepWidth + f] =
              lesson.steps.features[from * PolicyShape::kStep + static_cast<size_t>(f)];
      }
      const auto at = static_cast<size_t>(r);
      action[row * d + lesson.steps.chosen[at]] = 1;
      old[row] = lesson.steps.log_probability[at];
      advantage[row] = lesson.advantage * weight;
      imitated[row] = lesson.imitated * weight;
      offset[row] = lesson.steps.offset[at];
      old_offset[row] = -lesson.steps.chance[at] * lesson.steps.chance[at] / 2;
    }
  }
  batch["step"] = step.tensor();
  batch["may"] = may.tensor();
  batch["action"] = action.tensor();
  batch["old"] = old.tensor();
  batch["advantage"] = advantage.tensor();
  batch["imitated"] = imitated.tensor();
  batch["offset"] = offset.tensor();
  batch["old_offset"] = old_offset.tensor();
}

// ---- The network -------------------------------------------------------------------------------

// [nodes, width] -> [segments, heads, rows of a segment, width / heads]
Value by_segment(Value x) {
  return transpose(reshape(x, {-1, kSegmentRows, kHead, kWide / kHead}), {0, 2, 1, 3});
}

// The rows of the segment before each one, then its own.
Value with_segment_before(Value x) {
  const Dim segments = x.dim(0);
  const Value before = pad(slice(x, 0, 0, segments - 1), {1, 0, 0, 0}, {0, 0, 0, 0});
  return concat({before, x}, 2);
}

Value attend_segments(Network& net, std::string_view name, Value x, Value keys) {
  const Builder::Scope scope = net.scope(name);
  const Value y = layer_norm(net, "norm", x);
  const Value query = by_segment(linear(net, "query", y, kWide));
  const Value key = with_segment_before(by_segment(linear(net, "key", y, kWide)));
  const Value value = with_segment_before(by_segment(linear(net, "value", y, kWide)));
  const double scale = 1 / std::sqrt(static_cast<double>(kWide / kHead));
  const Value shares = softmax(matmul(query, transpose(key, {0, 1, 3, 2})) * scale + keys);
  const Value mixed = reshape(transpose(matmul(shares, value), {0, 2, 1, 3}), {-1, kWide});
  x = x + linear(net, "output", mixed, kWide);
  const Value wide = relu(linear(net, "first", layer_norm(net, "norm2", x), 2 * kWide));
  return x + linear(net, "second", wide, kWide);
}

Value node_states(Network& net) {
  Value x = relu(linear(net, "input", net.input("nodes"), kWide));
  const Edges in = edges_in(net, "in"), out = edges_in(net, "out");
  for (size_t r = 0; r < PolicyShape::kRounds; ++r) {
    const Value heard = graph_sage(net, fmt::format("in{}", r), x, in, kWide) +
                        graph_sage(net, fmt::format("out{}", r), x, out, kWide);
    x = layer_norm(net, fmt::format("norm{}", r), x + relu(heard));
  }
  x = x * (2 * logistic(linear(net, "modulate", matmul(net.input("share"), x), kWide)));
  for (size_t l = 0; l < PolicyShape::kLayers; ++l)
    x = attend_segments(net, fmt::format("attend{}", l), x, net.input("keys"));
  return layer_norm(net, "last", x);
}

Value device_states(Network& net) {
  const Builder::Scope scope = net.scope("device");
  const Value x = relu(linear(net, "input", net.input("devices"), kWide));
  return relu(linear(net, "self", x, kWide) +
              linear(net, "heard", matmul(net.input("links"), x), kWide, false));
}

// The log probability of what was chosen, of each step.
Value of_action(Value log_probabilities, Value action) {
  return reduce_sum(log_probabilities * action, {log_probabilities.rank() - 1});
}

Value sum_of(Value x) {
  Ints axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  return reduce_sum(x, axes);
}

}  // namespace

Result<Batch> placement_view_batch(const PolicyView& view, const PlacementSizes& sizes) {
  if (std::cmp_greater(view.rows(), sizes.nodes) || std::cmp_greater(view.ranks(), sizes.devices) ||
      std::cmp_greater(view.sources.size(), sizes.edges))
    return over_limit("a problem of {} nodes, {} edges and {} devices is larger than a batch",
                      view.rows(), view.sources.size(), view.ranks());
  Batch batch;
  HONE_TRY(add_graph(batch, view, sizes));
  add_problem(batch, view, sizes);
  return batch;
}

Result<Batch> placement_batch(const PolicyView& view, const PlacementSizes& sizes,
                              std::span<const PlacementLesson> lessons,
                              std::span<const uint32_t> target) {
  Batch batch = HONE_TRY(placement_view_batch(view, sizes));
  if (std::cmp_greater(lessons.size(), sizes.plans))
    return over_limit("{} placements are more than a batch has", lessons.size());
  add_lessons(batch, view, sizes, lessons);
  Filled wanted({sizes.nodes, sizes.devices});
  for (size_t r = 0; r < target.size(); ++r)
    wanted[static_cast<int64_t>(r) * sizes.devices + target[r]] =
        1 / static_cast<float>(target.size());
  batch["target"] = wanted.tensor();
  return batch;
}

PlacementSaid placement_said(Network& net) {
  const Value x = node_states(net), device = device_states(net);
  const double scale = 1 / std::sqrt(static_cast<double>(kWide));
  const Value liked = matmul(linear(net, "once", x, kWide), transpose(device, {1, 0})) * scale;
  PlacementSaid said;
  said.state = x;
  said.once = log_softmax(liked + net.input("can"));
  said.order = squeeze(linear(net, "order", x, 1), 1) * double{PolicyShape::kOrder};
  said.node = linear(net, "pair/node", x, kPairWidth, false);
  said.device = linear(net, "pair/device", device, kPairWidth, false);
  return said;
}

PlacementHeads placement_heads(Network& net) {
  const PlacementSaid said = placement_said(net);
  PlacementHeads heads = {.once = said.once, .order = said.order, .score = {}};
  const Value step = net.input("step");
  const Value hidden =
      relu(linear(net, "pair/step", step, kPairWidth) + unsqueeze(said.node, 1) + said.device);
  const Value output = net.weight("pair/output", {kPairWidth, 1}, Initializer::normal(0.05));
  // HEFT to begin with: the device where the node ends first.
  const Value haste = net.weight("haste", {1}, Initializer::constant(4));
  const Value trust = net.weight("trust", {1}, Initializer::constant(0.1));
  const Value end = squeeze(slice(step, 3, 0, 1), 3);
  const Value before = maximum(stop_gradient(heads.once), double{PolicyShape::kLeast});
  heads.score = squeeze(matmul(hidden, output), 3) + trust * before - haste * end;
  return heads;
}

Objective placement_objective(Network& net) {
  const PlacementHeads heads = placement_heads(net);
  const Value once = -sum_of(heads.once * net.input("target"));
  const Value chosen = of_action(log_softmax(heads.score + net.input("may")), net.input("action"));
  const Value copied = -sum_of(chosen * net.input("imitated"));
  const Value advantage = net.input("advantage");
  const double all = static_cast<double>(advantage.dim(0).value() * advantage.dim(1).value());
  const Value better = clipped_policy_loss(chosen, net.input("old"), advantage) * all;
  const Value apart = (net.input("offset") - heads.order) / kOrderDeviation;
  const Value sooner =
      clipped_policy_loss(apart * apart * -0.5, net.input("old_offset"), advantage) * all;
  const Value loss = once + copied + better + kOrderWeight * sooner;
  return {loss, {{"once", once}, {"copied", copied}, {"policy", better}, {"order", sooner}}};
}

}  // namespace hone
