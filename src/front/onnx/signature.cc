#include "front/onnx/signature.h"

#include <algorithm>

#include "base/text.h"
#include "front/onnx/node.h"

namespace hone::onnx_io {
namespace {

Failure failure_in(const onnx::ValueInfoProto& info, Error error) {
  return {std::move(error).within(fmt::format("value '{}'", info.name()))};
}

// The tensor type; strings, sequences and the like are refused.
const onnx::TypeProto::Tensor& tensor_type(const onnx::ValueInfoProto& info) {
  const onnx::TypeProto& type = info.type();
  auto refuse = [&](std::string_view what) -> Failure {
    return failure_in(info, unsupported("the value is {}; hone handles tensors", what));
  };
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType: return type.tensor_type();
    case onnx::TypeProto::kSequenceType: throw refuse("a sequence");
    case onnx::TypeProto::kMapType: throw refuse("a map");
    case onnx::TypeProto::kOptionalType: throw refuse("an optional");
    case onnx::TypeProto::kSparseTensorType: throw refuse("a sparse tensor");
    default: throw failure_in(info, bad_input("its type is not given"));
  }
}

// The type of the values, if it is a sequence of maps: hone has their tensor, a row for each map.
const onnx::TypeProto::Tensor* mapped_type(const onnx::ValueInfoProto& info) {
  const onnx::TypeProto& element = info.type().sequence_type().elem_type();
  if (!element.has_map_type()) return nullptr;
  return &element.map_type().value_type().tensor_type();
}

bool is_string(const onnx::ValueInfoProto& info) {
  return info.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
}

DType element_type(const onnx::ValueInfoProto& info) {
  if (is_string(info)) return DType::i64;  // places in a table: strings.h
  const onnx::TypeProto::Tensor* mapped = mapped_type(info);
  Result<DType> dtype = dtype_of((mapped != nullptr ? *mapped : tensor_type(info)).elem_type());
  if (!dtype.ok()) throw failure_in(info, std::move(dtype).error());
  return *dtype;
}

// So large that no size of a real model is above, and so small that the dims of one tensor can be
// multiplied.
int64_t most_for(int unknown_dims) {
  if (unknown_dims <= 2) return int64_t{1} << 24;
  if (unknown_dims == 3) return int64_t{1} << 18;  // a batch of sound has long rows
  return int64_t{1} << std::max(48 / unknown_dims, 4);
}

}  // namespace

std::set<std::string> initialized_names(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    names.insert(tensor.values().name());
  return names;
}

Dim InputTypes::dim(const onnx::TensorShapeProto::Dimension& dim, const std::string& input,
                    int axis, int unknown) {
  if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
  // A negative number is how some exporters write "unknown".
  std::string name = dim.dim_param();
  if (name.empty())
    return bound_or(flow_.fresh_symbol(fmt::format("{}_{}", input, axis), most_for(unknown)));
  auto bound = options_.dims.find(name);
  if (bound == options_.dims.end()) {
    if (std::optional<Dim> dim = expression(name, unknown)) return *dim;
    return named(name, unknown);
  }
  used_.insert(name);
  return bound->second;
}

Dim InputTypes::named(const std::string& name, int unknown) {
  auto [at, is_new] = named_.emplace(name, Dim());
  if (is_new) at->second = bound_or(flow_.fresh_symbol(name, most_for(unknown)));
  return at->second;
}

InputTypes::InputTypes(Flow& flow, const ImportOptions& options, const std::vector<Symbol>& symbols,
                       const Bindings& narrowed)
    : flow_(flow), options_(options), symbols_(symbols), narrowed_(narrowed) {
  for (Symbol symbol : symbols) {
    flow_.reserve_symbol(symbol);
    const Dim bound = bound_or(symbol);
    named_.emplace(symbol.name(), bound);
    if (options.dims.contains(symbol.name())) given_.emplace(symbol.name(), bound);
  }
}

