#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// The first result of a program without parameters, as text: "1 2 3".
std::string result_of(std::string_view text) {
  const Result<Model> model = parse_hlo(text, "p");
  if (!model.ok()) return model.error().to_string();
  const Result<std::vector<Tensor>> results = evaluate_model(*model, {});
  if (!results.ok()) return results.error().to_string();
  std::vector<std::string> numbers;
  const Tensor& first = results->front();
  for (int64_t i = 0; i < first.elements(); ++i) numbers.push_back(format_double(first.real_at(i)));
  return join(numbers, " ");
}

// The body of @main, whose last value %r has this type.
std::string main_of(std::string_view body, std::string_view type) {
  return fmt::format("func.func @main() -> {1} {{\n{0}\n  return %r : {1}\n}}\n", body, type);
}

std::string result_of(std::string_view body, std::string_view type) {
  return result_of(main_of(body, type));
}

TEST(Stablehlo, ReadsPrettyAndGenericFormsAlike) {
  constexpr std::string_view kOperands =
      "  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
      "  %b = stablehlo.constant dense<[10, 20]> : tensor<2xi32>\n";
  const std::string pretty = "  %r = stablehlo.add %a, %b : tensor<2xi32>";
  const std::string generic =
      "  %r = \"stablehlo.add\"(%a, %b) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>";
  for (const std::string& op : {pretty, generic})
    EXPECT_EQ(result_of(std::string(kOperands) + op, "tensor<2xi32>"), "11 22");
}

TEST(Stablehlo, ReadsLiteralsOfEveryForm) {
  const auto constant = [](std::string_view literal, std::string_view type) {
    return result_of(fmt::format("%r = stablehlo.constant dense<{}> : {}", literal, type), type);
  };
  EXPECT_EQ(constant("7", "tensor<3xi8>"), "7 7 7");
  EXPECT_EQ(constant("[[1, -2], [3, 4]]", "tensor<2x2xi64>"), "1 -2 3 4");
  EXPECT_EQ(constant("[0x7F800000, -1.5e-1, 0xFF800000]", "tensor<3xf32>"),
            "inf -0.15000000596046448 -inf");
  EXPECT_EQ(constant("\"0x0000803F00000040\"", "tensor<2xf32>"), "1 2");
  EXPECT_EQ(constant("\"0x0000803F\"", "tensor<2xf32>"), "1 1") << "one number stands for all";
  EXPECT_EQ(constant("\"0x010001\"", "tensor<3xi1>"), "1 0 1") << "a byte for each bool";
  EXPECT_EQ(constant("[true, false]", "tensor<2xi1>"), "1 0");
  EXPECT_EQ(constant("[[0, 1, -8, 7]]", "tensor<1x4xi4>"), "0 1 -8 7");
  EXPECT_EQ(constant("18446744073709551615", "tensor<ui64>"), "1.8446744073709552e+19");
}

