#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/file.h"
#include "base/text.h"
#include "front/hugging_face/hf_model.h"

namespace hone {
namespace {

using HfJson = nlohmann::json;

constexpr int64_t kMostConfigBytes = 1 << 20;

// The fields of an object. Null stands for a field that is missing.
class HfFields {
 public:
  explicit HfFields(const HfJson& object) : object_(object) {}

  bool has(const char* name) const { return object_.contains(name) && !object_.at(name).is_null(); }
  Result<int64_t> integer(const char* name) const {
    if (!has(name)) return bad_input("'{}' is missing", name);
    const HfJson& value = object_.at(name);
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1e15)
      return bad_input("'{}' is {}, not a natural number", name, excerpt(value.dump()));
    return value.get<int64_t>();
  }
  Result<int64_t> integer_or(const char* name, int64_t fallback) const {
    return has(name) ? integer(name) : fallback;
  }
  Result<double> real_or(const char* name, double fallback) const {
    if (!has(name)) return fallback;
    const HfJson& value = object_.at(name);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return bad_input("'{}' is {}, not a number", name, excerpt(value.dump()));
    return value.get<double>();
  }
  Result<std::string> text_or(const char* name, std::string_view fallback) const {
    if (!has(name)) return std::string(fallback);
    const HfJson& value = object_.at(name);
    if (!value.is_string()) return bad_input("'{}' is {}, not a text", name, excerpt(value.dump()));
    return value.get<std::string>();
  }
  Result<bool> flag_or(const char* name, bool fallback) const {
    if (!has(name)) return fallback;
    const HfJson& value = object_.at(name);
    if (!value.is_boolean())
      return bad_input("'{}' is {}, not true or false", name, excerpt(value.dump()));
    return value.get<bool>();
  }
  Result<HfFields> object(const char* name) const {
    if (!object_.at(name).is_object()) return bad_input("'{}' is not an object", name);
    return HfFields(object_.at(name));
  }

