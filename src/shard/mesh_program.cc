#include "shard/mesh_program.h"

#include <algorithm>
#include <map>

#include "base/checked_math.h"
#include "shard/whole_bytes.h"

namespace hone {

namespace {

// The type of 8 bits that has all numbers of a narrower one.
DType byte_type(DType narrow) {
  if (is_real(narrow)) return DType::f8e4m3fn;
  return is_signed(narrow) ? DType::i8 : DType::u8;
}

}  // namespace

int64_t divisor_of(const Mesh& mesh, const MeshPart& part) {
  int64_t divisor = mesh.axes[part.axis].size / part.end();
  for (size_t i = part.axis + 1; i < mesh.axes.size(); ++i) divisor *= mesh.axes[i].size;
  return divisor;
}

int64_t digit_of(const Mesh& mesh, const MeshPart& part, int64_t device) {
  return device / divisor_of(mesh, part) % part.size;
}

ValueId MeshProgram::append(Op op, std::span<const ValueId> operands) {
  const Result<NodeId> made = graph_.append(op, operands);
  HONE_CHECK(made.ok(), "an exchange does not fit: {}", made.error().to_string());
  return graph_.result(*made);
}

ValueId MeshProgram::integer(int64_t number) {
  return graph_.add_constant(Tensor::from_integers(Type::scalar(DType::i64), {&number, 1}));
}

ValueId MeshProgram::binary(Opcode opcode, ValueId a, int64_t b) {
  const ValueId operands[] = {a, integer(b)};
  return append(Op::get(opcode), operands);
}

ValueId MeshProgram::digit(const MeshPart& part) {
  if (!device_) device_ = append(Op::get(Opcode::device_index), {});
  return binary(Opcode::rem, binary(Opcode::div, *device_, divisor_of(mesh_, part)), part.size);
}

ValueId MeshProgram::place(const MeshParts& parts) {
  ValueId at = digit(parts[0]);
  for (const MeshPart& part : std::span(parts).subspan(1)) {
    const ValueId operands[] = {binary(Opcode::mul, at, part.size), digit(part)};
    at = append(Op::get(Opcode::add), operands);
  }
  return at;
}

ValueId MeshProgram::cast(ValueId value, DType dtype) {
  if (graph_.type(value).dtype() == dtype) return value;
  return append(Op::get(Opcode::cast, {{"dtype", dtype}}), {{value}});
}

ValueId MeshProgram::number(DType dtype, std::variant<int64_t, double> value) {
  const Type type = Type::scalar(dtype);
  if (const auto* integer = std::get_if<int64_t>(&value))
    return graph_.add_constant(is_real(dtype) ? Tensor::scalar(dtype, static_cast<double>(*integer))
                                              : Tensor::from_integers(type, {integer, 1}));
  return graph_.add_constant(Tensor::scalar(dtype, std::get<double>(value)));
}

ValueId MeshProgram::neutral(std::string_view kind, DType dtype) {
  if (kind == "sum" && is_real(dtype)) return number(dtype, -0.0);
  return number(dtype, identity_of(combine_of(kind), dtype));
}

Ints groups_along(const Mesh& mesh, const MeshParts& parts) {
  int64_t count = 1;
  for (const MeshPart& part : parts) count *= part.size;
  std::map<int64_t, Ints> groups;  // by the device at place 0
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    int64_t first = device, at = 0;
    for (const MeshPart& part : parts) {
      const int64_t own = digit_of(mesh, part, device);
      first -= own * divisor_of(mesh, part);
      at = at * part.size + own;
    }
    Ints& group = groups[first];
    group.resize(static_cast<size_t>(count));
    group[static_cast<size_t>(at)] = device;
  }
  Ints ids;
  for (const auto& [first, group] : groups) ids.insert(ids.end(), group.begin(), group.end());
  return ids;
}

// ---- Parts that are not alike -------------------------------------------------------------------

