#include "oracle/differential.h"

#include <algorithm>
#include <new>

#include "base/rng.h"
#include "base/text.h"
#include "compile/compilation.h"
#include "cost/analytic.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/accuracy_runs.h"
#include "oracle/compare.h"
#include "oracle/derived.h"
#include "oracle/short_reals.h"
#include "oracle/special_judge.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "rewrite/passes.h"
#include "zoo/random/random_bytes.h"
#include "zoo/random/random_convs.h"
#include "zoo/random/random_graph.h"
#include "zoo/random/random_joins.h"

namespace hone {

std::string_view name(Judge judge) {
  constexpr std::string_view kNames[] = {"rounded", "accurate", "special"};
  return kNames[static_cast<size_t>(judge)];
}

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"passed",  "unstable", "unproved", "wrong",
                                         "refused", "fault",    "crashed"};
  return kNames[static_cast<size_t>(verdict)];
}

namespace {

// Numbers for all symbols that the inputs of a run tell; the graph itself where they do not tell
// all of them.
Graph with_inputs_for(Graph graph, Rng& rng, const Specials& specials,
                      std::vector<Tensor>& inputs) {
  Bindings sizes;
  for (Symbol symbol : graph.symbols()) {
    const int64_t step = symbol.multiple_of();
    sizes.emplace(symbol.name(),
                  step * rng.between((symbol.min() + step - 1) / step, symbol.max() / step));
  }
  Graph sized = specialize(graph, sizes).value();
  inputs = random_graph_inputs(sized, rng(), specials);
  const Result<Bindings> told = bind_inputs(graph, types_of(inputs));
  return told.ok() && told->size() == sizes.size() ? std::move(graph) : std::move(sized);
}

Heuristics random_heuristics(Rng& rng) {
  constexpr double kLeftOut[] = {0.1, 0.5, 1};
  const double left_out = rng.pick(kLeftOut);
  Heuristics heuristics;
  for (const Heuristic& row : kHeuristics) heuristics.*row.flag = !rng.chance(left_out);
  return heuristics;
}

// Graphs of any op, of concats and slices alone, of convs alone, or of one product of bytes.
enum class Sort : uint8_t { any, joins, convs, bytes };

// Tame joins and convs have odd seeds: several convs in a row may be as accurate as f32 and yet
// further apart than the judge of the others allows. One case in four of special numbers is one of
// them.
Sort sort_of(uint64_t seed) {
  switch (seed % 32) {
    case 14:
    case 15:
    case 31: return Sort::joins;
    case 7:
    case 23:
    case 30: return Sort::convs;
    case 8:
    case 24: return Sort::bytes;
    default: return Sort::any;
  }
}

Graph graph_of(Sort sort, uint64_t seed, const RandomGraphOptions& options) {
  switch (sort) {
    case Sort::any: return random_graph(options);
    case Sort::joins: return random_joins(seed);
    case Sort::convs: return random_convs(seed);
    case Sort::bytes: return random_bytes(seed);
  }
}

constexpr int kDraws = 64;  // of graphs that might have gradients, or of plans

// True if a kernel takes words of an operand as they are in memory.
bool reads_words(const Plan& plan) {
  return std::ranges::any_of(plan.schedule, [](const auto& entry) {
    const auto* own = entry.second.template if_is<GemmFields>();
    return own != nullptr && own->products == Products::quads &&
           (own->pack_lhs == Packing::no || own->pack_rhs == Packing::no);
  });
}

}  // namespace

