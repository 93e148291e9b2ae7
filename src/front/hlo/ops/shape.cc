#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "ir/barrier.h"

// Ops that move elements, and those that make them from their places.

namespace hone::hlo {
namespace {

Dims dims_of(const Ints& ints) { return {ints.begin(), ints.end()}; }

void need_rank(Node& n, const Ints& numbers, int rank, std::string_view what) {
  if (numbers.size() != static_cast<size_t>(rank))
    n.refuse(bad_input("there are {} {}, but {} dims", numbers.size(), what, rank));
}

// The axes must be different ones of `rank`.
void check_axes(Node& n, const Ints& axes, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= rank) n.refuse(bad_input("dim {} is outside of rank {}", axis, rank));
    if (seen[static_cast<size_t>(axis)]) n.refuse(bad_input("dim {} is named twice", axis));
    seen[static_cast<size_t>(axis)] = true;
  }
}

std::vector<Value> padded(Node& n, const Ints& low, const Ints& high, const Ints& interior) {
  const Value x = n.in(0);
  need_rank(n, low, x.rank(), "numbers 'low'");
  need_rank(n, high, x.rank(), "numbers 'high'");
  if (!interior.empty()) need_rank(n, interior, x.rank(), "numbers 'interior'");
  return {n.builder().op(Opcode::pad, {x, n.in(1)},
                         {{"low", dims_of(low)}, {"high", dims_of(high)}, {"interior", interior}})};
}

// Scalars as hone wants them: of any integer type.
std::vector<Value> with_starts(Node& n, std::vector<Value> operands, size_t first, int rank) {
  const size_t count = n.operands().size() - first;
  if (count != static_cast<size_t>(rank))
    n.refuse(bad_input("there are {} starts, but {} dims", count, rank));
  for (size_t i = first; i < n.operands().size(); ++i) {
    if (n.in(i).rank() != 0) n.refuse(bad_input("operand {} must be a scalar", i));
    operands.push_back(n.in(i));
  }
  return operands;
}

}  // namespace

std::vector<Value> map_identity(Node& n) { return n.operands(); }

// The value behind it is another one, which shardings reach in the directions that annotate()
// keeps.
std::vector<Value> map_propagation_barrier(Node& n) {
  n.need(1);
  if (n.find("allowed_direction") == nullptr)
    n.refuse(bad_input("the directions that it allows are missing"));
  const Op barrier = barrier_op(n.in(0).rank());
  return {
      n.builder().op(barrier.opcode(), {n.in(0)}, {{"permutation", barrier.ints("permutation")}})};
}

// annotate() keeps what it says.
std::vector<Value> map_sharding_group(Node& n) {
  n.need(1);
  if (n.integer("group_id", -1) < 0) n.refuse(bad_input("the number of the group is missing"));
  return {};
}

namespace {

// The dims of the result: as the text states them, or from the operand that holds them.
Dims result_dims(Node& n, std::optional<size_t> operand) {
  if (operand) return n.known_dims(*operand);
  const Type to = n.static_result();
  return {to.dims().begin(), to.dims().end()};
}

// Dims of size 1 stretch. The dims may be in any order.
std::vector<Value> broadcast_to_dims(Node& n, const Dims& to) {
  const Value x = n.in();
  Ints map = n.ints("broadcast_dimensions|dims|dimensions", {});
  need_rank(n, map, x.rank(), "dims of the result");
  check_axes(n, map, static_cast<int>(to.size()));
  for (int i = 0; i < x.rank(); ++i) {
    const Dim size = to[static_cast<size_t>(map[static_cast<size_t>(i)])];
    if (!x.dim(i).is(1) && (!x.dim(i).is_static() || !size.is_static()))
      n.make_equal(x.dim(i), size);
  }
  Ints order(map.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return map[static_cast<size_t>(i)]; });
  std::ranges::sort(map);
  return {broadcast(transpose(x, order), to, map)};
}

// Numbers of elements are compared where both are known.
std::vector<Value> reshaped(Node& n, const Dims& dims) {
  Result<Type> to = Type::make(n.in().dtype(), dims);
  if (!to.ok()) n.refuse(std::move(to).error());
  if (n.in().type() == *to) return {n.in()};
  const Dim have = n.in().type().elements(), want = to->elements();
  if (have.is_static() && want.is_static() && have != want)
    n.refuse(bad_input("{} has {} elements, but {} has {}", n.in().type().to_string(),
                       have.to_string(), to->to_string(), want.to_string()));
  return {n.builder().op(Opcode::reshape, {n.in()}, {{"dims", dims}})};
}

