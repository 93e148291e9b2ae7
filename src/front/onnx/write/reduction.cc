#include <algorithm>
#include <bit>
#include <limits>

#include "front/onnx/write/packed_product.h"
#include "front/onnx/write/registry.h"
#include "ir/functional.h"
#include "tensor/counting.h"

// Writes ops that reduce, along whole axes or in windows, and what is counted in bits.

namespace hone::onnx_io {
namespace {

// A number type that ONNX reduces and that holds the same sums: those of narrow integers wrap when
// they are cast back.
DType reduced_type(DType dtype) {
  if (is_bool(dtype)) return DType::i32;
  return is_integer(dtype) && bits(dtype) < 32 ? DType::i32 : dtype;
}

// Reductions that take their axes as an operand do so since different versions.
std::string reduced(Emit& e, const std::string& x, const std::string& op, const Ints& axes) {
  const int operand_since = op == "ReduceSum" ? 13 : 18;
  const Attribute keep = {"keepdims", int64_t{0}};
  if (e.opset() >= operand_since) return e.node(op, {x, e.ints(axes)}, {keep});
  return e.node(op, {x}, {{"axes", axes}, keep});
}

// Integers bit by bit: a scan over the reduced elements.
bool reduce_bits(Emit& e, Opcode combine, const Ints& axes) {
  return e.spelled([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    Ints permutation = axes;
    Dims dims;
    Dim count = 1;
    for (int64_t axis : axes) count *= v[0].dim(static_cast<int>(axis));
    dims.push_back(count);
    for (int i = 0; i < v[0].rank(); ++i) {
      if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
      permutation.push_back(i);
      dims.push_back(v[0].dim(i));
    }
    Value rows = reshape(transpose(v[0], permutation), dims);
    const DType dtype = v[0].dtype();
    const double all = is_signed(dtype) ? -1 : integer_to_real(dtype, wrap_to(dtype, -1));
    Value start =
        b.full(dtype, Dims(dims.begin() + 1, dims.end()), combine == Opcode::and_ ? all : 0);
    const std::vector<Value> initial = {start}, scanned = {rows};
    return {scan(initial, scanned, [&](Builder&, std::span<const Value> s) -> std::vector<Value> {
      return {binary(combine, s[0], s[1])};
    })[0]};
  });
}

}  // namespace

bool export_reduce(Emit& e) {
  if (const PackedProduct* packed = e.packed()) return export_packed(e, *packed);
  const std::string& kind = e.op().word("kind");
  const Ints& axes = e.op().ints("axes");
  const DType dtype = e.type(0).dtype();
  if (axes.empty()) return e.result_is(e.in(0));
  if (kind == "and" || kind == "or") {
    if (!is_bool(dtype)) return reduce_bits(e, kind == "and" ? Opcode::and_ : Opcode::or_, axes);
    const std::string op = kind == "and" ? "ReduceMin" : "ReduceMax";
    if (e.opset() >= 20) return e.result_is(reduced(e, e.in(0), op, axes));
    return e.result_is(e.cast(reduced(e, e.cast(e.in(0), DType::i32), op, axes), dtype));
  }
  const DType wide = reduced_type(dtype);
  const std::string op = kind == "sum"       ? "ReduceSum"
                         : kind == "product" ? "ReduceProd"
                         : kind == "max"     ? "ReduceMax"
                                             : "ReduceMin";
  if (wide == dtype) return e.result_is(reduced(e, e.in(0), op, axes));
  return e.result_is(e.cast(reduced(e, e.cast(e.in(0), wide), op, axes), dtype));
}

bool export_arg_reduce(Emit& e) {
  const std::string_view op = e.op().word("kind") == "max" ? "ArgMax" : "ArgMin";
  const Attributes attributes = {{"axis", e.op().integer("axis")},
                                 {"keepdims", int64_t{0}},
                                 {"select_last_index", int64_t{e.op().flag("last")}}};
  const DType dtype = e.op().dtype("dtype");
  if (dtype == DType::i64) return e.result(op, {e.in(0)}, attributes);
  return e.result_is(e.cast(e.node(op, {e.in(0)}, attributes), dtype));
}

namespace {

std::string summed(Emit& e, int64_t axis) {
  const DType dtype = e.type(0).dtype(), wide = reduced_type(dtype);
  std::string x = wide == dtype ? e.in(0) : e.cast(e.in(0), wide);
  x = e.node("CumSum", {x, e.integer(axis)},
             {{"exclusive", int64_t{e.op().flag("exclusive")}},
              {"reverse", int64_t{e.op().flag("reverse")}}});
  return wide == dtype ? x : e.cast(x, dtype);
}

double identity(std::string_view kind, DType dtype) {
  if (kind == "sum") return 0;
  if (kind == "product") return 1;
  const bool is_max = kind == "max";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_real(dtype)) return is_max ? -kInfinity : kInfinity;
  const IntegerLimits limits = integer_limits(dtype);
  return integer_to_real(dtype, is_max ? limits.lowest : limits.highest);
}

// 2^63 - 1 and 2^64 - 1 are no doubles.
Value identity_of(Builder& b, std::string_view kind, DType dtype) {
  if (is_real(dtype) || kind == "sum" || kind == "product")
    return b.scalar(dtype, identity(kind, dtype));
  const IntegerLimits limits = integer_limits(dtype);
  const int64_t value = kind == "max" ? limits.lowest : limits.highest;
  return b.constant(Tensor::from_integers(Type::scalar(dtype), Ints{value}));
}

Opcode combining(std::string_view kind) {
  if (kind == "sum") return Opcode::add;
  if (kind == "product") return Opcode::mul;
  return kind == "max" ? Opcode::max : Opcode::min;
}

}  // namespace

