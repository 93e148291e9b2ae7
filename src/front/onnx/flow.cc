#include "front/onnx/flow.h"

#include <algorithm>
#include <bit>
#include <set>

#include "front/onnx/node.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "tensor/dim_compute.h"

namespace hone::onnx_io {

// Small enough to stand in every segment that uses it.
constexpr int64_t kMaxCopiedConstant = 4096;
// Integers that are learned beyond +-kShift are cut off: axes, sizes and the like are not.
constexpr int64_t kShift = int64_t{1} << 30;

Flow::Flow(Flow* outside, Kind kind, std::string name)
    : outside_(outside), kind_(kind), name_(std::move(name)) {
  names_ = outside != nullptr ? outside->names_ : std::make_shared<Names>();
  if (outside != nullptr) {
    guess = outside->guess;
    narrowed_ = outside->narrowed_;
  }
  start_part();
}

Flow::Flow(Names names, Kind kind, std::string name)
    : outside_(nullptr), kind_(kind), name_(std::move(name)) {
  names_ = std::make_shared<Names>(std::move(names));
  start_part();
}

void Flow::start_part() {
  Part& part = parts_.emplace_back();
  size_t number = parts_.size();
  part.builder =
      std::make_unique<Builder>(number == 1 ? name_ : fmt::format("{}_{}", name_, number));
  part.builder->on_failure([](const Error& error) { throw Failure{error}; });
  part.contents = std::make_unique<Contents>(part.builder->graph());
  part.narrowed = narrowed_;
}

std::string Flow::fresh_name(std::string_view wish) {
  std::string base(wish.empty() ? "value" : wish), name = base;
  for (int64_t& count = names_->counts[base]; !names_->taken.insert(name).second;)
    name = fmt::format("{}_{}", base, ++count + 1);
  return name;
}

std::string Flow::symbol_name(std::string_view wish) {
  std::string name;
  for (char c : wish.substr(0, kMaxSymbolName))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  const bool is_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  return is_name ? name : "n" + name;
}

Symbol Flow::fresh_symbol(std::string_view wish, int64_t most) {
  const std::string base = symbol_name(wish);
  std::string name = base;
  for (int64_t& count = names_->counts["symbol " + base]; !names_->symbols.insert(name).second;)
    name = fmt::format("{}_{}", base, ++count + 1);
  return Symbol::get(name, 0, most);
}

void Flow::bind(Symbol symbol, Slot* slot) { binders_.emplace(symbol.name(), slot); }

void Flow::bind_all(Slot& slot) {
  for (Dim dim : slot.type.dims())
    if (const std::optional<LinearDim> linear = as_linear(dim)) bind(linear->symbol, &slot);
}

bool Flow::has_symbols() const {
  return !binders_.empty() || (outside_ != nullptr && outside_->has_symbols());
}

Slot* Flow::binder(std::string_view symbol) const {
  for (const Flow* flow = this; flow != nullptr; flow = flow->outside_) {
    auto at = flow->binders_.find(symbol);
    if (at != flow->binders_.end()) return at->second;
  }
  return nullptr;
}

std::optional<Symbol> Flow::symbol(std::string_view name) const {
  const Slot* slot = binder(name);
  if (slot == nullptr) return {};
  for (Dim dim : seen(slot->type).dims())
    if (const std::optional<LinearDim> linear = as_linear(dim);
        linear && linear->symbol.name() == name)
      return linear->symbol;
  return {};
}

bool Flow::means(Symbol symbol) const { return this->symbol(symbol.name()) == symbol; }

void Flow::add_open_sizes(Dim dim) {
  for (Symbol symbol : dim.symbols()) names_->open_sizes.insert(symbol.name());
}

void Flow::add_measured(const Dims& sizes, const Measurable& reason) {
  for (Dim size : sizes)
    for (Symbol symbol : size.symbols()) names_->measured.emplace(symbol.name(), reason);
}

namespace {

Type bound(Type type, const Bindings& sizes) {
  Result<Type> narrowed = type.bind(sizes);
  if (!narrowed.ok()) throw Failure{std::move(narrowed).error()};
  return *narrowed;
}

}  // namespace

Type Flow::seen(Type type) const { return bound(type, narrowed_); }

Type Flow::seen_in(const Part& part, Type type) const { return bound(type, part.narrowed); }

Elements Flow::seen(Elements contents) const {
  for (Element& element : contents)
    if (element) element = seen(*element);
  return contents;
}

// ---- Slots -------------------------------------------------------------------------------------

Slot* Flow::parameter(std::string name, Type type) {
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this, .segment = segment(), .name = std::move(name), .type = type};
  slot.is_exported = true;
  slot.value = builder().parameter(kind_ == Kind::region ? "" : slot.name, type);
  if (kind_ != Kind::region) {
    parts_.back().inputs.push_back(slot.name);
    parts_.back().names.insert(slot.name);
    names_->taken.insert(slot.name);
  }
  bind_all(slot);
  return &slot;
}

