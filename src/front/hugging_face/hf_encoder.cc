#include <algorithm>

#include "base/text.h"
#include "front/hugging_face/hf_tensors.h"

namespace hone {
namespace {

// Parts of names: those of GGUF files, those of the family of BERT, and those of DistilBERT.
struct EncoderName {
  std::string_view gguf;
  std::string_view bert;
  std::string_view distilled;
};
constexpr EncoderName kOutsideEncoder[] = {
    {"token_embd", "embeddings.word_embeddings", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings", ""},
    {"token_embd_norm", "embeddings.LayerNorm", "embeddings.LayerNorm"}};
constexpr EncoderName kOfEncoderLayer[] = {
    {"attn_q", "attention.self.query", "attention.q_lin"},
    {"attn_k", "attention.self.key", "attention.k_lin"},
    {"attn_v", "attention.self.value", "attention.v_lin"},
    {"attn_output", "attention.output.dense", "attention.out_lin"},
    {"attn_output_norm", "attention.output.LayerNorm", "sa_layer_norm"},
    {"ffn_up", "intermediate.dense", "ffn.lin1"},
    {"ffn_down", "output.dense", "ffn.lin2"},
    {"layer_output_norm", "output.LayerNorm", "output_layer_norm"}};
constexpr std::string_view kPrefixes[] = {"", "bert.", "distilbert.", "roberta."};

class HfEncoderWeights final : public HfTensors {
 public:
  using HfTensors::HfTensors;

  Result<Weight> get(const std::string& name) const override {
    const Tensor& tensor = *HONE_TRY(real(name));
    return Weight{tensor, {}, tensor.type().static_dims()};
  }

 private:
  const Tensor* tensor(std::string_view gguf) const override {
    const size_t dot = gguf.rfind('.');
    const std::string_view kind = gguf.substr(dot);
    std::string_view part = gguf.substr(0, dot), layer;
    const bool is_in_layer = consume_prefix(part, "blk.");
    if (is_in_layer) {
      const size_t end = part.find('.');
      layer = part.substr(0, end), part = part.substr(end + 1);
    }
    const std::span<const EncoderName> names =
        is_in_layer ? std::span<const EncoderName>(kOfEncoderLayer) : kOutsideEncoder;
    const auto found = std::ranges::find(names, part, &EncoderName::gguf);
    if (found == names.end()) return nullptr;
    const auto in_layer = [&](std::string_view outer, std::string_view own) {
      return is_in_layer ? fmt::format("{}.layer.{}.{}", outer, layer, own) : std::string(own);
    };
    const Tensor* const as_bert = any(in_layer("encoder", found->bert), kind);
    if (as_bert != nullptr || found->distilled.empty()) return as_bert;
    return any(in_layer("transformer", found->distilled), kind);
  }

  // Norms of older files have gamma and beta.
  const Tensor* any(const std::string& name, std::string_view kind) const {
    const std::string_view older = kind == ".weight" ? ".gamma" : ".beta";
    for (const std::string_view prefix : kPrefixes)
      for (const std::string_view end : {kind, older})
        if (const Tensor* found = of_files(fmt::format("{}{}{}", prefix, name, end))) return found;
    return nullptr;
  }
};

}  // namespace

Result<std::unique_ptr<DecoderWeights>> hf_encoder_weights(const std::filesystem::path& folder) {
  return std::unique_ptr<DecoderWeights>(new HfEncoderWeights(HONE_TRY(hf_tensors(folder))));
}

}  // namespace hone
