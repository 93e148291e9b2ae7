#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text_table.h"
#include "ir/derivative.h"
#include "ir/text.h"
#include "tests/grad/grad_testing.h"
#include "zoo/random/random_graph.h"

// Every op of the table, on random applications: derivative, forward against backward, and second
// derivative.

namespace hone::HONE_FILE {
namespace {

constexpr double kTolerance = 1e-6;

// The observations of an op.
struct Seen {
  int checked = 0;
  int kinks = 0;      // no derivative at that very point
  int constant = 0;   // nothing real changes
  int seconds = 0;    // second derivatives checked
  std::string error;  // without a derivative
};

bool is_close(double actual, double expected, double size) {
  return std::abs(actual - expected) <= kTolerance * std::max(1.0, size);
}

// Its derivative is zero by definition, which differences do not see.
bool stops_gradients(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::stop_gradient) return true;
    for (const GraphRef& region : graph.regions(n))
      if (stops_gradients(*region)) return true;
  }
  return false;
}

// One random application.
class Trial {
 public:
  Trial(Opcode opcode, uint64_t seed, Seen& seen) : seen_(seen) {
    const Result<Graph> plain = in_f64(random_graph(
        {.seed = seed, .min_steps = 1, .max_steps = 1, .max_elements = 200, .first = opcode}));
    if (plain.ok()) graph_ = with_loss(*plain, seed);
    if (!graph_) return;
    inputs_ = differentiable_inputs(*graph_);
    loss_ = graph_->outputs().size() - 1;
    values_ = random_graph_inputs(*graph_, seed);
    direction_ = random_direction(*graph_, inputs_, seed + 2);
  }

  void run(bool with_second) {
    if (!graph_ || !any(inputs_) || stops_gradients(*graph_) ||
        !changing_outputs(*graph_, inputs_)[loss_]) {
      ++seen_.constant;
      return;
    }
    leave_out_jumps();
    Result<Graph> derived = grad(*graph_, static_cast<uint32_t>(loss_), inputs_);
    if (!derived.ok()) {
      seen_.error = derived.error().to_string();
      return;
    }
    const std::vector<Tensor> gradients = gradients_of(*derived, loss_ + 1);
    const Product back = product(gradients, direction_);
    check_forward(back);
    const Slope slope = measured_slope(*graph_, loss_, values_, direction_);
    if (!slope.is_smooth) {
      ++seen_.kinks;
      return;
    }
    ++seen_.checked;
    EXPECT_TRUE(is_close(back.value, slope.value, back.size))
        << back.value << " is not " << slope.value << "\n"
        << print(*graph_) << print(*derived);
    if (with_second) check_second(*derived);
  }

 private:
  // Inputs whose only ways to the loss are steps.
  void leave_out_jumps() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i]) continue;
      Mask one(inputs_.size(), false);
      one[i] = true;
      if (changing_outputs(*graph_, one)[loss_]) continue;
      inputs_[i] = false;
      direction_[i] = Tensor();
    }
  }

  std::vector<Tensor> gradients_of(const Graph& derived, size_t first) const {
    std::vector<Tensor> outputs = evaluated(derived, values_);
    return {outputs.begin() + static_cast<std::ptrdiff_t>(first), outputs.end()};
  }

  void check_forward(const Product& back) {
    Mask outputs(loss_ + 1, false);
    outputs[loss_] = true;
    Result<Graph> linearized = linearize(*graph_, inputs_, outputs);
    ASSERT_TRUE(linearized.ok()) << linearized.error().to_string();
    std::vector<Tensor> values = values_;
    for (const Tensor& tangent : direction_)
      if (tangent) values.push_back(tangent);
    const double forward = evaluated(*linearized, values).back().real_at(0);
    EXPECT_NEAR(forward, back.value, 1e-9 * std::max(1.0, back.size)) << print(*graph_);
  }

  void check_second(const Graph& derived) {
    const std::optional<Graph> again = with_loss(derived, 5);
    const size_t loss = again->outputs().size() - 1;
    Result<Graph> second = grad(*again, static_cast<uint32_t>(loss), inputs_);
    if (!second.ok() && second.error().code() == ErrorCode::unsupported) return;
    ASSERT_TRUE(second.ok()) << second.error().to_string() << print(*again);
    const Product back = product(gradients_of(*second, loss + 1), direction_);
    const Slope slope = measured_slope(*again, loss, values_, direction_);
    if (!slope.is_smooth) return;
    ++seen_.seconds;
    EXPECT_TRUE(is_close(back.value, slope.value, back.size))
        << "second derivative: " << back.value << " is not " << slope.value << "\n"
        << print(*graph_);
  }

  Seen& seen_;
  std::optional<Graph> graph_;
  Mask inputs_;
  size_t loss_ = 0;
  std::vector<Tensor> values_;
  std::vector<Tensor> direction_;
};

// True if reals come out that change with reals that go in.
bool changes(Opcode opcode) {
  const OpDef& def = op_def(opcode);
  if (def.derivative != nullptr) return !def.derivative->is_constant;
  return opcode != Opcode::quantize && (def.expand != nullptr || !def.regions.empty());
}

std::string verdict(const Seen& seen) {
  if (!seen.error.empty()) return "refused";
  return seen.checked > 0 ? "derivative" : "constant";
}

void check_op(Opcode opcode, int trials, TextTable& table) {
  Seen seen;
  std::string error;
  for (int i = 0; i < trials; ++i) {
    SCOPED_TRACE(std::string(name(opcode)) + ", seed " + std::to_string(i));
    seen.error.clear();
    Trial(opcode, static_cast<uint64_t>(i), seen).run(i % 4 == 0);
    if (!seen.error.empty()) error = seen.error;
  }
  seen.error = error;
  table.add_row({std::string(name(opcode)), verdict(seen), std::to_string(seen.checked),
                 std::to_string(seen.seconds), std::to_string(seen.kinks),
                 std::to_string(seen.constant)});
  EXPECT_EQ(seen.checked > 0, changes(opcode)) << name(opcode);
  if (opcode == Opcode::scatter) {
    EXPECT_NE(error.find("combines by"), std::string::npos) << error;
    EXPECT_GT(seen.checked, 0);
  } else if (!op_def(opcode).regions.empty() && !error.empty()) {  // of an op in a region
    EXPECT_NE(error.find("has no derivative"), std::string::npos) << error;
  } else if (opcode != Opcode::bitcast) {  // mostly from one width to another one
    EXPECT_EQ(error, "") << name(opcode);
  }
}

void check_ops(int trials) {
  TextTable table("llrrrr", {"op", "", "checked", "second", "kinks", "constant"});
  for (int i = 0; i < kOpcodeCount; ++i)
    if (const Opcode opcode = static_cast<Opcode>(i); !is_leaf(opcode))
      check_op(opcode, trials, table);
  std::printf("%s\n", table.to_string().c_str());
}

TEST(Derivative, OfEveryOpIsThatOfDifferences) { check_ops(72); }
TEST(Derivative, DISABLED_SweepOfEveryOp) { check_ops(1000); }

}  // namespace
}  // namespace hone::HONE_FILE
