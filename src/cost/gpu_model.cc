#include "cost/gpu_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "kernel/algorithms/algorithm.h"
#include "kernel/algorithms/block_chain.h"
#include "kernel/algorithms/block_copy.h"
#include "kernel/algorithms/block_ordered.h"
#include "kernel/algorithms/block_rows.h"
#include "kernel/algorithms/block_tiles.h"
#include "target/gpu.h"

namespace hone {

namespace {

constexpr double kPlainWarps = 8;    // of a block whose threads have a trip each
constexpr double kMostResidual = 3;  // a logarithm: what was never seen counts as no more

struct Scale {
  std::string_view name;
  double GpuTimes::* member;
};
constexpr Scale kScales[] = {{"launch", &GpuTimes::launch},
                             {"arithmetic", &GpuTimes::arithmetic},
                             {"latency", &GpuTimes::latency},
                             {"memory", &GpuTimes::memory},
                             {"access", &GpuTimes::access}};

double count_of(const KernelFacts& facts, int dim) {
  return facts.loops[static_cast<size_t>(dim)].extent;
}

// Blocks, warps and bytes of memory of each.
std::array<double, 3> shape_of(const KernelFacts& facts, const Schedule& schedule) {
  double divided = 1;
  for (int i = 0; i < schedule.threads && i < std::ssize(schedule.order); ++i)
    divided *= count_of(facts, schedule.order[static_cast<size_t>(i)]);
  if (const auto* rows = schedule.if_is<BlockRowsFields>())
    return {divided, static_cast<double>(rows->warps), 0};
  if (const auto* tiles = schedule.if_is<BlockTilesFields>()) {
    const Result<TiledProduct> product = tiled_product(facts);
    if (!product.ok()) return {divided, kPlainWarps, 0};
    const BlockTile tile = block_tile(facts, *tiles);
    return {static_cast<double>(blocks_of(*product, tile)),
            static_cast<double>(tile.threads()) / static_cast<double>(kWarpLanes),
            static_cast<double>(tile.bytes())};
  }
  if (const auto product = def_of(schedule.algorithm()).product(facts, schedule))
    return shape_of(KernelFacts(product->body), product->schedule);
  if (const auto* chain = schedule.if_is<BlockChainFields>()) {
    double bytes = 0;
    if (const Result<std::vector<BlockStage>> stages = block_stages(facts.body, schedule);
        stages.ok())
      for (const BlockStage& stage : *stages) bytes += static_cast<double>(stage.bytes);
    for (const Tile& tile : chain->block)
      if (tile.dim < facts.space.parallel) divided /= static_cast<double>(tile.count);
    return {std::max(divided, 1.0), static_cast<double>(chain->warps), bytes};
  }
  if (const auto* sums = schedule.if_is<BlockSumsFields>())
    return {divided / sums->columns * sums->splits, static_cast<double>(sums->warps), 0};
  if (const auto* copy = schedule.if_is<BlockCopyFields>())
    return {divided / static_cast<double>(kCopySide * kCopySide), static_cast<double>(copy->warps),
            0};
  if (is_ordered_by_blocks(schedule)) {
    const OrderedShape all = ordered_shape(facts.body, schedule);
    return {static_cast<double>(all.blocks),
            static_cast<double>(all.threads) / static_cast<double>(kWarpLanes),
            static_cast<double>(all.bytes)};
  }
  return {std::ceil(divided / (kPlainWarps * static_cast<double>(kWarpLanes))), kPlainWarps, 0};
}

std::string quoted_name(std::string_view target) { return fmt::format("\"{}\"", target); }

class Parser {
 public:
  Parser(std::string_view target, std::string_view file) : target_(target), file_(file) {}

  Result<GpuModel> run(std::string_view text) && {
    for (std::string_view line : split(text, '\n')) {
      ++line_;
      if (trim(line).empty()) continue;
      Status good = has_head_ ? entry(trim(line)) : head(trim(line));
      if (!good.ok()) return std::move(good).error().within(fmt::format("{}:{}", file_, line_));
    }
    for (const Scale& scale : kScales)
      if (!seen_.contains(std::string(scale.name)))
        return bad_input("the scale '{}' is missing", scale.name).within(std::string(file_));
    return std::move(model_);
  }

