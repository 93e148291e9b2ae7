#include <algorithm>
#include <array>
#include <numeric>

#include "ir/derivatives/rules.h"
#include "ir/op_def.h"
#include "ir/ops/checks.h"
#include "ir/ops/reshape_groups.h"
#include "ir/reference/eval.h"
#include "ir/reference/strided.h"

// Ops that copy elements to other places: broadcast, reshape, transpose, slice, pad, concat,
// reverse.

namespace hone {

namespace {

constexpr OpTraits kMoves = {.moves_data = true};

// A relation over the result's dims.
AccessRelation per_result_element(Type result) {
  return {.dims = parallel_dims(result),
          .operands = {},
          .results = {{.index = identity_index(result.rank())}}};
}

// result[p] = operand[base + sum of strides * p] in elements, for every index p of the result.
template <class D>
void copy_to_result(EvalCall<D>& call, int64_t base, std::span<const int64_t> strides) {
  with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
    Ints dims = call.result().dims();
    StridedLoop loop(dims, strides, row_major_strides(dims));
    if (loop.size() == 0) return;
    loop.copy(call.context.pool, call.operand(0).template as<T>().data() + base,
              call.result().template as<T>().data());
  });
}

// ---- broadcast ----------------------------------------------------------------------------------

constexpr AttrSpec kBroadcastAttrs[] = {
    {"dims", AttrKind::dims, "", "The result's dims."},
    {"map", AttrKind::ints, "", "The result dim that each operand dim becomes; increasing."},
};

Result<std::vector<Type>> infer_broadcast(const Application& a) {
  Type x = a.operand(0);
  const Dims& dims = a.op.dims("dims");
  const Ints& map = a.op.ints("map");
  HONE_TRY(expect_per_dim(map.size(), "map", x.rank()));
  HONE_TRY(expect_sorted_axes(map, "map", static_cast<int>(dims.size())));
  for (int i = 0; i < x.rank(); ++i) {
    Dim target = dims[static_cast<size_t>(map[static_cast<size_t>(i)])];
    if (x.dim(i) == target || x.dim(i).is(1)) continue;
    demand(Demand::Kind::stretch, x.dim(i), target);
    return bad_input("operand dim {} is {}; to become result dim {} it must be {} or 1", i,
                     x.dim(i).to_string(), map[static_cast<size_t>(i)], target.to_string());
  }
  return single_result(x.dtype(), dims);
}

AccessRelation access_broadcast(const Application& a, std::span<const Type> results) {
  Type x = a.operand(0);
  const Ints& map = a.op.ints("map");
  AccessRelation relation = per_result_element(results[0]);
  Access read;
  for (int i = 0; i < x.rank(); ++i) {
    int target = static_cast<int>(map[static_cast<size_t>(i)]);
    read.index.push_back(x.dim(i).is(1) ? IndexExpr(0) : IndexExpr::iter(target));
  }
  relation.operands = {{read}};
  return relation;
}

struct EvalBroadcast {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints from = call.operand(0).dims();
    Ints from_strides = row_major_strides(from);
    const Ints& map = call.op.ints("map");
    Ints strides(call.result().dims().size(), 0);
    for (size_t i = 0; i < from.size(); ++i) {
      strides[static_cast<size_t>(map[i])] = from[i] == 1 ? 0 : from_strides[i];
    }
    copy_to_result(call, 0, strides);
    return {};
  }
};

// ---- reshape ------------------------------------------------------------------------------------

constexpr AttrSpec kReshapeAttrs[] = {
    {"dims", AttrKind::dims, "", "The result's dims."},
};

Result<std::vector<Type>> infer_reshape(const Application& a) {
  Type x = a.operand(0);
  std::vector<Type> result = HONE_TRY(single_result(x.dtype(), a.op.dims("dims")));
  if (x.elements() != result[0].elements()) {
    demand(Demand::Kind::equal, x.elements(), result[0].elements());
    return bad_input("{} has {} elements, {} has {}", x.to_string(), x.elements().to_string(),
                     result[0].to_string(), result[0].elements().to_string());
  }
  return result;
}

AccessRelation access_reshape(const Application& a, std::span<const Type> results) {
  AccessRelation relation = per_result_element(results[0]);
  relation.operands = {{{.index = reshape_index(a.operand(0).dims(), results[0].dims())}}};
  return relation;
}