 private:
  const HfJson& object_;
};

// Slow frequencies are divided by a factor, fast ones are kept, and those between are mixed.
Status add_llama3_divisors(const HfFields& scaling, RotationConfig& rotation) {
  const double factor = HONE_TRY(scaling.real_or("factor", 8));
  const double low = HONE_TRY(scaling.real_or("low_freq_factor", 1));
  const double high = HONE_TRY(scaling.real_or("high_freq_factor", 4));
  const double context = HONE_TRY(scaling.real_or("original_max_position_embeddings", 8192));
  if (factor <= 0 || low <= 0 || high <= low || context <= 0)
    return bad_input("'rope_scaling' has factors that make no sense: {}, {} and {}", factor, low,
                     high);
  for (int64_t i = 0; i < rotation.width / 2; ++i) {
    const double part = 2.0 * static_cast<double>(i) / static_cast<double>(rotation.width);
    const double length = 2 * std::numbers::pi * std::pow(rotation.base, part);
    const double mixed = std::clamp((context / length - low) / (high - low), 0.0, 1.0);
    rotation.divisors.push_back(1 / ((1 - mixed) / factor + mixed));
  }
  return {};
}

Status add_hf_rotation(const HfFields& fields, DecoderConfig& config) {
  RotationConfig& rotation = config.rotation;
  rotation.width = config.key_width;
  rotation.base = HONE_TRY(fields.real_or("rope_theta", 10000));
  rotation.local_base = rotation.base;
  if (rotation.base <= 0) return bad_input("'rope_theta' is {}", rotation.base);
  if (!fields.has("rope_scaling")) return {};
  const HfFields scaling = HONE_TRY(fields.object("rope_scaling"));
  const std::string older = HONE_TRY(scaling.text_or("type", "default"));
  const std::string kind = HONE_TRY(scaling.text_or("rope_type", older));
  if (kind == "default") return {};
  if (kind == "llama3") return add_llama3_divisors(scaling, rotation);
  if (kind != "linear")
    return unsupported("positions are scaled by '{}'; hone knows linear and llama3", excerpt(kind));
  const double factor = HONE_TRY(scaling.real_or("factor", 1));
  if (factor <= 0) return bad_input("'factor' of 'rope_scaling' is {}", factor);
  rotation.scale = 1 / factor;
  return {};
}

Status adjust_hf_gemma(const HfFields& fields, DecoderConfig& config) {
  config.gate = Gate::gelu;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  if (config.family == "gemma") return {};
  const double scalar =
      HONE_TRY(fields.real_or("query_pre_attn_scalar", static_cast<double>(config.key_width)));
  if (scalar <= 0) return bad_input("'query_pre_attn_scalar' is {}", scalar);
  config.attention_scale = 1 / std::sqrt(scalar);
  config.score_cap = HONE_TRY(fields.real_or("attn_logit_softcapping", 0));
  config.logit_cap = HONE_TRY(fields.real_or("final_logit_softcapping", 0));
  config.window = HONE_TRY(fields.integer_or("sliding_window", 4096));
  config.window_period = config.family == "gemma2" ? 2 : 6;
  if (config.family == "gemma3")
    config.rotation.local_base = HONE_TRY(fields.real_or("rope_local_base_freq", 10000));
  return {};
}

Result<DecoderConfig> gpt2_config(const HfFields& fields) {
  DecoderConfig config = {.family = "gpt2"};
  config.layers = HONE_TRY(fields.integer("n_layer"));
  config.width = HONE_TRY(fields.integer("n_embd"));
  config.heads = config.kv_heads = HONE_TRY(fields.integer("n_head"));
  config.context = HONE_TRY(fields.integer("n_positions"));
  config.vocabulary = HONE_TRY(fields.integer("vocab_size"));
  config.hidden = HONE_TRY(fields.integer_or("n_inner", 4 * config.width));
  config.epsilon = HONE_TRY(fields.real_or("layer_norm_epsilon", 1e-5));
  if (config.heads < 1) return bad_input("'n_head' is {}", config.heads);
  config.key_width = config.value_width = config.width / config.heads;
  config.has_layer_norm = config.has_positions = true;
  config.gate = Gate::none;
  return config;
}

struct HfFamily {
  std::string_view type;  // model_type
  std::string_view family;
};
constexpr HfFamily kHfFamilies[] = {
    {"llama", "llama"},        {"mistral", "llama"}, {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},        {"gemma", "gemma"},   {"gemma2", "gemma2"},
    {"gemma3_text", "gemma3"}, {"phi3", "phi3"},     {"gpt2", "gpt2"}};

Result<DecoderConfig> config_of(const HfFields& fields) {
  const std::string type = HONE_TRY(fields.text_or("model_type", ""));
  const auto* const family = std::ranges::find(kHfFamilies, type, &HfFamily::type);
  if (family == std::end(kHfFamilies)) {
    std::vector<std::string_view> known;
    for (const HfFamily& one : kHfFamilies) known.push_back(one.type);
    return unsupported("'model_type' is {}, which hone does not know", hone::quoted(excerpt(type)))
        .with_hint(fmt::format("known are {}", join(known, ", ")));
  }
  if (family->family == "gpt2") return gpt2_config(fields);
  DecoderConfig config = {.family = std::string(family->family)};
  config.layers = HONE_TRY(fields.integer("num_hidden_layers"));
  config.width = HONE_TRY(fields.integer("hidden_size"));
  config.hidden = HONE_TRY(fields.integer("intermediate_size"));
  config.heads = HONE_TRY(fields.integer("num_attention_heads"));
  if (config.heads < 1) return bad_input("'num_attention_heads' is {}", config.heads);
  config.kv_heads = HONE_TRY(fields.integer_or("num_key_value_heads", config.heads));
  config.key_width = HONE_TRY(fields.integer_or("head_dim", config.width / config.heads));
  config.value_width = config.key_width;
  config.context = HONE_TRY(fields.integer("max_position_embeddings"));
  config.vocabulary = HONE_TRY(fields.integer("vocab_size"));
  config.epsilon = HONE_TRY(fields.real_or("rms_norm_eps", 1e-6));
  HONE_TRY(add_hf_rotation(fields, config));
  if (config.family.starts_with("gemma")) HONE_TRY(adjust_hf_gemma(fields, config));
  if (config.family == "phi3") {
    config.has_fused_gate = true;
    config.window = HONE_TRY(fields.integer_or("sliding_window", 0));
    config.window_period = 1;
  }
  const bool has_window = config.window > 0 && config.window_period > 0;
  if (has_window && config.family != "gemma3" && config.rotation.scale != 1)
    return unsupported("'rope_scaling' scales the positions of a family that has none scaled");
  return config;
}

// ---- Encoders

Result<EncoderConfig> encoder_of(const HfFields& fields) {
  const std::string type = HONE_TRY(fields.text_or("model_type", ""));
  const bool is_distilled = type == "distilbert";
  const bool is_roberta = type == "roberta" || type == "xlm-roberta";
  if (type != "bert" && !is_distilled && !is_roberta)
    return unsupported("'model_type' is {}, which gives texts no vectors",
                       hone::quoted(excerpt(type)))
        .with_hint("known are bert, distilbert, roberta, xlm-roberta");
  EncoderConfig config = {.family = type};
  config.layers = HONE_TRY(fields.integer(is_distilled ? "n_layers" : "num_hidden_layers"));
  config.width = HONE_TRY(fields.integer(is_distilled ? "dim" : "hidden_size"));
  config.heads = HONE_TRY(fields.integer(is_distilled ? "n_heads" : "num_attention_heads"));
  config.hidden = HONE_TRY(fields.integer(is_distilled ? "hidden_dim" : "intermediate_size"));
  config.positions = HONE_TRY(fields.integer("max_position_embeddings"));
  config.vocabulary = HONE_TRY(fields.integer("vocab_size"));
  config.epsilon = HONE_TRY(fields.real_or("layer_norm_eps", 1e-12));
  if (!is_distilled) config.kinds = HONE_TRY(fields.integer_or("type_vocab_size", 2));
  if (is_roberta) config.first_position = HONE_TRY(fields.integer_or("pad_token_id", 1)) + 1;
  config.context = config.positions - config.first_position;
  const char* const act = is_distilled ? "activation" : "hidden_act";
  if (const std::string named = HONE_TRY(fields.text_or(act, "gelu")); named != "gelu")
    return unsupported("'{}' is {}; hone knows gelu", act, hone::quoted(excerpt(named)));
  const std::string places = HONE_TRY(fields.text_or("position_embedding_type", "absolute"));
  if (places != "absolute")
    return unsupported("'position_embedding_type' is {}; hone knows absolute",
                       hone::quoted(excerpt(places)));
  HONE_TRY(check(config));
  return config;
}

// A file that may be missing: null then.
Result<HfJson> json_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return HfJson();
  HfJson parsed = HfJson::parse(HONE_TRY(read_file(path, kMostConfigBytes)), nullptr, false);
  if (parsed.is_discarded()) return bad_input("it is not JSON").within(path.native());
  return parsed;
}

