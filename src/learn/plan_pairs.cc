#include "learn/plan_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/team.h"
#include "base/text.h"
#include "learn/data_set.h"
#include "log/hash_text.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostText = 4096;                 // bytes
constexpr int64_t kMostArray = int64_t{256} << 20;  // bytes
constexpr auto kNodeDim = static_cast<int64_t>(kPlanFeatures);
constexpr float kMostFeature = 1e6F, kMostRatio = 20;
constexpr double kMostOff = 1e-3;     // of the sum of shares: they are rounded
constexpr int64_t kEdgesOfNode = 64;  // on average: tasks have a use for each edge but one

NamedTensor plan_text(std::string_view name, std::string_view text) {
  return {std::string(name), Tensor::copy_of(Type::get(DType::u8, {std::ssize(text)}),
                                             std::as_bytes(std::span(text)))};
}

template <class T>
NamedTensor column(std::string name, DType dtype, std::initializer_list<Dim> dims,
                   const std::vector<T>& values) {
  return {std::move(name), Tensor::of(Type::get(dtype, dims), std::span<const T>(values))};
}

// The arrays of a file, checked one by one.
class PlanArrays {
 public:
  explicit PlanArrays(std::span<const NamedTensor> arrays) : arrays_(arrays) {}

  Result<std::string> text(std::string_view name) const {
    const Tensor& tensor = *HONE_TRY(find(name));
    if (tensor.dtype() != DType::u8 || tensor.type().rank() != 1 || tensor.elements() > kMostText)
      return misshapen(name, tensor, "a text");
    const std::span<const std::byte> bytes = tensor.bytes();
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
      return bad_input("the array '{}' is not one line of printable ASCII", name);
    return text;
  }
  Result<uint64_t> hash(std::string_view name) const {
    const std::string digits = HONE_TRY(text(name));
    if (const std::optional<uint64_t> hash = parse_hash(digits)) return *hash;
    return bad_input("the array '{}' is '{}', not a hash", name, excerpt(digits));
  }
  // One integer from 1 to `high`.
  Result<int64_t> count(std::string_view name, int64_t high) const {
    const int64_t number = HONE_TRY(integers(name, 1, 1, high))[0];
    if (number > 0) return number;
    return bad_input("the array '{}' has 0 at 0, outside of 1..{}", name, high);
  }
  // Integers of `width` columns, each from 0 to `high`; a negative number of rows: any.
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t rows, int64_t width,
                                        int64_t high) const {
    const Tensor& tensor = *HONE_TRY(find(name));
    if (rows < 0 && tensor.type().rank() > 0) rows = tensor.type().dim(0).value();
    const Type type =
        width == 1 ? Type::get(DType::i64, {rows}) : Type::get(DType::i64, {rows, width});
    if (tensor.type() != type) return misshapen(name, tensor, type.to_string());
    std::vector<int64_t> numbers(static_cast<size_t>(tensor.elements()));
    tensor.read_integers(0, numbers);
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] < 0 || numbers[i] > high)
        return bad_input("the array '{}' has {} at {}, outside of 0..{}", name, numbers[i], i,
                         high);
    return numbers;
  }
  Result<std::span<const float>> reals(std::string_view name, std::initializer_list<Dim> dims,
                                       float low, float high) const {
    const Tensor& tensor = *HONE_TRY(find(name));
    const Type type = Type::get(DType::f32, dims);
    if (tensor.type() != type) return misshapen(name, tensor, type.to_string());
    const std::span<const float> numbers = tensor.as<float>();
    for (size_t i = 0; i < numbers.size(); ++i)
      if (!(numbers[i] >= low && numbers[i] <= high))
        return bad_input("the array '{}' has {} at {}, outside of {}..{}", name, numbers[i], i, low,
                         high);
    return numbers;
  }

 private:
  Result<const Tensor*> find(std::string_view name) const {
    const auto at = std::ranges::find(arrays_, name, &NamedTensor::name);
    if (at == arrays_.end()) return bad_input("the array '{}' is missing", name);
    return &at->tensor;
  }
  static Error misshapen(std::string_view name, const Tensor& tensor, std::string_view wanted) {
    return bad_input("the array '{}' is {}, not {}", name, tensor.type().to_string(), wanted);
  }

  const std::span<const NamedTensor> arrays_;
};

