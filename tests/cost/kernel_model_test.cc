#include "cost/kernel_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "cost/fast_model.h"
#include "cost/model_file.h"
#include "formats/safetensors.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

Target target() { return parse_target(kSampleTarget, "t").value(); }

std::filesystem::path file() {
  return std::filesystem::path(testing::TempDir()) /
         testing::UnitTest::GetInstance()->current_test_info()->name();
}

// The error of reading of the model's file after a change, whose checksum fits if `is_signed`.
std::string failure(const std::function<void(Safetensors&)>& change, bool is_signed = false) {
  EXPECT_TRUE(write_kernel_model(file(), random_model(target(), 1)).ok());
  Safetensors content = read_safetensors(file()).value();
  change(content);
  if (is_signed) {
    Hasher hasher;
    for (const auto& [key, text] : content.metadata)
      if (key != "checksum") hasher.add(std::string_view(key)).add(std::string_view(text));
    for (const NamedTensor& each : content.tensors)
      hasher.add(std::string_view(each.name)).add(each.tensor.bytes());
    content.metadata["checksum"] = fmt::format("{:016x}", hasher.value());
  }
  const std::string other = file().native() + ".changed";
  EXPECT_TRUE(write_safetensors(other, content).ok());
  const Result<KernelModel> read = read_kernel_model(other);
  return read.ok() ? "" : read.error().to_string();
}

TEST(KernelModel, IsReadAsItWasWritten) {
  const KernelModel model = random_model(target(), 1);
  ASSERT_TRUE(write_kernel_model(file(), model).ok());
  EXPECT_TRUE(read_kernel_model(file()).value() == model);
  EXPECT_EQ(hash_of(model), hash_of(read_kernel_model(file()).value()));
  EXPECT_NE(hash_of(model), hash_of(random_model(target(), 2)));
}

TEST(KernelModel, OfNoKnownKindIsReadToo) {
  KernelModel model = random_model(target(), 1);
  model.seen.clear();
  ASSERT_TRUE(write_kernel_model(file(), model).ok());
  EXPECT_TRUE(read_kernel_model(file()).value() == model);
}

TEST(KernelModel, RefusesDamage) {
  EXPECT_THAT(failure([](Safetensors& content) { content.metadata["reach"] = "7"; }),
              says("checksum"));
  EXPECT_THAT(failure([](Safetensors& content) { content.tensors.pop_back(); }), says("checksum"));
  EXPECT_THAT(failure([](Safetensors& content) { content.metadata.erase("checksum"); }),
              HasSubstr("the entry 'checksum' is missing"));
  EXPECT_THAT(failure([](Safetensors& content) { content.metadata["format"] = "other"; }),
              HasSubstr("the format is 'other'"));
}

TEST(KernelModel, RefusesFeaturesOfAnotherVersion) {
  const std::string text =
      failure([](Safetensors& content) { content.metadata["features"] = "older"; }, true);
  EXPECT_THAT(text, says("features of version older ... " + feature_version()));
  EXPECT_THAT(text, says("'hone train cost'"));
  EXPECT_EQ(failure([](Safetensors&) {}, true), "");
}

// Every byte of the file counts, and no damage is more than an error.
TEST(KernelModel, RefusesWhatCannotBe) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const auto error = [&](const std::function<void(KernelModel&)>& change) {
    KernelModel model = random_model(target(), 1);
    change(model);
    EXPECT_TRUE(write_kernel_model(folder.path() / "model", model).ok());
    const Result<KernelModel> read = read_kernel_model(folder.path() / "model");
    return read.ok() ? "" : read.error().to_string();
  };
  EXPECT_EQ(error([](KernelModel& model) { model.bounds.clear(); }), "");
  EXPECT_THAT(error([](KernelModel& model) { model.threads = 0; }), HasSubstr("0 threads"));
  EXPECT_THAT(error([](KernelModel& model) { model.low[3] = 2e6F; }), HasSubstr("above 'high'"));
}

TEST(KernelModel, RefusesEveryChangedByteOrReadsTheSame) {
  const KernelModel model = random_model_of_several(target(), 1);
  ASSERT_TRUE(write_kernel_model(file(), model).ok());
  const std::string bytes = read_file(file().native(), kMaxModelBytes).value();
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::string changed = bytes;
    changed[rng.below(i % 2 == 0 ? 3000 : bytes.size())] ^= static_cast<char>(1 + rng.below(255));
    if (i % 7 == 0) changed.resize(rng.below(changed.size()));
    const Result<KernelModel> read =
        parse_kernel_model(std::as_bytes(std::span(changed)), "changed");
    if (read.ok()) EXPECT_TRUE(*read == model);
  }
}

