#include "base/text.h"
#include "base/rng.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kSampleTarget);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_error(const std::string& text, std::string_view words) {
  const Result<Target> target = parse_target(text, "t");
  ASSERT_FALSE(target.ok()) << text;
  EXPECT_THAT(target.error().to_string(), says(std::string(words)));
}

TEST(TargetText, IsReadFieldByField) {
  const Result<Target> target = parse_target(kSampleTarget, "t");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(target->name, "big one");
  EXPECT_EQ(target->cpu, "Some \"CPU\" @ 3 GHz");
  EXPECT_EQ(target->isa, Isa::avx512);
  EXPECT_EQ(target->extensions,
            (ExtensionSet{Extension::avx512_bf16, Extension::avx512_vnni, Extension::amx_int8}));
  EXPECT_EQ(target->cores, 8);
  ASSERT_EQ(target->caches.size(), 3U);
  EXPECT_EQ(target->caches[1], (CacheLevel{2 << 20, 2, 101.25e9}));
  EXPECT_EQ(target->memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(target->memory_one_core, 12e9);
  EXPECT_EQ(target->memory_all_cores, 80e9);
  EXPECT_EQ(target->peak(DType::f64), 107.5e9);
  EXPECT_EQ(target->peak(DType::i8), 6300e9);
  EXPECT_EQ(target->peak(DType::f16), 0);
  EXPECT_EQ(target->fork_join, 2.1e-6);
  EXPECT_TRUE(target->measured);
}

TEST(TargetText, IsPrintedAsItWasRead) {
  EXPECT_EQ(print(parse_target(kSampleTarget, "t").value()), kSampleTarget);
}

TEST(TargetText, ForgivesBlanksCommentsOrderAndOtherUnits) {
  const std::string_view text = R"(
    # of the machine room
    target "t" {   # a comment
      measured=false
      fork_join = 0 s
      peak f32 = 2e2 Gop/s
      peak f64 = 0.1 Top/s

      memory = 1024 MiB at 9000 MB/s a core,10 GB/s in all
      cache = 32 KiB for 1 cores at 1e11 B/s
      cores = 1
      isa = avx2
    })";
  const Result<Target> target = parse_target(text, "t");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(print(*target), R"(target "t" {
  isa = avx2
  cores = 1
  cache = 32 KiB for 1 core at 100 GB/s
  memory = 1 GiB at 9 GB/s a core, 10 GB/s in all
  peak f64 = 100 Gop/s
  peak f32 = 200 Gop/s
  fork_join = 0 us
  measured = false
}
)");
}

TEST(TargetText, AnyRateSurvivesExactly) {
  Rng rng(1);
  Target target = parse_target(kSampleTarget, "t").value();
  for (int i = 0; i < 2000; ++i) {
    target.peak(DType::f32) = std::pow(10, rng.uniform(0, 18));
    target.memory_one_core = std::pow(10, rng.uniform(0, 10));
    target.fork_join = std::pow(10, rng.uniform(-300, 0));
    target.memory_bytes = rng.between(1, kMaxTargetBytes);
    const Result<Target> again = parse_target(print(target), "t");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << print(target);
    ASSERT_EQ(*again, target) << print(target);
  }
}

TEST(TargetText, AnyNameSurvives) {
  Target target = parse_target(kSampleTarget, "t").value();
  target.name = "a\n\"\\#{}=\x01\xff";
  EXPECT_EQ(parse_target(print(target), "t").value(), target);
}

