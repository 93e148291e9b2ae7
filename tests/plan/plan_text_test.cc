#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "plan/plan.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr std::string_view kSample = R"(plan @mlp hash 0x5e1f000000000001 on "avx512-2c" {
  rewrite 1 = @fold(%a)
  rewrite 2 = @"odd rule"(%b, %"odd name") match 2
  threads = 2
  copy %"a copy" = %"odd name" for [%c]
  copy %h.last = %h for [%c, %a]
  fuse @k0 = {%h, %c, %a, %y}
  fuse @"k 1" = {%"odd name"}
  view %r = yes
  view %s = no
  layout %h = [0, 1/16, 1%16]
  schedule 0x00000000000000ff = {algorithm = generic}
  schedule 0x5e1f00000000abcd = {algorithm = nest, order = [1, 0], threads = 1, row = 1}
  schedule 0xfffffffffffffffe = {algorithm = gemm, pack_lhs = panels, pack_rhs = window}
  schedule 0xffffffffffffffff = {algorithm = gemm, lanes = [1:16], unroll = [0:4, 1:2]}
  order = [@k0, %loop, @"k 1"]
  offset %y = 0
  offset %z = 64
  region %loop.body {
    fuse @k0 = {%m}
    order = [@k0]
    region %inner.else {
    }
  }
}
)";

Plan sample() { return parse_plan(kSample, "p").value(); }

TEST(PlanText, KnowsTheLinesOfItsEntries) {
  const std::string text = fmt::format("# two\n{}{}", kSample, kSample);
  const std::vector<PlacedPlan> plans = parse_plans(text, "p").value();
  ASSERT_EQ(plans.size(), 2u);
  const int64_t lines = std::ranges::count(kSample, '\n');
  for (const auto& [entry, line] :
       std::map<std::string, int64_t>{{"rewrite 2", 3},
                                      {"threads", 4},
                                      {"copy %a copy", 5},
                                      {"fuse @k 1", 8},
                                      {"layout %h", 11},
                                      {"schedule 0x00000000000000ff", 12},
                                      {"order", 16},
                                      {"offset %z", 18},
                                      {"region %loop.body", 19},
                                      {"region %loop.body, fuse @k0", 20},
                                      {"region %loop.body, order", 21},
                                      {"region %loop.body, region %inner.else", 22}}) {
    EXPECT_EQ(plans[0].place_of(entry), fmt::format("p:{}", line + 1)) << entry;
    EXPECT_EQ(plans[1].place_of(entry), fmt::format("p:{}", line + 1 + lines)) << entry;
  }
  EXPECT_EQ(plans[0].place_of("schedule 0x00000000000000ff, @k0"), "p:13");
  EXPECT_EQ(plans[0].place_of("region %loop.body, layout %m"), "p:20");
  EXPECT_EQ(plans[0].place_of("layout %q"), "p:2");
  EXPECT_EQ(plans[0].place_of(""), "p:2");
}

TEST(PlanText, RoundTripsExactly) {
  const Plan plan = sample();
  EXPECT_EQ(print(plan), kSample);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_EQ(plan.rewrite[0], (Rewrite{"fold", {"a"}}));
  EXPECT_EQ(plan.rewrite[1], (Rewrite{"odd rule", {"b", "odd name"}, 2}));
  EXPECT_EQ(plan.copy.at("h.last"), (Copy{"h", {"c", "a"}}));
  EXPECT_EQ(plan.fuse[0].nodes, (std::vector<std::string>{"h", "c", "a", "y"}));
  EXPECT_EQ(plan.schedule.at(0xff).algorithm(), Algorithm::generic);
  EXPECT_EQ(plan.schedule.at(0xffffffffffffffff).lanes, (std::vector<Tile>{{1, 16}}));
  EXPECT_EQ(plan.order[2], "k 1");
  EXPECT_EQ(plan.region.at("loop.body").fuse[0].kernel, "k0");
}

