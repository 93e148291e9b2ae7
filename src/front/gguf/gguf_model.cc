#include "front/gguf/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/text.h"

namespace hone {
namespace {

// ---- Metadata
// ------------------------------------------------------------------------------------

// Values by their keys behind "ARCHITECTURE.".
class GgufKeys {
 public:
  GgufKeys(const Gguf& file, std::string_view family) : file_(file), family_(family) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", family_, name); }

  // An integer, or an array of equal ones, one for each layer.
  Result<std::optional<int64_t>> integer(std::string_view name) const {
    const auto found = file_.metadata.find(key(name));
    if (found == file_.metadata.end()) return std::optional<int64_t>();
    if (const auto* items = std::get_if<std::vector<int64_t>>(&found->second)) {
      if (items->empty() ||
          std::ranges::adjacent_find(*items, std::not_equal_to<>()) != items->end())
        return unsupported("key '{}' has other numbers for some layers", key(name));
      return std::optional(items->front());
    }
    return std::optional(*HONE_TRY(file_.get<int64_t>(key(name))));
  }
  Result<int64_t> integer_or(std::string_view name, int64_t fallback) const {
    return HONE_TRY(integer(name)).value_or(fallback);
  }
  Result<int64_t> needed(std::string_view name) const {
    const std::optional<int64_t> found = HONE_TRY(integer(name));
    if (!found) return bad_input("key '{}' is missing", key(name));
    return *found;
  }
  Result<double> real_or(std::string_view name, double fallback) const {
    const double* const found = HONE_TRY(file_.get<double>(key(name)));
    if (found == nullptr) return fallback;
    if (!std::isfinite(*found)) return bad_input("key '{}' is {}", key(name), *found);
    return *found;
  }
  Result<std::string> text_or(std::string_view name, std::string_view fallback) const {
    const auto* const found = HONE_TRY(file_.get<std::string_view>(key(name)));
    return std::string(found == nullptr ? fallback : *found);
  }

