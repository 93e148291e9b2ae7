#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/ir/dense_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

TEST(Conv, SlidesTheKernelOverTheInput) {
  expect_eval("conv", {"f32[1,1,4] 1 2 3 4", "f32[1,1,2] 10 1"}, {"f32[1,1,3] 12 23 34"});
  expect_eval("conv {pad_low = [1], pad_high = [2]}", {"f32[1,1,3] 1 2 3", "f32[1,1,2] 10 1"},
              {"f32[1,1,5] 1 12 23 30 0"});
  expect_eval("conv {stride = [2], kernel_dilation = [2]}",
              {"f32[1,1,6] 1 2 3 4 5 6", "f32[1,1,2] 10 1"}, {"f32[1,1,2] 13 35"});
  expect_eval("conv {input_dilation = [2]}", {"f32[1,1,3] 1 2 3", "f32[1,1,2] 10 1"},
              {"f32[1,1,4] 10 2 20 3"});
  expect_eval("conv {order = \"b0f_0io->b0f\", pad_low = [-1]}",
              {"f32[1,3,1] 1 2 3", "f32[2,1,1] 10 1"}, {"f32[1,1,1] 23"});
  expect_eval("conv {groups = 2}", {"f32[1,2,2] 1 2 3 4", "f32[2,1,1] 10 100"},
              {"f32[1,2,2] 10 20 300 400"});
  expect_eval("conv", {"f32[2,2] 1 2 3 4", "f32[3,2] 1 0 0 1 1 1"}, {"f32[2,3] 1 2 3 3 4 7"});
  expect_eval("conv", {"f32[1,1,2,2] 1 2 3 4", "f32[1,1,2,2] 1 10 100 1000"},
              {"f32[1,1,1,1] 4321"});
}

TEST(Conv, OfNothing) {
  expect_eval("conv", {"f32[1,0,2]", "f32[3,0,1]"}, {"f32[1,3,2] 0"});
  expect_eval("conv", {"f32[0,2,2]", "f32[3,2,1] 1"}, {"f32[0,3,2]"});
  expect_eval("conv", {"f32[1,2,2] 1", "f32[0,2,1]"}, {"f32[1,0,2]"});
  expect_eval("conv {groups = 2}", {"f32[1,2,2] 1", "f32[0,1,1]"}, {"f32[1,0,2]"});
  expect_eval("conv", {"f32[1,1,2] 1 2", "f32[1,1,3] 1"}, {"f32[1,1,0]"});
  expect_eval("conv {pad_low = [1], pad_high = [1]}", {"f32[1,1,0]", "f32[1,1,1] 1"},
              {"f32[1,1,2] 0"});
  expect_eval("conv {pad_low = [1], pad_high = [1], input_dilation = [2]}",
              {"f32[1,1,0]", "f32[1,1,1] 1"}, {"f32[1,1,2] 0"});
}

// A kernel element that meets padding or a hole does not take part: 0 * inf does not happen.
TEST(Conv, SkipsPaddingAndHoles) {
  expect_eval("conv {pad_low = [1], pad_high = [1]}", {"f32[1,1,2] 1 2", "f32[1,1,2] inf 1"},
              {"f32[1,1,3] 1 inf inf"});
  expect_eval("conv {pad_low = [1]}", {"f32[1,1,2] 1 2", "f32[2,1,2] nan 1 1 1"},
              {"f32[1,2,2] 1 nan 1 3"});
  expect_eval("conv {input_dilation = [2]}", {"f32[1,1,2] 1 2", "f32[3,1,2] 1 1 inf 1 nan 0"},
              {"f32[1,3,2] 1 2 inf 2 nan 0"});
  expect_eval("conv {pad_low = [1]}", {"f32[1,1,2] nan 2", "f32[2,1,2] 1 1 0 0"},
              {"f32[1,2,2] nan nan nan nan"});
  expect_eval("conv {pad_low = [-1]}", {"f32[1,1,3] nan 2 3", "f32[2,1,2] 1 1 0 0"},
              {"f32[1,2,1] 5 0"});
}

