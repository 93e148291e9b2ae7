#include <gtest/gtest.h>

#include <set>

#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/algorithms/block_tiles.h"
#include "kernel/schedule_space.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

// Tiles of blocks by warpgroups, as Hopper multiplies them.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// Rows of the first operand and of the second one, along what is summed, or across.
Graph random_product(Rng& rng, bool in_tf32) {
  Builder b;
  DType dtype = rng.chance(0.2) ? DType::f32 : rng.chance(0.5) ? DType::bf16 : DType::f16;
  if (in_tf32) dtype = DType::f32;
  const bool is_batch = rng.chance(0.2);
  const int64_t rows = rng.between(1, 100), columns = rng.between(1, 100);
  const int64_t depth = rng.chance(0.7) ? 8 * rng.between(1, 17) : rng.between(1, 130);
  const bool left = rng.chance(0.2), right = rng.chance(0.3);
  Dims of_x = left ? Dims{depth, rows} : Dims{rows, depth};
  Dims of_w = right ? Dims{depth, columns} : Dims{columns, depth};
  Ints batch;
  if (is_batch) {
    of_x.insert(of_x.begin(), 2);
    of_w.insert(of_w.begin(), 2);
    batch = {0};
  }
  const int64_t first = is_batch ? 1 : 0;
  const Value x = b.parameter("x", dtype, of_x), w = b.parameter("w", dtype, of_w);
  Value y = b.op(Opcode::dot, {x, w},
                 {{"lhs_contract", Ints{first + (left ? 0 : 1)}},
                  {"rhs_contract", Ints{first + (right ? 0 : 1)}},
                  {"lhs_batch", batch},
                  {"rhs_batch", batch},
                  {"parts", in_tf32 ? 1 : 3},
                  {"flush", !in_tf32}});
  if (rng.chance(0.5)) y = maximum(y, 0);
  return b.finish({y}).value();
}

BlockTilesFields random_groups(Rng& rng, bool in_tf32) {
  BlockTilesFields own = {.rows = rng.chance(0.7) ? 64 : 128,
                          .columns = rng.chance(0.7) ? 64 : 128,
                          .depth = in_tf32 ? 32 : 64,
                          .products = Products::matrix,
                          .ahead = static_cast<int>(rng.between(0, 3)),
                          .groups = 1};
  if (rng.chance(0.25))
    own.splits = 2;
  else if (rng.chance(0.4))
    own.shares = static_cast<int>(rng.between(2, 6));
  return own;
}

Schedule tiles_of(const KernelBody& body, const BlockTilesFields& own) {
  const int dims = body.graph.type(body.graph.outputs()[0]).rank();
  Schedule schedule = {.threads = dims, .own = own};
  for (int dim = 0; dim < dims; ++dim) schedule.order.push_back(dim);
  return schedule;
}

// The buffers of the block that boxes fill.
void add_fetched(const tile::Block& body, std::set<tile::BufferId>& fetched) {
  for (const tile::Statement& statement : body) {
    if (const auto* loop = std::get_if<tile::Loop>(&statement.kind))
      add_fetched(loop->body, fetched);
    if (const auto* copy = std::get_if<tile::TensorCopy>(&statement.kind)) fetched.insert(copy->to);
  }
}
size_t fetched_sides(const TileProgram& program) {
  std::set<tile::BufferId> fetched;
  add_fetched(program.phases[0].body, fetched);
  return fetched.size();
}

// Numbers of 11 bits, which tf32 multiplies exactly.
Tensor cut_to_tf32(const Tensor& tensor) {
  std::vector<double> cut;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto word = std::bit_cast<uint32_t>(static_cast<float>(tensor.real_at(i)));
    cut.push_back(std::bit_cast<float>(word & tile::kFactorBits));
  }
  return Tensor::from_reals(tensor.type(), cut);
}

struct Seen {
  int checked = 0, in_parts = 0, in_tf32 = 0, shared = 0;
  std::array<int, 3> by_boxes = {};  // by sides that come as boxes
};

