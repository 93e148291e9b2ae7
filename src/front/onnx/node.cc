#include "front/onnx/node.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/planted.h"
#include "base/text.h"
#include "front/onnx/flow.h"
#include "front/onnx/frame.h"
#include "front/onnx/strings.h"

namespace hone::onnx_io {
namespace {

using AttributeType = onnx::AttributeProto::AttributeType;

// Sizes in one list that depend on data; each takes ops of its own.
constexpr int64_t kMostMeasured = 256;

std::string_view kind_name(AttributeType type) {
  switch (type) {
    case onnx::AttributeProto::FLOAT: return "a number";
    case onnx::AttributeProto::INT: return "an integer";
    case onnx::AttributeProto::STRING: return "a string";
    case onnx::AttributeProto::TENSOR: return "a tensor";
    case onnx::AttributeProto::GRAPH: return "a graph";
    case onnx::AttributeProto::FLOATS: return "a list of numbers";
    case onnx::AttributeProto::INTS: return "a list of integers";
    case onnx::AttributeProto::STRINGS: return "a list of strings";
    default: return "of another kind";
  }
}

// The number that the float's shortest text names: 0.1, not 0.100000001490116, as was written.
double as_written(float number) {
  double value = static_cast<double>(number);
  if (!std::isfinite(value)) return value;
  Result<double> written = parse_double(format_float(number));
  return written.ok() ? *written : value;
}

}  // namespace

Node::Node(Frame& frame, Flow& flow, const onnx::NodeProto& proto, int version)
    : frame_(frame), flow_(flow), proto_(proto), version_(version) {}

Builder& Node::builder() { return flow_.builder(); }

std::string Node::describe() const {
  std::string name = proto_.name();
  if (name.empty() && proto_.output_size() > 0) name = proto_.output(0);
  return fmt::format("node '{}' ({})", name, proto_.op_type());
}

// ---- Operands ----------------------------------------------------------------------------------

bool Node::has(size_t i) {
  asked_operands_ = std::max(asked_operands_, i + 1);
  if (i >= inputs() || proto_.input(static_cast<int>(i)).empty()) return false;
  return frame_.find_optional(proto_.input(static_cast<int>(i))) != nullptr;
}

Slot& Node::slot(size_t i) {
  if (!has(i)) bad("operand {} is missing", i);
  return *frame_.find(proto_.input(static_cast<int>(i)));
}

Value Node::in(size_t i) { return flow_.value_of(slot(i)); }

Value Node::optional(size_t i) { return has(i) ? in(i) : Value(); }

std::vector<Value> Node::all_inputs() {
  std::vector<Value> values;
  for (size_t i = 0; i < inputs(); ++i) values.push_back(in(i));
  return values;
}

bool Node::holds_strings(size_t i) const {
  return !frame_.is_function() && i < inputs() &&
         frame_.file().strings().holds(proto_.input(static_cast<int>(i)));
}

void Node::ignore_operand(size_t i) { has(i); }

void Node::check_operands() const {
  size_t given = inputs();
  while (given > 0 && proto_.input(static_cast<int>(given - 1)).empty()) --given;
  if (given > asked_operands_)
    throw Failure{
        hone::unsupported("{} operands are given, at most {} are known", given, asked_operands_)};
}

// ---- What is known of operands -----------------------------------------------------------------

std::optional<Dims> Node::known(size_t i) {
  Value value = in(i);
  if (!is_integer(value.dtype()) && value.dtype() != DType::boolean)
    bad("operand {} is {}, must have integers", i, value.type().to_string());
  return flow_.contents().of(value.id());
}

Dims Node::sizes(size_t i, int64_t most) {
  if (std::optional<Dims> elements = known(i)) return *elements;
  Value value = in(i);
  if (value.rank() > 1 || !value.type().is_static())
    unsupported("operand {} is {}: a list of sizes of unknown length", i, value.type().to_string());
  if (value.type().static_elements() > kMostMeasured)
    unsupported("operand {} is {}: at most {} sizes may depend on data", i,
                value.type().to_string(), kMostMeasured);
  std::vector<Number> scalars;
  for (int64_t at = 0; at < value.type().static_elements(); ++at)
    scalars.emplace_back(value.rank() == 0 ? value : squeeze(slice(value, 0, at, at + 1), 0));
  return sizes(scalars, most);
}

void Node::refuse_endless(size_t i) {
  if (!has(i)) return;
  std::optional<Tensor> numbers = maybe_constant(i);
  if (!numbers || !is_integer(numbers->dtype())) return;
  for (int64_t at = 0; at < std::min(numbers->elements(), Contents::kMaxElements); ++at)
    if (std::abs(static_cast<double>(numbers->integer_at(at))) >= 0x1p62)
      bad("operand {} holds {}", i, numbers->integer_at(at));
}

Ints Node::integers(size_t i) {
  std::optional<Dims> elements = known(i);
  if (!elements) need_value(i);
  Ints numbers;
  for (Dim element : *elements) {
    if (!element.is_static())
      unsupported("operand {} depends on sizes or on data; it must be a number", i);
    numbers.push_back(element.value());
  }
  return numbers;
}

void Node::need_value(size_t i) {
  refuse_endless(i);
  Slot& wanted = slot(i);
  if (flow_.learned(wanted) != nullptr || !Flow::can_learn(wanted.type))
    unsupported("operand {} depends on data; it must be known before", i);
  throw NeedValue{&wanted};
}

std::optional<Tensor> Node::maybe_constant(size_t i) {
  return flow_.contents().constant(in(i).id());
}

Tensor Node::constant(size_t i) {
  std::optional<Tensor> tensor = maybe_constant(i);
  if (!tensor) need_value(i);
  return *tensor;
}

std::vector<double> Node::reals(size_t i) {
  Tensor tensor = constant(i);
  if (tensor.elements() > Contents::kMaxElements)
    over_limit("operand {} has {} elements, at most {} are read", i, tensor.elements(),
               Contents::kMaxElements);
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return numbers;
}

double Node::real(size_t i, double fallback) {
  if (!has(i)) return fallback;
  Tensor tensor = constant(i);
  if (tensor.elements() != 1) bad("operand {} has {} elements, must have 1", i, tensor.elements());
  return tensor.real_at(0);
}

Dim Node::size(Value scalar, int64_t most) { return sizes({scalar}, most)[0]; }

Element Node::known_size(const Number& number) {
  if (number.known) return number.known;
  const Value scalar = number.value;
  if (scalar.rank() != 0 || !is_integer(scalar.dtype()))
    bad("a size is {}, must be an integer scalar", scalar.type().to_string());
  if (std::optional<Dims> known = flow_.contents().of(scalar.id())) return known->front();
  if (std::optional<Tensor> constant = flow_.contents().constant(scalar.id()))
    over_limit("a size is {}", constant->integer_at(0));
  return std::nullopt;
}

Dims Node::sizes(const std::vector<Number>& numbers, int64_t most, std::optional<Dim> product) {
  Dims found;
  std::vector<Value> unknown;
  Dim known = 1;
  for (const Number& number : numbers) {
    if (next_size_ == sizes_.size()) sizes_.push_back(known_size(number));
    const Element& size = sizes_[next_size_++];
    if (!size) {
      unknown.push_back(number.value);
      continue;
    }
    found.push_back(flow_.seen(*size));
    known *= found.back();
  }
  if (unknown.empty()) return found;
  NeedSizes need = {.sizes = {}, .reason = reason_};
  for (Value scalar : unknown) need.sizes.push_back({scalar, most});
  const bool is_last = product && unknown.size() == 1 && known.range().low > 0;
  if (std::optional<Dim> rest = is_last ? product->divided_by(known) : std::nullopt) {
    need.sizes[0] = expected(unknown[0], *rest, "a size");
  } else if (product) {
    Value all = size_value(builder(), known);
    for (Value scalar : unknown) all = all * cast(scalar, DType::i64);
    need.sizes.push_back(expected(all, *product, kProduct));
    agreed_.emplace(kProduct);
  }
  throw need;
}

void Node::resolve(const Dims& sizes) {
  auto next = sizes.begin();
  for (Element& size : sizes_)
    if (!size)
      size = *next++;
    else
      size = HONE_PLANT(lost_constant, *size, size->is_static() ? sizes.front() : *size);
}

// ---- Sizes that have to fit --------------------------------------------------------------------

namespace {

bool is_never_zero(Dim x) { return x.range().low > 0 || x.range().high < 0; }

// The value that a symbol of data must have so that the difference is 0; null if no dim says it.
std::optional<std::pair<std::string, Dim>> solved(const Flow::Names& names, Dim difference) {
  for (Symbol symbol : difference.symbols()) {
    const bool is_given =
        names.open_sizes.contains(symbol.name()) || names.learned.contains(symbol.name());
    if (is_given || symbol.min() > 0) continue;
    const Dim rest = difference.bind({{symbol.name(), 0}});
    Dim value;
    if (difference == rest + symbol)
      value = Dim(0) - rest;
    else if (difference == rest - symbol)
      value = rest;
    else
      continue;
    const bool is_size = value.range().low >= 0 && check_binding(symbol, value).ok();
    if (is_size) return std::pair(symbol.name(), value);
  }
  return std::nullopt;
}

}  // namespace

// Under a name that says what did not fit, and where.
Flow::Measured Node::expected(Value size, Dim wanted, std::string_view what) const {
  // Room for other sizes, too, so that the message is about them.
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t most = std::clamp(wanted.range().high, kMostSize, kMost);
  return {size, most, wanted, fmt::format("{} of {}", what, describe())};
}

void Node::must_be(Dim size, Dim wanted, std::string_view what, bool or_one) {
  if (size == wanted || (or_one && size.is(1)) || agreed_.contains(what)) return;
  const Dim difference = size - wanted;
  const bool never = is_never_zero(difference) && (!or_one || is_never_zero(size - 1));
  // One open size has a range for which it fits, which import solves.
  const bool is_range = !or_one && difference.symbols().size() == 1 && !depends_on_data(difference);
  if (never || is_range) {
    demand(or_one ? Demand::Kind::stretch : Demand::Kind::equal, size, wanted);
    bad("{} is {}, must be {}{}", what, size.to_string(), wanted.to_string(),
        or_one ? " or 1" : "");
  }
  if (!or_one)
    if (auto value = solved(flow_.names(), difference)) throw NeedNarrowed{{*value}};
  Value found = size_value(builder(), size);
  if (or_one) found = select(compare("eq", found, 1), size_value(builder(), wanted), found);
  must_be(found, wanted, what);
}

std::optional<Dim> Node::divided(Dim size, Dim parts) {
  std::optional<Dim> part = parts.is(0) ? std::nullopt : size.divided_by(parts);
  if (!part) demand(Demand::Kind::multiple, size, parts);
  return part;
}

bool Node::depends_on_data(Dim size) const {
  return std::ranges::any_of(size.symbols(), [&](Symbol symbol) {
    return !flow_.names().open_sizes.contains(symbol.name());
  });
}

void Node::must_be(Value size, Dim wanted, std::string_view what) {
  if (agreed_.emplace(what).second) throw NeedSizes{{expected(size, wanted, what)}};
}

// ---- Attributes --------------------------------------------------------------------------------

const onnx::AttributeProto* Node::attribute(std::string_view name) {
  if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) asked_.emplace_back(name);
  for (const onnx::AttributeProto& attribute : proto_.attribute())
    if (attribute.name() == name) return frame_.resolve(attribute);
  return nullptr;
}

