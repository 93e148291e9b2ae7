#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "shard/sharding_rule.h"

// How the rows of a batch go through one op: its sharding rule, read for one factor that has them.
//
// A value has the rows along one of its dims, or it is whole, or it is a partial sum. The size of
// the dim with the rows is a multiple of them: row r of [rows * 4, 8] along dim 0 is 4 x 8
// elements. So a reshape that merges the batch with the dims behind it keeps the rows apart.

namespace hone {

// In place of a dim:
inline constexpr int kWhole = -1;       // all devices have all of the value
inline constexpr int kPartialSum = -2;  // what the devices have adds up to the value

struct RowRule {
  std::vector<int> operands;  // the dim that has the rows, or kWhole; as given if it is never read
  std::vector<int> results;
};

// True if the op adds up what it combines: a dot, a reduce or a scatter by addition.
bool adds_up(Op op);

// An application that is to compute each row from that row alone. Static types only; at least 2
// rows. The types outlive it.
class RowsOfOp {
 public:
  RowsOfOp(const Application& application, std::span<const Type> results, int64_t rows);

  // The rule where operands have rows along these dims, at least one of them. An operand that is
  // given whole is to be cut, if the rule has a dim for it. nullopt: rows mix; see reason().
  std::optional<RowRule> from_operands(std::span<const int> dims);
  // The rule that gives a result rows along this dim, where all operands are whole as yet.
  std::optional<RowRule> from_result(int result, int dim);

  // The rule of an op that adds up the rows, for operands as above: its results are partial sums.
  // An operand that others are added to is one, too: it counts on one device alone.
  std::optional<RowRule> sum_from_operands(std::span<const int> dims);

  // Says why rows mix: "it combines elements along dim 0 of operand 'input'".
  std::string reason(std::span<const int> dims) const;

 private:
  std::optional<RowRule> by(int factor, std::span<const int> dims) const;
  std::optional<std::vector<int>> operands_by(int factor, std::span<const int> dims) const;
  bool is_read(size_t operand) const;
  bool has_rows(int factor, FactorKind kind) const;
  std::optional<int> place_of(int factor, const TensorFactors& tensor) const;

  const Application application_;
  const int64_t rows_;
  const AccessRelation relation_;
  ShardingRule rule_;
};

}  // namespace hone