 private:
  const Gguf& file_;
  std::string_view family_;
};

// ---- Families
// ------------------------------------------------------------------------------------

using Adjust = Status (*)(const Gguf&, const GgufKeys&, DecoderConfig&);

Status adjust_llama(const Gguf&, const GgufKeys&, DecoderConfig& config) {
  config.rotation.is_interleaved = true;  // the converter has permuted the rows of q and k
  return {};
}

Status adjust_nothing(const Gguf&, const GgufKeys&, DecoderConfig&) { return {}; }

Status adjust_gemma(const Gguf&, const GgufKeys&, DecoderConfig& config) {
  config.gate = Gate::gelu;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  return {};
}

// Models of 27 B scale by the width of the embedding for each head.
double scale_of_gemma(const DecoderConfig& config, int64_t layers_of_27b) {
  const int64_t by =
      config.layers == layers_of_27b ? config.width / config.heads : config.key_width;
  return 1 / std::sqrt(static_cast<double>(by));
}

// Layers with a window turn by positions as they are.
Status refuse_scaled_positions(const GgufKeys& keys, const DecoderConfig& config) {
  if (config.rotation.scale == 1) return {};
  return unsupported("key '{}' scales the positions of a family that has none scaled",
                     keys.key("rope.scaling.factor"));
}

Status adjust_gemma2(const Gguf& file, const GgufKeys& keys, DecoderConfig& config) {
  HONE_TRY(adjust_gemma(file, keys, config));
  config.attention_scale = scale_of_gemma(config, 46);
  config.score_cap = HONE_TRY(keys.real_or("attn_logit_softcapping", 50));
  config.logit_cap = HONE_TRY(keys.real_or("final_logit_softcapping", 30));
  config.window = HONE_TRY(keys.integer_or("attention.sliding_window", 4096));
  config.window_period = 2;
  config.rotation.local_base = config.rotation.base;
  return refuse_scaled_positions(keys, config);
}

Status adjust_gemma3(const Gguf& file, const GgufKeys& keys, DecoderConfig& config) {
  HONE_TRY(adjust_gemma(file, keys, config));
  config.attention_scale = scale_of_gemma(config, 62);
  config.logit_cap = HONE_TRY(keys.real_or("final_logit_softcapping", 0));
  config.window_period = 6;
  config.rotation.base = HONE_TRY(keys.real_or("rope.freq_base", 1'000'000));
  return {};
}

Status adjust_phi3(const Gguf& file, const GgufKeys& keys, DecoderConfig& config) {
  config.has_fused_gate = true;
  config.rotation.local_base = config.rotation.base;
  config.window_period = 1;
  config.rotation.magnitude = HONE_TRY(keys.real_or("rope.scaling.attn_factor", 1));
  if (file.find("rope_factors_long.weight") != nullptr)
    return unsupported("the model has long and short factors of rotation, which hone lacks");
  return refuse_scaled_positions(keys, config);
}

Status adjust_gpt2(const Gguf&, const GgufKeys&, DecoderConfig& config) {
  config.has_layer_norm = config.has_positions = true;
  config.gate = Gate::none;
  config.rotation.width = 0;
  return {};
}

struct Family {
  std::string_view name;
  Adjust adjust;
};
constexpr Family kFamilies[] = {
    {"llama", adjust_llama}, {"qwen2", adjust_nothing}, {"qwen3", adjust_nothing},
    {"gemma", adjust_gemma}, {"gemma2", adjust_gemma2}, {"gemma3", adjust_gemma3},
    {"phi3", adjust_phi3},   {"gpt2", adjust_gpt2},
};

Result<std::string_view> architecture_of(const Gguf& file) {
  const auto* const found = HONE_TRY(file.get<std::string_view>("general.architecture"));
  if (found == nullptr) return bad_input("key 'general.architecture' is missing");
  return *found;
}

Status refuse_others(const Gguf& file, const GgufKeys& keys) {
  const int64_t* const parts = HONE_TRY(file.get<int64_t>("split.count"));
  if (parts != nullptr && *parts > 1)
    return unsupported("the model is in {} files", *parts)
        .with_hint("join them: llama-gguf-split --merge FIRST.gguf ALL.gguf");
  if (HONE_TRY(keys.integer_or("expert_count", 0)) > 0)
    return unsupported("the model has experts, which hone does not read from GGUF files");
  return {};
}

Status add_rotation(const Gguf& file, const GgufKeys& keys, DecoderConfig& config) {
  RotationConfig& rotation = config.rotation;
  rotation.width = HONE_TRY(keys.integer_or("rope.dimension_count", config.key_width));
  rotation.base = HONE_TRY(keys.real_or("rope.freq_base", 10000));
  if (rotation.base <= 0)
    return bad_input("key '{}' is {}", keys.key("rope.freq_base"), rotation.base);
  const std::string kind = HONE_TRY(keys.text_or("rope.scaling.type", "none"));
  if (kind == "linear") {
    const double factor = HONE_TRY(keys.real_or("rope.scaling.factor", 1));
    if (factor <= 0) return bad_input("key '{}' is {}", keys.key("rope.scaling.factor"), factor);
    rotation.scale = 1 / factor;
  } else if (kind != "none") {
    return unsupported("positions are scaled by '{}'; hone knows none and linear", excerpt(kind));
  }
  if (const GgufTensor* const divisors = file.find("rope_freqs.weight")) {
    if (divisors->type->name != "F32") return unsupported("tensor 'rope_freqs.weight' is not F32");
    const Type type = HONE_TRY(
        Type::make(DType::f32, Dims{static_cast<int64_t>(divisors->bytes.size() / sizeof(float))}));
    rotation.divisors.resize(static_cast<size_t>(type.static_elements()));
    Tensor::copy_of(type, divisors->bytes).read_reals(0, rotation.divisors);
    for (const double one : rotation.divisors)
      if (!std::isfinite(one) || one <= 0)
        return bad_input("tensor 'rope_freqs.weight' has the divisor {}", one);
  }
  return {};
}

// ---- Weights
// -------------------------------------------------------------------------------------

std::optional<BlockFormat> block_format_of(std::string_view type) {
  constexpr std::string_view kNames[kBlockFormats] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1",
                                                      "Q8_0", "Q4_K", "Q5_K", "Q6_K"};
  const auto* const found = std::ranges::find(kNames, type);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<BlockFormat>(found - kNames);
}

class GgufWeights final : public DecoderWeights {
 public:
  explicit GgufWeights(const Gguf& file) : file_(file) {
    for (const GgufTensor& tensor : file.tensors) tensors_.emplace(tensor.name, &tensor);
  }

