#include "transport/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/base/says_testing.h"
#include "tests/transport/collective_cases.h"
#include "transport/combine_elements.h"
#include "transport/run_steps.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

using tested::Bytes;
using tested::CollectiveCase;
using tested::refuses;
using tested::says;

Collective group(CollectiveKind kind, int32_t members, int64_t elements) {
  Collective collective = {.kind = kind, .devices = {}, .elements = elements};
  for (int32_t i = 0; i < members; ++i) collective.devices.push_back(i);
  return collective;
}

CollectiveSchedule schedule(std::string_view text) {
  const Result<CollectiveSchedule> parsed = parse_collective_schedule(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error().to_string();
  return *parsed;
}

std::vector<Bytes> over_threads(const CollectiveCase& drawn) {
  const auto transport = *make_thread_transport(9);
  return tested::run_case(drawn, [&](int32_t) -> Transport& { return *transport; });
}

void expect_random_cases(uint64_t seed, int cases) {
  Rng rng(seed);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    const CollectiveCase drawn = tested::draw_case(rng, 9);
    EXPECT_EQ(tested::judge(drawn, over_threads(drawn)), "") << "case " << i;
  }
}

TEST(Collective, ComputesWhatItIsDefinedAs) { expect_random_cases(1, 400); }
TEST(Collective, DISABLED_SweepOfCases) { expect_random_cases(2, 20000); }

TEST(Collective, HasTheSameBitsWithAnyNumberOfPieces) {
  Rng rng(3);
  for (int i = 0; i < 60; ++i) {
    CollectiveCase drawn = tested::draw_case(rng, 9);
    drawn.schedule.pieces = 1;
    const std::vector<Bytes> whole = over_threads(drawn);
    for (const int32_t pieces : {2, 5, 300}) {
      drawn.schedule.pieces = pieces;
      EXPECT_EQ(over_threads(drawn), whole) << drawn.text();
    }
  }
}

// Each member counts with another power of the type's unit, so that the order of additions shows.
TEST(Collective, AddsInTheOrderOfTheRing) {
  CollectiveCase drawn;
  drawn.collective = group(CollectiveKind::reduce_scatter, 4, 4);
  const std::vector<float> x = {1, 0x1p24f, -0x1p24f, 0x1p-1f};
  for (const float value : x) {
    const float four[] = {value, value, value, value};
    drawn.inputs.emplace_back(sizeof four);
    std::memcpy(drawn.inputs.back().data(), four, sizeof four);
  }
  const std::vector<Bytes> outputs = over_threads(drawn);
  for (size_t c = 0; c < 4; ++c) {
    const float expected = ((x[(c + 1) % 4] + x[(c + 2) % 4]) + x[(c + 3) % 4]) + x[c];
    float got = 0;
    std::memcpy(&got, outputs[c].data(), sizeof got);
    EXPECT_EQ(got, expected) << "shard " << c;
  }
}

TEST(Collective, WorksInPlace) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
    Collective collective = group(kind, 6, 50);
    for (CollectiveSchedule each : schedules_of(collective)) {
      each.pieces = 3;
      const std::vector<DeviceProgram> programs = *step_programs(collective, each);
      const auto transport = *make_thread_transport(6);
      std::vector<std::vector<int32_t>> memory(6);
      std::vector<std::thread> threads;
      for (size_t i = 0; i < 6; ++i) {
        memory[i].assign(50, kind == CollectiveKind::broadcast && i > 0 ? 0 : 1 << i);
        threads.emplace_back([&, i] {
          const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory[i]));
          EXPECT_TRUE(run_steps(programs[i], *transport, DType::i32, bytes, bytes, "c").ok());
        });
      }
      for (std::thread& thread : threads) thread.join();
      const int32_t expected = kind == CollectiveKind::broadcast ? 1 : 63;
      for (const std::vector<int32_t>& each_memory : memory)
        EXPECT_EQ(each_memory, std::vector<int32_t>(50, expected)) << to_string(each);
    }
  }
}

TEST(CollectiveSchedule, IsReadAsItIsWritten) {
  for (const char* text : {"ring", "two_rings, 4 pieces", "hierarchical of 4, 2 pieces", "tree"})
    EXPECT_EQ(to_string(schedule(text)), text);
  EXPECT_EQ(schedule(" ring ,  4  pieces ").pieces, 4);
}

TEST(CollectiveSchedule, RefusesWhatIsNone) {
  const auto error = [](std::string_view text) { return parse_collective_schedule(text); };
  EXPECT_THAT(error("rng"), refuses(ErrorCode::bad_input, "'rng' ... did you mean 'ring'"));
  EXPECT_THAT(error("ring, 0 pieces"), refuses(ErrorCode::bad_input, "pieces ... 1"));
  EXPECT_THAT(error("ring, 4"), says("ring, 4 ... pieces"));
  EXPECT_THAT(error("ring, 4 pieces, 4 pieces"), says("pieces"));
  EXPECT_THAT(error("hierarchical"), says("neighbours ... hierarchical of 4"));
  EXPECT_THAT(error("hierarchical of x"), says("hierarchical"));
  EXPECT_THAT(error(""), says("schedule"));
}

