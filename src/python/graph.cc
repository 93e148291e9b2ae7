#include "python/graph.h"

#include <pybind11/stl.h>

#include <optional>

#include "base/text.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/sharding.h"
#include "ir/text.h"
#include "python/array.h"
#include "python/core.h"
#include "python/error.h"
#include "session/evaluation.h"
#include "session/sharding.h"
#include "session/source.h"

// Graphs, built from Python: one way to append any op, by its row of ops.def.

namespace hone::python {
namespace {

namespace py = pybind11;

// Where values are made: a graph that is built, or a region of it while its body is called.
struct Site {
  std::unique_ptr<Builder> owned;  // null: of a region
  Builder* builder = nullptr;      // null: the region has ended
  std::vector<Symbol> symbols;     // that sizes may name
  Shardings shardings;             // of values that are said

  Builder& open() const {
    if (builder == nullptr)
      raise(usage_error("the graph is finished, or the value is of a body that has returned"));
    return *builder;
  }
  // The first error of what was just called; the graph is as before.
  void check() const {
    if (builder->ok()) return;
    const Error error = builder->status().error();
    builder->forgive();
    raise(error);
  }
};
using SiteRef = std::shared_ptr<Site>;

struct PyValue {
  SiteRef site;
  Value value;

  Type type() const {
    site->open();
    return value.type();
  }
};

Dim dim_of(py::handle given, const Site& site) {
  if (py::isinstance<py::str>(given))
    return take(parse_dim(given.cast<std::string>(), site.symbols));
  return given.cast<int64_t>();
}

// One that is alone needs no list.
Dims dims_of(py::handle given, const Site& site) {
  if (PyLong_Check(given.ptr()) || PyUnicode_Check(given.ptr())) return {dim_of(given, site)};
  Dims dims;
  for (const py::handle one : py::iter(given)) dims.push_back(dim_of(one, site));
  return dims;
}

DType dtype_of(const std::string& name) {
  if (const std::optional<DType> dtype = dtype_from_name(name)) return *dtype;
  raise(usage_error("'{}' is not an element type", name)
            .with_hint("hone's are f32, bf16, i64, bool, ... (docs/ir.md)"));
}

AttrValue attr_of(const AttrSpec& spec, py::handle given, const Site& site) {
  try {
    switch (spec.kind) {
      case AttrKind::flag: return given.cast<bool>();
      case AttrKind::integer: return given.cast<int64_t>();
      case AttrKind::real: return given.cast<double>();
      case AttrKind::word: return given.cast<std::string>();
      case AttrKind::dtype: return dtype_of(given.cast<std::string>());
      case AttrKind::ints:
        return PyLong_Check(given.ptr()) ? Ints{given.cast<int64_t>()} : given.cast<Ints>();
      case AttrKind::reals: return given.cast<std::vector<double>>();
      case AttrKind::dims: return dims_of(given, site);
    }
  } catch (const py::cast_error&) {
    raise(usage_error("attribute '{}' takes another type than {}", spec.name,
                      Py_TYPE(given.ptr())->tp_name));
  }
  HONE_CHECK(false, "an attribute of no kind");
}

Op op_of(Opcode opcode, const py::dict& given, const Site& site) {
  Attrs attrs;
  const OpDef& def = op_def(opcode);
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    const auto spec = std::ranges::find(def.attrs, name, &AttrSpec::name);
    if (spec == def.attrs.end()) {
      std::vector<std::string_view> known;
      for (const AttrSpec& one : def.attrs) known.push_back(one.name);
      raise(usage_error("{} has no attribute '{}'", hone::name(opcode), name)
                .with_hint(fmt::format("it has {}", known.empty() ? "none" : join(known, ", "))));
    }
    attrs.emplace_back(spec->name, attr_of(*spec, value, site));
  }
  return take(Op::make(opcode, std::move(attrs)));
}

Tensor constant_of(py::handle array) {
  GivenArray given(array, "the constant", GivenArray::Use::read);
  const Type type = given.type("the constant");
  const std::byte* elements = given.elements(type);
  return Tensor::copy_of(type, {elements, static_cast<size_t>(type.static_bytes())});
}

// The integer as the type has it; none if the type cannot have it.
std::optional<int64_t> integer_of(py::handle number, DType dtype) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow > 0 && dtype == DType::u64) {
    const uint64_t large = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() == nullptr) return static_cast<int64_t>(large);
    PyErr_Clear();
  }
  const bool fits =
      overflow == 0 && (value >= 0 || is_signed(dtype)) && wrap_to(dtype, value) == value;
  return fits ? std::optional(value) : std::nullopt;
}

