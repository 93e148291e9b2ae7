#pragma once

#include <gtest/gtest.h>

#include "ir/text.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone {

inline Target two_cores() {
  Target target = parse_target(kSampleTarget, "t").value();
  target.cores = 2;
  return target;
}

inline Graph prepared(const Graph& source) {
  Result<Graph> graph = prepare(source);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}
inline Graph prepared(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? prepared(*graph) : Graph();
}

// Regions of all kinds, some inside of others, with outputs that are parameters.
inline constexpr std::string_view kControl =
    "graph @g(%p: bool[], %x: f32[3], %n: i32[], %xs: f32[4, 3]) {\n"
    "  %a, %b = if %p, %x, %x\n"
    "    then (%u: f32[3], %v: f32[3]) { %w = neg %u return %w, %v }\n"
    "    else (%u: f32[3], %v: f32[3]) { return %u, %u }\n"
    "  %i, %s, %k = while %n, %x, %x\n"
    "    condition (%i: i32[], %s: f32[3], %k: f32[3]) {\n"
    "      %four = constant 4 : i32[]\n"
    "      %go = compare %i, %four {direction = lt}\n"
    "      return %go\n"
    "    }\n"
    "    body (%i: i32[], %s: f32[3], %k: f32[3]) {\n"
    "      %one = constant 1 : i32[]\n"
    "      %j = add %i, %one\n"
    "      %t = add %s, %k\n"
    "      return %j, %t, %k\n"
    "    }\n"
    "  %f, %ys, %zs = scan %s, %xs {carried = 1, reverse = true}\n"
    "    body (%s: f32[3], %r: f32[3]) {\n"
    "      %o = sort %r {axis = 0}\n"
    "      %t = mul %s, %o\n"
    "      return %t, %s, %r\n"
    "    }\n"
    "  %q, %qs = scan %f {carried = 1, length = [2]}\n"
    "    body (%s: f32[3]) {\n"
    "      %t = call %s callee (%e: f32[3]) { %o = exp %e return %o }\n"
    "      return %t, %t\n"
    "    }\n"
    "  return %a, %b, %i, %ys, %zs, %f, %f, %q, %qs\n"
    "}\n";

// The results by the reference, each node rounded to its type.
std::vector<Tensor> evaluated(const Graph& graph, const std::vector<Tensor>& inputs);
void expect_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected);

// Lowers, checks the text, and runs in the order of the list, in another one, and written out: the
// results are those of the reference. Special numbers have a judge of their own.
enum class Numbers : uint8_t { tame, special };
void check_lowered(const Graph& graph, const Plan& plan, const std::vector<Tensor>& inputs,
                   Numbers numbers = Numbers::tame);

}  // namespace hone