// Where the rows of each plan begin, and where the last one's end.
Result<std::vector<int64_t>> bounds(const PlanArrays& arrays, std::string_view name, int64_t plans,
                                    int64_t most) {
  std::vector<int64_t> at = HONE_TRY(arrays.integers(name, plans + 1, 1, plans * most));
  for (size_t i = 0; i + 1 < at.size(); ++i)
    if (at[0] != 0 || at[i] > at[i + 1] || at[i + 1] - at[i] > most)
      return bad_input("the array '{}' does not ascend by 0..{}", name, most);
  return at;
}

Status read_plans(const PlanArrays& arrays, PlanPairs& to) {
  const int64_t plans = HONE_TRY(arrays.count("plans", kMostPlans));
  constexpr auto kMostNodes = static_cast<int64_t>(kMostPlanNodes);
  const std::vector<int64_t> nodes = HONE_TRY(bounds(arrays, "node_splits", plans, kMostNodes));
  const std::vector<int64_t> edges =
      HONE_TRY(bounds(arrays, "edge_splits", plans, kEdgesOfNode * kMostNodes));
  const auto features =
      HONE_TRY(arrays.reals("node_feat", {nodes.back(), kNodeDim}, -kMostFeature, kMostFeature));
  const auto share = HONE_TRY(arrays.reals("node_share", {nodes.back()}, 0, 1));
  const auto seconds = HONE_TRY(arrays.reals("plan_seconds", {plans}, 1e-12F, 1e9F));
  const std::vector<int64_t> ends =
      HONE_TRY(arrays.integers("edge_index", edges.back(), 2, kMostNodes - 1));
  const std::vector<int64_t> offered = HONE_TRY(arrays.integers("is_offered", plans, 1, 1));
  for (int64_t each : offered) to.is_offered.push_back(each != 0);
  for (size_t p = 0; p < static_cast<size_t>(plans); ++p) {
    PlanGraph& plan = to.plans.emplace_back();
    plan.seconds = double{seconds[p]};
    for (auto n = static_cast<size_t>(nodes[p]); n < static_cast<size_t>(nodes[p + 1]); ++n) {
      std::ranges::copy(features.subspan(n * kPlanFeatures, kPlanFeatures),
                        plan.nodes.emplace_back().begin());
      plan.share.push_back(share[n]);
    }
    for (auto e = static_cast<size_t>(edges[p]); e < static_cast<size_t>(edges[p + 1]); ++e) {
      plan.edges.push_back(
          {static_cast<uint32_t>(ends[2 * e]), static_cast<uint32_t>(ends[2 * e + 1])});
      if (std::max(plan.edges.back().from, plan.edges.back().to) >= plan.nodes.size())
        return bad_input("edge {} leaves plan {}, which has {} nodes", e, p, plan.nodes.size());
    }
    double whole = 0;
    for (float each : plan.share) whole += double{each};
    if (!(std::abs(whole - 1) <= kMostOff))
      return bad_input("the array 'node_share' has {:.4g} of the price of plan {}, not all", whole,
                       p);
  }
  return {};
}

Status read_pairs(const PlanArrays& arrays, PlanPairs& to) {
  const std::vector<int64_t> ends =
      HONE_TRY(arrays.integers("pair_index", -1, 2, std::ssize(to.plans) - 1));
  const auto count = std::ssize(ends) / 2;
  const auto ratios = HONE_TRY(arrays.reals("pair_ratio", {count}, -kMostRatio, kMostRatio));
  const auto noise = HONE_TRY(arrays.reals("pair_noise", {count}, 0, kMostRatio));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t first = ends[2 * i], second = ends[2 * i + 1];
    if (first == second)
      return bad_input("the array 'pair_index' has plan {} against itself at {}", first, i);
    if (!seen.insert(std::minmax(first, second)).second)
      return bad_input("the array 'pair_index' has plans {} and {} again at {}", first, second, i);
    to.pairs.push_back({.first = static_cast<uint32_t>(first),
                        .second = static_cast<uint32_t>(second),
                        .ratio = ratios[i],
                        .noise = noise[i]});
  }
  return {};
}

Status read_tried(const PlanArrays& arrays, PlanPairs& to) {
  const std::vector<int64_t> all = HONE_TRY(arrays.integers("tried", 3, 1, INT64_MAX));
  if (all[2] > 1) return bad_input("the array 'tried' has {} at 2, outside of 0..1", all[2]);
  to.tried = {.seed = all[0], .plans = all[1], .has_tuned = all[2] == 1};
  return {};
}

}  // namespace

fs::path plan_pairs_path(const fs::path& set, std::string_view program) {
  return set / "plans" / (file_name_of(program) + ".npz");
}

