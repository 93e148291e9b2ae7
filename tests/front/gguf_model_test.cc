#include "front/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "front/decoder/blocks.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"
#include "tests/front/plain_decoder.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

constexpr uint32_t kBlockTypes[] = {gguf::kQ4_0, gguf::kQ4_1, gguf::kQ5_0, gguf::kQ5_1,
                                    gguf::kQ8_0, gguf::kQ4_K, gguf::kQ5_K, gguf::kQ6_K};

Gguf parsed(const std::string& file) {
  return parse_gguf(std::as_bytes(std::span(file)), "a.gguf").value();
}

// ---- Blocks
// --------------------------------------------------------------------------------------

struct BlocksOf {
  BlockFormat format;
  gguf::TypeBytes type;
  Tensor data;  // u8[rows, bytes]
  int64_t elements;

  double number(int64_t i) const {
    const auto each = static_cast<int64_t>(type.elements);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(data.bytes().data());
    return plain::block_number(type.name, bytes + i / each * static_cast<int64_t>(type.bytes),
                               static_cast<int>(i % each));
  }
};

BlocksOf random_blocks(int format, int64_t rows, int64_t blocks) {
  const gguf::TypeBytes& type = gguf::type_bytes(kBlockTypes[format]);
  const int64_t elements = rows * blocks * static_cast<int64_t>(type.elements);
  const std::string bytes = gguf::random_bytes(type.type, static_cast<uint64_t>(elements), 1, 7);
  const Type stored = Type::get(DType::u8, {rows, blocks * static_cast<int64_t>(type.bytes)});
  return {static_cast<BlockFormat>(format), type,
          Tensor::copy_of(stored, std::as_bytes(std::span(bytes))), elements};
}

// The table of the format has no rounding.
TEST(Blocks, AreUnpackedByThePublishedFormulas) {
  for (int i = 0; i < kBlockFormats; ++i) {
    const BlocksOf blocks = random_blocks(i, 3, 2);
    SCOPED_TRACE(blocks.type.name);
    ASSERT_EQ(layout_of(blocks.format).bytes, static_cast<int64_t>(blocks.type.bytes));
    ASSERT_EQ(layout_of(blocks.format).elements, static_cast<int64_t>(blocks.type.elements));
    Builder b;
    const Value x = b.parameter("x", blocks.data.type());
    const Graph graph = b.finish({unpacked(x, blocks.format)}).value();
    const EvalOptions options = {.numerics = Numerics::rounded};
    const Tensor made = evaluate(graph, {{blocks.data}}, options).value()[0];
    ASSERT_EQ(made.type(), Type::get(DType::f32, {3, blocks.elements / 3}));
    for (int64_t e = 0; e < blocks.elements; ++e)
      ASSERT_NEAR(made.real_at(e), blocks.number(e), 4e-6) << e;
  }
}

TEST(Blocks, AreMultipliedInTheOrderOfTheirNumbers) {
  for (int i = 0; i < kBlockFormats; ++i) {
    constexpr int64_t kRows = 2, kColumns = 3;
    const BlocksOf blocks = random_blocks(i, kColumns, 2);
    SCOPED_TRACE(blocks.type.name);
    const int64_t depth = blocks.elements / kColumns;
    std::vector<double> data(static_cast<size_t>(kRows * depth));
    for (size_t k = 0; k < data.size(); ++k) data[k] = static_cast<double>(k * k % 19) - 9;
    Builder b;
    const Value x = b.parameter("x", DType::f32, {kRows, depth});
    const Value w = b.constant(blocks.data);
    const Graph graph = b.finish({product_of_blocks(x, w, blocks.format)}).value();
    const Tensor in = Tensor::from_reals(Type::get(DType::f32, {kRows, depth}), data);
    const Tensor made = evaluate(graph, {{in}}, {.numerics = Numerics::wide}).value()[0];
    ASSERT_EQ(made.type(), Type::get(DType::f32, {kRows, kColumns}));
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const double term = in.real_at(r * depth + k) * blocks.number(c * depth + k);
          sum += term, size += std::abs(term);
        }
        ASSERT_NEAR(made.real_at(r * kColumns + c), sum, 1e-6 * size) << r << ", " << c;
      }
  }
}