bool export_cumsum(Emit& e) {
  const int64_t axis = e.op().integer("axis");
  return e.result_is(summed(e, axis < 0 ? axis + e.rank(0) : axis));
}

// Sums have an op; others are scanned.
bool export_cumulative(Emit& e) {
  const std::string& kind = e.op().word("kind");
  const int axis = static_cast<int>(e.op().integer("axis"));
  if (kind == "sum") return e.result_is(summed(e, axis));
  const bool exclusive = e.op().flag("exclusive");
  return e.spelled([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    Ints to_front = {axis}, back;
    for (int i = 0; i < v[0].rank(); ++i)
      if (i != axis) to_front.push_back(i);
    for (int i = 0; i < v[0].rank(); ++i)
      back.push_back(std::find(to_front.begin(), to_front.end(), i) - to_front.begin());
    Value rows = transpose(v[0], to_front);
    Dims row = rows.dims();
    row.erase(row.begin());
    const std::vector<Value> initial = {broadcast_to(identity_of(b, kind, v[0].dtype()), row)};
    const std::vector<Value> scanned = {rows};
    auto step = [&](Builder&, std::span<const Value> s) -> std::vector<Value> {
      Value next = binary(combining(kind), s[0], s[1]);
      // One value cannot be two results of a body.
      return {next, exclusive ? s[0] : next};
    };
    return {transpose(scan(initial, scanned, step, e.op().flag("reverse"))[1], back)};
  });
}

// ---- WindowArguments
// -----------------------------------------------------------------------------------

namespace {

struct WindowArguments {
  Ints window, stride, low, high, input_dilation, dilation;

  static WindowArguments of(Op op, int rank) {
    auto full = [&](std::string_view name, int64_t fill) {
      const Ints& given = op.ints(name);
      return given.empty() ? Ints(static_cast<size_t>(rank), fill) : given;
    };
    return {op.ints("window"),   full("stride", 1),         full("pad_low", 0),
            full("pad_high", 0), full("input_dilation", 1), full("window_dilation", 1)};
  }
  int64_t span(size_t i) const { return (window[i] - 1) * dilation[i] + 1; }
  int64_t count() const {
    int64_t product = 1;
    for (int64_t w : window) product *= w;
    return product;
  }
  // ONNX's pools: nothing happens to the first two dims, and no window lies in the padding alone.
  bool is_pool() const {
    if (window.size() < 3) return false;
    for (size_t i = 0; i < window.size(); ++i) {
      if (input_dilation[i] != 1 || low[i] < 0 || high[i] < 0) return false;
      if (low[i] >= span(i) || high[i] >= span(i)) return false;
      if (low[i] >= window[i] || high[i] >= window[i]) return false;
      if (i < 2 && (window[i] != 1 || stride[i] != 1 || low[i] != 0 || high[i] != 0)) return false;
    }
    return true;
  }
  bool is_dilated() const {
    return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
  }
  Attributes attributes() const {
    auto spatial = [](const Ints& all) { return Ints(all.begin() + 2, all.end()); };
    Ints pads = spatial(low), after = spatial(high);
    pads.insert(pads.end(), after.begin(), after.end());
    Attributes list = {{"kernel_shape", spatial(window)}, {"strides", spatial(stride)}};
    if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; }))
      list.push_back({"pads", pads});
    if (is_dilated()) list.push_back({"dilations", spatial(dilation)});
    return list;
  }
};