DifferentialCase random_case(uint64_t seed, const Target& host, Isa highest, Derives derives) {
  Rng rng(seed);
  const bool derives_always = derives == Derives::always;
  DifferentialCase one;
  // A case in four is of special numbers, and none of these has gradients: slopes jump there.
  const bool is_special = !derives_always && (seed % 8 == 4 || seed % 8 == 6);
  one.judge = is_special                        ? Judge::special
              : derives_always || seed % 2 == 0 ? Judge::rounded
                                                : Judge::accurate;
  one.isa = kIsas[rng.below(static_cast<uint64_t>(std::min(highest, host.isa)) + 1)];
  // The first op follows from the seed. Strides of a prime spread short runs over all ops, too.
  // Contractions have most decisions, and updates one of their own, so they come more often.
  constexpr uint64_t kStride = 7919;
  constexpr Opcode kContractions[] = {Opcode::dot, Opcode::conv};
  constexpr Opcode kUpdates[] = {Opcode::dynamic_update, Opcode::scatter};
  std::optional<Opcode> first;
  if (rng.chance(0.2))
    first = rng.pick(kContractions);
  else if (rng.chance(0.05))
    first = rng.pick(kUpdates);
  RandomGraphOptions options = {.seed = (derives_always ? seed : seed / 2) * kStride,
                                .min_steps = 2,
                                .max_steps = 4,
                                .max_elements = 256,
                                .max_dim = 40,
                                .symbolic = rng.chance(0.15) && !derives_always,
                                .first = first,
                                .continuous = one.judge == Judge::accurate,
                                .repeats_outputs = seed / 2 % 8 == 3};
  // Products whose sizes are open have rests of tiles that nothing else has.
  if (options.symbolic && !first && Rng(seed).chance(0.5)) options.first = Opcode::dot;
  if (is_special) {
    Rng own(seed);  // so that what else is drawn is as without
    options.specials = Specials::drawn(own);
  }
  const Sort sort = derives_always ? Sort::any : sort_of(seed);
  one.graph = with_inputs_for(graph_of(sort, seed, options), rng, options.specials, one.inputs);
  // Slopes jump where a relu bends, so that they are not for the judge of continuous ops.
  const bool may_derive = derives_always || (one.judge == Judge::rounded && seed / 2 % 4 == 1);
  std::optional<Graph> derived;
  if (may_derive) derived = with_gradients(one.graph, seed);
  for (int i = 0; derives_always && !derived && i < kDraws; ++i) {
    options.seed = rng();
    options.first.reset();
    one.graph = with_inputs_for(random_graph(options), rng, {}, one.inputs);
    derived = with_gradients(one.graph, seed);
  }
  if (derived) one.graph = *std::move(derived);
  constexpr double kUnplanned = 0.125;  // the share that is left to the planner
  if (rng.chance(kUnplanned)) return one;
  const Target target = restricted(host, one.isa);
  Compilation compilation(one.graph, target);
  const Graph& graph_of_plan = *compilation.graph().value();
  constexpr double kPlanned = 0.125;  // the share of the planner without some of its heuristics
  if (rng.chance(kPlanned)) {
    one.plan = complete(graph_of_plan, {}, target, AnalyticCost(target),
                        {.heuristics = random_heuristics(rng)})
                   .value();
    return one;
  }
  one.plan = random_plan(graph_of_plan, target, seed);
  // Few plans read words of bytes where they lie.
  for (int i = 0; sort == Sort::bytes && i < kDraws && !reads_words(one.plan); ++i)
    one.plan = random_plan(graph_of_plan, target, rng());
  return one;
}

// ---- Judging ------------------------------------------------------------------------------------

namespace {

using Tensors = std::vector<Tensor>;

Result<bool> agree(const Tensor& a, const Tensor& b) {
  return HONE_TRY(compare(a, b, default_tolerance(b.dtype()))).passed();
}

// Where rounding alone decides what comes out, the reference's modes come to different results; or
// it is that of composites whose constants have more than 16 bits.
Result<bool> is_rounding(const DifferentialCase& one, size_t output, const Tensor& expected,
                         const Tensor& actual) {
  const auto agrees = [&](const Graph& graph, Numerics numerics,
                          const Tensor& with) -> Result<bool> {
    return agree(HONE_TRY(evaluate(graph, one.inputs, {.numerics = numerics}))[output], with);
  };
  return !HONE_TRY(agrees(one.graph, Numerics::wide, expected)) ||
         !HONE_TRY(agrees(one.graph, Numerics::fp32, expected)) ||
         HONE_TRY(agrees(HONE_TRY(widen_composites(one.graph)), Numerics::wide, actual));
}

// Inputs as large as these, so that no error is lost beside those of larger ones: the same reals in
// another order.
Tensors reordered(const Tensors& inputs, uint64_t seed) {
  Rng rng(seed);
  Tensors others;
  for (const Tensor& input : inputs) {
    if (!is_real(input.dtype())) {
      others.push_back(input);
      continue;
    }
    std::vector<double> numbers(static_cast<size_t>(input.elements()));
    input.read_reals(0, numbers);
    for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[rng.below(i)]);
    others.push_back(Tensor::from_reals(input.type(), numbers));
  }
  return others;
}

