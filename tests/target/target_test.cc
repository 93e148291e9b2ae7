#include "target/target.h"
#include "target/fingerprint.h"

#include "base/file.h"
#include "base/text.h"
#include "target/cgroup.h"
#include "target/estimate.h"
#include "target/fingerprint.h"
#include "target/levels.h"
#include "target/probe.h"
#include "tests/target/target_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

Target sample() { return parse_target(kSampleTarget, "t").value(); }

std::string error_of(const Target& target) {
  const Status status = check(target);
  return status.ok() ? "" : status.error().to_string();
}

TEST(Target, NamesOfLevelsAndExtensionsAreReadBack) {
  for (Isa isa : kIsas) EXPECT_EQ(isa_from_name(name(isa)), isa);
  for (Extension e : kExtensions) EXPECT_EQ(extension_from_name(name(e)), e);
  EXPECT_FALSE(isa_from_name("sse").has_value());
  EXPECT_FALSE(extension_from_name("").has_value());
}

TEST(Target, CheckRefusesWhatAProgramSetWrong) {
  EXPECT_EQ(error_of(sample()), "");
  const auto with = [](auto change) {
    Target target = sample();
    change(target);
    return error_of(target);
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(with([](Target& t) { t.name = ""; }), HasSubstr("no name"));
  EXPECT_THAT(with([](Target& t) { t.caches.clear(); }), HasSubstr("0 cache levels"));
  EXPECT_THAT(with([](Target& t) { t.cores = -1; }), HasSubstr("number of cores is -1"));
  EXPECT_THAT(with([](Target& t) { t.peak(DType::f32) = 0; }), HasSubstr("the peak of f32 is 0"));
  EXPECT_THAT(with([](Target& t) { t.peak(DType::i8) = -1; }), HasSubstr("the peak of i8 is -1"));
  EXPECT_THAT(with([&](Target& t) { t.fork_join = kNan; }), HasSubstr("fork_join is nan"));
  EXPECT_THAT(with([&](Target& t) { t.memory_one_core = kNan; }), HasSubstr("memory from one"));
  EXPECT_THAT(with([&](Target& t) { t.caches[0].bytes_per_second = kNan; }),
              HasSubstr("cache level 1"));
}

TEST(Target, RestrictionDropsWhatTheLevelLacks) {
  const Target avx2 = restricted(sample(), Isa::avx2);
  EXPECT_EQ(avx2.isa, Isa::avx2);
  EXPECT_TRUE(avx2.extensions.empty());
  EXPECT_EQ(avx2.name, "big one-avx2");
  EXPECT_FALSE(avx2.measured);
  EXPECT_EQ(avx2.peak(DType::f32), sample().peak(DType::f32) / 2);
  EXPECT_EQ(avx2.peak(DType::f64), sample().peak(DType::f64) / 2);
  EXPECT_EQ(avx2.peak(DType::bf16), 0);  // its unit is gone
  EXPECT_LT(avx2.peak(DType::i8), sample().peak(DType::i8) / 8);
  EXPECT_EQ(avx2.caches[0].bytes_per_second, 190e9);
  EXPECT_EQ(avx2.caches[1], sample().caches[1]);  // slower than narrow loads
  EXPECT_EQ(error_of(avx2), "");

  const Target v2 = restricted(sample(), Isa::v2);
  EXPECT_LT(v2.peak(DType::f32), avx2.peak(DType::f32) / 2);  // no fused multiply-add either
  EXPECT_EQ(error_of(v2), "");
}

TEST(Target, RestrictionToWhatItIsChangesNothing) {
  EXPECT_EQ(restricted(sample(), Isa::avx512), sample());
  const Target v2 = restricted(sample(), Isa::v2);
  EXPECT_EQ(restricted(v2, Isa::avx512), v2);
}

TEST(Target, RestrictionOfANamelessMachineNamesItAnew) {
  Target target = sample();
  target.name = default_name(target);
  EXPECT_EQ(target.name, "avx512-8c");
  EXPECT_EQ(restricted(target, Isa::avx2).name, "avx2-8c");
}

// Two products of f32 take the bits of four of bf16; one unit of two multiplies bf16 on other
// processors.
TEST(Target, EstimatesAsManyUnitsForBf16AsTheProcessorHas) {
  Target target = sample();
  target.extensions = {Extension::avx512_bf16};
  for (const auto& [cpu, times] : {std::pair("AMD EPYC", 2), std::pair("Intel Xeon", 1)}) {
    target.cpu = cpu;
    estimate_rates(target);
    EXPECT_EQ(target.peak(DType::bf16), times * target.peak(DType::f32)) << cpu;
  }
  target.cpu = "AMD EPYC";
  target.extensions = {};
  estimate_rates(target);
  EXPECT_EQ(target.peak(DType::bf16), 0);
}

TEST(Target, LevelsGoFromAllInstructionsToTheFewest) {
  const std::vector<Target> levels = levels_of(sample());
  ASSERT_EQ(levels.size(), 4);
  EXPECT_EQ(levels[0], sample());
  EXPECT_EQ(levels[1].instructions(), (Instructions{Isa::avx512, {}}));
  EXPECT_EQ(levels[1].name, "big one-avx512");
  EXPECT_EQ(levels[1].peak(DType::f32), sample().peak(DType::f32));
  EXPECT_EQ(levels[1].peak(DType::bf16), 0);  // an extension's
  EXPECT_EQ(levels[2], restricted(sample(), Isa::avx2));
  EXPECT_EQ(levels[3], restricted(sample(), Isa::v2));
  for (const Target& level : levels) EXPECT_EQ(error_of(level), "");
  EXPECT_EQ(levels_of(levels[3]), std::vector{levels[3]});
}

// ---- The host ----------------------------------------------------------------------------------

std::set<std::string> cpu_flags() {
  const Result<std::string> text = read_file("/proc/cpuinfo", 64 << 20);
  std::set<std::string> flags;
  if (!text.ok()) return flags;
  for (std::string_view line : split_lines(*text)) {
    if (!line.starts_with("flags")) continue;
    for (std::string_view word : split_words(line.substr(line.find(':') + 1))) flags.emplace(word);
    break;
  }
  return flags;
}

TEST(HostTarget, IsSound) {
  const Result<Target> host = host_target();
  if (!host.ok()) GTEST_SKIP() << host.error().to_string();
  EXPECT_EQ(error_of(*host), "");
  EXPECT_FALSE(host->measured);
  EXPECT_EQ(host->name, default_name(*host));
  EXPECT_EQ(parse_target(print(*host), "t").value(), *host);
  for (Isa isa : kIsas) EXPECT_EQ(error_of(restricted(*host, isa)), "");
}

TEST(HostTarget, AgreesWithTheKernel) {
  const Result<Target> host = host_target();
  const std::set<std::string> flags = cpu_flags();
  if (!host.ok() || flags.empty()) GTEST_SKIP() << "no flags of the kernel";
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* flag) { return flags.contains(flag); });
  };
  // Not "abm": some kernels leave it out where CPUID has it.
  const bool avx2 = has({"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"});
  const bool avx512 = avx2 && has({"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"});
  EXPECT_EQ(host->isa, avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::v2);
  if (!avx512) return;
  EXPECT_EQ(host->extensions.contains(Extension::avx512_bf16), has({"avx512_bf16"}));
  EXPECT_EQ(host->extensions.contains(Extension::avx512_vnni), has({"avx512_vnni"}));
  EXPECT_EQ(host->extensions.contains(Extension::avx512_fp16), has({"avx512_fp16"}));
  EXPECT_EQ(host->extensions.contains(Extension::amx_bf16), has({"amx_tile", "amx_bf16"}));
  EXPECT_EQ(host->extensions.contains(Extension::amx_int8), has({"amx_tile", "amx_int8"}));
}