bool is_pooled(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16;
}

// The windows' elements along one axis, position by position.
Value along(Value x, std::string_view kind, const WindowArguments& w, size_t i) {
  Builder& b = x.builder();
  const int axis = static_cast<int>(i);
  const size_t rank = static_cast<size_t>(x.rank());
  Dims low(rank, 0), high = low;
  Ints interior(rank, 0);
  low[i] = w.low[i], high[i] = w.high[i], interior[i] = w.input_dilation[i] - 1;
  if (!low[i].is(0) || !high[i].is(0) || interior[i] != 0)
    x = b.op(Opcode::pad, {x, identity_of(b, kind, x.dtype())},
             {{"low", low}, {"high", high}, {"interior", interior}});
  const Dim count = floordiv(x.dim(axis) - w.span(i), w.stride[i]) + 1;
  Value result;
  for (int64_t tap = 0; tap < w.window[i]; ++tap) {
    const Dim start = tap * w.dilation[i];
    Value part = slice(x, axis, start, start + (count - 1) * w.stride[i] + 1, w.stride[i]);
    result = result ? binary(combining(kind), result, part) : part;
  }
  return result;
}

bool reduce_by_parts(Emit& e, const std::string& kind, const WindowArguments& w) {
  constexpr int64_t kMostParts = 4096;
  for (size_t i = 0; i < w.window.size(); ++i)
    if (w.window[i] > kMostParts)
      e.unsupported("a window of {} positions that ONNX has no pool for", w.window[i]);
  for (int i = 0; i < e.rank(0); ++i)
    if (e.result_type().dim(i).range().low < 1)
      e.unsupported("windows that no pool says and that there may be none of");
  return e.spelled([&](Builder&, std::span<const Value> v) -> std::vector<Value> {
    Value x = v[0];
    for (size_t i = 0; i < w.window.size(); ++i) {
      const bool is_all = w.window[i] == 1 && w.stride[i] == 1 && w.low[i] == 0 && w.high[i] == 0;
      if (!is_all || w.input_dilation[i] != 1) x = along(x, kind, w, i);
    }
    return {x};
  });
}

}  // namespace

bool export_window_reduce(Emit& e) {
  const std::string& kind = e.op().word("kind");
  const WindowArguments w = WindowArguments::of(e.op(), e.rank(0));
  const DType dtype = e.type(0).dtype();
  if (!w.is_pool() || !is_pooled(dtype) || e.result_type().elements().range().low < 1)
    return reduce_by_parts(e, kind, w);
  if (kind == "max") return e.result("MaxPool", {e.in(0)}, w.attributes());
  if (kind == "min") {
    std::string highest = e.node("MaxPool", {e.node("Neg", {e.in(0)})}, w.attributes());
    return e.result("Neg", {highest});
  }
  // Since version 19 averages know dilations.
  if (kind != "sum" || (w.is_dilated() && e.opset() < 19)) return reduce_by_parts(e, kind, w);
  Attributes attributes = w.attributes();
  attributes.push_back({"count_include_pad", int64_t{1}});
  std::string mean = e.node("AveragePool", {e.in(0)}, attributes);
  return e.result("Mul", {mean, e.scalar(dtype, static_cast<double>(w.count()))});
}

namespace {

// How many positions of each window along axis i are elements.
Ints counts_along(const WindowArguments& w, size_t i, int64_t size) {
  Ints counts;
  for (int64_t at = -w.low[i]; at + w.span(i) <= size + w.high[i]; at += w.stride[i]) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < w.window[i]; ++tap) {
      const int64_t place = at + tap * w.dilation[i];
      count += place >= 0 && place < size ? 1 : 0;
    }
    counts.push_back(count);
  }
  return counts;
}

// True if a divisor is those counts, the same for all images and channels.
bool is_counts(const Tensor& divisor, const WindowArguments& w, Type x) {
  const size_t rank = w.window.size();
  std::vector<Ints> counts;
  for (size_t i = 2; i < rank; ++i) {
    if (!x.dim(static_cast<int>(i)).is_static()) return false;
    counts.push_back(counts_along(w, i, x.dim(static_cast<int>(i)).value()));
  }
  const Ints dims = divisor.type().static_dims();
  if (dims.size() != rank) return false;
  for (size_t i = 2; i < rank; ++i)
    if (dims[i] != static_cast<int64_t>(counts[i - 2].size())) return false;
  for (int64_t index = 0; index < divisor.elements(); ++index) {
    int64_t rest = index, count = 1;
    for (size_t i = rank; i-- > 2; rest /= dims[i])
      count *= counts[i - 2][static_cast<size_t>(rest % dims[i])];
    if (divisor.real_at(index) != static_cast<double>(count)) return false;
  }
  return true;
}

}  // namespace

