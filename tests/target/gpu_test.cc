#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "target/fingerprint.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

// A preset's text with a change.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = print(*preset_gpu("sm_90"));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << "\n" << text;
  return text.replace(at, from.size(), to);
}

void expect_fault(const std::string& text, std::string_view words) {
  const Result<Target> target = parse_target(text, "t");
  ASSERT_FALSE(target.ok()) << text;
  EXPECT_THAT(target.error(), says(std::string(words)));
}

TEST(GpuTarget, PresetsPassTheCheckAndAreReadBack) {
  ASSERT_EQ(gpu_presets().size(), 3U);
  for (const GpuPreset& preset : gpu_presets()) {
    const std::optional<Target> target = preset_gpu(preset.name);
    ASSERT_TRUE(target);
    EXPECT_TRUE(check(*target).ok()) << check(*target).error().to_string();
    EXPECT_EQ(fmt::format("sm_{}", target->gpu->capability), preset.name);
    const std::string text = print(*target);
    EXPECT_EQ(text.find("isa"), std::string::npos) << text;
    const Result<Target> again = parse_target(text, "t");
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(*again, *target);
  }
  EXPECT_FALSE(preset_gpu("sm_70"));
}

TEST(GpuTarget, OtherCapabilitiesAreLikeThePresetOfTheirSort) {
  EXPECT_EQ(gpu_like_preset(86).cpu, preset_gpu("sm_89")->cpu);  // A100 has half the cores
  EXPECT_EQ(gpu_like_preset(80), *preset_gpu("sm_80"));
  EXPECT_EQ(gpu_like_preset(100).cpu, preset_gpu("sm_90")->cpu);
  EXPECT_EQ(gpu_like_preset(120).cpu, preset_gpu("sm_89")->cpu);
  EXPECT_EQ(gpu_like_preset(120).gpu->capability, 120);
  EXPECT_TRUE(check(gpu_like_preset(120)).ok());
}

// An SM does as much in a cycle, whatever its clock is.
TEST(GpuTarget, RatesGoWithTheClock) {
  const Target usual = gpu_like_preset(90), slow = gpu_like_preset(90, 0.99e9);  // of 1.98
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i8})
    EXPECT_DOUBLE_EQ(slow.peak(dtype), usual.peak(dtype) / 2);
  EXPECT_DOUBLE_EQ(slow.caches[0].bytes_per_second, usual.caches[0].bytes_per_second / 2);
  EXPECT_EQ(slow.memory_all_cores, usual.memory_all_cores);
}

TEST(GpuTarget, LevelsOfACpuLeaveItAsItIs) {
  const Target target = *preset_gpu("sm_80");
  for (Isa isa : kIsas) EXPECT_EQ(restricted(target, isa), target);
}

TEST(GpuTarget, FingerprintsTellCapabilitiesApart) {
  Target target = *preset_gpu("sm_80");
  const uint64_t before = fingerprint(target);
  target.gpu->capability = 86;
  EXPECT_NE(fingerprint(target), before);
}

TEST(GpuTarget, FaultsNameTheFieldAndTheNumber) {
  expect_fault(changed("sm_90,", "sm90,"), "t:3:9...sm_90");
  expect_fault(changed("sm_90,", "sm_x,"), "t:3:9...sm_90");
  expect_fault(changed("sm_90,", "sm_70,"), "t:1...sm_70...sm_80");
  expect_fault(changed("64 warps", "0 warps"), "t:3...0");
  expect_fault(changed("64 warps", "64 threads"), "t:3...warps");
  expect_fault(changed("227 KiB a block", "229 KiB a block"), "shared memory of a block");
  expect_fault(changed("a launch", "a launch\n  isa = avx2"), "isa...gpu");
  expect_fault(changed("a launch", "a launch\n  gpu = sm_80"), "gpu is given twice");
}

}  // namespace
}  // namespace hone::HONE_FILE