std::optional<Dim> InputTypes::expression(const std::string& text, int unknown) {
  if (is_symbol_name(text) || named_.contains(text)) return std::nullopt;
  std::vector<Symbol> scope = symbols_;
  for (const std::string& name : plain_)
    if (std::ranges::find(symbols_, name, &Symbol::name) == symbols_.end())
      scope.push_back(Symbol::get(name, 0, kMaxElements));
  const Result<Dim> dim = parse_dim(text, scope);
  if (!dim.ok()) return std::nullopt;
  Bindings bindings;
  for (Symbol symbol : dim->symbols()) {
    const Dim bound = named(symbol.name(), unknown);
    if (Status fits = check_binding(symbol, bound); !fits.ok())
      throw Failure{std::move(fits).error()};
    bindings.emplace(symbol.name(), bound);
  }
  return dim->bind(bindings);
}

// Users see the names of symbols. They differ from the names in the file where those cannot name a
// symbol.
Dim InputTypes::bound_or(Symbol symbol) {
  auto bound = options_.dims.find(symbol.name());
  if (bound == options_.dims.end()) {
    const Dim open = Dim(symbol).bind(narrowed_);
    flow_.add_open_sizes(open);
    return open;
  }
  used_.insert(symbol.name());
  return bound->second;
}

std::optional<Dim> InputTypes::wanted_symbol(const std::string& input, int axis, size_t rank) {
  auto wanted = options_.symbols.find(input);
  if (wanted == options_.symbols.end()) return std::nullopt;
  used_.insert(input);
  const std::vector<std::string>& names = wanted->second;
  if (names.size() != rank)
    throw Failure{usage_error("input '{}' has {} dims, {} names of symbols are given", input, rank,
                              names.size())};
  const std::string& name = names[static_cast<size_t>(axis)];
  if (name.empty()) return std::nullopt;
  return named(name, static_cast<int>(rank));
}

const Tensor* InputTypes::constant(const std::string& name) const {
  auto found = options_.constants.find(name);
  return found != options_.constants.end() ? &found->second : nullptr;
}

std::optional<Ints> InputTypes::given_shape(const onnx::ValueInfoProto& info) {
  if (const Tensor* tensor = constant(info.name())) {
    used_.insert(info.name());
    return tensor->type().static_dims();
  }
  auto given = options_.shapes.find(info.name());
  if (given == options_.shapes.end()) return std::nullopt;
  used_.insert(info.name());
  return given->second;
}

Dims InputTypes::declared_dims(const onnx::ValueInfoProto& info) {
  const auto& declared = info.type().tensor_type().shape().dim();
  int unknown = static_cast<int>(std::count_if(declared.begin(), declared.end(), [](const auto& d) {
    return !d.has_dim_value() || d.dim_value() < 0;
  }));
  Dims dims;
  for (int axis = 0; axis < declared.size(); ++axis) {
    std::optional<Dim> wanted =
        wanted_symbol(info.name(), axis, static_cast<size_t>(declared.size()));
    dims.push_back(wanted ? *wanted : dim(declared[axis], info.name(), axis, unknown));
  }
  return dims;
}

void InputTypes::check_named_size(const onnx::ValueInfoProto& info, int axis, int64_t size) {
  const std::string& written = info.type().tensor_type().shape().dim(axis).dim_param();
  const std::string name = written.empty() ? fmt::format("{}_{}", info.name(), axis) : written;
  const std::string symbol = Flow::symbol_name(name);
  for (const auto& [given, number] : options_.dims) {
    if (given != name && given != symbol) continue;
    used_.insert(given);
    if (number != size)
      throw failure_in(info, usage_error("the shape given has {} along axis {}, but '{}' is given "
                                         "as {}",
                                         size, axis, given, number));
  }
}

