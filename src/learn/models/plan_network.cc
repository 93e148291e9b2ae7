#include "learn/models/plan_network.h"

#include <algorithm>
#include <cmath>

#include "learn/graph_data.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/losses.h"

namespace hone {
namespace {

constexpr auto kStateWidth = static_cast<int64_t>(PlanMember::kWidth);
constexpr auto kRowWidth = static_cast<int64_t>(kPlanFeatures);
constexpr double kUnit = 0.05;          // two logarithms that differ by this are one unit apart
constexpr double kSquaredWeight = 0.1;  // of the squared error, in units

const PlanGraph& plan_of(const PlanSample& sample, int side) {
  return sample.program->plans[side == 0 ? sample.pair->first : sample.pair->second];
}

Tensor floats(std::initializer_list<Dim> dims, const std::vector<float>& values) {
  return Tensor::of(Type::get(DType::f32, dims), std::span<const float>(values));
}

// Both ways, padded to as many edges.
Status add_edges_both_ways(Batch& batch, std::vector<int64_t> from, std::vector<int64_t> to,
                           size_t edges, int64_t nodes) {
  std::vector<int64_t> sources = from, targets = to;
  for (std::vector<int64_t>* list : {&sources, &to}) list->resize(edges, 0);
  for (std::vector<int64_t>* list : {&targets, &from}) list->resize(edges, nodes);
  HONE_TRY(add_edges(batch, "in", sources, targets, nodes));
  HONE_TRY(add_edges(batch, "out", to, from, nodes));
  return {};
}

}  // namespace

PlanScale scale_of(std::span<const PlanSample> samples) {
  std::array<double, kPlanFeatures> sum = {}, squares = {};
  double count = 0;
  for (const PlanSample& sample : samples)
    for (const int side : {0, 1})
      for (const PlanRow& row : plan_of(sample, side).nodes) {
        ++count;
        for (size_t f = 0; f < kPlanFeatures; ++f) {
          sum[f] += double{row[f]};
          squares[f] += double{row[f]} * double{row[f]};
        }
      }
  PlanScale scale;
  for (size_t f = 0; f < kPlanFeatures && count > 0; ++f) {
    const double mean = sum[f] / count;
    const double deviation = std::sqrt(std::max(squares[f] / count - mean * mean, 0.0));
    scale.mean[f] = static_cast<float>(mean);
    scale.factor[f] = deviation < 1e-4 ? 0.0F : static_cast<float>(1 / deviation);
  }
  return scale;
}

PlanPairsData::PlanPairsData(std::vector<PlanSample> samples, const PlanScale& scale)
    : samples_(std::move(samples)), scale_(scale) {
  for (const PlanSample& sample : samples_)
    for (const int side : {0, 1}) {
      nodes_ = std::max(nodes_, std::ssize(plan_of(sample, side).nodes));
      edges_ = std::max(edges_, std::ssize(plan_of(sample, side).edges));
    }
}

Result<Batch> PlanPairsData::batch(std::span<const int64_t> samples, int64_t /*bucket*/) const {
  const int64_t plans = 2 * std::ssize(samples), all = plans * nodes_;
  std::vector<float> nodes(static_cast<size_t>(all * kRowWidth)), share(static_cast<size_t>(all));
  std::vector<float> price, time, noise;
  std::vector<int64_t> of, from, to;
  for (int64_t p = 0; p < plans; ++p) {
    const PlanSample& sample = samples_[static_cast<size_t>(samples[static_cast<size_t>(p / 2)])];
    const int side = p % 2 == 0 ? 0 : 1;
    const PlanGraph& plan = plan_of(sample, side);
    const int64_t first = p * nodes_;
    of.resize(static_cast<size_t>(first + nodes_), p);
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      const size_t at = static_cast<size_t>(first) + n;
      share[at] = plan.share[n];
      for (size_t f = 0; f < kPlanFeatures; ++f)
        nodes[at * kPlanFeatures + f] = (plan.nodes[n][f] - scale_.mean[f]) * scale_.factor[f];
    }
    for (const PlanEdge& edge : plan.edges) {
      from.push_back(first + int64_t{edge.from});
      to.push_back(first + int64_t{edge.to});
    }
    price.push_back(static_cast<float>(std::log(plan.seconds)));
    time.push_back(side == 0 ? 0 : sample.pair->ratio);
    noise.push_back(side == 0 ? 0 : sample.pair->noise);
  }
  Batch batch;
  batch["nodes"] = floats({all, kRowWidth}, nodes);
  batch["share"] = floats({all}, share);
  batch["price"] = floats({plans / 2, 2}, price);
  batch["time"] = floats({plans / 2, 2}, time);
  batch["noise"] = floats({plans / 2, 2}, noise);
  HONE_TRY(add_segments(batch, "plan", of, plans));
  HONE_TRY(add_edges_both_ways(batch, std::move(from), std::move(to),
                               static_cast<size_t>(plans * edges_), all));
  return batch;
}

