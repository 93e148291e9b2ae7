#include "place/policy.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "place/shipped_policies.h"

namespace hone {
namespace {

using S = PolicyShape;
using Matrix = std::vector<float>;

const WeightsFormat& policy_format() {
  static const WeightsFormat format = {"hone placement policy 1", "policy of placement",
                                       "hone train placement", PlacePolicy::shapes()};
  return format;
}

void relu_all(Matrix& x) {
  for (float& one : x) one = std::max(one, 0.0F);
}

void add_to(Matrix& x, const Matrix& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// The mean of the rows that lead to each row.
Matrix mean_of_sources(const Matrix& x, std::span<const uint32_t> from,
                       std::span<const uint32_t> to) {
  Matrix sum(x.size());
  std::vector<float> count(x.size() / S::kWidth);
  for (size_t e = 0; e < from.size(); ++e) {
    ++count[to[e]];
    for (size_t k = 0; k < S::kWidth; ++k) sum[to[e] * S::kWidth + k] += x[from[e] * S::kWidth + k];
  }
  for (size_t r = 0; r < count.size(); ++r)
    for (size_t k = 0; k < S::kWidth; ++k) sum[r * S::kWidth + k] /= std::max(count[r], 1.0F);
  return sum;
}

// x becomes the logarithms of probabilities, row by row.
void log_softmax_rows(Matrix& x, size_t columns) {
  for (size_t at = 0; at < x.size(); at += columns) {
    const std::span<float> row(x.data() + at, columns);
    const float most = std::ranges::max(row);
    float sum = 0;
    for (const float one : row) sum += std::exp(one - most);
    const float all = most + std::log(sum);
    for (float& one : row) one -= all;
  }
}

}  // namespace

// ---- Weights -----------------------------------------------------------------------------------

WeightShapes PlacePolicy::shapes() {
  WeightShapes all;
  const auto dense = [&](const std::string& name, size_t inputs, size_t outputs, bool bias) {
    all.push_back(
        {name + "/weight", {static_cast<int64_t>(inputs), static_cast<int64_t>(outputs)}});
    if (bias) all.push_back({name + "/bias", {static_cast<int64_t>(outputs)}});
  };
  const auto norm = [&](const std::string& name) {
    for (const char* part : {"/scale", "/bias"})
      all.push_back({name + part, {static_cast<int64_t>(S::kWidth)}});
  };
  dense("input", PolicyView::kNode, S::kWidth, true);
  for (size_t r = 0; r < S::kRounds; ++r) {
    for (const char* way : {"in", "out"}) {
      dense(fmt::format("{}{}/self", way, r), S::kWidth, S::kWidth, true);
      dense(fmt::format("{}{}/heard", way, r), S::kWidth, S::kWidth, false);
    }
    norm(fmt::format("norm{}", r));
  }
  dense("modulate", S::kWidth, S::kWidth, true);
  for (size_t l = 0; l < S::kLayers; ++l) {
    const std::string name = fmt::format("attend{}", l);
    norm(name + "/norm");
    for (const char* part : {"/query", "/key", "/value", "/output"})
      dense(name + part, S::kWidth, S::kWidth, true);
    norm(name + "/norm2");
    dense(name + "/first", S::kWidth, 2 * S::kWidth, true);
    dense(name + "/second", 2 * S::kWidth, S::kWidth, true);
  }
  norm("last");
  dense("device/input", PolicyView::kDevice, S::kWidth, true);
  dense("device/self", S::kWidth, S::kWidth, true);
  dense("device/heard", S::kWidth, S::kWidth, false);
  dense("once", S::kWidth, S::kWidth, true);
  dense("order", S::kWidth, 1, true);
  dense("pair/step", S::kStep, S::kHidden, true);
  dense("pair/node", S::kWidth, S::kHidden, false);
  dense("pair/device", S::kWidth, S::kHidden, false);
  all.push_back({"pair/output", {static_cast<int64_t>(S::kHidden), 1}});
  all.push_back({"haste", {1}});
  all.push_back({"trust", {1}});
  return all;
}

Result<PlacePolicy> PlacePolicy::make(std::span<const NamedTensor> weights) {
  std::vector<std::vector<float>> numbers = HONE_TRY(numbers_of(weights, policy_format()));
  PlacePolicy policy;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto& [name, dims] = policy_format().shapes[i];
    policy.weights_[name] = {dims.size() > 1 ? static_cast<size_t>(dims[0]) : 1,
                             static_cast<size_t>(dims.back()), std::move(numbers[i])};
  }
  return policy;
}

std::vector<NamedTensor> PlacePolicy::weights() const {
  std::vector<NamedTensor> all;
  for (const auto& [name, dims] : shapes())
    all.push_back({name, Tensor::of(Type::get(DType::f32, Dims(dims.begin(), dims.end())),
                                    std::span<const float>(at(name).values))});
  return all;
}

Result<PlacePolicy> PlacePolicy::parse(std::span<const std::byte> file, std::string_view where) {
  return make(HONE_TRY(parse_weights(file, where, policy_format())).tensors);
}

Result<PlacePolicy> PlacePolicy::read(const std::filesystem::path& path) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const std::string text = HONE_TRY(read_file(path, kMost));
  return parse(std::as_bytes(std::span(text)), path.native());
}

