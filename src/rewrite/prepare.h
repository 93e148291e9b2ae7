#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "rewrite/passes.h"

namespace hone {

// The passes of prepare(), in order. Names are given twice, so that what `unshare` adds is called
// after its readers.
inline constexpr std::string_view kPreparation[] = {
    "widen",  "integers", "expand",  "phases",  "bytes",   "fold",    "sink",
    "fold",   "splats",   "cse",     "spelled", "late",    "between", "fold",
    "splats", "cse",      "spelled", "late",    "between", "fold",    "splats",
    "cse",    "first",    "names",   "unshare", "names",   "donate",  "transforms"};

// Graphs are verified in debug builds of hone alone: it takes as long as preparing them.
PassOptions passes_of_prepare();

struct PrepareOptions {
  std::vector<std::string> without = {};  // optional passes; plans are then for another graph
  // Products may take denormal numbers for 0 (the pass `flush`): for another graph, too.
  bool flushes_denormals = false;
  bool is_for_gpu = false;  // what joins many values does it in pieces (the pass `pieces`)
  PassOptions passes = passes_of_prepare();
};

// Makes the graph that plans are for. Composites are spelled out, those of 16-bit reals in f32.
// Convs of elements that lie apart become convs of their phases. Constants are folded, and a
// constant that a region is always given is in the region. Nothing is dead, nothing is computed
// twice, and every value has a name. All of it holds in regions too. Values that have a name keep
// it; others are called after the first named value that is computed from them and their op:
// "ln1.sub", "ln1.mul_2". Small constants of equal elements are broadcasts of one element, which
// kernels have in their code. Masks, logistics and scales that are spelled out have the form of
// one op. Elementwise ops stand in front of broadcasts, and not between a reshape and its inverse.
// Each reader of a broadcast has its own. A sort has the elements alone that slices read. Bodies of
// loops may store each new state where the old one is. Convs say by how many points their products
// may be transformed (ir/winograd.h). Preparing twice changes nothing but names of such elements.
Result<Graph> prepare(const Graph& graph, const PrepareOptions& options = {});

// Optional passes can be left out; an error lists them.
Status check_can_leave_out(std::string_view pass);

}  // namespace hone
