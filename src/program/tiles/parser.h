#pragma once

#include "ir/text_parser.h"
#include "program/tiles/tiles.h"

namespace hone {

// From the word `tiles` on: for texts that hold kernels among other things.
Result<TileProgram> parse_tiles(TextParser& text);

}  // namespace hone