struct EvalReshape {
  template <class D>
  static Status run(EvalCall<D>& call) {
    copy_to_result(call, 0, row_major_strides(call.result().dims()));
    return {};
  }
};

// ---- transpose ----------------------------------------------------------------------------------

constexpr AttrSpec kTransposeAttrs[] = {
    {"permutation", AttrKind::ints, "", "The operand dim that each result dim is."},
};

Result<std::vector<Type>> infer_transpose(const Application& a) {
  Type x = a.operand(0);
  const Ints& permutation = a.op.ints("permutation");
  HONE_TRY(expect_per_dim(permutation.size(), "permutation", x.rank()));
  HONE_TRY(expect_distinct_axes(permutation, "permutation", x.rank()));
  Dims dims;
  for (int64_t axis : permutation) dims.push_back(x.dim(static_cast<int>(axis)));
  return single_result(x.dtype(), dims);
}

AccessRelation access_transpose(const Application& a, std::span<const Type> results) {
  AccessRelation relation = per_result_element(results[0]);
  const Ints& permutation = a.op.ints("permutation");
  Access read = {.index = identity_index(results[0].rank())};
  for (size_t i = 0; i < permutation.size(); ++i) {
    read.index[static_cast<size_t>(permutation[i])] = IndexExpr::iter(static_cast<int>(i));
  }
  relation.operands = {{read}};
  return relation;
}

struct EvalTranspose {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints from_strides = row_major_strides(call.operand(0).dims());
    Ints strides;
    for (int64_t axis : call.op.ints("permutation")) {
      strides.push_back(from_strides[static_cast<size_t>(axis)]);
    }
    copy_to_result(call, 0, strides);
    return {};
  }
};

// ---- slice --------------------------------------------------------------------------------------

constexpr AttrSpec kSliceAttrs[] = {
    {"start", AttrKind::dims, "", "The first index per dim."},
    {"limit", AttrKind::dims, "", "The end per dim; not included."},
    {"stride", AttrKind::ints, "[]", "The step per dim; empty: all 1.", "", 1},
};

Result<std::vector<Type>> infer_slice(const Application& a) {
  Type x = a.operand(0);
  const Dims& start = a.op.dims("start");
  const Dims& limit = a.op.dims("limit");
  const Ints& stride = a.op.ints("stride");
  HONE_TRY(expect_per_dim(start.size(), "start", x.rank()));
  HONE_TRY(expect_per_dim(limit.size(), "limit", x.rank()));
  if (!stride.empty()) HONE_TRY(expect_per_dim(stride.size(), "stride", x.rank()));
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    size_t at = static_cast<size_t>(i);
    int64_t step = entry_or(stride, i, 1);
    if (step < 1) return bad_input("stride {} is not positive on axis {}", step, i);
    HONE_TRY(expect_not_negative(start[at], "start", i));
    HONE_TRY(expect_le(start[at], "start", limit[at], "limit", i));
    HONE_TRY(expect_le(limit[at], "limit", x.dim(i), "size", i));
    dims.push_back(ceildiv(limit[at] - start[at], step));
  }
  return single_result(x.dtype(), dims);
}

AccessRelation access_slice(const Application& a, std::span<const Type> results) {
  AccessRelation relation = per_result_element(results[0]);
  Access read;
  for (int i = 0; i < results[0].rank(); ++i) {
    read.index.push_back(IndexExpr::iter(i) * entry_or(a.op.ints("stride"), i, 1) +
                         a.op.dims("start")[static_cast<size_t>(i)]);
  }
  relation.operands = {{read}};
  return relation;
}

struct EvalSlice {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints strides = row_major_strides(call.operand(0).dims());
    int64_t base = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      base += call.op.dims("start")[i].value() * strides[i];
      strides[i] *= entry_or(call.op.ints("stride"), static_cast<int>(i), 1);
    }
    copy_to_result(call, base, strides);
    return {};
  }
};

// ---- pad ----------------------------------------------------------------------------------------

constexpr AttrSpec kPadAttrs[] = {
    {"low", AttrKind::dims, "", "Elements before each dim; negative removes."},
    {"high", AttrKind::dims, "", "Elements after each dim; negative removes."},
    {"interior", AttrKind::ints, "[]", "Elements between neighbours; empty: all 0.", "", 0},
};

