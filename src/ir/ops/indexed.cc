#include <algorithm>

#include "ir/derivatives/rules.h"
#include "ir/op_def.h"
#include "ir/ops/checks.h"
#include "ir/ops/index_value.h"
#include "ir/ops/indexed_dims.h"
#include "ir/ops/iter_names.h"
#include "ir/reference/combine.h"
#include "ir/reference/eval.h"
#include "ir/reference/strided.h"

// Ops that find elements by indices which are values: dynamic_slice, dynamic_update, gather,
// scatter.

namespace hone {

namespace {

constexpr OpTraits kMovesRows = {.moves_data = true};

// ---- dynamic_slice, dynamic_update --------------------------------------------------------------

constexpr AttrSpec kDynamicSliceAttrs[] = {
    {"sizes", AttrKind::dims, "", "The result's dims."},
};

// Checks the starts, which are the operands from `first` on, and the window that they place.
Status check_window(const Application& a, int first, std::span<const Dim> window) {
  Type x = a.operand(0);
  if (a.count() - first != x.rank()) {
    return bad_input("there are {} start indices for rank {}", a.count() - first, x.rank());
  }
  for (int i = 0; i < x.rank(); ++i) {
    HONE_TRY(expect_scalar_integer(a.operand(first + i), fmt::format("start {}", i)));
    HONE_TRY(expect_le(window[static_cast<size_t>(i)], "window", x.dim(i), "size", i));
  }
  return {};
}

Result<std::vector<Type>> infer_dynamic_slice(const Application& a) {
  const Dims& sizes = a.op.dims("sizes");
  HONE_TRY(expect_per_dim(sizes.size(), "sizes", a.operand(0).rank()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    HONE_TRY(expect_not_negative(sizes[i], "size", static_cast<int>(i)));
  }
  HONE_TRY(check_window(a, 1, sizes));
  return single_result(a.operand(0).dtype(), sizes);
}

Result<std::vector<Type>> infer_dynamic_update(const Application& a) {
  Type x = a.operand(0);
  Type update = a.operand(1);
  if (update.dtype() != x.dtype() || update.rank() != x.rank()) {
    return bad_input("an update of {} has the type {}", x.to_string(), update.to_string());
  }
  HONE_TRY(check_window(a, 2, update.dims()));
  return std::vector<Type>{x};
}

// The window's index within its dim, where the window moves by a start index; a window of full size
// cannot move.
void add_moving_dims(Access& access, Type x, std::span<const Dim> window) {
  for (int i = 0; i < x.rank(); ++i) {
    access.index.push_back(IndexExpr::iter(i));
    access.data_dependent.push_back(window[static_cast<size_t>(i)] != x.dim(i));
  }
}

// The starts of windows that can move are read for every element, the others never.
void add_starts(AccessRelation& relation, Type x, std::span<const Dim> window) {
  for (int i = 0; i < x.rank(); ++i) {
    bool moves = window[static_cast<size_t>(i)] != x.dim(i);
    relation.operands.push_back(moves ? std::vector<Access>(1) : std::vector<Access>());
  }
}

AccessRelation access_dynamic_slice(const Application& a, std::span<const Type> results) {
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  relation.results = {{.index = identity_index(results[0].rank())}};
  Access read;
  add_moving_dims(read, a.operand(0), results[0].dims());
  relation.operands.push_back({read});
  add_starts(relation, a.operand(0), results[0].dims());
  return relation;
}

AccessRelation access_dynamic_update(const Application& a, std::span<const Type> results) {
  Type x = a.operand(0);
  Type update = a.operand(1);
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  relation.results = {{.index = identity_index(x.rank())}};
  relation.operands.emplace_back();
  if (update != x) relation.operands[0].push_back({.index = identity_index(x.rank())});
  Access read;
  add_moving_dims(read, x, update.dims());
  relation.operands.push_back({read});
  add_starts(relation, x, update.dims());
  return relation;
}

// Where the window begins, in elements of x.
template <class D>
int64_t window_base(const EvalCall<D>& call, int first, std::span<const int64_t> window) {
  Ints dims = call.operand(0).dims();
  Ints strides = row_major_strides(dims);
  int64_t base = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Buffer<D>& start = call.operand(first + static_cast<int>(i));
    int64_t value = index_value(start.dtype(), start.ints()[0]);
    base += clamped_start(value, dims[i], window[i]) * strides[i];
  }
  return base;
}

// In the dependency domain: all elements of the result came from the starts that matter, too.
template <class D>
void note_starts(EvalCall<D>& call, int first, std::span<const int64_t> window) {
  if constexpr (is_tracked<typename D::Int>) {
    Ints dims = call.operand(0).dims();
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
      for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == window[i]) continue;
        const auto& start = call.operand(first + static_cast<int>(i)).ints()[0];
        for (T& element : call.result().template as<T>()) element = depending_on(element, start);
      }
    });
  }
}