// The pooling and the steps of a sentence transformer.
Status add_sentence_parts(const std::filesystem::path& folder, EncoderConfig& config) {
  const std::filesystem::path path = folder / "1_Pooling" / "config.json";
  const HfJson pooling = HONE_TRY(json_if_there(path));
  if (pooling.is_object()) {
    const HfFields fields(pooling);
    struct Mode {
      const char* name;
      std::optional<Pooling> pooling;
    };
    constexpr Mode kModes[] = {{"pooling_mode_cls_token", Pooling::cls},
                               {"pooling_mode_mean_tokens", Pooling::mean},
                               {"pooling_mode_lasttoken", Pooling::last},
                               {"pooling_mode_max_tokens", std::nullopt},
                               {"pooling_mode_mean_sqrt_len_tokens", std::nullopt},
                               {"pooling_mode_weightedmean_tokens", std::nullopt}};
    int set = 0;
    for (const Mode& mode : kModes) {
      if (!HONE_TRY(fields.flag_or(mode.name, false))) continue;
      if (!mode.pooling || ++set > 1)
        return unsupported("'{}' is set; hone pools in one way: cls, mean or last", mode.name)
            .within(path.native());
      config.pooling = *mode.pooling;
    }
  }
  const HfJson modules = HONE_TRY(json_if_there(folder / "modules.json"));
  if (modules.is_array())
    config.is_normalized = modules.dump().find(".Normalize\"") != std::string::npos;
  return {};
}

}  // namespace

Result<EncoderConfig> parse_hf_encoder(std::string_view text, std::string_view where) {
  const HfJson parsed = HfJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return bad_input("it is not a JSON object").within(where);
  Result<EncoderConfig> config = encoder_of(HfFields(parsed));
  if (!config.ok()) return std::move(config).error().within(where);
  return config;
}

Result<EncoderConfig> hf_encoder_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  EncoderConfig config =
      HONE_TRY(parse_hf_encoder(HONE_TRY(read_file(path, kMostConfigBytes)), path.native()));
  HONE_TRY(add_sentence_parts(folder, config));
  return config;
}

bool is_hf_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path / "config.json", ignored);
}

Result<DecoderConfig> parse_hf_config(std::string_view text, std::string_view where) {
  const HfJson parsed = HfJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return bad_input("it is not a JSON object").within(where);
  Result<DecoderConfig> config = config_of(HfFields(parsed));
  if (config.ok())
    if (Status good = check(*config); !good.ok()) return std::move(good).error().within(where);
  if (!config.ok()) return std::move(config).error().within(where);
  return config;
}

Result<DecoderConfig> hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  return parse_hf_config(HONE_TRY(read_file(path, kMostConfigBytes)), path.native());
}

}  // namespace hone
