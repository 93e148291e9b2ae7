#include "learn/models/train_kernel_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "cache/compile_cache.h"
#include "cost/analytic_kernel.h"
#include "cost/learned_cost.h"
#include "ir/reference/evaluate.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "learn/layers.h"
#include "learn/models/judge_prices.h"
#include "learn/trainer.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/target/target_testing.h"
#include "tune/calibration_set.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Not;

// The same wherever the tests run: the schedules that are drawn, and so the choices, depend on it.
const Target& target() {
  static const Target target = restricted(parse_target(kSampleTarget, "t").value(), Isa::avx2);
  return target;
}

// As if the machine took longer for some features than the analytic price says.
double time_of(const Features& features, double price) {
  const double wrong = 0.8 * double{features.reads_apart} + 0.3 * double{features.unroll_tails} -
                       0.15 * double{features.unroll} + 0.1 * double{features.depth} +
                       0.5 * double{features.is_pool};
  return price * std::exp(wrong);
}

const std::vector<KernelSample>& samples() {
  static const std::vector<KernelSample> all = [] {
    std::vector<KernelSample> samples;
    Rng rng(3);
    const AnalyticCost cost(target());
    const auto kernels = calibration_kernels(target(), cost, 1).value();
    for (const CalibrationKernel& kernel : kernels) {
      KernelSample sample{
          .timed = {.facts = kernel.facts, .schedules = {kernel.planned}, .seconds = {}},
          .noise = {},
          .runs = {},
          .kind = std::string(kernel.kind),
          .programs = {fmt::format("p{}", samples.size() % 6)}};
      const ScheduleSpace space(kernel.facts->body, *kernel.facts, target());
      for (int i = 0; i < 11; ++i) sample.timed.schedules.push_back(space.sample(rng));
      AnalyticKernel analytic(kernel.facts, target(), {}, 1);
      for (const Schedule& each : sample.timed.schedules) {
        Features features;
        const double price = analytic.describe(each, features);
        sample.timed.seconds.push_back(time_of(features, price));
        sample.noise.push_back(0.01);
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }();
  return all;
}

ModelTraining small() {
  ModelTraining options;
  options.members = 2;
  options.epochs = 5;
  options.network.width1 = 16;
  options.network.width2 = 8;
  options.slate = 12;
  options.rate = 0.01;
  options.fits_prices = false;
  return options;
}

std::vector<KernelSample> of_program(bool is_last) {
  std::vector<KernelSample> some;
  for (const KernelSample& sample : samples())
    if ((sample.programs[0] == "p5") == is_last) some.push_back(sample);
  return some;
}

KernelModel trained(const ModelTraining& options) {
  Result<KernelModel> model = train_kernel_model(of_program(false), target(), 1, options);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  return *std::move(model);
}

const KernelModel& trained() {
  static const KernelModel model = trained(small());
  return model;
}

TEST(TrainKernelModel, OrdersSchedulesOfUnseenProgramsBetter) {
  auto model = std::make_shared<KernelModel>(trained());
  model->reach = 1e6;  // all kernels of the kinds that it has seen
  const std::vector<KernelSample> unseen = of_program(true);
  const MeanVerdict learned = mean_of(judge_prices(unseen, LearnedCost(target(), model), 1));
  const MeanVerdict analytic = mean_of(judge_prices(unseen, AnalyticCost(target()), 1));
  EXPECT_GT(learned.tau, analytic.tau + 0.02);
  EXPECT_LT(learned.error, analytic.error);
  EXPECT_EQ(learned.kernels, unseen.size());
}

TEST(TrainKernelModel, KnowsLevelsOfKindsAndNoSizes) {
  for (const auto& [kind, level] : trained().levels) EXPECT_LT(std::abs(level), 1) << kind;
  EXPECT_TRUE(trained().levels.contains("pool"));
  for (const ModelMember& member : trained().members)
    for (size_t f = kSortFeatures; f < kKernelFeatures; ++f)
      for (size_t j = 0; j < 16; ++j) EXPECT_EQ(member.input[f * 16 + j], 0) << kFeatureNames[f];
}

TEST(TrainKernelModel, SetsFeaturesOfSchedulesOffByAJitter) {
  std::vector<DescribedKernel> described;
  for (const KernelSample& sample : samples())
    described.push_back(describe(sample, target(), 1, {}));
  const FeatureScale scale = scale_of(described);
  const int64_t sample = 0;
  const auto features = [&](double jitter) {
    const KernelSlates slates(described, scale, 12, 1, jitter);
    const Batch batch = slates.batch({&sample, 1}, 0).value();
    const std::span<const float> numbers = batch.find("features")->second.as<float>();
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  const std::vector<float> plain = features(0), off = features(0.2);
  EXPECT_EQ(features(0.2), off);
  double squares = 0, count = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const size_t f = i % kFeatures;
    if (f < kKernelFeatures || scale.factor[f] == 0) {
      EXPECT_EQ(off[i], plain[i]) << kFeatureNames[f];
    } else {
      squares += (double{off[i]} - double{plain[i]}) * (double{off[i]} - double{plain[i]});
      ++count;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / count), 0.2, 0.03);
}

// Kernels that only one program has leave no other one to judge by.
TEST(TrainKernelModel, KnowsNoKindOfOneProgramAlone) {
  ASSERT_TRUE(trained().has_seen("rows", Algorithm::nest));
  std::vector<KernelSample> kernels = of_program(false);
  for (KernelSample& kernel : kernels)
    if (kernel_kind(*kernel.timed.facts, Algorithm::generic) == "rows") kernel.programs = {"p0"};
  const KernelModel model = train_kernel_model(kernels, target(), 1, small()).value();
  EXPECT_FALSE(model.has_seen("rows", Algorithm::nest));
  EXPECT_TRUE(model.has_seen("elementwise", Algorithm::nest));
}

TEST(TrainKernelModel, IsTheSameAgain) { EXPECT_TRUE(trained(small()) == trained()); }

// With checkpoints in a new folder, until the first network is trained.
ModelTraining broken_off(const char* name) {
  ModelTraining options = small();
  options.folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(options.folder);
  CancelToken cancel;
  options.cancel = &cancel;
  options.told = [&](std::string_view line) {
    if (line.starts_with("network 1")) cancel.cancel();
  };
  const Result<KernelModel> ended = train_kernel_model(of_program(false), target(), 1, options);
  EXPECT_EQ(ended.ok() ? ErrorCode::internal : ended.error().code(), ErrorCode::interrupted);
  options.cancel = nullptr;
  options.told = {};
  return options;
}

TEST(TrainKernelModel, GoesOnWhereItWasBrokenOff) {
  ModelTraining options = broken_off("kernel_model");
  options.told = [](std::string_view line) { EXPECT_THAT(line, Not(HasSubstr("anew"))); };
  EXPECT_TRUE(trained(options) == trained());
}

// As many samples as before, so that the checkpoints themselves would fit.
TEST(TrainKernelModel, StartsAnewWithOtherData) {
  HONE_ONE_RUN_OF(5);
  std::vector<KernelSample> others = of_program(false);
  for (KernelSample& kernel : others) kernel.timed.seconds.back() *= 2;
  ModelTraining options = broken_off("kernel_model_of_others");
  std::string told;
  options.told = [&](std::string_view line) { told += line; };
  const KernelModel model = train_kernel_model(others, target(), 1, options).value();
  EXPECT_THAT(told, says("other data"));
  EXPECT_TRUE(model == train_kernel_model(others, target(), 1, small()).value());
}

TEST(TrainKernelModel, StartsAnewFromAnotherModel) {
  HONE_ONE_RUN_OF(5);
  ModelTraining options = broken_off("kernel_model_from_another"), alone = small();
  options.start = alone.start = &trained();
  EXPECT_TRUE(trained(options) == trained(alone));
}

// Plans are made by the trained model: the networks in plain C++, on features as they are,
// against the graph of the network.
TEST(TrainKernelModel, PutsTheNetworksIntoTheFastModel) {
  HONE_ONE_RUN_OF(5);
  std::vector<DescribedKernel> described;
  for (const KernelSample& sample : samples())
    described.push_back(describe(sample, target(), 1, {}));
  const FeatureScale scale = scale_of(described);
  NetworkOptions options{.width1 = 16, .width2 = 8};
  KernelSlates slates(described, scale, 12, 1);
  Trainer trainer = Trainer::make([&](Network& net) { return kernel_objective(net, options); },
                                  slates, target(), {.epochs = 2, .seed = 1})
                        .value();
  ASSERT_TRUE(trainer.train().ok());
  KernelModel model;
  model.width1 = 16;
  model.width2 = 8;
  model.low.fill(-1e9F);
  model.high.fill(1e9F);
  model.members = {member_of(trainer.weights(), scale)};
  const FastModel fast(model);

  for (const DescribedKernel& kernel : described) {
    std::vector<float> scaled;
    for (const Features& each : kernel.features)
      for (size_t f = 0; f < kFeatures; ++f)
        scaled.push_back((each.all()[f] - scale.mean[f]) * scale.factor[f]);
    const auto count = static_cast<int64_t>(kernel.features.size());
    const Type type = Type::get(DType::f32, {count, static_cast<int64_t>(kFeatures)});
    const Graph graph = trainer
                            .frozen(
                                [&](Network& net) {
                                  return std::vector{kernel_residual(net, net.input("x"), options)};
                                },
                                {{"x", type}})
                            .value();
    Compilation compiled(graph, target());
    const Tensor x = Tensor::of(type, std::span<const float>(scaled));
    const auto executable = compiled.executable().value();
    const std::vector<Tensor> out = executable->run(std::vector{x}).value();
    std::vector<FastModel::Said> said(kernel.features.size());
    fast.run(kernel.features, said);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_NEAR(said[static_cast<size_t>(i)].mean, out[0].real_at(i), 1e-5);
  }
}

TEST(TrainKernelModel, WeightsOfANetworkInAnotherScaleSayTheSame) {
  std::vector<DescribedKernel> described;
  for (const KernelSample& sample : samples())
    described.push_back(describe(sample, target(), 1, {}));
  FeatureScale scale = scale_of(described);
  for (float& mean : scale.mean) mean += 0.5F;
  const auto said_by = [&](const ModelMember& member) {
    KernelModel model = trained();
    model.members = {member};
    std::vector<FastModel::Said> said(described[0].features.size());
    FastModel(model).run(described[0].features, said);
    return said;
  };
  const ModelMember& member = trained().members[0];
  const auto before = said_by(member), after = said_by(member_of(weights_of(member, scale), scale));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i].mean, after[i].mean, 1e-3) << i;
}