TEST(KernelModel, IsForOneTarget) {
  const KernelModel model = random_model(target(), 1);
  EXPECT_TRUE(check_is_for(model, target()).ok());
  Target other = target();
  other.cores = 4;
  EXPECT_THAT(check_is_for(model, other).error().to_string(), HasSubstr("is of the target"));
  other = target();
  other.memory_one_core *= 2;  // rates say nothing: each probe finds others
  EXPECT_TRUE(check_is_for(model, other).ok());
}

// ---- Of several processors ----------------------------------------------------------------------

TEST(KernelModel, OfSeveralProcessorsIsReadAsItWasWritten) {
  const KernelModel model = random_model_of_several(target(), 1);
  ASSERT_TRUE(write_kernel_model(file(), model).ok());
  EXPECT_TRUE(read_kernel_model(file()).value() == model);
}

TEST(KernelModel, OfSeveralProcessorsRefusesWhatCannotBe) {
  const auto error = [](const std::function<void(KernelModel&)>& change) {
    KernelModel model = random_model_of_several(target(), 1);
    change(model);
    EXPECT_TRUE(write_kernel_model(file(), model).ok());
    const Result<KernelModel> read = read_kernel_model(file());
    return read.ok() ? "" : read.error().to_string();
  };
  EXPECT_EQ(error([](KernelModel&) {}), "");
  EXPECT_THAT(error([](KernelModel& model) { model.processors.low.clock = 7; }),
              HasSubstr("'targets/low' is above 'targets/high'"));
  EXPECT_THAT(
      error([](KernelModel& model) { model.processors.targets[1].features.clock = std::nanf(""); }),
      HasSubstr("not a number"));
  EXPECT_THAT(error([](KernelModel& model) { model.members[1].target.assign(12 * 13, NAN); }),
              HasSubstr("member1/target"));
  EXPECT_THAT(error([](KernelModel& model) { model.processors.targets[1].members.clear(); }),
              HasSubstr("no network 'processor1/member0'"));
  EXPECT_THAT(
      error([](KernelModel& model) { model.processors.targets[0].members[2].bias2[0] = NAN; }),
      HasSubstr("processor0/member2/bias2"));
}

TEST(KernelModel, OfSeveralProcessorsIsForNoGpu) {
  const Target gpu = *preset_gpu("sm_90");
  EXPECT_THAT(model_on(random_model_of_several(target(), 1), gpu).error().to_string(),
              HasSubstr("is a GPU"));
}

TEST(KernelModel, OfSeveralProcessorsIsForAnyTarget) {
  const KernelModel model = random_model_of_several(target(), 1);
  EXPECT_TRUE(check_is_for(model, target()).ok());
  EXPECT_EQ(model.find_target(target()), nullptr);
  const KernelModel abroad = model_on(model, target()).value();
  EXPECT_TRUE(check_is_for(abroad, target()).ok());
  EXPECT_FALSE(abroad.is_of_several());
  EXPECT_EQ(abroad.reach, model.reach);
  EXPECT_EQ(abroad.lead, model.lead);
  EXPECT_EQ(abroad.bounds, model.bounds);
  EXPECT_TRUE(abroad.prices == model.prices);
  // With what was measured there.
  Prices measured;
  measured.load = 1.5;
  const KernelModel fitted = model_on(model, target(), &measured).value();
  EXPECT_TRUE(fitted.prices == measured);
  EXPECT_EQ(fitted.reach, model.processors.fitted.reach);
  EXPECT_EQ(fitted.levels, model.processors.fitted.levels);
  // One that it has learned from has its own.
  Target second = target();
  second.cpu = "second";
  const KernelModel at_home = model_on(model, second, &measured).value();
  const ModelTarget& its = model.processors.targets[1];
  EXPECT_TRUE(at_home.prices == its.prices);
  EXPECT_EQ(at_home.lead, its.trust.lead);
  EXPECT_EQ(at_home.reach, its.trust.reach);
  EXPECT_EQ(at_home.levels, its.trust.levels);
  EXPECT_EQ(at_home.bounds, its.trust.bounds);
  EXPECT_EQ(at_home.members, its.members);
  EXPECT_NE(abroad.members[0].input, at_home.members[0].input);
  EXPECT_NE(hash_of(abroad), hash_of(at_home));
  // One of a single target stays of it.
  EXPECT_THAT(model_on(random_model(target(), 1), second).error().to_string(),
              HasSubstr("is of the target"));
}

