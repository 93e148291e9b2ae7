#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "front/onnx/proto.h"
#include "tensor/demand.h"

// Sizes that a file leaves open, where a node does not take all of them.
//
// A convolution whose window spans 256 positions refuses shorter inputs. The op says what it
// demands (tensor/demand.h). Import solves the demand for a symbol, and goes on to collect the
// others. Then it reads the file once more, with the symbols that meet them all.

namespace hone::onnx_io {

class Flow;
class Frame;

// The needs of a node stand for open sizes: symbols of smaller ranges, numbers, or other symbols.
struct Constraint {
  Bindings sizes;
  Error why;  // of the node, without these
};

// The sizes that meet a demand. Null if nothing says them but a choice: a sum of [n] and [m] needs
// n = m or that one of them is 1. Three sorts of sizes are cut off although the node takes them,
// since models mean none of them:
// - so large ones that a tensor of them has no type;
// - those behind the end of a table that the node reads a part of, such as one of positions;
// - 1 in place of a sum of sizes: a mask of [total] is added to [past + new].
std::optional<Bindings> solved(const Demand& demand, bool has_cache);
// Small numbers for the symbols of a demand that meet it; null if none of a few do.
std::optional<Bindings> witness(const Demand& demand);

// The constraint of a node that failed because of `error`. `demand` is what its last op
// could not prove.
std::optional<Constraint> constraint_of(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                                        const std::optional<Demand>& demand, const Error& error);

// Adds what was found for sizes that `sizes` had narrowed before.
void narrow_further(Bindings& sizes, const Bindings& found);

// Ranges that hold both what one and what the other needs, for sizes of which both say something.
// `now` is what the symbols are without.
Bindings needed_by_both(const Bindings& a, const Bindings& b, const std::vector<Symbol>& now);

// "n in 192..16777216; m = n": for notices.
std::string ranges_text(const Bindings& sizes);

}  // namespace hone::onnx_io