// A number of Python. An integer type takes what it can hold alone.
Tensor scalar_of(py::handle number, DType dtype) {
  if (!is_integer(dtype)) return Tensor::scalar(dtype, number.cast<double>());
  py::object whole = py::reinterpret_borrow<py::object>(number);
  if (PyFloat_Check(number.ptr()) && number.attr("is_integer")().cast<bool>())
    whole = py::int_(whole);
  if (PyLong_Check(whole.ptr()))
    if (const std::optional<int64_t> value = integer_of(whole, dtype))
      return Tensor::from_integers(Type::scalar(dtype), {&*value, 1});
  raise(usage_error("{} has no {}", name(dtype), py::repr(number).cast<std::string>())
            .with_hint("a number has the type of the value beside it; cast that before"));
}

// A value, a number as a scalar of this type, or an array as a constant.
Value operand_of(py::handle given, const SiteRef& site, std::optional<DType> number) {
  if (given.is_none()) return {};
  if (py::isinstance<PyValue>(given)) {
    const PyValue& value = given.cast<const PyValue&>();
    if (value.site != site) raise(usage_error("the operands are of different graphs"));
    return value.value;
  }
  const bool is_number = PyFloat_Check(given.ptr()) || PyLong_Check(given.ptr());
  if (!is_number) return site->open().constant(constant_of(given));
  if (!number) raise(usage_error("a number needs a value beside it, whose type it takes"));
  return site->open().constant(scalar_of(given, *number));
}

// Shapes that numpy's rule makes equal: aligned from the back, 1 stretches.
void align(std::vector<Value>& values) {
  Dims dims;
  for (const Value value : values) {
    const Dims own = value.dims();
    if (own.size() > dims.size()) dims.insert(dims.begin(), own.size() - dims.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      Dim& dim = dims[dims.size() - own.size() + i];
      if (dim.is(1)) dim = own[i];
    }
  }
  for (Value& value : values)
    if (value.dims() != dims) value = broadcast_to(value, dims);
}

std::vector<PyValue> wrapped(const SiteRef& site, std::span<const Value> values) {
  site->check();
  std::vector<PyValue> all;
  for (const Value value : values) all.push_back({site, value});
  return all;
}

std::vector<PyValue> apply_at(const SiteRef& site, const std::string& name,
                              const py::sequence& operands, const py::dict& attrs) {
  Builder& builder = site->open();
  const std::optional<Opcode> opcode = opcode_from_name(name);
  if (!opcode || is_leaf(*opcode)) raise(usage_error("there is no op '{}' to apply", name));
  const Op op = op_of(*opcode, attrs, *site);
  // A number has the type of the last value: of select(p, x, 0) that of x.
  std::optional<DType> number;
  for (const py::handle one : operands)
    if (py::isinstance<PyValue>(one)) number = one.cast<const PyValue&>().type().dtype();
  std::vector<Value> values;
  for (const py::handle one : operands) values.push_back(operand_of(one, site, number));
  const bool is_aligned = is_elementwise(*opcode) && values.size() > 1 &&
                          std::ranges::all_of(values, [](Value v) { return bool(v); });
  if (is_aligned) align(values);
  if (!builder.ok()) site->check();
  return wrapped(site, builder.ops(op, values));
}

// The site of the first value among these.
SiteRef site_of(const py::sequence& operands) {
  for (const py::handle one : operands)
    if (py::isinstance<PyValue>(one)) return one.cast<const PyValue&>().site;
  raise(usage_error("no operand is a value of a graph").with_hint("Builder.op needs none"));
}