// A billion equal elements take no memory.
TEST(Stablehlo, KeepsALiteralOfEqualElementsSmall) {
  const Model model = parse_hlo(main_of("%r = stablehlo.constant dense<1> : tensor<1000000000xi8>",
                                        "tensor<1000000000xi8>"),
                                "p")
                          .value();
  const Graph& graph = *single_graph(model);
  for (const NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::constant) EXPECT_EQ(graph.constant(n).elements(), 1);
  EXPECT_EQ(graph.output_types()[0].static_elements(), 1'000'000'000);
}

TEST(Stablehlo, CallsFunctionsAndGivesSeveralResults) {
  EXPECT_EQ(result_of("module @m {\n"
                      "  func.func public @main() -> tensor<i32> {\n"
                      "    %0:2 = call @two() : () -> (tensor<i32>, tensor<i32>)\n"
                      "    %1 = stablehlo.subtract %0#1, %0#0 : tensor<i32>\n"
                      "    return %1 : tensor<i32>\n  }\n"
                      "  func.func private @two() -> (tensor<i32>, tensor<i32>) {\n"
                      "    %c = stablehlo.constant dense<3> : tensor<i32>\n"
                      "    %d = stablehlo.constant dense<10> : tensor<i32>\n"
                      "    return %c, %d : tensor<i32>, tensor<i32>\n  }\n}\n"),
            "7");
}

TEST(Stablehlo, LoopsSeeValuesFromOutside) {
  EXPECT_EQ(
      result_of("%n = stablehlo.constant dense<5> : tensor<i32>\n"
                "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
                "%step = stablehlo.add %n, %n : tensor<i32>\n"
                "%i0, %r = stablehlo.while(%i = %zero, %s = %zero) : tensor<i32>, tensor<i32>\n"
                "cond {\n"
                "  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                "  stablehlo.return %p : tensor<i1>\n"
                "} do {\n"
                "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
                "  %j = stablehlo.add %i, %one : tensor<i32>\n"
                "  %t = stablehlo.add %s, %step : tensor<i32>\n"
                "  stablehlo.return %j, %t : tensor<i32>, tensor<i32>\n"
                "}",
                "tensor<i32>"),
      "50");
}

// A number out of range takes the last branch.
TEST(Stablehlo, ChoosesABranch) {
  for (const auto& [number, want] : {std::pair(0, "10"), std::pair(1, "20"), std::pair(-1, "20")})
    EXPECT_EQ(result_of(fmt::format("%i = stablehlo.constant dense<{}> : tensor<i32>\n"
                                    "%a = stablehlo.constant dense<10> : tensor<i8>\n"
                                    "%b = stablehlo.constant dense<20> : tensor<i8>\n"
                                    "%r = \"stablehlo.case\"(%i) ({{\n"
                                    "  stablehlo.return %a : tensor<i8>\n}}, {{\n"
                                    "  stablehlo.return %b : tensor<i8>\n}})"
                                    " : (tensor<i32>) -> tensor<i8>",
                                    number),
                        "tensor<i8>"),
              want);
}

// The value to begin with counts once, and a body of any form runs in order.
TEST(Stablehlo, ReducesByKnownAndUnknownBodies) {
  const auto reduced = [](std::string_view body) {
    return result_of(
        fmt::format("%x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n"
                    "%c = stablehlo.constant dense<100> : tensor<i32>\n"
                    "%r = stablehlo.reduce(%x init: %c) across dimensions = [1] : "
                    "(tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>\n"
                    " reducer(%a: tensor<i32>, %b: tensor<i32>) {{\n{}\n"
                    "  stablehlo.return %s : tensor<i32>\n}}",
                    body),
        "tensor<2xi32>");
  };
  EXPECT_EQ(reduced("%s = stablehlo.add %a, %b : tensor<i32>"), "106 115");
  EXPECT_EQ(reduced("%s = stablehlo.maximum %b, %a : tensor<i32>"), "100 100");
  EXPECT_EQ(reduced("%s = stablehlo.subtract %a, %b : tensor<i32>"), "94 85");
  // The constant stands outside of the body.
  EXPECT_EQ(reduced("%t = stablehlo.subtract %a, %b : tensor<i32>\n"
                    "%s = stablehlo.add %t, %c : tensor<i32>"),
            "394 385");
}

// argmax as JAX writes it: NaN wins, and among equals the lower place. Any body that picks so is
// known by what it does; one that takes the higher place runs as a loop.
TEST(Stablehlo, FindsPlacesOfExtremes) {
  const auto places = [](std::string_view order, std::string_view numbers, bool& is_known) {
    const std::string text = main_of(
        fmt::format(
            "%x = stablehlo.constant dense<[{1}]> : tensor<5xf32>\n"
            "%i = stablehlo.iota dim = 0 : tensor<5xi32>\n"
            "%c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
            "%d = stablehlo.constant dense<0> : tensor<i32>\n"
            "%v, %r = stablehlo.reduce(%x init: %c), (%i init: %d) across dimensions = [0] : "
            "(tensor<5xf32>, tensor<5xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, "
            "tensor<i32>)\n"
            " reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {{\n"
            "  %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> "
            "tensor<i1>\n"
            "  %1 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> "
            "tensor<i1>\n"
            "  %2 = stablehlo.or %0, %1 : tensor<i1>\n"
            "  %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> "
            "tensor<i1>\n"
            "  %4 = stablehlo.compare {0}, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> "
            "tensor<i1>\n"
            "  %5 = stablehlo.and %3, %4 : tensor<i1>\n"
            "  %6 = stablehlo.or %2, %5 : tensor<i1>\n"
            "  %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>\n"
            "  %8 = stablehlo.select %6, %j, %k : tensor<i1>, tensor<i32>\n"
            "  stablehlo.return %7, %8 : tensor<f32>, tensor<i32>\n}}",
            order, numbers),
        "tensor<i32>");
    const Model model = parse_hlo(text, "p").value();
    is_known = false;
    const Graph& graph = *single_graph(model);
    for (const NodeId n : graph.nodes())
      is_known = is_known || graph.opcode(n) == Opcode::arg_reduce;
    return result_of(text);
  };
  bool is_known = false;
  EXPECT_EQ(places("LT", "1.0, 3.0, 2.0, 3.0, -1.0", is_known), "1");
  EXPECT_TRUE(is_known);
  EXPECT_EQ(places("LT", "1.0, 3.0, 0x7FC00000, 3.0, 0x7FC00000", is_known), "2");
  EXPECT_EQ(places("GT", "1.0, 3.0, 2.0, 3.0, -1.0", is_known), "3");
  EXPECT_FALSE(is_known);
}

// The numbers are those of tables.
TEST(Stablehlo, SpellsOutFunctionsOfChlo) {
  const auto value = [](std::string_view function, std::string_view x) {
    const std::string text =
        main_of(fmt::format("%x = stablehlo.constant dense<{1}> : tensor<f32>\n"
                            "%r = chlo.{0} %x : tensor<f32> -> tensor<f32>",
                            function, x),
                "tensor<f32>");
    return std::stod(result_of(text));
  };
  EXPECT_FLOAT_EQ(value("erfc", "5.0"), 1.5374597944280349e-12);
  EXPECT_FLOAT_EQ(value("erfc", "3.0"), 2.2090496998585445e-05);
  EXPECT_FLOAT_EQ(value("erfc", "-4.0"), 1.999999984582742);
  const auto wide = [](std::string_view x) {
    return std::stod(
        result_of(main_of(fmt::format("%x = stablehlo.constant dense<{}> : tensor<f64>\n"
                                      "%r = chlo.erfc %x : tensor<f64> -> tensor<f64>",
                                      x),
                          "tensor<f64>")));
  };
  EXPECT_DOUBLE_EQ(wide("0.1"), 0.8875370839817151);
  EXPECT_DOUBLE_EQ(wide("1.5"), 0.033894853524689273);
  EXPECT_DOUBLE_EQ(wide("-0.7"), 1.6778011938374184);
  EXPECT_DOUBLE_EQ(wide("10.0"), 2.0884875837625447e-45);
  EXPECT_EQ(wide("0x7FF0000000000000"), 0);
  EXPECT_FLOAT_EQ(value("erf_inv", "0.5"), 0.4769362762044699);
  EXPECT_FLOAT_EQ(value("lgamma", "0.25"), 1.2880225246980774);
  EXPECT_FLOAT_EQ(value("lgamma", "-1.5"), 0.8600470153764810);
  EXPECT_FLOAT_EQ(value("digamma", "1.0"), -0.5772156649015329);
}

TEST(Stablehlo, SortsByAnyComparator) {
  const auto sorted = [](std::string_view comparison) {
    return result_of(
        fmt::format("%x = stablehlo.constant dense<[3, -1, 2, -3, 0]> : tensor<5xi32>\n"
                    "%r = \"stablehlo.sort\"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{\n"
                    "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n{}\n"
                    "  stablehlo.return %p : tensor<i1>\n}}) : (tensor<5xi32>) -> tensor<5xi32>",
                    comparison),
        "tensor<5xi32>");
  };
  const std::string compare =
      "%p = stablehlo.compare {}, {}, {} : (tensor<i32>, tensor<i32>) -> tensor<i1>";
  EXPECT_EQ(sorted(fmt::format(fmt::runtime(compare), "LT", "%a", "%b")), "-3 -1 0 2 3");
  EXPECT_EQ(sorted(fmt::format(fmt::runtime(compare), "GT", "%a", "%b")), "3 2 0 -1 -3");
  // hone does not know this comparator: by size.
  EXPECT_EQ(sorted("%u = stablehlo.abs %a : tensor<i32>\n%v = stablehlo.abs %b : tensor<i32>\n" +
                   fmt::format(fmt::runtime(compare), "LT", "%u", "%v")),
            "0 -1 2 3 -3");
}

// XLA drops a window as a whole if a part of it is out of range.
TEST(Stablehlo, DropsAWindowThatDoesNotFit) {
  EXPECT_EQ(result_of("%x = stablehlo.constant dense<0> : tensor<4xi32>\n"
                      "%i = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi64>\n"
                      "%u = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\n"
                      "%r = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = "
                      "#stablehlo.scatter<update_window_dims = [1], "
                      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
                      "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
                      "  stablehlo.return %b : tensor<i32>\n"
                      "}) : (tensor<4xi32>, tensor<2x1xi64>, tensor<2x2xi32>) -> tensor<4xi32>",
                      "tensor<4xi32>"),
            "0 1 2 0");
}

// ---- Errors -------------------------------------------------------------------------------------

Result<Model> parsed(std::string_view text) { return parse_hlo(text, "p.mlir"); }

TEST(StablehloErrors, HaveAPlace) {
  EXPECT_THAT(
      parsed("module {\n  func.func @main() {\n    %a = stablehlo.add %b, %b : tensor<i32>"),
      refuses(ErrorCode::bad_input, "p.mlir:3:24 ... %b ... not defined"));
  EXPECT_THAT(parsed("func.func @main() {\n  return\n"),
              refuses(ErrorCode::bad_input, "p.mlir:3:1"));
  EXPECT_THAT(
      parsed(main_of("%r = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>", "tensor<2xi32>")),
      refuses(ErrorCode::bad_input, "p.mlir:2:39 ... more elements ... i32[2]"));
  EXPECT_THAT(
      parsed(main_of("%r = stablehlo.constant dense<[1.5]> : tensor<1xi32>", "tensor<1xi32>")),
      refuses(ErrorCode::bad_input, "p.mlir:2:32 ... '1.5' ... i32"));
  EXPECT_THAT(parsed(main_of("%c = stablehlo.constant dense<1> : tensor<2xi32>\n"
                             "%r = stablehlo.negate %c : tensor<3xi32>",
                             "tensor<3xi32>")),
              refuses(ErrorCode::bad_input, "p.mlir:3:6 ... i32[2] ... i32[3]"));
}

TEST(StablehloErrors, NameWhatIsLacking) {
  EXPECT_THAT(parsed(main_of("%c = stablehlo.constant dense<1> : tensor<2xi32>\n"
                             "%d = stablehlo.foo %c : tensor<2xi32>\n"
                             "%r = stablehlo.foo %d : tensor<2xi32>",
                             "tensor<2xi32>")),
              refuses(ErrorCode::unsupported, "p.mlir:3:6 ... 'stablehlo.foo' ... 2 uses"));
  EXPECT_THAT(parsed("func.func @main(%a: tensor<2xcomplex<f32>>) {\n  return\n}"),
              refuses(ErrorCode::unsupported, "p.mlir ... complex numbers"));
  EXPECT_THAT(
      parsed(main_of("%c = stablehlo.constant dense<1> : tensor<2xi32>\n"
                     "%r = \"stablehlo.negate\"(%c) {mhlo.a = 1 : i64, colour = 3 : i64} : "
                     "(tensor<2xi32>) -> tensor<2xi32>",
                     "tensor<2xi32>")),
      refuses(ErrorCode::bad_input, "p.mlir:3 ... 'stablehlo.negate' ... no attribute 'colour'"));
  EXPECT_THAT(parsed("ML\xEFR..."),
              refuses(ErrorCode::unsupported, "p.mlir ... bytecode ... print it"));
  EXPECT_THAT(parsed("func.func @a() {\n  return\n}\nfunc.func @b() {\n  return\n}\n"),
              refuses(ErrorCode::bad_input, "p.mlir:1:11 ... 'main' ... 'a' ... 'b'"));
}

TEST(StablehloErrors, StopHostileTexts) {
  EXPECT_THAT(parsed("func.func @main() {\n  %a = \"x\"() {a = " + std::string(100'000, '[')),
              refuses(ErrorCode::limit, "p.mlir:2 ... deep"));
  EXPECT_THAT(parsed("func.func @main(%a: " + std::string(100'000, 't')),
              refuses(ErrorCode::bad_input, "p.mlir:1"));
  EXPECT_THAT(parsed("func.func @main(%a: tensor<9999999999999x9999999999999xi8>) {\n return\n}"),
              refuses(ErrorCode::limit, "p.mlir:1:21"));
  EXPECT_THAT(parsed("func.func @main() {\n  call @main() : () -> ()\n  return\n}"),
              refuses(ErrorCode::bad_input, "'main' calls itself"));
  // Long names and long chains do not nest.
  std::string name = "@a";
  for (int i = 0; i < 100'000; ++i) name += "::@a";
  EXPECT_THAT(parsed("func.func @main() {\n  call " + name + "() : () -> ()\n  return\n}"),
              refuses(ErrorCode::bad_input, "p.mlir:2 ... a"));
  std::string chain = "%a0 = stablehlo.constant dense<2> : tensor<i32>\n";
  constexpr int kLong = 50'000;
  for (int i = 0; i < kLong; ++i)
    chain +=
        fmt::format("%a{} = stablehlo.reshape %a{} : (tensor<i32>) -> tensor<i32>\n", i + 1, i);
  chain += fmt::format(
      "%b = stablehlo.constant dense<[3, 4]> : tensor<2xi32>\n"
      "%r = stablehlo.reduce(%b init: %a{}) applies stablehlo.add across dimensions = [0] : "
      "(tensor<2xi32>, tensor<i32>) -> tensor<i32>",
      kLong);
  EXPECT_TRUE(parse_hlo(main_of(chain, "tensor<i32>"), "p").ok());
  // Each function calls the next one twice: 2^60 calls.
  std::string text = "module {\n func.func @main() {\n  call @f0() : () -> ()\n  return\n }\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format(
        " func.func private @f{0}() {{\n  call @f{1}() : () -> ()\n"
        "  call @f{1}() : () -> ()\n  return\n }}\n",
        i, i + 1);
  text += " func.func private @f60() {\n  return\n }\n}\n";
  EXPECT_THAT(parsed(text), refuses(ErrorCode::limit, "calls written out"));
}

// Bytes are changed, cut and doubled: an error or a model, never a crash.
TEST(StablehloErrors, MeetChangedTexts) {
  const std::string good = main_of(
      "%x = stablehlo.constant dense<[[1.5, 2.5], [3.5, 4.5]]> : tensor<2x2xf32>\n"
      "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, "
      "tensor<2x2xf32>) -> tensor<2x2xf32>\n"
      "%w = \"stablehlo.reduce_window\"(%d, %c) <{padding = dense<[[1, 0], [0, 0]]> : "
      "tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>}> ({\n"
      "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "  %s = stablehlo.add %a, %b : tensor<f32>\n"
      "  stablehlo.return %s : tensor<f32>\n"
      "}) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>\n"
      "%r = stablehlo.slice %w [0:1, 0:2:1] : (tensor<2x2xf32>) -> tensor<1x2xf32>",
      "tensor<1x2xf32>");
  ASSERT_TRUE(parse_hlo(good, "p").ok());
  std::mt19937 random(1);
  int64_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (int change = static_cast<int>(random() % 3); change >= 0; --change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 8); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 16)); break;
        default: text[at] = "0123456789{}[]<>()%:,=#\""[random() % 24];
      }
    }
    refused += parse_hlo(text, "p").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace hone::HONE_FILE