TEST(PlanText, ReadsAnyLineBreaksAndComments) {
  const Plan plan = parse_plan("plan @m { # nothing said\n threads\n=\n1 view %x = no }").value();
  EXPECT_EQ(print(plan), "plan @m {\n  threads = 1\n  view %x = no\n}\n");
}

TEST(PlanText, ErrorsSayWhereAndWhy) {
  const auto error = [](std::string_view text) {
    const Result<Plan> plan = parse_plan(text, "p");
    return plan.ok() ? "" : plan.error().to_string();
  };
  const auto entry = [&](std::string_view text) {
    return error(fmt::format("plan @m {{\n  {}\n}}", text));
  };
  EXPECT_THAT(error(""), says("'plan' ... end of the text ... p:1:1"));
  EXPECT_THAT(error("plan m {}"), says("name ... 'm'"));
  EXPECT_THAT(error("plan @m hash 12 {}"), HasSubstr("expected a hash, like 0x0123456789abcdef"));
  EXPECT_THAT(error("plan @m hash 0x12 {}"), HasSubstr("expected a hash"));
  EXPECT_THAT(error("plan @m hash 0 x123456789abcdef0 {}"), HasSubstr("expected a hash"));
  EXPECT_THAT(error("plan @m hash 0x123456789abcdefg {}"), HasSubstr("expected a hash"));
  EXPECT_THAT(error("plan @m on x {}"), says("target's name"));
  EXPECT_THAT(error("plan @m on \"\" {}"), says("name ... empty"));
  EXPECT_THAT(error("plan @m {"), HasSubstr("expected a decision or '}', found the end"));
  EXPECT_THAT(error("plan @m {} {"), says("end of the text ... '{'"));
  EXPECT_THAT(entry("lay %x = [0]"), HasSubstr("there is no decision 'lay' (p:2:3)"));
  EXPECT_THAT(entry("layuot %x = [0]"), HasSubstr("did you mean 'layout'?"));
  EXPECT_THAT(entry("threads = 0"), HasSubstr("0 is outside of 1..2147483647 (p:2:13)"));
  EXPECT_THAT(entry("threads = 1 threads = 1"), HasSubstr("threads is decided twice (p:2:15)"));
  EXPECT_THAT(entry("copy %x = y"), HasSubstr("expected a value, like %h, found 'y'"));
  EXPECT_THAT(entry("copy %x = %y"), HasSubstr("expected 'for', found '}'"));
  EXPECT_THAT(entry("copy %x = %y for %z"), HasSubstr("expected '[', found '%z'"));
  EXPECT_THAT(entry("copy %x = %y for []"), HasSubstr("expected a value, like %h, found ']'"));
  EXPECT_THAT(entry("copy %x = %y for [%z %q]"), HasSubstr("expected ']', found '%q'"));
  EXPECT_THAT(entry("copy %x = %y for [%z] copy %x = %y for [%z]"),
              HasSubstr("%x is decided twice"));
  EXPECT_THAT(entry("fuse k0 = {%x}"), HasSubstr("expected a kernel, like @k0, found 'k0'"));
  EXPECT_THAT(entry("fuse @k0 = {}"), HasSubstr("expected a value, like %h, found '}'"));
  EXPECT_THAT(entry("fuse @k0 = {%3}"), says("%3 ... number ... names"));
  EXPECT_THAT(entry("fuse @k = {%x} fuse @k = {%y}"), HasSubstr("@k is decided twice (p:2:23)"));
  EXPECT_THAT(entry("rewrite = @r(%x)"), says("number of the rewrite"));
  EXPECT_THAT(entry("rewrite 2 = @r(%x)"), says("rewrite 2 ... 1 ... p:2:11"));
  EXPECT_THAT(entry("rewrite 1 = @r(%x) rewrite 1 = @r(%x)"), says("rewrite ... 2"));
  EXPECT_THAT(entry("rewrite 0 = @r(%x)"), HasSubstr("0 is outside of 1..10000"));
  EXPECT_THAT(entry("rewrite 1 = r(%x)"), HasSubstr("expected a rule, like @fold, found 'r'"));
  EXPECT_THAT(entry("rewrite 1 = @r()"), HasSubstr("expected a value, like %h, found ')'"));
  EXPECT_THAT(entry("rewrite 1 = @r(%x %y)"), HasSubstr("expected ')', found '%y'"));
  EXPECT_THAT(entry("rewrite 1 = @r(%x) match 1"), HasSubstr("1 is outside of 2..10000"));
  EXPECT_THAT(entry("view %x = maybe"), HasSubstr("expected 'yes' or 'no', found 'maybe'"));
  EXPECT_THAT(entry("view %x = yes view %x = no"), HasSubstr("%x is decided twice"));
  EXPECT_THAT(entry("layout %x = 0"), HasSubstr("expected a layout, like [0, 1]"));
  EXPECT_THAT(error("plan @m { schedule 0x0123456789abcdef = {algorithm = chain, stages = "
                    "[{algorithm = nest, stages = []}]} }"),
              says("stage"));
  EXPECT_THAT(error("plan @m { schedule 0x0123456789abcdef = {algorithm = chain, keep = [-1]} }"),
              HasSubstr("-1 is outside of 0.."));
  EXPECT_THAT(error("plan @m { layout %x = [0"), HasSubstr("this layout has no ']' (p:1:23)"));
  EXPECT_THAT(entry("layout %x = [0, z]"), HasSubstr("(p:2:15)"));
  EXPECT_THAT(entry("offset %x = -64"), HasSubstr("-64 is outside of 0.."));
  EXPECT_THAT(entry("offset %x = 0.5"), HasSubstr("(p:2:15)"));
  EXPECT_THAT(entry("order = []"), HasSubstr("expected a kernel or a value, found ']'"));
  EXPECT_THAT(entry("order = [@a] order = [@b]"), HasSubstr("order is decided twice"));
  EXPECT_THAT(entry("region %x = {}"), HasSubstr("expected '{', found '='"));
  EXPECT_THAT(entry("region %x {} region %x {}"), HasSubstr("%x is decided twice"));
  EXPECT_THAT(entry("region %x { threads = 1 }"), says("threads ... region"));
  const auto schedule = [&](std::string_view text) {
    return entry(fmt::format("schedule 0x0123456789abcdef = {{{}}}", text));
  };
  EXPECT_THAT(schedule(""), HasSubstr("expected a field of a schedule, found '}'"));
  EXPECT_THAT(schedule("row = 1"), HasSubstr("expected the field 'algorithm', found '}'"));
  EXPECT_THAT(schedule("algorithm = magic"), HasSubstr("expected an algorithm, found 'magic'"));
  EXPECT_THAT(schedule("algorithm = nest, speed = 1"),
              HasSubstr("a schedule has no field 'speed' (p:2:52)"));
  EXPECT_THAT(schedule("algorithm = gemm, row = 1"),
              HasSubstr("algorithm gemm has no field 'row' (p:2:52)"));
  EXPECT_THAT(schedule("pack_lhs = panels, algorithm = nest"),
              HasSubstr("algorithm nest has no field 'pack_lhs'"));
  EXPECT_THAT(schedule("algorithm = nest, block = [0:8]"), HasSubstr("no field 'block'"));
  EXPECT_THAT(schedule("algorithm = nest, keep = [1]"), HasSubstr("no field 'keep'"));
  EXPECT_THAT(schedule("algorithm = chain, row = 1"), HasSubstr("no field 'row'"));
  EXPECT_THAT(schedule("row = 1, row = 1"), HasSubstr("row is decided twice"));
  EXPECT_THAT(schedule("row = 256"), HasSubstr("256 is outside of 0..255"));
  EXPECT_THAT(schedule("lanes = [1]"), HasSubstr("expected ':', found ']'"));
  EXPECT_THAT(schedule("lanes = [1:0]"), HasSubstr("0 is outside of 1..2147483648"));
  EXPECT_THAT(schedule("order = [" + std::string(300, '0') + "]"), HasSubstr("p:2:"));
}