Slot* Flow::external(std::string name, Type type, Elements contents) {
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this, .segment = SIZE_MAX, .name = std::move(name), .type = type};
  slot.is_exported = true;
  slot.contents = std::move(contents);
  bind_all(slot);
  return &slot;
}

Slot* Flow::constant(std::string name, Tensor tensor) {
  Slot& slot = slots_.emplace_back();
  slot.name = std::move(name);
  slot.type = tensor.type();
  slot.constant = std::move(tensor);
  return &slot;
}

Slot* Flow::define(std::string name, Value value) {
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this, .segment = segment(), .value = value, .name = name, .type = value.type()};
  Part& part = parts_.back();
  const Graph& graph = builder().graph();
  bool is_new = graph.name(value.id()).empty() && !name.empty();
  if (is_new && part.names.insert(name).second) value.named(name);
  return &slot;
}

void Flow::name_result(const Slot& slot) {
  if (slot.flow != this || slot.segment == SIZE_MAX) return;
  Part& part = parts_[slot.segment];
  Value value = slot.value;
  const Graph& graph = part.builder->graph();
  const bool is_input = graph.opcode(graph.producer(value.id())) == Opcode::parameter;
  if (is_input || !part.results.insert(value.id().index).second) return;
  if (part.names.insert(slot.name).second) value.named(slot.name);
}

// A value that is not a tensor has a type that says nothing: bool[].
Slot* Flow::sequence(std::string name, std::vector<Slot*> elements) {
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this,
          .segment = segment(),
          .name = std::move(name),
          .type = Type::scalar(DType::boolean)};
  slot.form = Slot::Form::sequence;
  slot.elements = std::move(elements);
  return &slot;
}

Slot* Flow::nothing(std::string name) {
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this,
          .segment = segment(),
          .name = std::move(name),
          .type = Type::scalar(DType::boolean)};
  slot.form = Slot::Form::nothing;
  return &slot;
}

Slot* Flow::define_cut(std::string name, Value value, int axis, Value count, Symbol size) {
  Dims dims = value.dims();
  dims[static_cast<size_t>(axis)] = size;
  Slot* slot = cut_output(std::move(name), value, axis, count, value.type().with_dims(dims));
  bind_all(*slot);
  return slot;
}

Slot* Flow::cut_output(std::string name, Value value, int axis, Value count, Type type) {
  Part& part = parts_.back();
  Slot& slot = slots_.emplace_back();
  slot = {.flow = this, .segment = SIZE_MAX, .name = fresh_name(name), .type = type};
  slot.is_exported = true;
  uint32_t whole = output(part, slot.name, value);
  uint32_t number = output(part, fresh_name(name + "_count"), count);
  part.crops.push_back({whole, static_cast<uint32_t>(axis), number});
  return &slot;
}

Value Flow::local_constant(const Tensor& tensor, const std::string& name) {
  bool is_free = !name.empty() && parts_.back().names.insert(name).second;
  return builder().constant(tensor, is_free ? name : "");
}