void check_random(uint64_t first, int64_t count, Seen& seen) {
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool in_tf32 = seed % 4 == 3;
    KernelBody body = body_of_all(random_product(rng, in_tf32));
    if (rng.chance(0.2)) draw_layouts(body, {}, rng);
    const BlockTilesFields own = random_groups(rng, in_tf32);
    const Schedule schedule = tiles_of(body, own);
    if (!check_schedule(body, schedule, hopper()).ok()) continue;
    SCOPED_TRACE(print(body.graph));
    std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    if (in_tf32) std::ranges::transform(inputs, inputs.begin(), cut_to_tf32);
    check_block_kernel(body, schedule, inputs, 16, hopper());
    if (testing::Test::HasFailure()) return;
    ++seen.checked;
    seen.in_tf32 += in_tf32 ? 1 : 0;
    seen.in_parts += tensor_numbers(KernelFacts(body))->parts > 1 ? 1 : 0;
    seen.shared += own.shares > 0 || own.splits > 1 ? 1 : 0;
    ++seen.by_boxes[fetched_sides(build_kernel(body, schedule, "k").value())];
  }
}

TEST(BlocksGroups, ComputeProducts) {
  Seen seen;
  const int64_t count = tested::share_of(24, 4);
  check_random(0, count, seen);
  EXPECT_GT(seen.checked, count / 2);
}
TEST(BlocksGroups, DISABLED_SweepProducts) {
  Seen seen;
  check_random(1'000'000, 400, seen);
  EXPECT_GT(seen.checked, 200);
  EXPECT_GT(seen.in_parts, 20);
  EXPECT_GT(seen.in_tf32, 40);
  EXPECT_GT(seen.shared, 40);
  for (int kernels : seen.by_boxes) EXPECT_GT(kernels, 20);
}

// ---- One product --------------------------------------------------------------------------------

KernelBody product_body(std::string_view x, std::string_view w, std::string_view attrs) {
  return body_of_all(parse_graph(fmt::format("graph @g(%x: {}, %w: {}) {{ %y = dot %x, %w {{{}}} "
                                             "return %y }}",
                                             x, w, attrs))
                         .value());
}
constexpr std::string_view kAlong = "lhs_contract = [1], rhs_contract = [1]";
const BlockTilesFields kGroups = {
    .rows = 64, .columns = 64, .depth = 64, .products = Products::matrix, .ahead = 1, .groups = 1};

TEST(BlocksGroups, HaveATextForm) {
  EXPECT_EQ(print(tiles_of(product_body("bf16[9, 8]", "bf16[9, 8]", kAlong), kGroups)),
            "{algorithm = block_tiles, order = [0, 1], threads = 2, rows = 64, columns = 64, "
            "depth = 64, own_rows = 1, own_columns = 1, products = matrix, ahead = 1, splits = 1, "
            "groups = 1}");
}

// Rows of an operand are lines of the tile, or points of the reduction.
TEST(BlocksGroups, ParametersComeAsBoxes) {
  struct Case {
    std::string_view x, w, attrs;
    size_t sides;
  };
  for (const Case& one :
       {Case{"bf16[70, 72]", "bf16[20, 72]", kAlong, 2},
        Case{"f16[70, 72]", "f16[72, 24]", "lhs_contract = [1], rhs_contract = [0]", 2},
        Case{"f16[72, 200]", "f16[72, 24]", "lhs_contract = [0], rhs_contract = [0]", 2},
        Case{"f16[70, 72]", "f16[72, 20]", "lhs_contract = [1], rhs_contract = [0]", 1},
        Case{"bf16[70, 76]", "bf16[20, 76]", kAlong, 0},  // no multiple of 16 bytes
        Case{"bf16[2, 70, 72]", "bf16[2, 20, 72]",
             "lhs_contract = [2], rhs_contract = [2], lhs_batch = [0], rhs_batch = [0]", 2},
        Case{"bf16[70, 2, 72]", "bf16[20, 2, 72]",
             "lhs_contract = [2], rhs_contract = [2], lhs_batch = [1], rhs_batch = [1]", 2},
        // Rows of two dims: a tile has some of the last one, or not.
        Case{"bf16[2, 64, 72]", "bf16[20, 72]", "lhs_contract = [2], rhs_contract = [1]", 2},
        Case{"bf16[2, 60, 72]", "bf16[20, 72]", "lhs_contract = [2], rhs_contract = [1]", 1}}) {
    const KernelBody body = product_body(one.x, one.w, one.attrs);
    SCOPED_TRACE(print(body.graph));
    const Schedule schedule = tiles_of(body, kGroups);
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(fetched_sides(program), one.sides) << print(program);
    EXPECT_EQ(block_threads(program.phases[0], program), 128);
    Rng rng(1);
    check_block_kernel(body, schedule, random_inputs(body.graph, rng), 16, hopper());
  }
}

