#include "front/onnx/ops/forms.h"

#include <algorithm>
#include <cctype>

#include "front/onnx/flow.h"

namespace hone::onnx_io {
namespace {

// The node that makes a value, if it is of a kind; operands of it.
struct Producer {
  const Graph& graph;
  NodeId node;

  explicit Producer(Value v) : graph(v.builder().graph()), node(graph.producer(v.id())) {}
  bool is(Opcode opcode) const { return graph.opcode(node) == opcode; }
  Op op() const { return graph.op(node); }
  Value operand(Builder& b, size_t i) const { return {&b, graph.operands(node)[i]}; }
};

// The value that is repeated: it without broadcasts around it.
Value unrepeated(Value v) {
  while (Producer(v).is(Opcode::broadcast)) v = Producer(v).operand(v.builder(), 0);
  return v;
}

}  // namespace

Value stretched(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  Value line = x;
  if (Producer p(x); p.is(Opcode::reshape)) line = p.operand(x.builder(), 0);
  if (line.rank() != 1 || !Producer(line).is(Opcode::iota)) return broadcast_to(x, dims);
  // Where the line stands: all other dims are 1.
  for (int axis = 0; axis < x.rank(); ++axis) {
    const size_t at = dims.size() - static_cast<size_t>(x.rank() - axis);
    if (!(x.dim(axis) == line.dim(0)) || !(dims[at] == line.dim(0))) continue;
    return iota(x.builder(), x.dtype(), dims, static_cast<int>(at));
  }
  return broadcast_to(x, dims);
}

Value converted(Value x, DType dtype) {
  Producer p(x);
  // Counting in a wide type and rounding, or wrapping, is counting in the narrow one.
  if (p.is(Opcode::iota) && x.dtype() == DType::i64 && kNumber.contains(dtype))
    return x.builder().op(Opcode::iota, std::span<const Value>(),
                          {{"dtype", dtype}, {"dims", x.dims()}, {"axis", p.op().integer("axis")}});
  return cast(x, dtype);
}

Value before_clamp(Node& n, Value indices, const Dims& sizes) {
  Builder& b = n.builder();
  auto bound = [&](Value v) { return n.flow().contents().of(unrepeated(v).id()); };
  const bool is_never_empty =
      std::all_of(sizes.begin(), sizes.end(), [](Dim d) { return provably_le(1, d); });
  Producer low(indices);
  if (!is_never_empty || !low.is(Opcode::min)) return {};
  const std::optional<Dims> last = bound(low.operand(b, 1));
  if (!last || last->size() != sizes.size()) return {};
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!((*last)[i] == sizes[i] - 1)) return {};
  Producer high(low.operand(b, 0));
  if (!high.is(Opcode::max)) return {};
  const std::optional<Dims> zero = bound(high.operand(b, 1));
  return zero && zero->size() == 1 && (*zero)[0].is(0) ? high.operand(b, 0) : Value();
}

Value without_tuple_dim(Value indices) {
  Producer p(indices);
  if (!p.is(Opcode::reshape)) return indices;
  const Value x = p.operand(indices.builder(), 0);
  Dims dims = x.dims();
  dims.emplace_back(1);
  return dims == indices.dims() ? x : indices;
}

namespace {

// True if each element is its own coordinate along an axis.
bool counts_along(Value v, int axis) {
  Producer p(v);
  if (p.is(Opcode::iota)) {
    const auto along = static_cast<int>(p.op().integer("axis"));
    return along == axis || (v.dim(along).is(1) && v.dim(axis).is(1));
  }
  if (!p.is(Opcode::reshape)) return false;
  // A line that stands along the axis: all other dims are 1.
  const Value line = p.operand(v.builder(), 0);
  return line.rank() == 1 && Producer(line).is(Opcode::iota) && v.dim(axis) == line.dim(0) &&
         v.type().elements() == line.dim(0);
}

// The start of a window along an axis if `index` counts from there: iota + start. A value that
// counts from 0 stands for the whole dim.
std::optional<Value> start_of(Node& n, Value index, int axis, Dim room) {
  Builder& b = n.builder();
  if (counts_along(index, axis))
    return room.is(0) ? std::optional(b.scalar(DType::i64, 0)) : std::nullopt;
  Producer sum(index);
  if (!sum.is(Opcode::add) || !counts_along(sum.operand(b, 0), axis)) return std::nullopt;
  const Value start = unrepeated(sum.operand(b, 1));
  if (start.rank() != 0) return std::nullopt;
  // Starts are clamped on their own.
  const Value plain = before_clamp(n, start, {room + 1});
  return plain ? std::optional(plain) : std::nullopt;
}

}  // namespace

