#include "shard/sharding_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/application.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "ir/text.h"
#include "tests/shard/shardy_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using tested::ShardyCase;

std::string rule_of(std::string_view body) {
  const Result<Graph> graph = parse_graph(fmt::format("graph @g{}", body));
  if (!graph.ok()) return graph.error().to_string();
  const Result<ShardingRule> rule = sharding_rule(*graph);
  return rule.ok() ? to_string(*rule) : rule.error().to_string();
}

TEST(ShardingRule, OfProductsAndSums) {
  EXPECT_EQ(rule_of("(%x: f32[8, 6], %w: f32[6, 4]) -> f32[8, 4] {\n"
                    "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
                    "  return %y\n}\n"),
            "([i, j], [j, k])->([i, k]) {i=8, j=6, k=4} reduction={j}");
  EXPECT_EQ(rule_of("(%x: f32[8, 6]) -> f32[8] {\n"
                    "  %y = reduce %x {kind = max, axes = [1]}\n  return %y\n}\n"),
            "([i, j])->([i]) {i=8, j=6} reduction={j}");
  EXPECT_EQ(rule_of("(%x: f32[8, 6]) -> f32[8, 6] {\n"
                    "  %y = cumulative %x {kind = sum, axis = 1}\n  return %y\n}\n"),
            "([i, j])->([i, j]) {i=8, j=6} permutation={j}");
}

TEST(ShardingRule, OfMovement) {
  EXPECT_EQ(rule_of("(%x: f32[8, 6]) -> f32[6, 8] {\n"
                    "  %y = transpose %x {permutation = [1, 0]}\n  return %y\n}\n"),
            "([i, j])->([j, i]) {i=8, j=6}");
  EXPECT_EQ(rule_of("(%x: f32[6, 4]) -> f32[4, 6] {\n"
                    "  %y = reshape %x {dims = [4, 6]}\n  return %y\n}\n"),
            "([ij, kl])->([im, nl]) {i=2, j=3, k=2, l=2, m=2, n=3}");
  EXPECT_EQ(rule_of("(%x: f32[8, 6]) -> f32[8, 3] {\n"
                    "  %y = slice %x {start = [0, 1], limit = [8, 4]}\n  return %y\n}\n"),
            "([i, j])->([i, j]) {i=8, j=3} permutation={j}");
}

// A composite keeps what the ops that it is spelled out in keep.
TEST(ShardingRule, OfComposites) {
  EXPECT_EQ(rule_of("(%x: f32[8, 6]) -> f32[8, 6] {\n"
                    "  %y = softmax %x {axis = 1}\n  return %y\n}\n"),
            "([i, j])->([i, j]) {i=8, j=6} reduction={j}");
}

TEST(ShardingRule, OfLoops) {
  EXPECT_EQ(rule_of("(%x: f32[8], %s: f32[5, 8]) -> (f32[8], f32[5, 8]) {\n"
                    "  %a, %b = scan %x, %s {carried = 1} body (%c: f32[8], %d: f32[8]) {\n"
                    "    %e = add %c, %d\n"
                    "    return %e, %e\n"
                    "  }\n"
                    "  return %a, %b\n}\n"),
            "([i], [j, i])->([i], [k, i]) {i=8, j=5, k=5} replication={j, k} blocked={j, k}");
}

// Random ops: factors make up the dims that are read as they are.
TEST(ShardingRule, FactorsMakeUpDims) {
  int seen = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Graph graph = random_graph({.seed = seed});
    if (!graph.is_static()) continue;
    for (const NodeId n : graph.nodes()) {
      if (is_leaf(graph.opcode(n)) || !graph.regions(n).empty()) continue;
      const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
      const Result<ShardingRule> rule = sharding_rule(Application{graph.op(n), operands}, results);
      ASSERT_TRUE(rule.ok()) << graph.describe(n) << rule.error().to_string();
      ASSERT_EQ(rule->operands.size(), operands.size());
      ASSERT_EQ(rule->results.size(), results.size());
      ++seen;
      for (size_t i = 0; i < results.size(); ++i)
        for (int d = 0; d < results[i].rank(); ++d) {
          std::set<int> different;
          int64_t size = 1;
          for (const int f : rule->results[i][static_cast<size_t>(d)]) {
            EXPECT_TRUE(different.insert(f).second) << graph.describe(n);
            size *= rule->factors[static_cast<size_t>(f)].size;
          }
          bool passes = true;
          for (const int f : different)
            passes = passes && rule->factors[static_cast<size_t>(f)].kind == FactorKind::pass;
          if (passes)
            EXPECT_EQ(size, results[i].dim(d).value()) << graph.describe(n) << to_string(*rule);
        }
    }
  }
  EXPECT_GT(seen, 500);
}

// ---- The rules of Shardy ------------------------------------------------------------------------