Status PlacePolicy::write(const std::filesystem::path& path, std::span<const NamedTensor> weights) {
  return write_safetensors(path, HONE_TRY(weights_file(weights, policy_format())));
}

const PlacePolicy* shipped_policy() {
  static const std::optional<PlacePolicy> policy = [] {
    std::optional<PlacePolicy> made;
    for (const ShippedPolicy& each : shipped_policies())
      if (Result<PlacePolicy> parsed = PlacePolicy::parse(each.file, each.name); parsed.ok())
        made = *std::move(parsed);
    return made;
  }();
  return policy ? &*policy : nullptr;
}

// ---- The network -------------------------------------------------------------------------------

const PlacePolicy::Weight& PlacePolicy::at(const std::string& name) const {
  const auto found = weights_.find(name);
  HONE_CHECK(found != weights_.end(), "the policy has no weight '{}'", name);
  return found->second;
}

Matrix PlacePolicy::linear(const std::string& name, std::span<const float> x, bool bias) const {
  const Weight& weight = at(name + "/weight");
  const std::vector<float>* const start = bias ? &at(name + "/bias").values : nullptr;
  const size_t rows = x.size() / weight.rows;
  Matrix y(rows * weight.columns);
  for (size_t r = 0; r < rows; ++r) {
    float* const out = y.data() + r * weight.columns;
    if (start != nullptr) std::ranges::copy(*start, out);
    for (size_t k = 0; k < weight.rows; ++k) {
      const float factor = x[r * weight.rows + k];
      const float* const of = weight.values.data() + k * weight.columns;
      for (size_t c = 0; c < weight.columns; ++c) out[c] += factor * of[c];
    }
  }
  return y;
}

Matrix PlacePolicy::norm(const std::string& name, std::span<const float> x) const {
  constexpr float kEpsilon = 1e-5F;
  const Weight &scale = at(name + "/scale"), &bias = at(name + "/bias");
  Matrix y(x.size());
  for (size_t at = 0; at < x.size(); at += S::kWidth) {
    float mean = 0, squares = 0;
    for (size_t k = 0; k < S::kWidth; ++k) mean += x[at + k] / S::kWidth;
    for (size_t k = 0; k < S::kWidth; ++k)
      squares += (x[at + k] - mean) * (x[at + k] - mean) / S::kWidth;
    const float factor = 1 / std::sqrt(squares + kEpsilon);
    for (size_t k = 0; k < S::kWidth; ++k)
      y[at + k] = (x[at + k] - mean) * factor * scale.values[k] + bias.values[k];
  }
  return y;
}

void PlacePolicy::hear_neighbours(const PolicyView& view, Matrix& x) const {
  for (size_t r = 0; r < S::kRounds; ++r) {
    Matrix heard(x.size());
    const auto hear = [&](const std::string& way, std::span<const uint32_t> from,
                          std::span<const uint32_t> to) {
      add_to(heard, linear(way + "/self", x, true));
      add_to(heard, linear(way + "/heard", mean_of_sources(x, from, to), false));
    };
    hear(fmt::format("in{}", r), view.sources, view.targets);
    hear(fmt::format("out{}", r), view.targets, view.sources);
    relu_all(heard);
    add_to(x, heard);
    x = norm(fmt::format("norm{}", r), x);
  }
}

void PlacePolicy::modulate(Matrix& x) const {
  const size_t rows = x.size() / S::kWidth;
  Matrix mean(S::kWidth);
  for (size_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < S::kWidth; ++k)
      mean[k] += x[r * S::kWidth + k] / static_cast<float>(rows);
  Matrix scale = linear("modulate", mean, true);
  for (float& one : scale) one = 2 / (1 + std::exp(-one));
  for (size_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < S::kWidth; ++k) x[r * S::kWidth + k] *= scale[k];
}

