#pragma once

#include "ir/winograd.h"
#include "kernel/algorithms/algorithm.h"

namespace hone {

// The roles of the dims of a kernel's space in a conv of one or two spatial dims whose windows are
// three long and stand side by side.
struct WinogradDims {
  int batch = 0, features = 0, channels = 0;
  int64_t groups = 1;                // parts of the features, which sum channels of their own
  std::vector<int> spatial, window;  // in the same order
  WinogradWindows::Dims weights;     // where the second operand has its dims
};

// An error says why winograd is not for the body. The weights must be a parameter that only the
// conv reads. The conv must permit transforms, and a group must have channels to sum over. Each
// point of the results must need the point at the same place, apart from a permutation of dims.
Result<WinogradDims> winograd_dims(const KernelBody& body, const KernelFacts& facts);

// AlgorithmDef::roles() of winograd.
struct WinogradRoles {
  WinogradDims dims;
  KernelSpace space;
};

// The roles under a schedule.
struct WinogradShape {
  WinogradShape() = default;
  WinogradShape(const WinogradDims& dims, const KernelSpace& space, const Schedule& schedule);

  int64_t points = 2;                  // along each side of a tile
  int64_t products = 16;               // of a tile
  std::vector<int64_t> block;          // tiles, by spatial dim
  int64_t tiles = 1;                   // in a block
  int64_t rows = 1;                    // tiles side by side in registers
  int64_t lanes = 1, vectors = 1;      // of a panel of features
  int64_t parts = 1;                   // of all features: groups, and parts of those
  int64_t channels = 1, features = 1;  // of a part
  int64_t panel() const { return lanes * vectors; }
  int64_t panels() const { return (features + panel() - 1) / panel(); }  // of a part
  // Blocks along a spatial dim with this many results.
  int64_t blocks(size_t spatial, int64_t results) const {
    const int64_t side = points * block[spatial];
    return (results + side - 1) / side;
  }
};

// The weights as the kernel reads them: [panels of all parts, products, channels, features of a
// panel].
Type winograd_weights_type(const WinogradShape& shape, DType dtype);
Tensor winograd_weights(const Tensor& weights, const WinogradDims& dims, const WinogradShape& shape,
                        DType dtype);

// The same as a kernel's prepared input.
PreparedInput winograd_input(const KernelBody& body, const KernelFacts& facts,
                             const WinogradDims& dims, const WinogradShape& shape);

// Says whether the conv permits a transform of this number of points. The second gives all that it
// permits.
Status check_winograd_points(const ScheduleSite& site, int points);
std::vector<int> winograd_numbers_of_points(const ScheduleSite& site);

// Statements of the transforms, for each product of a tile.
inline constexpr double kWinogradStatements = 12;

// The number of products of a tile over that of a conv with windows of 3.
double winograd_share(const WinogradShape& shape);

// ---- What is worth a look first -----------------------------------------------------------------

// Blocks, by spatial dim, of a conv with such schedules.
std::vector<std::vector<Tile>> usual_winograd_blocks(const ScheduleSite& site,
                                                     const WinogradDims& dims,
                                                     const Schedule& so_far);

}  // namespace hone