void InputTypes::learn(const onnx::ValueInfoProto& info) {
  inputs_.push_back(info.name());
  for (const auto& dim : info.type().tensor_type().shape().dim())
    if (is_symbol_name(dim.dim_param())) plain_.insert(dim.dim_param());
  std::optional<Ints> given = given_shape(info);
  if (!given || options_.override_shapes || !info.type().tensor_type().has_shape()) return;
  const auto& declared = info.type().tensor_type().shape().dim();
  if (static_cast<size_t>(declared.size()) != given->size())
    throw failure_in(info, usage_error("the shape given has {} dims, the file {}", given->size(),
                                       declared.size()));
  for (int axis = 0; axis < declared.size(); ++axis) {
    int64_t size = (*given)[static_cast<size_t>(axis)];
    const auto& written = declared[axis];
    if (written.has_dim_value() && written.dim_value() >= 0 && written.dim_value() != size)
      throw failure_in(info, usage_error("the shape given has {} along axis {}, the file {}", size,
                                         axis, written.dim_value()));
    if (!written.has_dim_value() || written.dim_value() < 0) check_named_size(info, axis, size);
    // A shape binds the names of the dims it gives, for the inputs that share them.
    if (!written.dim_param().empty()) named_[written.dim_param()] = size;
    const Result<Dim> dim = parse_dim(written.dim_param(), symbols_);
    if (symbols_.empty() || !dim.ok()) continue;
    if (Status fits = match_dim(*dim, size, given_); !fits.ok())
      throw failure_in(info, usage_error("the shape given has {} along axis {}: {}", size, axis,
                                         fits.error().what()));
    for (const auto& [name, bound] : given_) named_[name] = bound;
  }
}

Result<Type> InputTypes::limited(const onnx::ValueInfoProto& info, DType dtype, Dims dims) {
  const DemandListener listener;
  Result<Type> type = Type::make(dtype, dims);
  if (type.ok() || !listener.last()) return type;
  std::optional<Bindings> sizes = solved(*listener.last(), /*has_cache=*/false);
  if (!sizes) return type;
  for (Dim& dim : dims) dim = dim.bind(*sizes);
  Error why = std::move(type).error().within(fmt::format("value '{}'", info.name()));
  flow_.constrain({*std::move(sizes), std::move(why)});
  return Type::make(dtype, dims);
}

Type InputTypes::of(const onnx::ValueInfoProto& info) {
  DType dtype = element_type(info);
  const onnx::TypeProto::Tensor& tensor = tensor_type(info);
  std::optional<Ints> given = given_shape(info);
  if (!given && !tensor.has_shape())
    throw failure_in(info,
                     unsupported("its rank is not given")
                         .with_hint(fmt::format("say its shape: --shape {}=...", info.name())));
  if (tensor.shape().dim_size() > kMaxRank)
    throw failure_in(
        info, over_limit("rank {} is above the limit of {}", tensor.shape().dim_size(), kMaxRank));
  Dims dims = given ? Dims(given->begin(), given->end()) : declared_dims(info);
  for (Dim& dim : dims) dim = flow_.seen(dim);
  Result<Type> type = limited(info, dtype, dims);
  if (!type.ok()) throw failure_in(info, std::move(type).error());
  const Tensor* fixed = constant(info.name());
  if (fixed != nullptr && fixed->dtype() != dtype)
    throw failure_in(info, usage_error("the constant given is {}, the file has {}",
                                       name(fixed->dtype()), name(dtype)));
  return *type;
}

void InputTypes::check_all_used() const {
  std::vector<std::string> dims;
  for (const auto& [known, dim] : named_) dims.push_back(known);
  auto check = [&](const auto& bindings, std::string_view kind,
                   const std::vector<std::string>& names) {
    for (const auto& [name, value] : bindings)
      if (!used_.contains(name))
        throw Failure{usage_error("the file has no {} '{}'", kind, name)
                          .with_hint(did_you_mean(name, names))};
  };
  check(options_.dims, "dim", dims);
  check(options_.shapes, "input", inputs_);
  check(options_.constants, "input", inputs_);
  check(options_.symbols, "input", inputs_);
}

