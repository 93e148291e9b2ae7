#pragma once

#include "base/error.h"
#include "runtime/honec_cursor.h"
#include "runtime/segments.h"

namespace hone::honec {

// The tree of a compiled model's segments, as its section has it; check() is to follow.
Result<SegmentTree> read_segments(Cursor& in);

}  // namespace hone::honec