TEST(TrainKernelModel, GoesOnFromAnotherModel) {
  HONE_ONE_RUN_OF(5);
  ModelTraining options = small();
  options.epochs = 1;
  options.rate = 1e-5;
  const auto error = [&](const KernelModel* start) {
    options.start = start;
    auto model = std::make_shared<KernelModel>(trained(options));
    model->reach = 1e6;
    return mean_of(judge_prices(of_program(true), LearnedCost(target(), model), 1)).error;
  };
  const double from_scratch = error(nullptr);
  options.network = {};  // the widths are those of the start
  EXPECT_LT(error(&trained()), from_scratch);
}

TEST(TrainKernelModel, LeavesFamiliesOfProgramsTogether) {
  std::vector<KernelSample> kernels(8);
  const std::vector<std::string> programs[] = {
      {"zoo:resnet18"},   {"zoo:resnet50"}, {"zoo:vgg16"},          {"zoo:vgg16"},
      {"zoo:squeezenet"}, {"zoo:mixer"},    {"zoo:mixer,image=96"}, {"zoo:resnet18", "zoo:vgg16"}};
  for (size_t k = 0; k < kernels.size(); ++k) kernels[k].programs = programs[k];
  for (uint64_t seed = 1; seed < 6; ++seed) {
    const auto folds = program_folds(kernels, 3, seed);
    EXPECT_EQ(folds[0], folds[1]);
    EXPECT_EQ(folds[2], folds[3]);
    EXPECT_EQ(folds[5], folds[6]);
    // One that two families share is in the parts of both.
    EXPECT_EQ(folds[7],
              (std::vector{std::min(folds[0], folds[2])[0], std::max(folds[0], folds[2])[0]}));
    std::set<size_t> all;
    for (const auto& its : folds) all.insert(its.begin(), its.end());
    EXPECT_EQ(all.size(), 3U);
  }
}