bool Node::has_attribute(std::string_view name) { return attribute(name) != nullptr; }
void Node::ignore(std::string_view name) { attribute(name); }

const onnx::AttributeProto* Node::typed(std::string_view name, AttributeType type) {
  const onnx::AttributeProto* found = attribute(name);
  if (found == nullptr) return nullptr;
  // Files of IR version 1 may leave the kind out.
  AttributeType kind = found->type() != onnx::AttributeProto::UNDEFINED ? found->type() : type;
  if (kind != type) bad("attribute '{}' is {}, must be {}", name, kind_name(kind), kind_name(type));
  return found;
}

int64_t Node::integer(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::INT);
  if (found == nullptr) bad("attribute '{}' is missing", name);
  return found->i();
}

int64_t Node::integer(std::string_view name, int64_t fallback) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::INT);
  return found != nullptr ? found->i() : fallback;
}

double Node::real(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::FLOAT);
  if (found == nullptr) bad("attribute '{}' is missing", name);
  return as_written(found->f());
}

double Node::real(std::string_view name, double fallback) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::FLOAT);
  return found != nullptr ? as_written(found->f()) : fallback;
}

std::string Node::word(std::string_view name, std::string_view fallback) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::STRING);
  return found != nullptr ? found->s() : std::string(fallback);
}