Result<Dim> padded_size(const Application& a, int i) {
  Dim size = a.operand(0).dim(i);
  Dim low = a.op.dims("low")[static_cast<size_t>(i)];
  Dim high = a.op.dims("high")[static_cast<size_t>(i)];
  int64_t interior = entry_or(a.op.ints("interior"), i, 0);
  if (interior < 0) return bad_input("interior {} is negative on axis {}", interior, i);
  Dim spread = size;
  if (interior > 0 && !size.is(0)) {
    if (!provably_le(1, size)) {
      demand(Demand::Kind::at_least, size, 1);
      return bad_input("interior padding needs a size of at least 1; {} may be 0 on axis {}",
                       size.to_string(), i);
    }
    spread = size + (size - 1) * interior;
  }
  Dim result = low + spread + high;
  if (!provably_le(0, result)) {
    demand(Demand::Kind::at_least, result, 0);
    return bad_input("size {} with padding {} and {} {} negative on axis {}", spread.to_string(),
                     low.to_string(), high.to_string(), result.is_static() ? "is" : "may be", i);
  }
  return result;
}

Result<std::vector<Type>> infer_pad(const Application& a) {
  Type x = a.operand(0);
  Type value = a.operand(1);
  if (value != Type::scalar(x.dtype())) {
    return bad_input("the padding value is {}; it must be {}", value.to_string(),
                     Type::scalar(x.dtype()).to_string());
  }
  HONE_TRY(expect_per_dim(a.op.dims("low").size(), "low", x.rank()));
  HONE_TRY(expect_per_dim(a.op.dims("high").size(), "high", x.rank()));
  size_t interior = a.op.ints("interior").size();
  if (interior != 0) HONE_TRY(expect_per_dim(interior, "interior", x.rank()));
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) dims.push_back(HONE_TRY(padded_size(a, i)));
  return single_result(x.dtype(), dims);
}

// The operand is read where every dim lands on an element; the value where some dim is before the
// first element, behind the last, or between two.
AccessRelation access_pad(const Application& a, std::span<const Type> results) {
  Type x = a.operand(0);
  Type result = results[0];
  AccessRelation relation = per_result_element(result);
  Access inside;
  std::vector<Access> outside;
  for (int i = 0; i < x.rank(); ++i) {
    Dim low = a.op.dims("low")[static_cast<size_t>(i)];
    Dim high = a.op.dims("high")[static_cast<size_t>(i)];
    int64_t step = entry_or(a.op.ints("interior"), i, 0) + 1;
    IndexExpr position = IndexExpr::iter(i) - IndexExpr(low);
    Dim span = result.dim(i) - low - high;
    inside.index.push_back(floordiv(position, step));
    if (!provably_le(low, 0))
      outside.push_back({.index = {}, .guards = {{position, Dim(0) - low, 0}}});
    if (!provably_le(high, 0)) {
      outside.push_back({.index = {}, .guards = {{position, span, result.dim(i) - low}}});
    }
    if (!low.is(0) || !high.is(0)) inside.guards.push_back({position, 0, span});
    if (step == 1) continue;
    inside.guards.push_back({mod(position, step), 0, 1});
    outside.push_back({.index = {}, .guards = {{mod(position, step), 1, step}}});
  }
  relation.operands = {{inside}, outside};
  return relation;
}

struct EvalPad {
  template <class D>
  static Status run(EvalCall<D>& call) {
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) { copy<T>(call); });
    return {};
  }

 private:
  template <class T, class D>
  static void copy(EvalCall<D>& call) {
    std::span<T> target = call.result().template as<T>();
    std::fill(target.begin(), target.end(), call.operand(1).template as<T>()[0]);
    Ints from = call.operand(0).dims();
    Ints from_strides = row_major_strides(from);
    Ints to = call.result().dims();
    Ints to_strides = row_major_strides(to);
    int64_t from_base = 0;
    int64_t to_base = 0;
    Ints kept;  // how many elements of each dim have a place in the result
    for (size_t i = 0; i < from.size(); ++i) {
      int64_t low = call.op.dims("low")[i].value();
      int64_t step = entry_or(call.op.ints("interior"), static_cast<int>(i), 0) + 1;
      int64_t first = std::max<int64_t>(0, ceil_div(-low, step));
      int64_t last = std::min(from[i] - 1, floor_div(to[i] - 1 - low, step));
      kept.push_back(std::max<int64_t>(0, last - first + 1));
      if (kept.back() == 0) return;  // before offsets that may be far outside
      from_base += first * from_strides[i];
      to_base += (low + first * step) * to_strides[i];
      to_strides[i] *= step;
    }
    StridedLoop loop(kept, from_strides, to_strides);
    if (loop.size() == 0) return;
    loop.copy(call.context.pool, call.operand(0).template as<T>().data() + from_base,
              target.data() + to_base);
  }
};