Result<DifferentialOutcome> judge_accurate(const DifferentialCase& one,
                                           const Executable& executable) {
  const Bindings sizes = HONE_TRY(bind_inputs(one.graph, types_of(one.inputs)));
  const Graph graph = HONE_TRY(specialize(one.graph, sizes));
  const Contest contest = {
      .native = [&](const Tensors& inputs) { return executable.run(inputs); },
      .reference =
          [&](const Tensors& inputs, Numerics numerics) {
            return evaluate(graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true});
          },
      .other_inputs = [&](uint64_t n) -> Result<Tensors> { return reordered(one.inputs, n); }};
  const ContestResult result = HONE_TRY(judge(contest, one.inputs));
  for (size_t i = 0; i < result.outputs.size(); ++i)
    if (const Accuracy& output = result.outputs[i]; !output.passed())
      return DifferentialOutcome{Verdict::wrong,
                                 fmt::format("output {}: {}", i, output.to_string())};
  return DifferentialOutcome();
}

// True for a sum over many numbers of 16 bits, each of which may be rounded up or down. It is as
// accurate as 'hone check' asks for, and yet not that of the reference.
bool sums_short_reals(const DifferentialCase& one, const Executable& executable) {
  if (!has_short_reals(one.graph)) return false;
  const Result<DifferentialOutcome> accurate = judge_accurate(one, executable);
  return accurate.ok() && accurate->verdict == Verdict::passed;
}

Result<DifferentialOutcome> judge_rounded(const DifferentialCase& one, const Executable& executable,
                                          const Tensors& actual) {
  const Tensors rounded =
      HONE_TRY(evaluate(one.graph, one.inputs, {.numerics = Numerics::rounded}));
  const Tensors wide = HONE_TRY(evaluate(one.graph, one.inputs));
  const bool has_short = has_short_reals(one.graph);
  DifferentialOutcome outcome;
  for (size_t i = 0; i < rounded.size(); ++i) {
    const Tensor expected = has_short ? nearer(actual[i], rounded[i], wide[i]) : rounded[i];
    const Comparison comparison =
        HONE_TRY(compare(actual[i], expected, default_tolerance(expected.dtype())));
    if (comparison.passed()) continue;
    outcome.reason = fmt::format("output {}: {}", i, comparison.to_string());
    const bool is_unstable =
        HONE_TRY(is_rounding(one, i, rounded[i], actual[i])) || sums_short_reals(one, executable);
    outcome.verdict = is_unstable ? Verdict::unstable : Verdict::wrong;
    if (outcome.verdict == Verdict::wrong) break;
  }
  return outcome;
}

Result<DifferentialOutcome> judge_special(const DifferentialCase& one, const Tensors& actual) {
  DifferentialOutcome outcome;
  const std::vector<Difference> differences =
      HONE_TRY(differences_of_specials(one.graph, one.inputs, actual));
  for (const Difference& difference : differences) {
    outcome = {difference.is_undecided ? Verdict::unstable : Verdict::wrong,
               fmt::format("output {}: {}", difference.output, difference.what)};
    if (outcome.verdict == Verdict::wrong) break;
  }
  return outcome;
}

Result<DifferentialOutcome> judge_outputs(const DifferentialCase& one, const Executable& executable,
                                          const Tensors& actual) {
  switch (one.judge) {
    case Judge::rounded: return judge_rounded(one, executable, actual);
    case Judge::accurate: return judge_accurate(one, executable);
    case Judge::special: return judge_special(one, actual);
  }
  HONE_CHECK(false, "a judge {}", static_cast<int>(one.judge));
}

// Outputs that lie in inputs must be the same.
Result<DifferentialOutcome> judge_donation(const Executable& executable,
                                           const DifferentialCase& one, const Tensors& actual) {
  const auto is_there = [](std::optional<uint32_t> donor) { return donor.has_value(); };
  if (std::ranges::none_of(executable.donors(), is_there)) return DifferentialOutcome();
  Tensors given;
  for (const Tensor& input : one.inputs)
    given.push_back(Tensor::copy_of(input.type(), input.bytes()));
  const Tensors in_place = HONE_TRY(executable.run_donating(std::move(given)));
  for (size_t i = 0; i < actual.size(); ++i)
    if (!actual[i].same_bytes(in_place[i]))
      return DifferentialOutcome{Verdict::wrong,
                                 fmt::format("output {} differs with inputs given up", i)};
  return DifferentialOutcome();
}

