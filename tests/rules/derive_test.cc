#include <gtest/gtest.h>

#include "rules/egraph.h"
#include "rules/rule_files.h"
#include "rules/saturate.h"
#include "tests/prove/rules_testing.h"

// The rules that follow from those of hone, found by an e-graph.

namespace hone::HONE_FILE {
namespace {

struct Derivation {
  std::string name, inputs, from, to;
};

void PrintTo(const Derivation& derivation, std::ostream* out) { *out << derivation.name; }

bool derives(const Derivation& given) {
  const auto graph_of = [&](std::string_view body) {
    return parse_graph(fmt::format("graph @g({}) {{{}}}", given.inputs, body)).value();
  };
  static const std::vector<Rule> rules = default_rules().value();
  static const std::vector<RuleMatcher> matchers(rules.begin(), rules.end());
  EGraph egraph = EGraph::of(graph_of(given.from)).value();
  saturate(egraph, matchers, {.nodes = 5000}).value();
  const std::vector<ValueId> outputs = egraph.add(graph_of(given.to), egraph.inputs()).value();
  egraph.rebuild();
  for (size_t o = 0; o < outputs.size(); ++o)
    if (egraph.find(outputs[o]) != egraph.outputs()[o]) return false;
  return true;
}

const std::vector<Derivation> kDerivations = {
    {"RowsThatAreWantedAlone", one_row_wanted(7, 4, 6).inputs, one_row_wanted(7, 4, 6).body,
     R"(
  %s = slice %x {start = [0, 2, 0], limit = [1, 3, 4]}
  %h = dot %s, %v {lhs_contract = [2], rhs_contract = [1]}
  %bb = broadcast %b {dims = [1, 1, 6], map = [2]}
  %a = add %h, %bb
  %e = erf %a
  %m = mul %a, %e
  %o = dot %m, %w {lhs_contract = [2], rhs_contract = [1]}
  %y = add %s, %o
  return %y
)"},
    {"PoolBeforeConv", "%x: f32[1, 3, 4, 6], %w: f32[5, 3, 1, 1]", R"(
  %c = conv %x, %w
  %y = window_reduce %c {kind = sum, window = [1, 1, 2, 2], stride = [1, 1, 2, 2]}
  return %y
)",
     R"(
  %s = window_reduce %x {kind = sum, window = [1, 1, 2, 2], stride = [1, 1, 2, 2]}
  %y = conv %s, %w
  return %y
)"},
    {"SumOfSkips",
     "%x: f32[1, 3, 8], %z: f32[1, 3, 8], %v: f32[4, 3, 1], %w: f32[4, 3, 1], %c: f32[4], "
     "%d: f32[4], %p: f32[1, 4, 8]",
     R"(
  %a = conv %x, %v
  %cb = broadcast %c {dims = [1, 4, 8], map = [1]}
  %ac = add %a, %cb
  %b = conv %z, %w
  %db = broadcast %d {dims = [1, 4, 8], map = [1]}
  %bd = add %b, %db
  %s = add %p, %ac
  %y = add %s, %bd
  return %y
)",
     R"(
  %xz = concat %x, %z {axis = 1}
  %vw = concat %v, %w {axis = 1}
  %m = conv %xz, %vw
  %cd = add %c, %d
  %cb = broadcast %cd {dims = [1, 4, 8], map = [1]}
  %s = add %m, %cb
  %y = add %p, %s
  return %y
)"},
    {"ParallelProducts", "%x: f32[4, 3], %a: f32[3, 5], %b: f32[3, 2]", R"(
  %y = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %z = dot %x, %b {lhs_contract = [1], rhs_contract = [0]}
  return %y, %z
)",
     R"(
  %ab = concat %a, %b {axis = 1}
  %yz = dot %x, %ab {lhs_contract = [1], rhs_contract = [0]}
  %y = slice %yz {start = [0, 0], limit = [4, 5]}
  %z = slice %yz {start = [0, 5], limit = [4, 7]}
  return %y, %z
)"},
    {"QueryKeyAndValue", "%x: f32[2, 3, 4], %q: f32[5, 4], %k: f32[6, 4], %v: f32[7, 4]", R"(
  %a = dot %x, %q {lhs_contract = [2], rhs_contract = [1]}
  %b = dot %x, %k {lhs_contract = [2], rhs_contract = [1]}
  %c = dot %x, %v {lhs_contract = [2], rhs_contract = [1]}
  return %a, %b, %c
)",
     R"(
  %w = concat %q, %k, %v {axis = 0}
  %y = dot %x, %w {lhs_contract = [2], rhs_contract = [1]}
  %a = slice %y {start = [0, 0, 0], limit = [2, 3, 5]}
  %b = slice %y {start = [0, 0, 5], limit = [2, 3, 11]}
  %c = slice %y {start = [0, 0, 11], limit = [2, 3, 18]}
  return %a, %b, %c
)"},
    {"ParallelConvs", "%x: f32[1, 3, 5, 6], %v: f32[2, 3, 3, 3], %w: f32[4, 3, 3, 3]", R"(
  %y = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %z = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y, %z
)",
     R"(
  %u = concat %v, %w {axis = 0}
  %yz = conv %x, %u {pad_low = [1, 1], pad_high = [1, 1]}
  %y = slice %yz {start = [0, 0, 0, 0], limit = [1, 2, 5, 6]}
  %z = slice %yz {start = [0, 2, 0, 0], limit = [1, 6, 5, 6]}
  return %y, %z
)"},
    {"ParallelConvsOf1x1And3x3", "%x: f32[1, 3, 5, 6], %v: f32[2, 3, 1, 1], %w: f32[4, 3, 3, 3]",
     R"(
  %y = conv %x, %v
  %z = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y, %z
)",
     R"(
  %0 = constant 0 : f32[]
  %e = pad %v, %0 {low = [0, 0, 1, 1], high = [0, 0, 1, 1]}
  %u = concat %e, %w {axis = 0}
  %yz = conv %x, %u {pad_low = [1, 1], pad_high = [1, 1]}
  %y = slice %yz {start = [0, 0, 0, 0], limit = [1, 2, 5, 6]}
  %z = slice %yz {start = [0, 2, 0, 0], limit = [1, 6, 5, 6]}
  return %y, %z
)"},
    {"ParallelConvsBelowBatchNorms",
     "%x: f32[1, 3, 5, 6], %v: f32[2, 3, 1, 1], %w: f32[4, 3, 1, 1], %s: f32[2], %t: f32[4], %a: "
     "f32[2], %b: f32[4]",
     R"(
  %p = conv %x, %v
  %sb = broadcast %s {dims = [1, 2, 5, 6], map = [1]}
  %ps = mul %p, %sb
  %ab = broadcast %a {dims = [1, 2, 5, 6], map = [1]}
  %y = add %ps, %ab
  %q = conv %x, %w
  %tb = broadcast %t {dims = [1, 4, 5, 6], map = [1]}
  %qt = mul %q, %tb
  %bb = broadcast %b {dims = [1, 4, 5, 6], map = [1]}
  %z = add %qt, %bb
  return %y, %z
)",
     R"(
  %sb = broadcast %s {dims = [2, 3, 1, 1], map = [0]}
  %vs = mul %v, %sb
  %tb = broadcast %t {dims = [4, 3, 1, 1], map = [0]}
  %wt = mul %w, %tb
  %u = concat %vs, %wt {axis = 0}
  %c = conv %x, %u
  %d = concat %a, %b {axis = 0}
  %db = broadcast %d {dims = [1, 6, 5, 6], map = [1]}
  %yz = add %c, %db
  %y = slice %yz {start = [0, 0, 0, 0], limit = [1, 2, 5, 6]}
  %z = slice %yz {start = [0, 2, 0, 0], limit = [1, 6, 5, 6]}
  return %y, %z
)"},
    {"ProductsReassociated", "%a: f32[2, 3], %b: f32[3, 4], %c: f32[4, 5], %d: f32[5, 6]", R"(
  %ab = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %abc = dot %ab, %c {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %abc, %d {lhs_contract = [1], rhs_contract = [0]}
  return %y
)",
     R"(
  %cd = dot %c, %d {lhs_contract = [1], rhs_contract = [0]}
  %bcd = dot %b, %cd {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %a, %bcd {lhs_contract = [1], rhs_contract = [0]}
  return %y
)"},
    {"ProductsDistributed", "%x: f32[2, 3], %a: f32[3, 4], %b: f32[3, 4], %c: f32[3, 4]", R"(
  %p = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %q = dot %x, %b {lhs_contract = [1], rhs_contract = [0]}
  %pq = add %p, %q
  %r = dot %x, %c {lhs_contract = [1], rhs_contract = [0]}
  %y = add %pq, %r
  return %y
)",
     R"(
  %ab = add %a, %b
  %abc = add %ab, %c
  %y = dot %x, %abc {lhs_contract = [1], rhs_contract = [0]}
  return %y
)"},
    {"ProductsAdded", "%x: f32[2, 3], %a: f32[3, 4], %y: f32[2, 5], %b: f32[5, 4]", R"(
  %p = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %q = dot %y, %b {lhs_contract = [1], rhs_contract = [0]}
  %z = add %p, %q
  return %z
)",
     R"(
  %xy = concat %x, %y {axis = 1}
  %ab = concat %a, %b {axis = 0}
  %z = dot %xy, %ab {lhs_contract = [1], rhs_contract = [0]}
  return %z
)"},
    {"SumOfAProduct", "%a: f32[2, 3], %b: f32[3, 4]", R"(
  %y = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %s = reduce %y {kind = sum, axes = [1]}
  return %s
)",
     R"(
  %r = reduce %b {kind = sum, axes = [1]}
  %s = dot %a, %r {lhs_contract = [1], rhs_contract = [0]}
  return %s
)"},
    {"TransposeOfAProduct", "%a: f32[2, 3], %b: f32[3, 4]", R"(
  %y = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %t = transpose %y {permutation = [1, 0]}
  return %t
)",
     R"(
  %t = dot %b, %a {lhs_contract = [0], rhs_contract = [1]}
  return %t
)"},
    {"TransposesMovedAndCancelled", "%x: f32[2, 3, 4, 5], %y: f32[2, 3, 4, 5]", R"(
  %s = transpose %x {permutation = [0, 2, 1, 3]}
  %t = transpose %y {permutation = [0, 2, 1, 3]}
  %a = add %s, %t
  %z = transpose %a {permutation = [0, 2, 1, 3]}
  return %z
)",
     R"(
  %z = add %x, %y
  return %z
)"},
    {"TransposeIntoAProduct", "%x: f32[2, 3, 4, 5], %y: f32[2, 6, 3, 5]", R"(
  %t = transpose %y {permutation = [0, 2, 1, 3]}
  %z = dot %x, %t {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3]}
  return %z
)",
     R"(
  %z = dot %x, %y {lhs_batch = [0, 1], rhs_batch = [0, 2], lhs_contract = [3], rhs_contract = [3]}
  return %z
)"},
    {"SliceOfAConcat", "%x: f32[2, 4], %y: f32[3, 4]", R"(
  %c = concat %x, %y {axis = 0}
  %s = slice %c {start = [2, 0], limit = [5, 4]}
  %e = exp %s
  return %e
)",
     R"(
  %e = exp %y
  return %e
)"},
    {"ConcatOfSlices", "%x: f32[2, 7, 3, 3]", R"(
  %a = slice %x {start = [0, 0, 0, 0], limit = [2, 3, 3, 3]}
  %b = slice %x {start = [0, 3, 0, 0], limit = [2, 7, 3, 3]}
  %c = concat %a, %b {axis = 1}
  %e = exp %c
  return %e
)",
     R"(
  %e = exp %x
  return %e
)"},
    {"LargerKernel", "%x: f32[1, 2, 6], %w: f32[3, 2, 3]", R"(
  %y = conv %x, %w {pad_low = [1], pad_high = [1]}
  return %y
)",
     R"(
  %0 = constant 0 : f32[]
  %v = pad %w, %0 {low = [0, 0, 1], high = [0, 0, 1]}
  %y = conv %x, %v {pad_low = [2], pad_high = [2]}
  return %y
)"},
    {"BatchNormIntoAConv",
     "%x: f32[1, 3, 5, 6], %w: f32[2, 3, 3, 3], %m: f32[2], %s: f32[2], %b: f32[2]", R"(
  %p = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %mb = broadcast %m {dims = [1, 2, 5, 6], map = [1]}
  %d = sub %p, %mb
  %sb = broadcast %s {dims = [1, 2, 5, 6], map = [1]}
  %e = mul %d, %sb
  %bb = broadcast %b {dims = [1, 2, 5, 6], map = [1]}
  %y = add %e, %bb
  return %y
)",
     R"(
  %sw = broadcast %s {dims = [2, 3, 3, 3], map = [0]}
  %v = mul %w, %sw
  %p = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %ms = mul %m, %s
  %c = sub %b, %ms
  %cb = broadcast %c {dims = [1, 2, 5, 6], map = [1]}
  %y = add %p, %cb
  return %y
)"},
    {"ConvBelowAMeanPool", "%x: f32[1, 4, 5, 6], %w: f32[2, 4, 1, 1]", R"(
  %9 = constant 9 : f32[]
  %s = window_reduce %x {kind = sum, window = [1, 1, 3, 3], pad_low = [0, 0, 1, 1],
                         pad_high = [0, 0, 1, 1]}
  %n = broadcast %9 {dims = [1, 4, 5, 6], map = []}
  %p = div %s, %n
  %y = conv %p, %w
  return %y
)",
     R"(
  %9 = constant 9 : f32[]
  %c = conv %x, %w
  %s = window_reduce %c {kind = sum, window = [1, 1, 3, 3], pad_low = [0, 0, 1, 1],
                         pad_high = [0, 0, 1, 1]}
  %n = broadcast %9 {dims = [1, 2, 5, 6], map = []}
  %y = div %s, %n
  return %y
)"},
    {"PadsIntoAConv", "%x: f32[1, 2, 5, 6], %w: f32[3, 2, 3, 3]", R"(
  %0 = constant 0 : f32[]
  %p = pad %x, %0 {low = [0, 0, 1, 1], high = [0, 0, 1, 1]}
  %y = conv %p, %w
  return %y
)",
     R"(
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
)"},
    {"KernelsAdded",
     "%x: f32[1, 3, 5, 6], %v: f32[2, 3, 3, 3], %w: f32[2, 3, 3, 3], %u: f32[2, 3, 1, 1]", R"(
  %a = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %b = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %ab = add %a, %b
  %c = conv %x, %u
  %y = add %ab, %c
  return %y
)",
     R"(
  %0 = constant 0 : f32[]
  %vw = add %v, %w
  %e = pad %u, %0 {low = [0, 0, 1, 1], high = [0, 0, 1, 1]}
  %vwu = add %vw, %e
  %y = conv %x, %vwu {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
)"},
    {"ConvsOfTwoInputsAdded",
     "%x: f32[1, 3, 5, 6], %z: f32[1, 2, 5, 6], %v: f32[4, 3, 1, 1], %w: f32[4, 2, 1, 1]", R"(
  %a = conv %x, %v
  %b = conv %z, %w
  %y = add %a, %b
  return %y
)",
     R"(
  %xz = concat %x, %z {axis = 1}
  %u = concat %v, %w {axis = 1}
  %y = conv %xz, %u
  return %y
)"},
    {"ParallelConvsWithGroups", "%x: f32[1, 6, 5, 4], %v: f32[4, 3, 3, 3], %w: f32[8, 3, 3, 3]",
     R"(
  %y = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1], groups = 2}
  %z = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 2}
  return %y, %z
)",
     R"(
  %a = reshape %v {dims = [2, 2, 3, 3, 3]}
  %b = reshape %w {dims = [2, 4, 3, 3, 3]}
  %u = concat %a, %b {axis = 1}
  %k = reshape %u {dims = [12, 3, 3, 3]}
  %c = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1], groups = 2}
  %d = reshape %c {dims = [1, 2, 6, 5, 4]}
  %e = slice %d {start = [0, 0, 0, 0, 0], limit = [1, 2, 2, 5, 4]}
  %y = reshape %e {dims = [1, 4, 5, 4]}
  %f = slice %d {start = [0, 0, 2, 0, 0], limit = [1, 2, 6, 5, 4]}
  %z = reshape %f {dims = [1, 8, 5, 4]}
  return %y, %z
)"},
    {"SoftmaxShift", "%x: f32[3, 5], %c: f32[3]", R"(
  %cb = broadcast %c {dims = [3, 5], map = [0]}
  %s = add %x, %cb
  %m = reduce %s {kind = max, axes = [1]}
  %mb = broadcast %m {dims = [3, 5], map = [0]}
  %d = sub %s, %mb
  %e = exp %d
  %t = reduce %e {kind = sum, axes = [1]}
  %tb = broadcast %t {dims = [3, 5], map = [0]}
  %y = div %e, %tb
  return %y
)",
     R"(
  %m = reduce %x {kind = max, axes = [1]}
  %mb = broadcast %m {dims = [3, 5], map = [0]}
  %d = sub %x, %mb
  %e = exp %d
  %t = reduce %e {kind = sum, axes = [1]}
  %tb = broadcast %t {dims = [3, 5], map = [0]}
  %y = div %e, %tb
  return %y
)"},
    {"AttentionReassociated", "%q: f32[2, 3, 7, 4], %k: f32[2, 3, 9, 4], %v: f32[2, 3, 9, 5]", R"(
  %s = dot %q, %k {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3]}
  %y = dot %s, %v {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2]}
  return %y
)",
     R"(
  %t = dot %k, %v {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [2], rhs_contract = [2]}
  %y = dot %q, %t {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2]}
  return %y
)"},
    {"TraceOfThreeProducts", "%a: f32[2, 3], %b: f32[3, 4], %c: f32[4, 2]", R"(
  %p = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %s = dot %p, %c {lhs_contract = [0, 1], rhs_contract = [1, 0]}
  return %s
)",
     R"(
  %p = dot %b, %c {lhs_contract = [1], rhs_contract = [0]}
  %s = dot %a, %p {lhs_contract = [0, 1], rhs_contract = [1, 0]}
  return %s
)"},
    {"DiagonalOfAProduct", "%a: f32[2, 3], %b: f32[3, 2]", R"(
  %t = transpose %b {permutation = [1, 0]}
  %p = mul %a, %t
  %s = reduce %p {kind = sum, axes = [1]}
  return %s
)",
     R"(
  %s = dot %a, %b {lhs_batch = [0], rhs_batch = [1], lhs_contract = [1], rhs_contract = [0]}
  return %s
)"},
    {"DiagonalBetweenProducts", "%a: f32[2, 3], %d: f32[3], %b: f32[3, 4]", R"(
  %e = broadcast %d {dims = [2, 3], map = [1]}
  %s = mul %a, %e
  %y = dot %s, %b {lhs_contract = [1], rhs_contract = [0]}
  return %y
)",
     R"(
  %e = broadcast %d {dims = [3, 4], map = [0]}
  %s = mul %b, %e
  %y = dot %a, %s {lhs_contract = [1], rhs_contract = [0]}
  return %y
)"},
    {"SumOfAllOfAProduct", "%a: f32[2, 3], %b: f32[3, 4]", R"(
  %y = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %s = reduce %y {kind = sum, axes = [0, 1]}
  return %s
)",
     R"(
  %l = reduce %a {kind = sum, axes = [0]}
  %r = reduce %b {kind = sum, axes = [1]}
  %s = dot %l, %r {lhs_contract = [0], rhs_contract = [0]}
  return %s
)"},
    {"TransposedConvAsAProduct", "%x: f32[1, 3, 5, 4], %w: f32[6, 3, 2, 2]", R"(
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], input_dilation = [2, 2]}
  return %y
)",
     R"(
  %r = reverse %w {axes = [2, 3]}
  %d = dot %r, %x {lhs_contract = [1], rhs_contract = [1]}
  %t = transpose %d {permutation = [3, 0, 4, 1, 5, 2]}
  %y = reshape %t {dims = [1, 6, 10, 8]}
  return %y
)"},
    {"BranchesReparameterized",
     "%x: f32[1, 3, 5, 6], %v: f32[2, 3, 3, 3], %u: f32[2, 3, 1, 1], %s: f32[2], %t: f32[2], %a: "
     "f32[2], %b: f32[2]",
     R"(
  %p = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %sb = broadcast %s {dims = [1, 2, 5, 6], map = [1]}
  %ps = mul %p, %sb
  %ab = broadcast %a {dims = [1, 2, 5, 6], map = [1]}
  %y = add %ps, %ab
  %q = conv %x, %u
  %tb = broadcast %t {dims = [1, 2, 5, 6], map = [1]}
  %qt = mul %q, %tb
  %bb = broadcast %b {dims = [1, 2, 5, 6], map = [1]}
  %z = add %qt, %bb
  %r = add %y, %z
  return %r
)",
     R"(
  %0 = constant 0 : f32[]
  %sb = broadcast %s {dims = [2, 3, 3, 3], map = [0]}
  %vs = mul %v, %sb
  %tb = broadcast %t {dims = [2, 3, 1, 1], map = [0]}
  %ut = mul %u, %tb
  %e = pad %ut, %0 {low = [0, 0, 1, 1], high = [0, 0, 1, 1]}
  %k = add %vs, %e
  %c = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1]}
  %d = add %a, %b
  %db = broadcast %d {dims = [1, 2, 5, 6], map = [1]}
  %r = add %c, %db
  return %r
)"},
    {"InputAsABranch",
     "%x: f32[1, 3, 5, 6], %v: f32[3, 3, 3, 3], %s: f32[3], %a: f32[3], %b: f32[3]",
     R"(
  %p = conv %x, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %ab = broadcast %a {dims = [1, 3, 5, 6], map = [1]}
  %y = add %p, %ab
  %sb = broadcast %s {dims = [1, 3, 5, 6], map = [1]}
  %q = mul %x, %sb
  %bb = broadcast %b {dims = [1, 3, 5, 6], map = [1]}
  %z = add %q, %bb
  %r = add %z, %y
  return %r
)",
     R"(
  %i = iota {dtype = f32, dims = [3, 3], axis = 0}
  %j = iota {dtype = f32, dims = [3, 3], axis = 1}
  %d = compare %i, %j {direction = eq}
  %0 = constant 0 : f32[]
  %b0 = broadcast %0 {dims = [3, 3], map = []}
  %b1 = broadcast %s {dims = [3, 3], map = [0]}
  %e = select %d, %b1, %b0
  %f = reshape %e {dims = [3, 3, 1, 1]}
  %g = pad %f, %0 {low = [0, 0, 1, 1], high = [0, 0, 1, 1]}
  %k = add %v, %g
  %c = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1]}
  %ab = add %a, %b
  %cb = broadcast %ab {dims = [1, 3, 5, 6], map = [1]}
  %r = add %c, %cb
  return %r
)"},
};

class Derive : public testing::TestWithParam<Derivation> {};

TEST_P(Derive, FollowsFromTheRules) { EXPECT_TRUE(derives(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Rules, Derive, testing::ValuesIn(kDerivations),
                         [](const auto& at) { return at.param.name; });

TEST(Derivations, AreNotOfWhatIsFalse) {
  EXPECT_FALSE(derives({"", "%a: f32[2, 3], %b: f32[3, 2]", R"(
  %y = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  return %y
)",
                        R"(
  %y = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %t = transpose %y {permutation = [1, 0]}
  return %t
)"}));
}

}  // namespace
}  // namespace hone::HONE_FILE
