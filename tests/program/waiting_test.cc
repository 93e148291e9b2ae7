#include "program/tiles/waiting.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "program/tiles/simt.h"
#include "tests/base/says_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

// Kernels that begin before the one ahead of them has ended.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// Each point reads a constant, and then what a kernel before this one wrote.
const std::string kSum = R"(tiles @f(@w: f32[64] constant, @x: f32[64]) -> (@y: f32[64]) {
  threads i in 64 {
    %w = load @w[i]
    %x = load @x[i]
    %y = add %w, %x
    store @y[i] = %y
  }
}
)";

TEST(WaitingForm, WaitsAsLateAsItMay) {
  const TileProgram form = waiting_form(parse_tiles(kSum).value());
  EXPECT_TRUE(verify(form).ok());
  EXPECT_TRUE(has_wait(form.phases[0]));
  const std::string text = print(form);
  EXPECT_LT(text.find("load @w"), text.find("await kernels")) << text;
  EXPECT_LT(text.find("await kernels"), text.find("load @x")) << text;
  EXPECT_EQ(print(parse_tiles(text).value()), text);
  EXPECT_EQ(text.find("@w: f32[64] constant"), kSum.find("@w: f32[64] constant"));
}

// Without the word all of it waits.
TEST(WaitingForm, KnowsConstantsAlone) {
  const std::string text = print(waiting_form(parse_tiles(changed(kSum, " constant", "")).value()));
  EXPECT_LT(text.find("await kernels"), text.find("load @w")) << text;
}

// A block clears its registers before, and each phase waits for the one before it.
TEST(WaitingForm, BlocksWaitBetweenTheirLoops) {
  const TileProgram program = simt_form(parse_tiles(kBlockProduct).value());
  const TileProgram form = waiting_form(program);
  ASSERT_TRUE(verify(form).ok());
  const std::string text = print(form);
  EXPECT_LT(text.find("store @acc[]"), text.find("await kernels")) << text;
  EXPECT_LT(text.find("await kernels"), text.find("load @a[")) << text;
}

// The weights of the first steps come before the wait, whichever operand they are.
TEST(WaitingForm, BlocksFetchWeightsBefore) {
  const KernelBody body = body_of_all(
      parse_graph("graph @g(%x: bf16[64, 64], %w: bf16[64, 64]) { %y = dot %x, %w {lhs_contract = "
                  "[1], rhs_contract = [1]} return %y }")
          .value());
  for (int groups : {0, 1}) {
    Schedule schedule = {.order = {0, 1},
                         .threads = 2,
                         .own = BlockTilesFields{.rows = 64,
                                                 .columns = 64,
                                                 .depth = 64,
                                                 .own_rows = groups == 0 ? 32 : 1,
                                                 .own_columns = groups == 0 ? 32 : 1,
                                                 .products = Products::matrix,
                                                 .ahead = 1,
                                                 .groups = groups}};
    for (size_t constant : {0U, 1U}) {
      TileProgram program = build_kernel(body, schedule, "k").value();
      program.buffers[constant].is_constant = true;
      const TileProgram form = waiting_form(simt_form(program));
      const Status status = verify(form);
      ASSERT_TRUE(status.ok()) << status.error().to_string() << print(form);
      const std::string text = print(form);
      const size_t wait = text.find("await kernels");
      // One thread starts the boxes of both operands.
      if (groups == 0) EXPECT_LT(text.find(fmt::format("= @x{}[", constant)), wait) << text;
      EXPECT_GT(text.find(fmt::format("= @x{}[", 1 - constant)), wait) << text;
      Rng rng(1);
      const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
      const Result<std::vector<Tensor>> actual = interpret(form, inputs);
      ASSERT_TRUE(actual.ok()) << actual.error().to_string() << text;
      EXPECT_TRUE(
          std::ranges::equal((*actual)[0].bytes(), interpret(program, inputs).value()[0].bytes()));
    }
  }
}