ValueId MeshProgram::stretch(ValueId value, size_t dim, ValueId begin, int64_t size) {
  const Type type = graph_.type(value);
  Dims sizes(type.dims().begin(), type.dims().end());
  sizes[dim] = size;
  std::vector<ValueId> operands = {value};
  for (size_t d = 0; d < sizes.size(); ++d) operands.push_back(d == dim ? begin : integer(0));
  return append(Op::get(Opcode::dynamic_slice, {{"sizes", sizes}}), operands);
}

ValueId MeshProgram::stretch(ValueId value, size_t dim, int64_t begin, int64_t end) {
  const Type type = graph_.type(value);
  Dims starts(static_cast<size_t>(type.rank()), 0), limits(type.dims().begin(), type.dims().end());
  if (begin == 0 && limits[dim].is(end)) return value;
  starts[dim] = begin;
  limits[dim] = end;
  const ValueId operand[] = {value};
  return append(Op::get(Opcode::slice, {{"start", starts}, {"limit", limits}}), operand);
}

ValueId MeshProgram::resized(ValueId value, size_t dim, int64_t size) {
  const Type type = graph_.type(value);
  const int64_t have = type.dim(static_cast<int>(dim)).value();
  if (have >= size) return stretch(value, dim, 0, size);
  Dims low(static_cast<size_t>(type.rank()), 0), high = low;
  high[dim] = size - have;
  const ValueId operands[] = {value, number(type.dtype(), int64_t{0})};
  return append(Op::get(Opcode::pad, {{"low", low}, {"high", high}}), operands);
}

ValueId MeshProgram::counted(int64_t count) {
  return append(
      Op::get(Opcode::iota, {{"dtype", DType::i64}, {"dims", Dims{count}}, {"axis", int64_t{0}}}),
      {});
}

ValueId MeshProgram::spread(ValueId value, const Dims& dims, const Ints& map) {
  if (map.size() == dims.size()) return value;
  return append(Op::get(Opcode::broadcast, {{"dims", dims}, {"map", map}}), {{value}});
}

// The elements whose place in the whole dim, `first` and their own, is below 0 or not below `size`
// become `fill`.
ValueId MeshProgram::filled(ValueId value, size_t dim, ValueId first, bool at_low,
                            std::optional<int64_t> size, ValueId fill) {
  const Type type = graph_.type(value);
  const Dims along = {type.dim(static_cast<int>(dim))};
  const ValueId sum[] = {counted(along[0].value()), spread(first, along, {})};
  const ValueId places = append(Op::get(Opcode::add), sum);
  const auto holds = [&](std::string_view direction, int64_t limit) {
    const ValueId operands[] = {places, spread(integer(limit), along, {})};
    return append(Op::get(Opcode::compare, {{"direction", std::string(direction)}}), operands);
  };
  std::optional<ValueId> has;
  if (at_low) has = holds("ge", 0);
  if (size) {
    const ValueId below = holds("lt", *size);
    const ValueId both[] = {has.value_or(below), below};
    has = has ? append(Op::get(Opcode::and_), both) : below;
  }
  if (!has) return value;
  const Dims dims(type.dims().begin(), type.dims().end());
  const ValueId operands[] = {spread(*has, dims, {static_cast<int64_t>(dim)}), value,
                              spread(fill, dims, {})};
  return append(Op::get(Opcode::select), operands);
}

ValueId MeshProgram::without_padding(ValueId value, size_t dim, const MeshParts& axes, int64_t size,
                                     ValueId fill) {
  const int64_t part = graph_.type(value).dim(static_cast<int>(dim)).value();
  return filled(value, dim, binary(Opcode::mul, place(axes), part), false, size, fill);
}

ValueId MeshProgram::on_first(ValueId value, const MeshParts& axes, ValueId fill) {
  const Type type = graph_.type(value);
  const Dims dims(type.dims().begin(), type.dims().end());
  const ValueId is_first = append(Op::get(Opcode::compare, {{"direction", std::string("eq")}}),
                                  {{place(axes), integer(0)}});
  return append(Op::get(Opcode::select),
                {{spread(is_first, dims, {}), value, spread(fill, dims, {})}});
}