TEST(Conv, OfIntegersIsExactModuloTheResultType) {
  expect_eval("conv {accumulate = i32}", {"u8[1,1,3] 255 255 255", "i8[1,1,3] -128 -128 127"},
              {"i32[1,1,1] -32895"});
  expect_eval("conv", {"i8[1,2,1] 100 100", "i8[1,2,1] 100 1"}, {"i8[1,1,1] 116"});  // 10100
  expect_eval("conv", {"u64[1,1,1] 18446744073709551615", "u64[1,1,1] 3"},
              {"u64[1,1,1] 18446744073709551613"});
  expect_eval("conv {accumulate = f64}", {"f32[1,1,1] 3", "f32[1,1,1] 2"}, {"f64[1,1,1] 6"});
}

// ---- Against loops ------------------------------------------------------------------------------

struct Axis {
  int64_t in, window, stride, low, high, in_dilation, window_dilation;

  int64_t out() const {
    int64_t dilated = in == 0 ? 0 : (in - 1) * in_dilation + 1;
    int64_t room = dilated + low + high - ((window - 1) * window_dilation + 1);
    int64_t steps = 0;  // floor(room / stride)
    while (steps * stride > room) --steps;
    while ((steps + 1) * stride <= room) ++steps;
    return steps + 1;
  }
  // The element at a position of a window, found by walking over the dilated input.
  std::optional<int64_t> element(int64_t o, int64_t w) const {
    for (int64_t i = 0; i < in; ++i) {
      if (low + i * in_dilation == o * stride + w * window_dilation) return i;
    }
    return std::nullopt;
  }
};

struct RandomConv {
  int64_t batch, groups, in_features, out_features;  // features per group
  std::vector<Axis> axes;
  std::string input_order, kernel_order, output_order;

  Op op(bool spell_order) const {
    Ints stride, low, high, in_dilation, window_dilation;
    for (const Axis& a : axes) {
      stride.push_back(a.stride);
      low.push_back(a.low);
      high.push_back(a.high);
      in_dilation.push_back(a.in_dilation);
      window_dilation.push_back(a.window_dilation);
    }
    std::string order = input_order + "_" + kernel_order + "->" + output_order;
    return Op::get(Opcode::conv, {{"order", spell_order ? order : std::string()},
                                  {"stride", stride},
                                  {"pad_low", low},
                                  {"pad_high", high},
                                  {"input_dilation", in_dilation},
                                  {"kernel_dilation", window_dilation},
                                  {"groups", groups}});
  }

  // The value of a letter ('b', 'f', 'o', 'i' or a digit) for each dim of an order.
  template <class Fn>
  static Ints by_letter(const std::string& order, const Fn& value) {
    Ints result;
    for (char c : order) result.push_back(value(c));
    return result;
  }
  Ints input_dims() const {
    return by_letter(input_order, [&](char c) {
      return c == 'b' ? batch : c == 'f' ? groups * in_features : axes[at(c - '0')].in;
    });
  }
  Ints kernel_dims() const {
    return by_letter(kernel_order, [&](char c) {
      return c == 'o' ? groups * out_features : c == 'i' ? in_features : axes[at(c - '0')].window;
    });
  }
  Ints output_dims() const {
    return by_letter(output_order, [&](char c) {
      return c == 'b' ? batch : c == 'f' ? groups * out_features : axes[at(c - '0')].out();
    });
  }
};

