#pragma once

#include <string>
#include <string_view>

#include "ir/text.h"

namespace hone {

// The graph of a text that must parse and verify.
Graph parse_ok(std::string_view text);

// The text parses to a graph that prints as the same text.
void expect_canonical(std::string_view text);

// The same values in the same order with the same names, constants bit for bit, regions, outputs
// and donations.
void expect_identical(const Graph& actual, const Graph& wanted);

// The error of a text that must not parse: "2:7: what went wrong", then "; hint" if any.
std::string parse_error(std::string_view text);

}  // namespace hone