// ---- Families
// ------------------------------------------------------------------------------------

std::vector<Tensor> inputs_for(const Graph& graph, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> rows(tokens.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  const Type list = Type::get(DType::i64, {std::ssize(tokens)});
  std::vector<Tensor> inputs = {Tensor::from_integers(list, tokens), Tensor::scalar(DType::i64, 0),
                                Tensor::from_integers(list, rows)};
  for (size_t i = inputs.size(); i < graph.inputs().size(); ++i)
    inputs.push_back(
        Tensor::zeros(graph.type(graph.inputs()[i])
                          .bind({{"tokens", Dim(std::ssize(tokens))}, {"room", Dim(2)}})
                          .value()));
  return inputs;
}

// The logits of all tokens at once, by the reference, agree with plain loops.
void expect_as_plain(const TinyDecoder& tiny) {
  const std::string bytes = tiny_gguf(tiny);
  const Gguf file = parsed(bytes);
  const DecoderConfig config = gguf_config(file).value();
  const Result<Graph> graph = build_gguf(file, config);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(verify(*graph).ok());
  const std::vector<int64_t> tokens = {3, 267, 1, 40, 40, 101, 7, 256, 9, 12};
  const std::vector<Tensor> inputs = inputs_for(*graph, tokens);
  const Tensor logits = evaluate(*graph, inputs, {.numerics = Numerics::wide}).value()[0];
  const std::vector<double> wanted = plain::decoder_logits(file, tokens);
  ASSERT_EQ(logits.elements(), std::ssize(wanted));
  double largest = 0, worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    worst = std::max(worst, std::abs(logits.real_at(static_cast<int64_t>(i)) - wanted[i]));
  }
  EXPECT_GT(largest, 0.1);
  // Weights of blocks are rounded to f32 by the format, angles by the graph's constants.
  EXPECT_LT(worst, 2e-5 * largest) << "of " << largest;
}

class Families : public testing::TestWithParam<const char*> {};

TEST_P(Families, GiveTheLogitsOfPlainLoops) {
  TinyDecoder tiny = {.family = GetParam()};
  tiny.is_tied = tiny.family.starts_with("gemma") || tiny.family == "gpt2";
  if (tiny.family == "gemma3") tiny.layers = 7;
  if (tiny.family == "gpt2") tiny.kv_heads = tiny.heads;
  expect_as_plain(tiny);
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         testing::Values("llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3",
                                         "phi3", "gpt2"),
                         [](const auto& one) { return std::string(one.param); });

TEST(GgufModel, WeightsMayBeOfAnyTypeInOneFile) {
  for (const uint32_t type : {gguf::kF16, gguf::kBF16, gguf::kQ4_1, gguf::kQ8_0}) {
    SCOPED_TRACE(gguf::type_bytes(type).name);
    expect_as_plain({.type = type, .embedding = gguf::kQ8_0, .layers = 1, .is_tied = true});
  }
  SCOPED_TRACE("a mixture of K types");
  expect_as_plain({.type = gguf::kQ4_K,
                   .embedding = gguf::kQ6_K,
                   .layers = 1,
                   .width = 256,
                   .key_width = 64,
                   .hidden = 256,
                   .is_tied = true});
}

TEST(GgufModel, FrequenciesMayHaveDivisors) { expect_as_plain({.has_divisors = true}); }

TEST(GgufModel, KeepsBlocksAsBytesOfTheFile) {
  const std::string bytes = tiny_gguf({.type = gguf::kQ4_0, .layers = 1});
  const Gguf file = parsed(bytes);
  const Graph graph = build_gguf(file, gguf_config(file).value()).value();
  int blocks = 0;
  int64_t packed = 0;
  for (const NodeId n : graph.nodes()) {
    if (!is_constant(graph.opcode(n)) || graph.constant(n).dtype() != DType::u8) continue;
    if (graph.constant(n).elements() > 1) ++blocks, packed += graph.constant(n).byte_size();
  }
  EXPECT_EQ(blocks, 8) << "q, k, v, output, gate, up, down and the head";
  // 64 x 64 twice, 32 x 64 twice, 96 x 64 three times, 268 x 64 once, 18 bytes for 32 of them
  EXPECT_EQ(packed, 64 * (2 * 64 + 2 * 32 + 3 * 96 + 268) / 32 * 18);
}