RandomConv random_conv(Rng& rng, int64_t largest) {
  RandomConv conv = {.batch = rng.chance(0.05) ? 0 : rng.between(1, 3),
                     .groups = rng.between(1, 3),
                     .in_features = rng.chance(0.05) ? 0 : rng.between(1, 3),
                     .out_features = rng.chance(0.05) ? 0 : rng.between(1, 4),
                     .axes = {},
                     .input_order = "bf",
                     .kernel_order = "oi",
                     .output_order = "bf"};
  int64_t rank = rng.between(0, 3);
  for (int64_t i = 0; i < rank; ++i) {
    Axis axis = {};
    do {
      axis = {.in = rng.between(0, largest),
              .window = rng.between(1, 3),
              .stride = rng.between(1, 3),
              .low = rng.between(-2, 3),
              .high = rng.between(-2, 3),
              .in_dilation = rng.chance(0.6) ? 1 : rng.between(2, 4),
              .window_dilation = rng.chance(0.6) ? 1 : rng.between(2, 3)};
    } while (axis.out() < 0);
    conv.axes.push_back(axis);
    char digit = static_cast<char>('0' + i);
    for (std::string* order : {&conv.input_order, &conv.kernel_order, &conv.output_order})
      *order += digit;
  }
  return conv;
}

template <class T>
std::vector<T> convolve_slowly(const RandomConv& conv, const std::vector<T>& input,
                               const std::vector<T>& kernel) {
  Ints in_dims = conv.input_dims(), kernel_dims = conv.kernel_dims(), windows;
  for (const Axis& a : conv.axes) windows.push_back(a.window);
  std::vector<T> output;
  for_each_index(conv.output_dims(), [&](const Ints& out) {
    auto out_at = [&](char c) { return out[conv.output_order.find(c)]; };
    int64_t feature = out_at('f');
    T sum(0);
    for (int64_t i = 0; i < conv.in_features; ++i) {
      for_each_index(windows, [&](const Ints& window) {
        Ints element;
        for (size_t a = 0; a < conv.axes.size(); ++a) {
          auto found = conv.axes[a].element(out_at(static_cast<char>('0' + a)), window[a]);
          if (!found) return;
          element.push_back(*found);
        }
        Ints in = RandomConv::by_letter(conv.input_order, [&](char c) {
          return c == 'b'   ? out_at('b')
                 : c == 'f' ? feature / conv.out_features * conv.in_features + i
                            : element[at(c - '0')];
        });
        Ints k = RandomConv::by_letter(conv.kernel_order, [&](char c) {
          return c == 'o' ? feature : c == 'i' ? i : window[at(c - '0')];
        });
        sum += input[offset_of(in, in_dims)] * kernel[offset_of(k, kernel_dims)];
      });
    }
    output.push_back(sum);
  });
  return output;
}

template <class T>
void expect_conv(const RandomConv& conv, bool spell_order, DType dtype, Numerics numerics,
                 Rng& rng) {
  Op op = conv.op(spell_order);
  auto random = [&](const Ints& dims) {
    Type type = type_with(dtype, dims);
    return is_real(dtype) ? uniform_reals(type, rng) : small_integers(type, rng);
  };
  Tensor input = random(conv.input_dims());
  Tensor kernel = random(conv.kernel_dims());
  Result<std::vector<Tensor>> results = evaluate_op(op, {input, kernel}, numerics);
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  EXPECT_EQ((*results)[0].type().static_dims(), conv.output_dims());
  EXPECT_EQ(numbers_of<T>((*results)[0]),
            convolve_slowly(conv, numbers_of<T>(input), numbers_of<T>(kernel)))
      << op.attrs_to_string() << " of " << input.type().to_string() << ", "
      << kernel.type().to_string();
}

TEST(Conv, EqualsLoopsForRandomWindows) {
  Rng rng(1);
  for (int trial = 0; trial < 600; ++trial) {
    RandomConv conv = random_conv(rng, 7);
    bool spell = trial % 2 == 0;
    if (spell) {
      rng.shuffle(conv.input_order);
      rng.shuffle(conv.kernel_order);
      rng.shuffle(conv.output_order);
    }
    switch (trial % 3) {
      case 0: expect_conv<float>(conv, spell, DType::f32, Numerics::fp32, rng); break;
      case 1: expect_conv<double>(conv, spell, DType::f32, Numerics::wide, rng); break;
      default: expect_conv<int64_t>(conv, spell, DType::i32, Numerics::wide, rng); break;
    }
  }
}