std::vector<PyValue> apply(const std::string& name, const py::sequence& operands,
                           const py::dict& attrs) {
  return apply_at(site_of(operands), name, operands, attrs);
}

PyValue binary_op(const char* name, py::handle a, py::handle b) {
  return apply(name, py::make_tuple(a, b), py::dict())[0];
}

PyValue matmul_op(py::handle a, py::handle b) {
  const SiteRef site = site_of(py::make_tuple(a, b));
  site->open();
  const Value left = operand_of(a, site, std::nullopt), right = operand_of(b, site, std::nullopt);
  const Value product = matmul(left, right);
  return wrapped(site, {&product, 1})[0];
}

// ---- Regions ------------------------------------------------------------------------------------

std::vector<Value> values_of(const py::sequence& given, const SiteRef& site) {
  std::vector<Value> values;
  for (const py::handle one : given) values.push_back(operand_of(one, site, std::nullopt));
  return values;
}

// Calls Python with the parameters of a region; its values end with it.
Builder::Body body_of(const py::function& body, const SiteRef& outer) {
  return [body, outer](Builder& builder, std::span<const Value> parameters) {
    const auto site = std::make_shared<Site>();
    site->builder = &builder;
    site->symbols = outer->symbols;
    struct End {
      Site& site;
      ~End() { site.builder = nullptr; }
    } const end{*site};
    py::tuple arguments(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      arguments[i] = py::cast(PyValue{site, parameters[i]});
    const py::object returned = body(*arguments);
    const bool is_one = py::isinstance<PyValue>(returned);
    return values_of(is_one ? py::sequence(py::make_tuple(returned)) : py::sequence(returned),
                     site);
  };
}

std::vector<PyValue> if_op(const PyValue& predicate, const py::sequence& arguments,
                           const py::function& on_true, const py::function& on_false) {
  const SiteRef& site = predicate.site;
  site->open();
  return wrapped(site, if_else(predicate.value, values_of(arguments, site), body_of(on_true, site),
                               body_of(on_false, site)));
}

std::vector<PyValue> while_op(const py::sequence& initial, const py::function& condition,
                              const py::function& body) {
  const SiteRef site = site_of(initial);
  site->open();
  return wrapped(
      site, while_loop(values_of(initial, site), body_of(condition, site), body_of(body, site)));
}

std::vector<PyValue> scan_op(const py::sequence& initial, const py::sequence& scanned,
                             const py::function& body, bool reverse) {
  const SiteRef site = site_of(scanned);
  site->open();
  return wrapped(
      site, scan(values_of(initial, site), values_of(scanned, site), body_of(body, site), reverse));
}

// ---- Builder ------------------------------------------------------------------------------------

SiteRef new_builder(const std::string& name) {
  auto site = std::make_shared<Site>();
  site->owned = std::make_unique<Builder>(name);
  site->builder = site->owned.get();
  return site;
}

std::string add_symbol(Site& site, const std::string& name, int64_t low, int64_t high,
                       int64_t multiple_of) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (!is_symbol_name(name)) raise(usage_error("'{}' cannot name a size", excerpt(name)));
  const bool is_known = std::ranges::find(site.symbols, name, &Symbol::name) != site.symbols.end();
  if (is_known) raise(usage_error("the size {} exists already", name));
  if (low < 0 || low > high || high > kMost || multiple_of < 1 || multiple_of > kMost ||
      (low + multiple_of - 1) / multiple_of * multiple_of > high)
    raise(
        usage_error("the size {}: no multiple of {} lies in {}..{}", name, multiple_of, low, high));
  site.symbols.push_back(Symbol::get(name, low, high, multiple_of));
  return name;
}

PyValue add_parameter(const SiteRef& site, const std::string& name, const std::string& dtype,
                      const py::sequence& dims) {
  const Value value = site->open().parameter(name, dtype_of(dtype), dims_of(dims, *site));
  return wrapped(site, {&value, 1})[0];
}