// Elements go one to a byte if as many as a device gets do not fill bytes.
ValueId MeshProgram::exchanged(const Op& op, ValueId value, int64_t parts) {
  const Type type = graph_.type(value);
  if (fills_bytes(type, parts)) return append(op, {{value}});
  const auto cast = [&](ValueId v, DType dtype) {
    return append(Op::get(Opcode::cast, {{"dtype", dtype}}), {{v}});
  };
  return cast(append(op, {{cast(value, byte_type(type.dtype()))}}), type.dtype());
}

ValueId MeshProgram::sent(ValueId value, const MeshParts& axes, const Ints& pairs) {
  return exchanged(Op::get(Opcode::permute, {{"pairs", pairs},
                                             {"group_size", count_of(axes)},
                                             {"groups", groups_along(mesh_, axes)}}),
                   value, 1);
}

// To the device `hop` places further along the axes; those that nobody sends to get zeros.
ValueId MeshProgram::sent(ValueId value, const MeshParts& axes, int64_t hop) {
  const int64_t count = count_of(axes);
  Ints pairs;
  for (int64_t from = 0; from < count; ++from)
    if (from + hop >= 0 && from + hop < count) pairs.insert(pairs.end(), {from, from + hop});
  return sent(value, axes, pairs);
}

// The elements of all devices along the dim in the opposite order, padding first.
ValueId MeshProgram::mirrored(ValueId value, size_t dim, const MeshParts& axes) {
  const ValueId own =
      append(Op::get(Opcode::reverse, {{"axes", Ints{static_cast<int64_t>(dim)}}}), {{value}});
  return sent(own, axes, mirrored_pairs(count_of(axes)));
}

ValueId MeshProgram::with_neighbours(ValueId value, const Halo& halo, std::optional<ValueId> fill) {
  const auto dim = static_cast<size_t>(halo.window.operand_dim);
  if (halo.window.is_mirrored) value = mirrored(value, dim, halo.axes);
  std::vector<ValueId> parts;
  for (const HaloPiece& one : halo.pieces()) {
    const ValueId own = stretch(value, dim, one.begin, one.end);
    parts.push_back(one.hop == 0 ? own : sent(own, halo.axes, one.hop));
  }
  ValueId all = parts[0];
  if (parts.size() > 1)
    all = append(Op::get(Opcode::concat, {{"axis", static_cast<int64_t>(dim)}}), parts);
  const ValueId at = place(halo.axes);
  if (halo.step() != 0) {
    const ValueId begin = binary(Opcode::add, binary(Opcode::mul, at, halo.step()), halo.first());
    all = stretch(all, dim, begin, halo.length());
  }
  if (!fill || !(halo.passes_low() || halo.passes_high())) return all;
  const ValueId first = binary(
      Opcode::sub, binary(Opcode::mul, at, halo.results * halo.window.stride), halo.window.low);
  return filled(all, dim, first, halo.passes_low(),
                halo.passes_high() ? std::optional(halo.size) : std::nullopt, *fill);
}

// ---- Ops that need to know the place of the device ----------------------------------------------

