#include "shard/index_range.h"

#include <algorithm>
#include <optional>

#include "ir/ops/indexed_dims.h"
#include "shard/local_op.h"

namespace hone {
namespace {

size_t at_dim(int64_t d) { return static_cast<size_t>(d); }

// Numbers beyond this are out of the range of any dim, also when the start of a device is taken
// off.
constexpr int64_t kFar = int64_t{1} << 62;

bool has_index_map(Op op) { return has_attr(op, "index_map"); }

IndexedDims gather_dims(Op op, Type x, Type indices) {
  return {op, op.ints("offset_dims"), op.ints("collapsed_dims"), x, indices};
}

class ByRange {
 public:
  ByRange(MeshProgram& program, Op op, const std::vector<ValueId>& operands,
          const std::vector<IndexRange>& ranges)
      : program_(program), op_(op), operands_(operands), ranges_(ranges) {}

  ValueId gathered() {
    const IndexedDims dims = gather_dims(op_, type(0), type(1));
    const ValueId own = own_indices(true);
    const ValueId read = program_.append(op_, {{with_margins(), behind_margins(own)}});
    if (std::ranges::all_of(ranges_, is_wide)) return read;
    const Dims all = dims_of(read);
    const Ints map(dims.batch_dims.begin(), dims.batch_dims.end());
    const ValueId is_own = program_.spread(are_own(own), all, map);
    return program_.append(Op::get(Opcode::select),
                           {{is_own, read, program_.spread(ignored(), all, {})}});
  }

  // Where a window is longer than the part, what falls behind the part is dropped afterwards.
  ValueId scattered() {
    ValueId made = operands_[0];
    for (const IndexRange& range : ranges_)
      made = program_.resized(made, at_dim(range.of.dim), std::max(range.part, range.of.window));
    made = program_.append(op_, {{made, own_indices(false), operands_[2]}});
    for (const IndexRange& range : ranges_)
      made = program_.resized(made, at_dim(range.of.dim), range.part);
    return made;
  }

  // A window of what the device has, moved to where it stands in the result.
  ValueId sliced() {
    const std::vector<Place> places = placed(1);
    const Dims& sizes = op_.dims("sizes");
    Dims around(sizes.size(), 0);
    for (const Place& one : places) around[at_dim(one.dim)] = one.window;
    std::vector<ValueId> operands = {
        program_.append(Op::get(Opcode::pad, {{"low", around}, {"high", around}}),
                        {{own_window(places, sizes, 1), ignored()}})};
    for (size_t d = 0; d < sizes.size(); ++d) operands.push_back(program_.integer(0));
    for (const Place& one : places)
      operands[1 + at_dim(one.dim)] =
          within(added(minus(one.begin, one.own), one.window), 0, one.window + one.length);
    return program_.append(Op::get(Opcode::dynamic_slice, {{"sizes", sizes}}), operands);
  }

  // The elements of the update that fall into the part, among those that stand there.
  ValueId updated() {
    const std::vector<Place> places = placed(2);
    const Type update = type(1);
    Dims sizes(update.dims().begin(), update.dims().end());
    const ValueId have = own_window(places, sizes, 2);
    Dims around(sizes.size(), 0);
    for (const Place& one : places) around[at_dim(one.dim)] = one.length;
    std::vector<ValueId> moved = {program_.append(
        Op::get(Opcode::pad, {{"low", around}, {"high", around}}), {{operands_[1], ignored()}})};
    for (size_t d = 0; d < sizes.size(); ++d) moved.push_back(program_.integer(0));
    std::optional<ValueId> is_new;
    for (const Place& one : places) {
      sizes[at_dim(one.dim)] = one.length;
      const ValueId ahead = minus(one.own, one.begin);
      moved[1 + at_dim(one.dim)] = within(added(ahead, one.length), 0, one.window + one.length);
    }
    for (const Place& one : places) {
      const ValueId in = program_.spread(
          is_within(minus(one.own, one.begin), one.length, one.window), sizes, {one.dim});
      is_new = is_new ? program_.append(Op::get(Opcode::and_), {{*is_new, in}}) : in;
    }
    const ValueId update_part =
        program_.append(Op::get(Opcode::dynamic_slice, {{"sizes", sizes}}), moved);
    const ValueId made = program_.append(Op::get(Opcode::select), {{*is_new, update_part, have}});
    std::vector<ValueId> operands = {operands_[0], made};
    for (size_t d = 0; d < sizes.size(); ++d) operands.push_back(operands_[2 + d]);
    for (const Place& one : places) operands[2 + at_dim(one.dim)] = one.own;
    return program_.append(op_, operands);
  }

 private:
  // A window along a dim of which the device has a part.
  struct Place {
    int dim = 0;
    int64_t window = 1;
    int64_t length = 1;  // of a window within the part
    ValueId begin;       // of the window, from the first element that the device has
    ValueId own;         // the nearest one that lies in the part
  };

