#include "ir/ops/indexed_dims.h"
#include "program/build/generic_builder.h"

// Ops that find elements by their data.

namespace hone {

IndexExpr GenericBuilder::start(std::string_view name, int operand, const Access& access, Dim low,
                                Dim high) {
  return tiles_.choose(name, low, high, load(operand, access));
}

// Where a window can move, the start is added to the place within the window.
void GenericBuilder::dynamic_slice() {
  each_point([&] {
    const Access& read = relation_.operands[0].at(0);
    Indices index = here(read.index);
    for (int i = 0; i < operand(0).rank(); ++i) {
      if (!read.is_data_dependent(i)) continue;
      const Dim last = operand(0).dim(i) - results_[0].dim(i);
      IndexExpr& at = index[static_cast<size_t>(i)];
      at =
          at + start("s", 1 + i, relation_.operands[static_cast<size_t>(1 + i)].at(0), 0, last + 1);
    }
    store(tiles_.load(input(0), std::move(index)));
  });
}

void GenericBuilder::dynamic_update() {
  each_point([&] {
    const Access& read = relation_.operands[1].at(0);
    Indices index;
    std::vector<Guard> guards;
    for (int i = 0; i < operand(0).rank(); ++i) {
      IndexExpr at = iters_[static_cast<size_t>(i)];
      if (read.is_data_dependent(i)) {
        const Dim size = operand(1).dim(i);
        at = at - start("s", 2 + i, relation_.operands[static_cast<size_t>(2 + i)].at(0), 0,
                        operand(0).dim(i) - size + 1);
        guards.push_back({at, 0, size});
      }
      index.push_back(std::move(at));
    }
    if (guards.empty()) return store(tiles_.load(input(1), std::move(index)));
    const Scalar before = load(0, relation_.operands[0].at(0));
    store(tiles_.load(input(1), std::move(index), std::move(guards), before));
  });
}

void GenericBuilder::gather() {
  const Access& read = relation_.operands[0].at(0);
  const Dims& sizes = op().dims("sizes");
  each_point([&] {
    Indices index = here(read.index);
    size_t component = 0;
    for (int64_t target : op().ints("index_map")) {
      const auto axis = static_cast<int>(target);
      if (!read.is_data_dependent(axis)) continue;
      const auto at = static_cast<size_t>(axis);
      index[at] = index[at] + start("s", 1, relation_.operands[1].at(component++), 0,
                                    operand(0).dim(axis) - sizes[at] + 1);
    }
    store(tiles_.load(input(0), std::move(index)));
  });
}

// First a copy, then update after update by one thread: their order counts.
void GenericBuilder::scatter() {
  const Type x = operand(0), updates = operand(2);
  const IndexedDims dims(op(), op().ints("window_dims"), op().ints("inserted_dims"), x, operand(1));
  each_element(x, outer_exec(), [&](const Indices& at) {
    tiles_.store(outputs_[0], at, tiles_.load(input(0), at));
  });
  each_element(updates, Exec::loop, [&](const Indices& at) {
    Indices target(static_cast<size_t>(x.rank()), 0);
    for (size_t i = 0; i < dims.window_dims.size(); ++i)
      target[static_cast<size_t>(dims.operand_dims[i])] =
          at[static_cast<size_t>(dims.window_dims[i])];
    Indices lookup;
    for (int dim : dims.batch_dims) lookup.push_back(at[static_cast<size_t>(dim)]);
    for (size_t i = 0; i < dims.operand_batch_dims.size(); ++i)
      target[static_cast<size_t>(dims.operand_batch_dims[i])] =
          lookup[static_cast<size_t>(dims.batch_ordinals[i])];
    std::vector<Guard> guards;
    for (size_t k = 0; k < dims.index_map.size(); ++k) {
      const auto axis = static_cast<size_t>(dims.index_map[k]);
      const Dim size = x.dim(static_cast<int>(axis));
      const Scalar value =
          tiles_.load(input(1), dims.index_of_component(lookup, static_cast<int>(k)));
      // A start that is farther out than any element of the window stays out.
      target[axis] = target[axis] + tiles_.choose("s", Dim(0) - size - 1, size + 1, value);
      guards.push_back({target[axis], 0, size});
    }
    const Scalar update = tiles_.load(input(2), at);
    if (op().word("combine") == "replace") return tiles_.store(outputs_[0], target, update, guards);
    const Scalar before = tiles_.load(outputs_[0], target, guards, tiles_.zero(x.dtype()));
    const Opcode combine = *opcode_from_name(op().word("combine"));
    tiles_.store(outputs_[0], target, tiles_.compute(combine, {before, update}), guards);
  });
}

// An element's place is the number of elements that come before it.
void GenericBuilder::sort() {
  const auto axis = static_cast<size_t>(op().integer("axis"));
  const int64_t keys = op().integer("keys");
  const std::string before = op().flag("descending") ? "gt" : "lt";
  const Dim length = results_[0].dim(static_cast<int>(axis));
  auto is_nan = [&](Scalar x) { return tiles_.compute(Opcode::is_nan, {x}); };
  auto both = [&](Scalar a, Scalar b) { return tiles_.compute(Opcode::and_, {a, b}); };
  auto either = [&](Scalar a, Scalar b) { return tiles_.compute(Opcode::or_, {a, b}); };
  // NaN is above all numbers and equal to NaN.
  auto comes_before = [&](Scalar a, Scalar b) {
    const Scalar numbers = compare(before, a, b);
    if (!is_real(tiles_.dtype(a))) return numbers;
    const Scalar above = op().flag("descending") ? is_nan(a) : is_nan(b);
    const Scalar other = op().flag("descending") ? is_nan(b) : is_nan(a);
    return either(numbers, both(above, tiles_.compute(Opcode::not_, {other})));
  };
  auto equals = [&](Scalar a, Scalar b) {
    const Scalar numbers = compare("eq", a, b);
    return is_real(tiles_.dtype(a)) ? either(numbers, both(is_nan(a), is_nan(b))) : numbers;
  };
  each_element(results_[0], Exec::loop, [&](const Indices& at) {
    std::vector<Scalar> mine;
    for (int k = 0; k < application_.count(); ++k) mine.push_back(tiles_.load(input(k), at));
    const Scalar my_place = tiles_.position(DType::i64, at[axis]);
    const Scalar place = tiles_.carry(
        Exec::loop, "other", length, tiles_.zero(DType::i64), Opcode::add,
        [&](IndexExpr other, Scalar so_far) {
          Indices there = at;
          there[axis] = other;
          // From the last key to the first: before in it, or equal in it and before in the rest.
          Scalar first = compare("lt", tiles_.position(DType::i64, other), my_place);
          for (int64_t k = keys - 1; k >= 0; --k) {
            const Scalar theirs = tiles_.load(input(static_cast<int>(k)), there);
            const Scalar own = mine[static_cast<size_t>(k)];
            first = either(comes_before(theirs, own), both(equals(theirs, own), first));
          }
          return tiles_.compute(Opcode::add, {so_far, tiles_.cast(first, DType::i64)});
        });
    Indices target = at;
    target[axis] = tiles_.choose("place", 0, length, place);
    for (size_t k = 0; k < mine.size(); ++k) tiles_.store(outputs_[k], target, mine[k]);
  });
}

}  // namespace hone
