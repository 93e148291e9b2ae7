#pragma once

#include <span>
#include <vector>

#include "quantize/rewrite.h"

// Calibration sees the data and results of layers; from them follow scales of bytes.

namespace hone::quantize {

// Numbers per index of a dim, over all runs.
class Seen {
 public:
  // Outputs of one run of probe(), those of one layer.
  void add(std::span<const Tensor> outputs);

  DataRange range() const;                                         // of all data
  DataRange range_after(std::span<const double> smoothing) const;  // of data over their factors
  // Factors that move a part of the range of the data into the weights, where channels differ. Each
  // is the square root of the largest number of the data over that of the weights. Empty if the
  // layer has no dim for them, too few rows were seen, or there is nothing to gain.
  std::vector<double> smoothing(const Layer& layer) const;
  // Numbers that are added to the result so that its means are those of `exact`; empty likewise.
  std::vector<double> correction(const Layer& layer, const Seen& exact) const;
  bool is_finite() const;

 private:
  std::vector<double> low_, high_;  // of the data, per index of data_axis
  std::vector<double> sum_;         // of the means of the result, per index of result_axis
  int64_t runs_ = 0;
};

}  // namespace hone::quantize
