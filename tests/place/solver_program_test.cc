#include "place/solver_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "place/plain_system.h"

// Placers that ask a program of others. Scripts stand for the programs here: the real ones may not
// be installed (tests/cli/place.sh asks them if they are).

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// Two devices of 1000 bytes; four nodes in a row, each with 400 bytes.
PlaceProblem row_of_four() {
  PlaceProblem problem;
  problem.name = "row";
  problem.system.name = "two";
  problem.system.targets = {plain_target("chip", 1000)};
  problem.system.devices = {{2, 0, 1000}};
  problem.system.links = {star_links("port", 1e6)};
  for (int64_t i = 0; i < 4; ++i) {
    problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}});
    problem.nodes.back().held = 400;
  }
  problem.nodes[3].pinned = 0;
  problem.tensors = {{0, {1}, 100, 0}, {1, {2}, 100, 0}, {2, {3}, 100, 0}};
  return problem;
}

// A program of this text for the shell.
fs::path script(std::string_view name, std::string_view text) {
  fs::path path = fs::path(testing::TempDir()) / name;
  EXPECT_TRUE(write_file_atomic(path, fmt::format("#!/bin/sh\n{}", text)).ok());
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

PlaceSolver with_metis(fs::path program) {
  return {.program = {}, .metis = std::move(program), .scratch = testing::TempDir()};
}
PlaceSolver with_cbc(fs::path program) {
  return {.program = std::move(program), .metis = {}, .scratch = testing::TempDir()};
}

PlaceResult placed(const PlaceProblem& problem, std::string_view by, PlaceSolver solver) {
  return place(PlaceJudge(problem), {.by = std::string(by), .solver = std::move(solver)}).value();
}

// The graph's file stands before the number of parts, at the end of the command line.
constexpr std::string_view kLast =
    "for word; do file=$before; before=$word; done\nparts=$before\n"
    "head -n 1 \"$file\" >\"$(dirname \"$0\")/metis.head\"\n";

TEST(Metis, PartsAreMendedForMemoryAndPins) {
  const PlaceProblem problem = row_of_four();
  ASSERT_TRUE(check(problem).ok());
  // All on device 1, which is too small for that, and where one node may not be.
  const fs::path metis =
      script("gpmetis", fmt::format("{}printf '1\\n1\\n1\\n1\\n' >\"$file.part.$parts\"\n", kLast));
  const PlaceResult result = placed(problem, "metis", with_metis(metis));
  const PlacerOutcome& outcome = result.placers.back();
  EXPECT_EQ(outcome.name, "metis");
  EXPECT_LT(outcome.value, kCannotRun);
  EXPECT_EQ(outcome.note, "");
  // Vertices, edges, both kinds of weights, time and memory.
  EXPECT_EQ(read_file(fs::path(testing::TempDir()) / "metis.head", 100).value(), "4 3 011 2\n");
}

// A host has memory without a limit: accelerators still get a share of the bytes.
TEST(Metis, NoShareIsZeroBesideALargeHost) {
  PlaceProblem problem = row_of_four();
  problem.system.devices = {{1, 0, 1000}, {1, 0, int64_t{1} << 50}};
  problem.nodes[3].pinned = kAnywhere;
  const fs::path metis =
      script("gpmetis", fmt::format("cp \"${{1#-tpwgts=}}\" \"$(dirname \"$0\")/metis.shares\"\n{}"
                                    "printf '1\\n1\\n1\\n1\\n' >\"$file.part.$parts\"\n",
                                    kLast));
  EXPECT_LT(placed(problem, "metis", with_metis(metis)).placers.back().value, kCannotRun);
  const std::string shares = read_file(fs::path(testing::TempDir()) / "metis.shares", 1000).value();
  // 1000 bytes of 1000 and 1600.
  EXPECT_THAT(shares, HasSubstr("0 : 1 = 0.384615385"));
  EXPECT_THAT(shares, HasSubstr("1 : 1 = 0.615384615"));
}

TEST(Metis, WhatGivesNoPartsIsTold) {
  const PlaceProblem problem = row_of_four();
  for (const std::string_view text : {"exit 1\n", "printf '1\\n' >\"$file.part.$parts\"\n",
                                      "printf '1\\n7\\n1\\n1\\n' >\"$file.part.$parts\"\n"}) {
    const fs::path metis = script("gpmetis", fmt::format("{}{}", kLast, text));
    const PlaceResult result = placed(problem, "metis", with_metis(metis));
    EXPECT_EQ(result.placers.back().value, kCannotRun);
    EXPECT_THAT(result.placers.back().note, HasSubstr("gpmetis gave no parts"));
  }
  EXPECT_THAT(placed(problem, "metis", with_metis({})).placers.back().note,
              HasSubstr("no program 'gpmetis'"));
}

// Node 0 has two children; the program says that the second one is the favourite.
TEST(Favourites, AreThoseOfTheLinearProgram) {
  PlaceProblem problem = row_of_four();
  problem.nodes[3].pinned = kAnywhere;
  problem.tensors = {{0, {1, 2}, 100, 0}, {1, {3}, 100, 0}};
  const fs::path cbc = script("cbc",
                              "cp \"$1\" \"$(dirname \"$0\")/sct.lp\"\n"
                              "for word; do solution=$word; done\n"
                              "printf 'Optimal - objective value 3\\n 0 w 3 0\\n 1 x_0 1 0\\n "
                              "2 x_2 0.2 0\\n' >\"$solution\"\n");
  const PlaceJudge judge(problem);
  const PlaceOptions options = {.by = "sct", .solver = with_cbc(cbc)};
  PlaceRun run(judge, options);
  EXPECT_THAT(favourites_by_program(run).value(), ElementsAre(2, 3, UINT32_MAX, UINT32_MAX));
  // Both edges out of node 0 cannot be free; nothing else ties x.
  const std::string text = read_file(fs::path(testing::TempDir()) / "sct.lp", 10'000).value();
  EXPECT_THAT(text, HasSubstr(" + x_0 + x_1 >= 1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("x_2 >= 1")));
  EXPECT_THAT(placed(problem, "sct", with_cbc(cbc)).placers.back().note,
              HasSubstr("by the linear program"));
  EXPECT_THAT(placed(problem, "sct", with_cbc(script("cbc", "exit 1\n"))).placers.back().note,
              HasSubstr("greedy pairs"));
}

}  // namespace
}  // namespace hone::HONE_FILE