Value Flow::value_of(Slot& slot) {
  if (slot.form != Slot::Form::tensor)
    throw Failure{unsupported("'{}' is {} here; hone handles tensors", slot.name,
                              slot.form == Slot::Form::sequence ? "a sequence" : "no value")};
  if (slot.flow == this && slot.segment == segment()) return slot.value;
  Part& part = parts_.back();
  auto known = part.imported.find(&slot);
  if (known != part.imported.end()) return known->second;
  Value value = import_value(slot);
  parts_.back().imported.emplace(&slot, value);
  return value;
}

Value Flow::import_value(Slot& slot) {
  if (slot.flow == nullptr) return local_constant(slot.constant, slot.name);
  std::optional<Tensor> constant = slot.flow->constant_of(slot);
  if (constant) return local_constant(*constant, slot.name);
  Elements contents = seen(known(slot));
  Value value;
  if (kind_ == Kind::region) {
    Value outer = outside_->value_of(slot);
    const Graph& graph = outside_->builder().graph();
    NodeId producer = graph.producer(outer.id());
    if (graph.opcode(producer) == Opcode::constant)
      return local_constant(graph.constant(producer), slot.name);
    value = builder().parameter("", outer.type());
    captures_.push_back(&slot);
  } else {
    std::string name = slot.flow->export_name(slot);
    bool is_free = parts_.back().names.insert(name).second;
    value = builder().parameter(is_free ? name : "", seen(slot.type));
    parts_.back().inputs.push_back(name);
  }
  if (!contents.empty()) this->contents().assume(value.id(), std::move(contents));
  return value;
}

std::optional<Tensor> Flow::constant_of(const Slot& slot) {
  if (!slot.is_tensor() || slot.segment == SIZE_MAX) return {};
  Part& part = parts_[slot.segment];
  if (part.contents == nullptr) return {};
  std::optional<Tensor> constant = part.contents->constant(slot.value.id());
  return constant && constant->elements() <= kMaxCopiedConstant ? constant : std::nullopt;
}

Elements Flow::known(const Slot& slot) const {
  const Dims* sizes = learned(slot);
  if (sizes == nullptr || is_real(slot.type.dtype()))
    return slot.flow != nullptr ? slot.flow->known_own(slot) : Elements();
  Elements elements;
  for (Dim size : *sizes) elements.push_back(size - kShift);
  return elements;
}

Elements Flow::known_own(const Slot& slot) const {
  if (!slot.contents.empty()) return slot.contents;
  if (!slot.is_tensor() || slot.segment == SIZE_MAX) return {};
  const Part& part = parts_[slot.segment];
  return part.contents != nullptr ? part.contents->known_elements(slot.value.id()) : Elements();
}

// ---- Segments ----------------------------------------------------------------------------------

uint32_t Flow::output(Part& part, const std::string& name, Value value) {
  part.outputs.emplace_back(name, value);
  return static_cast<uint32_t>(part.outputs.size() - 1);
}

std::string Flow::export_name(Slot& slot) {
  HONE_CHECK(slot.flow == this, "slot '{}' belongs to another flow", slot.name);
  if (slot.is_exported) return slot.name;
  slot.name = fresh_name(slot.name);
  output(parts_[slot.segment], slot.name, slot.value);
  slot.is_exported = true;
  return slot.name;
}

void Flow::cut() {
  HONE_CHECK(kind_ != Kind::region, "a region has one segment");
  start_part();
}

