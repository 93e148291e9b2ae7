#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/functional.h"

// Recurrent layers of other forms share this with the composites: the cell of an LSTM behind its
// products, and sequences that end early.

namespace hone {

using RecurrentActivation = std::function<Value(Value)>;

// Three functions per direction from a list of attributes, as `lstm` has them.
Result<std::vector<RecurrentActivation>> lstm_activations(std::string_view list, size_t directions);

struct LstmStep {
  Value sums;           // [batch, 4 * hidden]: all products with their biases, gates i, o, f, c
  Value cell;           // [batch, hidden]
  Value peephole = {};  // [3 * hidden]: i, o, f; or absent
  std::span<const RecurrentActivation> activations;  // of the direction
  double clip = 0;
  bool input_forget = false;
};
// The next output and the next cell.
std::vector<Value> lstm_step(const LstmStep& step);

// `next` where `now`, a number, is less than a sequence's length, else `state`; behind them the
// first entry, or 0.
std::vector<Value> masked_step(const std::vector<Value>& next, const std::vector<Value>& state,
                               Value now, Value lengths);

}  // namespace hone
