#include "ir/reference/evaluate.h"

#include <algorithm>
#include <utility>

#include "base/checked_math.h"
#include "ir/reference/convert.h"
#include "ir/reference/run.h"

namespace hone {

namespace {

std::string describe_input(const Graph& graph, size_t i) {
  std::string_view name = graph.name(graph.inputs()[i]);
  return name.empty() ? fmt::format("input {}", i) : fmt::format("input {} ('{}')", i, name);
}

Status check_count(const Graph& graph, size_t given) {
  size_t wanted = graph.inputs().size();
  if (given == wanted) return {};
  return bad_input("graph '{}' takes {} inputs, but {} were given", graph.name(), wanted, given);
}

// `wanted` is what the graph takes here, its symbols bound.
Status check_input(const Graph& graph, size_t i, Type wanted, Type given) {
  if (given == wanted) return {};
  return bad_input("{} is {}, but the graph '{}' takes {}", describe_input(graph, i),
                   given ? given.to_string() : "missing", graph.name(), wanted.to_string());
}

struct BoundInputs {
  Bindings bindings;
  std::vector<Type> types;
};

// The values of the symbols for these inputs; all of them must follow.
Result<BoundInputs> bound_inputs(const Graph& graph, std::span<const Tensor> inputs) {
  HONE_TRY(check_count(graph, inputs.size()));
  BoundInputs bound = {.bindings = {}, .types = graph.input_types()};
  std::vector<Type> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(inputs[i].type());
    if (!given[i]) return check_input(graph, i, bound.types[i], given[i]).error();
  }
  std::vector<Symbol> symbols = graph.symbols();
  if (symbols.empty()) return bound;
  bound.bindings = HONE_TRY(bind_inputs(graph, given));
  for (Symbol symbol : symbols) {
    if (bound.bindings.contains(symbol.name())) continue;
    return bad_input("symbol '{}' of graph '{}' is not determined by the inputs' shapes",
                     symbol.name(), graph.name());
  }
  for (Type& type : bound.types) type = HONE_TRY(type.bind(bound.bindings));
  return bound;
}

// Ends the progress report and hands out the statistics, however the evaluation ends.
class Report {
 public:
  explicit Report(EvalState& state) : state_(state) {}
  Report(const Report&) = delete;
  void start(const RunPlan& plan) {
    if (state_.options.progress == nullptr) return;
    state_.options.progress->start(static_cast<int64_t>(plan.steps.size()), "nodes");
  }
  ~Report() {
    if (state_.options.progress) state_.options.progress->finish();
    if (state_.options.stats) *state_.options.stats = state_.stats;
  }

 private:
  EvalState& state_;
};

EvalContext make_context(EvalState& state, size_t device_count) {
  std::vector<int> devices;
  for (size_t d = 0; d < device_count; ++d) devices.push_back(static_cast<int>(d));
  return {.pool = default_pool(),
          .state = state,
          .devices = std::move(devices),
          .device_count = static_cast<int>(device_count),
          .depth = 0,
          .rounds = state.options.numerics == Numerics::rounded};
}

template <class D>
Result<std::vector<std::vector<Tensor>>> evaluate_in(const Graph& graph,
                                                     std::span<const std::vector<Tensor>> inputs,
                                                     const Bindings& bindings,
                                                     const EvalOptions& options) {
  DomainState<D> state(options, bindings);
  Report report(state);
  report.start(*HONE_TRY(state.plan_of(graph)));
  EvalContext context = make_context(state, inputs.size());
  std::vector<Row<D>> rows = HONE_TRY(run_graph<D>(graph, inputs, context));
  std::vector<std::vector<Tensor>> outputs(rows.size());
  for (size_t d = 0; d < rows.size(); ++d) {
    for (Ref<D>& value : rows[d]) {
      outputs[d].push_back(to_tensor<D>(*value, options.real_outputs_as_f64, context.pool));
      value = {};
    }
  }
  return outputs;
}

}  // namespace

Result<std::vector<std::vector<Tensor>>> evaluate_spmd(const Graph& graph,
                                                       std::span<const std::vector<Tensor>> inputs,
                                                       const EvalOptions& options) {
  if (inputs.empty()) return bad_input("graph '{}' is to run on no device", graph.name());
  const BoundInputs bound = HONE_TRY(bound_inputs(graph, inputs[0]));
  for (size_t d = 0; d < inputs.size(); ++d) {
    auto check_device = [&]() -> Status {
      HONE_TRY(check_count(graph, inputs[d].size()));
      for (size_t i = 0; i < inputs[d].size(); ++i) {
        HONE_TRY(check_input(graph, i, bound.types[i], inputs[d][i].type()));
      }
      return {};
    };
    Status status = check_device();
    if (!status.ok() && inputs.size() == 1) return std::move(status).error();
    if (!status.ok()) return std::move(status).error().within(fmt::format("device {}", d));
  }
  return options.numerics == Numerics::fp32
             ? evaluate_in<Fp32Domain>(graph, inputs, bound.bindings, options)
             : evaluate_in<WideDomain>(graph, inputs, bound.bindings, options);
}

Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs,
                                     const EvalOptions& options) {
  std::vector<Tensor> row(inputs.begin(), inputs.end());
  std::vector<std::vector<Tensor>> outputs =
      HONE_TRY(evaluate_spmd(graph, std::span<const std::vector<Tensor>>(&row, 1), options));
  return std::move(outputs[0]);
}