Dims Flow::cut_for_sizes(const std::vector<Measured>& measured, std::vector<Slot*>& checked) {
  Dims sizes;
  for (const Measured& size : measured) {
    // A tensor without elements, as long as the size, carries it into the next segment's types.
    Value room = builder().full(DType::boolean, {size.most, 0}, 0);
    if (size.wanted) {
      const Type type = room.type().with_dims(Dims{*size.wanted, 0});
      checked.push_back(cut_output(size.what, room, 0, size.scalar, type));
      sizes.push_back(*size.wanted);
      continue;
    }
    std::string_view wish = builder().graph().name(size.scalar.id());
    Symbol symbol = fresh_symbol(wish.empty() ? "size" : wish, size.most);
    define_cut(symbol.name() + "_room", room, 0, size.scalar, symbol);
    sizes.emplace_back(symbol);
  }
  cut();
  parts_.back().checked = checked;
  return sizes;
}

void Flow::cut_and_narrow(const Bindings& sizes, std::vector<Slot*>& checked) {
  for (auto& [name, dim] : narrowed_) dim = dim.bind(sizes);
  for (const auto& [name, dim] : sizes) {
    narrowed_.insert_or_assign(name, dim);
    // The values that give the symbol and those that stand for it: each could be solved from one of
    // them.
    if (Slot* slot = binder(name)) checked.push_back(slot);
    for (Symbol symbol : dim.symbols())
      if (Slot* slot = binder(symbol.name())) checked.push_back(slot);
  }
  cut();
  parts_.back().checked = checked;
}

void Flow::constrain(Constraint constraint) {
  builder().forgive();
  std::vector<Slot*> none;
  cut_and_narrow(constraint.sizes, none);
  constraints_.push_back(std::move(constraint));
}

namespace {

constexpr int64_t kMaxLearned = 64;

int64_t bits_of(double number) { return std::bit_cast<uint32_t>(static_cast<float>(number)); }

}  // namespace

bool Flow::can_learn(Type type) {
  return type.is_static() && type.static_elements() <= kMaxLearned && type.dtype() != DType::f64;
}

void Flow::learn(Slot& slot) {
  Value value = value_of(slot);
  bool is_number = is_real(value.dtype());
  int64_t count = slot.type.static_elements();
  Value flat = reshape(value, {count});
  if (is_number) {
    Value bits = builder().op(Opcode::bitcast, {cast(flat, DType::f32)}, {{"dtype", DType::u32}});
    flat = cast(bits, DType::i64);
  } else {
    flat = cast(flat, DType::i64);
    flat = minimum(maximum(flat, static_cast<double>(-kShift)), static_cast<double>(kShift));
    flat = flat + static_cast<double>(kShift);
  }
  int64_t most = is_number ? int64_t{UINT32_MAX} : 2 * kShift;
  std::vector<Measured> scalars;
  for (int64_t i = 0; i < count; ++i)
    scalars.push_back({squeeze(hone::slice(flat, 0, i, i + 1), 0), most});
  std::vector<Slot*> none;
  Dims sizes = cut_for_sizes(scalars, none);
  for (Dim size : sizes) names_->learned.emplace(size.symbols().front().name(), is_number);
  learned_.insert_or_assign(&slot, std::move(sizes));
}

const Dims* Flow::learned(const Slot& slot) const {
  for (const Flow* flow = this; flow != nullptr; flow = flow->outside_)
    if (auto at = flow->learned_.find(&slot); at != flow->learned_.end()) return &at->second;
  return nullptr;
}

std::optional<Tensor> Flow::learned_tensor(Type type, const Dims& learned) {
  Ints numbers;
  std::vector<double> reals;
  for (Dim size : learned) {
    if (!size.is_static()) return {};
    numbers.push_back(size.value() - kShift);
    reals.push_back(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(size.value()))));
  }
  return is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                               : Tensor::from_integers(type, numbers);
}

Ints Flow::likely_values(Symbol symbol) const {
  auto at = names_->learned.find(symbol.name());
  if (at == names_->learned.end()) return {};
  if (!at->second) return {kShift + 1, kShift, kShift + 2, kShift - 1, kShift + 4};
  return {bits_of(1), bits_of(2), bits_of(0.5), bits_of(0), bits_of(4)};
}

void Flow::append(Segment segment) {
  Part& part = parts_.emplace_back();
  part.other = std::move(segment);
  start_part();
}

