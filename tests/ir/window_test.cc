#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ir/dense_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

TEST(WindowReduce, CombinesEachWindow) {
  expect_eval("window_reduce {kind = sum, window = [2]}", {"f32[4] 1 2 3 4"}, {"f32[3] 3 5 7"});
  expect_eval("window_reduce {kind = max, window = [2], stride = [2]}", {"f32[5] 1 2 3 4 5"},
              {"f32[2] 2 4"});
  expect_eval("window_reduce {kind = min, window = [2, 2], pad_low = [1, 0]}", {"i32[2,2] 1 2 3 4"},
              {"i32[2,1] 1 1"});
  expect_eval("window_reduce {kind = product, window = [2], window_dilation = [2]}",
              {"f32[4] 1 2 3 4"}, {"f32[2] 3 8"});
  expect_eval("window_reduce {kind = sum, window = []}", {"f32[] 3"}, {"f32[] 3"});
}

TEST(WindowReduce, HoldsTheIdentityInPaddingAndHoles) {
  expect_eval("window_reduce {kind = max, window = [2], pad_low = [2]}", {"f32[2] -1 -2"},
              {"f32[3] -inf -1 -1"});
  expect_eval("window_reduce {kind = min, window = [1], pad_high = [1]}", {"i8[1] 3"},
              {"i8[2] 3 127"});
  expect_eval("window_reduce {kind = product, window = [1], input_dilation = [3]}", {"f32[2] 5 7"},
              {"f32[4] 5 1 1 7"});
  expect_eval("window_reduce {kind = sum, window = [2], pad_low = [-1]}", {"f32[4] nan 2 3 4"},
              {"f32[2] 5 7"});
  expect_eval("window_reduce {kind = max, window = [2]}", {"f32[4] nan 2 3 4"}, {"f32[3] nan 3 4"});
  expect_eval("window_reduce {kind = sum, window = [2], pad_low = [1], pad_high = [1]}", {"f32[0]"},
              {"f32[1] 0"});
  expect_eval("window_reduce {kind = sum, window = [3]}", {"f32[2] 1 2"}, {"f32[0]"});
  expect_eval("window_reduce {kind = max, window = [2]}", {"u64[3] 1 18446744073709551615 2"},
              {"u64[2] 18446744073709551615 18446744073709551615"});
  expect_eval("window_reduce {kind = sum, window = [2]}", {"i8[2] 100 100"}, {"i8[1] -56"});
}

struct RandomWindows {
  Ints in, window, stride, low, high, in_dilation, window_dilation, out;
};

RandomWindows random_windows(Rng& rng, int64_t largest) {
  RandomWindows w;
  for (int64_t i = rng.between(0, 3); i > 0; --i) {
    int64_t in, window, stride, low, high, in_dilation, window_dilation, out;
    do {
      in = rng.between(0, largest);
      window = rng.between(1, 3);
      stride = rng.between(1, 3);
      low = rng.between(-2, 3);
      high = rng.between(-2, 3);
      in_dilation = rng.chance(0.6) ? 1 : rng.between(2, 4);
      window_dilation = rng.chance(0.6) ? 1 : rng.between(2, 3);
      int64_t padded = (in == 0 ? 0 : (in - 1) * in_dilation + 1) + low + high;
      int64_t room = padded - (window - 1) * window_dilation - 1;
      out = static_cast<int64_t>(std::floor(double(room) / double(stride))) + 1;
    } while (out < 0);
    w.in.push_back(in);
    w.window.push_back(window);
    w.stride.push_back(stride);
    w.low.push_back(low);
    w.high.push_back(high);
    w.in_dilation.push_back(in_dilation);
    w.window_dilation.push_back(window_dilation);
    w.out.push_back(out);
  }
  return w;
}

Op op_with(const std::string& kind, const RandomWindows& w) {
  return Op::get(Opcode::window_reduce, {{"kind", kind},
                                         {"window", w.window},
                                         {"stride", w.stride},
                                         {"pad_low", w.low},
                                         {"pad_high", w.high},
                                         {"input_dilation", w.in_dilation},
                                         {"window_dilation", w.window_dilation}});
}

double combined(const std::string& kind, double a, double b) {
  if (kind == "sum") return a + b;
  if (kind == "product") return a * b;
  return kind == "max" ? std::max(a, b) : std::min(a, b);
}

double identity_of(const std::string& kind) {
  if (kind == "sum") return 0;
  if (kind == "product") return 1;
  return kind == "max" ? -INFINITY : INFINITY;
}

