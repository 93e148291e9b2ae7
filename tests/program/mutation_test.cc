#include <gtest/gtest.h>
#include <algorithm>

#include <set>

#include "plan/planned.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "tests/program/lower_testing.h"
#include "zoo/random/random_graph.h"

// Every decision counts: a plan with one entry changed is refused, or becomes another program.

namespace hone::HONE_FILE {
namespace {

// A plan, and which decision was changed.
struct Mutant {
  std::string decision;
  Plan plan;
};

class Mutator {
 public:
  explicit Mutator(const Plan& plan) : plan_(plan) {}

  std::vector<Mutant> run() {
    add("threads", [](Plan& p) { p.threads = 3 - p.threads.value_or(2); });
    for (const auto& [hash, schedule] : plan_.schedule) mutate_schedule(hash, schedule);
    mutate_frame("", plan_, [](Plan& p) -> Plan& { return p; });
    return std::move(mutants_);
  }

 private:
  using Tiles = std::vector<Tile>;

  template <class Change>
  void add(const std::string& decision, const Change& change) {
    Mutant& mutant = mutants_.emplace_back(decision, plan_);
    change(mutant.plan);
    if (mutant.plan == plan_) mutants_.pop_back();
  }

  using Find = std::function<Plan&(Plan&)>;  // the plan of a region within the whole
  void mutate_frame(const std::string& place, const Plan& frame, const Find& find) {
    auto in_frame = [&](const std::string& decision, const auto& change) {
      add(decision + place, [&](Plan& p) { change(find(p)); });
    };
    for (const auto& [name, copy] : frame.copy) {
      const std::string key = name;
      in_frame("copy", [&](Plan& p) { p.copy.erase(key); });
      in_frame("copy", [&](Plan& p) { p.copy[key].of = key; });
      in_frame("copy", [&](Plan& p) { p.copy[key].readers.pop_back(); });
      in_frame("copy", [&](Plan& p) {
        p.copy[key + "x"] = p.copy[key];
        p.copy.erase(key);
      });
    }
    for (size_t g = 0; g < frame.fuse.size(); ++g) {
      in_frame("fuse", [&](Plan& p) { p.fuse[g].nodes.pop_back(); });
      in_frame("fuse", [&](Plan& p) { p.fuse.erase(p.fuse.begin() + static_cast<int64_t>(g)); });
      in_frame("fuse", [&](Plan& p) { p.fuse[g].kernel += "x"; });
    }
    for (const auto& entry : frame.view)
      in_frame("view", [&](Plan& p) { p.view[entry.first] = !entry.second; });
    for (const auto& entry : frame.in_place)
      in_frame("in_place", [&](Plan& p) { p.in_place[entry.first] = !entry.second; });
    for (const auto& entry : frame.layout) {
      in_frame("layout", [&](Plan& p) { p.layout.erase(entry.first); });
      in_frame("layout", [&](Plan& p) {
        std::ranges::rotate(p.layout[entry.first].parts, p.layout[entry.first].parts.begin() + 1);
      });
    }
    for (size_t i = 0; i + 1 < frame.order.size(); ++i)
      in_frame("order", [&](Plan& p) { std::swap(p.order[i], p.order[i + 1]); });
    if (!frame.order.empty()) in_frame("order", [&](Plan& p) { p.order.pop_back(); });
    for (const auto& entry : frame.offset) {
      for (int64_t by : {-64, 64, 4096})
        in_frame("offset", [&](Plan& p) { p.offset[entry.first] += by; });
      in_frame("offset", [&](Plan& p) { p.offset.erase(entry.first); });
    }
    for (const auto& entry : frame.region) {
      const std::string key = entry.first;
      in_frame("region", [&](Plan& p) { p.region.erase(key); });
      mutate_frame(" of a region", entry.second,
                   [&find, key](Plan& p) -> Plan& { return find(p).region.at(key); });
    }
  }