namespace {

bool is_bound(const Graph& graph, Symbol symbol) {
  for (ValueId input : graph.inputs())
    for (Dim dim : graph.type(input).dims())
      if (const std::optional<LinearDim> linear = as_linear(dim);
          linear && linear->symbol == symbol)
        return true;
  return false;
}

// Without the parameters that nothing reads and their names in `inputs`.
Result<Graph> without_unused(const Graph& graph, std::vector<std::string>& inputs) {
  Users users(graph);
  GraphCopy copy(graph);
  std::vector<std::string> kept;
  size_t next = 0;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::parameter) {
      const std::string& name = inputs[next++];
      ValueId v = graph.result(n);
      if (users.of(v).empty() && !users.is_output(v)) continue;
      kept.push_back(name);
    }
    HONE_TRY(copy.node(n));
  }
  inputs = std::move(kept);
  return copy.finish();
}

}  // namespace

Result<Segment> Flow::finish_part(Part& part, bool keeps_inputs) {
  if (part.other) return std::move(*part.other);
  std::vector<Value> values;
  GraphSegment segment;
  for (auto& [name, value] : part.outputs) {
    segment.outputs.push_back(name);
    values.push_back(value);
  }
  Graph graph = HONE_TRY(remove_dead_code(HONE_TRY(part.builder->finish(values))));
  if (!keeps_inputs) graph = HONE_TRY(without_unused(graph, part.inputs));
  auto add = [&](Slot& slot) {
    std::string name = slot.flow->export_name(slot);
    graph.add_parameter(seen_in(part, slot.type), part.names.insert(name).second ? name : "");
    part.inputs.push_back(name);
  };
  std::vector<Symbol> symbols = graph.symbols();
  for (Slot* slot : part.checked)
    for (Dim dim : seen_in(part, slot->type).dims())
      std::ranges::copy(dim.symbols(), std::back_inserter(symbols));
  for (Symbol symbol : symbols) {
    if (is_bound(graph, symbol)) continue;
    Slot* slot = binder(symbol.name());
    HONE_CHECK(slot != nullptr, "nothing binds symbol {}", symbol.name());
    add(*slot);
  }
  // Behind what binds the symbols of their types.
  for (Slot* slot : part.checked)
    if (std::ranges::find(part.inputs, slot->name) == part.inputs.end()) add(*slot);
  segment.graph = std::make_shared<const Graph>(std::move(graph));
  segment.inputs = std::move(part.inputs);
  segment.crops = std::move(part.crops);
  return Segment{std::move(segment)};
}

Result<Body> Flow::finish(const std::vector<Slot*>& results) {
  Body body;
  for (Slot* slot : results) {
    const bool is_own = slot->flow != nullptr && slot->flow->kind() != Kind::region;
    if (!is_own || !slot->is_tensor()) slot = define(slot->name, value_of(*slot));
    body.results.push_back(slot->flow->export_name(*slot));
  }
  body.segments = HONE_TRY(finish_parts());
  return body;
}

Result<Body> Flow::finish_as(const std::vector<Slot*>& results,
                             const std::vector<std::string>& names) {
  for (size_t i = 0; i < results.size(); ++i) {
    Value value = value_of(*results[i]);
    output(parts_.back(), names[i], value);
  }
  return Body{HONE_TRY(finish_parts()), names};
}

Result<std::vector<Segment>> Flow::finish_parts() {
  std::vector<Segment> segments;
  // From the back: what a segment reads, an earlier one has to give.
  for (size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    bool is_all = kind_ == Kind::model && parts_.size() == 1;
    if (!part.other && part.outputs.empty() && !is_all) continue;
    segments.push_back(HONE_TRY(finish_part(part, is_all)));
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

Result<GraphRef> Flow::finish_region(const std::vector<Value>& results) {
  return std::make_shared<const Graph>(
      HONE_TRY(remove_dead_code(HONE_TRY(builder().finish(results)))));
}

}  // namespace hone::onnx_io