// f32 as tf32, where that is asked for. Hardware has no such operands across, so threads store them
// along.
TEST(BlocksGroups, MultiplyTf32AlongRows) {
  BlockTilesFields own = kGroups;
  own.depth = 32;
  for (const auto& [x, w, contract, sides] :
       {std::tuple("f32[70, 72]", "f32[20, 72]", std::pair(1, 1), 2U),
        std::tuple("f32[70, 72]", "f32[72, 20]", std::pair(1, 0), 1U),
        std::tuple("f32[72, 70]", "f32[72, 20]", std::pair(0, 0), 0U),
        std::tuple("f32[70, 70]", "f32[20, 70]", std::pair(1, 1), 0U)}) {
    const KernelBody body = product_body(x, w,
                                         fmt::format("lhs_contract = [{}], rhs_contract = [{}], "
                                                     "parts = 1",
                                                     contract.first, contract.second));
    SCOPED_TRACE(print(body.graph));
    const Schedule schedule = tiles_of(body, own);
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(fetched_sides(program), sides) << print(program);
    Rng rng(1);
    std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    const Tensor rough = interpret(program, inputs).value()[0];
    std::ranges::transform(inputs, inputs.begin(), cut_to_tf32);
    EXPECT_TRUE(rough.same_bytes(interpret(program, inputs).value()[0]))
        << "the last bits of numbers do not count";
    check_block_kernel(body, schedule, inputs, 16, hopper());
  }
  const KernelBody body = product_body("f32[70, 72]", "f32[20, 72]",
                                       "lhs_contract = [1], rhs_contract = [1], parts = 1");
  EXPECT_THAT(check_schedule(body, tiles_of(body, kGroups), hopper()),
              refuses(ErrorCode::bad_input, "64 points, not 32"));
}

// Threads that store side by side meet in no bank, whichever way an operand lies.
TEST(BlocksGroups, StoresMeetInNoBank) {
  for (std::string_view dtype : {"bf16", "f32"})
    for (bool along : {true, false}) {
      const KernelBody body = product_body(
          fmt::format("{}[{}]", dtype, along ? "70, 76" : "76, 70"),
          fmt::format("{}[{}]", dtype, along ? "60, 76" : "76, 60"),
          fmt::format("lhs_contract = [{0}], rhs_contract = [{0}], flush = true", along ? 1 : 0));
      SCOPED_TRACE(print(body.graph));
      const TileProgram program = build_kernel(body, tiles_of(body, kGroups), "k").value();
      EXPECT_EQ(fetched_sides(program), 0U);
      Rng rng(1);
      SimtCounts counts;
      ASSERT_TRUE(interpret(program, random_inputs(body.graph, rng), {.counts = &counts}).ok());
      EXPECT_GT(counts.block_accesses, 0);
      EXPECT_EQ(counts.bank_conflicts, 0) << print(program);
    }
}

