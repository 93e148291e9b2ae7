#include <algorithm>
#include <numeric>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"
#include "ir/ops/iter_names.h"
#include "ir/reference/eval.h"
#include "ir/reference/lanes.h"
#include "ir/reference/order.h"

namespace hone {
namespace {

constexpr AttrSpec kSortAttrs[] = {
    {"axis", AttrKind::integer, "", "The dim along which elements are sorted."},
    {"descending", AttrKind::flag, "false", "The greatest first."},
    {"keys", AttrKind::integer, "1",
     "The number of first operands that decide, the first one first."},
    {"first", AttrKind::integer, "0",
     "The number of elements of each line that are results, the first ones; 0: all."}};

Result<std::vector<Type>> infer_sort(const Application& app) {
  int64_t keys = app.op.integer("keys");
  if (app.count() == 0) return bad_input("takes at least one operand");
  if (keys < 1 || keys > app.count())
    return bad_input("keys is {}, outside [1, {}], the number of operands", keys, app.count());
  Type first = app.operand(0);
  HONE_TRY(expect_axis(app.op.integer("axis"), "axis", first.rank()));
  for (int i = 0; i < app.count(); ++i) {
    Type operand = app.operand(i);
    if (!std::ranges::equal(operand.dims(), first.dims()))
      return bad_input("operands 0 and {} have dims of {} and {}, which are not equal", i,
                       first.to_string(), operand.to_string());
    if (i < keys && !kComputable.contains(operand.dtype()))
      return bad_input("key {} has element type {}, which has no order", i, name(operand.dtype()));
  }
  const int64_t count = app.op.integer("first");
  std::vector<Type> results(app.operands.begin(), app.operands.end());
  if (count == 0) return results;
  const int axis = static_cast<int>(app.op.integer("axis"));
  if (count < 0 || !provably_le(Dim(count), first.dim(axis)))
    return bad_input("first is {}, outside [0, {}], the size of axis {}", count,
                     first.dim(axis).to_string(), axis);
  for (Type& result : results) {
    Dims dims(result.dims().begin(), result.dims().end());
    dims[static_cast<size_t>(axis)] = count;
    result = Type::get(result.dtype(), dims);
  }
  return results;
}

AccessRelation access_sort(const Application& app, std::span<const Type> results) {
  int axis = static_cast<int>(app.op.integer("axis"));
  int rank = results[0].rank();
  Access identity = {.index = identity_index(rank)};
  Access anywhere = identity;
  anywhere.data_dependent.assign(static_cast<size_t>(rank), false);
  anywhere.data_dependent[static_cast<size_t>(axis)] = true;
  AccessRelation relation;
  relation.dims = parallel_dims(results[0]);
  relation.operands.assign(app.operands.size(), {anywhere});
  relation.results.assign(results.size(), identity);
  return relation;
}

// The order of one lane: order[i] is the position of the element that comes i-th.
class LaneSort {
 public:
  LaneSort(int64_t length, int64_t keys)
      : length_(static_cast<size_t>(length)),
        keys_(static_cast<size_t>(keys)),
        key_(length_ * keys_),
        order_(length_) {}

  uint64_t& key(int64_t k, int64_t position) {
    return key_[static_cast<size_t>(k) * length_ + static_cast<size_t>(position)];
  }

  const std::vector<int64_t>& sort() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::sort(order_.begin(), order_.end(), [this](int64_t a, int64_t b) {
      for (size_t k = 0; k < keys_; ++k) {
        uint64_t left = key_[k * length_ + static_cast<size_t>(a)];
        uint64_t right = key_[k * length_ + static_cast<size_t>(b)];
        if (left != right) return left < right;
      }
      return a < b;  // stable
    });
    return order_;
  }

 private:
  size_t length_;
  size_t keys_;
  std::vector<uint64_t> key_;  // [keys, length]
  std::vector<int64_t> order_;
};

struct EvalSort {
  template <class D>
  static Status run(EvalCall<D>& call) {
    using Int = typename D::Int;
    const int64_t keys = call.op.integer("keys");
    for (int64_t k = 0; k < keys; ++k) {
      if (!is_ordered_real<typename D::Real> && call.operand(static_cast<int>(k)).holds_reals())
        return no_field_meaning(call.op);
    }
    const Lanes lanes(call.operand(0).dims(), call.op.integer("axis"));
    lanes.parallel_for(call.context.pool, [&](int64_t begin, int64_t end) {
      LaneSort sort(lanes.length, keys);
      for (int64_t lane = begin; lane < end; ++lane) {
        Int compared(0);  // what the order depends on
        for (int64_t k = 0; k < keys; ++k) {
          read_key(call.operand(static_cast<int>(k)), lanes, lane, k, call.op.flag("descending"),
                   sort, compared);
        }
        const std::vector<int64_t>& order = sort.sort();
        for (size_t i = 0; i < call.operands.size(); ++i) {
          const Lanes kept(call.results[i].dims(), call.op.integer("axis"));
          move_lane(*call.operands[i], call.results[i], lanes, kept, lane, order, compared);
        }
      }
    });
    return {};
  }

 private:
  template <class D, class Int>
  static void read_key(const Buffer<D>& operand, const Lanes& lanes, int64_t lane, int64_t k,
                       bool descending, LaneSort& sort, Int& compared) {
    with_elements(operand, [&]<class T>(std::type_identity<T>) {
      if constexpr (is_ordered_real<T>) {
        const T* element = operand.template as<T>().data() + lanes.first(lane);
        for (int64_t i = 0; i < lanes.length; ++i, element += lanes.step) {
          uint64_t key = order_key_of(*element, operand.dtype());
          sort.key(k, i) = descending ? ~key : key;
          compared = depending_on(compared, *element);
        }
      }
    });
  }

  template <class D, class Int>
  static void move_lane(const Buffer<D>& from, Buffer<D>& to, const Lanes& lanes, const Lanes& kept,
                        int64_t lane, const std::vector<int64_t>& order, const Int& compared) {
    with_elements(from, [&]<class T>(std::type_identity<T>) {
      const T* in = from.template as<T>().data() + lanes.first(lane);
      T* out = to.template as<T>().data() + kept.first(lane);
      for (int64_t position : std::span(order).first(static_cast<size_t>(kept.length))) {
        *out = depending_on(in[position * lanes.step], compared);
        out += kept.step;
      }
    });
  }
};

constexpr EvalTable kEvalSort = local_eval<EvalSort>();

}  // namespace

extern const OpDef op_def_sort;
const OpDef op_def_sort = {
    .opcode = Opcode::sort,
    .summary = "Sorts lines along an axis, all operands by the order of the first 'keys'.",
    .semantics =
        "The order is stable and lexicographic over the keys. NaN is greater than all numbers, all "
        "NaN are equal, and so are -0 and +0; false comes before true. Operands have the same dims "
        "and any element types, but storage-only types cannot be keys.",
    .operands = "operands*",
    .results = "sorted*",
    .attrs = kSortAttrs,
    .dtypes = kComputable,
    .infer = &infer_sort,
    .access = &access_sort,
    .eval = &kEvalSort,
    .derivative = &derivative_sort};

}  // namespace hone
