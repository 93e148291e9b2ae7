#include "target/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "target/presets.h"
#include "tests/target/system_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

System preset(std::string_view text) {
  return preset_system(text, parse_target(kSampleTarget, "t").value()).value();
}

std::vector<std::string> names(const Topology& topology, int64_t from, int64_t to) {
  std::vector<std::string> names;
  for (uint32_t link : topology.route(from, to)) names.push_back(topology.link_name(link));
  return names;
}

TEST(Topology, RingsGoTheShorterWay) {
  const Topology ring(preset("ring:8"));
  EXPECT_EQ(ring.links().size(), 16);
  EXPECT_THAT(names(ring, 7, 1), ElementsAre("ring 7 > 0", "ring 0 > 1"));
  EXPECT_THAT(names(ring, 1, 7), ElementsAre("ring 1 > 0", "ring 0 > 7"));
  for (int64_t from = 0; from < 8; ++from) {  // both ways are as long: forward
    ASSERT_EQ(ring.route(from, (from + 4) % 8).size(), 4);
    EXPECT_EQ(names(ring, from, (from + 4) % 8)[0],
              fmt::format("ring {} > {}", from, (from + 1) % 8));
  }
  EXPECT_EQ(ring.route(3, 3).size(), 0);
  EXPECT_EQ(Topology(preset("ring:2")).links().size(), 2);
  EXPECT_EQ(Topology(preset("ring:1")).links().size(), 0);
}

TEST(Topology, RingsOfOneWayGoAround) {
  System system = preset("ring:8");
  system.links[0].duplex = Duplex::one_way;
  EXPECT_EQ(Topology(system).route(1, 0).size(), 7);
  system = preset("ring:2");
  system.links[0].duplex = Duplex::one_way;
  EXPECT_THAT(names(Topology(system), 1, 0), ElementsAre("ring 1 > 0"));
}

TEST(Topology, MeshesGoAlongTheFirstAxisFirst) {
  const Topology mesh(preset("mesh:3x4"));
  EXPECT_EQ(mesh.links().size(), 2U * (2 * 4 + 3 * 3));
  EXPECT_THAT(names(mesh, 0, 6), ElementsAre("x_link 0 > 4", "y_link 4 > 5", "y_link 5 > 6"));
  EXPECT_THAT(names(Topology(preset("torus:3x4")), 0, 11),
              ElementsAre("x_link 0 > 8", "y_link 8 > 11"));
}

TEST(Topology, TreesGoUpAndDown) {
  const Topology tree(preset("tree:2x2x4"));
  EXPECT_THAT(names(tree, 0, 3), ElementsAre("port 0 > host 0", "port host 0 > 3"));
  EXPECT_THAT(names(tree, 0, 15),
              ElementsAre("port 0 > host 0", "network host 0 > pod 0", "uplink pod 0 > all 0",
                          "uplink all 0 > pod 1", "network pod 1 > host 3", "port host 3 > 15"));
  EXPECT_DOUBLE_EQ(tree.latency(tree.route(0, 15)), 2 * (0.5e-6 + 2e-6 + 30e-6));
}

TEST(Topology, BusesAreCrossedByAllThatGoesThrough) {
  const Topology local(preset("local:2"));
  EXPECT_THAT(names(local, 0, 1),
              ElementsAre("copy 0 > all 0", "memory of all 0", "copy all 0 > 1"));
  const Topology racks(parse_system(sample_system(), "s").value());
  EXPECT_THAT(names(racks, 0, 1), ElementsAre("port 0 > host 0", "port host 0 > 1"));
  EXPECT_THAT(names(racks, 0, 2),
              ElementsAre("port 0 > host 0", "bus of rack 0", "port host 1 > 2"));
  EXPECT_THAT(names(racks, 0, 7),
              ElementsAre("port 0 > host 0", "bus of rack 0", "port host 1 > 3", "row 3 > 7"));
}

TEST(Topology, BothWaysOfAHalfDuplexLinkAreOne) {
  System system = preset("package:3");
  EXPECT_EQ(Topology(system).links().size(), 6);
  system.links[0].duplex = Duplex::half;
  const Topology topology(system);
  EXPECT_EQ(topology.links().size(), 3);
  EXPECT_EQ(topology.route(0, 2), topology.route(2, 0));
  EXPECT_THAT(names(topology, 2, 0), ElementsAre("die 0 - 2"));
}

