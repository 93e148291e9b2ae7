#include "tests/hostile/hostile_testing.h"

// Contributed and quantized ops with operands and attributes that they cannot have.

namespace hone::hostile::HONE_FILE {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;
constexpr int kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7;

std::string word_text(std::string_view name, std::string_view value) {
  return fmt::format("attribute {{ name: '{}' type: STRING s: '{}' }} ", name, value);
}
std::string real_text(std::string_view name, double value) {
  return fmt::format("attribute {{ name: '{}' type: FLOAT f: {} }} ", name, value);
}

// Names say the dims: f2x3 holds reals, u2x3 bytes, i2x3 integers of 32 bits, l2x3 of 64.
std::string inputs_text() {
  std::string text;
  auto add = [&](char letter, int type, const std::vector<std::vector<std::string>>& shapes) {
    for (const std::vector<std::string>& dims : shapes)
      text += input_text(fmt::format("{}{}", letter, fmt::join(dims, "x")), dims, type);
  };
  add('f', 1,
      {{},
       {"1"},
       {"2"},
       {"3"},
       {"4"},
       {"8"},
       {"24"},
       {"2", "3"},
       {"3", "2"},
       {"4", "4"},
       {"4", "3"},
       {"6", "2"},
       {"8", "24"},
       {"2", "3", "4"},
       {"2", "3", "8"},
       {"2", "3", "24"},
       {"2", "4", "8"},
       {"1", "2", "8", "8"},
       {"4", "2", "3", "3"},
       {"2", "2", "5", "4"},
       {"2", "1", "5", "4"},
       {"2", "3", "2", "3", "4"},
       {"2", "2", "2", "5", "4"},
       {"2", "3", "4", "5", "6"}});
  add('u', kU8,
      {{},
       {"2"},
       {"4"},
       {"2", "3"},
       {"3", "2"},
       {"4", "4"},
       {"4", "8"},
       {"1", "2", "8", "8"},
       {"4", "2", "3", "3"},
       {"2", "3", "8"},
       {"8", "24"}});
  add('i', kI32, {{}, {"2"}, {"4"}, {"2", "3"}, {"2", "5"}, {"2", "2", "2", "2", "2"}});
  add('l', kI64, {{}, {"2"}, {"2", "3"}, {"2", "3", "4"}});
  add('s', kI8, {{}, {"2"}});
  return text + integers_text("far", {99}) + integers_text("pair", {0, 0}) +
         integers_text("order", {0, 0, 0, 0, 0, 0, 0, 1}) + integers_text("zero", {0}, true) +
         integers_text("five", {5}, true);
}

void expect_contributed_errors(const std::vector<OpCase>& cases) {
  static const std::string inputs = inputs_text();
  expect_op_errors(inputs, cases, "com.microsoft");
}
void expect_standard_errors(const std::vector<OpCase>& cases) {
  static const std::string inputs = inputs_text();
  expect_op_errors(inputs, cases);
}

TEST(HostileContributed, Fused) {
  expect_contributed_errors({
      {"no rank", "FusedMatMul", "f f", ""},
      {"sizes that differ", "FusedMatMul", "f2x3 f2x3", ""},
      {"sizes that differ when turned", "FusedMatMul", "f2x3 f3x2", int_text("transA", 1)},
      {"types that differ", "FusedMatMul", "f2x3 i2x3", int_text("transB", 1)},
      {"one operand", "FusedMatMul", "f2x3", "", kBad, "operand 1 is missing"},
      {"three operands", "FusedMatMul", "f2x3 f3x2 f2x3", "", kUnsupported, "3 operands ... 2"},
      {"an activation that does not exist", "FusedMatMulActivation", "f2x3 f3x2",
       word_text("activation", "Bogus"), kUnsupported, "the activation 'Bogus'"},
      {"Clip without bounds", "FusedMatMulActivation", "f2x3 f3x2", word_text("activation", "Clip"),
       kBad, "Clip lacks parameter 0"},
      {"an activation of another kind", "FusedMatMulActivation", "f2x3 f3x2",
       int_text("activation", 1), kBad, "attribute 'activation' is an integer, must be a string"},
      {"rank 3", "FusedGemm", "f2x3x4 f2x3", "", kBad, "must have rank 2"},
      {"integers", "FusedGemm", "i2x3 i2x3", int_text("transB", 1), kBad, "A is i32, want reals"},
      {"an addend that does not fit", "FusedGemm", "f2x3 f3x2 f24", ""},
      {"sizes that differ", "GemmFastGelu", "f2x3 f2x3", ""},
      {"a bias that does not fit", "GemmFastGelu", "f2x3 f3x2 f24", ""},
      {"a bias that does not fit", "BiasGelu", "f2x3 f4", ""},
      {"integers", "BiasGelu", "i2x3 i2x3", ""},
      {"integers", "Gelu", "i2x3", ""},
      {"integers", "FastGelu", "i2x3", ""},
      {"integers", "QuickGelu", "i2x3", ""},
      {"halves of 3", "BiasSplitGelu", "f2x3 f3", ""},
      {"no rank", "BiasSplitGelu", "f f", ""},
      {"a skip that does not fit", "BiasAdd", "f2x3 f3 f24", ""},
      {"an axis outside of the rank", "BiasSoftmax", "f2x3 f2x3", int_text("axis", 99)},
      {"an axis below all", "BiasSoftmax", "f2x3 f2x3", int_text("axis", INT64_MIN)},
      {"a bias of a greater rank", "BiasSoftmax", "f2x3 f2x3x4", ""},
      {"ranks that differ", "FusedConv", "f2x3x4 f4x2x3x3", ""},
      {"group 0", "FusedConv", "f1x2x8x8 f4x2x3x3", int_text("group", 0)},
      {"an activation that does not exist", "FusedConv", "f1x2x8x8 f4x2x3x3",
       word_text("activation", "Bogus"), kUnsupported, "the activation 'Bogus'"},
      {"an addend of another shape", "FusedConv", "f1x2x8x8 f4x2x3x3 - f2x2x5x4", ""},
      {"five operands", "FusedConv", "f1x2x8x8 f4x2x3x3 - - f4", "", kUnsupported, "at most 4"},
      {"rank 2", "NhwcConv", "f2x3 f4x2x3x3", "", kBad, "rank 3"},
      {"an addend of another rank", "NhwcConv", "f1x2x8x8 f4x2x3x3 - f2x3", "", kBad, "rank 4"},
  });
}

TEST(HostileContributed, Attention) {
  const std::string two = int_text("num_heads", 2);
  expect_contributed_errors({
      {"no number of heads", "Attention", "f2x3x8 f8x24", "", kBad,
       "attribute 'num_heads' is missing"},
      {"no heads", "Attention", "f2x3x8 f8x24", int_text("num_heads", 0), kBad, "num_heads is 0"},
      {"heads below all", "Attention", "f2x3x8 f8x24", int_text("num_heads", INT64_MIN), kBad,
       "num_heads is"},
      {"heads that do not divide", "Attention", "f2x3x8 f8x24", int_text("num_heads", 5), kBad,
       "multiple of 5 heads"},
      {"2^62 heads", "Attention", "f2x3x8 f8x24", int_text("num_heads", kHuge)},
      {"rank 2", "Attention", "f2x3 f8x24", two, kBad, "must have rank 3"},
      {"weights of rank 1", "Attention", "f2x3x8 f8", two, kBad, "must have rank 2"},
      {"weights that do not fit", "Attention", "f2x3x4 f8x24", two},
      {"columns that are no three parts", "Attention", "f2x3x4 f4x4", two, kBad,
       "4 columns ... three"},
      {"two hidden sizes", "Attention", "f2x3x8 f8x24", two + ints_text("qkv_hidden_sizes", {8, 8}),
       kBad, "has 2 entries, want 3"},
      {"hidden size 0", "Attention", "f2x3x8 f8x24",
       two + ints_text("qkv_hidden_sizes", {0, 8, 16}), kBad, "has an entry 0"},
      {"hidden size 2^62", "Attention", "f2x3x8 f8x24",
       two + ints_text("qkv_hidden_sizes", {kHuge, kHuge, kHuge}), kBad, "has an entry"},
      {"hidden sizes that are not the product's", "Attention", "f2x3x8 f8x24",
       two + ints_text("qkv_hidden_sizes", {8, 8, 24})},
      {"a bias of another size", "Attention", "f2x3x8 f8x24 f8", two},
      {"a mask without rank", "Attention", "f2x3x8 f8x24 - i", two, kBad, "the mask"},
      {"a mask of rank 5", "Attention", "f2x3x8 f8x24 - i2x2x2x2x2", two, kBad, "the mask"},
      {"a mask of another length", "Attention", "f2x3x8 f8x24 - i2x5", two, kBad, "the mask is"},
      {"ends for another batch", "Attention", "f2x3x8 f8x24 - i", two, kBad, "the mask"},
      {"a past of rank 2", "Attention", "f2x3x8 f8x24 - - f2x3", two, kBad, "past"},
      {"a past of others", "Attention", "f2x3x8 f8x24 - - f2x3x4x5x6", two, kBad, "past"},
      {"a bias of the scores that does not fit", "Attention", "f2x3x8 f8x24 - - - f2x2x5x4", two},
      {"seven operands", "Attention", "f2x3x8 f8x24 - - - - l", two, kUnsupported, "at most 6"},
      {"a turn", "Attention", "f2x3x8 f8x24", two + int_text("do_rotary", 1), kUnsupported,
       "do_rotary"},
      {"no scale", "QAttention", "u2x3x8 u8x24 f24", two, kBad, "operand 3 is missing"},
      {"reals", "QAttention", "f2x3x8 u8x24 f24 f f", two},
      {"a scale per row", "QAttention", "u2x3x8 u8x24 f24 f4 f", two},
      {"no heads", "QAttention", "u2x3x8 u8x24 f24 f f", int_text("num_heads", 0), kBad,
       "num_heads is 0"},

      {"no heads", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8", int_text("num_heads", 0), kBad,
       "num_heads is 0"},
      {"no keys", "MultiHeadAttention", "f2x3x8", two, kBad, "key and value"},
      {"no values", "MultiHeadAttention", "f2x3x8 f2x3x8", two, kBad, "are missing"},
      {"rank 2", "MultiHeadAttention", "f2x3 f2x3 f2x3", two, kBad, "must have rank 3"},
      {"keys of another width", "MultiHeadAttention", "f2x3x8 f2x3x4 f2x3x8", two},
      {"values for other keys", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x4x8", two},
      {"packed in another order", "MultiHeadAttention", "f2x3x2x3x4 f2x3x8", two, kBad,
       "leave no place"},
      {"packed in pairs", "MultiHeadAttention", "f2x3x8 f2x3x2x3x4", two, kBad, "2, dim]"},
      {"packed for other heads", "MultiHeadAttention", "f2x3x2x3x4", int_text("num_heads", 4), kBad,
       "4 heads"},
      {"a bias of rank 2", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8 f2x3", two, kBad,
       "the bias"},
      {"a bias of another size", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8 f8", two},
      {"a past of others", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8 - - - f2x1x5x4 f2x1x5x4",
       two, kBad, "past_key"},
      {"a cache that is shared", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8 - - - - - i", two,
       kUnsupported, "past_sequence_length"},
      {"eleven operands", "MultiHeadAttention", "f2x3x8 f2x3x8 f2x3x8 - - - - - - - i", two,
       kUnsupported, "at most 10"},
  });
}

TEST(HostileContributed, AttentionInGroups) {
  const std::string heads = int_text("num_heads", 2) + int_text("kv_num_heads", 1);
  const std::string q = "f2x3x8 f2x3x4 f2x3x4 - - i2 i";
  expect_contributed_errors({
      {"no heads", "GroupQueryAttention", q, int_text("num_heads", 0) + int_text("kv_num_heads", 1),
       kBad, "num_heads is 0"},
      {"no heads of keys", "GroupQueryAttention", q,
       int_text("num_heads", 2) + int_text("kv_num_heads", 0), kBad, "kv_num_heads is 0"},
      {"no number of heads of keys", "GroupQueryAttention", q, int_text("num_heads", 2), kBad,
       "'kv_num_heads' is missing"},
      {"2^62 heads", "GroupQueryAttention", q,
       int_text("num_heads", kHuge) + int_text("kv_num_heads", kHuge)},
      {"2^62 packed heads", "GroupQueryAttention", "f2x3x8 - - - - i2 i",
       int_text("num_heads", kHuge) + int_text("kv_num_heads", kHuge), kBad, "query is"},
      {"heads that are no groups", "GroupQueryAttention", "f2x3x24 f2x3x8 f2x3x8 - - i2 i",
       int_text("num_heads", 3) + int_text("kv_num_heads", 2)},
      {"rank 2", "GroupQueryAttention", "f2x3 f2x3 f2x3 - - i2 i", heads, kBad, "rank 3"},
      {"keys alone", "GroupQueryAttention", "f2x3x8 f2x3x4 - - - i2 i", heads, kBad,
       "key and value"},
      {"another number of keys", "GroupQueryAttention", "f2x3x8 f2x4x8 f2x4x8 - - i2 i", heads,
       kBad, "new keys"},
      {"past keys alone", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 f2x1x5x4 - i2 i", heads,
       kBad, "come together"},
      {"a past of others", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 f2x2x5x4 f2x2x5x4 i2 five",
       heads, kBad, "past_key is"},
      {"no lengths", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 f2x1x5x4 f2x1x5x4 - five", heads,
       kBad, "operand 5 is missing"},
      {"two totals", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 - - i2 i2", heads, kBad,
       "want one number"},
      {"no total", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 - - i2", heads, kBad,
       "operand 6 is missing"},
      {"lengths for another batch", "GroupQueryAttention",
       "f2x3x8 f2x3x4 f2x3x4 f2x1x5x4 f2x1x5x4 i4 five", heads},
      {"a window of 0", "GroupQueryAttention", q, heads + int_text("local_window_size", 0), kBad,
       "local_window_size is 0"},
      {"a window below all", "GroupQueryAttention", q,
       heads + int_text("local_window_size", INT64_MIN), kBad, "local_window_size is"},
      {"a turn without angles", "GroupQueryAttention", q, heads + int_text("do_rotary", 1), kBad,
       "operand 7 is missing"},
      {"angles of another width", "GroupQueryAttention",
       "f2x3x8 f2x3x4 f2x3x4 - - i2 i f8x24 f8x24", heads + int_text("do_rotary", 1)},
      {"a bias of rank 1", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 - - i2 i - - - f4", heads,
       kBad, "attention_bias"},
      {"a sink of rank 2", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 - - i2 i - - - - f2x3",
       heads, kBad, "head_sink"},
      {"a sink for other heads", "GroupQueryAttention", "f2x3x8 f2x3x4 f2x3x4 - - i2 i - - - - f8",
       heads},
      {"a norm of another width", "GroupQueryAttention",
       "f2x3x8 f2x3x4 f2x3x4 - - i2 i - - - - - - - f24", heads},
      {"seventeen operands", "GroupQueryAttention",
       "f2x3x8 f2x3x4 f2x3x4 - - i2 i - - - - - - - - - f4", heads, kUnsupported, "at most 16"},
      {"another bit width", "GroupQueryAttention", q, heads + word_text("k_quant_type", "PER_MARS"),
       kUnsupported, "k_quant_type"},

      {"rank 2", "RotaryEmbedding", "f2x3 l2x3 f6x2 f6x2", "", kBad, "the input"},
      {"no angles", "RotaryEmbedding", "f2x3x8 l2x3 f2", "", kBad, "operand 3 is missing"},
      {"angles of rank 1", "RotaryEmbedding", "f2x3x8 l2x3 f2 f2", "", kBad, "cos_cache"},
      {"angles that differ", "RotaryEmbedding", "f2x3x8 l2x3 f6x2 f4x4", "", kBad, "sin_cache"},
      {"a width that is not the angles'", "RotaryEmbedding", "f2x3x8 l2x3 f6x2 f6x2",
       int_text("num_heads", 2) + int_text("rotary_embedding_dim", 6), kBad, "angles"},
      {"a width beyond the head", "RotaryEmbedding", "f2x3x8 l2x3 f8x24 f8x24",
       int_text("num_heads", 2) + int_text("rotary_embedding_dim", 48)},
      {"a width of 2^62", "RotaryEmbedding", "f2x3x8 l2x3 f6x2 f6x2",
       int_text("num_heads", 2) + int_text("rotary_embedding_dim", kHuge), kBad, "angles"},
      {"heads below 0", "RotaryEmbedding", "f2x3x8 l2x3 f6x2 f6x2", int_text("num_heads", -2), kBad,
       "num_heads is -2"},
      {"no whole heads", "RotaryEmbedding", "f2x3x24 l2x3 f8x24 f8x24", "", kBad, "heads"},
      {"positions of rank 3", "RotaryEmbedding", "f2x3x8 l2x3x4 f6x2 f6x2", "", kBad,
       "position_ids"},
      {"positions that are reals", "RotaryEmbedding", "f2x3x8 f2x3 f6x2 f6x2", ""},
      {"a scale", "RotaryEmbedding", "f2x3x8 l2x3 f6x2 f6x2", real_text("scale", 2), kUnsupported,
       "a scale of 2"},
  });
}

TEST(HostileContributed, Norms) {
  auto groups = [](int64_t count, int64_t activation = 0) {
    return int_text("groups", count) + int_text("activation", activation) +
           int_text("channels_last", 0);
  };
  expect_contributed_errors({
      {"no rank", "SimplifiedLayerNormalization", "f f", "", kBad, "the input"},
      {"an axis outside of the rank", "SimplifiedLayerNormalization", "f2x3 f3",
       int_text("axis", 9)},
      {"a scale of another size", "SimplifiedLayerNormalization", "f2x3 f4", ""},
      {"a stash of integers", "SimplifiedLayerNormalization", "f2x3 f3", int_text("stash_type", 7),
       kBad, "stash_type is i64"},
      {"a stash that does not exist", "SimplifiedLayerNormalization", "f2x3 f3",
       int_text("stash_type", INT64_MAX), kBad, "stash_type"},
      {"integers", "LayerNormalization", "i2x3 f3", ""},
      {"rank 1", "SkipLayerNormalization", "f8 f8 f8", "", kBad, "the input"},
      {"a skip of a greater rank", "SkipLayerNormalization", "f2x3 f2x3x4 f3", ""},
      {"a skip of another size", "SkipLayerNormalization", "f2x3x8 f2x3x4 f8", ""},
      {"a scale of another size", "SkipLayerNormalization", "f2x3x8 f2x3x8 f4", ""},
      {"a bias of rank 2", "SkipLayerNormalization", "f2x3x8 f2x3x8 f8 f8 f2x3", "", kBad,
       "the bias"},
      {"six operands", "SkipLayerNormalization", "f2x3x8 f2x3x8 f8 f8 f8 f8", "", kUnsupported,
       "6 operands ... 5"},
      {"no scale", "SkipSimplifiedLayerNormalization", "f2x3x8 f2x3x8", "", kBad,
       "operand 2 is missing"},
      {"integers", "SkipSimplifiedLayerNormalization", "i2x3 i2x3 i4", ""},
      {"rows of rank 1", "EmbedLayerNormalization", "l2 - f4x4 f6x2 - f4 f4", "", kBad,
       "input_ids"},
      {"a table of rank 1", "EmbedLayerNormalization", "l2x3 - f4 f6x2 - f4 f4", "", kBad,
       "word_embedding"},
      {"rows that are reals", "EmbedLayerNormalization", "f2x3 - f4x4 f4x4 - f4 f4", ""},
      {"more positions than rows", "EmbedLayerNormalization", "l2x3 - f3x2 f2x3 - f2 f2", "", kBad,
       "3 positions"},
      {"segments without rows", "EmbedLayerNormalization", "l2x3 - f4x4 f4x4 f4x4 f4 f4", "", kBad,
       "operand 1 is missing"},
      {"tables of different widths", "EmbedLayerNormalization", "l2x3 - f4x4 f6x2 - f4 f4", ""},
      {"no groups", "GroupNorm", "f1x2x8x8 f2 f2", groups(0), kBad, "groups is 0"},
      {"groups below 0", "GroupNorm", "f1x2x8x8 f2 f2", groups(INT64_MIN), kBad, "groups is"},
      {"groups that do not divide", "GroupNorm", "f1x2x8x8 f2 f2", groups(3)},
      {"2^62 groups", "GroupNorm", "f1x2x8x8 f2 f2", groups(kHuge), kLimit},
      {"an activation that does not exist", "GroupNorm", "f1x2x8x8 f2 f2", groups(1, 7), kBad,
       "activation is 7"},
      {"rank 2", "GroupNorm", "f2x3 f3 f3", groups(1), kBad, "the input"},
      {"a scale of another size", "GroupNorm", "f1x2x8x8 f8 f8", groups(1)},
      {"a scale of integers", "GroupNorm", "f1x2x8x8 i2 i2", groups(1)},
      {"rank 3", "SkipGroupNorm", "f2x3x8 f3 f3 f2x3x8", groups(1), kBad, "the input"},
      {"a skip that does not fit", "SkipGroupNorm", "f1x2x8x8 f2 f2 f2x2x5x4", groups(1)},
      {"a bias of rank 2", "SkipGroupNorm", "f1x2x8x8 f2 f2 f1x2x8x8 f2x3", groups(1), kBad,
       "the bias"},
  });
}

TEST(HostileContributed, WeightsOfFewBits) {
  auto layout = [](int64_t rows, int64_t columns, int64_t block, int64_t bits = 4) {
    return int_text("K", rows) + int_text("N", columns) + int_text("block_size", block) +
           int_text("bits", bits);
  };
  const std::string operands = "f2x3x8 u4x8 f4";
  expect_contributed_errors({
      {"no layout", "MatMulNBits", operands, "", kBad, "attribute 'N' is missing"},
      {"no rows", "MatMulNBits", operands, layout(0, 4, 16), kBad, "K is 0"},
      {"columns below 0", "MatMulNBits", operands, layout(8, -4, 16), kBad, "N is -4"},
      {"2^62 rows", "MatMulNBits", operands, layout(kHuge, 4, 16), kBad, "K is"},
      {"2^31 rows and columns", "MatMulNBits", operands,
       layout(int64_t{1} << 31, int64_t{1} << 31, 16)},
      {"blocks of 0", "MatMulNBits", operands, layout(8, 4, 0), kBad, "block_size is 0"},
      {"blocks of -16", "MatMulNBits", operands, layout(8, 4, -16), kBad, "block_size is -16"},
      {"blocks of 8", "MatMulNBits", operands, layout(8, 4, 8), kBad, "block_size is 8"},
      {"blocks of 24", "MatMulNBits", operands, layout(8, 4, 24), kBad, "block_size is 24"},
      {"blocks of 2^31", "MatMulNBits", operands, layout(8, 4, int64_t{1} << 31)},
      {"blocks of 2^62", "MatMulNBits", operands, layout(8, 4, kHuge), kBad, "block_size is"},
      {"blocks below all", "MatMulNBits", operands, layout(8, 4, INT64_MIN), kBad, "block_size"},
      {"0 bits", "MatMulNBits", operands, layout(8, 4, 16, 0), kUnsupported, "weights of 0 bits"},
      {"3 bits", "MatMulNBits", operands, layout(8, 4, 16, 3), kUnsupported, "weights of 3 bits"},
      {"64 bits", "MatMulNBits", operands, layout(8, 4, 16, 64), kUnsupported, "of 64 bits"},
      {"bits below 0", "MatMulNBits", operands, layout(8, 4, 16, -4), kUnsupported, "-4 bits"},
      {"other rows than the operand", "MatMulNBits", operands, layout(16, 4, 16), kBad, "K is 16"},
      {"other columns than the bytes", "MatMulNBits", operands, layout(8, 2, 16)},
      {"other bits than the bytes", "MatMulNBits", operands, layout(8, 4, 16, 8), kBad,
       "operand 1 is"},
      {"blocks that the bytes do not fill", "MatMulNBits", operands, layout(8, 4, 32), kBad,
       "operand 1 is"},
      {"no rank", "MatMulNBits", "f u4x8 f4", layout(8, 4, 16), kBad, "A is"},
      {"weights that are reals", "MatMulNBits", "f2x3x8 f4x4 f4", layout(8, 4, 16), kBad,
       "want u8"},
      {"another number of scales", "MatMulNBits", "f2x3x8 u4x8 f3", layout(8, 4, 16), kBad,
       "the scales are"},
      {"scales that are integers", "MatMulNBits", "f2x3x8 u4x8 i4", layout(8, 4, 16), kBad,
       "the scales are"},
      {"another number of zero points", "MatMulNBits", "f2x3x8 u4x8 f4 u2x3", layout(8, 4, 16),
       kBad, "operand 3 is"},
      {"real zero points for others", "MatMulNBits", "f2x3x8 u4x8 f4 f3", layout(8, 4, 16)},
      {"groups of other rows", "MatMulNBits", "f2x3x8 u4x8 f4 - i4", layout(8, 4, 16), kBad,
       "g_idx ... 4 ... 8 rows"},
      {"rows in another order", "MatMulNBits", "f2x3x8 u4x8 f4 - order", layout(8, 4, 16),
       kUnsupported, "row 7 in group 1"},
      {"a bias that does not fit", "MatMulNBits", "f2x3x8 u4x8 f4 - - f3", layout(8, 4, 16)},
      {"seven operands", "MatMulNBits", "f2x3x8 u4x8 f4 - - - f4", layout(8, 4, 16), kUnsupported,
       "at most 6"},
      {"a kernel's own order", "MatMulNBits", operands,
       layout(8, 4, 16) + int_text("weight_prepacked", 1), kUnsupported, "own order"},
  });
}

TEST(HostileContributed, Quantized) {
  const std::string kernel = ints_text("kernel_shape", {2, 2});
  expect_contributed_errors({
      {"integers", "QuantizeLinear", "i2x3 f u", "", kBad, "the input is i32"},
      {"an axis outside of the rank", "QuantizeLinear", "f2x3 f3 u", int_text("axis", 9)},
      {"an axis below all", "QuantizeLinear", "f2x3 f3 u", int_text("axis", INT64_MIN)},
      {"another number of scales", "QuantizeLinear", "f2x3 f4", ""},
      {"scales of rank 2", "QuantizeLinear", "f2x3 f2x3", ""},
      {"a zero point that is real", "QuantizeLinear", "f2x3 f f", ""},
      {"no scale", "QuantizeLinear", "f2x3", "", kBad, "operand 1 is missing"},
      {"reals", "DequantizeLinear", "f2x3 f", ""},
      {"a scale that is an integer", "DequantizeLinear", "u2x3 i", ""},
      {"a zero point of another type", "DequantizeLinear", "u2x3 f s", ""},
      {"another number of zero points", "DequantizeLinear", "u2x3 f u2", ""},
      {"shapes that differ", "QLinearAdd", "u2x3 f u u3x2 f u f u", ""},
      {"too few operands", "QLinearAdd", "u2x3 f u u2x3 f", "", kBad, "is missing"},
      {"reals", "QLinearAdd", "f2x3 f u f2x3 f u f u", ""},
      {"a scale that is an integer", "QLinearMul", "u2x3 i u u2x3 f u f u", ""},
      {"a zero point of another type", "QLinearMul", "u2x3 f s u2x3 f u f u", ""},
      {"nine operands", "QLinearMul", "u2x3 f u u2x3 f u f u u", "", kUnsupported, "at most 8"},
      {"a scale of rank 2", "QLinearSigmoid", "u2x3 f2x3 u f u", ""},
      {"alpha that is a word", "QLinearLeakyRelu", "u2x3 f u f u", word_text("alpha", "1"), kBad,
       "attribute 'alpha' is a string"},
      {"a condition that is none", "QLinearWhere", "u2x3 u2x3 f u u2x3 f u f u", "", kBad,
       "the condition is u8"},
      {"no opset", "QLinearSoftmax", "u2x3 f u f u", "", kBad, "attribute 'opset' is missing"},
      {"an axis outside of the rank", "QLinearSoftmax", "u2x3 f u f u",
       int_text("opset", 13) + int_text("axis", 2)},
      {"no rank", "QLinearSoftmax", "u f u f u", int_text("opset", 13), kBad, "X is"},
      {"a part without scale", "QLinearConcat", "f u u2x3 f u u2x3", int_text("axis", 0), kBad,
       "triples"},
      {"no parts", "QLinearConcat", "f u", int_text("axis", 0), kBad, "triples"},
      {"nothing", "QLinearConcat", "", int_text("axis", 0), kBad, "triples"},
      {"no axis", "QLinearConcat", "f u u2x3 f u", "", kBad, "attribute 'axis' is missing"},
      {"an axis outside of the rank", "QLinearConcat", "f u u2x3 f u", int_text("axis", 5)},
      {"parts that do not fit", "QLinearConcat", "f u u2x3 f u u4x4 f u", int_text("axis", 0)},
      {"an axis outside of the rank", "QLinearReduceMean", "u2x3 f u f u", ints_text("axes", {9})},
      {"an axis twice", "QLinearReduceMean", "u2x3 f u f u", ints_text("axes", {0, -2})},
      {"rank 2", "QLinearGlobalAveragePool", "u2x3 f u f u", "", kBad, "rank 3"},
      {"rank 2", "QLinearAveragePool", "u2x3 f u f u", kernel, kBad, "rank 3"},
      {"no kernel", "QLinearAveragePool", "u1x2x8x8 f u f u", "", kBad, "kernel_shape"},
      {"kernel 0", "QLinearAveragePool", "u1x2x8x8 f u f u", ints_text("kernel_shape", {0, 0})},
      {"a kernel of another rank", "QLinearAveragePool", "u1x2x8x8 f u f u",
       ints_text("kernel_shape", {2, 2, 2})},
      {"stride 0", "QLinearAveragePool", "u1x2x8x8 f u f u", kernel + ints_text("strides", {0, 0})},
      {"rank 2", "NhwcMaxPool", "u2x3", kernel, kBad, "rank 3"},
      {"kernel 2^62", "NhwcMaxPool", "u1x2x8x8", ints_text("kernel_shape", {kHuge, kHuge})},
      {"rank 3", "QGemm", "u2x3x8 f u u4x4 f u", "", kBad, "A is"},
      {"sizes that differ", "QGemm", "u2x3 f u u2x3 f u", ""},
      {"an addend that does not fit", "QGemm", "u2x3 f u u3x2 f u i4", ""},
      {"a zero point without scale", "QGemm", "u2x3 f u u3x2 f u - - u", "", kUnsupported,
       "9 operands are given"},
      {"sizes that differ", "MatMulIntegerToFloat", "u2x3 u2x3 f f", ""},
      {"no rank", "MatMulIntegerToFloat", "u u f f", "", kBad, "A is"},
      {"a scale per row", "MatMulIntegerToFloat", "u2x3 u3x2 f2 f", "", kUnsupported,
       "not one number"},
      {"scales for other columns", "MatMulIntegerToFloat", "u2x3 u3x2 f f3", ""},
      {"reals", "MatMulIntegerToFloat", "f2x3 f3x2 f f", ""},
      {"integers", "DynamicQuantizeMatMul", "u2x3 u3x2 f", ""},
      {"sizes that differ", "DynamicQuantizeMatMul", "f2x3 u2x3 f", ""},
      {"a zero point of another size", "DynamicQuantizeMatMul", "f2x3 u3x2 f u4", ""},
      {"ranks that differ", "QLinearConv", "u2x3 f u u4x2x3x3 f u f u", ""},
      {"group 0", "QLinearConv", "u1x2x8x8 f u u4x2x3x3 f u f u", int_text("group", 0)},
      {"a scale per pixel", "QLinearConv", "u1x2x8x8 f2x3 u u4x2x3x3 f u f u", "", kBad,
       "the scale of x"},
      {"scales for other channels", "QLinearConv", "u1x2x8x8 f u u4x2x3x3 f3 u f u", ""},
      {"a bias for other channels", "QLinearConv", "u1x2x8x8 f u u4x2x3x3 f u f u i2", ""},
      {"rank 2, channels last", "QLinearConv", "u2x3 f u u4x2x3x3 f u f u",
       int_text("channels_last", 1), kBad, "x is"},
  });
}

TEST(HostileContributed, Shapes) {
  expect_contributed_errors({
      {"an axis outside of the rank", "ExpandDims", "f2x3 far", ""},
      {"two axes", "ExpandDims", "f2x3 pair", "", kBad, "axis has 2 numbers"},
      {"no axis", "ExpandDims", "f2x3", "", kBad, "operand 1 is missing"},
      {"no squares", "Inverse", "f2x3", "", kBad, "square"},
      {"rank 1", "Inverse", "f3", "", kBad, "X is"},
      {"no step", "Range", "five five zero", "", kBad, "the step is 0"},
      {"a matrix", "Range", "f2x3 f f", ""},
      {"no matrix", "Trilu", "f3", ""},
      {"a matrix", "Unique", "f2x3", ""},
      {"paddings that depend on data", "ConvTransposeWithDynamicPads", "f1x2x8x8 f4x2x3x3", "",
       kUnsupported, "depend on data"},
  });
}

TEST(HostileQuantized, Standard) {
  auto block = [](int64_t size) { return int_text("axis", 1) + int_text("block_size", size); };
  expect_standard_errors({
      {"integers of another width", "QuantizeLinear", "l2x3 f u", ""},
      {"an axis outside of the rank", "QuantizeLinear", "f2x3 f3 u2", int_text("axis", 9)},
      {"another number of scales", "QuantizeLinear", "f2x3 f4", ""},
      {"a zero point that is real", "QuantizeLinear", "f2x3 f f", ""},
      {"another number of zero points", "QuantizeLinear", "f2x3 f3 u2", ""},
      {"an output type that is real", "QuantizeLinear", "f2x3 f", int_text("output_dtype", 1), kBad,
       "", 21},
      {"an output type that does not exist", "QuantizeLinear", "f2x3 f",
       int_text("output_dtype", 99), kBad, "type 99", 21},
      {"blocks below 0", "QuantizeLinear", "f4x4 f4x4", block(-1), kBad, "block_size", 21},
      {"blocks below all", "QuantizeLinear", "f4x4 f4x4", block(INT64_MIN), kBad, "block_size", 21},
      {"blocks of 2^62", "QuantizeLinear", "f4x4 f4x4", block(kHuge), kBad, "", 21},
      {"blocks that are not the scales'", "QuantizeLinear", "f4x4 f4x4", block(2), kBad, "", 21},
      {"blocks along an axis outside of the rank", "QuantizeLinear", "f4x4 f4x4",
       int_text("axis", -9) + int_text("block_size", 1), kBad, "", 21},
      {"reals", "DequantizeLinear", "f2x3 f", ""},
      {"a zero point of another type", "DequantizeLinear", "u2x3 f s", ""},
      {"a scale that is an integer", "DequantizeLinear", "u2x3 i", ""},
      {"blocks of 2^62", "DequantizeLinear", "u4x4 f4x4", block(kHuge), kBad, "", 21},
      {"blocks that do not divide", "DequantizeLinear", "u4x4 f4x3", block(3), kBad, "", 21},
      {"four operands", "DequantizeLinear", "u2x3 f u u", "", kUnsupported, "at most 3"},
      {"integers", "DynamicQuantizeLinear", "i2x3", ""},
      {"sizes that differ", "QLinearMatMul", "u2x3 f u u2x3 f u f u", ""},
      {"too few operands", "QLinearMatMul", "u2x3 f u u3x2 f u f", "", kBad, "is missing"},
      {"a scale for other rows", "QLinearMatMul", "u2x3 f4 u u3x2 f u f u", ""},
      {"reals", "QLinearMatMul", "f2x3 f u f3x2 f u f u", ""},
      {"a zero point of another type", "MatMulInteger", "u2x3 u3x2 s", ""},
      {"a zero point for other columns", "MatMulInteger", "u2x3 u3x2 u u4", ""},
      {"reals", "MatMulInteger", "f2x3 f3x2", ""},
      {"no rank", "MatMulInteger", "u u", "", kBad, "A is"},
      {"ranks that differ", "ConvInteger", "u2x3 u4x2x3x3", ""},
      {"a zero point of rank 2", "ConvInteger", "u1x2x8x8 u4x2x3x3 u2x3", ""},
      {"zero points for other channels", "ConvInteger", "u1x2x8x8 u4x2x3x3 u u2", ""},
      {"ranks that differ", "QLinearConv", "u2x3 f u u4x2x3x3 f u f u", ""},
      {"a scale per pixel", "QLinearConv", "u1x2x8x8 f2x3 u u4x2x3x3 f u f u", "", kBad,
       "the scale of x"},
      {"ten operands", "QLinearConv", "u1x2x8x8 f u u4x2x3x3 f u f u i4 i4", "", kUnsupported,
       "at most 9"},
  });
}

}  // namespace
}  // namespace hone::hostile::HONE_FILE