TEST(TrainKernelModel, RefusesWhatIsTooLittle) {
  std::vector<KernelSample> shared = samples();
  for (KernelSample& kernel : shared) kernel.programs = {"p1", "p2"};
  EXPECT_THAT(train_kernel_model(shared, target(), 1, small()).error().to_string(), says("learn"));
  std::vector<KernelSample> one_program = of_program(true);
  EXPECT_THAT(train_kernel_model(one_program, target(), 1, small()).error().to_string(),
              says("learn"));
  ModelTraining options = small();
  options.members = 1;
  EXPECT_THAT(train_kernel_model(samples(), target(), 1, options).error().to_string(),
              HasSubstr("two networks at least"));
}

TEST(JudgePrices, CountsByKind) {
  std::vector<KernelSample> unseen = of_program(true);
  const std::vector<KernelVerdict> verdicts = judge_prices(unseen, AnalyticCost(target()), 1);
  ASSERT_EQ(verdicts.size(), unseen.size());
  size_t kernels = 0;
  for (std::string_view kind : kKernelKinds) kernels += mean_of(verdicts, kind).kernels;
  EXPECT_EQ(kernels, unseen.size());
  for (const KernelVerdict& each : verdicts) {
    EXPECT_GE(each.top1, each.top5);
    EXPECT_GE(each.top5, 0);
  }
  const std::vector<KernelVerdict> again = judge_replicates(unseen);
  ASSERT_EQ(again.size(), unseen.size());
  for (const KernelVerdict& each : again) {
    EXPECT_GT(each.tau, 0.5);
    EXPECT_LE(each.tau, 1);
    EXPECT_LT(each.top1, 0.2);
  }
  EXPECT_EQ(worst_program(verdicts, verdicts), 1);
}