TEST(Topology, ReportsADeviceThatIsNotReached) {
  System system = preset("mesh:2x2");
  EXPECT_EQ(Topology(system).unreached(), -1);
  system.links.pop_back();
  EXPECT_EQ(Topology(system).unreached(), 1);
}

// Random kinds of links on top of a slow bus, so that all devices are reached.
System random_system(Rng& rng) {
  const int64_t a = rng.between(1, 3), b = rng.between(1, 4);
  System system = preset(fmt::format("torus:{}x{}", a, b));
  system.levels = {{"host", b}};
  system.links = {{"slow", Shape::bus, "all", 0, 0, Duplex::half, 1e9, 9e-6, true}};
  for (int64_t i = rng.between(0, 4); i > 0; --i) {
    Links links;
    links.name = fmt::format("l{}", i);
    links.shape = rng.pick(kShapes);
    links.over = rng.chance(0.5) ? "x" : rng.chance(0.5) ? "y" : "host";
    links.duplex = links.shape == Shape::bus    ? Duplex::half
                   : links.shape == Shape::star ? kDuplexes[rng.below(2)]
                                                : rng.pick(kDuplexes);
    links.bytes_per_second = 1e9;
    links.latency = 1e-6 * static_cast<double>(rng.between(0, 5));
    if (links.shape == Shape::cable) {
      if (a * b < 2) continue;
      links.over = "";
      links.from = rng.between(0, a * b - 1);
      links.to = (links.from + rng.between(1, a * b - 1)) % (a * b);
    }
    system.links.push_back(links);
  }
  return system;
}

// "port 0 > host 0": where a link leads to and from; both ways are possible for "-".
std::vector<std::pair<std::string, std::string>> ways(const std::string& name) {
  const std::string ends = name.substr(name.find(' ') + 1);
  if (ends.starts_with("of ")) return {{ends.substr(3), ends.substr(3)}};
  const size_t at = std::min(ends.find(" > "), ends.find(" - "));
  const std::string from = ends.substr(0, at), to = ends.substr(at + 3);
  if (ends[at + 1] == '-') return {{from, to}, {to, from}};
  return {{from, to}};
}

TEST(Topology, RoutesAreConnectedAndNoDetourIsShorter) {
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    const System system = random_system(rng);
    ASSERT_TRUE(check(system).ok()) << check(system).error().to_string() << print(system);
    const Topology topology(system);
    const int64_t n = system.device_count();
    std::vector<double> latency(static_cast<size_t>(n * n));
    for (int64_t from = 0; from < n; ++from)
      for (int64_t to = 0; to < n; ++to) {
        const std::vector<uint32_t> route = topology.route(from, to);
        EXPECT_EQ(route.empty(), from == to);
        latency[static_cast<size_t>(from * n + to)] = topology.latency(route);
        std::string at = std::to_string(from);
        for (uint32_t link : route) {
          bool follows = false;
          for (const auto& [begin, end] : ways(topology.link_name(link)))
            // The switches of a bus are entered for nothing.
            if (!follows && (begin == at || begin == end || at.find(' ') != at.npos)) {
              at = end;
              follows = true;
            }
          EXPECT_TRUE(follows) << topology.link_name(link) << " after " << at << print(system);
        }
      }
    for (int64_t from = 0; from < n; ++from)
      for (int64_t by = 0; by < n; ++by)
        for (int64_t to = 0; to < n; ++to)
          ASSERT_LE(latency[static_cast<size_t>(from * n + to)],
                    latency[static_cast<size_t>(from * n + by)] +
                        latency[static_cast<size_t>(by * n + to)] + 1e-15)
              << print(system);
    // Each link that leads from a device to another one is a way.
    for (uint32_t link = 0; link < topology.links().size(); ++link)
      for (const auto& [begin, end] : ways(topology.link_name(link)))
        if (begin.find(' ') == begin.npos && end.find(' ') == end.npos)
          ASSERT_LE(latency[static_cast<size_t>(std::stoll(begin) * n + std::stoll(end))],
                    topology.links()[link].latency + 1e-15);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
