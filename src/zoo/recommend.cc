#include "zoo/models.h"

// DLRM (Naumov et al. 2019) with the tables of the Criteo Kaggle data.

namespace hone::zoo {
namespace {

constexpr int64_t kCriteoRows[] = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
constexpr int64_t kTinyRows[] = {60, 3, 25, 100};

Value multilayer(Net& net, std::string_view name, Value x, std::span<const int64_t> widths) {
  Builder::Scope scope = net.scope(name);
  for (size_t i = 0; i < widths.size(); ++i)
    x = relu(linear(net, fmt::format("{}", i), x, widths[i], {.gain = kHe}));
  return x;
}

// Products of all pairs of the vectors in x: [n, features, d] -> [n, features * (features-1) / 2].
Value pair_products(Value x, int64_t features) {
  std::vector<int64_t> below;  // the diagonal, row-major
  for (int64_t i = 0; i < features; ++i)
    for (int64_t j = 0; j < i; ++j) below.push_back(i * features + j);
  Type type = Type::get(DType::i64, {static_cast<int64_t>(below.size())});
  Value pairs = x.builder().constant(Tensor::of<int64_t>(type, below), "pairs");
  return take(flatten(matmul(x, transpose(x, {0, 2, 1})), 1), pairs, 1);
}

}  // namespace

Outputs dlrm(Net& net) {
  std::span<const int64_t> rows = kCriteoRows;
  if (net.tiny) rows = kTinyRows;
  int64_t width = net.pick(16, 4);
  const int64_t bottom[] = {net.pick(512, 16), net.pick(256, 8), net.pick(64, 8), width};
  const int64_t top[] = {net.pick(512, 16), net.pick(256, 8)};

  Value dense = net.b.parameter("dense", DType::f32, {net.batch, 13});
  Value numbers = multilayer(net, "bottom", dense, bottom);
  std::vector<Value> features = {unsqueeze(numbers, 1)};
  for (size_t i = 0; i < rows.size(); ++i) {
    Builder::Scope scope = net.scope("sparse", static_cast<int64_t>(i));
    // Each example has a bag of `length` rows, which are added up.
    Value bag = take(net.normal("table", {rows[i], width}, 0.5),
                     net.tokens("rows", {net.batch, net.length}));
    features.push_back(reduce_sum(bag, {1}, true));
  }
  Value pairs = pair_products(concat(features, 1), static_cast<int64_t>(features.size()));
  Value x = multilayer(net, "top", concat({numbers, pairs}, 1), top);
  return {logistic(linear(net, "click", x, 1)).named("probability")};
}

}  // namespace hone::zoo
