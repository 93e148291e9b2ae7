#include "program/instantiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/run.h"
#include "tests/base/says_testing.h"
#include "tests/program/image_runner.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Program parsed(std::string_view text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return {};
  Status status = verify(*program);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return *program;
}

// Two phases around shared and scratch memory, and a symbol.
constexpr std::string_view kSymbolic =
    "program @p {\n  threads 3\n"
    "  tiles @sum(@x: f32[2, N]) -> (@y: f32[N]) where N in 1..64 {\n"
    "    shared @a: f32[N]\n"
    "    scratch @s: f32[N]\n"
    "    shared @b: f32[2]\n"
    "    threads i in N {\n"
    "      threads j in 1 {\n"
    "        %0 = load @x[0, i]\n"
    "        store @s[i] = %0\n"
    "        %1 = load @s[i]\n"
    "        store @a[i] = %1\n"
    "      }\n"
    "    }\n"
    "    for i in N {\n"
    "      %2 = load @a[i]\n"
    "      %3 = load @x[1, i]\n"
    "      %4 = add %2, %3\n"
    "      store @y[i] = %4\n"
    "    }\n"
    "  }\n"
    "  frame @main(%x: f32[2, N]) -> (%y: f32[N]) where N in 1..64 {\n"
    "    temporary %t: f32[N]\n"
    "    temporary %u: f32[2*N]\n"
    "    view %row: f32[N] = %x [4*N]\n"
    "    0 @k0 = launch @sum(%x) -> (%t)\n"
    "    1 @k1 = copy (%x) -> (%u)\n"
    "    2 @y = copy (%row) -> (%y)\n"
    "  }\n}\n";

std::vector<int64_t> numbers_of(Image image) {
  std::vector<int64_t> numbers = {image.arena_bytes};
  each_number(image, [&](int64_t& number) { numbers.push_back(number); });
  return numbers;
}

TEST(Instantiate, ForAllSizesAtOnceGivesTheNumbersOfEach) {
  const Program program = parsed(kSymbolic);
  const std::vector<KernelCode> code = {
      {std::make_shared<const std::string>("elf"), {"sum_0", "sum_1"}}};
  const OpenImage open = instantiate_open(program, code).value();
  EXPECT_EQ(symbols_of(open).size(), 1);
  for (int64_t n : {1, 20, 64}) {
    const Image image = bound_image(open, {{"N", n}}).value();
    const Image direct = instantiate(program, {{"N", n}}, code).value();
    EXPECT_EQ(numbers_of(image), numbers_of(direct));
    EXPECT_EQ(image.inputs[0].type, direct.inputs[0].type);
  }
  const Type types[] = {Type::get(DType::f32, {2, 20})};
  EXPECT_EQ(bind_ports(open.image.inputs, types).value().at("N").value(), 20);
  const Type wrong[] = {Type::get(DType::f32, {2, 65})};
  EXPECT_THAT(bind_ports(open.image.inputs, wrong).error().what(), HasSubstr("axis 1"));
  EXPECT_THAT(bound_image(open, {}).error().what(), HasSubstr("'N' has no value"));
}

TEST(Instantiate, GivesKernelsAndBuffersTheirSizes) {
  const Program program = parsed(kSymbolic);
  const std::vector<KernelCode> code = {
      {std::make_shared<const std::string>("elf"), {"sum_0", "sum_1"}}};
  Result<Image> image = instantiate(program, {{"N", 20}}, code);
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  EXPECT_EQ(image->threads, 3);
  ASSERT_EQ(image->kernels.size(), 1);
  const image::Kernel& kernel = image->kernels[0];
  EXPECT_EQ(*kernel.object, "elf");
  EXPECT_EQ(kernel.scratch_bytes, 128);
  EXPECT_EQ(kernel.phases[0].symbol, "sum_0");
  EXPECT_EQ(kernel.phases[0].trips, 20);
  EXPECT_TRUE(kernel.phases[0].is_parallel);
  EXPECT_EQ(kernel.phases[1].trips, 1);
  EXPECT_FALSE(kernel.phases[1].is_parallel);

  ASSERT_EQ(image->commands.size(), 3);
  const auto& launch = std::get<image::Launch>(image->commands[0].kind);
  EXPECT_THAT(launch.symbols, ElementsAre(20));
  std::vector<int64_t> offsets, bytes;
  for (const image::Place& place : launch.buffers) {
    offsets.push_back(place.offset);
    bytes.push_back(place.bytes);
  }
  // x, y = %t, and behind %t and %u what is shared.
  EXPECT_THAT(bytes, ElementsAre(160, 80, 80, 8));
  EXPECT_THAT(offsets, ElementsAre(0, 0, 128 + 192, 128 + 192 + 128));
  EXPECT_EQ(image->arena_bytes, 128 + 192 + 128 + 64);
  const auto& copy = std::get<image::Copy>(image->commands[2].kind);
  EXPECT_EQ(copy.from.region, image::Place::Region::input);
  EXPECT_EQ(copy.from.offset, 80);
  EXPECT_EQ(copy.to.region, image::Place::Region::output);
}

