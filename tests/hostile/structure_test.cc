#include "tests/hostile/hostile_testing.h"

// Names and places: what gives a value, who calls whom, how deep.

namespace hone::hostile::HONE_FILE {
namespace {

const std::string kX = input_text("x", {"2", "3"});
const std::string kY = output_text("y");

std::string function_text(std::string_view name, std::string_view nodes,
                          std::string_view signature = "input: 'a' output: 'b'") {
  return fmt::format(
      "functions {{ name: '{}' domain: 'own' {} opset_import {{ version: 17 }} "
      "opset_import {{ domain: 'own' version: 1 }} {} }} ",
      name, signature, nodes);
}
std::string call_text(std::string_view function, std::string_view inputs,
                      std::string_view outputs) {
  return node_text(function, inputs, outputs, "domain: 'own'");
}

TEST(HostileStructure, CyclesAndNames) {
  expect_errors({
      {"a node reads what it gives", model_text(kX + kY + node_text("Add", "x y", "y")), kBad,
       "value 'y' ... h.onnx, node 'y' (Add)"},
      {"two nodes read each other",
       model_text(kX + kY + node_text("Add", "x b", "a") + node_text("Add", "x a", "b")), kBad,
       "value 'b' ... h.onnx, node 'a' (Add)"},
      {"value", model_text(kX + kY + node_text("Relu", "m", "y") + node_text("Relu", "x", "m")),
       kRuns, "evaluated"},
      {"nothing gives it", model_text(kX + kY + node_text("Relu", "ghost", "y")), kBad,
       "value 'ghost'"},
      {"nothing gives the output", model_text(kX + kY + node_text("Relu", "x", "z")), kBad,
       "value 'y'"},
      {"two nodes give it",
       model_text(kX + kY + node_text("Relu", "x", "y") + node_text("Neg", "x", "y")), kBad,
       "value 'y' is given twice (h.onnx, node 'y' (Neg))"},
      {"one node gives it twice", model_text(kX + kY + node_text("Split", "x", "y y")), kBad,
       "value 'y' is given twice"},
      {"a node gives an input", model_text(kX + kY + node_text("Relu", "x", "x")), kBad,
       "value 'x' is given twice"},
      {"two inputs of one name", model_text(kX + kX + kY + node_text("Relu", "x", "y")), kBad,
       "'x' is given twice"},
      {"two initializers of one name",
       model_text(kY + integers_text("w", {1}) + integers_text("w", {2}) +
                  node_text("Identity", "w", "y")),
       kBad, "value 'w' is given twice"},
      {"an initializer without a name",
       model_text(kX + kY + integers_text("", {1}) + node_text("Relu", "x", "y")), kBad,
       "initializer ... name"},
      {"an input without a name",
       model_text(kX + kY + input_text("", {"2"}) + node_text("Relu", "x", "y")), kBad,
       "input ... name"},
      {"an output without a name", model_text(kX + output_text("") + node_text("Relu", "x", "y")),
       kBad, "output ... name"},
      {"the same output twice", model_text(kX + kY + kY + node_text("Relu", "x", "y")), kBad,
       "output 'y' is given twice"},
      {"a missing operand", model_text(kX + kY + node_text("Add", "x", "y")), kBad,
       "operand 1 is missing"},
      {"an empty operand", model_text(kX + kY + node_text("Relu", "-", "y")), kBad,
       "operand 0 is missing"},
      {"more results than the op has", model_text(kX + kY + node_text("Relu", "x", "y z w")),
       kUnsupported, "result 1 ('z')"},
      {"an op that does not exist", model_text(kX + kY + node_text("Frobnicate", "x", "y")),
       kUnsupported, "op Frobnicate is not known"},
      {"a node without an op", model_text(kX + kY + node_text("", "x", "y")), kUnsupported,
       "is not known"},
      {"a domain that is not imported",
       model_text(kX + kY + node_text("Relu", "x", "y", "domain: 'else'")), kBad,
       "domain 'else' ... opset"},
  });
}

TEST(HostileStructure, Opsets) {
  std::string graph = "graph { name: 'g' " + kX + kY + node_text("Relu", "x", "y") + "}";
  expect_errors({
      {"none", "ir_version: 8 " + graph, kBad, "opset"},
      {"0", "ir_version: 8 opset_import { version: 0 } " + graph, kBad, "versions start at 1"},
      {"negative", "ir_version: 8 opset_import { version: -9223372036854775808 } " + graph, kBad,
       "versions start at 1"},
      {"from the future", "ir_version: 8 opset_import { version: 9223372036854775807 } " + graph,
       kUnsupported, "opset 9223372036854775807 of domain 'ai.onnx' is newer"},
      {"two of one domain",
       "ir_version: 8 opset_import { version: 17 } opset_import { domain: 'ai.onnx' version: 9 } " +
           graph,
       kBad, "opsets 17 and 9 of domain 'ai.onnx' are both imported"},
      {"no IR version", "opset_import { version: 17 } " + graph, kBad, "ir_version"},
      {"an IR version below all", "ir_version: -1 opset_import { version: 17 } " + graph,
       kUnsupported, "IR version -1"},
      {"no graph", "ir_version: 8 opset_import { version: 17 }", kBad, "model ... graph"},
  });
}

TEST(HostileStructure, Functions) {
  std::string call = kX + kY + call_text("f", "x", "y");
  expect_errors({
      {"calls itself", model_text(call, function_text("f", call_text("f", "a", "b"))), kBad,
       "function 'own.f' calls itself"},
      {"call each other",
       model_text(call, function_text("f", call_text("g", "a", "b")) +
                            function_text("g", call_text("f", "a", "b"))),
       kBad, "function 'own.f' calls itself"},
      {"calls itself in a branch",
       model_text(call, function_text(
                            "f", node_text("If", "a", "b",
                                           graph_text("then_branch", call_text("f", "a", "t"))))),
       kBad, "function 'own.f' calls itself"},
      {"a cycle that nothing calls",
       model_text(kX + kY + node_text("Relu", "x", "y"),
                  function_text("f", call_text("f", "a", "b"))),
       kBad, "function 'own.f' calls itself"},
      {"two of one name",
       model_text(call, function_text("f", node_text("Relu", "a", "b")) +
                            function_text("f", node_text("Neg", "a", "b"))),
       kBad, "function 'own.f' is given twice"},
      {"too many operands",
       model_text(kX + kY + call_text("f", "x x", "y"),
                  function_text("f", node_text("Relu", "a", "b"))),
       kBad, "function ... 1 inputs and 1 outputs ... 2 and 1"},
      {"too few operands",
       model_text(
           kX + kY + call_text("f", "x", "y"),
           function_text("f", node_text("Add", "a c", "b"), "input: 'a' input: 'c' output: 'b'")),
       kBad, "operand 1 is missing"},
      {"sees a value of its caller",
       model_text(call, function_text("f", node_text("Add", "a x", "b"))), kBad, "value 'x'"},
      {"does not give its result",
       model_text(call, function_text("f", node_text("Relu", "a", "c"))), kBad, "value 'b'"},
      {"two inputs of one name",
       model_text(
           kX + kY + call_text("f", "x x", "y"),
           function_text("f", node_text("Add", "a a", "b"), "input: 'a' input: 'a' output: 'b'")),
       kBad, "value 'a' is given twice"},
      {"its output is an input that is left out",
       model_text(
           kX + kY + call_text("f", "- x", "y"),
           function_text("f", node_text("Relu", "c", "d"), "input: 'a' input: 'c' output: 'a'")),
       kBad, "node 'y' (f)"},
      {"a reference to an attribute outside of a function",
       model_text(kX + kY +
                  node_text("LeakyRelu", "x", "y",
                            "attribute { name: 'alpha' ref_attr_name: 'z' type: FLOAT }")),
       kBad, "attribute 'alpha' ... 'z' ... function"},
      {"opsets that contradict each other",
       model_text(call,
                  function_text("f", node_text("Relu", "a", "b") + " opset_import { version: 9 }")),
       kBad, "opsets 17 and 9"},
  });
}

std::string chain_of_functions(int count, int calls) {
  std::string functions;
  for (int i = 0; i < count; ++i) {
    std::string nodes, value = "a";
    for (int k = 0; k < calls; ++k) {
      std::string next = k + 1 == calls ? "b" : fmt::format("v{}", k);
      nodes += i + 1 == count ? node_text("Neg", value, next)
                              : call_text(fmt::format("f{}", i + 1), value, next);
      value = next;
    }
    functions += function_text(fmt::format("f{}", i), nodes);
  }
  return model_text(kX + kY + call_text("f0", "x", "y"), functions);
}

TEST(HostileStructure, FunctionsThatExpandExponentially) {
  ImportOptions options;
  options.limits.nodes = 20'000;
  expect_error(chain_of_functions(40, 2), kLimit, "20000 nodes, functions and subgraphs", options);
  expect_error(chain_of_functions(100, 1), kLimit, "functions ... 64");
}

// A node of an If whose branches are `content` and its negation.
std::string if_text(const std::string& content, const std::string& result,
                    const std::string& output) {
  return node_text("If", "c", output,
                   graph_text("then_branch", content + output_text(result)) +
                       graph_text("else_branch", node_text("Neg", "x", output + "_n") +
                                                     output_text(output + "_n")));
}

std::string nested_ifs(int depth, std::string innermost) {
  std::string content = std::move(innermost), result = "v0";
  for (int i = 0; i < depth; ++i) {
    std::string output = fmt::format("v{}", i + 1);
    content = if_text(content, result, output);
    result = output;
  }
  return model_text(kX + input_text("c", {}, 9) + output_text(result) + content);
}

TEST(HostileStructure, Nesting) {
  // The innermost branch needs a segment of its own, so that no level is a region.
  std::string cut =
      node_text("NonZero", "x", "nz") + node_text("Cast", "nz", "v0", int_text("to", 1));
  ImportOptions options;
  options.limits.nodes = 20'000;
  EXPECT_TRUE(import_text(nested_ifs(3, node_text("Relu", "x", "v0"))).ok());
  EXPECT_TRUE(import_text(nested_ifs(3, cut)).ok());
  EXPECT_TRUE(import_text(nested_ifs(18, cut), options).ok());  // not 2^18 imports of the inside
  expect_error(nested_ifs(70, node_text("Relu", "x", "v0")), kLimit, "64");
}

std::string nested_loops(int depth) {
  std::string content = node_text("Concat", "v0 v0", "w0", int_text("axis", 0)), result = "w0";
  for (int i = 0; i < depth; ++i) {
    std::string body =
        content + node_text("Identity", fmt::format("go{}", i), fmt::format("n{}", i)) +
        input_text(fmt::format("i{}", i), {}, 7) + input_text(fmt::format("go{}", i), {}, 9) +
        fmt::format("input {{ name: 'v{}' type {{ tensor_type {{ elem_type: 1 }} }} }} ", i) +
        output_text(fmt::format("n{}", i)) + output_text(result);
    std::string output = fmt::format("w{}", i + 1);
    content =
        node_text("Loop", fmt::format("t - {}", i + 1 == depth ? "x" : fmt::format("v{}", i + 1)),
                  output, graph_text("body", body));
    result = output;
  }
  return model_text(kX + input_text("t", {}, 7) + output_text(result) + content);
}

// Each level imports its body until sizes settle, and that of the level below as often.
TEST(HostileStructure, NestedLoopsWhoseSizesChange) {
  ImportOptions options;
  options.limits.nodes = 20'000;
  ExpectQuick quick;
  for (int depth : {2, 8, 14, 20}) (void)import_text(nested_loops(depth), options);
}

TEST(HostileStructure, Subgraphs) {
  std::string c = input_text("c", {}, 9);
  auto if_node = [&](const std::string& yes, const std::string& no) {
    return model_text(
        kX + c + kY +
        node_text("If", "c", "y", graph_text("then_branch", yes) + graph_text("else_branch", no)));
  };
  std::string relu = node_text("Relu", "x", "r") + output_text("r");
  auto loop = [&](const std::string& body, std::string_view operands = "t - x") {
    return model_text(kX + kY + integers_text("t", {3}, true) +
                      node_text("Loop", operands, "y", graph_text("body", body)));
  };
  std::string head = input_text("i", {}, 7) + input_text("go", {}, 9) + input_text("v", {"2", "3"});
  expect_errors({
      {"a branch without results", if_node(relu, ""), kBad, "branch ... 0 results ... 1"},
      {"a branch with inputs", if_node(relu, input_text("z", {"2"}) + relu), kBad,
       "branch ... 1 inputs"},
      {"a branch that is not taken reads itself",
       if_node(node_text("Add", "x y", "r") + output_text("r"), relu), kBad, "value 'y'"},
      {"a branch gives a value twice", if_node(relu, node_text("Neg", "x", "r") + relu), kBad,
       "value 'r' is given twice"},
      {"branches of different types",
       if_node(relu, node_text("Cast", "x", "r", int_text("to", 7)) + output_text("r")),
       kUnsupported, "element type and rank"},
      {"no else branch",
       model_text(kX + c + kY + node_text("If", "c", "y", graph_text("then_branch", relu))), kBad,
       "attribute 'else_branch' is missing"},
      {"a condition that is no bool",
       model_text(kX + kY +
                  node_text("If", "x", "y",
                            graph_text("then_branch", relu) + graph_text("else_branch", relu))),
       kBad, "condition ... f32[2, 3] ... bool"},
      {"a body that lacks an input",
       loop(input_text("i", {}, 7) + node_text("Relu", "x", "r") + output_text("r")), kBad,
       "body ... 1 inputs and 1 outputs"},
      {"two inputs of the body of one name",
       loop(input_text("i", {}, 7) + input_text("i", {}, 9) + input_text("v", {"2", "3"}) +
            output_text("i") + output_text("v")),
       kBad, "'i' is given twice"},
      {"a condition of the body that is no bool", loop(head + output_text("i") + output_text("v")),
       kBad, "must be one bool"},
      {"a carried value changes its type",
       loop(head + node_text("Cast", "v", "w", int_text("to", 7)) + output_text("go") +
            output_text("w")),
       kUnsupported, "element type and rank"},
      {"a trip count that is no number",
       model_text(kX + kY +
                  node_text("Loop", "x - x", "y",
                            graph_text("body", head + output_text("go") + output_text("v")))),
       kBad, "trip count ... f32[2, 3] ... integer"},
      {"more scanned inputs than there are",
       model_text(
           kX + kY +
           node_text("Scan", "x", "y", int_text("num_scan_inputs", 5) + graph_text("body", relu))),
       kBad, "operands are scanned"},
      {"fewer than no scanned inputs",
       model_text(kX + kY +
                  node_text("Scan", "x", "y",
                            int_text("num_scan_inputs", INT64_MIN + 1) + graph_text("body", relu))),
       kBad, "operands are scanned"},
  });
}

// The import does not run a loop, even one of 2^62 iterations.
TEST(HostileStructure, EndlessLoops) {
  std::string body = input_text("i", {}, 7) + input_text("go", {}, 9) +
                     input_text("v", {"2", "3"}) + node_text("Neg", "v", "w") + output_text("go") +
                     output_text("w");
  for (int64_t trips : {int64_t{1} << 62, INT64_MAX}) {
    expect_error(model_text(kX + kY + integers_text("t", {trips}, true) +
                            node_text("Loop", "t - x", "y", graph_text("body", body))),
                 kLimit, "iterations");
  }
  // All of whose values are constants.
  std::string w = reals_text("k", {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_error(model_text(w + kY + integers_text("t", {int64_t{1} << 40}, true) +
                          node_text("Loop", "t - k", "y", graph_text("body", body))),
               kLimit, "iterations");
  expect_error(model_text(w + output_text("z") + integers_text("t", {int64_t{1} << 40}, true) +
                          node_text("Loop", "t - k", "y", graph_text("body", body)) +
                          node_text("Cast", "y", "s", int_text("to", 7)) +
                          node_text("Reshape", "s", "z", "")),
               kBad, "operand 1 is missing");
  // Stacks what no memory holds.
  std::string stacks = body + output_text("w");
  expect_error(
      model_text(kX + kY + output_text("all") + integers_text("t", {int64_t{1} << 36}, true) +
                 node_text("Loop", "t - x", "y all", graph_text("body", stacks))),
      kLimit, "");
}

// Each NonZero ends a segment, and the node after it has to wait for the sizes.
TEST(HostileStructure, ManyDeferrals) {
  std::string nodes, value = "x";
  for (int i = 0; i < 60; ++i) {
    nodes += node_text("NonZero", value, fmt::format("p{}", i));
    nodes += node_text("Squeeze", fmt::format("p{}", i), fmt::format("q{}", i));
    nodes += node_text("Unsqueeze", fmt::format("q{} a", i), fmt::format("r{}", i));
    value = fmt::format("r{}", i);
  }
  ImportOptions options;
  options.limits.nodes = 20'000;
  ExpectQuick quick;
  (void)import_text(model_text(input_text("x", {"'n'", "'m'"}) + integers_text("a", {0}) +
                               output_text(value) + nodes),
                    options);
}

}  // namespace
}  // namespace hone::hostile::HONE_FILE
