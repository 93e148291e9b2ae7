#include "session/source.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "front/front_end.h"
#include "ir/model_text.h"
#include "ir/op_facts.h"
#include "ir/summary.h"
#include "runtime/honec.h"
#include "session/compiled.h"
#include "session/program_text.h"
#include "zoo/spec.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

Result<ImportOptions> import_options(const Given& given, const SourceOptions& options) {
  ImportOptions import = import_sizes(options.binds_inputs ? all_sizes(given) : given.sizes);
  for (const GivenInput& input : given.inputs)
    if (options.runs_inputs && input.type().static_elements() == 1)
      import.known.emplace(input.name, HONE_TRY(input.value()));
  import.notice = options.notice;
  import.checks = options.checks;
  return import;
}

// A shape that is given beside the tensor is the tensor's.
Status check_shapes_agree(const Given& given) {
  for (const GivenInput& one : given.inputs) {
    const auto shape = given.sizes.shapes.find(one.name);
    const Ints dims = one.type().static_dims();
    if (shape == given.sizes.shapes.end() || shape->second == dims) continue;
    return usage_error("input '{}' is given the shape {}, but {} has {}", excerpt(one.name),
                       join(shape->second, "x"), one.from, join(dims, "x"));
  }
  return {};
}

Status check_none(const SourceOptions& options, std::string_view name) {
  if (options.checks == nullptr) return {};
  return usage_error("'{}' is not an ONNX file: only ONNX leaves undefined what some values do",
                     name);
}

bool has_sizes(const Given& given) {
  const Sizes sizes = all_sizes(given);
  return !sizes.dims.empty() || !sizes.shapes.empty();
}

// True if its inputs have these shapes, and no size of it is left open.
bool takes(const Model& model, const Sizes& sizes) {
  for (const ModelValue& input : model.inputs) {
    const auto shape = sizes.shapes.find(input.name);
    if (!input.type.is_static()) return false;
    if (shape != sizes.shapes.end() && input.type.static_dims() != shape->second) return false;
  }
  return true;
}

// Reads by `read(options)`.
template <class Read>
Result<Source> read_by(const FrontEnd& front, std::string_view name, Given given,
                       const SourceOptions& options, const Read& read) {
  if (!front.heeds_options) {
    HONE_TRY(check_none(options, name));
    ImportOptions plain;
    plain.notice = options.notice;
    Result<Model> model = read(plain);
    if (model.ok() || model.error().code() != ErrorCode::unsupported || !has_sizes(given))
      return Source{HONE_TRY(std::move(model)), std::move(given)};
    // A program that cannot be read for all sizes may be readable for these.
    const Sizes sizes = all_sizes(given);
    plain.dims = sizes.dims;
    plain.shapes = sizes.shapes;
    Result<Model> sized = read(plain);
    if (!sized.ok() || !takes(*sized, sizes)) return std::move(model).error();
    given.sizes = {};
    return Source{std::move(*sized), std::move(given)};
  }
  Source source;
  ImportOptions import = HONE_TRY(import_options(given, options));
  import.layers = &source.layers;
  import.labels = &source.labels;
  source.model = HONE_TRY(read(import));
  source.open.inputs = std::move(given.inputs);
  return source;
}

// The beginning of a file decides, else its name. If nothing tells what it is, the error of the
// last front end gets a hint about what a model is.
template <class Read>
Result<Source> read_as(std::string_view beginning, const FrontEnd* named, std::string_view name,
                       Given given, const SourceOptions& options, const Read& read) {
  const FrontEnd* front = recognized_front_end(beginning);
  if (front == nullptr) front = named;
  const bool is_unknown = front == nullptr;
  if (is_unknown) front = &front_ends().back();
  Result<Source> source =
      read_by(*front, name, std::move(given), options,
              [&](const ImportOptions& import) { return read(*front, import); });
  if (source.ok() || !is_unknown || beginning.empty() || !source.error().hint().empty())
    return source;
  return Error(source.error()).with_hint(fmt::format("a model is {}", front_end_list()));
}

Result<Source> load_unverified(const std::string& name, Given given, const SourceOptions& options) {
  std::string_view spec = name;
  if (consume_prefix(spec, "zoo:")) {
    HONE_TRY(check_none(options, name));
    Model model = model_of(HONE_TRY(build_zoo_spec(spec)));
    return Source{std::move(model), std::move(given)};
  }
  const std::string beginning = file_beginning(name);
  if (begins_like_honec(beginning) || is_honec_path(name)) return is_compiled(name);
  if (begins_like_programs(beginning)) return are_programs(name);
  return read_as(
      beginning, front_end_named(name), name, std::move(given), options,
      [&](const FrontEnd& front, const ImportOptions& import) { return front.load(name, import); });
}

