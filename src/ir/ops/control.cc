#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/reference/run.h"

// Ops with regions. A region is closed: it sees its parameters alone.

namespace hone {

namespace {

// ---- Inference ----------------------------------------------------------------------------------

std::string list_types(std::span<const Type> types) {
  std::string text = "(";
  for (Type type : types) text += (text.size() > 1 ? ", " : "") + type.to_string();
  return text + ")";
}

// `what` is "takes" or "gives".
Status check_types(std::string_view region, std::string_view what, std::span<const Type> actual,
                   std::span<const Type> wanted) {
  if (std::ranges::equal(actual, wanted)) return {};
  if (actual.size() != wanted.size()) {
    return bad_input("region '{}' {} {} values {}, not the {} values {}", region, what,
                     actual.size(), list_types(actual), wanted.size(), list_types(wanted));
  }
  size_t i = 0;
  while (actual[i] == wanted[i]) ++i;
  return bad_input("region '{}' {} {} as value {}, not {}", region, what, actual[i].to_string(), i,
                   wanted[i].to_string());
}

Result<std::vector<Type>> infer_if(const Application& app) {
  if (app.operand(0) != Type::scalar(DType::boolean)) {
    return bad_input("the predicate must be bool[], not {}", app.operand(0).to_string());
  }
  for (size_t i = 0; i < 2; ++i) {
    HONE_TRY(check_types(i == 0 ? "then" : "else", "takes", app.regions[i]->input_types(),
                         app.operands.subspan(1)));
  }
  std::vector<Type> results = app.regions[0]->output_types();
  std::vector<Type> others = app.regions[1]->output_types();
  if (results != others) {
    return bad_input("both regions must give the same types, not {} and {}", list_types(results),
                     list_types(others));
  }
  return results;
}

Result<std::vector<Type>> infer_while(const Application& app) {
  const Graph& condition = *app.regions[0];
  const Graph& body = *app.regions[1];
  Type predicate = Type::scalar(DType::boolean);
  HONE_TRY(check_types("condition", "takes", condition.input_types(), app.operands));
  HONE_TRY(check_types("condition", "gives", condition.output_types(), {&predicate, 1}));
  HONE_TRY(check_types("body", "takes", body.input_types(), app.operands));
  HONE_TRY(check_types("body", "gives", body.output_types(), app.operands));
  return std::vector<Type>(app.operands.begin(), app.operands.end());
}

// The number of steps of a scan.
Result<Dim> scan_length(const Application& app) {
  size_t carried = static_cast<size_t>(app.op.integer("carried"));
  const Dims& length = app.op.dims("length");
  std::span<const Type> scanned = app.operands.subspan(carried);
  if (scanned.empty()) {
    if (length.size() != 1) {
      return bad_input("nothing is scanned, so length must have one entry, but has {}",
                       length.size());
    }
    if (length[0].range().low < 0) {
      return bad_input("length {} may be negative", length[0].to_string());
    }
    return length[0];
  }
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (scanned[i].rank() == 0) {
      return bad_input("scanned operand {} is {}, which has no axis 0", carried + i,
                       scanned[i].to_string());
    }
    if (scanned[i].dim(0) != scanned[0].dim(0)) {
      return bad_input("scanned operands have lengths {} and {}", scanned[0].dim(0).to_string(),
                       scanned[i].dim(0).to_string());
    }
  }
  if (!length.empty()) return bad_input("length is given by the scanned operands; leave it out");
  return scanned[0].dim(0);
}

Result<std::vector<Type>> infer_scan(const Application& app) {
  int64_t carried_count = app.op.integer("carried");
  if (carried_count < 0 || carried_count > app.count()) {
    return bad_input("carried = {}, but there are {} operands", carried_count, app.count());
  }
  size_t carried = static_cast<size_t>(carried_count);
  Dim length = HONE_TRY(scan_length(app));

  std::vector<Type> parameters(app.operands.begin(), app.operands.end());
  for (size_t i = carried; i < parameters.size(); ++i) {
    parameters[i] = parameters[i].with_dims(parameters[i].dims().subspan(1));
  }
  HONE_TRY(check_types("body", "takes", app.regions[0]->input_types(), parameters));

  std::vector<Type> results = app.regions[0]->output_types();
  std::vector<Type> state(app.operands.begin(), app.operands.begin() + carried_count);
  std::span<const Type> next = std::span(results).first(std::min(carried, results.size()));
  HONE_TRY(check_types("body", "gives", next, state));
  for (size_t i = carried; i < results.size(); ++i) {
    Dims dims = {length};
    dims.insert(dims.end(), results[i].dims().begin(), results[i].dims().end());
    results[i] = HONE_TRY(Type::make(results[i].dtype(), dims));
  }
  return results;
}

Result<std::vector<Type>> infer_call(const Application& app) {
  HONE_TRY(check_types("callee", "takes", app.regions[0]->input_types(), app.operands));
  return app.regions[0]->output_types();
}

// ---- Evaluation ---------------------------------------------------------------------------------

// Runs a region for some of the calls, in lockstep.
template <class D>
Result<std::vector<Row<D>>> run_region(const Graph& region, std::span<EvalCall<D>> calls,
                                       const std::vector<size_t>& members,
                                       std::vector<Row<D>> arguments) {
  EvalContext inner = calls[0].context;
  ++inner.depth;
  inner.devices.clear();
  for (size_t m : members) inner.devices.push_back(calls[m].device);
  Result<std::vector<Row<D>>> outputs = run_graph<D>(region, std::move(arguments), inner);
  if (outputs.ok()) return outputs;
  return std::move(outputs).error().within(fmt::format("region '{}'", region.name()));
}

template <class D>
Row<D> borrow_operands(const EvalCall<D>& call, size_t from) {
  Row<D> row;
  for (const Buffer<D>* operand : call.operands.subspan(from)) {
    row.push_back(Ref<D>::borrow(*operand));
  }
  return row;
}

template <class D>
std::vector<size_t> all_of(std::span<EvalCall<D>> calls) {
  std::vector<size_t> members(calls.size());
  for (size_t i = 0; i < members.size(); ++i) members[i] = i;
  return members;
}

// Hands the values over as results. They also come from `control`, the predicates that led here.
template <class D>
void give_results(EvalCall<D>& call, Row<D> values, const typename D::Int& control) {
  for (size_t i = 0; i < values.size(); ++i) {
    call.results[i] = std::move(values[i]).take();
    if constexpr (is_tracked<typename D::Int>) {
      with_elements(call.results[i], [&]<class T>(std::type_identity<T>) {
        for (T& element : call.results[i].template as<T>()) {
          element = depending_on(std::move(element), control);
        }
      });
    }
  }
}

struct EvalIf {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    for (bool branch : {true, false}) {
      std::vector<size_t> members;
      std::vector<Row<D>> arguments;
      for (size_t i = 0; i < calls.size(); ++i) {
        if ((plain(calls[i].operand(0).ints()[0]) != 0) != branch) continue;
        members.push_back(i);
        arguments.push_back(borrow_operands(calls[i], 1));
      }
      if (members.empty()) continue;
      const Graph& region = *calls[0].regions[branch ? 0 : 1];
      std::vector<Row<D>> outputs =
          HONE_TRY(run_region(region, calls, members, std::move(arguments)));
      for (size_t m = 0; m < members.size(); ++m) {
        EvalCall<D>& call = calls[members[m]];
        give_results(call, std::move(outputs[m]), call.operand(0).ints()[0]);
      }
    }
    return {};
  }
};