ValueId MeshProgram::with_earlier(ValueId running, ValueId operand, size_t dim,
                                  const MeshParts& axes, Op op) {
  const std::string& kind = op.word("kind");
  const Type type = graph_.type(operand);
  const Dims dims(type.dims().begin(), type.dims().end());
  const int64_t count = count_of(axes);
  const auto along = static_cast<int64_t>(dim);
  const Op combined = Op::get(Opcode::reduce, {{"kind", kind}, {"axes", Ints{along}}});
  Dims one = dims, each = dims;
  one[dim] = 1, each[dim] = count;
  const ValueId total =
      append(Op::get(Opcode::reshape, {{"dims", one}}), {{append(combined, {{operand}})}});
  const ValueId totals = exchanged(
      Op::get(Opcode::all_gather,
              {{"axis", along}, {"group_size", count}, {"groups", groups_along(mesh_, axes)}}),
      total, 1);
  const std::string direction = op.flag("reverse") ? "gt" : "lt";
  const ValueId is_before = append(Op::get(Opcode::compare, {{"direction", direction}}),
                                   {{counted(count), spread(place(axes), {count}, {})}});
  const ValueId nothing = number(type.dtype(), identity_of(combine_of(kind), type.dtype()));
  const ValueId before =
      append(Op::get(Opcode::select),
             {{spread(is_before, each, {along}), totals, spread(nothing, each, {})}});
  Ints others;
  for (int64_t d = 0; d < type.rank(); ++d)
    if (d != along) others.push_back(d);
  const ValueId prefix = spread(append(combined, {{before}}), dims, others);
  return append(Op::get(combine_of(kind)), {{prefix, running}});
}

ValueId MeshProgram::joined(std::span<const ValueId> parts, size_t dim,
                            std::span<const Stretch> stretches) {
  const MeshParts& axes = stretches[0].axes;
  const int64_t results = stretches[0].results;
  const auto along = static_cast<int64_t>(dim);
  const ValueId first = binary(Opcode::mul, place(axes), results);
  const ValueId places =
      append(Op::get(Opcode::add), {{counted(results), spread(first, {results}, {})}});
  std::optional<ValueId> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Stretch& one = stretches[i];
    std::vector<ValueId> slots;
    for (int64_t slot = 0; slot < one.slots(); ++slot) {
      const Ints pairs = one.pairs(slot);  // none: nobody needs what stands there
      slots.push_back(pairs.empty() ? parts[i] : sent(parts[i], axes, pairs));
    }
    ValueId have = slots[0];
    if (slots.size() > 1) have = append(Op::get(Opcode::concat, {{"axis", along}}), slots);
    // The elements before the first one are those of the part that it stands in.
    const int64_t shift = ceil_div(one.offset, one.part) * one.part - one.offset;
    const ValueId begin = binary(Opcode::rem, binary(Opcode::add, first, shift), one.part);
    have = stretch(have, dim, begin, results);
    if (!all) {
      all = have;
      continue;
    }
    const Type type = graph_.type(have);
    const Dims dims(type.dims().begin(), type.dims().end());
    const ValueId is_behind = append(Op::get(Opcode::compare, {{"direction", std::string("ge")}}),
                                     {{places, spread(integer(one.offset), {results}, {})}});
    all = append(Op::get(Opcode::select), {{spread(is_behind, dims, {along}), have, *all}});
  }
  return *all;
}

ValueId MeshProgram::generated(Op local, std::span<const ValueId> operands,
                               const ShardLayout& layout) {
  const Dims& dims = local.dims("dims");
  size_t dim = 0;
  if (operands.empty())
    dim = static_cast<size_t>(local.integer("axis"));
  else
    while (dim < dims.size() && layout.dims[dim].empty()) ++dim;
  if (dim == dims.size() || layout.dims[dim].empty()) return append(local, operands);
  const ValueId first = binary(Opcode::mul, place(layout.dims[dim]), dims[dim].value());
  const auto cast = [&](ValueId v, DType dtype) {
    return append(Op::get(Opcode::cast, {{"dtype", dtype}}), {{v}});
  };
  if (operands.empty()) {
    const ValueId own =
        append(Op::get(Opcode::iota,
                       {{"dtype", DType::i64}, {"dims", dims}, {"axis", local.integer("axis")}}),
               {});
    const ValueId sum = append(Op::get(Opcode::add), {{own, spread(first, dims, {})}});
    return local.dtype("dtype") == DType::i64 ? sum : cast(sum, local.dtype("dtype"));
  }
  // Two elements of each block of bits, in row-major order.
  int64_t row = 1;
  for (size_t d = dim + 1; d < dims.size(); ++d) row *= dims[d].value();
  const ValueId blocks = cast(binary(Opcode::div, binary(Opcode::mul, first, row), 2), DType::u64);
  const ValueId counter = append(Op::get(Opcode::add), {{operands[1], blocks}});
  return append(local, {{operands[0], counter}});
}

