#include "program/build/generic.h"

#include <limits>
#include <numeric>

#include "program/build/generic_builder.h"

namespace hone {

namespace {

// What 16-bit reals are summed in.
DType sum_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

Opcode combine_of(std::string_view kind) {
  if (kind == "sum" || kind == "add") return Opcode::add;
  if (kind == "product" || kind == "mul") return Opcode::mul;
  if (kind == "max") return Opcode::max;
  if (kind == "min") return Opcode::min;
  if (kind == "and") return Opcode::and_;
  HONE_CHECK(kind == "or", "a combine kind '{}'", kind);
  return Opcode::or_;
}

}  // namespace

GenericBuilder::GenericBuilder(const Application& application, std::span<const Type> results,
                               std::string_view name)
    : application_(application),
      results_(results),
      relation_(access_of(application, results)),
      tiles_(name),
      iters_(relation_.dims.size(), 0) {
  for (int i = 0; i < application.count(); ++i)
    inputs_.push_back(application.has_operand(i)
                          ? tiles_.buffer(fmt::format("x{}", i), operand(i), BufferRole::input)
                          : tile::BufferId{});
  for (size_t i = 0; i < results.size(); ++i)
    outputs_.push_back(tiles_.buffer(fmt::format("y{}", i), results[i], BufferRole::output));
}

TileProgram GenericBuilder::build() && {
  switch (op().opcode()) {
    case Opcode::iota: iota(); break;
    case Opcode::rng_bits: rng_bits(); break;
    case Opcode::reduce:
    case Opcode::window_reduce: fold(); break;
    case Opcode::cumulative: accumulate(); break;
    case Opcode::arg_reduce: arg_reduce(); break;
    case Opcode::dot:
    case Opcode::conv: contract(); break;
    case Opcode::dynamic_slice: dynamic_slice(); break;
    case Opcode::dynamic_update: dynamic_update(); break;
    case Opcode::gather: gather(); break;
    case Opcode::scatter: scatter(); break;
    case Opcode::sort: sort(); break;
    default: op().def().traits.moves_data ? move() : pointwise();
  }
  return std::move(tiles_).finish();
}

// ---- Ops ----------------------------------------------------------------------------------------

void GenericBuilder::pointwise() {
  each_point([&] {
    std::vector<Scalar> operands;
    for (int i = 0; i < application_.count(); ++i)
      operands.push_back(load(i, relation_.operands[static_cast<size_t>(i)].at(0)));
    store(tiles_.compute(op(), std::move(operands)));
  });
}

// Each element comes from the one piece whose guards hold; pad's value from no place in particular.
void GenericBuilder::move() {
  each_point([&] {
    std::optional<Scalar> value;
    for (int i = application_.count() - 1; i >= 0; --i) {
      if (op().opcode() == Opcode::pad && i == 1) {
        value = tiles_.load(input(1), {});
        continue;
      }
      for (const Access& piece : relation_.operands[static_cast<size_t>(i)]) {
        if (piece.guards.empty())
          value = load(i, piece);
        else
          value = load(i, piece, value ? *value : tiles_.zero(results_[0].dtype()));
      }
    }
    store(*value);
  });
}

void GenericBuilder::iota() {
  const DType dtype = results_[0].dtype();
  each_point([&] {
    const IndexExpr at = iters_[static_cast<size_t>(op().integer("axis"))];
    const Scalar position = tiles_.position(is_integer(dtype) ? dtype : DType::i64, at);
    store(tiles_.cast(position, dtype));
  });
}

void GenericBuilder::fold() {
  const Opcode combine = combine_of(op().word("kind"));
  const bool is_sum = combine == Opcode::add || combine == Opcode::mul;
  const DType dtype = operand(0).dtype(), wide = is_sum ? sum_type(dtype) : dtype;
  const Access& access = relation_.operands[0].at(0);
  each_point([&] {
    const Scalar nothing = identity(combine, dtype);
    const Scalar initial = wide == dtype ? nothing : identity(combine, wide);
    const Scalar folded = reduced(initial, combine, [&](Scalar so_far) {
      const Scalar element = load(0, access, nothing);
      return tiles_.compute(combine, {so_far, tiles_.cast(element, wide)});
    });
    store(tiles_.cast(folded, results_[0].dtype()));
  });
}

void GenericBuilder::accumulate() {
  const Opcode combine = combine_of(op().word("kind"));
  const bool is_sum = combine == Opcode::add || combine == Opcode::mul;
  const DType dtype = results_[0].dtype(), wide = is_sum ? sum_type(dtype) : dtype;
  const size_t axis = static_cast<size_t>(dims_of(IterKind::sequential).at(0));
  each_point([&] {
    const Scalar nothing = identity(combine, dtype);
    const Scalar initial = wide == dtype ? nothing : identity(combine, wide);
    tiles_.carry(Exec::loop, relation_.dims[axis].name, relation_.dims[axis].extent, initial,
                 std::nullopt, [&](IndexExpr step, Scalar so_far) {
                   iters_[axis] = std::move(step);
                   const Scalar element = load(0, relation_.operands[0].at(0), nothing);
                   const Scalar next =
                       tiles_.compute(combine, {so_far, tiles_.cast(element, wide)});
                   store(tiles_.cast(next, dtype));
                   return next;
                 });
  });
}

// The best so far and where it is. NaN is better than any number.
void GenericBuilder::arg_reduce() {
  const bool is_max = op().word("kind") == "max";
  const std::string direction = std::string(is_max ? "g" : "l") + (op().flag("last") ? "e" : "t");
  const size_t axis = static_cast<size_t>(dims_of(IterKind::reduction).at(0));
  const DType index_type = results_[0].dtype(), dtype = operand(0).dtype();
  const DType counted = is_integer(index_type) ? index_type : DType::i64;
  each_point([&] {
    iters_[axis] = 0;
    const Scalar first = load(0, relation_.operands[0].at(0));
    const Scalar zero = tiles_.zero(counted);
    const std::vector<Scalar> best = tiles_.carry(
        relation_.dims[axis].name, relation_.dims[axis].extent, {first, zero},
        [&](IndexExpr i, const std::vector<Scalar>& so_far) {
          iters_[axis] = i;
          const Scalar element = load(0, relation_.operands[0].at(0));
          Scalar wins = compare(direction, element, so_far[0]);
          if (is_real(dtype)) {
            const Scalar is_nan = tiles_.compute(Opcode::is_nan, {element});
            const Scalar was_nan = tiles_.compute(Opcode::is_nan, {so_far[0]});
            const Scalar none_yet = tiles_.compute(Opcode::not_, {was_nan});
            // A number never wins against NaN: comparing with it is false.
            wins = tiles_.compute(
                Opcode::or_,
                {wins,
                 op().flag("last") ? is_nan : tiles_.compute(Opcode::and_, {is_nan, none_yet})});
          }
          const Scalar position = tiles_.position(counted, i);
          return std::vector<Scalar>{tiles_.compute(Opcode::select, {wins, element, so_far[0]}),
                                     tiles_.compute(Opcode::select, {wins, position, so_far[1]})};
        });
    store(tiles_.cast(best[1], index_type));
  });
}

void GenericBuilder::contract() {
  const DType dtype = results_[0].dtype(), wide = sum_type(dtype);
  each_point([&] {
    const Scalar nothing[] = {tiles_.zero(operand(0).dtype()), tiles_.zero(operand(1).dtype())};
    const Scalar sum = reduced(tiles_.zero(wide), Opcode::add, [&](Scalar so_far) {
      const Scalar a = tiles_.cast(load(0, relation_.operands[0].at(0), nothing[0]), wide);
      const Scalar b = tiles_.cast(load(1, relation_.operands[1].at(0), nothing[1]), wide);
      if (is_real(wide)) return tiles_.fma(a, b, so_far);
      return tiles_.compute(Opcode::add, {so_far, tiles_.compute(Opcode::mul, {a, b})});
    });
    store(tiles_.cast(sum, dtype));
  });
}

// ---- Loops --------------------------------------------------------------------------------------

std::vector<int> GenericBuilder::dims_of(IterKind kind) const {
  std::vector<int> dims;
  for (size_t i = 0; i < relation_.dims.size(); ++i)
    if (relation_.dims[i].kind == kind) dims.push_back(static_cast<int>(i));
  return dims;
}

Exec GenericBuilder::outer_exec() const {
  for (Type type : results_)
    if (bits(type.dtype()) < 8) return Exec::loop;
  return Exec::threads;
}

void GenericBuilder::nest(std::span<const int> dims, Exec exec, const std::function<void()>& body) {
  if (dims.empty()) return body();
  const auto dim = static_cast<size_t>(dims[0]);
  tiles_.loop(exec, relation_.dims[dim].name, relation_.dims[dim].extent, [&](IndexExpr i) {
    iters_[dim] = std::move(i);
    nest(dims.subspan(1), dims.size() == 2 ? Exec::loop : exec, body);
  });
}

void GenericBuilder::each_point(const std::function<void()>& body) {
  const std::vector<int> dims = dims_of(IterKind::parallel);
  if (dims.empty()) return tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { body(); });
  nest(dims, outer_exec(), body);
}