PyValue add_constant(const SiteRef& site, py::handle array, const std::string& name) {
  const Value value = site->open().constant(constant_of(array), name);
  return wrapped(site, {&value, 1})[0];
}

// As dims_text() has them, on a mesh such as "x=2,y=4".
void say_sharding(const PyValue& value, const std::string& mesh, const std::string& dims) {
  if (value.site->owned == nullptr)
    raise(unsupported("a value of a body follows what the values around it say"));
  const MeshRef parsed = take(parse_mesh(mesh));
  value.site->shardings.add(value.value.id(), take(parse_sharding(dims, parsed, value.type())));
}

PyGraph finish(const SiteRef& site, const py::args& outputs) {
  Builder& builder = site->open();
  Result<Graph> graph = builder.finish(values_of(outputs, site));
  if (graph.ok() && !site->shardings.empty())
    graph->set_shardings(std::make_shared<const Shardings>(site->shardings));
  if (graph.ok())
    if (const Status good = verify(*graph); !good.ok()) graph = good.error();
  if (graph.ok()) site->builder = nullptr;
  builder.forgive();
  return {std::make_shared<const Graph>(take(std::move(graph)))};
}

// ---- Graph --------------------------------------------------------------------------------------

PyGraph parse(const std::string& text) {
  Graph graph = take(parse_graph(text));
  take(verify(graph));
  return {std::make_shared<const Graph>(std::move(graph))};
}

// The graph that says this of values, by name.
PyGraph sharded(const PyGraph& it, const std::string& mesh,
                const std::map<std::string, std::string>& dims) {
  std::vector<std::string> words;
  for (const auto& [name, one] : dims) words.push_back(fmt::format("{}={}", name, one));
  const MeshRef parsed = take(parse_mesh(mesh));
  Graph graph = take(stated_graph(*it.graph, parsed, take(shard_request(words, {}, kShardLabels))));
  take(verify(graph));
  return {std::make_shared<const Graph>(std::move(graph))};
}

// The shape of the value with this name.
py::tuple shape_of_value(const PyGraph& it, const std::string& name) {
  for (uint32_t i = 0; i < it.graph->value_count(); ++i)
    if (it.graph->name({i}) == name) return shape_of(it.graph->type({i}));
  raise(usage_error("the graph has no value '{}'", excerpt(name)));
}

PyGraph read(const std::string& path) {
  const Source source = take(without_gil([&] { return load_source(path); }));
  const Graph* graph = single_graph(source.model);
  if (graph == nullptr)
    raise(unsupported("'{}' is a tree of segments, not a single graph", excerpt(path)));
  return {std::make_shared<const Graph>(*graph)};
}

void write(const PyGraph& it, const std::string& path) {
  Result<std::vector<std::filesystem::path>> files =
      without_gil([&] { return save_source(model_of(*it.graph), path); });
  take(std::move(files));
}

// Computes by the reference evaluator.
py::tuple evaluate_graph(const PyGraph& it, const py::sequence& inputs, const std::string& how) {
  if (how != "wide" && how != "rounded" && how != "fp32")
    raise(usage_error("numerics: '{}' is not one of wide, rounded, fp32", how));
  const std::vector<Type> types = it.graph->input_types();
  if (types.size() != inputs.size())
    raise(bad_input("the graph has {} inputs, {} are given", types.size(), inputs.size()));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name(it.graph->name(it.graph->inputs()[i]));
    const std::string label = fmt::format("input '{}'", name);
    GivenArray given(inputs[i], label, GivenArray::Use::read);
    const Type type = given.fit({name, types[i]}, label);
    tensors.push_back(tensor_of(std::move(given), type));
  }
  std::vector<Tensor> outputs = take(
      without_gil([&] { return evaluate(*it.graph, tensors, {.numerics = numerics_of(how)}); }));
  py::tuple arrays(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) arrays[i] = array_of(std::move(outputs[i]));
  return arrays;
}

