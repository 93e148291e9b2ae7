#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "codegen/math/evaluate.h"
#include "codegen/math/functions.h"
#include "tests/codegen/native.h"

// Emitted code computes the same bits as the functions that math_test.cc measures.

namespace hone::HONE_FILE {
namespace {

constexpr Opcode kFunctions[] = {
#define HONE_MATH(name, operands, how, exact) Opcode::name,
    HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
};
constexpr int64_t kBlock = 1 << 20;

// A function on blocks of numbers, as vectors of 16.
class Emitted {
 public:
  Emitted(Opcode opcode, const Target& target)
      : opcode_(opcode),
        target_(target),
        program_(
            parse_tiles(fmt::format(R"(tiles @f(@x: f32[{0}], @y: f32[{0}]) -> (@z: f32[{0}]) {{
    for i in {1} {{
      lanes j in 16 {{
        %x = load @x[16*i + j]
        %y = load @y[16*i + j]
        %z = {2} %x{3}
        store @z[16*i + j] = %z
      }}
    }}
  }})",
                                    kBlock, kBlock / 16, name(opcode),
                                    math::operands_of(opcode) == 2 ? ", %y" : ""))
                .value()) {}

  void check(const std::vector<float>& x, const std::vector<float>& y) const {
    const Type type = Type::get(DType::f32, {kBlock});
    const std::vector<Tensor> inputs = {Tensor::copy_of(type, std::as_bytes(std::span(x))),
                                        Tensor::copy_of(type, std::as_bytes(std::span(y)))};
    const std::vector<Tensor> outputs = run_native(program_, inputs, target_).value();
    const std::span<const float> actual = outputs[0].as<float>();
    std::vector<float> expected(x.size());
    const bool unary = math::operands_of(opcode_) == 1;
    math::evaluate(opcode_, target_.isa != Isa::v2, x, unary ? std::span<const float>() : y,
                   expected);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
          << actual[i] << ", not " << expected[i] << ", of " << x[i] << ", " << y[i];
    }
  }

 private:
  const Opcode opcode_;
  const Target target_;
  const TileProgram program_;
};

class EmittedMath : public testing::TestWithParam<Opcode> {};
INSTANTIATE_TEST_SUITE_P(All, EmittedMath, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(name(info.param)); });

// Numbers of all bit patterns, each `step` from the last.
std::vector<float> numbers(uint32_t first, uint32_t step) {
  std::vector<float> result(kBlock);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = std::bit_cast<float>(first + static_cast<uint32_t>(i) * step);
  return result;
}

TEST_P(EmittedMath, IsWhatWasMeasured) {
  for (const Target& target : host_targets()) {
    SCOPED_TRACE(name(target.isa));
    Emitted(GetParam(), target).check(numbers(0, 4099), numbers(77, 2'654'435'761U));
  }
}

// All 2^32 numbers.
TEST_P(EmittedMath, DISABLED_SweepAll) {
  const Target host = host_target().value();
  const Emitted emitted(GetParam(), host);
  for (uint64_t first = 0; first < (uint64_t{1} << 32) && !HasFatalFailure(); first += kBlock)
    emitted.check(numbers(static_cast<uint32_t>(first), 1),
                  numbers(static_cast<uint32_t>(first >> 3), 2'654'435'761U));
}

}  // namespace
}  // namespace hone::HONE_FILE