void GenericBuilder::each_element(Type type, Exec exec,
                                  const std::function<void(const Indices&)>& body) {
  Indices index;
  std::function<void()> deeper = [&] {
    if (static_cast<int>(index.size()) == type.rank()) return body(index);
    const int axis = static_cast<int>(index.size());
    tiles_.loop(exec, iter_name(axis), type.dim(axis), [&](IndexExpr i) {
      index.push_back(std::move(i));
      deeper();
      index.pop_back();
    });
  };
  if (type.rank() == 0)
    return tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { deeper(); });
  deeper();
}

tile::Scalar GenericBuilder::reduced(Scalar initial, Opcode combine,
                                     const std::function<Scalar(Scalar)>& step) {
  const std::vector<int> dims = dims_of(IterKind::reduction);
  std::function<Scalar(size_t, Scalar)> from = [&](size_t at, Scalar so_far) {
    if (at == dims.size()) return step(so_far);
    const auto dim = static_cast<size_t>(dims[at]);
    return tiles_.carry(Exec::loop, relation_.dims[dim].name, relation_.dims[dim].extent, so_far,
                        combine, [&](IndexExpr i, Scalar inside) {
                          iters_[dim] = std::move(i);
                          return from(at + 1, inside);
                        });
  };
  return from(0, initial);
}

