#pragma once

#include "target/target.h"
#include "target/text_fields.h"

namespace hone {

// A target within another text: from the word at hand to its closing brace.
Result<Target> read_target(FieldReader& in);

}  // namespace hone
