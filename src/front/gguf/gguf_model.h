#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "front/decoder/decoder.h"
#include "front/decoder/encoder.h"
#include "front/front_end.h"

// GGUF files as models: a family's numbers from the metadata, its weights as the file has them.

namespace hone {

// "llama, qwen2, ...": what general.architecture may be.
std::string gguf_families();

Result<DecoderConfig> gguf_config(const Gguf& file);
std::unique_ptr<DecoderWeights> gguf_weights(const Gguf& file);  // the file outlives them
Result<Graph> build_gguf(const Gguf& file, const DecoderConfig& config);

// Files whose model gives a text a vector: bert and nomic-bert.
bool is_gguf_encoder(const Gguf& file);
Result<EncoderConfig> gguf_encoder_config(const Gguf& file);

FrontEnd gguf_front_end();

}  // namespace hone