// One warpgroup for 64 rows.
TEST(BlocksGroups, SeveralWarpgroupsShareATile) {
  const KernelBody body = product_body("bf16[200, 136]", "bf16[250, 136]", kAlong);
  for (const auto& [rows, columns, ahead] :
       {std::tuple(128, 128, 2), std::tuple(64, 256, 1), std::tuple(256, 64, 3)}) {
    BlockTilesFields own = kGroups;
    own.rows = rows;
    own.columns = columns;
    own.ahead = ahead;
    const Schedule schedule = tiles_of(body, own);
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(block_threads(program.phases[0], program), 2 * rows);
    EXPECT_EQ(chip_layout(program).bytes,
              ((rows + columns) * 128 + 8) * (ahead + 1) + (8 * (ahead + 1)) % 16);
    Rng rng(1);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    check_kernel(body, schedule, inputs, 16);
  }
}

// Parts of 64 points are summed on tensor cores, which cut sums off.
TEST(BlocksGroups, OfPartsAreAsAccurateAsF32) {
  for (int64_t depth : {1, 200, 600}) {
    SCOPED_TRACE(depth);
    const KernelBody body =
        product_body(fmt::format("f32[16, {}]", depth), fmt::format("f32[16, {}]", depth), kAlong);
    const std::string text = print(build_kernel(body, tiles_of(body, kGroups), "k").value());
    for (bool cuts_sums : {false, true}) {
      const Accuracy result = accuracy_of(body, text, cuts_sums);
      EXPECT_TRUE(result.passed()) << cuts_sums << ": " << result.to_string();
    }
  }
}

TEST(BlocksGroups, OfPartsAreAccurateForAllNumbers) {
  const KernelBody body = product_body("f32[16, 130]", "f32[20, 130]", kAlong);
  BlockTilesFields shared = kGroups;
  shared.shares = 2;
  for (const BlockTilesFields& own : {kGroups, shared})
    expect_accurate_for_all_numbers(body, tiles_of(body, own));
}

TEST(BlocksGroups, AreOfTheDomainOnHopperAlone) {
  const KernelBody body = product_body("bf16[200, 136]", "bf16[250, 136]", kAlong);
  for (const Target* gpu : {&any_gpu(), &hopper()}) {
    Rng rng(1);
    int groups = 0;
    for (int i = 0; i < 200; ++i) {
      const Schedule schedule = random_schedule(body, *gpu, rng);
      const auto* own = schedule.if_is<BlockTilesFields>();
      groups += own != nullptr && own->groups != 0 ? 1 : 0;
    }
    EXPECT_EQ(groups > 0, gpu == &hopper()) << groups;
  }
}

// ---- Planted faults -----------------------------------------------------------------------------

// True if the verifier, the interpreter or the results tell, whether boxes come at once or late.
bool is_wrong(const KernelBody& body, const TileProgram& program) {
  if (!verify(program).ok()) return true;
  Rng rng(7);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const Tensor expected = evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value()[0];
  return std::ranges::all_of(std::array{false, true}, [&](bool late) {
    const Result<std::vector<Tensor>> actual =
        interpret(program, inputs, {.seed = 3, .lands_late = late});
    return !actual.ok() ||
           !compare((*actual)[0], expected, default_tolerance(expected.dtype()))->passed();
  });
}

// A statement of the kind is left out, the n-th one.
template <class Kind>
bool drop(tile::Block& body, int& n) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (std::holds_alternative<Kind>(body[i].kind) && n-- == 0) {
      body.erase(body.begin() + static_cast<int64_t>(i));
      return true;
    }
    auto* loop = std::get_if<tile::Loop>(&body[i].kind);
    if (loop != nullptr && drop<Kind>(loop->body, n)) return true;
  }
  return false;
}
template <class Kind>
int expect_each_counts(const KernelBody& body, const TileProgram& program) {
  for (int n = 0;; ++n) {
    TileProgram without = program;
    int left = n;
    if (!drop<Kind>(without.phases[0].body, left)) return n;
    EXPECT_TRUE(is_wrong(body, without)) << n << print(without);
  }
}

