#include <gmock/gmock.h>

#include "ir/reference/evaluate_model.h"
#include "onnx_file.h"

// Values without a meaning, wherever their nodes stand.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;

// The error of a checked run: "" if all values have a meaning.
std::string said(const File& file, const std::vector<Tensor>& inputs, int64_t checks = 1) {
  ImportOptions options;
  options.checks = std::make_shared<OnnxChecks>();
  const Model model = file.model(options);
  EXPECT_EQ(options.checks->made, checks);
  EXPECT_TRUE(options.checks->unseen.empty());
  const size_t results = file.model().outputs.size();
  Result<std::vector<Tensor>> outputs = evaluate_model(model, inputs, {});
  if (!outputs.ok()) return outputs.error().to_string();
  const Status status = options.checks->take(*outputs);
  if (!status.ok()) return status.error().to_string();
  EXPECT_EQ(outputs->size(), results);
  return "";
}

Tensor flag(bool value) { return integers({}, {value}, DType::boolean); }

// One branch looks up row `i` of three, the other row `j` of a table that it computes.
File branches(bool has_segments) {
  File file;
  file.graph.input("flag", DType::boolean, {});
  file.graph.input("i", DType::i64, {});
  file.graph.input("j", DType::i64, {});
  file.graph.constant("table", reals({3}, {1, 2, 3}));
  onnx::NodeProto& node = file.graph.node("If", {"flag"}, {"y"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Gather", {"table", "i"}, {"a"});
  yes.outputs({"a"});
  GraphText no = subgraph(node, "else_branch");
  no.node("Gather", {"table", "j"}, {"b"});
  if (has_segments) {  // as the result has another size
    no.constant("dims", integers({1}, {2}));
    no.node("Expand", {"b", "dims"}, {"c"});
    yes.constant("one", integers({1}, {1}));
    yes.node("Reshape", {"a", "one"}, {"d"});
    yes.proto.mutable_output(0)->set_name("d");
  }
  no.outputs({has_segments ? "c" : "b"});
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxChecks, LookIntoTheBranchThatIsTaken) {
  for (bool has_segments : {false, true}) {
    const File file = branches(has_segments);
    EXPECT_EQ(file.model().segments.size() > 1, has_segments);
    const auto run = [&](bool yes, int64_t i, int64_t j) {
      return said(file, {flag(yes), integers({}, {i}), integers({}, {j})}, 2);
    };
    EXPECT_EQ(run(true, 2, 7), "");
    EXPECT_EQ(run(false, 7, -3), "");
    EXPECT_THAT(run(true, 7, 0), HasSubstr("element 0 is 7, want an index in -3..3 - 1"));
    EXPECT_THAT(run(false, 0, -4), HasSubstr("element 0 is -4"));
    EXPECT_THAT(run(false, 0, -4), HasSubstr("(Gather)"));
  }
}

// Looks up the iteration in three rows: the first one that is outside is told. A condition of the
// body makes a while loop of it, stacking alone a scan, what grows segments.
TEST(OnnxChecks, LookIntoEachIteration) {
  enum class Form { scan, loop, segments };
  for (Form form : {Form::scan, Form::loop, Form::segments}) {
    LoopFile file(form == Form::segments ? "" : "1");
    file.graph.constant("table", reals({3}, {1, 2, 3}));
    file.body.node("Gather", {"table", "i"}, {"row"});
    if (form == Form::segments)
      file.body.node("Concat", {"v_in", "v0"}, {"next"}, {{"axis", 0}});
    else
      file.body.node("Add", {"v_in", "row"}, {"next"});
    file.graph.constant("limit", integers({}, {100}));
    if (form == Form::scan)
      file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
    else
      file.body.node("Less", {"i", "limit"}, {"goes_on_out"});
    file.finish("goes_on_out", "next");
    EXPECT_EQ(said(file, {integers({}, {3})}), "");
    EXPECT_EQ(said(file, {integers({}, {0})}), "");
    EXPECT_THAT(said(file, {integers({}, {5})}),
                HasSubstr("element 0 is 3, want an index in -3..3 - 1"));
  }
}

TEST(OnnxChecks, LookIntoALoopWithoutACount) {
  File file;  // doubles i from 1 while it is below 100, and looks it up
  file.graph.input("i0", DType::i64, {});
  file.graph.input("table", DType::f32, {"70"});
  file.graph.constant("limit", integers({}, {100}));
  file.graph.node("Less", {"i0", "limit"}, {"is_below"});
  GraphText body = subgraph(file.graph.node("Loop", {"", "is_below", "i0"}, {"i"}), "body");
  body.input("n", DType::i64, {});
  body.input("c", DType::boolean, {});
  body.input("i_in", DType::i64, {});
  body.node("Gather", {"table", "i_in"}, {"row"});
  body.node("Add", {"i_in", "i_in"}, {"twice"});
  body.node("Less", {"twice", "limit"}, {"c_out"});
  body.outputs({"c_out", "twice"});
  file.graph.outputs({"i"});
  const Tensor table = reals({70}, Numbers(70, 1));
  EXPECT_EQ(said(file, {integers({}, {1}), table}), "");
  EXPECT_EQ(said(file, {integers({}, {100}), table}), "");
  EXPECT_THAT(said(file, {integers({}, {80}), table}), HasSubstr("element 0 is 80"));
}

// A branch in a scan, beside a check of the graph itself.
TEST(OnnxChecks, LookIntoWhatIsNested) {
  File file;
  file.graph.input("i", DType::i64, {"4"});
  file.graph.input("flag", DType::boolean, {});
  file.graph.constant("table", reals({3}, {1, 2, 3}));
  onnx::NodeProto& scan = file.graph.node("Scan", {"i"}, {"rows"}, {{"num_scan_inputs", 1}});
  GraphText body = subgraph(scan, "body");
  body.input("one", DType::i64, {});
  onnx::NodeProto& node = body.node("If", {"flag"}, {"row"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Gather", {"table", "one"}, {"a"});
  yes.outputs({"a"});
  GraphText no = subgraph(node, "else_branch");
  no.constant("b", reals({}, {0}));
  no.outputs({"b"});
  body.outputs({"row"});
  file.graph.node("Gather", {"rows", "i"}, {"y"});
  file.graph.outputs({"y"});
  EXPECT_EQ(said(file, {integers({4}, {0, 1, 2, -1}), flag(true)}, 2), "");
  EXPECT_THAT(said(file, {integers({4}, {0, 3, 3, -1}), flag(true)}, 2),
              HasSubstr("element 0 is 3, want an index in -3..3 - 1"));
  EXPECT_EQ(said(file, {integers({4}, {0, 3, 3, -1}), flag(false)}, 2), "");
  EXPECT_THAT(said(file, {integers({4}, {0, 9, 3, -1}), flag(false)}, 2),
              HasSubstr("element 1 is 9, want an index in -4..4 - 1"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