// A model that says nothing: its prices are the analytic ones.
KernelModel silent(double bound) {
  KernelModel model = random_model(target(), 1);
  for (ModelMember& member : model.members) {
    std::ranges::fill(member.output, 0.0F);
    member.bias3 = 0;
  }
  model.levels.clear();
  model.low.fill(-1e9F);
  model.high.fill(1e9F);
  model.bounds = {{"", std::vector<double>(std::size(kMeasuredCounts), bound)}};
  return model;
}

// One kernel whose times are its prices, and one whose times go the other way.
std::vector<KernelSample> right_and_wrong() {
  std::vector<KernelSample> two;
  for (const KernelSample& sample : samples()) {
    if (sample.kind != "dot" || two.size() == 2) continue;
    KernelSample kernel = sample;
    kernel.timed.seconds = price_all(kernel.timed, target(), 1, {});
    const double dearest = *std::ranges::max_element(kernel.timed.seconds);
    if (!two.empty())
      for (double& seconds : kernel.timed.seconds) seconds = dearest * dearest / seconds;
    two.push_back(std::move(kernel));
  }
  return two;
}

TEST(JudgePrices, CountsHowOftenTheBoundHolds) {
  std::vector<KernelSample> kernels = right_and_wrong();
  ASSERT_EQ(kernels.size(), 2U);
  const PriceTrial trial = judged(silent(0.25), kernels, target());
  EXPECT_EQ(trial.known, 1);
  EXPECT_EQ(trial.bound, 0.25);
  EXPECT_EQ(trial.learned[0].top1, 0);
  EXPECT_GT(trial.learned[1].top1, 0.25);
  EXPECT_EQ(trial.bound_holds, 0.5);
  KernelModel unbounded = silent(0.25);
  unbounded.bounds.clear();
  EXPECT_EQ(judged(unbounded, kernels, target()).bound, 0);
  KernelModel unknown = silent(0.25);
  unknown.seen.clear();
  const PriceTrial none = judged(unknown, kernels, target());
  EXPECT_EQ(none.known, 0);
  EXPECT_EQ(none.bound_holds, 0);
}