TEST(PlanText, SeveralStandBehindEachOther) {
  const std::vector<PlacedPlan> plans =
      parse_plans("# one\nplan @a {\n  threads = 1\n}\n\nplan @b {} plan @c {}", "p").value();
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].plan.threads, 1);
  EXPECT_EQ(plans[0].place, "p:2");
  EXPECT_EQ(plans[1].plan.graph, "b");
  EXPECT_EQ(plans[1].place, "p:6");
  EXPECT_EQ(plans[2].place, "p:6");
  const auto error = [](std::string_view text) {
    return parse_plans(text, "p").error().to_string();
  };
  EXPECT_THAT(error(""), says("'plan' ... end of the text ... p:1:1"));
  EXPECT_THAT(error("plan @a {}\nplam @b {}"), says("another plan ... 'plam' ... p:2:1"));
  std::string many;
  for (size_t i = 0; i <= kMaxPlans; ++i) many += "plan @a {}\n";
  EXPECT_THAT(error(many), says("10000 plans ... p:10001"));
}

TEST(PlanText, HostileTextIsBounded) {
  std::string deep = "plan @m {";
  for (int i = 0; i < 10000; ++i) deep += " region %x {";
  EXPECT_THAT(parse_plan(deep).error().to_string(), HasSubstr("regions are nested more than 64"));
  std::string list = "plan @m { schedule 0x0123456789abcdef = {order = [0";
  for (int i = 0; i < 10000; ++i) list += ", 0";
  EXPECT_THAT(parse_plan(list + "]} }").error().to_string(), HasSubstr("more than 64 entries"));
}