struct EvalDynamicSlice {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints window = call.result().dims();
    StridedLoop loop(window, row_major_strides(call.operand(0).dims()), row_major_strides(window));
    if (loop.size() == 0) return {};
    int64_t base = window_base(call, 1, window);
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
      loop.copy(call.context.pool, call.operand(0).template as<T>().data() + base,
                call.result().template as<T>().data());
    });
    note_starts(call, 1, window);
    return {};
  }
};

struct EvalDynamicUpdate {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Ints dims = call.operand(0).dims();
    Ints window = call.operand(1).dims();
    Ints strides = row_major_strides(dims);
    StridedLoop whole(dims, strides, strides);
    StridedLoop part(window, row_major_strides(window), strides);
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
      T* result = call.result().template as<T>().data();
      whole.copy(call.context.pool, call.operand(0).template as<T>().data(), result);
      if (part.size() == 0) return;
      part.copy(call.context.pool, call.operand(1).template as<T>().data(),
                result + window_base(call, 2, window));
    });
    note_starts(call, 2, window);
    return {};
  }
};

// ---- gather -------------------------------------------------------------------------------------

constexpr AttrSpec kGatherAttrs[] = {
    {"offset_dims", AttrKind::ints, "", "Result dims that run over the windows; increasing."},
    {"collapsed_dims", AttrKind::ints, "",
     "Operand dims of window size 1 that the result leaves out; increasing."},
    {"operand_batch_dims", AttrKind::ints, "[]",
     "Operand dims that are paired with dims of the indices; increasing."},
    {"index_batch_dims", AttrKind::ints, "[]", "Their partners, in the same order."},
    {"index_map", AttrKind::ints, "", "The operand dim that each component of an index is for."},
    {"index_vector_dim", AttrKind::integer, "",
     "The dim of the indices that holds an index's components; their rank: one component."},
    {"sizes", AttrKind::dims, "", "The window's size per operand dim."},
};

IndexedDims dims_of_gather(const Application& a) {
  return {a.op, a.op.ints("offset_dims"), a.op.ints("collapsed_dims"), a.operand(0), a.operand(1)};
}

Result<std::vector<Type>> infer_gather(const Application& a) {
  Type x = a.operand(0);
  IndexedDims d = dims_of_gather(a);
  const Dims& sizes = a.op.dims("sizes");
  HONE_TRY(d.check("offset_dims", "collapsed_dims"));
  HONE_TRY(expect_per_dim(sizes.size(), "sizes", x.rank()));
  for (int i = 0; i < x.rank(); ++i) {
    Dim size = sizes[static_cast<size_t>(i)];
    HONE_TRY(expect_not_negative(size, "size", i));
    HONE_TRY(expect_le(size, "window", x.dim(i), "size", i));
    if (!d.is_window(i) && !size.is(1)) {
      return bad_input("sizes[{}] is {}; it must be 1, since the result leaves axis {} out", i,
                       size.to_string(), i);
    }
  }
  Dims dims(static_cast<size_t>(d.outer_rank()));
  for (size_t i = 0; i < d.window_dims.size(); ++i) {
    dims[static_cast<size_t>(d.window_dims[i])] = sizes[static_cast<size_t>(d.operand_dims[i])];
  }
  for (size_t i = 0; i < d.batch_dims.size(); ++i) {
    dims[static_cast<size_t>(d.batch_dims[i])] = a.operand(1).dim(d.index_dims[i]);
  }
  return single_result(x.dtype(), dims);
}

