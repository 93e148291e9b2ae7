#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace hone::quantize {

// The elements of a tensor of reals.
std::vector<double> reals_of(const Tensor& tensor);

// The best answers of rows, of outputs of two dims: where a row has its largest element.
struct Answers {
  int64_t rows = 0;
  int64_t equal = 0;                    // at the same place as in the f32 output
  bool are_labelled = false;            // the next two count
  int64_t right = 0, right_of_f32 = 0;  // at the place that the label names
  // The share of rows that f32 answers right, less the share that this does. Without labels the
  // share of other answers, which is at least as much. 0 without rows.
  double drop() const;
};

// How far outputs are from those of the f32 model.
struct Difference {
  // The root mean square of the difference over that of the f32 output; the worst output and the
  // worst run count. For integers and bools: the share of elements that differ.
  double error = 0;
  double largest = 0;    // of a single element, of all reals
  Answers answers = {};  // of the output with the most other answers, over all runs

  std::optional<double> equal_best() const;  // the share of rows
  void add_run(const Difference& other);
};

// The difference of one run. Labels are integers, one per row of the first output of two dims. An
// error if the f32 output has a number that is not finite; another one where it is counts as an
// infinite difference.
Result<Difference> difference(std::span<const Tensor> actual, std::span<const Tensor> expected,
                              const Tensor* labels = nullptr);

}  // namespace hone::quantize