Result<std::vector<std::vector<uint64_t>>> evaluate_in_field(const Graph& graph,
                                                             std::span<const FieldInput> inputs) {
  HONE_TRY(check_count(graph, inputs.size()));
  if (!graph.is_static()) return unsupported("graph '{}' is not static", graph.name());
  DomainState<FieldDomain> state{EvalOptions{}};
  EvalContext context = make_context(state, 1);
  std::vector<Row<FieldDomain>> arguments(1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Type type = graph.type(graph.inputs()[i]);
    if (!is_real(type.dtype())) {
      HONE_TRY(check_input(graph, i, type, inputs[i].integers.type()));
      Buffer<FieldDomain> buffer =
          HONE_TRY(to_buffer<FieldDomain>(inputs[i].integers, context.pool));
      arguments[0].push_back(Ref<FieldDomain>::own(std::move(buffer), state));
      continue;
    }
    const std::vector<uint64_t>& residues = inputs[i].residues;
    if (static_cast<int64_t>(residues.size()) != type.static_elements()) {
      return bad_input("{} has {} residues, but {} has {} elements", describe_input(graph, i),
                       residues.size(), type.to_string(), type.static_elements());
    }
    Buffer<FieldDomain> buffer(type);
    std::ranges::transform(residues, buffer.reals().begin(), FieldElement::from_residue);
    arguments[0].push_back(Ref<FieldDomain>::own(std::move(buffer), state));
  }
  std::vector<Row<FieldDomain>> rows =
      HONE_TRY(run_graph<FieldDomain>(graph, std::move(arguments), context));
  std::vector<std::vector<uint64_t>> outputs;
  for (const Ref<FieldDomain>& value : rows[0]) {
    std::vector<uint64_t>& output = outputs.emplace_back();
    if (value->holds_reals()) {
      for (FieldElement e : value->reals()) output.push_back(e.residue());
    } else {
      for (int64_t image : value->ints()) output.push_back(static_cast<uint64_t>(image));
    }
  }
  return outputs;
}

Result<std::vector<ElementDependencies>> trace_dependencies(const Graph& graph,
                                                            std::span<const Tensor> inputs) {
  using D = DependencyDomain;
  const BoundInputs bound = HONE_TRY(bound_inputs(graph, inputs));
  DomainState<D> state(EvalOptions{}, bound.bindings);
  EvalContext context = make_context(state, 1);
  std::vector<Row<D>> arguments(1);
  std::vector<int64_t> first_id;  // per input; ids count the elements of all inputs
  int64_t next_id = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_TRY(check_input(graph, i, bound.types[i], inputs[i].type()));
    first_id.push_back(next_id);
    next_id += inputs[i].elements();
    if (next_id > int64_t{UINT32_MAX}) {
      return over_limit("the inputs have more than {} elements", UINT32_MAX);
    }
    HONE_TRY(state.check_memory(buffer_bytes<D>(inputs[i].type())));
    Buffer<D> buffer = HONE_TRY(to_buffer<D>(inputs[i], context.pool));
    with_elements(buffer, [&]<class T>(std::type_identity<T>) {
      uint32_t id = static_cast<uint32_t>(first_id[i]);
      for (T& element : buffer.template as<T>()) element.from = DependencySet(id++);
    });
    arguments[0].push_back(Ref<D>::own(std::move(buffer), state));
  }
  std::vector<Row<D>> rows = HONE_TRY(run_graph<D>(graph, std::move(arguments), context));

  std::vector<ElementDependencies> outputs;
  for (const Ref<D>& value : rows[0]) {
    ElementDependencies& output = outputs.emplace_back();
    with_elements(*value, [&]<class T>(std::type_identity<T>) {
      for (const T& element : value->template as<T>()) {
        std::vector<InputElement>& found = output.emplace_back();
        for (uint32_t id : element.from.ids()) {
          size_t input = static_cast<size_t>(std::ranges::upper_bound(first_id, int64_t{id}) -
                                             first_id.begin() - 1);
          found.push_back(
              {static_cast<uint32_t>(input), id - static_cast<uint32_t>(first_id[input])});
        }
      }
    });
  }
  return outputs;
}

}  // namespace hone