AccessRelation access_gather(const Application& a, std::span<const Type> results) {
  Type x = a.operand(0);
  IndexedDims d = dims_of_gather(a);
  const Dims& sizes = a.op.dims("sizes");
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  relation.results = {{.index = identity_index(results[0].rank())}};
  Access read = {.index = std::vector<IndexExpr>(static_cast<size_t>(x.rank()), IndexExpr(0))};
  for (size_t i = 0; i < d.window_dims.size(); ++i) {
    read.index[static_cast<size_t>(d.operand_dims[i])] = IndexExpr::iter(d.window_dims[i]);
  }
  for (size_t i = 0; i < d.operand_batch_dims.size(); ++i) {
    read.index[static_cast<size_t>(d.operand_batch_dims[i])] =
        IndexExpr::iter(d.batch_dims[static_cast<size_t>(d.batch_ordinals[i])]);
  }
  read.data_dependent.assign(static_cast<size_t>(x.rank()), false);
  std::vector<IndexExpr> position;
  for (int dim : d.batch_dims) position.push_back(IndexExpr::iter(dim));
  std::vector<Access> components;
  for (size_t k = 0; k < d.index_map.size(); ++k) {
    // A window of full size stays at 0, whatever the index says.
    size_t target = static_cast<size_t>(d.index_map[k]);
    if (sizes[target] == x.dim(static_cast<int>(target))) continue;
    read.data_dependent[target] = true;
    components.push_back({.index = d.index_of_component(position, static_cast<int>(k))});
  }
  relation.operands = {{read}, components};
  return relation;
}

struct EvalGather {
  template <class D>
  static Status run(EvalCall<D>& call) {
    std::vector<Type> types = {call.operand(0).type(), call.operand(1).type()};
    IndexedDims d = dims_of_gather({call.op, types});
    with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) { copy<T>(call, d); });
    return {};
  }

 private:
  template <class T, class D>
  static void copy(EvalCall<D>& call, const IndexedDims& d) {
    Ints to_strides = row_major_strides(call.result().dims());
    Ints from_strides = row_major_strides(call.operand(0).dims());
    Ints window, from_steps, to_steps;
    for (size_t i = 0; i < d.window_dims.size(); ++i) {
      window.push_back(call.result().dims()[static_cast<size_t>(d.window_dims[i])]);
      from_steps.push_back(from_strides[static_cast<size_t>(d.operand_dims[i])]);
      to_steps.push_back(to_strides[static_cast<size_t>(d.window_dims[i])]);
    }
    StridedLoop loop(window, from_steps, to_steps);
    if (call.result().size() == 0) return;
    int64_t lookups = static_cast<int64_t>(call.result().size()) / loop.size();
    int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / loop.size());
    call.context.pool.parallel_for(0, lookups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) one_window<T>(call, d, loop, n);
    });
  }

  // Copies the window of lookup `n`, counted over the batch dims in row-major order.
  template <class T, class D>
  static void one_window(EvalCall<D>& call, const IndexedDims& d, const StridedLoop& loop,
                         int64_t n) {
    Ints from_dims = call.operand(0).dims();
    Ints from_strides = row_major_strides(from_dims);
    Ints to_strides = row_major_strides(call.result().dims());
    Ints batch = d.batch_point(n);
    int64_t from = 0;
    int64_t to = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      to += batch[i] * to_strides[static_cast<size_t>(d.batch_dims[i])];
    }
    for (size_t i = 0; i < d.operand_batch_dims.size(); ++i) {
      from += batch[static_cast<size_t>(d.batch_ordinals[i])] *
              from_strides[static_cast<size_t>(d.operand_batch_dims[i])];
    }
    T* target = call.result().template as<T>().data() + to;
    const Buffer<D>& indices = call.operand(1);
    for (size_t k = 0; k < d.index_map.size(); ++k) {
      size_t axis = static_cast<size_t>(d.index_map[k]);
      const auto& image = indices.ints()[static_cast<size_t>(d.index_offset(batch, k))];
      from += clamped_start(index_value(indices.dtype(), image), from_dims[axis],
                            call.op.dims("sizes")[axis].value()) *
              from_strides[axis];
    }
    loop.copy(call.context.pool, call.operand(0).template as<T>().data() + from, target);
    if constexpr (is_tracked<T>) note_indices(call, d, loop, batch, target);
  }

  // In the dependency domain: the window came from the index components that can move it, too.
  template <class T, class D>
  static void note_indices(EvalCall<D>& call, const IndexedDims& d, const StridedLoop& loop,
                           const Ints& batch, T* target) {
    for (size_t k = 0; k < d.index_map.size(); ++k) {
      int axis = static_cast<int>(d.index_map[k]);
      if (call.op.dims("sizes")[static_cast<size_t>(axis)] == d.operand.dim(axis)) continue;
      const auto& index = call.operand(1).ints()[static_cast<size_t>(d.index_offset(batch, k))];
      loop.for_each_run(0, loop.size(),
                        [&](int64_t, int64_t at, int64_t count, int64_t, int64_t step) {
                          for (int64_t i = 0; i < count; ++i) {
                            target[at + i * step] = depending_on(target[at + i * step], index);
                          }
                        });
    }
  }
};