std::vector<NamedTensor> arrays_of(const PlanPairs& pairs) {
  std::vector<float> features, share, seconds, ratios, noise;
  std::vector<int64_t> nodes = {0}, edges = {0}, ends, index, offered;
  for (const PlanGraph& plan : pairs.plans) {
    for (const PlanRow& row : plan.nodes) features.insert(features.end(), row.begin(), row.end());
    share.insert(share.end(), plan.share.begin(), plan.share.end());
    for (const PlanEdge& edge : plan.edges) ends.insert(ends.end(), {edge.from, edge.to});
    nodes.push_back(nodes.back() + std::ssize(plan.nodes));
    edges.push_back(edges.back() + std::ssize(plan.edges));
    seconds.push_back(static_cast<float>(plan.seconds));
  }
  for (const PlanPair& pair : pairs.pairs) {
    index.insert(index.end(), {pair.first, pair.second});
    ratios.push_back(pair.ratio);
    noise.push_back(pair.noise);
  }
  for (bool each : pairs.is_offered) offered.push_back(each ? 1 : 0);
  const auto plans = std::ssize(pairs.plans), count = std::ssize(pairs.pairs);
  return {plan_text("feature_version", plan_feature_version()),
          plan_text("program", pairs.program),
          plan_text("target", hash_text(pairs.target)),
          plan_text("prices", hash_text(pairs.prices)),
          column<int64_t>("threads", DType::i64, {1}, {pairs.threads}),
          column<int64_t>("plans", DType::i64, {1}, {plans}),
          column("node_splits", DType::i64, {plans + 1}, nodes),
          column("edge_splits", DType::i64, {plans + 1}, edges),
          column("node_feat", DType::f32, {nodes.back(), kNodeDim}, features),
          column("node_share", DType::f32, {nodes.back()}, share),
          column("plan_seconds", DType::f32, {plans}, seconds),
          column("is_offered", DType::i64, {plans}, offered),
          column<int64_t>("tried", DType::i64, {3},
                          {pairs.tried.seed, pairs.tried.plans, pairs.tried.has_tuned ? 1 : 0}),
          column("edge_index", DType::i64, {edges.back(), 2}, ends),
          column("pair_index", DType::i64, {count, 2}, index),
          column("pair_ratio", DType::f32, {count}, ratios),
          column("pair_noise", DType::f32, {count}, noise)};
}

Result<PlanPairs> plan_pairs_of(std::span<const NamedTensor> given) {
  const PlanArrays arrays(given);
  const std::string version = HONE_TRY(arrays.text("feature_version"));
  if (version != plan_feature_version())
    return bad_input("its features of plans are of version {}, this hone has {}", excerpt(version),
                     plan_feature_version())
        .with_hint("'hone dataset build --task plans' measures them again");
  PlanPairs pairs;
  pairs.program = HONE_TRY(arrays.text("program"));
  HONE_TRY(check_program_name(pairs.program));
  pairs.target = HONE_TRY(arrays.hash("target"));
  pairs.prices = HONE_TRY(arrays.hash("prices"));
  pairs.threads = HONE_TRY(arrays.count("threads", Team::kMaxThreads));
  HONE_TRY(read_plans(arrays, pairs));
  HONE_TRY(read_pairs(arrays, pairs));
  HONE_TRY(read_tried(arrays, pairs));
  return pairs;
}

Status write_plan_pairs(const fs::path& path, const PlanPairs& pairs) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed)
    return bad_input("cannot create '{}': {}", path.parent_path().native(), failed.message());
  return write_npz(path, arrays_of(pairs));
}

Result<PlanPairs> read_plan_pairs(const fs::path& path) {
  const auto fits = [](std::string_view name, Type type) -> Result<bool> {
    if (type.is_static() && type.static_bytes() <= kMostArray) return true;
    return over_limit("the array '{}' is {}, of more than {} bytes", name, type.to_string(),
                      kMostArray);
  };
  Result<PlanPairs> pairs = plan_pairs_of(HONE_TRY(read_npz(path, fits)));
  if (!pairs.ok()) return std::move(pairs).error().within(path.native());
  return pairs;
}

Result<std::vector<PlanPairs>> read_all_plan_pairs(const fs::path& set) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(set / "plans", failed), end; !failed && at != end;
       at.increment(failed))
    if (at->path().extension() == ".npz") files.push_back(at->path());
  if (files.empty())
    return bad_input("'{}' has no plans that ran in turns", set.native())
        .with_hint("'hone dataset build MODEL... --task plans -o SET' measures some");
  std::ranges::sort(files);
  std::vector<PlanPairs> all;
  for (const fs::path& file : files) all.push_back(HONE_TRY(read_plan_pairs(file)));
  return all;
}

}  // namespace hone
