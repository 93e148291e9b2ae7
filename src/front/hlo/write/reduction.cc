#include <algorithm>
#include <numeric>

#include "front/hlo/write/emit.h"
#include "ir/functional.h"

// Reductions of dims and of windows, running sums, and sorting.

namespace hone::hlo {
namespace {

uint32_t neutral(Emit& e) {
  return e.scalar(e.dtype(), identity_of(combine_of(e.op().word("kind")), e.dtype()));
}

Region kind_body(Emit& e) {
  return combining_body(e.writer(), combiner_of(e.op().word("kind")), e.dtype());
}

// `reduce_window` with the numbers of each dim.
struct WindowNumbers {
  Ints size, stride, low, high, base_dilation, window_dilation;
};

uint32_t reduced_windows(Emit& e, uint32_t x, Type result, const WindowNumbers& w) {
  std::vector<Region> regions;
  regions.push_back(kind_body(e));
  return e.op("stablehlo.reduce_window", {x, neutral(e)}, result,
              {{"window_dimensions", list_of(w.size)},
               {"window_strides", list_of(w.stride)},
               {"base_dilations", list_of(w.base_dilation)},
               {"window_dilations", list_of(w.window_dilation)},
               {"padding", pairs_of(w.low, w.high)}},
              std::move(regions));
}

Value identity_column(Builder& b, std::string_view kind, DType type, const Dims& dims) {
  const std::variant<int64_t, double> number = identity_of(combine_of(kind), type);
  const Type scalar = Type::scalar(type);
  const Value one =
      b.constant(std::holds_alternative<double>(number)
                     ? Tensor::from_reals(scalar, std::vector<double>{std::get<double>(number)})
                     : Tensor::from_integers(scalar, Ints{std::get<int64_t>(number)}));
  return broadcast(one, dims, {});
}

}  // namespace

Ids write_reduce(Emit& e) {
  std::vector<Region> regions;
  regions.push_back(kind_body(e));
  return {e.op("stablehlo.reduce", {e.in(0), neutral(e)}, e.result_type(),
               {{"dimensions", list_of(e.op().ints("axes"))}}, std::move(regions))};
}

namespace {

// The body for a value and its place on each side: NaN wins, else the extreme, else the lower
// place.
Region extreme_body(Emit& e, bool greatest) {
  const Type value = Type::scalar(e.dtype());
  const Type place = Type::scalar(e.result_type().dtype());
  const Type truth = Type::scalar(DType::boolean);
  GraphToProgram& w = e.writer();
  return w.region(std::vector<Type>{value, place, value, place}, [&](const Ids& in) -> Ids {
    const auto compared = [&](std::string_view direction, uint32_t a, uint32_t b, DType type) {
      const std::string_view sort = is_real(type)                   ? "FLOAT"
                                    : kind(type) == DTypeKind::uint ? "UNSIGNED"
                                                                    : "SIGNED";
      return w.op("stablehlo.compare", {a, b}, truth,
                  {{"comparison_direction", word_of(direction)}, {"compare_type", word_of(sort)}});
    };
    const uint32_t beyond = compared(greatest ? "GT" : "LT", in[0], in[2], value.dtype());
    const uint32_t is_nan = compared("NE", in[0], in[0], value.dtype());
    const uint32_t wins = w.op("stablehlo.or", {beyond, is_nan}, truth);
    const uint32_t equal = compared("EQ", in[0], in[2], value.dtype());
    const uint32_t before = compared("LT", in[1], in[3], place.dtype());
    const uint32_t tie = w.op("stablehlo.and", {equal, before}, truth);
    const uint32_t stays = w.op("stablehlo.or", {wins, tie}, truth);
    return {w.op("stablehlo.select", {wins, in[0], in[2]}, value),
            w.op("stablehlo.select", {stays, in[1], in[3]}, place)};
  });
}

}  // namespace

Ids write_arg_reduce(Emit& e) {
  const Op op = e.op();
  const int64_t axis = op.integer("axis");
  const Type x = e.type(0), result = e.result_type();
  if (op.flag("last"))
    return e.spelled([&](Builder& b, std::span<const Value> in) {
      const Value first =
          b.op(Opcode::arg_reduce, {reverse(in[0], {axis})},
               {{"kind", op.word("kind")}, {"axis", axis}, {"dtype", op.dtype("dtype")}});
      const Value end = cast(size_value(b, x.dim(static_cast<int>(axis)) - 1), result.dtype());
      return std::vector<Value>{broadcast_to(end, first.dims()) - first};
    });
  const bool greatest = op.word("kind") == "max";
  const uint32_t places = written_iota(e, x.with_dtype(result.dtype()), axis);
  const uint32_t first = neutral(e);
  const uint32_t first_place = e.scalar(result.dtype(), int64_t{0});
  std::vector<Region> regions;
  regions.push_back(extreme_body(e, greatest));
  const std::vector<Type> results = {result.with_dtype(x.dtype()), result};
  const Ids made =
      e.writer().ops("stablehlo.reduce", {e.in(0), places, first, first_place}, results,
                     {{"dimensions", list_of(Ints{axis})}}, std::move(regions));
  return {made[1]};
}

namespace {

// One step for each index along the axis.
Value run_in_steps(Value x, int axis, const std::string& kind, bool exclusive, bool is_reversed) {
  Ints order = {axis}, back(static_cast<size_t>(x.rank()));
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const Value rows = transpose(x, order);
  const Dims dims = rows.dims();
  const Value first =
      identity_column(x.builder(), kind, x.dtype(), Dims(dims.begin() + 1, dims.end()));
  const std::vector<Value> made = scan(
      std::vector<Value>{first}, std::vector<Value>{rows},
      [&](Builder& inner, std::span<const Value> in) {
        const Value next = inner.op(combine_of(kind), {in[0], in[1]});
        return std::vector<Value>{next, exclusive ? in[0] : next};
      },
      is_reversed);
  return transpose(made[1], back);
}

}  // namespace

// A window that ends at each element and reaches back to the first, as JAX writes it.
Ids write_cumulative(Emit& e) {
  const Op op = e.op();
  const Type type = e.type(0);
  const auto axis = static_cast<int>(op.integer("axis"));
  const std::string kind = op.word("kind");
  const bool is_reversed = op.flag("reverse");
  const Dim size = type.dim(axis);
  if (!size.is_static())
    return e.spelled([&](Builder&, std::span<const Value> in) {
      return std::vector<Value>{run_in_steps(in[0], axis, kind, op.flag("exclusive"), is_reversed)};
    });
  if (type.elements().is(0)) return {e.in(0)};
  if (op.flag("exclusive") || size.is(1))
    return e.spelled([&](Builder& b, std::span<const Value> in) {
      Dims dims(type.dims().begin(), type.dims().end());
      dims[static_cast<size_t>(axis)] = 1;
      const Value first = identity_column(b, kind, type.dtype(), dims);
      if (!op.flag("exclusive")) return std::vector<Value>{binary(combine_of(kind), first, in[0])};
      if (size.is(1)) return std::vector<Value>{first};
      const Value all = cumulative(kind, in[0], axis, false, is_reversed);
      return std::vector<Value>{is_reversed ? concat({slice(all, axis, 1, size), first}, axis)
                                            : concat({first, slice(all, axis, 0, size - 1)}, axis)};
    });
  const auto rank = static_cast<size_t>(type.rank());
  const Ints ones(rank, 1), zeros(rank, 0);
  WindowNumbers w = {ones, ones, zeros, zeros, ones, ones};
  const auto at = static_cast<size_t>(axis);
  w.size[at] = size.value();
  (is_reversed ? w.high : w.low)[at] = size.value() - 1;
  return {reduced_windows(e, e.in(0), type, w)};
}

Ids write_window_reduce(Emit& e) {
  const Op op = e.op();
  const Type type = e.type(0);
  const auto rank = static_cast<size_t>(type.rank());
  if (rank == 0)
    return e.spelled([&](Builder& b, std::span<const Value> in) {
      const Value first = identity_column(b, op.word("kind"), type.dtype(), {});
      return std::vector<Value>{binary(combine_of(op.word("kind")), first, in[0])};
    });
  const auto numbers = [&](std::string_view name, int64_t each) {
    const Ints& found = op.ints(name);
    return found.empty() ? Ints(rank, each) : found;
  };
  WindowNumbers w = {
      op.ints("window"),      numbers("stride", 1),         numbers("pad_low", 0),
      numbers("pad_high", 0), numbers("input_dilation", 1), numbers("window_dilation", 1)};
  uint32_t x = e.in(0);
  // Padding on one side that a reader may take for a running sum, which has another order: it is
  // written out.
  for (size_t i = 0; i < rank; ++i) {
    const Dim size = type.dim(static_cast<int>(i));
    const int64_t reach = w.size[i] - 1;
    if (reach == 0 || !size.is(w.size[i]) || w.low[i] + w.high[i] != reach) continue;
    Dims dims(type.dims().begin(), type.dims().end());
    for (size_t k = 0; k < rank; ++k)
      dims[k] = (dims[k] - 1) * w.base_dilation[k] + 1 + w.low[k] + w.high[k];
    Ints interior = w.base_dilation;
    for (int64_t& each : interior) --each;
    x = e.op("stablehlo.pad", {x, neutral(e)}, type.with_dims(dims),
             {{"edge_padding_low", list_of(w.low)},
              {"edge_padding_high", list_of(w.high)},
              {"interior_padding", list_of(interior)}});
    w.low.assign(rank, 0);
    w.high.assign(rank, 0);
    w.base_dilation.assign(rank, 1);
    break;
  }
  return {reduced_windows(e, x, e.result_type(), w)};
}

namespace {

// The two sides of a key as JAX compares them: -0 is 0, and any NaN one NaN, the greatest.
uint32_t comparable(GraphToProgram& w, uint32_t x, DType type) {
  const Type scalar = Type::scalar(type), truth = Type::scalar(DType::boolean);
  const auto compared = [&](std::string_view direction, uint32_t a, uint32_t b) {
    return w.op("stablehlo.compare", {a, b}, truth,
                {{"comparison_direction", word_of(direction)}, {"compare_type", word_of("FLOAT")}});
  };
  const uint32_t zero = w.constant(Tensor::zeros(scalar));
  const uint32_t is_zero = compared("EQ", x, zero);
  const uint32_t number = w.op("stablehlo.select", {is_zero, zero, x}, scalar);
  const uint32_t nan = w.constant(
      Tensor::from_reals(scalar, std::vector<double>{std::numeric_limits<double>::quiet_NaN()}));
  const uint32_t is_nan = compared("NE", x, x);
  return w.op("stablehlo.select", {is_nan, nan, number}, scalar);
}

}  // namespace

// lt(a0, b0) or (eq(a0, b0) and (lt(a1, b1) or ...)).
Ids write_sort(Emit& e) {
  const Op op = e.op();
  const auto keys = static_cast<size_t>(op.integer("keys"));
  const bool descending = op.flag("descending");
  GraphToProgram& w = e.writer();
  std::vector<Type> sides;
  for (size_t i = 0; i < e.all().size(); ++i)
    sides.insert(sides.end(), 2, Type::scalar(e.type(i).dtype()));
  const Type truth = Type::scalar(DType::boolean);
  std::vector<Region> regions;
  regions.push_back(w.region(sides, [&](const Ids& in) -> Ids {
    uint32_t before = 0;
    for (size_t key = keys; key-- > 0;) {
      const DType type = sides[2 * key].dtype();
      uint32_t a = in[2 * key], b = in[2 * key + 1];
      if (is_real(type)) a = comparable(w, a, type);
      if (is_real(type)) b = comparable(w, b, type);
      const std::string_view sort = is_real(type)                                    ? "TOTALORDER"
                                    : kind(type) == DTypeKind::uint || is_bool(type) ? "UNSIGNED"
                                                                                     : "SIGNED";
      const auto compared = [&](std::string_view direction) {
        return w.op(
            "stablehlo.compare", {a, b}, truth,
            {{"comparison_direction", word_of(direction)}, {"compare_type", word_of(sort)}});
      };
      const uint32_t here = compared(descending ? "GT" : "LT");
      if (key + 1 == keys) {
        before = here;
        continue;
      }
      const uint32_t rest = w.op("stablehlo.and", {compared("EQ"), before}, truth);
      before = w.op("stablehlo.or", {here, rest}, truth);
    }
    return {before};
  }));
  return w.ops("stablehlo.sort", e.all(), e.result_types(),
               {{"dimension", number_of(op.integer("axis"))}, {"is_stable", number_of(1)}},
               std::move(regions));
}

}  // namespace hone::hlo
