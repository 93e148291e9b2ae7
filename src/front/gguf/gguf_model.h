#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "front/decoder/decoder.h"
#include "front/front_end.h"

// GGUF files as models: a family's numbers from the metadata, its weights as the file has them.

namespace hone {

// "llama, qwen2, ...": what general.architecture may be.
std::string gguf_families();

Result<DecoderConfig> gguf_config(const Gguf& file);
Result<Graph> build_gguf(const Gguf& file, const DecoderConfig& config);

FrontEnd gguf_front_end();

}  // namespace hone
