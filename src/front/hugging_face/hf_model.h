#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"
#include "front/decoder/decoder.h"
#include "front/decoder/encoder.h"

// Folders of Hugging Face as models: config.json, and weights in one or several safetensors files.

namespace hone {

bool is_hf_folder(const std::filesystem::path& path);

// A family's numbers from the text of config.json; `where` names it in errors.
Result<DecoderConfig> parse_hf_config(std::string_view text, std::string_view where);
Result<DecoderConfig> hf_config(const std::filesystem::path& folder);

// The safetensors files of a folder.
Result<std::vector<Safetensors>> hf_tensors(const std::filesystem::path& folder);

// Encoders: bert, distilbert, roberta and xlm-roberta. How the vector of a text is made stands in
// files that the folder of a sentence transformer has; else it is the mean, of length 1.
Result<EncoderConfig> parse_hf_encoder(std::string_view text, std::string_view where);
Result<EncoderConfig> hf_encoder_config(const std::filesystem::path& folder);
Result<std::unique_ptr<DecoderWeights>> hf_encoder_weights(const std::filesystem::path& folder);

// Their tensors by the names of GGUF files. Matrices that a family stores transposed are turned,
// and norms that lack their 1 get it.
Result<std::unique_ptr<DecoderWeights>> hf_weights(const std::filesystem::path& folder,
                                                   const DecoderConfig& config);

}  // namespace hone