TEST(Conv, EqualsLoopsBeyondOneBlock) {
  RandomConv conv = {.batch = 2,
                     .groups = 1,
                     .in_features = 29,  // a depth of 261
                     .out_features = 3,
                     .axes = {{11, 3, 1, 1, 1, 1, 1}, {13, 3, 1, 1, 1, 1, 1}},  // 286 positions
                     .input_order = "bf01",
                     .kernel_order = "oi01",
                     .output_order = "bf01"};
  Rng rng(2);
  expect_conv<float>(conv, false, DType::f32, Numerics::fp32, rng);
  conv.in_features = 2;
  conv.out_features = 130;
  expect_conv<float>(conv, false, DType::f32, Numerics::fp32, rng);
  conv.in_features = 125;  // three taps: a depth of 375
  conv.axes = {{12, 3, 2, 1, 0, 1, 2}};
  conv.input_order = "b0f", conv.kernel_order = "0io", conv.output_order = "0bf";
  expect_conv<double>(conv, true, DType::f32, Numerics::wide, rng);
}

TEST(Conv, EqualsLoopsForLongRowsOfOneFeature) {
  RandomConv conv = {.batch = 1,
                     .groups = 5,
                     .in_features = 1,
                     .out_features = 1,
                     .axes = {{9001, 3, 1, 2, 0, 1, 1}},
                     .input_order = "bf0",
                     .kernel_order = "oi0",
                     .output_order = "bf0"};
  Rng rng(3);
  expect_conv<float>(conv, false, DType::f32, Numerics::fp32, rng);
  conv.axes = {{3000, 3, 2, 1, 4, 3, 2}};
  expect_conv<double>(conv, false, DType::f32, Numerics::wide, rng);
}

TEST(Conv, GivesTheSameBitsWithAndWithoutPacking) {
  // An infinite kernel element in one feature sends the whole conv the direct way.
  Rng rng(4);
  Op op = op_of("conv {pad_low = [1, 2], pad_high = [1, 0], stride = [1, 2]}");
  Tensor input = uniform_reals(type_of("f32[2,5,9,11]"), rng);
  Tensor kernel = uniform_reals(type_of("f32[6,5,3,3]"), rng);
  std::vector<double> numbers = numbers_of<double>(kernel);
  numbers[5 * 45] = std::numeric_limits<double>::infinity();  // of feature 5
  Tensor infinite = Tensor::from_reals(kernel.type(), numbers);
  for (Numerics numerics : {Numerics::wide, Numerics::fp32}) {
    std::vector<double> packed =
        numbers_of<double>((*evaluate_op(op, {input, kernel}, numerics))[0]);
    std::vector<double> direct =
        numbers_of<double>((*evaluate_op(op, {input, infinite}, numerics))[0]);
    size_t feature_size = packed.size() / 2 / 6;
    for (size_t i = 0; i < packed.size(); ++i) {
      if (i / feature_size % 6 != 5) EXPECT_EQ(packed[i], direct[i]) << i;
    }
  }
}

TEST(Conv, WorksInTheField) {
  Rng rng(5);
  std::vector<uint64_t> input(2 * 4), kernel(3 * 2 * 2);
  for (uint64_t& x : input) x = rng.below(FieldElement::kPrime);
  for (uint64_t& x : kernel) x = rng.below(FieldElement::kPrime);
  Graph graph =
      *graph_of(op_of("conv {pad_low = [1]}"), {type_of("f64[1,2,4]"), type_of("f64[3,2,2]")});
  std::vector<FieldInput> inputs = {{input, {}}, {kernel, {}}};
  std::vector<std::vector<uint64_t>> results = *evaluate_in_field(graph, inputs);
  for (size_t f = 0; f < 3; ++f) {
    for (size_t x = 0; x < 4; ++x) {
      unsigned __int128 sum = 0;
      for (size_t i = 0; i < 2; ++i) {
        for (size_t w = x == 0 ? 1 : 0; w < 2; ++w) {
          sum += static_cast<unsigned __int128>(input[i * 4 + x + w - 1]) *
                 kernel[(f * 2 + i) * 2 + w] % FieldElement::kPrime;
        }
      }
      EXPECT_EQ(results[0][f * 4 + x], static_cast<uint64_t>(sum % FieldElement::kPrime));
    }
  }
}

