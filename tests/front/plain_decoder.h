#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

// The published formulas of blocks and of decoders in plain loops of doubles: they judge the graphs
// and share no code with them.

namespace hone::plain {

// Number j of a block, by the table of the format.
double block_number(std::string_view type, const unsigned char* block, int j);
std::vector<double> numbers_of(const GgufTensor& tensor);

// Logits behind each of the tokens, row by row, all computed from scratch.
std::vector<double> decoder_logits(const Gguf& file, const std::vector<int64_t>& tokens);

}  // namespace hone::plain