py::list op_rows() {
  py::list rows;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpDef& def = op_def(opcode);
    if (is_leaf(opcode) || !def.regions.empty()) continue;
    py::list attrs;
    for (const AttrSpec& attr : def.attrs)
      attrs.append(py::make_tuple(std::string(attr.name), std::string(attr.default_text),
                                  std::string(attr.doc)));
    rows.append(py::make_tuple(std::string(name(opcode)), std::string(def.operands),
                               std::string(def.summary), attrs));
  }
  return rows;
}

void define_value(py::module_& module) {
  py::class_<PyValue> value(module, "Value", py::module_local());
  value
      .def_property_readonly("dtype",
                             [](const PyValue& it) { return std::string(name(it.type().dtype())); })
      .def_property_readonly("shape", [](const PyValue& it) { return shape_of(it.type()); })
      .def("named",
           [](const PyValue& it, const std::string& name) {
             it.site->open();
             it.value.named(name);
             return it;
           })
      .def("say_sharding", &say_sharding, py::arg("mesh"), py::arg("dims"))
      .def("__repr__", [](const PyValue& it) {
        return fmt::format("<hone.graph.Value {}>", it.type().to_string());
      });
  const std::tuple<const char*, const char*, const char*> operators[] = {
      {"__add__", "__radd__", "add"}, {"__sub__", "__rsub__", "sub"},
      {"__mul__", "__rmul__", "mul"}, {"__truediv__", "__rtruediv__", "div"},
      {"__pow__", "__rpow__", "pow"}, {"__and__", "__rand__", "and"},
      {"__or__", "__ror__", "or"}};
  for (const auto& [name, reflected, op] : operators) {
    value.def(name, [op](py::handle a, py::handle b) { return binary_op(op, a, b); });
    value.def(reflected, [op](py::handle a, py::handle b) { return binary_op(op, b, a); });
  }
  value.def("__matmul__", &matmul_op);
  value.def("__rmatmul__", [](py::handle a, py::handle b) { return matmul_op(b, a); });
  value.attr("__array_ufunc__") = py::none();  // array + value is the value's to compute
  value.def("__neg__", [](py::handle a) { return apply("neg", py::make_tuple(a), {})[0]; });
}

}  // namespace

void define_graph(py::module_& module) {
  py::class_<PyGraph>(module, "Graph", py::module_local())
      .def_property_readonly("name", [](const PyGraph& it) { return text_of(it.graph->name()); })
      .def_property_readonly("hash", [](const PyGraph& it) { return structural_hash(*it.graph); })
      .def_property_readonly("nodes", [](const PyGraph& it) { return it.graph->node_count(); })
      .def("evaluate", &evaluate_graph, py::arg("inputs"), py::arg("numerics") = "wide")
      .def("save", &write)
      .def("shape", &shape_of_value, py::arg("value"))
      .def("sharded", &sharded, py::arg("mesh"), py::arg("dims"))
      .def("text", [](const PyGraph& it) { return text_of(print(*it.graph)); })
      .def("__str__", [](const PyGraph& it) { return text_of(print(*it.graph, {.elide = true})); });
  define_value(module);
  py::class_<Site, SiteRef>(module, "Builder", py::module_local())
      .def(py::init(&new_builder), py::arg("name") = "main")
      .def("symbol", &add_symbol, py::arg("name"), py::arg("low"), py::arg("high"),
           py::arg("multiple_of") = 1)
      .def("parameter", &add_parameter, py::arg("name"), py::arg("dtype"), py::arg("shape"))
      .def("constant", &add_constant, py::arg("array"), py::arg("name") = "")
      .def("op", [](const SiteRef& site, const std::string& name, const py::args& operands,
                    const py::kwargs& attrs) { return apply_at(site, name, operands, attrs); })
      .def("finish", &finish);
  module.def("apply", &apply);
  module.def("if_else", &if_op);
  module.def("while_loop", &while_op);
  module.def("scan", &scan_op, py::arg("initial"), py::arg("scanned"), py::arg("body"),
             py::arg("reverse") = false);
  module.def("ops", &op_rows);
  module.def("parse_graph", &parse);
  module.def("read_graph", &read);
}

}  // namespace hone::python
