#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/front/onnx_file.h"

// Random files with open sizes, nodes that do not take all of them, branches that fit some, and
// outputs that are one value. A file read with open sizes computes the same as one read with
// numbers, and takes the same numbers.

namespace hone::onnx_testing::HONE_FILE {
namespace {

// A row of nodes from x: f32[1, 2, n] and y: f32[1, 2, m].
class RandomFile {
 public:
  explicit RandomFile(uint64_t seed) : rng_(seed) {
    file_.graph.input("x", DType::f32, {"1", "2", "n"});
    file_.graph.input("y", DType::f32, {"1", "2", "m"});
    file_.graph.input("flag", DType::boolean, {});
    std::string x = step(file_.graph, "x"), y = rng_.chance(0.5) ? step(file_.graph, "y") : "y";
    if (rng_.chance(0.4)) x = branches(x);
    if (rng_.chance(0.5)) x = step(file_.graph, x);
    if (rng_.chance(0.6)) x = joined(x, y);
    const std::string same = node(file_.graph, "Identity", {x});
    file_.graph.outputs({x, same});
    if (rng_.chance(0.3)) file_.graph.outputs({node(file_.graph, "Identity", {"y"})});
  }
  const File& file() const { return file_; }

 private:
  std::string node(GraphText& graph, std::string_view op, const Strings& inputs,
                   const Attributes& attributes = {}) {
    const std::string result = fmt::format("v{}", count_++);
    graph.node(op, inputs, {result}, attributes).set_name(result);
    return result;
  }
  std::string numbers(GraphText& graph, const Ints& values) {
    const std::string name = fmt::format("c{}", count_++);
    graph.constant(name, integers({static_cast<int64_t>(values.size())}, values));
    return name;
  }
  std::string weights(GraphText& graph, const Ints& dims) {
    const std::string name = fmt::format("w{}", count_++);
    int64_t elements = 1;
    for (int64_t dim : dims) elements *= dim;
    Numbers values;
    for (int64_t i = 0; i < elements; ++i)
      values.push_back(static_cast<double>(rng_.between(-2, 2)));
    graph.constant(name, reals(dims, values));
    return name;
  }

  std::string step(GraphText& graph, const std::string& x) {
    const int64_t size = rng_.between(1, 5), stride = rng_.between(1, 2);
    const int64_t low = rng_.between(0, 1), high = rng_.between(0, 1);
    switch (rng_.below(8)) {
      case 0:
        return node(graph, "Conv", {x, weights(graph, {2, 2, size})},
                    {{"strides", Ints{stride}}, {"pads", Ints{low, high}}});
      case 1:
        return node(graph, "MaxPool", {x},
                    {{"kernel_shape", Ints{size}}, {"strides", Ints{stride}}});
      case 2: {
        const std::string flat = node(graph, "Reshape", {x, numbers(graph, {1, -1, size})});
        return node(graph, "Reshape", {flat, numbers(graph, {1, 2, -1})});
      }
      case 3: return node(graph, "Add", {x, weights(graph, {1, 1, size})});
      case 4:
        return node(graph, "Slice",
                    {x, numbers(graph, {low}), numbers(graph, {-high - 1}), numbers(graph, {2})});
      case 5:
        return node(graph, "Pad", {x, numbers(graph, {0, 0, size, 0, 0, low})},
                    {{"mode", "reflect"}});
      case 6: {
        const std::string rows = node(graph, "Transpose", {x}, {{"perm", Ints{0, 2, 1}}});
        return node(graph, "MatMul", {x, rows});
      }
      default: return node(graph, "Neg", {x});
    }
  }