// ---- Control groups ----------------------------------------------------------------------------

class Groups : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder.path() / file;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(write_file_atomic(path, text).ok());
  }
  TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
};

TEST_F(Groups, OfVersion2LimitWithTheTightestAbove) {
  put("a/b/cpu.max", "max 100000\n");
  put("a/cpu.max", "250000 100000\n");
  put("cpu.max", "800000 100000\n");
  put("a/b/memory.max", "1000000\n");
  put("a/memory.max", "max\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", folder.path()), 2.5);
  EXPECT_EQ(cgroup_memory("0::/a/b\n", folder.path()), 1000000);
}

TEST_F(Groups, OfVersion1LimitByController) {
  put("cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
  put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const std::string_view membership = "3:cpu,cpuacct:/a\n4:memory:/\n";
  EXPECT_EQ(cgroup_cpus(membership, folder.path()), 1.5);
  EXPECT_EQ(cgroup_memory(membership, folder.path()), std::nullopt);
  put("memory/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(cgroup_memory(membership, folder.path()), 4096);
}

TEST_F(Groups, ThatAreOddLimitNothing) {
  put("cpu.max", "0 0\n");
  put("memory.max", "lots\n");
  for (const char* membership :
       {"0::/\n", "0::/../../..\n", "", "nonsense", "::::", "0::/gone\n"}) {
    EXPECT_EQ(cgroup_cpus(membership, folder.path()), std::nullopt) << membership;
    EXPECT_EQ(cgroup_memory(membership, folder.path()), std::nullopt) << membership;
  }
}

// ---- Fingerprint -------------------------------------------------------------------------------

TEST(Fingerprint, IsOfWhatDecidesCodeAndSpeed) {
  Target target;
  target.cpu = "A Processor";
  target.isa = Isa::avx2;
  target.cores = 4;
  target.caches = {{.bytes = 1 << 15, .cores = 1, .bytes_per_second = 1e11}};
  const uint64_t known = fingerprint(target);
  const auto after = [&](const auto& change) {
    Target changed = target;
    change(changed);
    return fingerprint(changed);
  };
  EXPECT_NE(after([](Target& t) { t.cpu = "Another"; }), known);
  EXPECT_NE(after([](Target& t) { t.isa = Isa::avx512; }), known);
  EXPECT_NE(after([](Target& t) { t.extensions.insert(Extension::avx512_vnni); }), known);
  EXPECT_NE(after([](Target& t) { t.cores = 2; }), known);
  EXPECT_NE(after([](Target& t) { t.caches[0].bytes *= 2; }), known);
  EXPECT_NE(after([](Target& t) { t.caches[0].cores = 2; }), known);
  EXPECT_NE(after([](Target& t) { t.caches.push_back(t.caches[0]); }), known);
  // The target that a probe measures, and those that people name.
  EXPECT_EQ(after([](Target& t) {
              t.name = "mine";
              t.caches[0].bytes_per_second = 2e11;
              t.memory_bytes = 1;
              t.memory_one_core = t.memory_all_cores = 3;
              t.peak(DType::f32) = 4;
              t.fork_join = 5;
              t.measured = true;
            }),
            known);
  // Logs on disk have it.
  EXPECT_EQ(known, 0x5e12948c07c98e42u);
}

TEST(Fingerprint, OfACoreIsThatOfMachinesWithMoreOrFewer) {
  Target target;
  target.cpu = "A Processor";
  target.isa = Isa::avx2;
  target.cores = 4;
  target.caches = {{.bytes = 1 << 15, .cores = 1},
                   {.bytes = 1 << 20, .cores = 1},
                   {.bytes = 1 << 25, .cores = 4}};
  const uint64_t known = core_fingerprint(target);
  const auto after = [&](const auto& change) {
    Target changed = target;
    change(changed);
    return core_fingerprint(changed);
  };
  EXPECT_NE(after([](Target& t) { t.cpu = "Another"; }), known);
  EXPECT_NE(after([](Target& t) { t.isa = Isa::avx512; }), known);
  EXPECT_NE(after([](Target& t) { t.extensions.insert(Extension::avx512_vnni); }), known);
  EXPECT_NE(after([](Target& t) { t.caches[0].bytes *= 2; }), known);
  EXPECT_EQ(after([](Target& t) { t.cores = 2; }), known);
  EXPECT_NE(after([](Target& t) { t.caches[1].bytes *= 2; }), known);
  EXPECT_EQ(after([](Target& t) { t.caches[2].bytes *= 2; }), known);
  EXPECT_EQ(after([](Target& t) { t.caches[2].cores = 1; }), known);
  // Shipped models have it.
  EXPECT_EQ(known, 0xa9e36ab46d5ff890u);
}

// ---- Probing -----------------------------------------------------------------------------------

TEST(Probe, MeasuresEachLevelThatTheHostHas) {
  const Result<Target> host = host_target();
  if (!host.ok()) GTEST_SKIP() << host.error().to_string();
  for (Isa isa : kIsas) {
    if (isa > host->isa) continue;
    const Result<Target> target = probe_target({.seconds = 0, .isa = isa});
    ASSERT_TRUE(target.ok()) << target.error().to_string();
    EXPECT_EQ(error_of(*target), "");
    EXPECT_EQ(target->isa, isa);
    EXPECT_TRUE(target->measured);
    EXPECT_GT(target->peak(DType::i8), 0);
    EXPECT_EQ(target->peak(DType::f16) > 0, target->extensions.contains(Extension::avx512_fp16));
  }
}

TEST(Probe, StopsWhenItIsCancelled) {
  if (!host_target().ok()) GTEST_SKIP();
  CancelToken cancel;
  cancel.cancel();
  const Result<Target> target = probe_target({.cancel = &cancel});
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().code(), ErrorCode::interrupted);
}

TEST(Probe, TakesNoMoreThanAMinute) {
  EXPECT_EQ(probe_target({.seconds = 61}).error().code(), ErrorCode::usage);
  EXPECT_EQ(probe_target({.seconds = -1}).error().code(), ErrorCode::usage);
}

}  // namespace
}  // namespace hone::HONE_FILE
