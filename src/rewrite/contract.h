#pragma once

#include "ir/graph.h"

namespace hone {

// True if a dot reads a transposed constant that it can as well read as it lies: nobody else needs
// it transposed, and the product has several rows.
bool has_transposed_weights(const Graph& graph);

// These dots read the constants as they lie. Regions stay as they are.
Result<Graph> contract_weights_as_they_lie(const Graph& graph);

}  // namespace hone