 private:
  Status head(std::string_view line) {
    has_head_ = true;
    const std::string begin = fmt::format("gpu price on {} of ", quoted_name(target_));
    const std::string end = fmt::format(" kernels by formulas {}", kGpuFormulas);
    if (!line.starts_with("gpu price on "))
      return bad_input("it does not begin with 'gpu price on'");
    if (!line.starts_with(begin))
      return bad_input("the price is not for the target {}", quoted_name(target_));
    if (!line.ends_with(end))
      return bad_input("it was learned beside other formulas than number {} of this hone",
                       kGpuFormulas);
    const Result<double> kernels =
        parse_double(line.substr(begin.size(), line.size() - begin.size() - end.size()));
    if (!kernels.ok() || !(*kernels >= 1 && *kernels <= 1e9) || *kernels != std::floor(*kernels))
      return bad_input("it does not say of how many kernels it is");
    model_.target = target_;
    model_.kernels = static_cast<int64_t>(*kernels);
    return {};
  }

  Status entry(std::string_view line) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return bad_input("expected 'NAME = NUMBERS'");
    const std::string name(trim(line.substr(0, equals)));
    if (!seen_.insert(name).second) return bad_input("'{}' stands twice", excerpt(name));
    std::vector<double> numbers;
    for (std::string_view word : split(trim(line.substr(equals + 1)), ' ')) {
      const Result<double> number = parse_double(word);
      if (!number.ok() || !(std::abs(*number) <= kMaxGpuScale))
        return bad_input("'{}' is not a number of at most {}", excerpt(word), kMaxGpuScale);
      numbers.push_back(*number);
    }
    for (const Scale& scale : kScales) {
      if (name != scale.name) continue;
      if (numbers.size() != 1 || numbers[0] < 0)
        return bad_input("'{}' is one number from 0", name);
      model_.scales.*scale.member = numbers[0];
      return {};
    }
    const bool is_algorithm = std::ranges::any_of(
        kAlgorithms, [&](Algorithm algorithm) { return hone::name(algorithm) == name; });
    if (!is_algorithm) return bad_input("there is no scale or algorithm '{}'", excerpt(name));
    if (numbers.size() != std::size(kGpuFeatures))
      return bad_input("'{}' has {} numbers, not {}", name, numbers.size(),
                       std::size(kGpuFeatures));
    std::ranges::copy(numbers, model_.factors[name].begin());
    return {};
  }

  const std::string_view target_, file_;
  GpuModel model_;
  std::set<std::string, std::less<>> seen_;
  int line_ = 0;
  bool has_head_ = false;
};

}  // namespace

GpuFeatures gpu_features(const KernelFacts& facts, const Schedule& schedule) {
  const auto [blocks, warps, shared] = shape_of(facts, schedule);
  double bytes = 0;
  for (const KernelFacts::Array& array : facts.arrays) bytes += array.bytes * array.share;
  return {1, std::log2(1 + blocks), std::log2(1 + warps), std::log2(1 + shared),
          std::log2(1 + bytes)};
}

double GpuModel::seconds(const GpuTimes& analytic, const GpuFeatures& features,
                         Algorithm algorithm) const {
  GpuTimes scaled = analytic;
  for (const Scale& scale : kScales) scaled.*scale.member *= scales.*scale.member;
  return scaled.total() * factor(features, algorithm);
}

double GpuModel::factor(const GpuFeatures& features, Algorithm algorithm) const {
  const auto own = factors.find(name(algorithm));
  if (own == factors.end()) return 1;
  double residual = 0;
  for (size_t i = 0; i < features.size(); ++i) residual += own->second[i] * features[i];
  return std::exp(std::clamp(residual, -kMostResidual, kMostResidual));
}

std::string print(const GpuModel& model) {
  std::string text = fmt::format("gpu price on {} of {} kernels by formulas {}\n",
                                 quoted_name(model.target), model.kernels, kGpuFormulas);
  for (const Scale& scale : kScales)
    text += fmt::format("{} = {}\n", scale.name, model.scales.*scale.member);
  for (const auto& [algorithm, factors] : model.factors)
    text += fmt::format("{} = {}\n", algorithm, fmt::join(factors, " "));
  return text;
}

Result<GpuModel> parse_gpu_model(std::string_view text, std::string_view target,
                                 std::string_view file) {
  if (std::ssize(text) > kMaxGpuModelText)
    return over_limit("the price has {} bytes, more than {}", text.size(), kMaxGpuModelText)
        .within(std::string(file));
  if (trim(text).empty()) return bad_input("the file is empty").within(std::string(file));
  return Parser(target, file).run(text);
}

}  // namespace hone