// So they do where threads store parts of f32, for each step that is copied ahead.
TEST(WaitingForm, BlocksStorePartsOfWeightsBefore) {
  const KernelBody body = body_of_all(
      parse_graph("graph @g(%x: f32[64, 64], %w: f32[64, 64]) { %y = dot %x, %w {lhs_contract = "
                  "[1], rhs_contract = [1]} return %y }")
          .value());
  const Schedule schedule = {.order = {0, 1},
                             .threads = 2,
                             .own = BlockTilesFields{.rows = 64,
                                                     .columns = 64,
                                                     .depth = 16,
                                                     .own_rows = 32,
                                                     .own_columns = 32,
                                                     .products = Products::matrix,
                                                     .ahead = 2}};
  Rng rng(1);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const TileProgram plain = build_kernel(body, schedule, "k").value();
  const std::vector<Tensor> expected = interpret(plain, inputs).value();
  for (size_t constant : {0U, 1U}) {
    TileProgram program = plain;
    program.buffers[constant].is_constant = true;
    const TileProgram form = waiting_form(simt_form(program));
    const Status status = verify(form);
    ASSERT_TRUE(status.ok()) << status.error().to_string() << print(form);
    const std::string text = print(form);
    const std::string before = text.substr(0, text.find("await kernels"));
    const auto loads = [&](size_t input) {
      const std::string load = fmt::format("= load @x{}[", input);
      int count = 0;
      for (size_t at = before.find(load); at != std::string::npos; at = before.find(load, at + 1))
        ++count;
      return count;
    };
    EXPECT_GE(loads(constant), 2) << before;
    EXPECT_EQ(loads(1 - constant), 0) << before;
    const Result<std::vector<Tensor>> actual = interpret(form, inputs);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string() << text;
    EXPECT_TRUE(std::ranges::equal((*actual)[0].bytes(), expected[0].bytes()));
  }
}

// Whatever plans are like, each phase of a kernel waits, and verifies.
TEST(WaitingForm, HoldsForRandomKernels) {
  int waits = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const KernelBody body = body_of_all(RandomGemm(rng).graph());
    const Target& gpu = seed % 2 == 0 ? any_gpu() : hopper();
    TileProgram program = build_kernel(body, random_schedule(body, gpu, rng), "k").value();
    for (TileBuffer& buffer : program.buffers)
      buffer.is_constant = buffer.role == BufferRole::input && rng.chance(0.5);
    const TileProgram form = waiting_form(simt_form(program));
    const Status status = verify(form);
    ASSERT_TRUE(status.ok()) << status.error().to_string() << print(form);
    for (const tile::Loop& phase : form.phases) waits += has_wait(phase) ? 1 : 0;
    EXPECT_GE(waits, static_cast<int>(seed) + 1);
    const std::vector<Tensor> memory = memory_of(body, random_inputs(body.graph, rng));
    const Result<std::vector<Tensor>> waited = interpret(form, memory);
    ASSERT_TRUE(waited.ok()) << waited.error().to_string();
    expect_close(*waited, interpret(program, memory).value());
  }
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(WaitingForm, AccessesBeforeTheWaitAreFound) {
  const auto status = [](const std::string& text) {
    const Result<TileProgram> program = parse_tiles(text);
    EXPECT_TRUE(program.ok()) << text;
    return verify(*program);
  };
  const std::string good = print(waiting_form(parse_tiles(kSum).value()));
  EXPECT_TRUE(status(good).ok());
  const std::string without = changed(good, "    await kernels\n", "");
  const auto with_wait_before = [&](const std::string& line) {
    return changed(without, line, "await kernels\n    " + line);
  };
  EXPECT_TRUE(status(without).ok());  // it is not launched early then
  EXPECT_THAT(status(with_wait_before("store @y")),
              refuses(ErrorCode::bad_input, "@x is used before the wait"));
  EXPECT_THAT(status(changed(good, " constant", "")),
              refuses(ErrorCode::bad_input, "@w is used before the wait"));
  EXPECT_THAT(status(changed(good, "await kernels\n", "await kernels\n    await kernels\n")),
              refuses(ErrorCode::bad_input, "waits twice"));
  EXPECT_THAT(
      status(changed(kSum, "load @w[i]\n", "load @w[i]\n store @y[i] = %w\n await kernels\n")),
      refuses(ErrorCode::bad_input, "@y is used before the wait"));
  EXPECT_THAT(
      status("tiles @f(@x: f32[4]) -> (@y: f32[4]) { threads i in 2 { for k in 2 { await kernels "
             "%x = load @x[2*i + k] store @y[2*i + k] = %x } } }"),
      refuses(ErrorCode::bad_input, "innermost blocks or threads loop"));
}

}  // namespace
}  // namespace hone::HONE_FILE