TEST(JudgePrices, ChoosesAsThePlannerDoes) {
  const std::vector<KernelSample> kernels = right_and_wrong();
  const auto trial_of = [&](double lead) {
    KernelModel model = silent(0.25);
    model.prices.trip = 1e4;
    model.lead = lead;
    return judged(model, kernels, target());
  };
  const PriceTrial never = trial_of(1), always = trial_of(0);
  EXPECT_NEAR(mean_of(never.chosen).top1, mean_of(never.plain).top1, 1e-12);
  EXPECT_NEAR(mean_of(always.chosen).top1, mean_of(always.learned).top1, 1e-12);
  EXPECT_NE(mean_of(never.chosen).top1, mean_of(always.chosen).top1);
}

TEST(JudgePrices, TrainsByOnePartAndJudgesByAnother) {
  HONE_ONE_RUN_OF(5);
  KernelData data;
  data.target = target();
  data.kernels = samples();
  ProgramSplit split;
  split.of(Part::train) = {"p0", "p1", "p2", "p3"};
  split.of(Part::validation) = {"p4"};
  split.of(Part::test) = {"p5"};
  ModelTraining options = small();
  options.epochs = 1;
  const PriceTrial trial = price_trial(data, split, options).value();
  EXPECT_EQ(trial.model.programs, (std::vector<std::string>{"p0", "p1", "p2", "p3", "p4"}));
  const size_t unseen = of_program(true).size();
  EXPECT_EQ(trial.plain.size(), unseen);
  EXPECT_EQ(trial.fitted.size(), unseen);
  EXPECT_EQ(trial.learned.size(), unseen);
  EXPECT_GT(trial.seconds, 0);

  // In absolute time, of kernels by one schedule.
  KernelData fusion = data;
  for (KernelSample& kernel : fusion.kernels) {
    kernel.timed.schedules.resize(1);
    kernel.timed.seconds.resize(1);
    kernel.noise.resize(1);
  }
  fusion.kernels.back().origin = KernelOrigin::groups;
  fusion.kernels.back().programs = {"p5"};
  data.kernels.pop_back();
  const std::vector<TimeVerdict> verdicts = time_trial(data, fusion, split, options).value();
  EXPECT_FALSE(verdicts.empty());
  size_t of_groups = 0;
  for (const TimeVerdict& each : verdicts) {
    EXPECT_GE(each.time, kLeastJudgedTime);
    EXPECT_EQ(each.analytic, each.fitted);  // training has not fitted it
    EXPECT_GT(each.learned, 0);
    of_groups += each.origin == KernelOrigin::groups ? 1 : 0;
  }
  EXPECT_EQ(of_groups, fusion.kernels.back().timed.seconds[0] >= kLeastJudgedTime ? 1U : 0U);
}