// ---- concat -------------------------------------------------------------------------------------

constexpr AttrSpec kConcatAttrs[] = {
    {"axis", AttrKind::integer, "", "The dim along which the parts follow each other."},
};

Result<std::vector<Type>> infer_concat(const Application& a) {
  if (a.count() == 0) return bad_input("takes at least one operand");
  Type first = a.operand(0);
  HONE_TRY(expect_axis(a.op.integer("axis"), "axis", first.rank()));
  int axis = static_cast<int>(a.op.integer("axis"));
  Dims dims(first.dims().begin(), first.dims().end());
  for (int p = 1; p < a.count(); ++p) {
    Type part = a.operand(p);
    bool fits = part.dtype() == first.dtype() && part.rank() == first.rank();
    for (int i = 0; fits && i < first.rank(); ++i) {
      fits = i == axis || part.dim(i) == first.dim(i);
      if (!fits) demand(Demand::Kind::equal, part.dim(i), first.dim(i));
    }
    if (!fits) {
      return bad_input("part {} is {}, which does not match {} outside of axis {}", p,
                       part.to_string(), first.to_string(), axis);
    }
    dims[static_cast<size_t>(axis)] += part.dim(axis);
  }
  return single_result(first.dtype(), dims);
}

AccessRelation access_concat(const Application& a, std::span<const Type> results) {
  AccessRelation relation = per_result_element(results[0]);
  int axis = static_cast<int>(a.op.integer("axis"));
  Dim begin = 0;
  for (Type part : a.operands) {
    Access read = {.index = identity_index(part.rank())};
    IndexExpr position = IndexExpr::iter(axis) - IndexExpr(begin);
    read.index[static_cast<size_t>(axis)] = position;
    if (a.count() > 1) read.guards.push_back({position, 0, part.dim(axis)});
    relation.operands.push_back({read});
    begin += part.dim(axis);
  }
  return relation;
}

struct EvalConcat {
  template <class D>
  static Status run(EvalCall<D>& call) {
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) { copy<T>(call); });
    return {};
  }

 private:
  template <class T, class D>
  static void copy(EvalCall<D>& call) {
    size_t axis = static_cast<size_t>(call.op.integer("axis"));
    Ints strides = row_major_strides(call.result().dims());
    int64_t base = 0;
    for (const Buffer<D>* part : call.operands) {
      Ints dims = part->dims();
      StridedLoop loop(dims, row_major_strides(dims), strides);
      if (loop.size() == 0) continue;
      loop.copy(call.context.pool, part->template as<T>().data(),
                call.result().template as<T>().data() + base);
      base += dims[axis] * strides[axis];
    }
  }
};

// ---- reverse ------------------------------------------------------------------------------------

constexpr AttrSpec kReverseAttrs[] = {
    {"axes", AttrKind::ints, "", "The dims whose order is reversed."},
};

Result<std::vector<Type>> infer_reverse(const Application& a) {
  HONE_TRY(expect_distinct_axes(a.op.ints("axes"), "axes", a.operand(0).rank()));
  return std::vector<Type>{a.operand(0)};
}

AccessRelation access_reverse(const Application& a, std::span<const Type> results) {
  AccessRelation relation = per_result_element(results[0]);
  Access read = {.index = identity_index(results[0].rank())};
  for (int64_t axis : a.op.ints("axes")) {
    int i = static_cast<int>(axis);
    read.index[static_cast<size_t>(i)] = IndexExpr(results[0].dim(i) - 1) - IndexExpr::iter(i);
  }
  relation.operands = {{read}};
  return relation;
}

struct EvalReverse {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints dims = call.operand(0).dims();
    Ints strides = row_major_strides(dims);
    int64_t base = 0;
    for (int64_t axis : call.op.ints("axes")) {
      size_t i = static_cast<size_t>(axis);
      base += (dims[i] - 1) * strides[i];
      strides[i] = -strides[i];
    }
    copy_to_result(call, base, strides);
    return {};
  }
};

