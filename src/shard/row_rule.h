#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"

// How the rows of a batch go through one op, read off its access relation.
//
// A value has the rows along one of its dims, or it is whole. The size of that dim is a multiple of
// the rows: row r of [rows * 4, 8] along dim 0 is 4 x 8 elements. So a reshape that merges
// the batch with the dims behind it keeps the rows apart.

namespace hone {

inline constexpr int kWhole = -1;  // in place of a dim: all devices have all of the value

struct RowRule {
  std::vector<int> operands;  // the dim that has the rows, or kWhole; as given if it is never read
  std::vector<int> results;
};

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

  // The reason where there is no rule: "it combines elements along dim 0 of operand 'input'".
  std::string reason(std::span<const int> dims) const;

 private:
  // Row r of a tensor dim, of an iteration point.
  struct Rows {
    int dim = kWhole;
    bool fits = false;
  };
  std::optional<RowRule> by(int iteration_dim, std::span<const int> dims) const;
  Rows rows_in(const Access& access, Type type, int iteration_dim) const;
  bool is_addressed_by_data(int result_dim) const;

  const Application application_;
  const std::span<const Type> results_;
  const int64_t rows_;
  const AccessRelation relation_;
};

}  // namespace hone