// ---- What is refused
// -----------------------------------------------------------------------------

Status refused(const std::function<void(GgufWriter&)>& write) {
  GgufWriter writer;
  write(writer);
  const std::string bytes = writer.bytes();
  const Gguf file = parsed(bytes);
  const Result<DecoderConfig> config = gguf_config(file);
  if (!config.ok()) return config.error();
  const Result<Graph> graph = build_gguf(file, *config);
  return graph.ok() ? Status() : Status(graph.error());
}

void write_numbers(GgufWriter& w, uint32_t heads = 2) {
  w.text("general.architecture", "llama");
  w.integer("llama.block_count", 1);
  w.integer("llama.embedding_length", 8);
  w.integer("llama.feed_forward_length", 8);
  w.integer("llama.context_length", 8);
  w.integer("llama.attention.head_count", heads);
}
void write_embedding(GgufWriter& w, uint64_t width = 8) {
  w.tensor("token_embd.weight", {4, width}, gguf::kF32, std::string(16 * width, '\0'));
}

TEST(GgufModel, SaysWhatItDoesNotKnow) {
  EXPECT_THAT(refused([](GgufWriter& w) { w.integer("x", 1); }),
              refuses(ErrorCode::bad_input, "general.architecture ... missing"));
  EXPECT_THAT(refused([](GgufWriter& w) { w.text("general.architecture", "mamba"); }),
              refuses(ErrorCode::unsupported, "\"mamba\" ... llama, qwen2"));
  EXPECT_THAT(refused([](GgufWriter& w) { w.text("general.architecture", "llama"); }),
              refuses(ErrorCode::bad_input, "llama.block_count ... missing"));
  EXPECT_THAT(refused([](GgufWriter& w) { write_numbers(w); }),
              refuses(ErrorCode::bad_input, "token_embd.weight ... missing"));
  EXPECT_THAT(refused([](GgufWriter& w) {
                write_numbers(w);
                w.integer("llama.expert_count", 8);
              }),
              refuses(ErrorCode::unsupported, "experts"));
  EXPECT_THAT(refused([](GgufWriter& w) {
                write_numbers(w);
                w.integer("split.count", 3);
              }),
              refuses(ErrorCode::unsupported, "3 files ... --merge"));
  EXPECT_THAT(refused([](GgufWriter& w) {
                write_numbers(w);
                w.text("llama.rope.scaling.type", "yarn");
                write_embedding(w);
              }),
              refuses(ErrorCode::unsupported, "'yarn' ... linear"));
}

TEST(GgufModel, RefusesNumbersAndTensorsThatContradictOneAnother) {
  const auto with = [](uint32_t heads, uint64_t width) {
    return refused([&](GgufWriter& w) {
      write_numbers(w, heads);
      write_embedding(w, width);
    });
  };
  EXPECT_THAT(with(0, 8), refuses(ErrorCode::bad_input, "head_count ... 0"));
  EXPECT_THAT(with(2, 8), refuses(ErrorCode::bad_input, "no tensor 'blk.0.attn_norm.weight'"));
  EXPECT_THAT(with(2, 4),
              refuses(ErrorCode::bad_input, "'token_embd.weight' ... [4, 4] ... [4, 8]"));
  EXPECT_THAT(with(8, 8), refuses(ErrorCode::bad_input, "1 elements ... pairs"));
  EXPECT_THAT(refused([](GgufWriter& w) {
                write_numbers(w);
                w.integer("llama.attention.head_count_kv", 3);
                write_embedding(w);
              }),
              refuses(ErrorCode::bad_input, "key heads ... 3"));
}

}  // namespace
}  // namespace hone::HONE_FILE