// Rows of a segment hear it and the one before.
void PlacePolicy::attend(const std::string& name, Matrix& x) const {
  constexpr size_t kSize = S::kWidth / S::kHeads;
  const Matrix y = norm(name + "/norm", x);
  const Matrix query = linear(name + "/query", y, true), key = linear(name + "/key", y, true),
               value = linear(name + "/value", y, true);
  const size_t rows = x.size() / S::kWidth;
  const float scale = 1 / std::sqrt(static_cast<float>(kSize));
  Matrix mixed(x.size()), shares;
  for (size_t r = 0; r < rows; ++r) {
    const size_t own = r / S::kSegment * S::kSegment;
    const size_t first = own >= S::kSegment ? own - S::kSegment : 0;
    const size_t last = std::min(own + S::kSegment, rows);
    for (size_t h = 0; h < S::kHeads; ++h) {
      const size_t at = h * kSize;
      shares.assign(last - first, 0);
      for (size_t j = first; j < last; ++j)
        for (size_t k = at; k < at + kSize; ++k)
          shares[j - first] += query[r * S::kWidth + k] * key[j * S::kWidth + k] * scale;
      const float most = std::ranges::max(shares);
      float sum = 0;
      for (float& one : shares) sum += one = std::exp(one - most);
      for (size_t j = first; j < last; ++j)
        for (size_t k = at; k < at + kSize; ++k)
          mixed[r * S::kWidth + k] += shares[j - first] / sum * value[j * S::kWidth + k];
    }
  }
  add_to(x, linear(name + "/output", mixed, true));
  Matrix wide = linear(name + "/first", norm(name + "/norm2", x), true);
  relu_all(wide);
  add_to(x, linear(name + "/second", wide, true));
}

Matrix PlacePolicy::devices(const PolicyView& view) const {
  Matrix x = linear("device/input", view.device, true);
  relu_all(x);
  const size_t ranks = view.ranks();
  Matrix heard(x.size());
  for (size_t a = 0; a < ranks; ++a)
    for (size_t b = 0; b < ranks; ++b)
      for (size_t k = 0; k < S::kWidth; ++k)
        heard[a * S::kWidth + k] += view.links[a * ranks + b] * x[b * S::kWidth + k];
  Matrix y = linear("device/self", x, true);
  add_to(y, linear("device/heard", heard, false));
  relu_all(y);
  return y;
}

PlacePolicy::Said PlacePolicy::look(const PolicyView& view) const {
  if (look_)
    if (std::optional<Said> said = look_(view)) return *std::move(said);
  Matrix x = linear("input", view.node, true);
  relu_all(x);
  hear_neighbours(view, x);
  modulate(x);
  for (size_t l = 0; l < S::kLayers; ++l) attend(fmt::format("attend{}", l), x);
  x = norm("last", x);
  const Matrix device = devices(view);
  const Matrix asked = linear("once", x, true);
  Said said;
  const size_t ranks = view.ranks();
  said.once.resize(view.rows() * ranks);
  const float scale = 1 / std::sqrt(static_cast<float>(S::kWidth));
  for (size_t r = 0; r < view.rows(); ++r)
    for (size_t d = 0; d < ranks; ++d) {
      float sum = 0;
      for (size_t k = 0; k < S::kWidth; ++k)
        sum += asked[r * S::kWidth + k] * device[d * S::kWidth + k];
      said.once[r * ranks + d] = sum * scale + (view.can[r * ranks + d] != 0 ? 0 : S::kNever);
    }
  log_softmax_rows(said.once, ranks);
  said.order = linear("order", x, true);
  for (float& one : said.order) one *= S::kOrder;
  said.node = linear("pair/node", x, false);
  said.device = linear("pair/device", device, false);
  said.state = std::move(x);
  return said;
}

void PlacePolicy::score(const Said& said, size_t row, std::span<const float> features,
                        std::span<float> scores) const {
  const size_t ranks = scores.size();
  const float haste = at("haste").values[0], trust = at("trust").values[0];
  const Weight &step = at("pair/step/weight"), &bias = at("pair/step/bias"),
               &output = at("pair/output");
  for (size_t d = 0; d < ranks; ++d) {
    float hidden[S::kHidden];
    for (size_t h = 0; h < S::kHidden; ++h)
      hidden[h] =
          bias.values[h] + said.node[row * S::kHidden + h] + said.device[d * S::kHidden + h];
    const float* const f = features.data() + d * S::kStep;
    for (size_t k = 0; k < S::kStep; ++k)
      for (size_t h = 0; h < S::kHidden; ++h) hidden[h] += f[k] * step.values[k * S::kHidden + h];
    float sum = trust * std::max(said.once[row * ranks + d], S::kLeast) - haste * f[0];
    for (size_t h = 0; h < S::kHidden; ++h) sum += std::max(hidden[h], 0.0F) * output.values[h];
    scores[d] = sum;
  }
}

}  // namespace hone