// A kernel that was measured on another processor is like a measured one, no more.
TEST(KernelModel, HasLearnedFromKernelsOfTheProcessorAlone) {
  KernelModel model = random_model_of_several(target(), 1);
  Features features;
  for (float& each : features.all()) each = 3;
  std::array<float, kKernelFeatures> at;
  for (size_t f = 0; f < kKernelFeatures; ++f)
    at[f] = (3 - model.mean[f]) / std::max(model.deviation[f], 1e-6F);
  std::array<float, kKernelFeatures> other = at;
  other[0] += 5;
  model.kernels = {at, other, other};
  model.priced = {0, 0, 0};
  model.processors.targets[0].kernels = 1;
  model.processors.targets[1].kernels = 2;
  Target first = target(), second = target();
  first.cpu = "first";
  second.cpu = "second";
  EXPECT_TRUE(model_on(model, first).value().has_learned_from(features));
  EXPECT_FALSE(model_on(model, second).value().has_learned_from(features));
  EXPECT_FALSE(model_on(model, target()).value().has_learned_from(features));
  EXPECT_NEAR(model_on(model, second).value().distance(features), 0, 1e-3);
  const KernelModel part = model_on(model, second).value();
  ASSERT_TRUE(write_kernel_model(file(), part).ok());
  EXPECT_TRUE(read_kernel_model(file()).value() == part);
  KernelModel one = random_model(target(), 1);
  one.kernels = {other, at};
  EXPECT_TRUE(one.has_learned_from(features));
}

// A kernel that one processor has, by whatever instructions, says nothing of another one.
TEST(KernelModel, IsNearAKernelAbroadWhereTwoProcessorsHaveSuch) {
  KernelModel model = random_model_of_several(target(), 1);
  const Features features = {};
  const std::array<float, kKernelFeatures> at = {};
  std::array<float, kKernelFeatures> near = at, far = at;
  near[0] = 1;
  far[0] = 5;
  model.kernels = {at, near, far};
  model.priced = {0, 0, 0};
  model.processors.targets[0].kernels = 2;
  model.processors.targets[1].kernels = 1;
  Target first = target();
  first.cpu = "first";
  EXPECT_NEAR(model_on(model, first).value().distance(features), 0, 1e-3);  // it has seen that
  const KernelModel abroad = model_on(model, target()).value();
  EXPECT_NEAR(abroad.distance(features), 5, 1e-3);
  ASSERT_TRUE(write_kernel_model(file(), abroad).ok());
  EXPECT_TRUE(read_kernel_model(file()).value() == abroad);
  model.processors.targets[0].kernels = 1;
  model.processors.targets[1].kernels = 2;
  EXPECT_NEAR(model_on(model, target()).value().distance(features), 1, 1e-3);
  model.processors.targets[1].name = "first, 64 KiB";
  EXPECT_EQ(model_on(model, target()).value().distance(features), INFINITY);

  KernelModel wrong = abroad;
  wrong.abroad[0].count = 7;
  ASSERT_TRUE(write_kernel_model(file(), wrong).ok());
  EXPECT_THAT(read_kernel_model(file()).error().to_string(),
              HasSubstr("do not have the 3 kernels"));
}

// Weights of a processor that it has not seen become part of the biases: times its features less
// their means.
TEST(KernelModel, PutsFeaturesOfTheTargetIntoBiases) {
  const KernelModel model = random_model_of_several(target(), 1);
  // Rates that nobody has measured count as the mean, and features beyond all that was seen as the
  // nearest.
  Target unknown = target();
  unknown.measured = false;
  const KernelModel abroad = model_on(model, unknown).value();
  const TargetFeatures features = target_features(unknown);
  for (size_t j = 0; j < model.width1; ++j) {
    float bias = model.members[0].bias1[j];
    for (size_t f = 0; f < kTargetSizes; ++f)
      bias += (std::clamp(features.all()[f], 2.0F, 3.0F) - 2.5F) *
              model.members[0].target[f * model.width1 + j];
    EXPECT_NEAR(abroad.members[0].bias1[j], bias, 1e-6);
    EXPECT_TRUE(abroad.members[0].target.empty());
  }
}

