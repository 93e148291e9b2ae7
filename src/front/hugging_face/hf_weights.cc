#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "front/hugging_face/hf_tensors.h"

namespace hone {
namespace {

constexpr int64_t kMostIndexBytes = 1 << 26;
constexpr std::string_view kOneFile = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// Parts of names: those of GGUF files, and those of the folder.
struct HfName {
  std::string_view gguf;
  std::string_view hf;
};
constexpr HfName kOutside[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr HfName kOfLayer[] = {{"attn_norm", "input_layernorm"},
                               {"attn_q", "self_attn.q_proj"},
                               {"attn_k", "self_attn.k_proj"},
                               {"attn_v", "self_attn.v_proj"},
                               {"attn_qkv", "self_attn.qkv_proj"},
                               {"attn_q_norm", "self_attn.q_norm"},
                               {"attn_k_norm", "self_attn.k_norm"},
                               {"attn_output", "self_attn.o_proj"},
                               {"ffn_norm", "post_attention_layernorm"},
                               {"ffn_gate", "mlp.gate_proj"},
                               {"ffn_up", "mlp.up_proj"},
                               {"ffn_down", "mlp.down_proj"}};
// Names of some families alone.
constexpr HfName kOfPhi3[] = {{"ffn_up", "mlp.gate_up_proj"}};
constexpr HfName kOfGemma2[] = {{"ffn_norm", "pre_feedforward_layernorm"},
                                {"post_attention_norm", "post_attention_layernorm"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr HfName kOutsideGpt2[] = {
    {"token_embd", "wte"}, {"position_embd", "wpe"}, {"output_norm", "ln_f"}};
constexpr HfName kOfGpt2[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                              {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                              {"ffn_up", "mlp.c_fc"},         {"ffn_down", "mlp.c_proj"}};

std::string_view found_in(std::span<const HfName> names, std::string_view gguf) {
  const auto found = std::ranges::find(names, gguf, &HfName::gguf);
  return found == names.end() ? std::string_view() : found->hf;
}

class HfWeights final : public HfTensors {
 public:
  HfWeights(std::vector<Safetensors> files, const DecoderConfig& config)
      : HfTensors(std::move(files)), config_(config) {}

  Result<Weight> get(const std::string& name) const override {
    const Tensor& tensor = *HONE_TRY(real(name));
    const bool is_norm = name.find("norm") != std::string::npos;
    if (is_norm && config_.family.starts_with("gemma")) return plus_one(tensor);
    const bool is_matrix = tensor.type().rank() == 2 && name.starts_with("blk.");
    if (is_matrix && config_.family == "gpt2") return turned(tensor);
    return Weight{tensor, {}, tensor.type().static_dims()};
  }

 private:
  bool is_gpt2() const { return config_.family == "gpt2"; }

  const Tensor* tensor(std::string_view gguf) const override {
    const size_t dot = gguf.rfind('.');
    const std::string_view kind = gguf.substr(dot);
    std::string_view part = gguf.substr(0, dot);
    std::string name;
    if (consume_prefix(part, "blk.")) {
      const size_t end = part.find('.');
      const std::string_view layer = part.substr(0, end), own = name_in_layer(part.substr(end + 1));
      if (own.empty()) return nullptr;
      name = fmt::format("{}.{}.{}", is_gpt2() ? "h" : "model.layers", layer, own);
    } else {
      name = is_gpt2() ? found_in(kOutsideGpt2, part) : found_in(kOutside, part);
      if (name.empty()) return nullptr;
    }
    name += kind;
    const Tensor* const found = of_files(name);
    return found != nullptr ? found : of_files("transformer." + name);
  }

  std::string_view name_in_layer(std::string_view part) const {
    if (is_gpt2()) return found_in(kOfGpt2, part);
    std::string_view own;
    if (config_.family == "phi3") own = found_in(kOfPhi3, part);
    if (config_.family == "gemma2" || config_.family == "gemma3") own = found_in(kOfGemma2, part);
    return own.empty() ? found_in(kOfLayer, part) : own;
  }

  static Weight plus_one(const Tensor& tensor) {
    std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
    tensor.read_reals(0, numbers);
    for (double& one : numbers) one += 1;
    const Type type = tensor.type().with_dtype(DType::f32);
    return {Tensor::from_reals(type, numbers), {}, type.static_dims()};
  }

  static Weight turned(const Tensor& tensor) {
    const int64_t rows = tensor.type().dim(0).value(), columns = tensor.type().dim(1).value();
    std::vector<float> numbers(static_cast<size_t>(tensor.elements())), other(numbers.size());
    tensor.read_reals(0, std::span<float>(numbers));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        other[static_cast<size_t>(c * rows + r)] = numbers[static_cast<size_t>(r * columns + c)];
    const Type type = Type::get(DType::f32, {columns, rows});
    return {Tensor::of<float>(type, other), {}, type.static_dims()};
  }

  const DecoderConfig config_;
};

// The files that the index names. They lie in the folder itself.
Result<std::vector<std::string>> files_of_index(const std::filesystem::path& path) {
  const std::string text = HONE_TRY(read_file(path, kMostIndexBytes));
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object())
    return bad_input("it has no object 'weight_map'").within(path.native());
  std::set<std::string> names;
  for (const auto& [tensor, file] : parsed["weight_map"].items()) {
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos)
      return bad_input("tensor {} is in {}, not in a file of the folder",
                       hone::quoted(excerpt(tensor)), excerpt(file.dump()))
          .within(path.native());
    names.insert(file.get<std::string>());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace

Result<std::vector<Safetensors>> hf_tensors(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::string> names = {std::string(kOneFile)};
  const bool is_one = std::filesystem::exists(folder / kOneFile, ignored);
  if (!is_one) names = HONE_TRY(files_of_index(folder / kIndex));
  std::vector<Safetensors> files;
  for (const std::string& name : names) files.push_back(HONE_TRY(read_safetensors(folder / name)));
  return files;
}

Result<std::unique_ptr<DecoderWeights>> hf_weights(const std::filesystem::path& folder,
                                                   const DecoderConfig& config) {
  return std::unique_ptr<DecoderWeights>(new HfWeights(HONE_TRY(hf_tensors(folder)), config));
}

}  // namespace hone