// ---- scatter ------------------------------------------------------------------------------------

constexpr AttrSpec kScatterAttrs[] = {
    {"window_dims", AttrKind::ints, "",
     "Dims of the updates that run over the windows; increasing."},
    {"inserted_dims", AttrKind::ints, "",
     "Operand dims of window size 1 that the updates leave out; increasing."},
    {"operand_batch_dims", AttrKind::ints, "[]",
     "Operand dims that are paired with dims of the indices; increasing."},
    {"index_batch_dims", AttrKind::ints, "[]", "Their partners, in the same order."},
    {"index_map", AttrKind::ints, "", "The operand dim that each component of an index is for."},
    {"index_vector_dim", AttrKind::integer, "",
     "The dim of the indices that holds an index's components; their rank: one component."},
    {"combine", AttrKind::word, "replace", "The way in which an update meets an element.",
     "replace|add|mul|min|max"},
};

IndexedDims dims_of_scatter(const Application& a) {
  return {a.op, a.op.ints("window_dims"), a.op.ints("inserted_dims"), a.operand(0), a.operand(1)};
}

Result<std::vector<Type>> infer_scatter(const Application& a) {
  Type x = a.operand(0);
  Type updates = a.operand(2);
  if (updates.dtype() != x.dtype()) {
    return bad_input("updates of type {} for an operand of type {}", name(updates.dtype()),
                     name(x.dtype()));
  }
  if (a.op.word("combine") != "replace" && !kNumber.contains(x.dtype())) {
    return bad_input("combine = {} is not defined for {}", a.op.word("combine"), name(x.dtype()));
  }
  IndexedDims d = dims_of_scatter(a);
  HONE_TRY(d.check("window_dims", "inserted_dims"));
  if (updates.rank() != d.outer_rank()) {
    return bad_input("the updates have rank {}; {} window dims and {} index dims make {}",
                     updates.rank(), d.window_dims.size(), d.index_dims.size(), d.outer_rank());
  }
  for (size_t i = 0; i < d.window_dims.size(); ++i) {
    int axis = d.operand_dims[i];
    HONE_TRY(expect_le(updates.dim(d.window_dims[i]), "window", x.dim(axis), "size", axis));
  }
  for (size_t i = 0; i < d.batch_dims.size(); ++i) {
    Dim have = updates.dim(d.batch_dims[i]);
    Dim want = a.operand(1).dim(d.index_dims[i]);
    if (have == want) continue;
    return bad_input("updates dim {} is {}; it must equal indices dim {}, which is {}",
                     d.batch_dims[i], have.to_string(), d.index_dims[i], want.to_string());
  }
  return std::vector<Type>{x};
}

