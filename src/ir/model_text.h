#pragma once

#include <string>
#include <string_view>

#include "ir/model.h"
#include "ir/text.h"

namespace hone {

// The graph of a model that is nothing but a graph, so that the text of the graph says all; null
// for others. An output that is an input, or another one, has a name that its graph does not tell.
const Graph* plain_graph(const Model& model);

// Unsupported if a segment is deferred: before its body is made, it has no text.
Result<std::string> print(const Model& model, const PrintOptions& options = {});

// A text of one model, or of one graph, which is then the model.
Result<Model> parse_model(std::string_view text, const ParseOptions& options = {});

}  // namespace hone