TEST(CollectiveSchedule, FitsOnlyItsCollectives) {
  const auto error = [](const Collective& collective, const char* text) {
    return step_programs(collective, schedule(text));
  };
  EXPECT_THAT(error(group(CollectiveKind::all_to_all, 4, 8), "ring"),
              refuses(ErrorCode::bad_input, "all_to_all ... 'ring'"));
  EXPECT_THAT(error(group(CollectiveKind::all_reduce, 6, 8), "hierarchical of 4"),
              says("4 ... 6 devices"));
  EXPECT_THAT(error(group(CollectiveKind::all_reduce, 0, 8), "ring"), says("0 devices"));
  EXPECT_THAT(error(group(CollectiveKind::all_reduce, 2, -1), "ring"), says("-1 elements"));
  Collective twice = group(CollectiveKind::all_reduce, 2, 8);
  twice.devices = {1, 1};
  EXPECT_THAT(error(twice, "ring"), says("device 1 twice"));
  Collective root = group(CollectiveKind::broadcast, 2, 8);
  root.root = 2;
  EXPECT_THAT(error(root, "tree"), says("member 2 ... 2"));
  Collective permute = group(CollectiveKind::permute, 3, 8);
  permute.pairs = {{0, 1}, {0, 2}};
  EXPECT_THAT(error(permute, "direct"), says("member 0 sends twice"));
  permute.pairs = {{0, 1}, {2, 1}};
  EXPECT_THAT(error(permute, "direct"), says("member 1 receives twice"));
  permute.pairs = {{0, 3}};
  EXPECT_THAT(error(permute, "direct"), says("member 3 ... 3"));
}

uint64_t combined(Combine combine, DType type, uint64_t a, uint64_t b) {
  uint64_t to = 0;
  combine_elements(combine, type, reinterpret_cast<std::byte*>(&to),
                   reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b), 1);
  return to;
}

// The definition, by numbers that hold the exact result.
double combined_exactly(Combine combine, double a, double b) {
  if (combine == Combine::sum) return a + b;
  if (combine == Combine::product) return a * b;
  if (a != a || b != b) return __builtin_nan("");
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return (combine == Combine::min) == a_is_less ? a : b;
}

TEST(CombineElements, RoundsOnceAndHasOneNan) {
  Rng rng(5);
  for (const Combine combine : {Combine::product, Combine::max, Combine::min})
    for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      const int width = bits(type);
      for (int i = 0; i < 5000; ++i) {
        uint64_t a = rng.next(), b = rng.next();
        if (width < 64) a &= (uint64_t{1} << width) - 1, b &= (uint64_t{1} << width) - 1;
        if (rng.chance(0.2)) a = uint64_t{rng.chance(0.5)} << (width - 1);  // a zero
        if (rng.chance(0.2)) b = uint64_t{rng.chance(0.5)} << (width - 1);
        const double exact = combined_exactly(combine, decode_real(type, a), decode_real(type, b));
        // A double does not hold products of f64; one of f32 is exact.
        const uint64_t expected = encode_real(type, exact == exact ? exact : __builtin_nan(""));
        EXPECT_EQ(combined(combine, type, a, b), expected)
            << name(combine) << " of " << name(type) << " " << a << ", " << b;
        EXPECT_EQ(combined(combine, type, b, a), expected);
      }
    }
  EXPECT_EQ(combined(Combine::product, DType::i16, 0x4000, 6), 0x8000U);
  EXPECT_EQ(combined(Combine::product, DType::u16, 0xffff, 0xffff), 1U);
  EXPECT_EQ(combined(Combine::max, DType::i8, 0xff, 1), 1U);
  EXPECT_EQ(combined(Combine::max, DType::u8, 0xff, 1), 0xffU);
  EXPECT_EQ(combined(Combine::min, DType::i64, ~uint64_t{0}, 1), ~uint64_t{0});
  EXPECT_EQ(combined(Combine::and_, DType::boolean, 1, 0), 0U);
  EXPECT_EQ(combined(Combine::or_, DType::i32, 12, 3), 15U);
  EXPECT_FALSE(can_combine(Combine::sum, DType::boolean));
  EXPECT_FALSE(can_combine(Combine::and_, DType::f32));
}

TEST(CombineElements, SumsRoundOnceAndHaveOneNan) {
  const auto sum = [](DType type, uint64_t a, uint64_t b) {
    return combined(Combine::sum, type, a, b);
  };
  Rng rng(4);
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const int width = bits(type);
    for (int i = 0; i < 20000; ++i) {
      uint64_t a = rng.next(), b = rng.next();
      if (width < 64) a &= (uint64_t{1} << width) - 1, b &= (uint64_t{1} << width) - 1;
      if (rng.chance(0.3)) b = a ^ (uint64_t{1} << rng.below(static_cast<uint64_t>(width)));
      const double exact = decode_real(type, a) + decode_real(type, b);
      const uint64_t expected = encode_real(type, exact == exact ? exact : __builtin_nan(""));
      EXPECT_EQ(sum(type, a, b), expected) << name(type) << " " << a << " + " << b;
      EXPECT_EQ(sum(type, b, a), expected);
    }
  }
  EXPECT_EQ(sum(DType::u8, 200, 100), 44U);
  EXPECT_EQ(sum(DType::i16, 0x7fff, 1), 0x8000U);
}

}  // namespace
}  // namespace hone::HONE_FILE