// Each result element against every lookup that might hit it.
AccessRelation access_scatter(const Application& a, std::span<const Type> results) {
  Type x = results[0];
  Type updates = a.operand(2);
  IndexedDims d = dims_of_scatter(a);
  AccessRelation relation;
  relation.dims = parallel_dims(x);
  relation.results = {{.index = identity_index(x.rank())}};
  IterKind kind = a.op.word("combine") == "replace" ? IterKind::sequential : IterKind::reduction;
  std::vector<IndexExpr> position;  // of the lookup
  for (size_t i = 0; i < d.index_dims.size(); ++i) {
    auto batch = std::find(d.batch_ordinals.begin(), d.batch_ordinals.end(), static_cast<int>(i));
    if (batch != d.batch_ordinals.end()) {
      size_t n = static_cast<size_t>(batch - d.batch_ordinals.begin());
      position.push_back(IndexExpr::iter(static_cast<int>(d.operand_batch_dims[n])));
      continue;
    }
    int number = static_cast<int>(relation.dims.size());
    relation.dims.push_back(
        {reduction_name(number - x.rank()), a.operand(1).dim(d.index_dims[i]), kind});
    position.push_back(IndexExpr::iter(number));
  }
  Access update = {.index = std::vector<IndexExpr>(static_cast<size_t>(updates.rank()), 0),
                   .data_dependent = std::vector<bool>(static_cast<size_t>(updates.rank()))};
  for (size_t i = 0; i < d.batch_dims.size(); ++i) {
    update.index[static_cast<size_t>(d.batch_dims[i])] = position[i];
  }
  for (size_t i = 0; i < d.window_dims.size(); ++i) {
    size_t at = static_cast<size_t>(d.window_dims[i]);
    update.index[at] = IndexExpr::iter(d.operand_dims[i]);
    update.data_dependent[at] = contains(d.index_map, d.operand_dims[i]);
  }
  // Where no index moves the window, it lies at the start of its dim.
  for (int i = 0; i < x.rank(); ++i) {
    Dim size = d.window_size(i, updates);
    if (contains(d.index_map, i) || d.is_batch(i) || size == x.dim(i)) continue;
    update.guards.push_back({IndexExpr::iter(i), 0, size});
  }
  std::vector<Access> components;
  for (size_t k = 0; k < d.index_map.size(); ++k) {
    components.push_back(
        {.index = d.index_of_component(position, static_cast<int>(k)), .guards = update.guards});
  }
  relation.operands = {{{.index = identity_index(x.rank())}}, components, {update}};
  return relation;
}

struct EvalScatter {
  template <class D>
  static Status run(EvalCall<D>& call) {
    std::vector<Type> types = {call.operand(0).type(), call.operand(1).type(),
                               call.operand(2).type()};
    IndexedDims d = dims_of_scatter({call.op, types});
    return with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) -> Status {
      std::span<const T> x = call.operand(0).template as<T>();
      std::copy(x.begin(), x.end(), call.result().template as<T>().begin());
      auto apply_with = [&](const auto& combine) { apply<T>(call, d, combine); };
      if (call.op.word("combine") == "replace") {
        apply_with([](const T&, const T& update) { return update; });
        return {};
      }
      return with_combine<T>(call.op, combine_of(call.op.word("combine")), types[0].dtype(),
                             apply_with);
    });
  }

 private:
  template <class T, class D, class Fn>
  static void apply(EvalCall<D>& call, const IndexedDims& d, const Fn& combine) {
    std::span<const T> updates = call.operand(2).template as<T>();
    std::span<T> result = call.result().template as<T>();
    Ints update_dims = call.operand(2).dims();
    Ints point(update_dims.size(), 0);
    Ints batch(d.batch_dims.size());
    for (const T& update : updates) {
      for (size_t i = 0; i < batch.size(); ++i) {
        batch[i] = point[static_cast<size_t>(d.batch_dims[i])];
      }
      int64_t target = element(call, d, point, batch);
      if (target >= 0) {
        T& place = result[static_cast<size_t>(target)];
        place = combine(place, update);
        for (size_t k = 0; k < d.index_map.size(); ++k) {
          place = depending_on(
              place, call.operand(1).ints()[static_cast<size_t>(d.index_offset(batch, k))]);
        }
      }
      for (size_t i = point.size(); i-- > 0;) {
        if (++point[i] < update_dims[i]) break;
        point[i] = 0;
      }
    }
  }

  // The result element that the update at `point` goes to; -1 if there is none.
  template <class D>
  static int64_t element(const EvalCall<D>& call, const IndexedDims& d, const Ints& point,
                         const Ints& batch) {
    Ints dims = call.operand(0).dims();
    Ints at(dims.size(), 0);
    for (size_t i = 0; i < d.window_dims.size(); ++i) {
      at[static_cast<size_t>(d.operand_dims[i])] = point[static_cast<size_t>(d.window_dims[i])];
    }
    for (size_t i = 0; i < d.operand_batch_dims.size(); ++i) {
      at[static_cast<size_t>(d.operand_batch_dims[i])] =
          batch[static_cast<size_t>(d.batch_ordinals[i])];
    }
    const Buffer<D>& indices = call.operand(1);
    for (size_t k = 0; k < d.index_map.size(); ++k) {
      size_t axis = static_cast<size_t>(d.index_map[k]);
      const auto& image = indices.ints()[static_cast<size_t>(d.index_offset(batch, k))];
      int64_t start = index_value(indices.dtype(), image);
      if (start < -at[axis] || start >= dims[axis] - at[axis]) return -1;
      at[axis] += start;
    }
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i) offset = offset * dims[i] + at[i];
    return offset;
  }
};