  bool has(const std::string& name) const override { return tensors_.contains(name); }
  Result<Weight> get(const std::string& name) const override {
    const GgufTensor& tensor = *tensors_.at(name);
    if (const std::optional<BlockFormat> format = block_format_of(tensor.type->name)) {
      const Type type = HONE_TRY(Type::make(DType::u8, Dims{tensor.rows(), tensor.row_bytes()}));
      return Weight{HONE_TRY(shared(type, tensor)), format, tensor.dims};
    }
    const Type type = HONE_TRY(
        Type::make(HONE_TRY(real_type(tensor)), Dims(tensor.dims.begin(), tensor.dims.end())));
    return Weight{HONE_TRY(shared(type, tensor)), {}, tensor.dims};
  }

 private:
  static Result<DType> real_type(const GgufTensor& tensor) {
    const std::string_view name = tensor.type->name;
    if (name == "F32") return DType::f32;
    if (name == "F16") return DType::f16;
    if (name == "BF16") return DType::bf16;
    return unsupported(
        "its elements are {}; hone reads F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
        "Q5_1, Q4_K, Q5_K and Q6_K",
        name);
  }
  Result<Tensor> shared(Type type, const GgufTensor& tensor) const {
    if (file_.owner == nullptr) return Tensor::copy_of(type, tensor.bytes);
    return Tensor::shared(type, file_.owner, tensor.bytes);
  }

  const Gguf& file_;
  std::map<std::string, const GgufTensor*, std::less<>> tensors_;
};

// ---- The front end
// -------------------------------------------------------------------------------

Result<Model> model_of_gguf(const Gguf& file) {
  const DecoderConfig config = HONE_TRY(gguf_config(file));
  return model_of(HONE_TRY(build_gguf(file, config)));
}

Result<Model> load_gguf(const std::filesystem::path& path, const ImportOptions&) {
  const Gguf file = HONE_TRY(read_gguf(path));
  Result<Model> model = model_of_gguf(file);
  if (!model.ok()) return std::move(model).error().within(path.native());
  return model;
}

Result<Model> parse_gguf_model(std::string_view bytes, std::string_view where,
                               const ImportOptions&) {
  const Gguf file = HONE_TRY(parse_gguf(std::as_bytes(std::span(bytes)), where));
  Result<Model> model = model_of_gguf(file);
  if (!model.ok()) return std::move(model).error().within(where);
  return model;
}

Result<std::vector<std::filesystem::path>> save_gguf(const std::filesystem::path& path,
                                                     const Model&, const ExportOptions&) {
  return unsupported("hone reads GGUF files, but writes none: {}", excerpt(path.native()))
      .with_hint("write a .onnx or .hone file");
}

}  // namespace

std::string gguf_families() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return join(names, ", ");
}