// ---- Ways between layouts -----------------------------------------------------------------------

namespace {

// Each device gets the part that it wants from one that has it: from itself, if it can.
Ints pairs_between(const Mesh& mesh, const ReshardStep& step) {
  const auto part_of = [&](const std::vector<MeshParts>& dims, int64_t device) {
    int64_t number = 0;
    for (const MeshParts& parts : dims)
      for (const MeshPart& part : parts) number = number * part.size + digit_of(mesh, part, device);
    return number;
  };
  Ints pairs;
  std::map<int64_t, Ints> have;  // devices, by the part
  std::vector<std::pair<int64_t, int64_t>> want;
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    const int64_t has = part_of(step.have, device), wanted = part_of(step.want, device);
    if (has == wanted) {
      pairs.insert(pairs.end(), {device, device});
      continue;
    }
    have[has].push_back(device);
    want.emplace_back(device, wanted);
  }
  for (const auto& [device, wanted] : want) {
    Ints& from = have[wanted];
    pairs.insert(pairs.end(), {from.back(), device});
    from.pop_back();
  }
  return pairs;
}

}  // namespace

ValueId MeshProgram::changed(ValueId value, const ReshardStep& step, std::string_view kind) {
  if (step.kind == ReshardKind::resize) return resized(value, step.to, step.size);
  const auto from = static_cast<int64_t>(step.from), to = static_cast<int64_t>(step.to);
  const int64_t size = step.part.size;
  const Ints groups = step.kind == ReshardKind::permute ? Ints() : groups_along(mesh_, {step.part});
  switch (step.kind) {
    case ReshardKind::slice: {
      const int64_t local = graph_.type(value).dim(static_cast<int>(step.to)).value() / size;
      return stretch(value, step.to, binary(Opcode::mul, digit(step.part), local), local);
    }
    case ReshardKind::all_gather:
      return exchanged(
          Op::get(Opcode::all_gather, {{"axis", from}, {"group_size", size}, {"groups", groups}}),
          value, 1);
    case ReshardKind::all_to_all:
      return exchanged(Op::get(Opcode::all_to_all, {{"split_axis", to},
                                                    {"concat_axis", from},
                                                    {"group_size", size},
                                                    {"groups", groups}}),
                       value, size);
    case ReshardKind::reduce_scatter:
      return exchanged(Op::get(Opcode::reduce_scatter, {{"kind", std::string(kind)},
                                                        {"axis", to},
                                                        {"group_size", size},
                                                        {"groups", groups}}),
                       value, size);
    case ReshardKind::all_reduce:
      return exchanged(
          Op::get(Opcode::all_reduce,
                  {{"kind", std::string(kind)}, {"group_size", size}, {"groups", groups}}),
          value, 1);
    case ReshardKind::resize:
    case ReshardKind::permute: break;
  }
  return exchanged(Op::get(Opcode::permute, {{"pairs", pairs_between(mesh_, step)}}), value, 1);
}

int64_t first_element(const Mesh& mesh, const MeshParts& axes, int64_t size, int64_t device) {
  int64_t place = 0;
  for (const MeshPart& part : axes) place = place * part.size + digit_of(mesh, part, device);
  return place * ceil_div(size, count_of(axes));
}

MeshExchange exchange_of(const Mesh& mesh, const ReshardStep& step, int64_t element_bytes) {
  MeshExchange made = {
      .kind = step.kind, .axes = {}, .bytes = step.bytes, .element_bytes = element_bytes};
  if (step.kind == ReshardKind::permute)
    made.pairs = pairs_between(mesh, step);
  else
    made.axes = {step.part};
  return made;
}

}  // namespace hone
