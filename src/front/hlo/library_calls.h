#pragma once

#include <vector>

#include "front/hlo/importer.h"

// Custom calls that hone computes itself. Others are refused when the model runs.

namespace hone::hlo {

// JAX writes linear algebra on a CPU as calls of LAPACK. The factor of Cholesky comes with a
// report: 0, or the first minor that is not positive.
std::vector<Value> lapack_cholesky(Node& n);
std::vector<Value> lapack_triangle(Node& n);

// A reduce_window whose window is given by operands: what JAX writes where sizes are open.
std::vector<Value> dynamic_reduce_window(Node& n);

}  // namespace hone::hlo
