#pragma once

#include "ir/functional.h"

// What a model is trained to make small: real scalars of the element type of `y`, means over all
// its elements or rows.

namespace hone {

// The mean of (y - target)^2; both have one type.
Value mean_squared_error(Value y, Value target);

// The mean of -log(softmax(logits)[label]) over all dims but the last, which are those of the
// labels: integers. A label outside of the last dim counts as its nearest end.
Value cross_entropy(Value logits, Value labels);

}  // namespace hone