Result<Image> image_of(Compilation& compilation, const DifferentialCase& one) {
  if (one.graph.is_static()) return *HONE_TRY(compilation.image());
  return compilation.image_for(HONE_TRY(bind_inputs(one.graph, types_of(one.inputs))));
}

Result<DifferentialOutcome> outcome_of(const DifferentialCase& one, const Target& host,
                                       const std::shared_ptr<Team>& team) {
  Compilation compilation(one.graph, restricted(host, one.isa), {.plan = one.plan, .team = team});
  Result<Image> image = image_of(compilation, one);
  // Open sizes may be refused: a bound may not be provable for all of them.
  if (!image.ok() && !one.graph.is_static() && image.error().code() == ErrorCode::unsupported)
    return DifferentialOutcome{Verdict::unproved, image.error().to_string()};
  const Image code = HONE_TRY(std::move(image));
  const std::shared_ptr<const Executable> executable =
      HONE_TRY(Executable::load(code, {.team = team}));
  const Tensors actual = HONE_TRY(executable->run(one.inputs));
  DifferentialOutcome outcome = HONE_TRY(judge_outputs(one, *executable, actual));
  if (outcome.verdict == Verdict::passed) {
    outcome = HONE_TRY(judge_donation(*executable, one, actual));
  }
  outcome.plan = *HONE_TRY(compilation.plan());
  return outcome;
}

}  // namespace

// Exceptions are what this looks for; too little memory says nothing about the case.
DifferentialOutcome run_case(const DifferentialCase& one, const Target& host,
                             const std::shared_ptr<Team>& team) {
  try {
    Result<DifferentialOutcome> outcome = outcome_of(one, host, team);
    if (outcome.ok()) return *std::move(outcome);
    return {Verdict::refused, outcome.error().to_string()};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {
    return {Verdict::fault, fault.what()};
  }
}

// ---- Text ---------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kPlanMark = "---- plan\n", kInputsMark = "---- inputs\n";

// A graph that gives the inputs.
Result<Graph> graph_of(const Tensors& inputs) {
  Graph graph("inputs");
  std::vector<ValueId> outputs;
  for (const Tensor& input : inputs) outputs.push_back(graph.add_constant(input));
  graph.set_outputs(std::move(outputs));
  return graph;
}

std::string_view next_part(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return part;
}

template <class Enum, size_t N>
Result<Enum> named(std::string_view word, const Enum (&all)[N], std::string_view what) {
  for (Enum one : all)
    if (name(one) == word) return one;
  return bad_input("'{}' is not a {}", excerpt(word), what);
}

}  // namespace

std::string print(const DifferentialCase& one) {
  std::string text = fmt::format("case {} {}\n", name(one.isa), name(one.judge));
  text += print(one.graph);
  if (one.plan != Plan()) text.append(kPlanMark) += print(one.plan);
  if (!one.inputs.empty()) text.append(kInputsMark) += print(graph_of(one.inputs).value());
  return text;
}

Result<DifferentialCase> parse_case(std::string_view text, std::string_view file) {
  std::string_view inputs = text;
  std::string_view plan = next_part(inputs, kInputsMark);
  std::string_view graph = next_part(plan, kPlanMark);
  const std::vector<std::string_view> words = split_words(graph.substr(0, graph.find('\n')));
  if (words.size() != 3 || words[0] != "case")
    return bad_input("a case begins with 'case ISA JUDGE'").within(file);
  DifferentialCase one;
  const std::optional<Isa> isa = isa_from_name(words[1]);
  if (!isa) return bad_input("'{}' is not a level of instructions", excerpt(words[1])).within(file);
  one.isa = *isa;
  one.judge = HONE_TRY(named(words[2], kJudges, "judge"));
  graph.remove_prefix(std::min(graph.size(), graph.find('\n')));
  one.graph = HONE_TRY(parse_graph(graph, {.file = file}));
  HONE_TRY(verify(one.graph));
  if (!plan.empty()) one.plan = HONE_TRY(parse_plan(plan, file));
  if (!inputs.empty()) {
    const Graph given = HONE_TRY(parse_graph(inputs, {.file = file}));
    if (!given.inputs().empty()) return bad_input("the inputs need inputs").within(file);
    one.inputs = HONE_TRY(evaluate(given, {}, {.numerics = Numerics::rounded}));
  }
  return one;
}

}  // namespace hone