Result<DecoderConfig> gguf_config(const Gguf& file) {
  const std::string_view name = HONE_TRY(architecture_of(file));
  const auto* const family = std::ranges::find(kFamilies, name, &Family::name);
  if (is_gguf_encoder(file))
    return unsupported("the architecture {} gives texts vectors, and makes none",
                       hone::quoted(excerpt(name)))
        .with_hint("hone embed gives texts vectors");
  if (family == std::end(kFamilies))
    return unsupported("the architecture is {}, which hone does not know",
                       hone::quoted(excerpt(name)))
        .with_hint(fmt::format("known are {}", gguf_families()));
  const GgufKeys keys(file, name);
  HONE_TRY(refuse_others(file, keys));
  DecoderConfig config = {.family = std::string(name)};
  config.layers = HONE_TRY(keys.needed("block_count"));
  config.width = HONE_TRY(keys.needed("embedding_length"));
  config.hidden = HONE_TRY(keys.needed("feed_forward_length"));
  config.context = HONE_TRY(keys.needed("context_length"));
  config.heads = HONE_TRY(keys.needed("attention.head_count"));
  config.kv_heads = HONE_TRY(keys.integer_or("attention.head_count_kv", config.heads));
  if (config.heads < 1)
    return bad_input("key '{}' is {}", keys.key("attention.head_count"), config.heads);
  const int64_t width = config.width / config.heads;
  config.key_width = HONE_TRY(keys.integer_or("attention.key_length", width));
  config.value_width = HONE_TRY(keys.integer_or("attention.value_length", width));
  const double epsilon = HONE_TRY(keys.real_or("attention.layer_norm_epsilon", 1e-5));
  config.epsilon = HONE_TRY(keys.real_or("attention.layer_norm_rms_epsilon", epsilon));
  config.window = HONE_TRY(keys.integer_or("attention.sliding_window", 0));
  const GgufTensor* const embedding = file.find("token_embd.weight");
  if (embedding == nullptr) return bad_input("tensor 'token_embd.weight' is missing");
  config.vocabulary = embedding->rows();
  HONE_TRY(add_rotation(file, keys, config));
  HONE_TRY(family->adjust(file, keys, config));
  HONE_TRY(check(config));
  return config;
}

std::unique_ptr<DecoderWeights> gguf_weights(const Gguf& file) {
  return std::make_unique<GgufWeights>(file);
}

bool is_gguf_encoder(const Gguf& file) {
  const Result<std::string_view> name = architecture_of(file);
  return name.ok() && (*name == "bert" || *name == "nomic-bert");
}

Result<EncoderConfig> gguf_encoder_config(const Gguf& file) {
  const std::string_view name = HONE_TRY(architecture_of(file));
  if (!is_gguf_encoder(file))
    return unsupported("the architecture is {}, which gives texts no vectors",
                       hone::quoted(excerpt(name)))
        .with_hint("known are bert and nomic-bert");
  const GgufKeys keys(file, name);
  EncoderConfig config = {.family = std::string(name)};
  config.layers = HONE_TRY(keys.needed("block_count"));
  config.width = HONE_TRY(keys.needed("embedding_length"));
  config.hidden = HONE_TRY(keys.needed("feed_forward_length"));
  config.context = HONE_TRY(keys.needed("context_length"));
  config.heads = HONE_TRY(keys.needed("attention.head_count"));
  config.epsilon = HONE_TRY(keys.real_or("attention.layer_norm_epsilon", 1e-12));
  const auto rows = [&](std::string_view tensor) {
    const GgufTensor* const found = file.find(tensor);
    return found == nullptr ? int64_t{0} : found->rows();
  };
  config.vocabulary = rows("token_embd.weight");
  config.positions = rows("position_embd.weight");
  config.kinds = rows("token_types.weight");
  config.is_gated = file.find("blk.0.ffn_gate.weight") != nullptr;
  if (name == "nomic-bert") config.rotation_base = HONE_TRY(keys.real_or("rope.freq_base", 1000));
  constexpr int64_t kMean = 1, kCls = 2, kLast = 3;
  const int64_t pooling = HONE_TRY(keys.integer_or("pooling_type", kMean));
  if (pooling != kMean && pooling != kCls && pooling != kLast)
    return unsupported("key '{}' is {}; hone knows 1 (mean), 2 (cls) and 3 (last)",
                       keys.key("pooling_type"), pooling);
  config.pooling = pooling == kMean  ? Pooling::mean
                   : pooling == kCls ? Pooling::cls
                                     : Pooling::last;
  HONE_TRY(check(config));
  return config;
}

Result<Graph> build_gguf(const Gguf& file, const DecoderConfig& config) {
  return build_decoder(config, GgufWeights(file));
}

FrontEnd gguf_front_end() {
  return {.name = "a GGUF file",
          .extension = ".gguf",
          .recognizes = begins_like_gguf,
          .load = load_gguf,
          .parse = parse_gguf_model,
          .save = save_gguf};
}

}  // namespace hone