Value plan_log_seconds(Network& net) {
  const Edges in = edges_in(net, "in"), out = edges_in(net, "out");
  Value x = relu(linear(net, "input", net.input("nodes"), kStateWidth));
  for (size_t r = 0; r < PlanMember::kRounds; ++r)
    x = relu(graph_sage(net, fmt::format("in{}", r), x, in, kStateWidth) +
             graph_sage(net, fmt::format("out{}", r), x, out, kStateWidth));
  // Training begins with the sum of prices.
  const Value weight = net.weight("output/weight", {kStateWidth, 1}, Initializer::constant(0));
  const Value bias = net.weight("output/bias", {1}, Initializer::constant(0));
  const Value said = squeeze(matmul(x, weight) + bias, 1);
  const Value seconds = net.input("share") * exp(tanh(said) * PlanMember::kMost);
  const Value price = net.input("price");
  const Value times = segment_sum(seconds, segments_in(net, "plan"));
  return price + reshape(log(times), price.dims());
}

Objective plan_objective(Network& net) {
  const Value said = plan_log_seconds(net) / kUnit;
  const Value time = net.input("time") / kUnit, noise = net.input("noise") / kUnit;
  // Scores are higher for what is faster.
  const Value logistic = noisy_pairwise_logistic(-said, -time, noise);
  const auto ratio = [](Value x) { return slice(x, 1, 1, 2) - slice(x, 1, 0, 1); };
  const Value squared = mean_squared_error(ratio(said), ratio(time));
  return {logistic + squared * kSquaredWeight, {{"logistic", logistic}, {"squared", squared}}};
}

PlanMember plan_member_of(std::span<const NamedTensor> weights) {
  const auto find = [&](const std::string& name) {
    const auto at = std::ranges::find(weights, name, &NamedTensor::name);
    HONE_CHECK(at != weights.end(), "the network of plans has no weight '{}'", name);
    const std::span<const float> values = at->tensor.as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto sum = [&](const std::string& a, const std::string& b) {
    std::vector<float> all = find(a);
    const std::vector<float> other = find(b);
    for (size_t i = 0; i < all.size(); ++i) all[i] += other[i];
    return all;
  };
  PlanMember member;
  member.input = find("input/weight");
  member.bias0 = find("input/bias");
  for (size_t r = 0; r < PlanMember::kRounds; ++r) {
    const std::string in = fmt::format("in{}/", r), out = fmt::format("out{}/", r);
    member.rounds[r] = {.self = sum(in + "self/weight", out + "self/weight"),
                        .heard_in = find(in + "heard/weight"),
                        .heard_out = find(out + "heard/weight"),
                        .bias = sum(in + "self/bias", out + "self/bias")};
  }
  member.output = find("output/weight");
  member.output_bias = find("output/bias")[0];
  return member;
}

}  // namespace hone