  // An If on the flag, or on a size that is 1: then the ranks differ.
  std::string branches(const std::string& x) {
    const bool is_of_size = rng_.chance(0.4);
    std::string condition = "flag";
    if (is_of_size) {
      const std::string shape = node(file_.graph, "Shape", {x});
      const std::string size = node(file_.graph, "Gather", {shape, numbers(file_.graph, {2})});
      const std::string one = numbers(file_.graph, {1});
      condition = node(file_.graph, "Equal", {size, one});
    }
    const std::string axis = numbers(file_.graph, {2});
    const std::string result = fmt::format("v{}", count_++);
    onnx::NodeProto& choice = file_.graph.node("If", {condition}, {result});
    GraphText yes = subgraph(choice, "then_branch"), no = subgraph(choice, "else_branch");
    yes.outputs({is_of_size ? node(yes, "Squeeze", {x, axis}) : step(yes, x)});
    no.outputs({is_of_size ? node(no, "Identity", {x}) : step(no, x)});
    if (!is_of_size) return result;
    return node(file_.graph, "Reshape", {result, numbers(file_.graph, {1, 2, -1})});
  }

  std::string joined(const std::string& x, const std::string& y) {
    if (rng_.chance(0.5)) return node(file_.graph, "Add", {x, y});
    return node(file_.graph, "Concat", {x, y}, {{"axis", rng_.between(1, 2)}});
  }

  Rng rng_;
  File file_;
  int count_ = 0;
};

struct Tally {
  int files = 0, open = 0, runs = 0;
};

std::vector<Tensor> inputs_for(int64_t n, int64_t m, bool flag) {
  const auto row = [](int64_t size) {
    Numbers values;
    for (int64_t i = 0; i < 2 * size; ++i) values.push_back(static_cast<double>(i % 7 - 3));
    return reals({1, 2, size}, values);
  };
  return {row(n), row(m), integers({}, {flag}, DType::boolean)};
}

void check(uint64_t seed, Tally& tally) {
  const RandomFile random(seed);
  const Result<Model> open = random.file().load();
  bool is_good = false;
  for (int64_t n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 12}) {
    for (int64_t m : {int64_t{1}, int64_t{4}, n}) {
      const bool flag = (n + m) % 2 == 0;
      const std::vector<Tensor> inputs = inputs_for(n, m, flag);
      const Result<Model> bound = random.file().load({.dims = {{"n", n}, {"m", m}}});
      const Result<std::vector<Tensor>> want =
          bound.ok() ? evaluate_model(*bound, inputs) : bound.error();
      is_good |= want.ok();
      // A size that depends on data, of which no sample fits: nothing can be said.
      const bool is_guessed = !bound.ok() && !bound.error().hint().empty();
      if (!open.ok() || is_guessed) continue;
      const Result<std::vector<Tensor>> got = evaluate_model(*open, inputs);
      const std::string where = fmt::format("seed {}, n = {}, m = {}", seed, n, m);
      ASSERT_EQ(got.ok(), want.ok())
          << where << ": " << (got.ok() ? want : got).error().to_string();
      if (!got.ok()) continue;
      ++tally.runs;
      ASSERT_EQ(got->size(), want->size()) << where;
      for (size_t i = 0; i < got->size(); ++i) {
        ASSERT_EQ((*got)[i].type(), (*want)[i].type()) << where;
        ASSERT_EQ(numbers((*got)[i]), numbers((*want)[i])) << where;
      }
    }
  }
  tally.files += is_good;
  tally.open += is_good && open.ok();
}

void check_seeds(uint64_t first, uint64_t count) {
  Tally tally;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed)
    check(seed, tally);
  // Nearly all files that run for some sizes are read with open ones.
  EXPECT_GT(tally.open * 10, tally.files * 9) << tally.open << " of " << tally.files;
  EXPECT_GT(tally.runs, static_cast<int>(count));
}

TEST(OnnxRandomSizes, OpenOnesComputeWhatNumbersDo) { check_seeds(0, 60); }

TEST(OnnxRandomSizes, DISABLED_SweepOpenOnesComputeWhatNumbersDo) { check_seeds(1000, 3000); }

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
