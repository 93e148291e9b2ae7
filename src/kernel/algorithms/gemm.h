#pragma once

#include <span>
#include <vector>

#include "kernel/algorithms/algorithm.h"

namespace hone {

// The products other than plain ones that the body can have on the target: by words (words.h), or
// on a matrix unit (matrix.h).
std::vector<Products> other_products(const ScheduleSite& site);

// Bytes of scratch of a gemm whose fields are legal.
Result<double> gemm_scratch(const ScheduleSite& site, const Schedule& schedule);
// ---- What is worth a look first -----------------------------------------------------------------

inline constexpr Packing kUsualLhs[] = {Packing::no, Packing::panels, Packing::window};
inline constexpr Packing kUsualRhs[] = {Packing::no, Packing::panels, Packing::window};
// Rows of a register tile whose lanes go along another dim; vectors of lanes that stand side by
// side.
std::vector<int64_t> usual_rows(const ScheduleSite& site, int dim);
// The rows of a matrix unit, along one of these dims, or all of it and some of another one.
std::vector<std::vector<Tile>> usual_matrix_rows(const ScheduleSite& site,
                                                 std::span<const int> dims);
std::vector<int64_t> usual_vectors(const ScheduleSite& site, int dim, int64_t lanes);
// The blocks of a dim, in points; 0 or 1: none.
std::vector<int64_t> usual_blocks(const ScheduleSite& site, const Schedule& so_far, int dim);

}  // namespace hone