  void mutate_schedule(uint64_t hash, const Schedule& schedule) {
    auto change = [&](std::string_view field, const auto& change_it) {
      add(fmt::format("schedule {}", field), [&](Plan& p) { change_it(p.schedule[hash]); });
    };
    for (Algorithm other : kAlgorithms)
      if (other != schedule.algorithm())
        change("algorithm", [&](Schedule& s) { s.own = fields_of(other); });
    for (size_t i = 0; i + 1 < schedule.order.size(); ++i)
      change("order", [&](Schedule& s) { std::swap(s.order[i], s.order[i + 1]); });
    change("order", [&](Schedule& s) { s.order.clear(); });
    for (int by : {-1, 1}) change("threads", [&](Schedule& s) { s.threads += by; });
    mutate_tiles("lanes", schedule.lanes, change, [](Schedule& s) -> Tiles& { return s.lanes; });
    mutate_tiles("unroll", schedule.unroll, change, [](Schedule& s) -> Tiles& { return s.unroll; });
    if (schedule.if_is<NestFields>() != nullptr)
      for (int by : {-1, 1}) change("row", [&](Schedule& s) { s.get<NestFields>().row += by; });
    if (const auto* own = schedule.if_is<GemmFields>()) {
      mutate_tiles("block", own->block, change,
                   [](Schedule& s) -> Tiles& { return s.get<GemmFields>().block; });
      for (Packing packing : {Packing::no, Packing::panels, Packing::window}) {
        change("pack_lhs", [&](Schedule& s) { s.get<GemmFields>().pack_lhs = packing; });
        change("pack_rhs", [&](Schedule& s) { s.get<GemmFields>().pack_rhs = packing; });
      }
    }
    if (const auto* own = schedule.if_is<ChainFields>()) mutate_chain(*own, change);
  }

  template <class Change>
  void mutate_chain(const ChainFields& chain, const Change& change_schedule) {
    const auto change = [&](std::string_view field, const auto& edit) {
      change_schedule(field, [&](Schedule& s) { edit(s.get<ChainFields>()); });
    };
    mutate_tiles("block", chain.block, change_schedule,
                 [](Schedule& s) -> Tiles& { return s.get<ChainFields>().block; });
    for (size_t i = 0; i < chain.keep.size(); ++i) {
      change("keep", [&](ChainFields& s) { ++s.keep[i]; });
      change("keep",
             [&](ChainFields& s) { s.keep.erase(s.keep.begin() + static_cast<int64_t>(i)); });
    }
    for (size_t i = 0; i < chain.stages.size(); ++i) {
      change("stages",
             [&](ChainFields& s) { s.stages.erase(s.stages.begin() + static_cast<int64_t>(i)); });
      change("stages", [&](ChainFields& s) { std::swap(s.stages[i], s.stages[0]); });
      change("stages", [&](ChainFields& s) { std::ranges::reverse(s.stages[i].order); });
      change("stages", [&](ChainFields& s) { s.stages[i].threads = 1; });
    }
  }

  template <class Change, class In>
  void mutate_tiles(std::string_view field, const Tiles& tiles, const Change& change,
                    const In& in) {
    for (int dim = 0; dim < 4; ++dim)
      change(field, [&](Schedule& s) { in(s).push_back({dim, 2}); });
    for (size_t i = 0; i < tiles.size(); ++i) {
      change(field, [&](Schedule& s) { in(s).erase(in(s).begin() + static_cast<int64_t>(i)); });
      change(field, [&](Schedule& s) { in(s)[i].count *= 2; });
      change(field, [&](Schedule& s) { ++in(s)[i].count; });
      change(field, [&](Schedule& s) { ++in(s)[i].dim; });
    }
  }

  const Plan& plan_;
  std::vector<Mutant> mutants_;
};

// One of the readers of a copy less is another program.
constexpr std::string_view kReaders = R"(
graph @g(%x: f32[4, 8]) {
  %a = sort %x {axis = 0}
  %b = sort %x {axis = 1}
  %c = neg %x
  return %a, %b, %c
}
)";

Plan copying_plan(const Graph& graph) {
  const Plan partial = parse_plan("plan @g { copy %k = %x for [%a, %b] }").value();
  return complete(graph, partial, two_cores()).value();
}

constexpr std::string_view kUpdates = R"(
graph @g(%x: f32[8], %cache: f32[4, 4] donate 1, %p: f32[2], %row: f32[1, 4], %at: i32[],
         %w: f32[4, 4] donate 2) {
  %zero = constant 0 : i32[]
  %a = exp %x
  %u = dynamic_update %a, %p, %at
  %s = sort %u {axis = 0}
  %next = dynamic_update %cache, %row, %at, %zero
  %v = neg %w
  return %s, %next, %v
}
)";

// A conv as a gemm in blocks: each field of its schedule has something to say.
constexpr std::string_view kConv = R"(
graph @conv(%x: f32[1, 8, 12, 12], %w: f32[16, 8, 3, 3]) -> f32[1, 16, 12, 12] {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})";

Plan gemm_plan(const Graph& graph) {
  Plan plan = random_plan(graph, two_cores(), 0);
  for (auto& [hash, schedule] : plan.schedule)
    schedule = {.order = {0, 1, 2, 3},
                .threads = 2,
                .lanes = {{1, 8}},
                .unroll = {{3, 4}},
                .own = GemmFields{.block = {{1, 16}, {2, 4}, {3, 12}},
                                  .pack_lhs = Packing::window,
                                  .pack_rhs = Packing::panels}};
  return plan;
}