TEST(JudgePrices, GivesMeanAndMedianErrorsOfTimes) {
  const std::vector<TimeVerdict> verdicts = {
      {.kind = "dot", .time = 1, .analytic = 1.5, .learned = 1},
      {.kind = "dot", .origin = KernelOrigin::groups, .time = 2, .analytic = 1, .learned = 2.2},
      {.kind = "pool", .time = 4, .analytic = 12, .learned = 4}};
  const TimeErrors all = errors_of(verdicts, &TimeVerdict::analytic);
  EXPECT_EQ(all.kernels, 3U);
  EXPECT_DOUBLE_EQ(all.mean, 1);
  EXPECT_DOUBLE_EQ(all.median, 0.5);
  EXPECT_NEAR(errors_of(verdicts, &TimeVerdict::learned, "dot").median, 0.05, 1e-12);
  EXPECT_NEAR(errors_of(verdicts, &TimeVerdict::learned, "", KernelOrigin::groups).mean, 0.1,
              1e-12);
  EXPECT_TRUE(std::isnan(errors_of(verdicts, &TimeVerdict::learned, "rows").mean));
}

TEST(JudgePrices, SplitsConvsFromTheOthers) {
  KernelData data;
  const auto add = [&](const std::string& kind, std::vector<std::string> programs) {
    KernelSample kernel = samples()[0];
    kernel.kind = kind;
    kernel.programs = std::move(programs);
    data.kernels.push_back(std::move(kernel));
  };
  add("conv", {"a", "b"});
  add("depthwise", {"a"});
  add("dot", {"a", "b", "c"});
  const ProgramSplit convs = dissimilar_split(data, true);
  EXPECT_EQ(convs.of(Part::test), std::vector<std::string>{"a"});
  EXPECT_EQ(convs.of(Part::train), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(dissimilar_split(data, false).of(Part::train), std::vector<std::string>{"a"});
}

TEST(JudgePrices, GivesIntervalsByStudentsT) {
  const double values[] = {1, 2, 3};
  EXPECT_EQ(interval_of(values).mean, 2);
  EXPECT_NEAR(interval_of(values).half, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_TRUE(std::isinf(interval_of(std::span(values).first(1)).half));
}

// ---- Several processors -------------------------------------------------------------------------

// Three that differ by name, caches and clock. A slower clock makes what lies apart cheaper.
const std::vector<MeasuredSet>& sets() {
  static const std::vector<MeasuredSet> all = [] {
    std::vector<MeasuredSet> sets;
    for (const double clock : {1.0, 1.5, 2.0}) {
      MeasuredSet set{.target = target(), .processor = {}, .threads = 1, .kernels = {}};
      set.target.cpu = fmt::format("processor {}", sets.size());
      set.processor = set.target;
      set.processor.measured = true;
      for (double& peak : set.processor.peaks) peak *= clock;
      for (size_t k = 0; k < samples().size(); k += 2) {
        KernelSample kernel = samples()[k];
        kernel.programs = {fmt::format("p{}", k / 2 % 6)};
        AnalyticKernel analytic(kernel.timed.facts, set.target, {}, 1);
        for (size_t i = 0; i < kernel.timed.schedules.size(); ++i) {
          Features features;
          const double price = analytic.describe(kernel.timed.schedules[i], features);
          kernel.timed.seconds[i] =
              time_of(features, price) / clock * std::exp(clock * double{features.reads_apart});
        }
        set.kernels.push_back(std::move(kernel));
      }
      sets.push_back(std::move(set));
    }
    return sets;
  }();
  return all;
}

ModelTraining short_training() {
  ModelTraining options = small();
  options.epochs = 2;
  return options;
}

const KernelModel& trained_on_sets() {
  static const KernelModel model = train_kernel_model(sets(), short_training()).value();
  return model;
}

TEST(TrainKernelModel, MakesOneModelOfSeveralProcessors) {
  const KernelModel& model = trained_on_sets();
  EXPECT_EQ(model.members.size(), 2U + 3U);  // and one that leaves out each processor
  ASSERT_EQ(model.processors.targets.size(), 3U);
  EXPECT_EQ(model.kernels.size(), model.priced.size());
  bool reads_clock = false;
  const size_t clock = static_cast<size_t>(std::ranges::find(kTargetFeatureNames, "clock") -
                                           std::begin(kTargetFeatureNames));
  for (size_t j = 0; j < model.width1; ++j)
    reads_clock |= model.members[0].target[clock * model.width1 + j] != 0;
  EXPECT_TRUE(reads_clock);
  int64_t kernels = 0;
  for (const ModelTarget& each : model.processors.targets) {
    EXPECT_EQ(each.kernels, std::ssize(sets()[0].kernels));
    EXPECT_FALSE(each.trust.levels.empty());
    kernels += each.kernels;
    // Its own networks have gone on from the common ones.
    EXPECT_EQ(each.members.size(), 2U);
    EXPECT_NE(each.members[0].input, model.members[0].input);
    EXPECT_TRUE(each.members[0].target.empty());
  }
  EXPECT_EQ(kernels, std::ssize(model.kernels));
}

// Two processors with the same features, one of which is quick at what lies apart: the common
// networks cannot tell them apart.
TEST(TrainKernelModel, NetworksOfAProcessorKnowWhatNoFeatureSays) {
  std::vector<MeasuredSet> both = {sets()[0], sets()[0]};
  both[1].target.cpu = both[1].processor.cpu = "another processor";
  for (KernelSample& kernel : both[1].kernels) {
    AnalyticKernel analytic(kernel.timed.facts, both[1].target, {}, 1);
    for (size_t i = 0; i < kernel.timed.schedules.size(); ++i) {
      Features features;
      analytic.describe(kernel.timed.schedules[i], features);
      kernel.timed.seconds[i] *= std::exp(-4 * double{features.reads_apart});
    }
  }
  ModelTraining options = small();
  options.own_rate = options.rate;
  const KernelModel model = train_kernel_model(both, options).value();
  for (const MeasuredSet& set : both) {
    const KernelModel own = model_on(model, set.target).value();
    Target unknown = set.target;
    unknown.cpu = "a third one";
    KernelModel common = own;
    common.members = model_on(model, unknown).value().members;
    const auto tau_of = [&](const KernelModel& by) {
      const LearnedCost cost(set.target, std::make_shared<const KernelModel>(by));
      return mean_of(judge_prices(set.kernels, cost, 1)).tau;
    };
    EXPECT_GT(tau_of(own), tau_of(common) + 0.02) << set.target.cpu;
  }
}

// Bits are those of the seed, however many threads there are, and whatever ended training before.
TEST(TrainKernelModel, OfSeveralProcessorsIsTheSameAgain) {
  HONE_ONE_RUN_OF(5);
  ModelTraining options = short_training();
  options.compile.plan.threads = 2;
  EXPECT_TRUE(train_kernel_model(sets(), options).value() == trained_on_sets());
}

TEST(TrainKernelModel, OfSeveralProcessorsGoesOnWhereItWasBrokenOff) {
  HONE_ONE_RUN_OF(5);
  ModelTraining options = short_training();
  options.folder = std::filesystem::path(testing::TempDir()) / "kernel_model_of_several";
  std::filesystem::remove_all(options.folder);
  CancelToken cancel;
  options.cancel = &cancel;
  options.told = [&](std::string_view line) {
    if (line.starts_with("network 3")) cancel.cancel();
  };
  EXPECT_FALSE(train_kernel_model(sets(), options).ok());
  options.cancel = nullptr;
  options.told = {};
  EXPECT_TRUE(train_kernel_model(sets(), options).value() == trained_on_sets());
}

TEST(TrainKernelModel, RefusesSetsThatAreNoSeveralProcessors) {
  EXPECT_THAT(train_kernel_model(std::span(sets()).first(1), short_training()).error().to_string(),
              says("of one processor"));
  std::vector<MeasuredSet> others = {sets()[0], sets()[1]};
  others[1].threads = 2;
  EXPECT_THAT(train_kernel_model(others, short_training()).error().to_string(),
              says("of 1 threads, another of 2"));
  others = {sets()[0], sets()[1]};
  others[1].processor.measured = false;
  EXPECT_THAT(train_kernel_model(others, short_training()).error().to_string(),
              says("nobody has measured the rates of 'processor 1"));
  ModelTraining options = short_training();
  options.start = &trained();
  EXPECT_THAT(train_kernel_model(sets(), options).error().to_string(), says("random numbers"));
}

TEST(TrainKernelModel, FindsRatesThatTimesImply) {
  const auto found_by = [](double slower, const Prices& prices) {
    std::vector<KernelSample> kernels = samples();
    for (KernelSample& kernel : kernels) {
      kernel.timed.seconds = price_all(kernel.timed, target(), 1, prices);
      for (double& seconds : kernel.timed.seconds) seconds *= slower;
    }
    return with_fitted_rates(target(), kernels, 1);
  };
  const auto clock = [](const Target& found) {
    return found.peak(DType::f32) / target().peak(DType::f32);
  };
  const Target slow = found_by(1.25, {});
  EXPECT_TRUE(slow.measured);
  EXPECT_TRUE(check(slow).ok());
  EXPECT_EQ(processor_of(slow), processor_of(target()));
  EXPECT_NEAR(clock(slow), 0.8, 0.01);
  EXPECT_NEAR(clock(found_by(1, {})), 1, 0.01);
  // A slower cache hides the clock in part.
  Prices cache;
  cache.third_cache = 2;
  EXPECT_NEAR(clock(found_by(1.25, cache)), 0.8, 0.16);
}

// Twelve kernels of each processor, and networks that learn next to nothing, compiled once.
TEST(JudgePrices, LeavesOutProcessorsAndFamilies) {
  std::vector<MeasuredSet> few = sets();
  for (MeasuredSet& set : few) set.kernels.resize(12);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<CompileCache> cache = CompileCache::open(folder.path()).value();
  ModelTraining options = small();
  options.epochs = 1;
  options.network.width1 = options.network.width2 = 4;
  options.slates = 2;
  options.compile.cache = cache.get();
  const LeftOutTrials each = left_out_trials(few, {}, 2, options).value();
  EXPECT_EQ(each.processor.size(), 3U);
  EXPECT_EQ(each.both.size(), 3U);
  EXPECT_EQ(each.family.size(), 2U * 3U);
  for (const PriceTrial& trial : each.processor) {
    EXPECT_EQ(trial.learned.size(), 12U);
    EXPECT_EQ(trial.model.programs.size(), 6U);
    EXPECT_EQ(trial.model.kernels.size(), 24U);  // of the two others
  }
  for (const PriceTrial& trial : each.both) {
    EXPECT_LT(trial.learned.size(), 12U);
    EXPECT_LT(trial.model.programs.size(), 6U);
    for (const KernelVerdict& verdict : trial.learned)
      EXPECT_FALSE(std::ranges::binary_search(trial.model.programs, verdict.program));
  }
  for (const PriceTrial& trial : each.family)
    for (const KernelVerdict& verdict : trial.learned)
      EXPECT_FALSE(std::ranges::binary_search(trial.model.programs, verdict.program));
  // Judged by a processor that no model learns from.
  const auto two = std::span(few).first(2), one = std::span(few).last(1);
  const LeftOutTrials other = left_out_trials(two, one, 2, options).value();
  EXPECT_EQ(other.processor.size(), 1U);
  EXPECT_EQ(other.processor[0].model.kernels.size(), 24U);
  EXPECT_EQ(other.both.size(), 2U);
  EXPECT_EQ(other.family.size(), 2U * 2U);
}

}  // namespace
}  // namespace hone::HONE_FILE