constexpr EvalTable kEvalBroadcast = local_eval<EvalBroadcast>(true);
constexpr EvalTable kEvalReshape = local_eval<EvalReshape>(true);
constexpr EvalTable kEvalTranspose = local_eval<EvalTranspose>(true);
constexpr EvalTable kEvalSlice = local_eval<EvalSlice>(true);
constexpr EvalTable kEvalPad = local_eval<EvalPad>(true);
constexpr EvalTable kEvalConcat = local_eval<EvalConcat>(true);
constexpr EvalTable kEvalReverse = local_eval<EvalReverse>(true);

}  // namespace

extern const OpDef op_def_broadcast;
const OpDef op_def_broadcast = {
    .opcode = Opcode::broadcast,
    .summary = "Repeats a tensor along new dims and dims of size 1.",
    .semantics =
        "Operand dim i is result dim map[i] and has its size or 1; a dim of size 1 is "
        "repeated, as are all result dims that map does not name.",
    .operands = "x",
    .attrs = kBroadcastAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true, .is_local = true},
    .infer = infer_broadcast,
    .access = access_broadcast,
    .eval = &kEvalBroadcast,
    .derivative = &derivative_broadcast,
};

extern const OpDef op_def_reshape;
const OpDef op_def_reshape = {
    .opcode = Opcode::reshape,
    .summary = "The same elements in row-major order, under other dims.",
    .semantics = "The element counts must be equal, for every binding of the symbols.",
    .operands = "x",
    .attrs = kReshapeAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true, .may_be_view = true},
    .infer = infer_reshape,
    .access = access_reshape,
    .eval = &kEvalReshape,
    .derivative = &derivative_reshape,
};

extern const OpDef op_def_transpose;
const OpDef op_def_transpose = {
    .opcode = Opcode::transpose,
    .summary = "Permutes the dims.",
    .semantics = "Result dim i is operand dim permutation[i].",
    .operands = "x",
    .attrs = kTransposeAttrs,
    .dtypes = kAny,
    .traits = kMoves,
    .infer = infer_transpose,
    .access = access_transpose,
    .eval = &kEvalTranspose,
    .derivative = &derivative_transpose,
};

extern const OpDef op_def_slice;
const OpDef op_def_slice = {
    .opcode = Opcode::slice,
    .summary = "Every stride-th element of [start, limit) per dim.",
    .semantics = "0 <= start <= limit <= size must hold per dim, so nothing is out of range.",
    .operands = "x",
    .attrs = kSliceAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true, .is_local = true, .may_be_view = true},
    .infer = infer_slice,
    .access = access_slice,
    .eval = &kEvalSlice,
    .derivative = &derivative_slice,
};

extern const OpDef op_def_pad;
const OpDef op_def_pad = {
    .opcode = Opcode::pad,
    .summary = "Puts a value before, after and between the elements of each dim.",
    .semantics =
        "Interior padding comes first, then low and high, where a negative number removes "
        "elements (interior padding included). No size may become negative.",
    .operands = "x, value",
    .attrs = kPadAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true, .is_local = true, .is_piecewise = true},
    .infer = infer_pad,
    .access = access_pad,
    .eval = &kEvalPad,
    .derivative = &derivative_pad,
};

extern const OpDef op_def_concat;
const OpDef op_def_concat = {
    .opcode = Opcode::concat,
    .summary = "Joins tensors along one dim.",
    .semantics = "The parts have one element type and equal dims outside of the axis.",
    .operands = "parts*",
    .attrs = kConcatAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true, .is_local = true, .is_piecewise = true, .may_be_view = true},
    .infer = infer_concat,
    .access = access_concat,
    .eval = &kEvalConcat,
    .derivative = &derivative_concat,
};

extern const OpDef op_def_reverse;
const OpDef op_def_reverse = {
    .opcode = Opcode::reverse,
    .summary = "Reverses the order along some dims.",
    .operands = "x",
    .attrs = kReverseAttrs,
    .dtypes = kAny,
    .traits = kMoves,
    .infer = infer_reverse,
    .access = access_reverse,
    .eval = &kEvalReverse,
    .derivative = &derivative_reverse,
};

}  // namespace hone