std::vector<Value> window_starts(Node& n, Value x, Value indices, Value updates) {
  Builder& b = n.builder();
  Producer all(indices);
  if (!all.is(Opcode::concat) || updates.rank() != x.rank() ||
      all.op().integer("axis") != indices.rank() - 1)
    return {};
  const std::span<const ValueId> parts = all.graph.operands(all.node);
  if (!indices.dim(-1).is(static_cast<int64_t>(parts.size()))) return {};
  std::vector<Value> starts;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis >= static_cast<int>(parts.size())) {
      starts.push_back(b.scalar(DType::i64, 0));
      continue;
    }
    Producer part(Value(&b, parts[static_cast<size_t>(axis)]));
    if (!part.is(Opcode::reshape) || !provably_le(updates.dim(axis), x.dim(axis))) return {};
    const Value index = part.operand(b, 0);
    const Dims dims = updates.dims();
    if (index.dims() != Dims(dims.begin(), dims.begin() + static_cast<int64_t>(parts.size())))
      return {};
    std::optional<Value> start = start_of(n, index, axis, x.dim(axis) - updates.dim(axis));
    if (!start) return {};
    starts.push_back(*start);
  }
  return starts;
}

// ---- Indices out of range ----------------------------------------------------------------------

namespace {

// select(0 <= index && index < sizes, index, outside)
struct Guard {
  Value index;
  Dims sizes, outside;
};

std::optional<Guard> guard_of(Node& n, Value indices) {
  Builder& b = n.builder();
  auto known = [&](Value v) { return n.flow().contents().of(unrepeated(v).id()); };
  auto asks = [&](Value v, std::string_view direction) {
    Producer p(v);
    return p.is(Opcode::compare) && p.op().word("direction") == direction;
  };
  Producer chosen(indices);
  if (!chosen.is(Opcode::select)) return std::nullopt;
  const Value index = chosen.operand(b, 1);
  Value mask = unrepeated(chosen.operand(b, 0));
  if (Producer p(mask); p.is(Opcode::reshape)) mask = p.operand(b, 0);
  if (Producer p(mask); p.is(Opcode::reduce) && p.op().word("kind") == "and")
    mask = p.operand(b, 0);
  Producer both(mask);
  if (!both.is(Opcode::and_)) return std::nullopt;
  const Value low = both.operand(b, 0), high = both.operand(b, 1);
  if (!asks(low, "ge") || !asks(high, "lt")) return std::nullopt;
  for (Value side : {low, high})
    if (!(Producer(side).operand(b, 0).id() == index.id())) return std::nullopt;
  const std::optional<Dims> zero = known(Producer(low).operand(b, 1));
  const std::optional<Dims> sizes = known(Producer(high).operand(b, 1));
  const std::optional<Dims> outside = known(chosen.operand(b, 2));
  if (!zero || !sizes || !outside || zero->size() != 1 || !(*zero)[0].is(0)) return std::nullopt;
  return Guard{index, *sizes, *outside};
}

// One component needs no dim of its own, and any integers will do.
std::pair<Value, int64_t> plain_index(Value index, int64_t vector_dim) {
  Builder& b = index.builder();
  if (Producer p(index); p.is(Opcode::reshape)) {
    Dims longer = p.operand(b, 0).dims();
    longer.push_back(1);
    if (longer == index.dims()) {
      index = p.operand(b, 0);
      vector_dim = index.rank();
    }
  }
  if (Producer p(index); p.is(Opcode::cast) && p.operand(b, 0).dtype() == DType::i32)
    index = p.operand(b, 0);
  return {index, vector_dim};
}

}  // namespace

bool is_guarded(Node& n, Value indices) {
  const std::optional<Guard> guard = guard_of(n, indices);
  return guard && std::all_of(guard->outside.begin(), guard->outside.end(),
                              [](Dim d) { return provably_le(0, d); });
}