// Weights that lie with their channels last: a gemm takes its reduction in that order, a nest does
// not.
constexpr std::string_view kTurned = R"(
graph @conv(%x: f32[1, 8, 12, 12], %v: f32[16, 8, 3, 3]) -> f32[1, 16, 12, 12] {
  %w = exp %v
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})";

Plan turned_plan(const Graph& graph) {
  const Plan partial =
      parse_plan("plan @conv { fuse @w = {%w} fuse @y = {%y} layout %w = [0, 2, 3, 1] }").value();
  Plan plan = complete(graph, partial, two_cores()).value();
  const PlannedGraph planned = hone::planned(plan, graph).value();
  for (const Step& step : planned.steps)
    if (step.name == "y")
      plan.schedule[kernel_hash(body_of(planned, Users(graph), step))] = {
          .order = {0, 1, 2, 3}, .lanes = {{3, 4}}, .own = GemmFields()};
  return plan;
}

// Two products, one after the other in blocks of rows.
constexpr std::string_view kProducts = R"(
graph @g(%x: f32[12, 8], %w: f32[8, 16], %v: f32[16, 4]) -> f32[12, 4] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %a = tanh %h
  %y = dot %a, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})";

Plan chain_plan(const Graph& graph) {
  const Plan partial = parse_plan("plan @g { threads = 2 fuse @k = {%h, %a, %y} }").value();
  Plan plan = complete(graph, partial, two_cores()).value();
  for (auto& [hash, schedule] : plan.schedule)
    schedule = {
        .order = {0, 1},
        .threads = 1,
        .own = ChainFields{.block = {{0, 5}, {1, 2}},
                           .keep = {0},
                           .stages = {{.order = {0, 1}, .lanes = {{1, 8}}, .own = NestFields()},
                                      {.order = {1, 0}, .lanes = {{1, 2}}, .own = GemmFields()}}}};
  return plan;
}

// The mutants of a graph.
std::pair<Graph, Plan> plan_of(uint64_t seed) {
  const auto with = [](Graph graph, const auto& plan) {
    Plan made = plan(graph);
    return std::pair(std::move(graph), std::move(made));
  };
  const auto random = [&](const Graph& graph) { return random_plan(graph, two_cores(), seed); };
  switch (seed) {
    case 0: return with(prepared(kControl), random);
    case 1: return with(prepared(kConv), gemm_plan);
    case 2: return with(prepared(kTurned), turned_plan);
    case 3:
      return with(prepared(kUpdates),
                  [](const Graph& graph) { return complete(graph, {}, two_cores()).value(); });
    case 4: return with(prepared(kProducts), chain_plan);
    case 5: return with(prepared(kReaders), copying_plan);
    default:
      return with(prepared(random_graph({.seed = 31 * seed, .max_steps = 10, .max_elements = 64})),
                  random);
  }
}

// Its content and its form: all but by which schedules its kernels were built.
std::string code_of(Program program) {
  for (program::Kernel& kernel : program.kernels) kernel.schedule.reset();
  return print(program);
}

// A schedule may be another spelling of the same loops, for example a block as large as its dim.
// The program tells this. So only some of those schedules must make other code.
TEST(Mutation, EveryDecisionCounts) {
  std::set<std::string> refused, counted;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto [graph, plan] = plan_of(seed);
    Result<Program> program = lower(graph, plan, two_cores());
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    const std::string text = print(*program), code = code_of(*program);
    for (const Mutant& mutant : Mutator(plan).run()) {
      Result<Program> other = lower(graph, mutant.plan, two_cores());
      if (!other.ok()) {
        EXPECT_NE(other.error().code(), ErrorCode::internal) << other.error().to_string();
        refused.insert(mutant.decision);
        continue;
      }
      ASSERT_NE(print(*other), text) << diff(plan, mutant.plan);
      const bool is_other_code = code_of(*other) != code;
      if (is_other_code) counted.insert(mutant.decision);
      EXPECT_TRUE(is_other_code || mutant.decision.starts_with("schedule"))
          << diff(plan, mutant.plan) << text;
    }
  }
  for (const std::string_view decision :
       {"threads", "copy", "order", "offset", "order of a region", "offset of a region",
        "schedule order", "schedule algorithm", "schedule threads", "schedule row",
        "schedule lanes", "schedule unroll", "schedule block", "schedule pack_lhs",
        "schedule pack_rhs", "schedule keep", "schedule stages"})
    EXPECT_TRUE(counted.contains(std::string(decision))) << decision;
  for (const std::string_view decision :
       {"copy", "fuse", "view", "in_place", "layout", "region", "order", "offset"})
    EXPECT_TRUE(refused.contains(std::string(decision))) << decision;
}

}  // namespace
}  // namespace hone::HONE_FILE
