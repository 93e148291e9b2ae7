#include "front/onnx/ops/forms.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Products of matrices.

namespace hone::onnx_io {
namespace {

// The old ops broadcast only if they are told to.
void check_old_broadcast(Node& n, Value c, const Dims& dims) {
  if (n.version() >= 7 || n.flag("broadcast")) return;
  if (c.dims() != dims)
    n.bad("C is {}, the product is {}, and broadcast is not set", c.type().to_string(),
          Type::get(c.dtype(), dims).to_string());
}

// A number, or one per row: a vector of them stands along the rows of a matrix.
Value less_zero_point(Node& n, Value x, Value zero, bool per_row) {
  if (!zero) return centered(n, x, zero);
  if (zero.rank() == 1 && zero.dim(0).is(1)) zero = squeeze(zero, 0);
  if (per_row && zero.rank() == 1 && x.rank() >= 2) zero = unsqueeze(zero, 1);
  if (zero.rank() > x.rank())
    n.bad("a zero point of rank {} for an operand of rank {}", zero.rank(), x.rank());
  return centered(n, x, broadcast_to(zero, x.dims()));
}

}  // namespace

void map_matmul(Node& n) {
  n.require_rank(n.in(0), "A", 1);
  n.require_rank(n.in(1), "B", 1);
  n.out(matmul(n.in(0), n.in(1)));
}

void map_gemm(Node& n) {
  Value a = n.in(0), b = n.in(1), c = n.optional(2);
  n.require_rank(a, "A", 2, 2);
  n.require_rank(b, "B", 2, 2);
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const bool trans_a = n.flag("transA"), trans_b = n.flag("transB");
  // Factors are real numbers, whatever the matrices are.
  const DType dtype = a.dtype();
  const bool as_reals = !is_real(dtype) && (alpha != 1 || beta != 1);
  auto operand = [&](Value v) { return as_reals ? cast(v, DType::f64) : v; };
  Value y = dot_general(operand(a), operand(b), {}, {}, {trans_a ? 0 : 1}, {trans_b ? 1 : 0});
  if (alpha != 1) y = y * alpha;
  if (n.version() < 7) n.flag("broadcast");
  if (c) {
    check_old_broadcast(n, c, y.dims());
    if (beta != 0) {
      c = operand(c);
      if (beta != 1) c = c * beta;
      y = y + broadcast_to(c, y.dims());
    }
  }
  n.out(cast(y, dtype));
}

void map_matmul_integer(Node& n) {
  n.require_rank(n.in(0), "A", 1);
  n.require_rank(n.in(1), "B", 1);
  n.out(matmul(less_zero_point(n, n.in(0), n.optional(2), true),
               less_zero_point(n, n.in(1), n.optional(3), false)));
}

void map_einsum(Node& n) {
  const std::vector<Value> operands = n.all_inputs();
  if (operands.empty()) n.bad("an equation without operands");
  if (!n.has_attribute("equation")) n.bad("there is no equation");
  const std::string equation = n.word("equation", "");
  if (operands.size() == 2)
    if (Value y = dot_of_einsum(equation, operands[0], operands[1])) return n.out(y);
  n.out(einsum(equation, operands));
}

}  // namespace hone::onnx_io