Value without_spare_row(Node& n, Value x) {
  Builder& b = n.builder();
  Producer scattered(x);
  if (!scattered.is(Opcode::scatter)) return {};
  Producer padded(scattered.operand(b, 0));
  if (!padded.is(Opcode::pad)) return {};
  const Value base = padded.operand(b, 0);
  const Dims& low = padded.op().dims("low");
  const Dims& high = padded.op().dims("high");
  auto is_zero = [](Dim d) { return d.is(0); };
  if (!std::all_of(low.begin(), low.end(), is_zero) || !high[0].is(1) ||
      !std::all_of(high.begin() + 1, high.end(), is_zero) || !(x.dim(0) == base.dim(0) + 1))
    return {};
  const std::optional<Guard> guard = guard_of(n, scattered.operand(b, 1));
  const Ints& map = scattered.op().ints("index_map");
  if (!guard || guard->sizes.size() != map.size() || guard->outside.size() != map.size()) return {};
  for (size_t k = 0; k < map.size(); ++k) {
    if (map[k] != static_cast<int64_t>(k)) return {};
    const Dim size = base.dim(static_cast<int>(k));
    if (!(guard->sizes[k] == size) || !(guard->outside[k] == (k == 0 ? size : Dim(0)))) return {};
  }
  const auto [index, vector_dim] =
      plain_index(guard->index, scattered.op().integer("index_vector_dim"));
  return b.op(Opcode::scatter, {base, index, scattered.operand(b, 2)},
              {{"window_dims", scattered.op().ints("window_dims")},
               {"inserted_dims", scattered.op().ints("inserted_dims")},
               {"index_map", map},
               {"index_vector_dim", vector_dim},
               {"combine", scattered.op().word("combine")}});
}

namespace {

struct Terms {
  std::string left, right, result;
};

// Letters of "ab,cb->ac" without blanks; null for other forms.
std::optional<Terms> terms_of(std::string_view equation) {
  std::string text(equation);
  std::erase(text, ' ');
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    return std::nullopt;
  Terms t = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1),
             text.substr(arrow + 2)};
  for (const std::string* term : {&t.left, &t.right, &t.result})
    for (size_t i = 0; i < term->size(); ++i)
      if (std::isalpha(static_cast<unsigned char>((*term)[i])) == 0 ||
          term->find((*term)[i], i + 1) != std::string::npos)
        return std::nullopt;
  return t;
}

}  // namespace

Value dot_of_einsum(std::string_view equation, Value a, Value b) {
  const std::optional<Terms> t = terms_of(equation);
  if (!t || static_cast<int>(t->left.size()) != a.rank() ||
      static_cast<int>(t->right.size()) != b.rank())
    return {};
  struct Pairs {
    Ints left, right;
  } batch, contract;
  std::string batch_letters, free;
  auto place = [](const std::string& term, char c) { return static_cast<int64_t>(term.find(c)); };
  // Batch dims come in the result's order, contracted ones in that of the left operand.
  for (char c : t->result)
    if (place(t->left, c) >= 0 && place(t->right, c) >= 0) {
      batch.left.push_back(place(t->left, c));
      batch.right.push_back(place(t->right, c));
      batch_letters += c;
    }
  auto add_free = [&](const std::string& term, const std::string& other) {
    for (char c : term)
      if (place(other, c) < 0) free += c;
  };
  add_free(t->left, t->right);
  add_free(t->right, t->left);
  for (char c : t->left)
    if (place(t->right, c) >= 0 && place(t->result, c) < 0) {
      contract.left.push_back(place(t->left, c));
      contract.right.push_back(place(t->right, c));
    }
  if (t->result != batch_letters + free || a.dtype() != b.dtype()) return {};
  for (const Pairs* pairs : {&batch, &contract})
    for (size_t i = 0; i < pairs->left.size(); ++i)
      if (!(a.dim(static_cast<int>(pairs->left[i])) == b.dim(static_cast<int>(pairs->right[i]))))
        return {};
  return dot_general(a, b, batch.left, batch.right, contract.left, contract.right);
}

}  // namespace hone::onnx_io