namespace {

using Shape = onnx::TensorShapeProto;

bool is_open(const Shape::Dimension& dim) { return !dim.has_dim_value() || dim.dim_value() < 0; }

bool may_be_longer(const Shape& input, const Shape& output) {
  if (input.dim_size() != output.dim_size()) return false;
  int others = 0;
  for (int axis = 0; axis < input.dim_size(); ++axis) {
    const auto &before = input.dim(axis), &after = output.dim(axis);
    const bool are_open = is_open(before) && is_open(after);
    if (is_open(before) != is_open(after)) return false;
    if (!are_open && before.dim_value() != after.dim_value()) return false;
    others += are_open && (before.dim_param().empty() || before.dim_param() != after.dim_param());
  }
  return others > 0;
}

}  // namespace

bool declares_growth(const onnx::GraphProto& graph, bool if_unknown) {
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const onnx::TypeProto::Tensor& to = output.type().tensor_type();
    if (!to.has_shape() && if_unknown) return true;
    if (!to.has_shape()) continue;
    for (const onnx::ValueInfoProto& input : graph.input()) {
      const onnx::TypeProto::Tensor& from = input.type().tensor_type();
      if (from.elem_type() == to.elem_type() && may_be_longer(from.shape(), to.shape()))
        return true;
    }
  }
  return false;
}

namespace {

Failure contradiction(const onnx::ValueInfoProto& info, std::string_view declared, Type found) {
  return failure_in(info,
                    bad_input("it is declared as {}, but is {}", declared, found.to_string()));
}

// The declared dims, if they differ from the dims that were found.
std::optional<std::string> other_dims(const onnx::ValueInfoProto& info, Type found) {
  const onnx::TypeProto::Tensor& tensor = info.type().tensor_type();
  if (!tensor.has_shape()) return {};
  const auto& declared = tensor.shape().dim();
  if (declared.size() != found.rank()) return fmt::format("of rank {}", declared.size());
  for (int axis = 0; axis < declared.size(); ++axis) {
    Dim dim = found.dim(axis);
    int64_t size = declared[axis].dim_value();
    if (!declared[axis].has_dim_value() || size < 0 || !dim.is_static()) continue;
    if (size != dim.value()) return fmt::format("{} long along axis {}", size, axis);
  }
  return {};
}

}  // namespace

void check_strings_declared(const onnx::ValueInfoProto& info, bool holds_strings) {
  const bool has_type = info.type().tensor_type().elem_type() != onnx::TensorProto::UNDEFINED;
  if (has_type && is_string(info) != holds_strings)
    throw failure_in(info, bad_input("it is declared {} strings, but has {}",
                                     is_string(info) ? "to have" : "without",
                                     holds_strings ? "some" : "numbers"));
}

void check_element_type(const onnx::ValueInfoProto& info, Type found) {
  if (!info.has_type()) return;
  DType dtype = element_type(info);
  if (dtype != found.dtype()) throw contradiction(info, name(dtype), found);
}

std::string declared_text(const onnx::ValueInfoProto& info) {
  std::vector<std::string> dims;
  for (const auto& dim : info.type().tensor_type().shape().dim())
    dims.push_back(dim.has_dim_value()       ? fmt::format("{}", dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : escape(dim.dim_param()));
  return fmt::format("{}[{}]", name(element_type(info)), join(dims, ", "));
}

bool has_other_dims(const onnx::ValueInfoProto& info, Type found) {
  return other_dims(info, found).has_value();
}

void check_declared(const onnx::ValueInfoProto& info, Type found) {
  check_element_type(info, found);
  if (std::optional<std::string> declared = other_dims(info, found))
    throw contradiction(info, *declared, found);
}

}  // namespace hone::onnx_io