TEST(Instantiate, RefusesWhatDoesNotFit) {
  const Program program = parsed(kSymbolic);
  auto error = [&](const Bindings& bindings, const std::vector<KernelCode>& code) {
    Result<Image> image = instantiate(program, bindings, code);
    return image.ok() ? "done" : image.error().to_string();
  };
  const std::vector<KernelCode> code = nameless_code(program);
  EXPECT_EQ(error({{"N", 2}}, code), "done");
  EXPECT_THAT(error({}, code), HasSubstr("'N' has no value"));
  EXPECT_THAT(error({{"N", 65}}, code), HasSubstr("N"));
  EXPECT_THAT(error({{"N", 2}}, {}), says("0 kernels ... 1"));
  EXPECT_THAT(error({{"N", 2}}, {{nullptr, {"only"}}}), HasSubstr("has 1 phases, not 2"));
}

// A frame that runs another twice, and that another one twice, ...
TEST(Instantiate, BoundsWhatIsWrittenOut) {
  std::string text =
      "program @p {\n  threads 1\n"
      "  frame @f0(%x: f32[]) -> (%y: f32[]) {\n    0 @y = copy (%x) -> (%y)\n  }\n";
  for (int i = 1; i <= 60; ++i)
    text += fmt::format(
        "  frame @f{0}(%x: f32[]) -> (%y: f32[]) {{\n    temporary %t: f32[]\n"
        "    0 @t = call @f{1}(%x) -> (%t)\n    1 @y = call @f{1}(%t) -> (%y) after 0\n  }}\n",
        i, i - 1);
  Result<Image> image = instantiate(parsed(text + "}\n"), {}, {});
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code(), ErrorCode::limit);
}

// Scans within a scan, over views of constants and temporaries.
constexpr std::string_view kNested =
    "program @p {\n  threads 1\n"
    "  tiles @add(@x: f32[2], @z: f32[2]) -> (@y: f32[2]) {\n"
    "    threads i in 2 {\n"
    "      %0 = load @x[i]\n"
    "      %1 = load @z[i]\n"
    "      %2 = add %0, %1\n"
    "      store @y[i] = %2\n"
    "    }\n"
    "  }\n"
    "  frame @inner(%s: f32[2], %x: f32[2], %c: f32[2]) -> (%n: f32[2], %y: f32[2]) {\n"
    "    temporary %t: f32[2] at 0\n"
    "    0 @k0 = launch @add(%s, %x) -> (%t)\n"
    "    1 @k1 = launch @add(%t, %c) -> (%n) after 0\n"
    "    2 @y = copy (%n) -> (%y) after 1\n"
    "  }\n"
    "  frame @outer(%s: f32[2], %x: f32[3, 2]) -> (%n: f32[2], %y: f32[3, 2]) {\n"
    "    constant %c = [0, 0, 1, 2, 3, 4, 5, 6] : f32[4, 2]\n"
    "    temporary %next: f32[2] at 64\n"
    "    view %last: f32[3, 2] = %c [8]\n"
    "    0 @n = copy (%s) -> (%n)\n"
    "    1 @loop = scan [3] do @inner(%n over %x, %last) -> (%next over %y) after 0\n"
    "  }\n"
    "  frame @main(%s: f32[2], %x: f32[2, 3, 2]) -> (%n: f32[2], %y: f32[2, 3, 2]) {\n"
    "    temporary %next: f32[2] at 128\n"
    "    0 @n = copy (%s) -> (%n)\n"
    "    1 @loop = scan [2] reverse do @outer(%n over %x) -> (%next over %y) after 0\n"
    "  }\n}\n";

TEST(Instantiate, WritesNestedLoopsOut) {
  const Program program = parsed(kNested);
  std::vector<double> numbers;
  for (int i = 0; i < 12; ++i) numbers.push_back(i * i);
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f32, {2}), std::vector<double>{1, 2}),
      Tensor::from_reals(Type::get(DType::f32, {2, 3, 2}), numbers)};
  Result<Image> image = instantiate(program, {}, nameless_code(program));
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  EXPECT_EQ(image->loops, 2);
  EXPECT_EQ(image->constants.size(), 1);
  Result<std::vector<Tensor>> actual = ImageRunner(*image, program.kernels).run(inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  const std::vector<Tensor> expected = run(program, inputs).value();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE((*actual)[i].same_bytes(expected[i]));
  // The first state, all of x, and twice the constant.
  EXPECT_EQ(expected[0].real_at(0), 1 + (0 + 4 + 16 + 36 + 64 + 100) + 2 * (1 + 3 + 5));
}

}  // namespace
}  // namespace hone::HONE_FILE