// ---- Elements -----------------------------------------------------------------------------------

TileBuilder::Indices GenericBuilder::here(const std::vector<IndexExpr>& index) const {
  Indices result;
  for (const IndexExpr& expr : index) result.push_back(expr.substitute(iters_));
  return result;
}

std::vector<Guard> GenericBuilder::here(const std::vector<Guard>& guards) const {
  std::vector<Guard> result;
  for (const Guard& guard : guards)
    result.push_back({guard.value.substitute(iters_), guard.lower, guard.upper});
  return result;
}

tile::Scalar GenericBuilder::load(int operand, const Access& access) {
  return tiles_.load(input(operand), here(access.index));
}

tile::Scalar GenericBuilder::load(int operand, const Access& access, Scalar otherwise) {
  return tiles_.load(input(operand), here(access.index), here(access.guards), otherwise);
}

void GenericBuilder::store(Scalar value, int result) {
  const auto at = static_cast<size_t>(result);
  tiles_.store(outputs_[at], here(relation_.results[at].index), value);
}

tile::Scalar GenericBuilder::identity(Opcode combine, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (combine) {
    case Opcode::mul: return is_real(dtype) ? tiles_.real(dtype, 1) : tiles_.integer(dtype, 1);
    case Opcode::max:
      return is_real(dtype) ? tiles_.real(dtype, -infinity)
                            : tiles_.integer(dtype, integer_limits(dtype).lowest);
    case Opcode::min:
      return is_real(dtype) ? tiles_.real(dtype, infinity)
                            : tiles_.integer(dtype, integer_limits(dtype).highest);
    case Opcode::and_: return tiles_.integer(dtype, wrap_to(dtype, -1));
    default: return tiles_.zero(dtype);
  }
}

tile::Scalar GenericBuilder::compare(std::string_view direction, Scalar a, Scalar b) {
  return tiles_.compute(Opcode::compare, {a, b}, {{"direction", std::string(direction)}});
}

Result<TileProgram> build_generic(const Application& application, std::span<const Type> results,
                                  std::string_view name) {
  if (!has_access(application) || level(application.op.opcode()) == Level::composite)
    return unsupported("{} is no kernel", application.op.name());
  return GenericBuilder(application, results, name).build();
}

}  // namespace hone