Ints Node::ints(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::INTS);
  return found != nullptr ? Ints(found->ints().begin(), found->ints().end()) : Ints();
}

std::vector<double> Node::reals(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::FLOATS);
  if (found == nullptr) return {};
  std::vector<double> numbers;
  for (float number : found->floats()) numbers.push_back(as_written(number));
  return numbers;
}

std::vector<std::string> Node::words(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::STRINGS);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

int64_t Node::place_of(std::string_view text) {
  const std::optional<int64_t> place = frame_.file().strings().place(text);
  if (!place || frame_.is_function()) unsupported("strings in a local function");
  return *place;
}

Ints Node::strings(std::string_view name) {
  Ints places;
  for (const std::string& text : words(name)) places.push_back(place_of(text));
  return places;
}

int64_t Node::string(std::string_view name, std::string_view fallback) {
  return place_of(word(name, fallback));
}

Tensor Node::tensor(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::TENSOR);
  if (found == nullptr) bad("attribute '{}' is missing", name);
  if (found->t().data_type() == onnx::TensorProto::STRING && frame_.is_function())
    unsupported("strings in a local function");
  return take(frame_.file().tensor(found->t()));
}

const onnx::GraphProto& Node::graph(std::string_view name) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::GRAPH);
  if (found == nullptr) bad("attribute '{}' is missing", name);
  return found->g();
}