// A rule of Shardy; factors are letters, "z_1" and so on are read as one.
struct StatedRule {
  std::map<std::string, int64_t> sizes;
  std::set<std::string> reduction, replication, permutation, blocked;
  std::vector<std::vector<std::vector<std::string>>> tensors;
  size_t operands = 0;
};

std::vector<std::string> letters(std::string_view text) {
  std::vector<std::string> found;
  for (const char c : text)
    if (c == '_' || (c >= '0' && c <= '9'))
      found.back() += c;
    else if (c >= 'a' && c <= 'z')
      found.emplace_back(1, c);
  return found;
}

StatedRule stated_rule(std::string_view text) {
  StatedRule rule;
  const size_t arrow = text.find("->");
  size_t at = 0;
  while ((at = text.find('[', at)) != text.npos) {
    const size_t end = text.find(']', at);
    if (at < arrow) ++rule.operands;
    auto& tensor = rule.tensors.emplace_back();
    const std::string_view dims = text.substr(at + 1, end - at - 1);
    if (!dims.empty())
      for (const std::string_view dim : split(dims, ',')) tensor.push_back(letters(dim));
    at = end;
  }
  const auto list = [&](std::string_view key) {
    std::set<std::string> found;
    const size_t begin = text.find(fmt::format("{}={{", key));
    if (begin == text.npos) return found;
    const size_t open = text.find('{', begin);
    for (std::string& one : letters(text.substr(open, text.find('}', open) - open)))
      found.insert(std::move(one));
    return found;
  };
  rule.reduction = list("reduction");
  rule.replication = list("need_replication");
  rule.permutation = list("permutation");
  rule.blocked = list("blocked_propagation");
  if (const size_t open = text.find('{'); open != text.npos)
    for (const std::string_view one : split(text.substr(open + 1, text.find('}') - open - 1), ','))
      if (const size_t equals = one.find('='); equals != one.npos)
        rule.sizes[std::string(trim(one.substr(0, equals)))] =
            parse_int(trim(one.substr(equals + 1))).value();
  return rule;
}

// Empty if each factor of the other is a product of factors of the rule that allow as much. Else
// the reason.
std::string coarser(const ShardingRule& rule, const StatedRule& other) {
  std::vector<const TensorFactors*> own;
  for (const TensorFactors& tensor : rule.operands)
    if (!tensor.empty()) own.push_back(&tensor);
  const size_t own_operands = own.size();
  for (const TensorFactors& tensor : rule.results) own.push_back(&tensor);
  std::vector<const std::vector<std::vector<std::string>>*> theirs;
  size_t dropped = 0;
  for (size_t i = 0; i < other.tensors.size(); ++i) {
    if (i < other.operands && other.tensors[i].empty()) continue;
    const bool is_again =
        i < other.operands && !theirs.empty() && *theirs.back() == other.tensors[i];
    const size_t more = std::count_if(other.tensors.begin(), other.tensors.begin() + other.operands,
                                      [](const auto& tensor) { return !tensor.empty(); });
    if (is_again && more - dropped > own_operands) {  // one value is given twice
      ++dropped;
      continue;
    }
    theirs.push_back(&other.tensors[i]);
  }
  if (own.size() != theirs.size()) return "another number of tensors";
  std::map<std::string, DimFactors> same;
  for (size_t t = 0; t < own.size(); ++t) {
    if (own[t]->size() != theirs[t]->size()) return "another rank";
    for (size_t d = 0; d < own[t]->size(); ++d) {
      DimFactors left = (*own[t])[d];
      std::erase_if(left, [&](int f) { return rule.factors[static_cast<size_t>(f)].size == 1; });
      std::vector<std::string> names = (*theirs[t])[d];
      std::erase_if(names, [&](const std::string& name) { return other.sizes.at(name) <= 1; });
      for (size_t k = 0; k < names.size(); ++k) {
        DimFactors taken;
        int64_t size = 1;
        while (!left.empty() && (k + 1 == names.size() || size < other.sizes.at(names[k]))) {
          taken.push_back(left[0]);
          size *= rule.factors[static_cast<size_t>(left[0])].size;
          left.erase(left.begin());
        }
        for (const int f : taken) {
          const FactorKind kind = rule.factors[static_cast<size_t>(f)].kind;
          const bool allows =
              kind == FactorKind::pass || other.replication.contains(names[k]) ||
              (kind == FactorKind::permutation && other.permutation.contains(names[k])) ||
              (kind == FactorKind::reduction && other.reduction.contains(names[k]));
          if (!allows) return fmt::format("factor {} allows less", names[k]);
        }
        if (other.replication.contains(names[k])) continue;
        const auto [found, is_new] = same.emplace(names[k], taken);
        if (!is_new && found->second != taken)
          return fmt::format("factor {} is not one in all tensors", names[k]);
      }
    }
  }
  return "";
}