bool export_average(Emit& e) {
  const std::optional<NodeId> made = e.maker(0, Opcode::window_reduce);
  const std::optional<Tensor> divisor = e.repeated_constant(1);
  if (!made || !divisor || e.graph().op(*made).word("kind") != "sum") return false;
  const Type x = e.graph().operand_types(*made)[0];
  const WindowArguments w = WindowArguments::of(e.graph().op(*made), x.rank());
  if (!w.is_pool() || !is_pooled(x.dtype()) || (w.is_dilated() && e.opset() < 19)) return false;
  Attributes attributes = w.attributes();
  const bool has_pads = attributes.size() > 2 && attributes[2].name == "pads";
  const bool is_whole =
      divisor->elements() == 1 && divisor->real_at(0) == static_cast<double>(w.count());
  if (!is_whole && !is_counts(*divisor, w, x)) return false;
  if (is_whole && has_pads) attributes.push_back({"count_include_pad", int64_t{1}});
  return e.result("AveragePool", {e.value(e.graph().operands(*made)[0])}, attributes);
}

// ---- Softmax in steps --------------------------------------------------------------------------

namespace {

// A value reduced along one axis and repeated along it again.
struct ReducedAgain {
  ValueId value;
  int64_t axis;
};

std::optional<ReducedAgain> reduced_again(const Graph& graph, ValueId v, std::string_view kind) {
  NodeId n = graph.producer(v);
  if (graph.opcode(n) != Opcode::broadcast) return std::nullopt;
  const Ints map = graph.op(n).ints("map");
  n = graph.producer(graph.operands(n)[0]);
  Dims kept;  // of a reshape that leaves a 1 where the axis was
  if (graph.opcode(n) == Opcode::reshape) {
    const Type kept_type = graph.type(graph.result(n));
    kept.assign(kept_type.dims().begin(), kept_type.dims().end());
    n = graph.producer(graph.operands(n)[0]);
  }
  if (graph.opcode(n) != Opcode::reduce || graph.op(n).word("kind") != kind) return std::nullopt;
  const Ints& axes = graph.op(n).ints("axes");
  const Type type = graph.operand_types(n)[0];
  if (axes.size() != 1 || !(type == graph.type(v))) return std::nullopt;
  Ints want = counting(0, type.rank());
  Dims dims(type.dims().begin(), type.dims().end());
  dims[static_cast<size_t>(axes[0])] = 1;
  if (kept.empty()) std::erase(want, axes[0]);
  if (map != want || (!kept.empty() && kept != dims)) return std::nullopt;
  return ReducedAgain{graph.operands(n)[0], axes[0]};
}

}  // namespace

bool export_softmax_in_steps(Emit& e) {
  const Graph& graph = e.graph();
  const std::optional<NodeId> power = e.maker(0, Opcode::exp);
  if (!power || !is_pooled(e.type(0).dtype())) return false;
  const NodeId difference = graph.producer(graph.operands(*power)[0]);
  if (graph.opcode(difference) != Opcode::sub) return false;
  const ValueId x = graph.operands(difference)[0];
  const auto largest = reduced_again(graph, graph.operands(difference)[1], "max");
  const auto sum = reduced_again(graph, e.operand(1), "sum");
  if (!largest || !sum || largest->value != x || sum->value != graph.result(*power) ||
      largest->axis != sum->axis)
    return false;
  return e.result("Softmax", {e.value(x)}, {{"axis", sum->axis}});
}

// ---- What ONNX cannot say ----------------------------------------------------------------------

bool export_rng_bits(Emit& e) {
  e.unsupported("ONNX's random ops have a state of their own and follow no given generator");
}

// A group of one has nothing to exchange.
bool export_group(Emit& e) {
  return e.op().integer("group_size") == 1 ? e.result_is(e.in(0)) : export_collective(e);
}

bool export_collective(Emit& e) { e.unsupported("ONNX has no ops between devices"); }

}  // namespace hone::onnx_io
