#pragma once

#include <string>
#include <string_view>

#include "ir/model.h"
#include "ir/text.h"

namespace hone {

// Unsupported if a segment is deferred: before its body is made, it has no text.
Result<std::string> print(const Model& model, const PrintOptions& options = {});

// A text of one model, or of one graph, which is then the model.
Result<Model> parse_model(std::string_view text, const ParseOptions& options = {});

}  // namespace hone
