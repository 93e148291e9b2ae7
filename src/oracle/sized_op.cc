#include "oracle/sized_op.h"

#include <algorithm>

namespace hone {

namespace {

// How the dims of a node change, as its attributes see it.
class SizedAttrs {
 public:
  SizedAttrs(Op op, const NodeTypes& before, const NodeTypes& behind, int64_t steps)
      : op_(op), before_(before), behind_(behind), steps_(steps) {}

  Op op(int64_t groups_divisor) const {
    const OpDef& def = op_.def();
    Attrs attrs;
    for (size_t a = 0; a < def.attrs.size(); ++a) {
      const std::string_view name = def.attrs[a].name;
      AttrValue value = op_.attrs()[a];
      if (Dims* dims = std::get_if<Dims>(&value))
        *dims = sized(name, *dims);
      else if (name == "window")
        windows(std::get<Ints>(value));
      else if (int64_t* groups = name == "groups" ? std::get_if<int64_t>(&value) : nullptr)
        *groups /= groups_divisor;
      attrs.emplace_back(name, std::move(value));
    }
    return Op::get(op_.opcode(), std::move(attrs));
  }

 private:
  static std::span<const Dim> dims_of(const std::vector<Type>& types) {
    return types.empty() || !types[0] ? std::span<const Dim>() : types[0].dims();
  }

  Dims sized(std::string_view name, const Dims& dims) const {
    const std::span<const Dim> from = dims_of(before_.operands), to = dims_of(behind_.operands);
    const std::span<const Dim> result = dims_of(behind_.results);
    if (name == "length" && dims.size() == 1) return {steps_};
    if (std::ranges::equal(dims, dims_of(before_.results))) return {result.begin(), result.end()};
    if (dims.size() != from.size()) return dims;
    if (name == "low" || name == "high") return padding(name == "low");
    if (name == "start" || name == "limit") return part(name == "start");
    Dims sizes = dims;  // of windows
    for (size_t i = 0; i < dims.size(); ++i) sizes[i] = scaled(dims[i], from[i], to[i]);
    return sizes;
  }

  static int64_t divisor(Dim from, Dim to) { return to.is(0) ? 1 : from.value() / to.value(); }

  // As much smaller as the dim is; an element stays one.
  static int64_t scaled(Dim size, Dim from, Dim to) {
    return size.is(0) ? 0 : std::max<int64_t>(1, size.value() / divisor(from, to));
  }

  int64_t interior(size_t i) const {
    const Ints& each = op_.ints("interior");
    return each.empty() ? 0 : each[i];
  }

  // The result has its size then. Both ends have their shares as before.
  Dims padding(bool low) const {
    const std::span<const Dim> from = dims_of(before_.operands), to = dims_of(behind_.operands);
    Dims sizes;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t size = to[i].value();
      const int64_t total =
          dims_of(behind_.results)[i].value() - size - std::max<int64_t>(0, size - 1) * interior(i);
      const int64_t was_low = op_.dims("low")[i].value(), was_high = op_.dims("high")[i].value();
      const int64_t low_part = was_high == 0  ? total
                               : was_low == 0 ? 0
                                              : was_low / divisor(from[i], to[i]);
      sizes.emplace_back(low ? low_part : total - low_part);
    }
    return sizes;
  }

  // As many elements as the result has, from as far on.
  Dims part(bool start) const {
    const std::span<const Dim> from = dims_of(before_.operands), to = dims_of(behind_.operands);
    const Ints& stride = op_.ints("stride");
    Dims places;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t count = dims_of(behind_.results)[i].value();
      const int64_t step = stride.empty() ? 1 : stride[i];
      const int64_t begin = op_.dims("start")[i].value();
      const int64_t span = scaled(op_.dims("limit")[i].value() - begin, from[i], to[i]);
      const int64_t least = count == 0 ? 0 : (count - 1) * step + 1;
      const int64_t taken = std::clamp(span, least, std::max(least, count * step));
      const int64_t first = std::clamp<int64_t>(begin / divisor(from[i], to[i]), 0,
                                                std::max<int64_t>(0, to[i].value() - taken));
      places.emplace_back(start ? first : first + taken);
    }
    return places;
  }

  // A window over all of a dim covers all of it again.
  void windows(Ints& window) const {
    const std::span<const Dim> from = dims_of(before_.operands), to = dims_of(behind_.operands);
    for (size_t i = 0; i < window.size() && i < from.size(); ++i)
      if (from[i].is(window[i]) && dims_of(behind_.results)[i].is(1)) window[i] = to[i].value();
  }

  const Op op_;
  const NodeTypes& before_;
  const NodeTypes& behind_;
  const int64_t steps_;
};

}  // namespace

std::optional<Op> sized_op(Op op, const NodeTypes& before, const NodeTypes& behind,
                           std::span<const Graph* const> regions, int64_t steps) {
  const SizedAttrs attrs(op, before, behind, steps);
  std::vector<int64_t> divisors = {1};  // of groups: those of any dim
  for (const AttrSpec& attr : op.def().attrs) {
    if (attr.name != "groups" || attr.kind != AttrKind::integer) continue;  // not of devices
    for (size_t i = 0; i < before.operands.size(); ++i)
      for (int d = 0; before.operands[i] && d < before.operands[i].rank(); ++d) {
        const int64_t now = behind.operands[i].dim(d).value();
        const int64_t divisor = now == 0 ? 1 : before.operands[i].dim(d).value() / now;
        if (op.integer("groups") % divisor == 0 && !std::ranges::count(divisors, divisor))
          divisors.push_back(divisor);
      }
  }
  for (int64_t divisor : divisors) {
    const Op sized = attrs.op(divisor);
    const Result<std::vector<Type>> results = infer({sized, behind.operands, regions});
    if (results.ok() && *results == behind.results) return sized;
  }
  return std::nullopt;
}

}  // namespace hone