struct EvalWhile {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    using Int = typename D::Int;
    const EvalOptions& options = calls[0].context.state.options;
    std::vector<size_t> active = all_of(calls);
    std::vector<Row<D>> states;  // of the active calls
    for (const EvalCall<D>& call : calls) states.push_back(borrow_operands(call, 0));
    std::vector<Int> control(calls.size());  // what decided so far how often each call loops

    for (int64_t iteration = 0;; ++iteration) {
      if (options.cancel) HONE_TRY(options.cancel->check());
      std::vector<Row<D>> answers =
          HONE_TRY(run_region(*calls[0].regions[0], calls, active, states));
      std::vector<size_t> going_on;
      std::vector<Row<D>> going_on_states;
      for (size_t m = 0; m < active.size(); ++m) {
        size_t i = active[m];
        const Int& predicate = answers[m][0]->ints()[0];
        control[i] = depending_on(control[i], predicate);
        if (plain(predicate) == 0) {
          give_results(calls[i], std::move(states[m]), control[i]);
        } else {
          going_on.push_back(i);
          going_on_states.push_back(std::move(states[m]));
        }
      }
      if (going_on.empty()) return {};
      if (iteration >= options.max_iterations) {
        return over_limit("the loop did not end within {} iterations", options.max_iterations)
            .with_hint("raise EvalOptions::max_iterations");
      }
      active = std::move(going_on);
      states =
          HONE_TRY(run_region(*calls[0].regions[1], calls, active, std::move(going_on_states)));
    }
  }
};

// Copies `count` elements.
template <class D>
void copy_elements(const Buffer<D>& from, int64_t from_begin, Buffer<D>& to, int64_t to_begin,
                   int64_t count) {
  with_elements(from, [&]<class T>(std::type_identity<T>) {
    std::span<const T> source = from.template as<T>();
    std::copy_n(source.begin() + from_begin, count, to.template as<T>().begin() + to_begin);
  });
}

