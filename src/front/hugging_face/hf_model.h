#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "front/decoder/decoder.h"

// Folders of Hugging Face as models: config.json, and weights in one or several safetensors files.

namespace hone {

bool is_hf_folder(const std::filesystem::path& path);

// A family's numbers from the text of config.json; `where` names it in errors.
Result<DecoderConfig> parse_hf_config(std::string_view text, std::string_view where);
Result<DecoderConfig> hf_config(const std::filesystem::path& folder);

// Their tensors by the names of GGUF files. Matrices that a family stores transposed are turned,
// and norms that lack their 1 get it.
Result<std::unique_ptr<DecoderWeights>> hf_weights(const std::filesystem::path& folder,
                                                   const DecoderConfig& config);

}  // namespace hone