  Type type(size_t operand) const { return program_.type(operands_[operand]); }
  Dims dims_of(ValueId v) const {
    const Type type = program_.type(v);
    return {type.dims().begin(), type.dims().end()};
  }

  ValueId ignored() { return program_.neutral("sum", type(0).dtype()); }

  ValueId first_of(const IndexRange& range) {
    return program_.binary(Opcode::mul, program_.place(range.axes), range.part);
  }
  ValueId minus(ValueId a, ValueId b) { return program_.append(Op::get(Opcode::sub), {{a, b}}); }
  ValueId added(ValueId a, int64_t b) { return program_.binary(Opcode::add, a, b); }
  ValueId within(ValueId v, int64_t least, int64_t most) {
    return program_.binary(Opcode::min, program_.binary(Opcode::max, v, least), most);
  }

  // Numbers of any integer type that are out of reach stay so.
  ValueId as_i64(ValueId v) {
    const Type type = program_.type(v);
    const Dims dims(type.dims().begin(), type.dims().end());
    const auto bounded = [&](Opcode by, int64_t bound) {
      const ValueId limit =
          program_.spread(program_.number(program_.type(v).dtype(), bound), dims, {});
      v = program_.append(Op::get(by), {{v, limit}});
    };
    if (type.dtype() == DType::u64) bounded(Opcode::min, kFar);
    if (type.dtype() != DType::i64)
      v = program_.append(Op::get(Opcode::cast, {{"dtype", DType::i64}}), {{v}});
    bounded(Opcode::min, kFar);
    bounded(Opcode::max, -kFar);
    return v;
  }

  // ---- Lists of indices ----

  // A number for each component of an index, as a tensor of the indices' dims.
  ValueId of_components(const std::vector<int64_t>& numbers, std::optional<ValueId> times = {}) {
    const Dims dims = dims_of(operands_[1]);
    const int64_t vector_dim = op_.integer("index_vector_dim");
    const bool is_alone = vector_dim == std::ssize(dims);  // one number
    Dims own;
    if (!is_alone) own.emplace_back(std::ssize(numbers));
    ValueId v = program_.constant(Tensor::from_integers(*Type::make(DType::i64, own), numbers));
    if (times) v = program_.append(Op::get(Opcode::mul), {{v, program_.spread(*times, own, {})}});
    return program_.spread(v, dims, is_alone ? Ints{} : Ints{vector_dim});
  }

  // The number is that of the range along which a component counts, or the other one.
  template <class Number>
  std::vector<int64_t> by_component(int64_t other, const Number& number) const {
    std::vector<int64_t> numbers;
    for (const int64_t dim : op_.ints("index_map")) {
      const auto range =
          std::ranges::find(ranges_, dim, [](const IndexRange& r) { return r.of.dim; });
      numbers.push_back(range == ranges_.end() ? other : number(*range));
    }
    return numbers;
  }

  // Counted from the first element that the device has. Clamped ones are those of the whole dim.
  ValueId own_indices(bool is_clamped) {
    ValueId v = as_i64(operands_[1]);
    if (is_clamped) {
      v = program_.append(Op::get(Opcode::max),
                          {{v, of_components(by_component(-kFar, [](auto&) { return 0; }))}});
      const auto last = [](const IndexRange& r) { return r.of.size - r.of.window; };
      v = program_.append(Op::get(Opcode::min), {{v, of_components(by_component(kFar, last))}});
    }
    for (const IndexRange& range : ranges_) {
      const auto is_it = [&](const IndexRange& r) { return r.of.dim == range.of.dim ? 1 : 0; };
      v = minus(v, of_components(by_component(0, is_it), first_of(range)));
    }
    return v;
  }

  // A window of several elements may lie in part on this device, or on none: around the part, sums
  // ignore what it reads.
  static bool is_wide(const IndexRange& range) { return range.of.window > 1; }

  ValueId with_margins() {
    Dims around(at_dim(type(0).rank()), 0);
    for (const IndexRange& range : ranges_)
      if (is_wide(range)) around[at_dim(range.of.dim)] = range.of.window;
    if (std::ranges::none_of(ranges_, is_wide)) return operands_[0];
    return program_.append(Op::get(Opcode::pad, {{"low", around}, {"high", around}}),
                           {{operands_[0], ignored()}});
  }

  ValueId behind_margins(ValueId own) {
    if (std::ranges::none_of(ranges_, is_wide)) return own;
    const auto margin = [](const IndexRange& r) { return is_wide(r) ? r.of.window : 0; };
    return program_.append(Op::get(Opcode::add), {{own, of_components(by_component(0, margin))}});
  }

