// What rewrites gain, measured: each model under the planner's plan of the graph as it is and of
// the graph that -O3 finds, in turns, on one thread; and both graphs as ONNX in ONNX Runtime, if
// there is one (bench/models/setup.sh installs it), in turns by blocks.
//   --models=NAME,NAME   these alone: of the zoo, and two of 3x3 convolutions that rules with
//                        corrections are for, "dilated" (the back end of CSRNet at 56x56) and
//                        "small_images" (16 of 7x7, as behind a ResNet). NAME/whole is without
//                        those rules.
//   --search=SECONDS     for each search (60)
//   --seconds=SECONDS    for each duel (10)
// "gain" is how many times as fast the rewritten graph is, "low" and "high" its interval of 95 %;
// "priced" is what the prices promise, whatever the margin; "taken" the gain of what -O3 takes: 1
// if that is priced below the margin; "ort" the gain in ONNX Runtime, 0 where it was not run. A
// model without rewrites that pay by price is what it was: its gain is 1.
// Rows are kept in build/bench/rewrites.rows.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/rng.h"
#include "base/text.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "bench/rows.h"
#include "compile/compilation.h"
#include "cost/analytic.h"
#include "formats/npy.h"
#include "front/onnx/onnx.h"
#include "ir/builder.h"
#include "ir/functional.h"
#include "rules/rule_files.h"
#include "search/optimize.h"
#include "session/known_prices.h"
#include "tune/plan_duel.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::bench::HONE_FILE {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModels =
    "squeezenet,inception_v3,nasnet_a,resnext50,densenet121,mobilenet_v2,shufflenet_v2,bert_base,"
    "vit_b16,gpt2,nas_rnn,wavenet,unet,yolo_v3,transformer_xl,dilated,dilated/whole,small_images,"
    "small_images/whole";
constexpr int kBlocks = 5;
constexpr double kBlockSeconds = 1;  // of ONNX Runtime

const Flag models("models", std::string(kModels));
const Flag search_seconds("search", "60"), duel_seconds("seconds", "10");

// Convolutions of 3x3 behind each other, each with a bias and a relu.
Result<Graph> convolutions(std::string_view name, const Dims& input,
                           const std::vector<int64_t>& channels, int64_t dilation) {
  Builder b(name);
  Value x = b.parameter("x", DType::f32, input);
  Rng rng(1);
  const auto weights = [&](const Dims& dims, double scale) {
    const Type type = Type::get(DType::f32, dims);
    std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
    for (double& each : numbers) each = scale * rng.normal();
    return b.constant(Tensor::from_reals(type, numbers));
  };
  for (int64_t features : channels) {
    const double scale = std::sqrt(2 / static_cast<double>(9 * x.dim(1).value()));
    const Value w = weights({features, x.dim(1), 3, 3}, scale);
    const Ints pad = {dilation, dilation};
    const Value y =
        b.op(Opcode::conv, {x, w},
             {{"pad_low", pad}, {"pad_high", pad}, {"kernel_dilation", Ints{dilation, dilation}}});
    const Value bias =
        b.op(Opcode::broadcast, {weights({features}, 0.1)}, {{"dims", y.dims()}, {"map", Ints{1}}});
    x = relu(y + bias);
  }
  return b.finish({x});
}

Result<Graph> graph_named(std::string_view name) {
  if (name == "dilated")
    return convolutions(name, {1, 512, 56, 56}, {512, 512, 512, 256, 128, 64}, 2);
  if (name == "small_images") return convolutions(name, {16, 512, 7, 7}, {512, 512, 512}, 1);
  return build_zoo_model(name);
}

// /whole: none of those with corrections.
Result<std::vector<Rule>> rules_for(bool is_whole) {
  std::vector<Rule> rules = HONE_TRY(default_rules());
  if (!is_whole) return rules;
  for (const RuleFile& file : rule_files()) {
    if (file.name != "partial.rules") continue;
    for (const Rule& partial : HONE_TRY(parse_rules(file.text)))
      std::erase_if(rules, [&](const Rule& rule) { return rule.name == partial.name; });
  }
  return rules;
}

double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

