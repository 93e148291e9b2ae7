#include "tests/front/shape_files.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/rng.h"

namespace hone::shape_files {
namespace {

using shape_judge::Array;
using shape_judge::Arrays;
using shape_judge::Kind;
using Dims = std::vector<int64_t>;
using Names = std::vector<std::string>;

constexpr int64_t kMostElements = 240;  // of a tensor that is worked on
constexpr int kDepth = 3;               // of what computes one size

int32_t data_type_of(Kind kind) {
  switch (kind) {
    case Kind::f32: return onnx::TensorProto::FLOAT;
    case Kind::i32: return onnx::TensorProto::INT32;
    case Kind::i64: return onnx::TensorProto::INT64;
    default: return onnx::TensorProto::BOOL;
  }
}

int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Array integers(const Dims& values) {
  Array x = {Kind::i64, {static_cast<int64_t>(values.size())}, {}};
  x.values.assign(values.begin(), values.end());
  return x;
}
Array scalar(int64_t value) { return {Kind::i64, {}, {static_cast<double>(value)}}; }

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {
    file_.proto.set_ir_version(8);
    file_.proto.add_opset_import()->set_version(17);
    graph().set_name("shapes");
  }

  ShapeFile run() {
    const int64_t images = rng_.between(1, 2);
    for (int64_t i = 0; i < images; ++i) data_.push_back(random_data());
    const int64_t targets = rng_.between(1, 3);
    for (int64_t i = 0; i < targets; ++i) {
      may_fail_ = i + 1 == targets && rng_.chance(0.12);
      target();
    }
    if (outputs_.empty()) output(data_.back());
    drop_unread_nodes();
    runs();
    return std::move(file_);
  }

 private:
  // An input, and how to draw it again.
  struct Input {
    std::string name;
    std::vector<std::string> symbols;  // by axis; "": a number
    int64_t least = 0, most = 0;       // of its elements
  };
  struct Attribute {
    std::string name;
    std::variant<int64_t, Dims, std::string> value;
  };

  onnx::GraphProto& graph() { return *file_.proto.mutable_graph(); }
  const Array& at(const std::string& name) const { return arrays_.at(name); }
  std::string fresh(std::string_view wish) { return fmt::format("{}{}", wish, count_++); }

  // ---- What files are made of -------------------------------------------------------------------