  // For each index, true if the device has what it names. Wide windows need not ask.
  ValueId are_own(ValueId own) {
    const auto holds = [&](std::string_view direction, const std::vector<int64_t>& numbers) {
      return program_.append(Op::get(Opcode::compare, {{"direction", std::string(direction)}}),
                             {{own, of_components(numbers)}});
    };
    const ValueId reached =
        holds("ge", by_component(-kFar, [](auto& r) { return is_wide(r) ? -kFar : 0; }));
    const ValueId below =
        holds("lt", by_component(INT64_MAX, [](auto& r) { return is_wide(r) ? kFar : r.part; }));
    const ValueId both = program_.append(Op::get(Opcode::and_), {{reached, below}});
    const int64_t vector_dim = op_.integer("index_vector_dim");
    if (vector_dim == program_.type(both).rank()) return both;
    return program_.append(
        Op::get(Opcode::reduce, {{"kind", std::string("and")}, {"axes", Ints{vector_dim}}}),
        {{both}});
  }

  // ---- One window ----

  // `starts`: the operand that is the start along dim 0.
  std::vector<Place> placed(size_t starts) {
    std::vector<Place> places;
    for (const IndexRange& range : ranges_) {
      const int64_t window = range.of.window, length = std::min(window, range.part);
      const ValueId start = as_i64(operands_[starts + at_dim(range.of.dim)]);
      const ValueId begin = minus(within(start, 0, range.of.size - window), first_of(range));
      places.push_back({.dim = range.of.dim,
                        .window = window,
                        .length = length,
                        .begin = begin,
                        .own = within(begin, 0, range.part - length)});
    }
    return places;
  }

  ValueId own_window(const std::vector<Place>& places, Dims sizes, size_t starts) {
    std::vector<ValueId> operands = {operands_[0]};
    for (size_t d = 0; d < sizes.size(); ++d) operands.push_back(operands_[starts + d]);
    for (const Place& one : places) {
      operands[1 + at_dim(one.dim)] = one.own;
      sizes[at_dim(one.dim)] = one.length;
    }
    return program_.append(Op::get(Opcode::dynamic_slice, {{"sizes", sizes}}), operands);
  }

  // first + i of `count` numbers i lies within [0, size)
  ValueId is_within(ValueId first, int64_t count, int64_t size) {
    const Dims along = {count};
    const ValueId places = program_.append(
        Op::get(Opcode::add), {{program_.counted(count), program_.spread(first, along, {})}});
    const auto holds = [&](std::string_view direction, int64_t limit) {
      return program_.append(Op::get(Opcode::compare, {{"direction", std::string(direction)}}),
                             {{places, program_.spread(program_.integer(limit), along, {})}});
    };
    return program_.append(Op::get(Opcode::and_), {{holds("ge", 0), holds("lt", size)}});
  }

  MeshProgram& program_;
  const Op op_;
  const std::vector<ValueId>& operands_;
  const std::vector<IndexRange>& ranges_;
};

}  // namespace

bool writes_by_index(Op op) {
  return op.def().traits.updates != 0 &&
         (class_of(op.opcode()) == OpClass::indexed || has_index_map(op));
}

bool reads_by_index(Op op) {
  return class_of(op.opcode()) == OpClass::indexed && !writes_by_index(op);
}

std::string_view written_kind(Op op) {
  if (!writes_by_index(op) || !has_index_map(op)) return "";
  const std::string& combine = op.word("combine");
  for (const std::string_view kind : {"sum", "max", "min"})
    if (combine == name(combine_of(kind))) return kind;
  return "";
}

std::vector<AddressedDim> addressed_dims(const Application& application) {
  const Op op = application.op;
  if (!reads_by_index(op) && !writes_by_index(op)) return {};
  const Type x = application.operand(0);
  std::vector<AddressedDim> found;
  if (has_index_map(op)) {
    for (const int64_t d : op.ints("index_map")) {
      const int dim = static_cast<int>(d);
      int64_t window = 1;
      if (reads_by_index(op)) {
        window = op.dims("sizes")[at_dim(d)].value();
      } else {
        const IndexedDims dims(op, op.ints("window_dims"), op.ints("inserted_dims"), x,
                               application.operand(1));
        window = dims.window_size(dim, application.operand(2)).value();
      }
      if (x.dim(dim).value() > 1 && window > 0) found.push_back({dim, x.dim(dim).value(), window});
    }
    return found;
  }
  for (int dim = 0; dim < x.rank(); ++dim) {
    const int64_t size = x.dim(dim).value();
    const int64_t window = reads_by_index(op) ? op.dims("sizes")[at_dim(dim)].value()
                                              : application.operand(1).dim(dim).value();
    if (window != size && window > 0) found.push_back({dim, size, window});
  }
  return found;
}

ValueId computed_by_range(MeshProgram& program, Op op, const std::vector<ValueId>& operands,
                          const std::vector<IndexRange>& ranges) {
  ByRange made(program, op, operands, ranges);
  if (has_index_map(op)) return reads_by_index(op) ? made.gathered() : made.scattered();
  return reads_by_index(op) ? made.sliced() : made.updated();
}

}  // namespace hone