const std::vector<std::string> kKinds = {"sum", "product", "max", "min"};

TEST(WindowReduce, EqualsLoopsForRandomWindows) {
  Rng rng(1);
  for (int trial = 0; trial < 500; ++trial) {
    RandomWindows w = random_windows(rng, 7);
    const std::string& kind = rng.pick(kKinds);
    Op op = op_with(kind, w);
    Tensor x = small_integers(type_with(DType::f32, w.in), rng);
    std::vector<double> in = numbers_of<double>(x), wanted;
    for_each_index(w.out, [&](const Ints& out) {
      double value = identity_of(kind);
      for_each_index(w.window, [&](const Ints& window) {
        Ints element;
        for (size_t i = 0; i < out.size(); ++i) {
          int64_t position = out[i] * w.stride[i] + window[i] * w.window_dilation[i] - w.low[i];
          if (position < 0 || position % w.in_dilation[i] != 0) return;
          if (position / w.in_dilation[i] >= w.in[i]) return;
          element.push_back(position / w.in_dilation[i]);
        }
        value = combined(kind, value, in[offset_of(element, w.in)]);
      });
      wanted.push_back(value);
    });
    Result<std::vector<Tensor>> results = evaluate_op(op, {x});
    ASSERT_TRUE(results.ok()) << results.error().to_string();
    EXPECT_EQ((*results)[0].type().static_dims(), w.out);
    EXPECT_EQ(numbers_of<double>((*results)[0]), wanted)
        << op.attrs_to_string() << " of " << x.type().to_string();
  }
}

TEST(WindowReduce, ReadsWhatItsAccessRelationSays) {
  Rng rng(2);
  for (int trial = 0; trial < 100; ++trial) {
    RandomWindows w = random_windows(rng, 4);
    DType dtype = trial % 2 == 0 ? DType::f32 : DType::i8;
    expect_access_is_exact(op_with(rng.pick(kKinds), w),
                           {small_integers(type_with(dtype, w.in), rng)});
  }
}

TEST(WindowReduce, InTheFieldHasNoOrder) {
  auto in_field = [&](std::string_view kind) {
    Graph graph = *graph_of(op_of(fmt::format("window_reduce {{kind = {}, window = [2]}}", kind)),
                            {type_of("f32[3]")});
    std::vector<FieldInput> inputs = {{{1, 2, FieldElement::kPrime - 1}, {}}};
    return evaluate_in_field(graph, inputs);
  };
  EXPECT_EQ((*in_field("sum"))[0], (std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(in_field("max").error().code(), ErrorCode::unsupported);
}

TEST(WindowReduce, InfersItsType) {
  expect_infer(
      "window_reduce {kind = max, window = [1, 3], stride = [1, 2], pad_low = [0, 1], "
      "pad_high = [0, 1]}",
      {"f32[N, M]"}, {"f32[N, (M - 1)/2 + 1]"});
  expect_symbols_bind(
      "window_reduce {kind = max, window = [2, 3], stride = [3, 2], pad_low = "
      "[1, 0], pad_high = [2, 1], window_dilation = [2, 1]}",
      {"f32[N, K]"});
  expect_infer_error("window_reduce {kind = sum, window = [2]}", {"f32[2,2]"},
                     "window has 1 entries for rank 2");
  expect_infer_error("window_reduce {kind = sum, window = [2, 2], stride = [1]}", {"f32[2,2]"},
                     "stride has 1 entries for 2 dims");
  expect_infer_error("window_reduce {kind = sum, window = [2], stride = [0]}", {"f32[2]"},
                     "stride[0] is 0, not at least 1");
  expect_infer_error("window_reduce {kind = sum, window = [0]}", {"f32[2]"},
                     "window ... dim 0 ... 0 ... 1");
  expect_infer_error("window_reduce {kind = sum, window = [1, 4]}", {"f32[2,2]"},
                     "window ... dim 1 ... 4 ... padded input ... 2");
  expect_infer_error("window_reduce {kind = sum, window = [2]}", {"f32[N]"},
                     "window of dim 0 spans 2 ... input may have less: it has N");
  expect_infer_error("window_reduce {kind = sum, window = [1], input_dilation = [2]}", {"f32[N]"},
                     "dim 0 ... N ... 0 ... dilated input");
  expect_infer_error("window_reduce {kind = sum, window = [1]}", {"bool[2]"}, "element type bool");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
