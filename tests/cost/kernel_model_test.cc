#include "cost/kernel_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "cost/fast_model.h"
#include "formats/safetensors.h"
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
  const KernelModel model = random_model(target(), 1);
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
