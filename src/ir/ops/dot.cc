#include <algorithm>
#include <array>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/contraction.h"
#include "ir/ops/iter_names.h"
#include "ir/reference/strided.h"

// The product of two tensors over pairs of contracted dims, for every index of pairs of batch dims.

namespace hone {
namespace {

constexpr AttrSpec kDotAttrs[] = {
    {"lhs_batch", AttrKind::ints, "[]", "Batch dims of lhs, in the result's order."},
    {"rhs_batch", AttrKind::ints, "[]", "The batch dims of rhs that go with them."},
    {"lhs_contract", AttrKind::ints, "", "Dims of lhs that are summed over."},
    {"rhs_contract", AttrKind::ints, "", "The dims of rhs that go with them."},
    kAccumulateAttr,
    kFlushAttr,
    kPartsAttr};

// Which dims of the operands play which part, each list in the order of the result or of the sum.
struct DotDims {
  Ints lhs_batch, lhs_free, lhs_contract;
  Ints rhs_batch, rhs_free, rhs_contract;
};

DotDims dot_dims(Op op, int lhs_rank, int rhs_rank) {
  DotDims dims = {.lhs_batch = op.ints("lhs_batch"),
                  .lhs_free = {},
                  .lhs_contract = op.ints("lhs_contract"),
                  .rhs_batch = op.ints("rhs_batch"),
                  .rhs_free = {},
                  .rhs_contract = op.ints("rhs_contract")};
  for (int i = 0; i < lhs_rank; ++i) {
    if (!contains(dims.lhs_batch, i) && !contains(dims.lhs_contract, i)) dims.lhs_free.push_back(i);
  }
  for (int i = 0; i < rhs_rank; ++i) {
    if (!contains(dims.rhs_batch, i) && !contains(dims.rhs_contract, i)) dims.rhs_free.push_back(i);
  }
  return dims;
}

Status check_side(const Ints& batch, const Ints& contract, std::string_view side, int rank) {
  HONE_TRY(expect_distinct_axes(batch, fmt::format("{}_batch", side), rank));
  HONE_TRY(expect_distinct_axes(contract, fmt::format("{}_contract", side), rank));
  for (int64_t axis : batch) {
    if (contains(contract, axis))
      return bad_input("dim {} of {} is both a batch and a contracted dim", axis, side);
  }
  return {};
}

// Dims that go together must be equal.
Status check_pairs(std::string_view what, Type lhs, const Ints& lhs_axes, Type rhs,
                   const Ints& rhs_axes) {
  if (lhs_axes.size() != rhs_axes.size())
    return bad_input("lhs has {} {} dims, rhs has {}", lhs_axes.size(), what, rhs_axes.size());
  for (size_t i = 0; i < lhs_axes.size(); ++i) {
    Dim left = lhs.dim(static_cast<int>(lhs_axes[i]));
    Dim right = rhs.dim(static_cast<int>(rhs_axes[i]));
    if (left == right) continue;
    demand(Demand::Kind::equal, right, left);
    bool known = left.is_static() && right.is_static();
    return bad_input("{} dims {} of lhs and {} of rhs are {} and {}, {}", what, lhs_axes[i],
                     rhs_axes[i], left.to_string(), right.to_string(),
                     known ? "which differ" : "which are not provably equal");
  }
  return {};
}

Result<std::vector<Type>> infer_dot(const Application& app) {
  Type lhs = app.operand(0);
  Type rhs = app.operand(1);
  DType dtype = HONE_TRY(contraction_type(app.op, lhs.dtype(), rhs.dtype()));
  DotDims dims = dot_dims(app.op, lhs.rank(), rhs.rank());
  HONE_TRY(check_side(dims.lhs_batch, dims.lhs_contract, "lhs", lhs.rank()));
  HONE_TRY(check_side(dims.rhs_batch, dims.rhs_contract, "rhs", rhs.rank()));
  HONE_TRY(check_pairs("batch", lhs, dims.lhs_batch, rhs, dims.rhs_batch));
  HONE_TRY(check_pairs("contracted", lhs, dims.lhs_contract, rhs, dims.rhs_contract));
  Dims result;
  for (int64_t axis : dims.lhs_batch) result.push_back(lhs.dim(static_cast<int>(axis)));
  for (int64_t axis : dims.lhs_free) result.push_back(lhs.dim(static_cast<int>(axis)));
  for (int64_t axis : dims.rhs_free) result.push_back(rhs.dim(static_cast<int>(axis)));
  return single_result(dtype, result);
}

AccessRelation access_dot(const Application& app, std::span<const Type> results) {
  Type lhs = app.operand(0);
  DotDims dims = dot_dims(app.op, lhs.rank(), app.operand(1).rank());
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  std::vector<IndexExpr> left(static_cast<size_t>(lhs.rank()), 0);
  std::vector<IndexExpr> right(static_cast<size_t>(app.operand(1).rank()), 0);
  int iter = 0;
  auto bind = [&](std::vector<IndexExpr>& index, int64_t axis) {
    index[static_cast<size_t>(axis)] = IndexExpr::iter(iter);
  };
  for (size_t i = 0; i < dims.lhs_batch.size(); ++i, ++iter) {
    bind(left, dims.lhs_batch[i]);
    bind(right, dims.rhs_batch[i]);
  }
  for (size_t i = 0; i < dims.lhs_free.size(); ++i, ++iter) bind(left, dims.lhs_free[i]);
  for (size_t i = 0; i < dims.rhs_free.size(); ++i, ++iter) bind(right, dims.rhs_free[i]);
  for (size_t i = 0; i < dims.lhs_contract.size(); ++i, ++iter) {
    relation.dims.push_back({reduction_name(static_cast<int>(i)),
                             lhs.dim(static_cast<int>(dims.lhs_contract[i])), IterKind::reduction});
    bind(left, dims.lhs_contract[i]);
    bind(right, dims.rhs_contract[i]);
  }
  relation.operands = {{Access{.index = left}}, {Access{.index = right}}};
  relation.results = {Access{.index = identity_index(results[0].rank())}};
  return relation;
}

int64_t product_of(const Ints& dims, const Ints& axes) {
  int64_t product = 1;
  for (int64_t axis : axes) product *= dims[static_cast<size_t>(axis)];
  return product;
}

// The offset of every index of the chosen axes, in row-major order.
std::vector<int64_t> offsets_of(const Ints& dims, const Ints& axes) {
  Ints strides = row_major_strides(dims);
  Ints chosen_dims, chosen_strides;
  for (int64_t axis : axes) {
    chosen_dims.push_back(dims[static_cast<size_t>(axis)]);
    chosen_strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  StridedLoop loop(chosen_dims, chosen_strides, chosen_strides);
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(loop.size()));
  loop.for_each_run(0, loop.size(),
                    [&](int64_t from, int64_t, int64_t count, int64_t step, int64_t) {
                      for (int64_t i = 0; i < count; ++i) offsets.push_back(from + i * step);
                    });
  return offsets;
}

struct EvalDot {
  template <class D>
  static Status run(EvalCall<D>& call) {
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) { product<T>(call); });
    return {};
  }