TEST(BlocksGroups, EachStatementCounts) {
  const KernelBody boxes = product_body("bf16[70, 200]", "bf16[60, 200]", kAlong),
                   mixed = product_body("bf16[70, 200]", "bf16[200, 60]",
                                        "lhs_contract = [1], rhs_contract = [0]"),
                   across = product_body("bf16[200, 72]", "bf16[200, 64]",
                                         "lhs_contract = [0], rhs_contract = [0]");
  BlockTilesFields at_once = kGroups, ahead = kGroups, shared = kGroups;
  at_once.ahead = 0;
  ahead.ahead = 2;
  shared.shares = 3;
  for (const KernelBody* body : {&boxes, &mixed, &across})
    for (const BlockTilesFields& own : {at_once, kGroups, ahead, shared}) {
      const Schedule schedule = tiles_of(*body, own);
      SCOPED_TRACE(print(schedule));
      const TileProgram program = build_kernel(*body, schedule, "k").value();
      EXPECT_FALSE(is_wrong(*body, program)) << print(program);
      EXPECT_EQ(expect_each_counts<tile::Barrier>(*body, program),
                own.ahead == 0 && body == &mixed ? 3 : 2);
      EXPECT_EQ(expect_each_counts<tile::MbarrierInit>(*body, program), own.ahead + 1);
      EXPECT_EQ(expect_each_counts<tile::MbarrierWait>(*body, program), 1);
      EXPECT_EQ(expect_each_counts<tile::GroupProduct>(*body, program), 1);
      EXPECT_EQ(expect_each_counts<tile::ProxyFence>(*body, program), body == &mixed ? 1 : 0);
      EXPECT_EQ(expect_each_counts<tile::MbarrierExpect>(*body, program), own.ahead + 1);
      EXPECT_EQ(expect_each_counts<tile::TensorCopy>(*body, program),
                (own.ahead + 1) * (body == &mixed ? 1 : 2));
    }
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(BlocksGroups, SayWhatTheyCannotDo) {
  const KernelBody body = product_body("bf16[70, 72]", "bf16[20, 72]", kAlong),
                   plain = product_body("i32[70, 72]", "i32[20, 72]", kAlong);
  const auto refused = [&](const auto& change, ErrorCode code, const char* what,
                           const Target& gpu = hopper()) {
    BlockTilesFields own = kGroups;
    change(own);
    EXPECT_THAT(check_schedule(body, tiles_of(body, own), gpu), refuses(code, what));
  };
  EXPECT_TRUE(check_schedule(body, tiles_of(body, kGroups), hopper()).ok());
  const auto nothing = [](BlockTilesFields&) {};
  refused(nothing, ErrorCode::unsupported, "capability 90 alone, not 80", any_gpu());
  refused([](auto& own) { own.groups = 2; }, ErrorCode::bad_input, "groups are 2");
  refused([](auto& own) { own.products = Products::plain; }, ErrorCode::bad_input, "matrix");
  refused([](auto& own) { own.rows = 32; }, ErrorCode::bad_input, "32 rows, not 64");
  refused([](auto& own) { own.columns = 16; }, ErrorCode::bad_input, "16 columns, not 64");
  refused([](auto& own) { own.depth = 32; }, ErrorCode::bad_input, "32 points, not 64");
  refused([](auto& own) { own.own_rows = 16; }, ErrorCode::bad_input, "own_rows");
  refused([](auto& own) { own.rows = own.columns = 256; }, ErrorCode::limit, "81920 registers");
  const KernelBody in_parts = product_body("f32[70, 72]", "f32[20, 72]", kAlong);
  BlockTilesFields large = kGroups;
  large.rows = large.columns = 128;
  large.ahead = 2;
  EXPECT_THAT(check_schedule(in_parts, tiles_of(in_parts, large), hopper()),
              refuses(ErrorCode::limit, "bytes of memory"));
  EXPECT_THAT(check_schedule(plain, tiles_of(plain, kGroups), hopper()),
              refuses(ErrorCode::unsupported, "f32 alone"));
}

}  // namespace
}  // namespace hone::HONE_FILE