constexpr EvalTable kEvalDynamicSlice = local_eval<EvalDynamicSlice>();
constexpr EvalTable kEvalDynamicUpdate = local_eval<EvalDynamicUpdate>();
constexpr EvalTable kEvalGather = local_eval<EvalGather>();
constexpr EvalTable kEvalScatter = local_eval<EvalScatter>();

}  // namespace

extern const OpDef op_def_dynamic_slice;
const OpDef op_def_dynamic_slice = {
    .opcode = Opcode::dynamic_slice,
    .summary = "A window of a tensor whose place is computed.",
    .semantics =
        "One integer scalar per dim says where the window starts. Starts are clamped to "
        "[0, dim - size], so the window is always inside.",
    .operands = "x, starts*",
    .attrs = kDynamicSliceAttrs,
    .dtypes = kAny,
    .traits = kMovesRows,
    .infer = infer_dynamic_slice,
    .access = access_dynamic_slice,
    .eval = &kEvalDynamicSlice,
    .derivative = &derivative_dynamic_slice,
};

extern const OpDef op_def_dynamic_update;
const OpDef op_def_dynamic_update = {
    .opcode = Opcode::dynamic_update,
    .summary = "A tensor with a window replaced, at a place that is computed.",
    .semantics =
        "One integer scalar per dim says where the window starts. Starts are clamped to "
        "[0, dim - window], so the window is always inside.",
    .operands = "x, update, starts*",
    .dtypes = kAny,
    .traits = {.moves_data = true, .updates = 1},
    .infer = infer_dynamic_update,
    .access = access_dynamic_update,
    .eval = &kEvalDynamicUpdate,
    .derivative = &derivative_dynamic_update,
};

extern const OpDef op_def_gather;
const OpDef op_def_gather = {
    .opcode = Opcode::gather,
    .summary = "Windows of a tensor at a list of indices.",
    .semantics =
        "As in StableHLO. Each index along index_vector_dim gives the start of a window: component "
        "k counts along operand dim index_map[k], other starts are 0. Starts are clamped so that "
        "the window is inside. A paired batch dim of the operand has the position of the index. "
        "The result has the windows' dims at offset_dims, without collapsed and batch dims, and "
        "the dims of the indices without index_vector_dim at the other places.",
    .operands = "x, indices",
    .attrs = kGatherAttrs,
    .dtypes = kAny,
    .traits = kMovesRows,
    .infer = infer_gather,
    .access = access_gather,
    .eval = &kEvalGather,
    .derivative = &derivative_gather,
};

extern const OpDef op_def_scatter;
const OpDef op_def_scatter = {
    .opcode = Opcode::scatter,
    .summary = "A tensor with windows combined into it at a list of indices.",
    .semantics =
        "As in StableHLO. The dims are as in gather, with the updates in place of its result. Each "
        "element of the updates goes to one element, or is dropped if its place is out of range. "
        "Updates are applied in row-major order, so that with replace the last one stays; min and "
        "max propagate NaN, integers wrap.",
    .operands = "x, indices, updates",
    .attrs = kScatterAttrs,
    .dtypes = kAny,
    .traits = {.updates = 2},
    .infer = infer_scatter,
    .access = access_scatter,
    .eval = &kEvalScatter,
    .derivative = &derivative_scatter,
};

}  // namespace hone
