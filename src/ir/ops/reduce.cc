#include <algorithm>

#include "base/checked_math.h"
#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/iter_names.h"
#include "ir/reference/combine.h"
#include "ir/reference/lanes.h"
#include "ir/reference/order.h"
#include "ir/reference/strided.h"

// Reductions over axes, positions of extremes, and running reductions.

namespace hone {
namespace {

// ---- reduce -------------------------------------------------------------------------------------

constexpr AttrSpec kReduceAttrs[] = {
    {"kind", AttrKind::word, "", "How elements are combined.", "sum|product|max|min|and|or"},
    {"axes", AttrKind::ints, "", "The dims that are reduced over; the result lacks them."}};

Result<std::vector<Type>> infer_reduce(const Application& app) {
  Type operand = app.operand(0);
  HONE_TRY(check_combine(app.op.word("kind"), operand.dtype()));
  HONE_TRY(expect_distinct_axes(app.op.ints("axes"), "axes", operand.rank()));
  Dims result;
  for (int i = 0; i < operand.rank(); ++i) {
    if (!contains(app.op.ints("axes"), i)) result.push_back(operand.dim(i));
  }
  return single_result(operand.dtype(), result);
}

AccessRelation access_reduce(const Application& app, std::span<const Type> results) {
  Type operand = app.operand(0);
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  Access access;
  int kept = 0;
  for (int i = 0; i < operand.rank(); ++i) {
    if (!contains(app.op.ints("axes"), i)) {
      access.index.push_back(IndexExpr::iter(kept++));
      continue;
    }
    int n = static_cast<int>(relation.dims.size());
    relation.dims.push_back(
        {reduction_name(n - results[0].rank()), operand.dim(i), IterKind::reduction});
    access.index.push_back(IndexExpr::iter(n));
  }
  relation.operands = {{access}};
  relation.results = {Access{.index = identity_index(results[0].rank())}};
  return relation;
}

// The loops over the dims that are kept, and over those that are not.
struct ReduceLoops {
  StridedLoop kept;
  StridedLoop reduced;
  bool across;  // neighbours in memory belong to different results
};

ReduceLoops reduce_loops(const Ints& dims, const Ints& axes) {
  Ints strides = row_major_strides(dims);
  Ints kept_dims, kept_strides, reduced_dims, reduced_strides;
  bool across = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool kept = !contains(axes, static_cast<int64_t>(i));
    (kept ? kept_dims : reduced_dims).push_back(dims[i]);
    (kept ? kept_strides : reduced_strides).push_back(strides[i]);
    if (dims[i] != 1) across = kept;
  }
  return {StridedLoop(kept_dims, kept_strides, row_major_strides(kept_dims)),
          StridedLoop(reduced_dims, reduced_strides, reduced_strides), across};
}

// results[i] = everything that the reduced loop finds from in[i * step].
template <class T, class C>
void reduce_block(const C& combine, const StridedLoop& reduced, const T* in, int64_t step,
                  T* results, int64_t count) {
  std::fill(results, results + count, combine.identity());
  reduced.for_each_run(0, reduced.size(),
                       [&](int64_t from, int64_t, int64_t length, int64_t in_step, int64_t) {
                         if (count == 1) {
                           T value = *results;
                           for (int64_t i = 0; i < length; ++i)
                             value = combine(value, in[from + i * in_step]);
                           *results = value;
                           return;
                         }
                         for (int64_t i = 0; i < length; ++i) {
                           const T* row = in + from + i * in_step;
                           for (int64_t j = 0; j < count; ++j)
                             results[j] = combine(results[j], row[j * step]);
                         }
                       });
}

struct EvalReduce {
  template <class T, class D, class C>
  static void run(EvalCall<D>& call, const C& combine) {
    const T* in = call.operand(0).template as<T>().data();
    T* out = call.result().template as<T>().data();
    ReduceLoops loops = reduce_loops(call.operand(0).dims(), call.op.ints("axes"));
    const int64_t block = loops.across ? 256 : 1;
    constexpr int64_t kPieceElements = int64_t{1} << 15;
    const int64_t grain = 1 + kPieceElements / (loops.reduced.size() + 1);
    call.context.pool.parallel_for(
        0, loops.kept.size(), std::max(grain, block), [&](int64_t begin, int64_t end) {
          loops.kept.for_each_run(
              begin, end,
              [&](int64_t from, int64_t to, int64_t count, int64_t step, int64_t to_step) {
                for (int64_t i = 0; i < count; i += block) {
                  reduce_block(combine, loops.reduced, in + from + i * step, step,
                               out + to + i * to_step, std::min(block, count - i));
                }
              });
        });
  }
};

constexpr EvalTable kEvalReduce = local_eval<EvalKind<EvalReduce>>();

// ---- arg_reduce ---------------------------------------------------------------------------------

constexpr AttrSpec kArgReduceAttrs[] = {
    {"kind", AttrKind::word, "", "Which extreme is looked for.", "max|min"},
    {"axis", AttrKind::integer, "", "The dim that is searched; the result lacks it."},
    {"last", AttrKind::flag, "false", "Among equals, the last position instead of the first."},
    {"dtype", AttrKind::dtype, "i64", "The result's element type, an integer type."}};

Result<std::vector<Type>> infer_arg_reduce(const Application& app) {
  Type operand = app.operand(0);
  DType dtype = app.op.dtype("dtype");
  int64_t axis = app.op.integer("axis");
  HONE_TRY(expect_axis(axis, "axis", operand.rank()));
  if (!kInteger.contains(dtype))
    return bad_input("dtype {} is not an integer type that can be computed with", name(dtype));
  Dim extent = operand.dim(static_cast<int>(axis));
  if (!provably_le(1, extent)) {
    demand(Demand::Kind::at_least, extent, 1);
    return bad_input("dim {} is {}, not {}at least 1: an empty dim has no extreme", axis,
                     extent.to_string(), extent.is_static() ? "" : "provably ");
  }
  int64_t highest = dtype == DType::u64 ? INT64_MAX : integer_limits(dtype).highest;
  if (!provably_le(extent - 1, highest))
    return bad_input("positions in dim {} of size {} do not fit {}", axis, extent.to_string(),
                     name(dtype));
  Dims result(operand.dims().begin(), operand.dims().end());
  result.erase(result.begin() + axis);
  return single_result(dtype, result);
}

AccessRelation access_arg_reduce(const Application& app, std::span<const Type> results) {
  int axis = static_cast<int>(app.op.integer("axis"));
  int kept = results[0].rank();
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  relation.dims.push_back({reduction_name(0), app.operand(0).dim(axis), IterKind::reduction});
  Access access = {.index = identity_index(kept)};
  access.index.insert(access.index.begin() + axis, IndexExpr::iter(kept));
  relation.operands = {{access}};
  relation.results = {Access{.index = identity_index(kept)}};
  return relation;
}

struct EvalArgReduce {
  template <class D>
  static Status run(EvalCall<D>& call) {
    return with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) -> Status {
      if constexpr (!is_ordered_real<T>) {
        return no_field_meaning(call.op);
      } else {
        search<T>(call);
        return {};
      }
    });
  }

 private:
  template <class T, class D>
  static void search(EvalCall<D>& call) {
    using Int = typename D::Int;
    const DType dtype = call.operand(0).dtype();
    const bool is_max = call.op.word("kind") == "max";
    const bool last = call.op.flag("last");
    const Lanes lanes(call.operand(0).dims(), call.op.integer("axis"));
    std::span<const T> in = call.operand(0).template as<T>();
    std::span<Int> out = call.result().ints();
    // The greatest key wins; NaN has it in either case.
    auto key_of = [&](const T& element) {
      uint64_t key = order_key_of(element, dtype);
      bool is_nan = is_real(dtype) && key == UINT64_MAX;
      return is_max || is_nan ? key : ~key;
    };
    lanes.parallel_for(call.context.pool, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        const T* element = in.data() + lanes.first(lane);
        uint64_t best = key_of(*element);
        int64_t position = 0;
        Int searched = depending_on(Int(0), *element);
        for (int64_t i = 1; i < lanes.length; ++i) {
          element += lanes.step;
          uint64_t key = key_of(*element);
          if (key > best || (last && key == best)) {
            best = key;
            position = i;
          }
          searched = depending_on(searched, *element);
        }
        out[static_cast<size_t>(lane)] = depending_on(Int(position), searched);
      }
    });
  }
};

