#pragma once

#include <optional>
#include <vector>

#include "front/onnx/frame.h"

// Sizes that a file leaves open, where a node does not take all of them.
//
// A convolution whose window spans 256 positions refuses shorter inputs. Instead of refusing the
// model, the range of the open size loses the numbers for which the node could never run.

namespace hone::onnx_io {

// The needs of a node stand for open sizes: symbols of smaller ranges, numbers, or other symbols.
// Thrown out of a flow that is sure to reach the node; it is imported again with these.
struct NeedRanges {
  Bindings sizes;
  Error why;  // of the node, without these
};

// The ranges of open sizes for which the node can be typed, which it cannot be because of `error`.
// Null if there are none, or if they would cut off sizes that the node takes: a sum of [n] and [m]
// needs n = m or that one of them is 1, and no ranges say so. Three sorts of sizes are cut off all
// the same, since models mean none of them:
// - so large ones that a tensor of them has no type;
// - those behind the end of a table that the node reads a part of, such as one of positions;
// - 1 in place of a sum of sizes: a mask of [total] is added to [past + new].
std::optional<NeedRanges> needed_ranges(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                                        const Error& error);

// A number that the symbol may be, near to the given one.
int64_t value_near(Symbol symbol, int64_t number);

// Adds what was found for sizes that `sizes` had narrowed before.
void narrow_further(Bindings& sizes, const Bindings& found);

// Ranges that hold both what one and what the other needs, for sizes of which both say something.
// `now` is what the symbols are without.
Bindings needed_by_both(const Bindings& a, const Bindings& b, const std::vector<Symbol>& now);

// "n in 192..16777216; m = n": for notices.
std::string ranges_text(const Bindings& sizes);

}  // namespace hone::onnx_io