// How many times as fast ONNX Runtime runs the second model.
Result<double> gain_in_onnx_runtime(const Graph& first, const Graph& second,
                                    const std::vector<Tensor>& inputs) {
  const fs::path folder = root() / "build/bench/rewrites";
  fs::remove_all(folder);
  fs::create_directories(folder);
  HONE_TRY(save_onnx(folder / "first.onnx", model_of(first)));
  HONE_TRY(save_onnx(folder / "second.onnx", model_of(second)));
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(write_npy(folder / fmt::format("in{}.npy", i), inputs[i]));
  std::vector<double> ratios;
  for (int block = 0; block < kBlocks; ++block) {
    const auto seconds = [&](std::string_view file) -> Result<double> {
      return median(HONE_TRY(run_onnx_runtime(folder / file, folder, {.seconds = kBlockSeconds})));
    };
    const double before = HONE_TRY(seconds("first.onnx"));
    ratios.push_back(before / HONE_TRY(seconds("second.onnx")));
  }
  fs::remove_all(folder);
  return median(ratios);
}

Result<Row> measured(const std::string& given, const Target& target) {
  constexpr std::string_view kWhole = "/whole";
  const bool is_whole = given.ends_with(kWhole);
  const std::string name = given.substr(0, given.size() - (is_whole ? kWhole.size() : 0));
  const std::vector<Rule> rules = HONE_TRY(rules_for(is_whole));
  const KnownPrices prices(std::nullopt, true);
  std::shared_ptr<const Cost> cost = prices.cost(target, [](std::string_view) {});
  if (cost == nullptr) cost = std::make_shared<AnalyticCost>(target);
  const Graph graph = HONE_TRY(graph_named(name));
  const Optimized found = HONE_TRY(
      optimize(graph, rules, target, *cost,
               {.rewrite = {.seconds = search_seconds.number()}, .margin = 0, .threads = 1}));
  Row row = {{"gain", 1}, {"low", 1}, {"high", 1}, {"taken", 1}, {"ort", 0}};
  row["priced"] = found.before / found.after;
  row["rewrites"] = 0;
  row["outside"] = static_cast<double>(found.outside) / static_cast<double>(found.nodes);
  if (!found.is_cheaper) return row;
  for (const AppliedRule& each : applied_rules(found.plan))
    row["rewrites"] += static_cast<double>(each.times);
  CompileOptions options;
  options.cost = cost;
  options.plan.threads = 1;
  Compilation before(graph, target, options);
  set_rewrites(options.plan, found.plan);
  Compilation after(graph, target, options);
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 1));
  const PlanDuel fight = HONE_TRY(duel(*HONE_TRY(before.image()), *HONE_TRY(after.image()), inputs,
                                       {.seconds = duel_seconds.number()}));
  if (fight.outcome != Outcome::measured || !fight.times.interval)
    return bad_input("{}: {} {}", name, hone::name(fight.outcome), fight.detail);
  row["gain"] = fight.gain();
  if (found.after < (1 - kPriceMargin) * found.before) row["taken"] = fight.gain();
  row["low"] = 1 / fight.times.interval->high;
  row["high"] = 1 / fight.times.interval->low;
  if (!has_onnx_runtime()) return row;
  row["ort"] = HONE_TRY(gain_in_onnx_runtime(graph, found.graph, inputs));
  return row;
}

void measure(benchmark::State& state, const std::string& name, std::vector<double>& gains) {
  const Target target = host_target().value();
  const std::string version = fmt::format("search {} s", search_seconds.number());
  for (auto _ : state) {
    const Result<Row> row =
        kept_row({"rewrites", name, target, version}, [&] { return measured(name, target); });
    if (!row.ok()) return state.SkipWithError(row.error().to_string().c_str());
    for (const auto& [column, value] : *row) state.counters[column] = value;
    gains.push_back(row->at("gain"));
  }
}

const Rows rows([] {
  static std::vector<double> gains;
  for (std::string_view each : split(models.text(), ',')) {
    const std::string name(each);
    benchmark::RegisterBenchmark(name.c_str(), [name](auto& state) { measure(state, name, gains); })
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
  benchmark::RegisterBenchmark("mean", [](auto& state) {
    double sum = 0;
    for (double gain : gains) sum += std::log(gain);
    for (auto _ : state) {
    }
    if (gains.empty()) return state.SkipWithError("nothing was measured");
    state.counters["gain"] = std::exp(sum / static_cast<double>(gains.size()));
    state.counters["least"] = *std::ranges::min_element(gains);
    state.counters["most"] = *std::ranges::max_element(gains);
  })->Iterations(1);
});

}  // namespace
}  // namespace hone::bench::HONE_FILE