std::vector<Value> iota_of(Node& n, const Dims& dims) {
  const DType stated = n.result().dtype();
  const int64_t axis = n.integer("iota_dimension|dim", -1);
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
    n.refuse(bad_input("dim {} is outside of rank {}", axis, dims.size()));
  const bool counts = !is_storage_only(stated) && !is_bool(stated);
  const Value made = iota(n.builder(), counts ? stated : DType::i64, dims, static_cast<int>(axis));
  return {cast(made, stated)};
}

}  // namespace

std::vector<Value> map_broadcast_in_dim(Node& n) {
  return broadcast_to_dims(n, result_dims(n, std::nullopt));
}
std::vector<Value> map_dynamic_broadcast_in_dim(Node& n) {
  n.need(2);
  return broadcast_to_dims(n, result_dims(n, 1));
}

// An older op: the new dims come first.
std::vector<Value> map_broadcast(Node& n) {
  n.need(1);
  Dims dims;
  for (const int64_t size : n.ints("broadcast_sizes")) dims.emplace_back(size);
  Ints map;
  for (int i = 0; i < n.in().rank(); ++i) {
    map.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(n.in().dim(i));
  }
  return {broadcast(n.in(), dims, map)};
}

std::vector<Value> map_reshape(Node& n) { return reshaped(n, result_dims(n, std::nullopt)); }
std::vector<Value> map_dynamic_reshape(Node& n) {
  n.need(2);
  return reshaped(n, result_dims(n, 1));
}

namespace {

// The dims in memory, the outermost one first: `layout` names the innermost one first, as HLO does.
// Empty: row-major.
Ints major_first(Node& n, Ints layout, int rank) {
  if (layout.empty())
    for (int i = rank; i-- > 0;) layout.push_back(i);
  need_rank(n, layout, rank, "dims in the layout");
  check_axes(n, layout, rank);
  return {layout.rbegin(), layout.rend()};
}

}  // namespace

// The same bytes in memory as another tensor: in the order of the one layout they are those of the
// other.
std::vector<Value> map_bitcast(Node& n) {
  n.need(1);
  const Type to = n.static_result();
  const Value x = n.in();
  if (to.dtype() != x.dtype() && (bits(to.dtype()) != bits(x.dtype()) || is_bool(to.dtype()) ||
                                  is_bool(x.dtype()) || is_storage_only(x.dtype())))
    n.refuse(unsupported("from {} to {} is not handled", name(x.dtype()), name(to.dtype())));
  const auto in_type = [&](Value made) {
    if (to.dtype() == made.dtype()) return made;
    return n.builder().op(Opcode::bitcast, {made}, {{"dtype", to.dtype()}});
  };
  if (n.frame().lifted != nullptr) {  // of scalars, each of which stands for a tensor
    if (to.rank() != 0) n.refuse(unsupported("within a body of scalars is not handled"));
    return {in_type(x)};
  }
  const Ints from_order = major_first(n, n.ints("operand_layout", {}), x.rank());
  const Ints to_order = major_first(n, n.ints("result_layout", {}), to.rank());
  if (x.type().static_elements() != to.static_elements())
    n.refuse(bad_input("{} has {} elements, but {} has {}", x.type().to_string(),
                       x.type().static_elements(), to.to_string(), to.static_elements()));
  Dims in_memory;
  Ints back(to_order.size());
  for (size_t i = 0; i < to_order.size(); ++i) {
    in_memory.push_back(to.dim(static_cast<int>(to_order[i])));
    back[static_cast<size_t>(to_order[i])] = static_cast<int64_t>(i);
  }
  return {in_type(transpose(reshape(transpose(x, from_order), in_memory), back))};
}

// The number of elements along a dim.
std::vector<Value> map_get_dimension_size(Node& n) {
  n.need(1);
  const int64_t axis = n.integer("dimension|dim|dimensions", -1);
  if (axis < 0 || axis >= n.in().rank())
    n.refuse(bad_input("dim {} is outside of rank {}", axis, n.in().rank()));
  return {cast(size_value(n.builder(), n.in().dim(static_cast<int>(axis))), DType::i32)};
}