  // Computed at once for the first run. None if the judge does not like it, and it is not there
  // then; but a target may fail if the file is to.
  Names nodes(const std::string& op, const Names& inputs, const std::vector<Attribute>& attributes,
              int outputs, bool is_target = false) {
    const bool has_optional = op == "Resize";
    if (!has_optional && std::ranges::find(inputs, "") != inputs.end()) return {};
    onnx::NodeProto node;
    node.set_op_type(op);
    node.set_name(fresh(op));
    for (const std::string& name : inputs) node.add_input(name);
    Names names;
    for (int i = 0; i < outputs; ++i) {
      names.push_back(fresh("v"));
      node.add_output(names.back());
    }
    for (const Attribute& attribute : attributes) add(node, attribute);
    try {
      shape_judge::run_node(node, arrays_);
    } catch (const shape_judge::Illegal&) {
      if (!is_target || !may_fail_) return {};
      has_failed_ = true;
    } catch (const shape_judge::Unclear&) {
      return {};
    }
    *graph().add_node() = std::move(node);
    return names;
  }
  std::string node(const std::string& op, const Names& inputs,
                   const std::vector<Attribute>& attributes = {}) {
    const Names names = nodes(op, inputs, attributes, 1);
    return names.empty() ? "" : names[0];
  }
  std::string taker(const std::string& op, const Names& inputs,
                    const std::vector<Attribute>& attributes = {}) {
    const Names names = nodes(op, inputs, attributes, 1, /*is_target=*/true);
    return names.empty() ? "" : names[0];
  }
  static void add(onnx::NodeProto& node, const Attribute& attribute) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(attribute.name);
    if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(*number);
    } else if (const auto* word = std::get_if<std::string>(&attribute.value)) {
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(*word);
    } else {
      proto.set_type(onnx::AttributeProto::INTS);
      for (int64_t i : std::get<Dims>(attribute.value)) proto.add_ints(i);
    }
  }

  std::string constant(const Array& array) {
    const std::string name = fresh("c");
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(data_type_of(array.kind));
    for (int64_t dim : array.dims) tensor.add_dims(dim);
    for (double value : array.values) {
      if (array.kind == Kind::f32)
        tensor.add_float_data(static_cast<float>(value));
      else if (array.kind == Kind::i64)
        tensor.add_int64_data(static_cast<int64_t>(value));
      else
        tensor.add_int32_data(static_cast<int32_t>(value));
    }
    constants_[name] = arrays_[name] = array;
    return name;
  }
  std::string constant(int64_t value) { return constant(integers({value})); }

  // An axis is a symbol if `symbols` says so.
  std::string input(const Array& array, int64_t least, int64_t most, double symbols) {
    Input input = {fresh("x"), {}, least, most};
    onnx::ValueInfoProto& info = *graph().add_input();
    info.set_name(input.name);
    onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(data_type_of(array.kind));
    type.mutable_shape();
    for (int64_t dim : array.dims) {
      const std::string symbol = rng_.chance(symbols) ? symbol_of(dim) : "";
      onnx::TensorShapeProto::Dimension& proto = *type.mutable_shape()->add_dim();
      if (symbol.empty())
        proto.set_dim_value(dim);
      else
        proto.set_dim_param(symbol);
      input.symbols.push_back(symbol);
    }
    arrays_[input.name] = array;
    file_inputs_.push_back(input);
    return input.name;
  }
  // One that is there if it has this size, or another one.
  std::string symbol_of(int64_t size) {
    for (const auto& [name, value] : symbols_)
      if (value == size && rng_.chance(0.5)) return name;
    const std::string name = fresh("n");
    symbols_[name] = size;
    return name;
  }

  Array filled(Kind kind, const Dims& dims, int64_t least, int64_t most) {
    Array x = {kind, dims, {}};
    for (int64_t i = 0; i < product(dims); ++i)
      x.values.push_back(static_cast<double>(rng_.between(least, most)));
    return x;
  }
  std::string random_data() {
    Dims dims;
    const int64_t rank = rng_.between(1, 3);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(rng_.between(1, 4));
    return input(filled(Kind::f32, dims, -9, 9), -9, 9, 0.4);
  }

  // ---- One size ---------------------------------------------------------------------------------

  // A vector of one i64 that is `value` in the first run.
  std::string size(int64_t value, int depth = kDepth) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      const std::string name = attempted_size(value, depth);
      if (!name.empty() && at(name).dims == Dims{1} && at(name).values[0] == double(value))
        return name;
    }
    return constant(value);
  }
  std::string attempted_size(int64_t value, int depth) {
    if (depth == 0 || rng_.chance(0.15)) return constant(value);
    switch (rng_.below(16)) {
      case 0: return vector(single(input(scalar(value), value, value + 1, 0)));
      case 1: return entry(input(with(value, rng_.between(1, 3)), 0, value + 1, 0), value);
      case 2: return counted(value);
      case 3: return of_shape(value);
      case 4: return computed("Add", value, value - 1, 1, depth);
      case 5: return computed("Sub", value, value + 2, 2, depth);
      case 6: return value % 2 == 0 ? computed("Mul", value, value / 2, 2, depth) : "";
      case 7: return computed("Div", value, value * 3 + rng_.between(0, 2), 3, depth);
      case 8: return computed(rng_.chance(0.5) ? "Max" : "Min", value, value, value, depth);
      case 9: return through_reals(size(value, depth - 1));
      case 10: return chosen(value, depth);
      case 11: return reduced(value, depth);
      case 12: return entry(joined(value, depth), value);
      case 13: return known_entry(value);
      case 14: return vector(single(size(value, depth - 1)));
      default: return of_data_shape(value);
    }
  }
  // A scalar of a vector of one, and back.
  std::string single(const std::string& vector) {
    if (at(vector).dims.empty()) return vector;
    if (rng_.chance(0.4)) return node("Squeeze", {vector});
    if (rng_.chance(0.5)) return node("Squeeze", {vector, constant(0)});
    if (rng_.chance(0.5)) return node("Gather", {vector, constant(scalar(0))});
    return node("Reshape", {vector, constant(integers({}))});
  }
  std::string vector(const std::string& scalar) {
    if (scalar.empty() || at(scalar).dims.size() == 1) return scalar;
    if (rng_.chance(0.6)) return node("Unsqueeze", {scalar, constant(0)});
    return node("Reshape", {scalar, constant(rng_.chance(0.5) ? 1 : -1)});
  }
  Array with(int64_t value, int64_t length) {
    Array x = filled(Kind::i64, {length}, 1, 4);
    x.values[rng_.below(x.values.size())] = static_cast<double>(value);
    return x;
  }
  // The element of a vector that has the value.
  std::string entry(const std::string& vector, int64_t value) {
    if (vector.empty()) return "";
    std::vector<int64_t> places;
    const Array& x = at(vector);
    for (size_t i = 0; i < x.values.size(); ++i)
      if (x.values[i] == static_cast<double>(value)) places.push_back(static_cast<int64_t>(i));
    if (places.empty()) return "";
    const int64_t place = rng_.pick(places), length = x.dims[0];
    const int64_t from_back = rng_.chance(0.3) ? place - length : place;
    switch (rng_.below(4)) {
      case 0: return node("Gather", {vector, constant(from_back)});
      case 1: {
        const int64_t end = from_back == -1 ? length : from_back + 1;
        return node("Slice", {vector, constant(from_back), constant(end), constant(0)});
      }
      case 2: {
        if (length > 4) return "";
        const Names parts =
            nodes("Split", {vector, constant(integers(Dims(static_cast<size_t>(length), 1)))},
                  {{"axis", int64_t{0}}}, static_cast<int>(length));
        return parts.empty() ? "" : parts[static_cast<size_t>(place)];
      }
      default: {
        const std::string one = node("Gather", {vector, constant(scalar(from_back))});
        return one.empty() ? "" : this->vector(one);
      }
    }
  }
  std::string known_entry(int64_t value) {
    Names vectors;
    for (const auto& [name, array] : arrays_)
      if (array.kind == Kind::i64 && array.dims.size() == 1 && !constants_.contains(name) &&
          std::ranges::find(array.values, static_cast<double>(value)) != array.values.end())
        vectors.push_back(name);
    return vectors.empty() ? "" : entry(rng_.pick(vectors), value);
  }
  // How many elements of an input are not 0.
  std::string counted(int64_t value) {
    if (value < 0 || value > 12) return "";
    Array mask =
        filled(rng_.chance(0.5) ? Kind::f32 : Kind::boolean, {value + rng_.between(0, 3)}, 0, 0);
    for (int64_t i = 0; i < value; ++i) mask.values[static_cast<size_t>(i)] = 1;
    rng_.shuffle(mask.values);
    const std::string x = input(mask, 0, 1, 0.5);
    if (rng_.chance(0.25)) {
      const std::string whole = node("Cast", {x}, {{"to", int64_t{onnx::TensorProto::INT64}}});
      return node("ReduceSum", {whole, constant(0)});
    }
    const std::string places = node("NonZero", {x});
    if (rng_.chance(0.2)) return vector(node("Size", {places}));
    return entry(node("Shape", {places}), value);
  }
  std::string of_shape(int64_t value) {
    if (value < 0 || value > 16) return "";
    Dims dims = {value};
    while (dims.size() < 3 && rng_.chance(0.4)) dims.push_back(rng_.between(1, 3));
    rng_.shuffle(dims);
    const std::string shape = shape_of(input(filled(Kind::f32, dims, -9, 9), -9, 9, 0.8));
    return entry(shape, value);
  }
  std::string shape_of(const std::string& x) {
    const int64_t rank = static_cast<int64_t>(at(x).dims.size());
    if (rank > 1 && rng_.chance(0.3))
      return node("Shape", {x}, {{"start", rng_.between(0, rank - 1)}, {"end", rank}});
    return node("Shape", {x});
  }
  std::string of_data_shape(int64_t value) {
    for (const std::string& x : data_) {
      if (product(at(x).dims) == value && rng_.chance(0.4)) return vector(node("Size", {x}));
      if (std::ranges::find(at(x).dims, value) != at(x).dims.end())
        return entry(node("Shape", {x}), value);
    }
    return "";
  }
  std::string computed(const std::string& op, int64_t value, int64_t left, int64_t right,
                       int depth) {
    if (left < 0 || value < 0) return "";
    const std::string a = size(left, depth - 1);
    const std::string b = rng_.chance(0.7) ? constant(right) : size(right, depth - 1);
    const bool commutes = op != "Sub" && op != "Div";
    return commutes && rng_.chance(0.5) ? node(op, {b, a}) : node(op, {a, b});
  }
  std::string through_reals(const std::string& x) {
    const bool is_real = rng_.chance(0.6);
    const int64_t to = is_real ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT32;
    std::string y = node("Cast", {x}, {{"to", to}});
    if (is_real && rng_.chance(0.5)) {
      y = node("Div", {y, constant({Kind::f32, {1}, {2}})});
      y = node("Mul", {y, constant({Kind::f32, {1}, {2}})});
    }
    if (is_real && rng_.chance(0.3)) y = node(rng_.chance(0.5) ? "Floor" : "Ceil", {y});
    return node("Cast", {y}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  }
  std::string chosen(int64_t value, int depth) {
    const bool first = rng_.chance(0.5);
    const std::string a = size(first ? value : value + 1, depth - 1);
    const std::string b = size(first ? value + 1 : value, depth - 1);
    std::string condition;
    if (rng_.chance(0.5))
      condition = node("Equal", {size(first ? 2 : 3, depth - 1), constant(2)});
    else
      condition = node(first ? "Less" : "Greater", {size(1, depth - 1), constant(2)});
    return node("Where", {condition, a, b});
  }
  std::string reduced(int64_t value, int depth) {
    if (value < 1) return "";
    if (rng_.chance(0.4) && value % 2 == 0) {
      const std::string parts = concat({size(2, depth - 1), size(value / 2, depth - 1)});
      return node("ReduceProd", {parts}, {{"axes", Dims{0}}});
    }
    if (rng_.chance(0.5)) {
      const std::string parts = concat({size(1, depth - 1), size(value - 1, depth - 1)});
      return node("ReduceSum", {parts, constant(0)});
    }
    const std::string parts = concat({size(value, depth - 1), size(value - 1, depth - 1)});
    return node("ReduceMax", {parts}, {{"axes", Dims{0}}});
  }
  std::string concat(const Names& parts) {
    return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
  }
  std::string joined(int64_t value, int depth) {
    Names parts = {size(value, depth - 1)};
    for (int64_t i = rng_.between(1, 2); i > 0; --i)
      parts.push_back(rng_.chance(0.5) ? constant(rng_.between(1, 4))
                                       : size(rng_.between(1, 4), depth - 1));
    rng_.shuffle(parts);
    return concat(parts);
  }

  // ---- Several sizes ----------------------------------------------------------------------------

  // A vector that has these values in the first run.
  std::string sizes(const Dims& values) {
    for (int attempt = 0; attempt < 4 && !values.empty(); ++attempt) {
      const std::string name = attempted_sizes(values);
      if (!name.empty() && at(name).values == integers(values).values) return name;
    }
    return values.empty() ? constant(integers({})) : concat_of(values);
  }
  std::string concat_of(const Dims& values) {
    Names parts;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool goes_on = i + 1 < values.size() && rng_.chance(0.2);
      if (!goes_on) {
        parts.push_back(size(values[i]));
        continue;
      }
      parts.push_back(constant(integers({values[i], values[i + 1]})));
      ++i;
    }
    return concat(parts);
  }
  std::string attempted_sizes(const Dims& values) {
    switch (rng_.below(9)) {
      case 0: {
        const std::string ones = constant(integers(Dims(values.size(), 1)));
        return node(rng_.chance(0.5) ? "Mul" : "Div", {concat_of(values), ones});
      }
      case 1: {  // in another order, then brought back
        std::vector<int64_t> order(values.size());
        std::iota(order.begin(), order.end(), 0);
        rng_.shuffle(order);
        Dims shuffled(values.size());
        for (size_t i = 0; i < order.size(); ++i)
          shuffled[static_cast<size_t>(order[i])] = values[i];
        return node("Gather", {concat_of(shuffled), constant(integers(order))});
      }
      case 2: {
        Dims longer = values;
        longer.insert(longer.begin(), rng_.between(1, 4));
        longer.push_back(rng_.between(1, 4));
        const auto end = static_cast<int64_t>(values.size()) + 1;
        return node("Slice", {concat_of(longer), constant(1), constant(end)});
      }
      case 3: return through_reals(concat_of(values));
      case 4: {
        const std::string added = constant(integers(Dims(values.size(), 1)));
        Dims less = values;
        for (int64_t& value : less) --value;
        return node("Add", {concat_of(less), added});
      }
      case 5: {
        const int64_t last = static_cast<int64_t>(values.size());
        const std::string data =
            input(integers(values), 0, *std::ranges::max_element(values) + 1, 0);
        return last > 0 ? data : "";
      }
      case 6: {  // a shape as it is
        if (std::ranges::min(values) < 0 || product(values) > kMostElements) return "";
        return node("Shape", {input(filled(Kind::f32, values, -9, 9), -9, 9, 0.6)});
      }
      case 7: {  // what exporters write for Expand: 1 instead of -1
        Dims open = values;
        open[rng_.below(open.size())] = -1;
        const std::string x = concat_of(open);
        const std::string is_open = node("Equal", {x, constant(-1)});
        return node("Where", {is_open, concat_of(values), x});
      }
      default: return concat_of(values);
    }
  }

  // ---- What takes them --------------------------------------------------------------------------

  void output(const std::string& name) {
    if (std::ranges::find(outputs_, name) != outputs_.end()) return;
    onnx::ValueInfoProto& info = *graph().add_output();
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(data_type_of(kind_of(name)));
    outputs_.push_back(name);
  }
  // If a node fails in the first run, all its results are reals.
  Kind kind_of(const std::string& name) const {
    return arrays_.contains(name) ? at(name).kind : Kind::f32;
  }
  int64_t wrong_at_times(int64_t value) {
    return may_fail_ && rng_.chance(0.5) ? value + rng_.between(1, 2) : value;
  }

  void target() {
    for (int attempt = 0; attempt < 8; ++attempt) {
      Names results = attempted_target(data_[rng_.below(data_.size())]);
      std::erase(results, "");
      if (results.empty()) continue;
      for (const std::string& name : results) {
        output(name);
        if (has_failed_) continue;
        if (at(name).kind == Kind::f32 && !at(name).values.empty()) data_.push_back(name);
        if (rng_.chance(0.3)) output(node("Shape", {name}));
      }
      return;
    }
  }
  Names attempted_target(const std::string& x) {
    switch (rng_.below(14)) {
      case 0:
      case 1:
      case 2: return {reshape(x)};
      case 3:
      case 4: return {expand(x)};
      case 5: return {slice(x)};
      case 6: return {tile(x)};
      case 7: return {node("ConstantOfShape", {sizes(random_dims(1, 3, 0, 4))})};
      case 8: return {pad(x)};
      case 9: return {resize(x)};
      case 10: return {range()};
      case 11: return split(x);
      case 12: return {gathered(x)};
      default: return {squeezed(x)};
    }
  }
  Dims random_dims(int64_t least_rank, int64_t most_rank, int64_t least, int64_t most) {
    Dims dims;
    const int64_t rank = rng_.between(least_rank, most_rank);
    for (int64_t i = 0; i < rank; ++i)
      dims.push_back(rng_.chance(0.8) ? rng_.between(std::max<int64_t>(least, 1), most)
                                      : rng_.between(least, most));
    return dims;
  }
  std::string reshape(const std::string& x) {
    const Dims& from = at(x).dims;
    int64_t rest = product(from);
    Dims dims;
    while (dims.size() < 3 && rng_.chance(0.7)) {
      Dims divisors;
      for (int64_t d = 1; d <= rest; ++d)
        if (rest % d == 0) divisors.push_back(d);
      if (divisors.empty()) break;
      dims.push_back(rng_.pick(divisors));
      rest /= dims.back();
    }
    dims.insert(dims.begin() + static_cast<int64_t>(rng_.below(dims.size() + 1)), rest);
    if (rng_.chance(0.3)) dims[rng_.below(dims.size())] = -1;
    const size_t kept = rng_.below(dims.size());
    if (kept < from.size() && dims[kept] == from[kept] && rng_.chance(0.3)) dims[kept] = 0;
    for (int64_t& dim : dims)
      if (dim > 0) dim = wrong_at_times(dim);
    return taker("Reshape", {x, sizes(dims)});
  }
  std::string expand(const std::string& x) {
    const Dims& from = at(x).dims;
    Dims dims = from;
    for (int64_t& dim : dims) {
      if (dim == 1 && rng_.chance(0.7))
        dim = rng_.between(rng_.chance(0.9) ? 1 : 0, 4);
      else if (rng_.chance(0.3))
        dim = 1;
      if (dim > 1) dim = wrong_at_times(dim);
    }
    if (from.size() > 1 && rng_.chance(0.2)) dims.erase(dims.begin());
    while (dims.size() < 4 && rng_.chance(0.3)) dims.insert(dims.begin(), rng_.between(1, 3));
    if (product(dims) * product(from) > 20 * kMostElements) return "";
    return taker("Expand", {x, sizes(dims)});
  }
  std::string slice(const std::string& x) {
    const Dims& from = at(x).dims;
    Dims axes, starts, ends, steps;
    for (size_t i = 0; i < from.size(); ++i) {
      if (rng_.chance(0.4)) continue;
      axes.push_back(static_cast<int64_t>(i));
      const bool down = rng_.chance(0.2);
      const int64_t dim = from[i], low = rng_.between(0, std::max<int64_t>(dim - 1, 0));
      const int64_t high = rng_.chance(0.7) ? rng_.between(low, dim) : rng_.between(0, dim + 3);
      steps.push_back(down ? -rng_.between(1, 2) : rng_.between(1, 2));
      starts.push_back(down ? high : low);
      ends.push_back(down ? low - (rng_.chance(0.3) ? 100 : 1) : high);
      if (ends.back() == -1) ends.back() = -100;
    }
    if (axes.empty()) return "";
    Names operands = {x, sizes(starts), sizes(ends)};
    const bool has_steps =
        std::ranges::any_of(steps, [](int64_t step) { return step != 1; }) || rng_.chance(0.3);
    operands.push_back(rng_.chance(0.1) ? sizes(axes) : constant(integers(axes)));
    if (has_steps) operands.push_back(rng_.chance(0.1) ? sizes(steps) : constant(integers(steps)));
    return node("Slice", operands);
  }
  std::string tile(const std::string& x) {
    Dims repeats;
    for (size_t i = 0; i < at(x).dims.size(); ++i) repeats.push_back(rng_.between(1, 3));
    if (rng_.chance(0.1)) repeats[0] = 0;
    if (product(repeats) * product(at(x).dims) > kMostElements) return "";
    return node("Tile", {x, sizes(repeats)});
  }
  std::string pad(const std::string& x) {
    const Dims& from = at(x).dims;
    Dims pads;
    for (size_t i = 0; i < 2 * from.size(); ++i)
      pads.push_back(rng_.chance(0.5) ? 0 : rng_.between(rng_.chance(0.1) ? -1 : 0, 2));
    const char* modes[] = {"constant", "constant", "edge", "reflect"};
    return node("Pad", {x, sizes(pads)}, {{"mode", std::string(modes[rng_.below(4)])}});
  }
  std::string resize(const std::string& x) {
    Dims dims = at(x).dims, times(dims.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!rng_.chance(0.6)) continue;
      times[i] = rng_.between(1, 3);
      dims[i] *= times[i];
    }
    if (product(dims) > kMostElements) return "";
    const bool by_scales = rng_.chance(0.4);
    Names operands = {x, "", ""};
    if (by_scales)
      operands[2] = node("Cast", {sizes(times)}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
    else
      operands.push_back(sizes(dims));
    if (operands.back().empty()) return "";
    return node("Resize", operands,
                {{"mode", std::string("nearest")},
                 {"nearest_mode", std::string("floor")},
                 {"coordinate_transformation_mode", std::string("asymmetric")}});
  }
  std::string range() {
    const int64_t step = rng_.chance(0.6) ? 1 : rng_.between(-2, 3);
    if (step == 0) return "";
    const int64_t start = rng_.chance(0.6) ? 0 : rng_.between(0, 4);
    const int64_t limit = std::max<int64_t>(start + step * rng_.between(0, 5), 0);
    const auto number = [&](int64_t value) {
      return rng_.chance(0.4) ? constant(scalar(value)) : single(size(value));
    };
    const std::string y = node("Range", {number(start), number(limit), number(step)});
    if (y.empty() || rng_.chance(0.4)) return y;
    return node("Cast", {y}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  }
  Names split(const std::string& x) {
    const Dims& from = at(x).dims;
    if (from.empty()) return {};
    const size_t axis = rng_.below(from.size());
    const int64_t first = rng_.between(0, from[axis]);
    const Dims parts = {first, wrong_at_times(from[axis] - first)};
    return nodes("Split", {x, sizes(parts)}, {{"axis", static_cast<int64_t>(axis)}}, 2, true);
  }
  std::string gathered(const std::string& x) {
    const Dims& from = at(x).dims;
    if (from.empty()) return "";
    const size_t axis = rng_.below(from.size());
    if (from[axis] == 0) return "";
    Dims indices;
    for (int64_t i = rng_.between(1, 3); i > 0; --i)
      indices.push_back(rng_.between(0, from[axis] - 1));
    return node("Gather", {x, sizes(indices)}, {{"axis", static_cast<int64_t>(axis)}});
  }
  std::string squeezed(const std::string& x) {
    Dims ones, all;
    for (size_t i = 0; i < at(x).dims.size(); ++i) {
      all.push_back(static_cast<int64_t>(i));
      if (at(x).dims[i] == 1) ones.push_back(static_cast<int64_t>(i));
    }
    if (may_fail_ && !all.empty() && rng_.chance(0.5)) ones = {rng_.pick(all)};
    if (!ones.empty() && rng_.chance(0.6)) {
      const Dims axes = {rng_.pick(ones)};
      return taker("Squeeze", {x, rng_.chance(0.2) ? sizes(axes) : constant(integers(axes))});
    }
    if (all.size() > 3) return "";
    const Dims axes = {rng_.between(0, static_cast<int64_t>(all.size()))};
    return node("Unsqueeze", {x, rng_.chance(0.2) ? sizes(axes) : constant(integers(axes))});
  }

  // The rest of attempts: it does not matter if such a node has a result.
  void drop_unread_nodes() {
    std::set<std::string> read(outputs_.begin(), outputs_.end());
    std::vector<onnx::NodeProto> kept;
    for (int i = graph().node_size(); i-- > 0;) {
      const onnx::NodeProto& node = graph().node(i);
      if (std::ranges::none_of(node.output(),
                               [&](const auto& name) { return read.contains(name); }))
        continue;
      read.insert(node.input().begin(), node.input().end());
      kept.push_back(node);
    }
    graph().clear_node();
    for (auto node = kept.rbegin(); node != kept.rend(); ++node) *graph().add_node() = *node;
  }

  // ---- Runs -------------------------------------------------------------------------------------

  void runs() {
    Arrays first;
    for (const Input& input : file_inputs_) first[input.name] = at(input.name);
    file_.runs.push_back(evaluated(first));
    for (int i = 0; i < 2; ++i) file_.runs.push_back(evaluated(redrawn(first)));
  }
  // Some of the inputs, and sizes that a symbol names.
  Arrays redrawn(const Arrays& first) {
    std::map<std::string, int64_t> symbols = symbols_;
    for (auto& [name, value] : symbols)
      if (rng_.chance(0.4)) value = rng_.between(rng_.chance(0.1) ? 0 : 1, 5);
    Arrays arrays = first;
    for (const Input& input : file_inputs_) {
      Array& x = arrays[input.name];
      Dims dims = x.dims;
      for (size_t i = 0; i < dims.size(); ++i)
        if (!input.symbols[i].empty()) dims[i] = symbols.at(input.symbols[i]);
      if (dims == x.dims && rng_.chance(0.5)) continue;
      x = filled(x.kind, dims, std::min(input.least, input.most), input.most);
    }
    return arrays;
  }
  Run evaluated(Arrays inputs) {
    Run run = {inputs, Run::Verdict::legal, "", {}};
    Arrays arrays = std::move(inputs);
    arrays.insert(constants_.begin(), constants_.end());
    try {
      for (const onnx::NodeProto& node : graph().node()) shape_judge::run_node(node, arrays);
      for (const std::string& name : outputs_) run.outputs[name] = arrays.at(name);
    } catch (const shape_judge::Illegal& illegal) {
      run.verdict = Run::Verdict::illegal;
      run.why = illegal.why;
    } catch (const shape_judge::Unclear& unclear) {
      run.verdict = Run::Verdict::unclear;
      run.why = unclear.why;
    }
    return run;
  }

  Rng rng_;
  ShapeFile file_;
  std::vector<Input> file_inputs_;
  std::map<std::string, int64_t> symbols_;  // in the first run
  Arrays arrays_, constants_;               // in the first run
  Names data_, outputs_;
  bool may_fail_ = false, has_failed_ = false;
  int count_ = 0;
};

}  // namespace

ShapeFile random_file(uint64_t seed) { return Generator(seed).run(); }

}  // namespace hone::shape_files
