#include <algorithm>
#include <optional>

#include "base/text.h"
#include "front/onnx/onnx.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/conformance.h"
#include "oracle/conformance_data.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPasses = "fold,dce";

CaseOutcome outcome(CaseClass result, const Error& error) {
  CaseOutcome made;
  made.result = result;
  made.reason = error.what();
  made.where = error.where();
  return made;
}

// ---- Modes -------------------------------------------------------------------------------------

struct Prepared {
  Model model;
  std::vector<Tensor> inputs;
  SymbolicDims symbolic = SymbolicDims::none;
};

Result<Body> folded(const Body& body, std::span<const Pass> passes);

Result<Segment> folded(const Segment& segment, std::span<const Pass> passes) {
  Segment result = segment;
  if (auto* graph = std::get_if<GraphSegment>(&result.kind)) {
    graph->graph = std::make_shared<Graph>(HONE_TRY(run_passes(*graph->graph, passes)));
  } else if (auto* branches = std::get_if<IfSegment>(&result.kind)) {
    branches->on_true = HONE_TRY(folded(branches->on_true, passes));
    branches->on_false = HONE_TRY(folded(branches->on_false, passes));
  } else if (auto* loop = std::get_if<LoopSegment>(&result.kind)) {
    loop->body = HONE_TRY(folded(loop->body, passes));
  }
  return result;
}

Result<Body> folded(const Body& body, std::span<const Pass> passes) {
  Body result;
  result.results = body.results;
  for (const Segment& segment : body.segments) {
    Segment made = HONE_TRY(folded(segment, passes));
    result.segments.push_back(std::move(made));
  }
  return result;
}

// The shapes of a case's data hold, whatever its model declares: the standard's runner looks at the
// data alone.
Result<Model> typed_for(const fs::path& file, const Model& plain, std::span<const Tensor> inputs) {
  Bindings bindings;
  bool fits = true;
  ImportOptions import;
  import.override_shapes = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type declared = plain.inputs[i].type;
    const Ints dims = inputs[i].type().static_dims();
    fits = fits && declared.rank() == static_cast<int>(dims.size());
    for (int axis = 0; fits && axis < declared.rank(); ++axis)
      fits = match_dim(declared.dim(axis), dims[static_cast<size_t>(axis)], bindings).ok();
    import.shapes.emplace(plain.inputs[i].name, dims);
  }
  if (fits) return plain;
  return load_onnx(file, import);
}

// The file with the inputs as constants, all graphs folded.
Result<Prepared> with_constants(const fs::path& file, const Model& plain,
                                std::span<const Tensor> inputs) {
  ImportOptions import;
  import.override_shapes = true;
  for (size_t i = 0; i < inputs.size(); ++i)
    import.constants.emplace(plain.inputs[i].name, inputs[i]);
  Model model = HONE_TRY(load_onnx(file, import));
  const std::vector<Pass> passes = HONE_TRY(parse_passes(kPasses));
  Body body = HONE_TRY(folded({std::move(model.segments), {}}, passes));
  model.segments = std::move(body.segments);
  const Status good = verify(model);
  HONE_CHECK(good.ok(), "the passes {} broke the model: {}", kPasses, good.error().to_string());
  return Prepared{std::move(model), {}};
}

// Dims of one size share a symbol: mostly they are meant to be equal. Ones and zeros stay, since
// they broadcast or are empty.
std::vector<std::string> symbol_names(Type type, SymbolicDims which) {
  std::vector<std::string> names;
  for (int64_t size : type.static_dims()) {
    const bool wanted = size > 1 && (which == SymbolicDims::all || names.empty());
    names.push_back(wanted ? fmt::format("size_{}", size) : "");
  }
  return names;
}

// Null if no input has such a dim.
std::optional<Result<Model>> with_symbols(const fs::path& file, const Model& plain,
                                          std::span<const Tensor> inputs, SymbolicDims which) {
  ImportOptions import;
  bool has_symbols = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::string> names = symbol_names(inputs[i].type(), which);
    for (const std::string& name : names) has_symbols = has_symbols || !name.empty();
    import.symbols.emplace(plain.inputs[i].name, std::move(names));
  }
  return has_symbols ? std::optional(load_onnx(file, import)) : std::nullopt;
}

// With as many symbols as the model can be typed with.
Prepared with_symbols(const fs::path& file, const Model& plain, std::vector<Tensor> inputs) {
  std::optional<Result<Model>> all = with_symbols(file, plain, inputs, SymbolicDims::all);
  if (!all) return {plain, std::move(inputs)};
  if (all->ok() && first_deferred(**all) == nullptr)
    return {std::move(**all), std::move(inputs), SymbolicDims::all};
  std::optional<Result<Model>> leading = with_symbols(file, plain, inputs, SymbolicDims::leading);
  if (leading && leading->ok() && first_deferred(**leading) == nullptr)
    return {std::move(**leading), std::move(inputs), SymbolicDims::leading};
  if (all->ok()) return {std::move(**all), std::move(inputs), SymbolicDims::deferred};
  return {plain, std::move(inputs)};
}