// Cases that are not compared, by name, and why.
const std::map<std::string, std::string_view>& left_out() {
  constexpr std::string_view kFft = "hone has no FFT";
  constexpr std::string_view kForeign = "a call of another system";
  constexpr std::string_view kOfDevices = "it speaks of devices already: its rule is of one device";
  static const std::map<std::string, std::string_view> kLeftOut = {
      {"fft", kFft},
      {"fft_inverse", kFft},
      {"fft_real_truncated_result", kFft},
      {"fft_inverse_real_expanded_result", kFft},
      {"fft_single_fft_dimension", kFft},
      {"fft_single_fft_dimension_inverse", kFft},
      {"fft_single_fft_dimension_real_truncated_result", kFft},
      {"fft_single_fft_dimension_inverse_real_expanded_result", kFft},
      {"custom_call_compact_wy_helper", kForeign},
      {"custom_call_inspect_sharding", kForeign},
      {"custom_call_x64_combine", kForeign},
      {"custom_call_x64_combine_used_by_rng_bit_generator", kForeign},
      {"custom_call_x64_split_high", kForeign},
      {"custom_call_x64_split_low", kForeign},
      {"custom_call_xla_megascale_provide_metadata", kForeign},
      {"custom_call_eigh", kForeign},
      {"custom_call_qr", kForeign},
      {"custom_call_qr_decomposition_block", kForeign},
      {"custom_call_householder_product", kForeign},
      {"custom_call_erf", kForeign},
      {"custom_call_topk_of_1d", kForeign},
      {"custom_call_topk_of_2d", kForeign},
      {"custom_call_top2_of_2d", kForeign},
      {"custom_call_approx_topk", kForeign},
      {"custom_call_partial_reduce", kForeign},
      {"custom_call_partial_reduce_string_backend_config", kForeign},
      {"unregisterd_custom_call_with_existing_rule", kForeign},
      {"all_gather", kOfDevices},
      {"all_to_all_same_dimension", kOfDevices},
      {"reduce_scatter", kOfDevices},
      {"dynamic_update_slice_constant_indices", "sdy.constant is no op of a program"},
      {"gather_implicit_index_vector_dim_and_size_one_collapsed_slice_dim",
       "the window fills the dim, so the indices are not read"},
      {"reduce_multiple_results", "a loop"},
      {"reduce_window", "two ops with factors of their own"},
      {"rng_bit_generator", "the state that comes out is computed from the one that goes in"},
      {"scatter_multiple_input", "a loop"},
      {"scatter_unsupported_multi_reduction_op", "a loop"},
      {"select_and_scatter", "a scatter to places that are computed"}};
  return kLeftOut;
}

// Some convolutions have dilations of 1 beside their window, by names that StableHLO has not. They
// are marked as attributes of others.
std::string without_strays(std::string program) {
  constexpr std::string_view kMark = "shardy.";
  for (const std::string_view word : {"lhs_dilations = dense<1>", "rhs_dilations = dense<1>"})
    for (size_t at = 0; (at = program.find(word, at)) != program.npos; at += word.size())
      at = program.insert(at, kMark).find(word, at);
  return program;
}

TEST(ShardingRule, IsAtLeastAsFineAsThoseOfShardy) {
  int compared = 0;
  std::map<std::string, std::string> found;
  for (const std::string_view file :
       {"op_sharding_rule_registry.mlir", "op_sharding_rule_registry_conservative.mlir"}) {
    const std::optional<std::vector<ShardyCase>> cases = tested::shardy_cases(file);
    if (!cases) GTEST_SKIP() << "../shared/data/shardy is not here";
    for (const ShardyCase& one : *cases) {
      std::string text;
      for (const std::string& line : one.expected)
        if (const size_t at = line.find("op_sharding_rule<"); at != line.npos)
          text = line.substr(at + 17);
      if (text.empty()) continue;
      const Result<Model> model = parse_hlo(without_strays(one.program), one.name);
      if (!model.ok()) {
        found[one.name] = fmt::format("refused: {}", model.error().what());
        continue;
      }
      const Result<ShardingRule> rule = sharding_rule(*single_graph(*model));
      ASSERT_TRUE(rule.ok()) << one.name << rule.error().to_string();
      const std::string why = coarser(*rule, stated_rule(text));
      if (!why.empty()) {
        found[one.name] = fmt::format("{}: {}\n    {}", why, to_string(*rule), text);
        continue;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 88);
  for (const auto& [name, why] : found)
    EXPECT_TRUE(left_out().contains(name)) << name << ": " << why;
  for (const auto& [name, why] : left_out()) EXPECT_TRUE(found.contains(name)) << name;
}

}  // namespace
}  // namespace hone::HONE_FILE