Result<Source> verified(Source source, std::string_view name) {
  Status good = verify(source.model);
  if (!good.ok()) return std::move(good).error().within(name);
  if (first_deferred(source.model) != nullptr)
    source.open.smallest = [model = source.model](const Bindings& told) {
      return smallest_sizes(model, told);
    };
  return source;
}

bool is_large(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) bytes += graph.constant(n).byte_size();
  return bytes > (1 << 16);
}

}  // namespace

Result<Source> load_source(const std::string& name, Given given, const SourceOptions& options) {
  HONE_TRY(check_shapes_agree(given));
  return verified(HONE_TRY(load_unverified(name, std::move(given), options)), name);
}

Result<Source> parse_source(std::string_view bytes, std::string_view where, Given given,
                            const SourceOptions& options) {
  if (begins_like_honec(bytes)) return is_compiled(where);
  if (begins_like_programs(bytes)) return are_programs(where);
  HONE_TRY(check_shapes_agree(given));
  Source source = HONE_TRY(read_as(
      bytes, nullptr, where, std::move(given), options,
      [&](const FrontEnd& front, const ImportOptions& import) {
        return front.parse(bytes, where, import);
      }));
  return verified(std::move(source), where);
}

bool is_onnx_path(const fs::path& path) { return path.extension() == ".onnx"; }

Result<std::vector<fs::path>> save_source(const Model& model, const fs::path& path,
                                          const ExportOptions& options) {
  if (is_honec_path(path))
    return usage_error("{} is a name for a compiled model", excerpt(path.string()))
        .with_hint(fmt::format("a model is {}", front_end_list()));
  const FrontEnd* const named = front_end_named(path);
  const FrontEnd& front = named != nullptr ? *named : front_ends().back();
  return front.save(path, model, options);
}

bool has_large_constants(const Model& model) {
  return std::ranges::any_of(graphs_of(model), [](const Graph* graph) { return is_large(*graph); });
}

Result<std::string> text_alone(const Model& model) {
  const bool large = has_large_constants(model);
  if (const Graph* graph = plain_graph(model)) return print(*graph, {.elide = large});
  return print(model, {.elide = large});
}

Graph signature_of(const Model& model) {
  const Graph* graph = single_graph(model);
  Graph signature = graph != nullptr ? *graph : Graph(model.name);
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (graph == nullptr) signature.add_parameter(model.inputs[i].type);
    signature.set_name(signature.inputs()[i], model.inputs[i].name);
  }
  return signature;
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (const ModelValue& output : model.outputs) names.push_back(output.name);
  return names;
}

namespace {

// The symbol's smallest number from this one on; the largest if there is none.
int64_t from_on(Symbol symbol, int64_t number) {
  const int64_t step = symbol.multiple_of();
  const int64_t least = ceil_div(std::max(number, symbol.min()), step) * step;
  return least <= symbol.max() ? least : floor_div(symbol.max(), step) * step;
}

}  // namespace

Bindings smallest_sizes(const Model& model, const Bindings& told) {
  constexpr int64_t kFew = 16;  // that are tried one by one, and then powers of two
  constexpr int64_t kMost = 4096;
  const Graph signature = signature_of(model);
  const Bindings least = smallest_bindings(signature, told);
  if (first_deferred(model) == nullptr || specialize(model, least).ok()) return least;
  std::vector<Symbol> open;
  for (Symbol symbol : signature.symbols())
    if (!told.contains(symbol.name())) open.push_back(symbol);
  // One of them is larger, or all are.
  for (int64_t number = 2; number <= kMost; number += number < kFew ? 1 : number)
    for (size_t one = 0; one <= open.size(); ++one) {
      Bindings sizes = least;
      for (size_t i = 0; i < open.size(); ++i)
        if (one == i || one == open.size())
          sizes.insert_or_assign(open[i].name(), from_on(open[i], number));
      if (specialize(model, sizes).ok()) return sizes;
    }
  return least;
}

Result<Model> with_sizes(const Model& model, const Bindings& sizes) {
  const Graph* graph = single_graph(model);
  if (graph != nullptr) return model_of(HONE_TRY(specialize(*graph, sizes)));
  return specialize(model, sizes);
}

}  // namespace hone