constexpr EvalTable kEvalArgReduce = local_eval<EvalArgReduce>();

// ---- cumulative ---------------------------------------------------------------------------------

constexpr AttrSpec kCumulativeAttrs[] = {
    {"kind", AttrKind::word, "", "How elements are combined.", "sum|product|max|min"},
    {"axis", AttrKind::integer, "", "The dim along which the values run."},
    {"exclusive", AttrKind::flag, "false", "Leave each element out of its own result."},
    {"reverse", AttrKind::flag, "false", "Run from the last element to the first."}};

Result<std::vector<Type>> infer_cumulative(const Application& app) {
  Type operand = app.operand(0);
  HONE_TRY(check_combine(app.op.word("kind"), operand.dtype()));
  HONE_TRY(expect_axis(app.op.integer("axis"), "axis", operand.rank()));
  return std::vector<Type>{operand};
}

// The running dim is sequential: a result depends on all the points up to its own.
AccessRelation access_cumulative(const Application& app, std::span<const Type> results) {
  Type type = results[0];
  int axis = static_cast<int>(app.op.integer("axis"));
  AccessRelation relation;
  Access in;
  Access out;
  for (int i = 0, parallel = 0; i < type.rank(); ++i) {
    if (i != axis) relation.dims.push_back({iter_name(parallel), type.dim(i)});
    IndexExpr iter = IndexExpr::iter(i == axis ? type.rank() - 1 : parallel++);
    in.index.push_back(iter);
    out.index.push_back(iter);
  }
  relation.dims.push_back({reduction_name(0), type.dim(axis), IterKind::sequential});
  IndexExpr step = IndexExpr::iter(type.rank() - 1);
  IndexExpr read = step;
  if (app.op.flag("exclusive")) {
    read = step - 1;
    in.guards.push_back({step, 1, type.dim(axis)});
  }
  if (app.op.flag("reverse")) {
    IndexExpr end = type.dim(axis) - 1;
    read = end - read;
    step = end - step;
  }
  in.index[static_cast<size_t>(axis)] = read;
  out.index[static_cast<size_t>(axis)] = step;
  relation.operands = {{in}};
  relation.results = {out};
  return relation;
}