TEST(PlanText, ManyEntriesAreReadInLinearTime) {
  std::string text = "plan @m {\n";
  for (int i = 0; i < 50000; ++i)
    text +=
        fmt::format("schedule 0x{:016x} = {{algorithm = generic}} fuse @k{} = {{%v{}}}\n", i, i, i);
  const Plan plan = parse_plan(text + "}").value();
  EXPECT_EQ(plan.schedule.size(), 50000u);
  EXPECT_EQ(parse_plan(print(plan)).value(), plan);
}

TEST(PlanText, DiffNamesWhatDiffers) {
  const Plan before = sample();
  EXPECT_EQ(diff(before, before), "");
  Plan after = before;
  after.threads.reset();
  after.copy["h.last"].readers.pop_back();
  after.layout["h"] = Layout::row_major(2);
  after.offset["q"] = 128;
  after.region["loop.body"].order.clear();
  EXPECT_EQ(diff(before, after), R"(- %loop.body order = [@k0]
- copy %h.last = %h for [%c, %a]
+ copy %h.last = %h for [%c]
- layout %h = [0, 1/16, 1%16]
+ layout %h = [0, 1]
+ offset %q = 128
- threads = 2
)");
  after = before;
  after.graph_hash = 0;
  EXPECT_EQ(diff(before, after), R"(- plan @mlp hash 0x5e1f000000000001 on "avx512-2c"
+ plan @mlp on "avx512-2c"
)");
}

TEST(PlanText, TheDocumentHasEveryRow) {
  const Result<std::string> page =
      read_file(std::string(HONE_TEST_DIR) + "/../docs/formats/plan-text.md", 1 << 20);
  ASSERT_TRUE(page.ok());
  for (const DecisionInfo& row : decisions())
    EXPECT_THAT(*page, HasSubstr(fmt::format("| `{}` | {} | {} | {} | {} |", row.name, row.key,
                                             row.values, row.fallback, row.doc)));
  for (const DecisionInfo& row : schedule_fields())
    EXPECT_THAT(*page, HasSubstr(fmt::format("| `{}` | {} | {} | {} | {} |", row.name, row.key,
                                             row.values, row.fallback, row.doc)));
}

}  // namespace
}  // namespace hone::HONE_FILE