TEST(TargetText, SaysWhereAndWhatIsWrong) {
  expect_error("", "'target' ... end of the text ... t:1:1");
  expect_error("graph @f", "expected 'target', found 'graph' (t:1:1)");
  expect_error("target \"x", "target's name ... '\\\"x' ... t:1:8");
  expect_error("target \"x\" {\n  cores = 2\n", "'}' ... end of the text ... t:3:1");
  expect_error("target \"x\" {\n}\n", "does not say its isa");
  expect_error(std::string(kSampleTarget) + "more", "end of the text");
  expect_error(replaced("cores =", "coers ="), "there is no field 'coers' (t:4:3)");
  expect_error(replaced("cores =", "coers ="), "did you mean 'cores'?");
  expect_error(replaced("measured = true", "cores = 8"), "cores ... twice ... t:14:3");
  expect_error(replaced("peak bf16", "peak f32"), "peak f32 ... twice ... t:11:3");
  expect_error(replaced("peak bf16", "peak f33"), "'f33' ... element type ... t:11:8");
  expect_error(replaced("isa = avx512 ", "isa = avx1024 "), "'avx1024' is not a known level");
  expect_error(replaced("+ amx_int8", "+ amx_int9"), "'amx_int9' is not a known extension");
  expect_error(replaced("+ amx_int8", "+ amx_int9"), "avx512_bf16, avx512_vnni");
  expect_error(replaced("380 GB/s", "380 GB"), "expected one of GB/s, B/s, kB/s, MB/s, TB/s");
  expect_error(replaced("48 KiB", "48 KB"), "expected one of B, KiB, MiB, GiB, TiB, found 'KB'");
  expect_error(replaced("215 Gop/s", "fast Gop/s"), "'fast' is not a number (t:10:14)");
  expect_error(replaced("2.1 us", "2.1 us or so"), "end of the line ... 'or'");
  expect_error(replaced("true", "yes"), "expected 'true' or 'false', found 'yes'");
  expect_error(replaced("for 2 cores", "for 2"), "expected 'cores', found 'at'");
}

TEST(TargetText, RefusesNumbersThatMakeNoSense) {
  expect_error(replaced("380 GB/s", "-1 GB/s"), "outside of 1 to 1e+18 B/s (t:5:32)");
  expect_error(replaced("380 GB/s", "0 GB/s"), "outside of 1 to 1e+18 B/s (t:5:32)");
  expect_error(replaced("380 GB/s", "nan GB/s"), "number ... finite ... t:5:32");
  expect_error(replaced("380 GB/s", "inf GB/s"), "finite");
  expect_error(replaced("380 GB/s", "1e30 GB/s"), "1e30 GB/s is outside of 1 to 1e+18 B/s");
  expect_error(replaced("380 GB/s", "1e305 GB/s"), "f64");
  expect_error(replaced("380 GB/s", "1e-999999999999 GB/s"), "f64");
  expect_error(replaced("2.1 us", "-2 us"), "-2 us is outside of 0 to 1 s");
  expect_error(replaced("2.1 us", "2 s"), "2 s is outside of 0 to 1 s");
  expect_error(replaced("cores = 8", "cores = 0"), "0 is outside of 1..65536 (t:4:11)");
  expect_error(replaced("cores = 8", "cores = 99999999999999999999"), "64 bits");
  expect_error(replaced("48 KiB", "9999999 TiB"), "the size is above");
  expect_error(replaced("2 MiB", "2 KiB"), "level");
  expect_error(replaced("for 2 cores", "for 9 cores"), "it must be in 1..8");
  expect_error(replaced("80 GB/s in", "8 GB/s in"), "all cores together");
  expect_error(replaced("isa = avx512 ", "isa = avx2 "), "they need avx512");
}

TEST(TargetText, IsBounded) {
  expect_error(std::string(kMaxTargetText + 1, '#'), "more than 65536");
  std::string caches;
  for (int i = 1; i <= 9; ++i)
    caches += fmt::format("cache = {} MiB for 8 cores at 1 GB/s\n", 1000 + i);
  expect_error(replaced("memory =", caches + "memory ="), "more than 8 cache levels");
  expect_error(replaced("big one", std::string(300, 'x')), "has 300 bytes, more than 200");
}

}  // namespace
}  // namespace hone::HONE_FILE
