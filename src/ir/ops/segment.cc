#include <algorithm>

#include "ir/derivatives/rules.h"
#include "ir/op_def.h"
#include "ir/ops/checks.h"
#include "ir/ops/index_value.h"
#include "ir/ops/iter_names.h"
#include "ir/reference/combine.h"
#include "ir/reference/eval.h"

// Reductions of segments: runs of rows whose bounds are values.

namespace hone {
namespace {

constexpr AttrSpec kSegmentReduceAttrs[] = {
    {"kind", AttrKind::word, "", "How rows are combined.", "sum|max|min"}};

Status expect_integers(Type type, std::string_view name) {
  if (is_integer(type.dtype()) && type.rank() == 1) return {};
  return bad_input("{} are {}, not a vector of integers", name, type.to_string());
}

Result<std::vector<Type>> infer_segment_reduce(const Application& a) {
  Type rows = a.operand(0), offsets = a.operand(1);
  if (rows.rank() == 0)
    return bad_input("the rows must have a dim, but are one number, {}", rows.to_string());
  HONE_TRY(check_combine(a.op.word("kind"), rows.dtype()));
  HONE_TRY(expect_integers(offsets, "offsets"));
  if (!provably_le(1, offsets.dim(0)))
    return bad_input("there are {} offsets; they must be one more than the segments",
                     offsets.dim(0).to_string());
  if (a.has_operand(2)) {
    HONE_TRY(expect_integers(a.operand(2), "segments"));
    if (a.operand(2).dim(0) != rows.dim(0))
      return bad_input("there are {} segments for {} rows", a.operand(2).dim(0).to_string(),
                       rows.dim(0).to_string());
  }
  Dims dims(rows.dims().begin(), rows.dims().end());
  dims[0] = offsets.dim(0) - 1;
  return single_result(rows.dtype(), dims);
}

// The rows are divided among the segments. Two offsets bound each; what segments are called is not
// read.
AccessRelation access_segment_reduce(const Application& a, std::span<const Type> results) {
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  const int row = static_cast<int>(relation.dims.size());
  relation.dims.push_back({.name = reduction_name(0),
                           .extent = a.operand(0).dim(0),
                           .kind = IterKind::reduction,
                           .divided_by = 0});
  Access element = {.index = identity_index(results[0].rank())};
  relation.results = {element};
  element.index[0] = IndexExpr::iter(row);
  const Access first = {.index = {IndexExpr::iter(0)}}, end = {.index = {IndexExpr::iter(0) + 1}};
  relation.operands = {{element}, {first, end}};
  if (a.count() > 2) relation.operands.emplace_back();
  return relation;
}

struct EvalSegmentReduce {
  template <class T, class D, class C>
  static void run(EvalCall<D>& call, const C& combine) {
    const T* rows = call.operand(0).template as<T>().data();
    T* out = call.result().template as<T>().data();
    const int64_t segments = call.result().dims()[0], count = call.operand(0).dims()[0];
    const int64_t length =
        segments == 0 ? 0 : static_cast<int64_t>(call.result().size()) / segments;
    constexpr int64_t kPieceElements = int64_t{1} << 15;
    const int64_t grain = std::max<int64_t>(1, kPieceElements / (length + 1));
    call.context.pool.parallel_for(0, segments, grain, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        T* result = out + s * length;
        std::fill(result, result + length, combine.identity());
        const int64_t last = offset(call, s + 1, count);
        for (int64_t r = offset(call, s, count); r < last; ++r)
          for (int64_t i = 0; i < length; ++i) result[i] = combine(result[i], rows[r * length + i]);
        if constexpr (is_tracked<T>)
          for (int64_t i = 0; i < length; ++i)
            for (int64_t at : {s, s + 1})
              result[i] = depending_on(result[i], call.operand(1).ints()[static_cast<size_t>(at)]);
      }
    });
  }

 private:
  // Where segment `s` begins.
  template <class D>
  static int64_t offset(const EvalCall<D>& call, int64_t s, int64_t rows) {
    const Buffer<D>& offsets = call.operand(1);
    return clamped_start(index_value(offsets.dtype(), offsets.ints()[static_cast<size_t>(s)]), rows,
                         0);
  }
};

constexpr EvalTable kEvalSegmentReduce = local_eval<EvalKind<EvalSegmentReduce>>();

}  // namespace

extern const OpDef op_def_segment_reduce;
const OpDef op_def_segment_reduce = {
    .opcode = Opcode::segment_reduce,
    .summary = "Combines the rows of each segment.",
    .semantics =
        "Row s of the result combines rows offsets[s] up to, and without, offsets[s + 1] of x, in "
        "their order. Offsets are clamped to [0, rows]. The sum of an empty segment is 0; its max "
        "is the lowest number, its min the highest: infinities, for reals. max and min propagate "
        "NaN, integer sums wrap. Offsets should not decrease. Where they do, segments overlap, and "
        "a derivative counts a row for one of them alone. segments holds the segment of each row. "
        "It says the same as offsets, and only derivatives read it: without it they find it.",
    .operands = "x, offsets, segments?",
    .attrs = kSegmentReduceAttrs,
    .dtypes = kNumber,
    .infer = infer_segment_reduce,
    .access = access_segment_reduce,
    .flops_per_point = 1,
    .eval = &kEvalSegmentReduce,
    .derivative = &derivative_segment_reduce,
};

}  // namespace hone
