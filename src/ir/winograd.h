#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/ops/conv_order.h"
#include "tensor/tensor.h"

namespace hone {

// Winograd's F(n, 3): n neighbouring sums over windows of three numbers take n + 2 products instead
// of 3n. For two dims F(n, 3) is done along each:
//
//   Y = A^T [sum over channels of (G g G^T) * (B^T d B)] A
//
// with the weights g, the n + 2 numbers d that the windows see, and the sums Y. It is the way to
// multiply polynomials by their values at points: 0, then p and -p for each of `pairs`, then
// infinity.
struct WinogradTransform {
  using Matrix = std::vector<std::vector<double>>;  // by row

  explicit WinogradTransform(int64_t points);  // a number of kWinogradPoints
  int64_t points;                              // n
  int64_t products() const { return points + 2; }
  std::vector<double> pairs;
  Matrix weights;  // G
  Matrix data;     // B^T; in the rows of p and -p the even columns are equal, the odd ones opposite
  Matrix results;  // A^T
};

inline constexpr int64_t kWinogradWindow = 3;
inline constexpr int64_t kWinogradPoints[] = {2, 4};

// The weights of a conv of one or two spatial dims, window by window.
class WinogradWindows {
 public:
  // Where the weights have their features, channels and windows.
  struct Dims {
    int features = 0, channels = 0;
    std::vector<int> window;
  };
  WinogradWindows(const Tensor& weights, const Dims& dims);
  WinogradWindows(const WinogradWindows&) = delete;
  WinogradWindows& operator=(const WinogradWindows&) = delete;

  int64_t features() const { return features_; }
  int64_t channels() const { return channels_; }
  int dims() const { return dims_; }
  size_t taps() const { return taps_.size(); }  // 3^dims
  // The weights of a channel of a feature, row-major.
  void read(int64_t feature, int64_t channel, std::span<double> window) const;
  // The sum of squares of a feature's weights; if one is NaN, so is the sum.
  double squares(int64_t feature) const;

 private:
  double number(int64_t index) const;

  // Numbers of f32 stay where they are, unless they are lazy: there are many.
  Tensor weights_;
  std::vector<std::byte> filled_;
  std::span<const std::byte> floats_;
  std::vector<double> others_;
  int64_t features_, channels_, feature_stride_, channel_stride_;
  int dims_ = 0;
  std::vector<int64_t> taps_;  // from the first of a window to each
};

// G g G^T as a matrix: the products of a tile, row-major, by the weights of a window, row-major.
std::vector<double> weights_matrix(const WinogradTransform& transform, int dims);

// How many times the rounding errors of plain sums those of the transformed products are, for
// independent data. It is the mean over the points of a tile, of the feature with the largest
// errors.
double winograd_loss(const WinogradTransform& transform, const WinogradWindows& weights,
                     std::span<const int64_t> features);

// The most points of kWinogradPoints by which a conv of one or two dims with these weights keeps
// its accuracy. It is 0 if there are none, if the windows are not of three, or if weights are not
// finite. It is also 0 if weights are so large that transformed numbers may leave f32. If there are
// many features, it looks at those with the largest weights, since they make the largest errors.
int64_t winograd_points(const Tensor& weights, const ConvOrder& order);

}  // namespace hone