TEST(TargetFeatures, AreLogarithmsOfSizesAndOfRatesInACycle) {
  Target of = target();
  of.isa = Isa::avx2;
  of.extensions = {};
  of.caches = {{32 << 10, 1, 64e9}, {1 << 20, 1, 32e9}, {32 << 20, 1, 16e9}};
  of.memory_one_core = 8e9;
  of.peak(DType::f32) = 64e9;  // 32 operations in each of 2e9 cycles
  of.peak(DType::f64) = 32e9;
  of.peak(DType::i8) = 128e9;
  of.measured = true;
  const TargetFeatures features = target_features(of);
  EXPECT_FLOAT_EQ(features.vector, 5);
  EXPECT_FLOAT_EQ(features.first_cache, 15);
  EXPECT_FLOAT_EQ(features.second_cache, 20);
  EXPECT_FLOAT_EQ(features.last_cache, 25);
  EXPECT_FLOAT_EQ(features.clock, 1);
  EXPECT_FLOAT_EQ(features.double_peak, 0);
  EXPECT_FLOAT_EQ(features.byte_peak, 1);
  EXPECT_FLOAT_EQ(features.first_rate, 5);
  EXPECT_FLOAT_EQ(features.second_rate, 4);
  EXPECT_FLOAT_EQ(features.last_rate, 3);
  EXPECT_FLOAT_EQ(features.memory_rate, 2);
  of.measured = false;
  const TargetFeatures unknown = target_features(of);
  for (size_t f = 0; f < kTargetFeatures; ++f)
    EXPECT_EQ(std::isnan(unknown.all()[f]), f >= kTargetSizes) << kTargetFeatureNames[f];
}

TEST(KernelModel, KnowsHowMuchItHasSeen) {
  const KernelModel model = random_model(target(), 1);
  EXPECT_TRUE(model.has_seen("dot", Algorithm::gemm));
  EXPECT_FALSE(model.has_seen("dot", Algorithm::winograd));
  EXPECT_FALSE(model.has_seen("rows", Algorithm::nest));  // three are too few
  EXPECT_EQ(model.bound_of("dot")->kind, "dot");
  EXPECT_EQ(model.bound_of("pool")->kind, "");
}

TEST(KernelModel, MeasuresTheDistanceFromTheNearestKernel) {
  KernelModel model = random_model(target(), 1);
  model.mean[0] = 1;
  model.deviation[0] = 2;
  model.kernels[0][0] = 3;
  Features features;
  EXPECT_NEAR(model.distance(features), 0.5, 1e-6);  // from the second, which lies at the mean
  features.all()[0] = 6;
  EXPECT_NEAR(model.distance(features), 0.5, 1e-6);  // from the first
  features.all()[kKernelFeatures] = 100;             // of a schedule
  EXPECT_NEAR(model.distance(features), 0.5, 1e-6);
}

// As the formula says, in double, member by member.
TEST(FastModel, ComputesTheNetworks) {
  KernelModel model = random_model(target(), 1);
  model.high.fill(20);
  const FastModel fast(model);
  Rng rng(2);
  std::vector<Features> features(21);
  for (Features& each : features)
    for (float& x : each.all()) x = static_cast<float>(rng.uniform(0, 21));
  std::vector<FastModel::Said> said(features.size());
  fast.run(features, said);
  for (size_t i = 0; i < features.size(); ++i) {
    std::vector<double> outputs;
    for (const ModelMember& member : model.members) {
      std::vector<double> hidden(member.bias1.begin(), member.bias1.end());
      for (size_t f = 0; f < kFeatures; ++f)
        for (size_t j = 0; j < 12; ++j)
          hidden[j] +=
              std::min(20.0, double{features[i].all()[f]}) * double{member.input[f * 12 + j]};
      std::vector<double> second(member.bias2.begin(), member.bias2.end());
      for (size_t k = 0; k < 12; ++k)
        for (size_t j = 0; j < 7; ++j)
          second[j] += std::max(hidden[k], 0.0) * double{member.middle[k * 7 + j]};
      outputs.push_back(double{member.bias3});
      for (size_t j = 0; j < 7; ++j)
        outputs.back() += std::max(second[j], 0.0) * double{member.output[j]};
    }
    double mean = 0, squares = 0;
    for (double each : outputs) mean += each / 3;
    for (double each : outputs) squares += (each - mean) * (each - mean) / 3;
    EXPECT_NEAR(double{said[i].mean}, mean, 1e-5);
    EXPECT_NEAR(double{said[i].deviation}, std::sqrt(squares), 1e-3);
  }
  EXPECT_TRUE(fast.is_inside(Features()));
  features[0].all()[5] = 20.5F;
  EXPECT_FALSE(fast.is_inside(features[0]));
}

}  // namespace
}  // namespace hone::HONE_FILE
