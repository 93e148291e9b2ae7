#include "target/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "base/text.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/system_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

Target sample_target() { return parse_target(kSampleTarget, "t").value(); }

std::string replaced(std::string_view from, std::string_view to) {
  std::string text = sample_system();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_error(const std::string& text, std::string_view words) {
  EXPECT_THAT(parse_system(text, "s"), says(std::string(words))) << text;
}

TEST(SystemText, IsReadRowByRow) {
  const Result<System> read = parse_system(sample_system(), "s");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->name, "two racks");
  EXPECT_EQ(read->device_count(), 8);
  EXPECT_EQ(read->device(3).memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(read->device(4).memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(read->targets, std::vector{sample_target()});
  EXPECT_EQ(read->levels, (std::vector<Level>{{"host", 2}, {"rack", 4}}));
  EXPECT_EQ(read->axes, (std::vector<Axis>{{"data", 2}, {"model", 4}}));
  ASSERT_EQ(read->links.size(), 6);
  EXPECT_EQ(read->links[1],
            (Links{"bus", Shape::bus, "rack", 0, 0, Duplex::half, 10e9, 0.5e-6, true}));
  EXPECT_EQ(read->links[2],
            (Links{"wire", Shape::pairs, "rack", 0, 0, Duplex::half, 1.25e9, 30e-6, false}));
  EXPECT_EQ(read->links[5],
            (Links{"cord", Shape::cable, "", 0, 7, Duplex::one_way, 3e9, 10e-6, true}));
}

TEST(SystemText, IsPrintedAsItWasRead) {
  EXPECT_EQ(print(parse_system(sample_system(), "s").value()), sample_system());
}

TEST(SystemText, TakesTheMemoryOfTheTargetUnlessItSaysSo) {
  const System read = parse_system(replaced(" with 1 GiB", ""), "s").value();
  EXPECT_EQ(read.device(7).memory_bytes, sample_target().memory_bytes);
}

TEST(SystemText, AnyRateSurvivesExactly) {
  Rng rng(1);
  System system = parse_system(sample_system(), "s").value();
  for (int i = 0; i < 500; ++i) {
    for (Links& links : system.links) {
      links.bytes_per_second = std::pow(10, rng.uniform(0, 18));
      links.latency = std::pow(10, rng.uniform(-300, 1));
    }
    const Result<System> again = parse_system(print(system), "s");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << print(system);
    ASSERT_EQ(*again, system) << print(system);
  }
}

TEST(SystemText, RefusesRowsThatAreNone) {
  expect_error("", "s:1:1 ... 'system'");
  expect_error("system \"a\" {\n", "s:2:1 ... '}'");
  expect_error("system \"a\" {\n}\n", "s:1:1 ... no devices");
  expect_error(replaced("axis data", "axes data"), "s:21:3 ... 'axes' ... axis");
  expect_error(replaced("star over", "stern over"), "s:23:15 ... 'stern' ... ring, line, pairs");
  expect_error(replaced("full duplex, 12", "full speed, 12"), "'full speed' ... half duplex");
  expect_error(replaced("bus over rack, 10", "bus over rack, half duplex, 10"),
               "s:24:29 ... 'half'");
  expect_error(replaced("unshared", "alone"), "s:25:63 ... unshared ... 'alone'");
  expect_error(replaced("2 devices", "2 hosts"), "devices ... 'hosts'");
  expect_error(sample_system() + "more", "end of the text ... 'more'");
  expect_error(replaced("cores = 8", "cores = none"), "s:5:13 ... 'none'");
}

TEST(SystemText, RefusesDevicesThatThereAreNot) {
  expect_error(replaced("0 to 7", "0 to 8"), "s:28:3 ... device 8 ... cord ... 0 to 7");
  expect_error(replaced("0 to 7", "7 to 7"), "cord ... device 7 ... itself");
  expect_error(replaced("0 to 7", "-1 to 7"), "-1 ... 0..65535");
  expect_error(replaced("4 of \"big one\"", "4 of \"small\""), "s:17:18 ... target ... small");
  expect_error(replaced("4 of \"big one\"", "0 of \"big one\""), "0 ... 1..65536");
}

TEST(SystemText, RefusesMeshesAndLevelsThatDoNotFitTheDevices) {
  expect_error(replaced("axis model = 4", "axis model = 3"),
               "s:22:3 ... 6 devices ... 8 ... model 3");
  expect_error(replaced("axis data = 2", "axis data = 65536"), "s:22:3 ... mesh ... 65536 devices");
  expect_error(replaced("host = 2", "host = 8"), "s:20:3 ... rack ... 4 ... groups of 8");
  expect_error(replaced("rack = 4", "rack = 6"), "s:20:3 ... 8 devices ... 6 ... rack");
  expect_error(replaced("rack = 4", "rack = 16"), "rack ... 16 ... 1..8");
  expect_error(replaced("level rack", "level all"), "'all'");
  expect_error(replaced("level rack", "level data"), "s:21:3 ... two ... 'data'");
}

TEST(SystemText, RefusesLinksThatCarryNothing) {
  expect_error(replaced("12 GB/s, 2 us", "0 GB/s, 2 us"), "s:23:44 ... 0 GB/s ... 1");
  expect_error(replaced("12 GB/s, 2 us", "nan GB/s, 2 us"), "finite");
  expect_error(replaced("2 us", "-2 us"), "-2 us ... 0 to 10");
  expect_error(replaced("1000 us", "11 s"), "11 s ... 0 to 10");
  expect_error(replaced("over data", "over date"), "s:26:3 ... 'date' ... row ... data");
  expect_error(replaced("link cord", "link row"), "s:28:3 ... two ... 'row'");
  expect_error(replaced("port = star over host, full duplex", "port = star over host, one way"),
               "s:23:3 ... port ... way back");
}

TEST(SystemText, RefusesDevicesThatOthersCannotReach) {
  const std::string text = print(preset_system("ring:4", sample_target()).value());
  const auto with = [&](std::string_view links) {
    return text.substr(0, text.find("  link")) + std::string(links) + "}\n";
  };
  expect_error(with(""), "s:1:1 ... device 0 ... device 1 ... links");
  expect_error(with("  link a = cable 0 to 1, full duplex, 1 GB/s, 1 us\n"), "device 2");
  expect_error(with("  link a = line over x, one way, 1 GB/s, 1 us\n"), "device 0 ... device 1");
  EXPECT_TRUE(parse_system(with("  link a = ring over x, one way, 1 GB/s, 1 us\n"), "s").ok());
}

TEST(SystemText, IsBounded) {
  EXPECT_THAT(parse_system(std::string(kMaxSystemText + 1, ' '), "s"),
              refuses(ErrorCode::limit, "s ... 1048576"));
  const System big = preset_system("torus:64x64", sample_target()).value();
  System pairs = big;
  pairs.links[0].shape = Shape::pairs;
  pairs.links[0].over = kAllDevices;
  EXPECT_THAT(check(pairs), refuses(ErrorCode::limit, "links"));
  System rows = big;
  rows.links.resize(kMaxSystemRows + 1);
  EXPECT_THAT(check(rows), refuses(ErrorCode::limit, "4097 kinds of links"));
  rows = big;
  rows.axes.resize(kMaxPlaces + 1);
  EXPECT_THAT(check(rows), refuses(ErrorCode::limit, "33 axes"));
}

TEST(SystemText, DamagedTextIsRefusedOrMeansSomething) {
  Rng rng(5);
  int64_t good = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = sample_system();
    for (int64_t damages = rng.between(1, 3); damages > 0; --damages) {
      const size_t at = rng.below(text.size()), from = rng.below(text.size());
      const size_t bytes = 1 + rng.below(rng.chance(0.5) ? 2 : 60);
      if (rng.chance(0.5))
        text.erase(at, bytes);
      else
        text.insert(at, text.substr(from, bytes));
    }
    const Result<System> read = parse_system(text, "s");
    if (!read.ok()) {
      EXPECT_TRUE(read.error().where().starts_with("s:")) << read.error().to_string();
      continue;
    }
    ++good;
    ASSERT_EQ(parse_system(print(*read), "s").value(), *read) << text;
  }
  EXPECT_GT(good, 50);
}

TEST(System, CheckRefusesWhatAProgramSetWrong) {
  const auto with = [](auto change) {
    System system = parse_system(sample_system(), "s").value();
    change(system);
    return check(system);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(with([](System&) {}).ok());
  EXPECT_THAT(with([](System& s) { s.name = ""; }), says("no name"));
  EXPECT_THAT(with([](System& s) { s.devices[0].target = 1; }), says("target 1 of 1"));
  EXPECT_THAT(with([](System& s) { s.devices[0].count = -1; }), says("devices is -1"));
  EXPECT_THAT(with([](System& s) { s.devices[0].memory_bytes = 0; }), says("memory ... 0"));
  EXPECT_THAT(with([](System& s) { s.targets.push_back(s.targets[0]); }), says("two targets"));
  EXPECT_THAT(with([](System& s) { s.targets[0].cores = 0; }), says("cores is 0"));
  EXPECT_THAT(with([](System& s) { s.levels[0].devices = 0; }), says("host is 0"));
  EXPECT_THAT(with([](System& s) { s.axes[0].name = "a b"; }), says("plain name"));
  EXPECT_THAT(with([](System& s) { s.links[1].duplex = Duplex::full; }), says("bus"));
  EXPECT_THAT(with([](System& s) { s.links[1].bytes_per_second = 0; }), says("bandwidth of bus"));
  EXPECT_THAT(with([&](System& s) { s.links[1].bytes_per_second = nan; }), says("bandwidth"));
  EXPECT_THAT(with([&](System& s) { s.links[1].latency = nan; }), says("latency of bus"));
}

// ---- Presets -----------------------------------------------------------------------------------

TEST(SystemPreset, EachIsSoundAndSurvivesItsText) {
  for (std::string_view text : {"local:1", "local:2", "local:64", "ring:1", "ring:2", "ring:8",
                                "mesh:2x3", "mesh:2x3x4", "torus:4x4", "torus:2x2x2", "tree:2x4",
                                "tree:2x2x4", "tree:1x1", "package:1", "package:4"}) {
    const Result<System> system = preset_system(text, sample_target());
    ASSERT_TRUE(system.ok()) << text << system.error().to_string();
    EXPECT_EQ(system->name, text);
    EXPECT_EQ(parse_system(print(*system), "s").value(), *system) << text;
  }
  for (const SystemPreset& preset : system_presets())
    EXPECT_TRUE(preset.form.starts_with(fmt::format("{}:", preset.name)));
}

TEST(SystemPreset, RefusesSizesThatDoNotSuit) {
  const auto made = [](std::string_view text) { return preset_system(text, sample_target()); };
  EXPECT_THAT(made("circle:8"), says("'circle' ... local, ring"));
  EXPECT_THAT(made("ring:0"), says("'0' ... 1..65536 ... ring:N"));
  EXPECT_THAT(made("ring:"), says("'' ... ring:N"));
  EXPECT_THAT(made("ring:2x2"), says("2 sizes ... ring:N"));
  EXPECT_THAT(made("mesh:4"), says("1 sizes ... mesh:XxY"));
  EXPECT_THAT(made("tree:4096x4096"), refuses(ErrorCode::limit, "65536 devices"));
  EXPECT_THAT(made("package:4096"), refuses(ErrorCode::limit, "links"));
}

TEST(SystemPreset, PartsShareTheMachine) {
  const Target whole = sample_target();
  const Target half = part_of(whole, 2);
  EXPECT_TRUE(check(half).ok());
  EXPECT_EQ(half.cores, 4);
  EXPECT_EQ(half.memory_bytes, whole.memory_bytes / 2);
  EXPECT_EQ(half.memory_all_cores, whole.memory_all_cores / 2);
  EXPECT_EQ(half.caches[2].cores, 4);
  const Target many = part_of(whole, 64);
  EXPECT_TRUE(check(many).ok());
  EXPECT_EQ(many.cores, 1);
  EXPECT_EQ(many.fork_join, 0);
  EXPECT_EQ(part_of(whole, 1), whole);
}

}  // namespace
}  // namespace hone::HONE_FILE