 private:
  template <class T, class D>
  static void product(EvalCall<D>& call) {
    Ints lhs = call.operand(0).dims();
    Ints rhs = call.operand(1).dims();
    DotDims dims = dot_dims(call.op, static_cast<int>(lhs.size()), static_cast<int>(rhs.size()));
    GemmShape shape = {.batches = product_of(lhs, dims.lhs_batch),
                       .rows = product_of(lhs, dims.lhs_free),
                       .columns = product_of(rhs, dims.rhs_free),
                       .depth = product_of(lhs, dims.lhs_contract)};
    if (call.result().size() == 0) return;
    GemmTableSide<Ring<T>> left(as_ring<T>(call.operand(0).template as<T>()),
                                offsets_of(lhs, dims.lhs_batch), offsets_of(lhs, dims.lhs_free),
                                offsets_of(lhs, dims.lhs_contract));
    GemmTableSide<Ring<T>> right(as_ring<T>(call.operand(1).template as<T>()),
                                 offsets_of(rhs, dims.rhs_batch), offsets_of(rhs, dims.rhs_free),
                                 offsets_of(rhs, dims.rhs_contract));
    ContractionResult<T> finished(call.result().dtype());
    T* out = call.result().template as<T>().data();
    gemm<Ring<T>>(call.context.pool, shape, left, right, [&](const GemmTile<Ring<T>>& tile) {
      for (int64_t i = 0; i < tile.rows; ++i) {
        T* row = out + (tile.batch * shape.rows + tile.row + i) * shape.columns + tile.column;
        for (int64_t j = 0; j < tile.columns; ++j) row[j] = finished(tile.at(i, j));
      }
    });
  }
};

constexpr EvalTable kEvalDot = local_eval<EvalDot>();

}  // namespace

extern const OpDef op_def_dot;
const OpDef op_def_dot = {
    .opcode = Opcode::dot,
    .summary = "Sums products over pairs of contracted dims, for each index of the batch dims.",
    .semantics =
        "The result's dims are the batch dims, then what is left of lhs, then what is left of rhs. "
        "The operands have one element type, or two integer types if 'accumulate' is given. "
        "Integers are converted to the result's type first, so sums are exact modulo its 2^bits. "
        "Reals are summed in an unspecified order. A sum over nothing is 0.",
    .operands = "lhs, rhs",
    .attrs = kDotAttrs,
    .dtypes = kNumber,
    .infer = &infer_dot,
    .access = &access_dot,
    .flops_per_point = 2,
    .eval = &kEvalDot,
    .derivative = &derivative_dot};

}  // namespace hone