TEST(Conv, ReadsWhatItsAccessRelationSays) {
  Rng rng(6);
  for (int trial = 0; trial < 120; ++trial) {
    RandomConv conv = random_conv(rng, 4);
    if (conv.axes.size() > 2) continue;
    conv.batch = std::min<int64_t>(conv.batch, 2);
    rng.shuffle(conv.input_order);
    rng.shuffle(conv.kernel_order);
    rng.shuffle(conv.output_order);
    DType dtype = trial % 2 == 0 ? DType::f32 : DType::i16;
    expect_access_is_exact(conv.op(true),
                           {small_integers(type_with(dtype, conv.input_dims()), rng),
                            small_integers(type_with(dtype, conv.kernel_dims()), rng)});
  }
}

// ---- Inference ----------------------------------------------------------------------------------

TEST(Conv, InfersItsType) {
  expect_infer("conv {pad_low = [1, 1], pad_high = [1, 1]}", {"f32[N,3,K,M]", "f32[8,3,3,3]"},
               {"f32[N,8,K,M]"});
  expect_infer("conv {stride = [2], pad_low = [1], pad_high = [1]}", {"f32[1,3,M]", "f32[8,3,3]"},
               {"f32[1,8,(M - 1)/2 + 1]"});
  expect_infer("conv {kernel_dilation = [2]}", {"f32[1,3,K + 3]", "f32[8,3,3]"},
               {"f32[1,8,K - 1]"});
  expect_infer("conv {input_dilation = [2]}", {"f32[1,3,M + 1]", "f32[8,3,2]"}, {"f32[1,8,2*M]"});
  expect_infer("conv {order = \"b01f_01io->b01f\", groups = 3}",
               {"f32[1,5,5,3*N]", "f32[3,3,N,12]"}, {"f32[1,3,3,12]"});
  expect_infer("conv {groups = 4}", {"f32[1,K,5]", "f32[2*K,K/4,1]"}, {"f32[1,2*K,5]"});
  expect_infer("conv", {"f32[N,M]", "f32[5,M]"}, {"f32[N,5]"});
  expect_infer("conv {accumulate = i32}", {"u8[1,1,3]", "i8[1,1,3]"}, {"i32[1,1,1]"});
  expect_infer("conv", {"f32[1,1,M]", "f32[1,1,2]"}, {"f32[1,1,M - 1]"});
}

TEST(Conv, BindsAsItInfers) {
  expect_symbols_bind("conv {pad_low = [3, 1], pad_high = [2, 1], stride = [2, 3]}",
                      {"f32[N,3,N,M]", "f32[8,3,3,2]"});
  expect_symbols_bind(
      "conv {pad_low = [0], pad_high = [1], stride = [3], input_dilation = [2], "
      "kernel_dilation = [2]}",
      {"f32[N,2*M,K]", "f32[M + 1,2*M,4]"});
  expect_symbols_bind("conv {groups = 4, pad_low = [-1]}", {"f32[1,4*N,K]", "f32[4*N,N,2]"});
}