Result<Prepared> prepare(const fs::path& file, const Model& plain, std::vector<Tensor> inputs,
                         CaseMode mode) {
  switch (mode) {
    case CaseMode::plain: {
      Model model = HONE_TRY(typed_for(file, plain, inputs));
      return Prepared{std::move(model), std::move(inputs)};
    }
    case CaseMode::constants: return with_constants(file, plain, inputs);
    case CaseMode::symbolic: {
      const Model model = HONE_TRY(typed_for(file, plain, inputs));
      return with_symbols(file, model, std::move(inputs));
    }
  }
  return Prepared{};
}

// ---- Comparison --------------------------------------------------------------------------------

// "3 of 24 elements differ (rtol 0.001, atol 1e-07); worst at [0, 1]: 2.5, expected 2 (off by 0.5)"
std::string difference_text(const Comparison& comparison) {
  const Disagreement& worst = *comparison.worst;
  return fmt::format(
      "{} of {} elements differ (rtol {:.3g}, atol {:.3g}); worst at {}: {:.9g}, expected {:.9g} "
      "(off by "
      "{:.3g})",
      comparison.bad, comparison.elements, comparison.tolerance.relative,
      comparison.tolerance.absolute, index_text(comparison.type, worst.index), worst.actual,
      worst.expected, worst.difference);
}

std::optional<std::string> difference(const Tensor& actual, const Tensor& expected,
                                      const GivenTolerance& tolerance) {
  if (actual.type() != expected.type())
    return fmt::format("the type is {}, expected {}", actual.type().to_string(),
                       expected.type().to_string());
  const Result<Comparison> comparison =
      compare(actual, expected, expected_tolerance(expected.dtype(), expected, tolerance));
  if (!comparison.ok()) return comparison.error().what();
  return comparison->passed() ? std::nullopt : std::optional(difference_text(*comparison));
}

CaseOutcome run_data_set(const fs::path& file, const Model& plain, const CaseFiles& set,
                         const CaseOptions& options) {
  Result<CaseData> data = read_data_set(set, plain);
  if (!data.ok()) return refusal(data.error());
  Result<Prepared> ready = prepare(file, plain, std::move(data->inputs), options.mode);
  if (!ready.ok()) return refusal(ready.error());
  EvalOptions evaluation;
  evaluation.numerics = Numerics::rounded;
  evaluation.max_bytes = options.max_bytes;
  const auto run = [&]() -> Result<std::vector<Tensor>> {
    if (!options.compile) return evaluate_model(ready->model, ready->inputs, evaluation);
    return HONE_TRY(options.compile(ready->model))->run(ready->inputs);
  };
  const Result<std::vector<Tensor>> outputs = run();
  CaseOutcome result;
  if (!outputs.ok()) {
    result = failure(outputs.error());
    result.symbolic = ready->symbolic;
    return result;
  }
  result.result = CaseClass::pass;
  result.symbolic = ready->symbolic;
  for (const ExpectedOutput& expected : data->outputs) {
    const Tensor& actual = (*outputs)[expected.index];
    const std::optional<std::string> found =
        difference(actual, with_lacking_type(expected.tensor, actual.dtype()), options.tolerance);
    if (!found) continue;
    result.result = CaseClass::wrong;
    result.reason = *found;
    result.where = fmt::format("output '{}', {}", plain.outputs[expected.index].name,
                               set.folder.filename().string());
    return result;
  }
  return result;
}

}  // namespace

// A standard case that hone calls bad is not: the standard is right.
CaseOutcome refusal(const Error& error) {
  return outcome(error.code() == ErrorCode::unsupported ? CaseClass::unsupported : CaseClass::wrong,
                 error);
}

// While it runs, a limit is one of memory or of iterations: the model was good.
CaseOutcome failure(const Error& error) {
  const bool is_crash = error.code() == ErrorCode::limit || error.code() == ErrorCode::internal;
  return is_crash ? outcome(CaseClass::crashed, error) : refusal(error);
}

CaseOutcome run_conformance_case(const fs::path& folder, const CaseOptions& options) {
  std::error_code ignored;
  if (fs::is_regular_file(folder, ignored)) return run_checked_program(folder, options);
  const fs::path file = folder / "model.onnx";
  // Typed as it is written, in every mode: what it cannot do is said about the model itself.
  const Result<Model> plain = load_onnx(file);
  if (!plain.ok()) return refusal(plain.error());
  const Result<std::vector<CaseFiles>> sets = data_sets_of(folder);
  if (!sets.ok()) return refusal(sets.error());
  CaseOutcome all;
  all.result = CaseClass::pass;
  all.symbolic = SymbolicDims::all;
  for (const CaseFiles& set : *sets) {
    CaseOutcome one = run_data_set(file, *plain, set, options);
    all.symbolic = std::min(all.symbolic, one.symbolic);
    one.symbolic = all.symbolic;
    one.data_sets = ++all.data_sets;
    if (one.result != CaseClass::pass) return one;
  }
  return all;
}

}  // namespace hone
