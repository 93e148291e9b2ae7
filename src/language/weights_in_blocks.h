#pragma once

#include <memory>

#include "front/decoder/decoder.h"
#include "quantize/layers.h"

namespace hone {

// The same weights with matrices of reals as blocks: 32 numbers share an f16 scale. The level w8
// takes q8_0. The level w4 takes q4_0, with the scale of least squared error among 16. The
// embedding has 8 bits either way, since all layers read it. Other levels change nothing. Blocks,
// norms, biases, learned positions and rows that 32 does not divide stay as they are. A weight that
// is not finite is refused when it is asked for.
std::unique_ptr<DecoderWeights> weights_in_blocks(std::unique_ptr<DecoderWeights> weights,
                                                  quantize::Precision level);

}  // namespace hone