DType Node::dtype(std::string_view name, DType fallback) {
  const onnx::AttributeProto* found = typed(name, onnx::AttributeProto::INT);
  if (found == nullptr) return fallback;
  if (found->i() < 0 || found->i() > INT32_MAX) bad("attribute '{}' is {}", name, found->i());
  return take(dtype_of(static_cast<int32_t>(found->i())));
}

int Node::axis(std::string_view name, int rank, int64_t fallback) {
  return axis_in(integer(name, fallback), rank);
}

int Node::axis_in(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) bad("axis {} is outside rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Ints Node::axes_in(Ints axes, int rank) {
  for (int64_t& axis : axes) axis = axis_in(axis, rank);
  std::sort(axes.begin(), axes.end());
  auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) bad("axis {} is named twice", *twice);
  return axes;
}

void Node::check_attributes() const {
  std::unordered_set<std::string_view> names;
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    // A hint for evaluation in place. Ops had it before version 6, and files keep it.
    if (attribute.name() == "consumed_inputs") continue;
    if (std::find(asked_.begin(), asked_.end(), attribute.name()) == asked_.end())
      throw Failure{hone::unsupported("attribute '{}' is not known", attribute.name())};
    if (!names.insert(attribute.name()).second)
      throw Failure{bad_input("attribute '{}' is given twice", attribute.name())};
  }
}

// ---- Results -----------------------------------------------------------------------------------

bool Node::wants(size_t i) const {
  return i < outputs() && !proto_.output(static_cast<int>(i)).empty();
}

void Node::out(size_t i, Value value) {
  if (i >= outcome_.values.size()) outcome_.values.resize(i + 1);
  outcome_.values[i] = value;
}

void Node::out_all(const std::vector<Value>& values) {
  for (size_t i = 0; i < values.size(); ++i) out(i, values[i]);
}

void Node::out(size_t i, Slot* slot) {
  if (i >= outcome_.slots.size()) outcome_.slots.resize(i + 1);
  outcome_.slots[i] = slot;
}

void Node::out_cut(size_t i, Value value, int axis, Value count) {
  out(i, value);
  outcome_.cuts.push_back({i, axis, count});
}

void Node::require_rank(Value v, std::string_view what, int least, int most) {
  if (v.rank() >= least && v.rank() <= most) return;
  if (least == most) bad("{} is {}, must have rank {}", what, v.type().to_string(), least);
  if (most < kMaxRank)
    bad("{} is {}, must have rank {} to {}", what, v.type().to_string(), least, most);
  bad("{} is {}, must have rank {} or more", what, v.type().to_string(), least);
}

Node::Outcome Node::map(const std::function<void(Node&)>& mapping) {
  outcome_ = {};
  next_size_ = 0;
  mapping(*this);
  check_attributes();
  check_operands();
  for (size_t i = 0; i < outputs(); ++i)
    if (wants(i) && (i >= outcome_.values.size() || !outcome_.values[i]) &&
        (i >= outcome_.slots.size() || outcome_.slots[i] == nullptr))
      unsupported("result {} ('{}') is not supported", i, proto_.output(static_cast<int>(i)));
  return std::move(outcome_);
}

}  // namespace hone::onnx_io