std::vector<Value> map_transpose(Node& n) {
  n.need(1);
  const Ints permutation = n.ints("permutation|dims|dimensions");
  need_rank(n, permutation, n.in().rank(), "dims in the permutation");
  check_axes(n, permutation, n.in().rank());
  return {transpose(n.in(), permutation)};
}

std::vector<Value> map_slice(Node& n) {
  n.need(1);
  const Value x = n.in();
  Ints start = n.ints("start_indices", {});
  Ints limit = n.ints("limit_indices", {});
  Ints stride = n.ints("strides", {});
  if (const Attribute* ranges = n.find("ranges|slice")) {
    for (const Attribute& range : ranges->items) {
      const Ints numbers = n.ints_of(range);
      if (numbers.size() < 2 || numbers.size() > 3)
        n.refuse(bad_input("a range has {} numbers; it is start:limit or start:limit:stride",
                           numbers.size()));
      start.push_back(numbers[0]);
      limit.push_back(numbers[1]);
      stride.push_back(numbers.size() == 3 ? numbers[2] : 1);
    }
  }
  need_rank(n, start, x.rank(), "starts");
  need_rank(n, limit, x.rank(), "limits");
  return {
      n.builder().op(Opcode::slice, {x},
                     {{"start", dims_of(start)}, {"limit", dims_of(limit)}, {"stride", stride}})};
}

std::vector<Value> map_pad(Node& n) {
  n.need(2);
  return padded(n, n.ints("edge_padding_low|low"), n.ints("edge_padding_high|high"),
                n.ints("interior_padding|interior", {}));
}

std::vector<Value> map_dynamic_pad(Node& n) {
  n.need(5);
  return {n.builder().op(
      Opcode::pad, {n.in(0), n.in(1)},
      {{"low", n.known_dims(2)}, {"high", n.known_dims(3)}, {"interior", n.known_ints(4)}})};
}

std::vector<Value> map_real_dynamic_slice(Node& n) {
  n.need(4);
  return {n.builder().op(
      Opcode::slice, {n.in(0)},
      {{"start", n.known_dims(1)}, {"limit", n.known_dims(2)}, {"stride", n.known_ints(3)}})};
}

std::vector<Value> map_concatenate(Node& n) {
  const int64_t axis = n.integer("dimension|dim|dimensions", -1);
  if (n.operands().empty()) n.refuse(bad_input("there is nothing to join"));
  if (axis < 0 || axis >= n.in().rank())
    n.refuse(bad_input("dim {} is outside of rank {}", axis, n.in().rank()));
  for (const Value& one : n.operands())
    for (int i = 0; i < one.rank() && one.rank() == n.in().rank(); ++i)
      if (i != axis && (!one.dim(i).is_static() || !n.in().dim(i).is_static()))
        n.make_equal(one.dim(i), n.in().dim(i));
  return {concat(n.operands(), static_cast<int>(axis))};
}

std::vector<Value> map_reverse(Node& n) {
  n.need(1);
  const Ints axes = n.ints("dimensions|dims");
  check_axes(n, axes, n.in().rank());
  return {axes.empty() ? n.in() : reverse(n.in(), axes)};
}

std::vector<Value> map_iota(Node& n) { return iota_of(n, result_dims(n, std::nullopt)); }
std::vector<Value> map_dynamic_iota(Node& n) {
  n.need(1);
  return iota_of(n, result_dims(n, 0));
}

std::vector<Value> map_dynamic_slice(Node& n) {
  const Value x = n.in();
  const Ints sizes = n.ints("slice_sizes|sizes|dynamic_slice_sizes");
  need_rank(n, sizes, x.rank(), "sizes");
  return {n.builder().op(Opcode::dynamic_slice, with_starts(n, {x}, 1, x.rank()),
                         {{"sizes", dims_of(sizes)}})};
}

std::vector<Value> map_dynamic_update_slice(Node& n) {
  const Value x = n.in(0);
  return {n.builder().op(Opcode::dynamic_update, with_starts(n, {x, n.in(1)}, 2, x.rank()))};
}

}  // namespace hone::hlo