struct EvalScan {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    const EvalCall<D>& first = calls[0];
    const Graph& body = *first.regions[0];
    EvalState& eval_state = first.context.state;
    size_t carried = static_cast<size_t>(first.op.integer("carried"));
    int64_t length = first.operands.size() > carried ? first.operands[carried]->dims()[0]
                                                     : first.op.dims("length")[0].value();
    const RunPlan& plan = *HONE_TRY(eval_state.plan_of(body));
    std::vector<Type> parameters = plan.types_of(body.inputs());
    std::vector<Type> outputs = plan.types_of(body.outputs());
    std::vector<Row<D>> states;
    for (EvalCall<D>& call : calls) {
      states.push_back(borrow_operands(call, 0));
      states.back().resize(carried);
      for (size_t i = carried; i < outputs.size(); ++i) {
        Dims dims = {length};
        dims.insert(dims.end(), outputs[i].dims().begin(), outputs[i].dims().end());
        call.results[i] = Buffer<D>(outputs[i].with_dims(dims));
      }
    }
    std::vector<size_t> members = all_of(calls);
    for (int64_t step = 0; step < length; ++step) {
      if (eval_state.options.cancel) HONE_TRY(eval_state.options.cancel->check());
      int64_t at = first.op.flag("reverse") ? length - 1 - step : step;
      for (size_t c = 0; c < calls.size(); ++c) {
        for (size_t i = carried; i < parameters.size(); ++i) {
          Buffer<D> slice(parameters[i]);
          int64_t count = parameters[i].static_elements();
          copy_elements(calls[c].operand(static_cast<int>(i)), at * count, slice, 0, count);
          states[c].push_back(Ref<D>::own(std::move(slice), eval_state));
        }
      }
      states = HONE_TRY(run_region(body, calls, members, std::move(states)));
      for (size_t c = 0; c < calls.size(); ++c) {
        for (size_t i = carried; i < outputs.size(); ++i) {
          int64_t count = outputs[i].static_elements();
          copy_elements(*states[c][i], 0, calls[c].results[i], at * count, count);
        }
        states[c].resize(carried);
      }
    }
    for (size_t c = 0; c < calls.size(); ++c) give_results(calls[c], std::move(states[c]), {});
    return {};
  }
};

struct EvalCallee {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    std::vector<Row<D>> arguments;
    for (const EvalCall<D>& call : calls) arguments.push_back(borrow_operands(call, 0));
    std::vector<Row<D>> outputs =
        HONE_TRY(run_region(*calls[0].regions[0], calls, all_of(calls), std::move(arguments)));
    for (size_t c = 0; c < calls.size(); ++c) give_results(calls[c], std::move(outputs[c]), {});
    return {};
  }
};

constexpr EvalTable kEvalIf = joint_eval<EvalIf>();
constexpr EvalTable kEvalWhile = joint_eval<EvalWhile>();
constexpr EvalTable kEvalScan = joint_eval<EvalScan>();
constexpr EvalTable kEvalCall = joint_eval<EvalCallee>();

constexpr AttrSpec kScanAttrs[] = {
    {.name = "carried",
     .kind = AttrKind::integer,
     .default_text = "",
     .doc = "How many of the first operands are the state; the others are scanned."},
    {.name = "reverse",
     .kind = AttrKind::flag,
     .default_text = "false",
     .doc = "True to go from the last index to the first; results keep their places."},
    {.name = "length",
     .kind = AttrKind::dims,
     .default_text = "[]",
     .doc = "The number of steps (one entry), given only if nothing is scanned."},
};

}  // namespace

extern const OpDef op_def_if_;
const OpDef op_def_if_ = {
    .opcode = Opcode::if_,
    .summary = "the results of one of two regions, chosen by a scalar predicate",
    .semantics = "Only the chosen region is evaluated.",
    .operands = "predicate, arguments*",
    .results = "results*",
    .regions = "then, else",
    .dtypes = kBool,
    .infer = &infer_if,
    .eval = &kEvalIf};

extern const OpDef op_def_while_;
const OpDef op_def_while_ = {
    .opcode = Opcode::while_,
    .summary = "replaces the state by body(state) while condition(state) holds",
    .semantics =
        "If the condition fails at once, the results are the operands. The reference "
        "evaluator stops with an error after a bounded number of iterations.",
    .operands = "state*",
    .results = "final*",
    .regions = "condition, body",
    .dtypes = kAny,
    .infer = &infer_while,
    .eval = &kEvalWhile};

extern const OpDef op_def_scan;
const OpDef op_def_scan = {
    .opcode = Opcode::scan,
    .summary = "a loop over axis 0 of the scanned operands that carries a state",
    .semantics =
        "body(state..., slice of each scanned operand...) gives the next state and one "
        "slice of each stacked result. The results are the final state, then the stacked "
        "results. Without a step, the final state is the first one.",
    .operands = "operands*",
    .results = "results*",
    .regions = "body",
    .attrs = kScanAttrs,
    .dtypes = kAny,
    .infer = &infer_scan,
    .eval = &kEvalScan};

extern const OpDef op_def_call;
const OpDef op_def_call = {.opcode = Opcode::call,
                           .summary = "the results of a region",
                           .operands = "arguments*",
                           .results = "results*",
                           .regions = "callee",
                           .dtypes = kAny,
                           .infer = &infer_call,
                           .eval = &kEvalCall};

}  // namespace hone