TEST(Conv, RejectsIllTypedApplications) {
  expect_infer_error("conv", {"f32[1,3,5]", "f32[8,3]"},
                     "input f32[1, 3, 5] ... kernel f32[8, 3] ... rank");
  expect_infer_error("conv", {"f32[3]", "f32[3]"}, "same rank ... 2");
  expect_infer_error("conv", {"f32[1,3,5]", "f32[8,4,3]"},
                     "input ... 3 features ... kernel ... 4 ... 1 groups");
  expect_infer_error("conv {groups = 2}", {"f32[1,6,5]", "f32[8,2,3]"},
                     "input ... 6 features ... kernel ... 2 ... 2 groups");
  expect_infer_error("conv", {"f32[1,N,5]", "f32[8,M,3]"},
                     "input ... N features ... kernel ... M ... 1 groups");
  expect_infer_error("conv {groups = 2}", {"f32[1,4,5]", "f32[9,2,3]"},
                     "kernel ... 9 features ... multiple of 2 groups");
  expect_infer_error("conv {groups = 2}", {"f32[1,4,5]", "f32[N,2,3]"},
                     "kernel ... N features ... provably ... multiple of 2 groups");
  expect_infer_error("conv {groups = 0}", {"f32[1,4,5]", "f32[8,2,3]"}, "groups ... 0 ... 1");
  expect_infer_error("conv", {"f32[1,3,5]", "f16[8,3,3]"}, "f32 and f16 ... 'accumulate'");
  expect_infer_error("conv", {"bool[1,3,5]", "bool[8,3,3]"}, "element type bool");
}

TEST(Conv, RejectsBadWindows) {
  const std::initializer_list<std::string_view> operands = {"f32[1,3,5,5]", "f32[8,3,3,3]"};
  expect_infer_error("conv {stride = [1]}", operands, "stride has 1 entries for 2 spatial dims");
  expect_infer_error("conv {pad_low = [1, 1, 1]}", operands,
                     "pad_low has 3 entries for 2 spatial dims");
  expect_infer_error("conv {stride = [1, 0]}", operands, "stride[1] is 0, not at least 1");
  expect_infer_error("conv {kernel_dilation = [-1, 1]}", operands, "kernel_dilation[0] is -1");
  expect_infer_error("conv {input_dilation = [1, 0]}", operands, "input_dilation[1] is 0");
  expect_infer_error("conv {kernel_dilation = [1, 4]}", operands,
                     "window ... spatial dim 1 ... 9 ... padded input ... 5");
  expect_infer_error("conv {pad_low = [-4, 0]}", operands,
                     "window ... spatial dim 0 ... 3 ... padded input ... 1");
  expect_infer_error("conv", {"f32[1,3,M]", "f32[8,3,3]"},
                     "window of spatial dim 0 spans 3 ... input may have less: it has "
                     "M");
  expect_infer_error("conv", {"f32[1,3,5]", "f32[8,3,0]"}, "window ... spatial dim 0 ... 0 ... 1");
  expect_infer_error("conv", {"f32[1,3,5]", "f32[8,3,N]"},
                     "the window of spatial dim 0 is N, not provably at least 1");
  expect_infer_error("conv {input_dilation = [2], pad_low = [9]}", {"f32[1,3,N]", "f32[8,3,1]"},
                     "spatial dim 0 ... N ... 0 ... dilated input");
}

TEST(Conv, RejectsBadOrders) {
  auto rejects = [](const std::string& order, std::string_view text) {
    expect_infer_error("conv {order = \"" + order + "\"}", {"f32[1,3,5,5]", "f32[8,3,3,3]"}, text);
  };
  rejects("bf01", "order 'bf01' ... 'bf01_oi01->bf01'");
  rejects("bf01->oi01_bf01", "order ... form");
  rejects("bf0_oi0->bf0", "order ... 'bf0' ... 'bf01'");
  rejects("bf01_oi00->bf01", "order ... 'oi00' ... 'oi01'");
  rejects("bf01_oi01->bi01", "order ... 'bi01' ... 'bf01'");
  rejects("bf012_oi012->bf012", "order ... 'bf012' ... 'bf01'");
  expect_infer_error("conv", {"f32[1,1,1,1,1,1,1,1,1,1,1,1,1]", "f32[1,1,1,1,1,1,1,1,1,1,1,1,1]"},
                     "11 spatial dims ... 10");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