struct EvalCumulative {
  template <class T, class D, class C>
  static void run(EvalCall<D>& call, const C& combine) {
    const bool exclusive = call.op.flag("exclusive");
    const Lanes lanes(call.result().dims(), call.op.integer("axis"));
    const int64_t step = call.op.flag("reverse") ? -lanes.step : lanes.step;
    const int64_t start = step < 0 ? (lanes.length - 1) * lanes.step : 0;
    const T* in = call.operand(0).template as<T>().data();
    T* out = call.result().template as<T>().data();
    if (lanes.length == 0) return;
    lanes.parallel_for(call.context.pool, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        int64_t at = lanes.first(lane) + start;
        T value = combine.identity();
        for (int64_t i = 0; i < lanes.length; ++i, at += step) {
          T next = combine(value, in[at]);
          out[at] = exclusive ? value : next;
          value = next;
        }
      }
    });
  }
};

constexpr EvalTable kEvalCumulative = local_eval<EvalKind<EvalCumulative>>();

}  // namespace

extern const OpDef op_def_reduce;
const OpDef op_def_reduce = {
    .opcode = Opcode::reduce,
    .summary = "Combines all elements along the given axes, which the result lacks.",
    .semantics =
        "Sum, product, max and min take numbers; and, or take bools and integers (bitwise). "
        "Nothing reduces to the identity: 0, 1, -inf or the lowest integer, +inf or the highest "
        "integer, all ones, 0. Max and min of anything with NaN are NaN, and -0 is below +0. "
        "Integers wrap. Reals are combined in an unspecified order.",
    .operands = "x",
    .attrs = kReduceAttrs,
    .dtypes = kComputable,
    .traits = {.is_local = true},
    .infer = &infer_reduce,
    .access = &access_reduce,
    .flops_per_point = 1,
    .eval = &kEvalReduce,
    .derivative = &derivative_reduce};

extern const OpDef op_def_arg_reduce;
const OpDef op_def_arg_reduce = {
    .opcode = Opcode::arg_reduce,
    .summary = "The position of the greatest or smallest element along an axis.",
    .semantics =
        "NaN counts as the extreme, for max as for min; all NaN are equal, and so are -0 and +0. "
        "Among equals the first position is taken, with 'last' the last. The axis must have at "
        "least one element, and its positions must fit the result's type.",
    .operands = "x",
    .attrs = kArgReduceAttrs,
    .dtypes = kNumber,
    .infer = &infer_arg_reduce,
    .access = &access_arg_reduce,
    .flops_per_point = 1,
    .eval = &kEvalArgReduce};

extern const OpDef op_def_cumulative;
const OpDef op_def_cumulative = {
    .opcode = Opcode::cumulative,
    .summary = "Each element combined with all before it along an axis.",
    .semantics =
        "Kinds are as for reduce. With 'exclusive' an element is not part of its own result, and "
        "the first result is the identity; with 'reverse' the last element comes first. Elements "
        "are combined in order.",
    .operands = "x",
    .attrs = kCumulativeAttrs,
    .dtypes = kNumber,
    .infer = &infer_cumulative,
    .access = &access_cumulative,
    .flops_per_point = 1,
    .eval = &kEvalCumulative,
    .derivative = &derivative_cumulative};

}  // namespace hone
