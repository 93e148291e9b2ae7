#include "tune/calibration_set.h"

#include <map>

#include "ir/text.h"
#include "plan/edit.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone {
namespace {

// Images have their channels last, as the planner likes them.
#define HONE_IMAGES "order = \"b01f_01io->b01f\""

constexpr CalibrationRow kRows[] = {
    {"dot", "%x: f32[64, 256], %w: f32[256, 128]) -> f32[64, 128]",
     "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}"},
    {"dot", "%x: f32[196, 384], %w: f32[384, 384]) -> f32[196, 384]",
     "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}"},
    {"dot", "%x: f32[128, 512], %w: f32[1024, 512]) -> f32[128, 1024]",
     "%h = dot %x, %w {lhs_contract = [1], rhs_contract = [1]}\n%y = max %h, 0"},
    {"dot", "%x: f32[12, 128, 64], %w: f32[12, 128, 64]) -> f32[12, 128, 128]",
     "%y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}"},
    {"dot", "%x: f32[49, 768], %w: f32[768, 256]) -> f32[49, 256]",
     "%h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n%y = tanh %h"},
    {"dot", "%x: f32[8, 197, 64], %w: f32[8, 64, 197]) -> f32[8, 197, 197]",
     "%y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}"},
    {"gemv", "%x: f32[1, 1024], %w: f32[1024, 512]) -> f32[1, 512]",
     "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}"},
    {"gemv", "%x: f32[1, 512], %w: f32[1000, 512]) -> f32[1, 1000]",
     "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [1]}"},
    {"gemv", "%x: f32[1, 256], %w: f32[256, 768]) -> f32[1, 768]",
     "%h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n%y = logistic %h"},
    {"conv", "%x: f32[1, 28, 28, 64], %w: f32[3, 3, 64, 64]) -> f32[1, 28, 28, 64]",
     "%y = conv %x, %w {" HONE_IMAGES ", pad_low = [1, 1], pad_high = [1, 1]}"},
    {"conv", "%x: f32[1, 14, 14, 128], %w: f32[3, 3, 128, 128]) -> f32[1, 14, 14, 128]",
     "%h = conv %x, %w {" HONE_IMAGES ", pad_low = [1, 1], pad_high = [1, 1]}\n%y = max %h, 0"},
    {"conv", "%x: f32[1, 7, 7, 256], %w: f32[3, 3, 256, 128]) -> f32[1, 7, 7, 128]",
     "%y = conv %x, %w {" HONE_IMAGES ", pad_low = [1, 1], pad_high = [1, 1]}"},
    {"conv", "%x: f32[1, 56, 56, 32], %w: f32[3, 3, 32, 48]) -> f32[1, 28, 28, 48]",
     "%y = conv %x, %w {" HONE_IMAGES ", stride = [2, 2], pad_low = [0, 0], pad_high = [1, 1]}"},
    {"conv", "%x: f32[1, 112, 112, 3], %w: f32[7, 7, 3, 32]) -> f32[1, 56, 56, 32]",
     "%y = conv %x, %w {" HONE_IMAGES ", stride = [2, 2], pad_low = [2, 2], pad_high = [3, 3]}"},
    {"conv", "%x: f32[1, 17, 17, 96], %w: f32[1, 7, 96, 96]) -> f32[1, 17, 17, 96]",
     "%y = conv %x, %w {" HONE_IMAGES ", pad_low = [0, 3], pad_high = [0, 3]}"},
    {"conv 1x1", "%x: f32[1, 28, 28, 128], %w: f32[1, 1, 128, 256]) -> f32[1, 28, 28, 256]",
     "%y = conv %x, %w {" HONE_IMAGES "}"},
    {"conv 1x1", "%x: f32[1, 14, 14, 576], %w: f32[1, 1, 576, 96]) -> f32[1, 14, 14, 96]",
     "%y = conv %x, %w {" HONE_IMAGES "}"},
    {"conv 1x1", "%x: f32[1, 56, 56, 24], %w: f32[1, 1, 24, 144]) -> f32[1, 56, 56, 144]",
     "%h = conv %x, %w {" HONE_IMAGES "}\n%y = max %h, 0"},
    {"depthwise", "%x: f32[1, 28, 28, 192], %w: f32[3, 3, 1, 192]) -> f32[1, 28, 28, 192]",
     "%y = conv %x, %w {" HONE_IMAGES ", pad_low = [1, 1], pad_high = [1, 1], groups = 192}"},
    {"depthwise", "%x: f32[1, 14, 14, 576], %w: f32[3, 3, 1, 576]) -> f32[1, 14, 14, 576]",
     "%h = conv %x, %w {" HONE_IMAGES
     ", pad_low = [1, 1], pad_high = [1, 1], groups = 576}\n%y = max %h, 0"},
    {"depthwise", "%x: f32[1, 14, 14, 240], %w: f32[5, 5, 1, 240]) -> f32[1, 14, 14, 240]",
     "%y = conv %x, %w {" HONE_IMAGES ", pad_low = [2, 2], pad_high = [2, 2], groups = 240}"},
    {"pool", "%x: f32[1, 56, 56, 64]) -> f32[1, 28, 28, 64]",
     "%y = window_reduce %x {kind = max, window = [1, 3, 3, 1], stride = [1, 2, 2, 1], "
     "pad_high = [0, 1, 1, 0]}"},
    {"pool", "%x: f32[1, 28, 28, 96]) -> f32[1, 28, 28, 96]",
     "%y = window_reduce %x {kind = sum, window = [1, 3, 3, 1], pad_low = [0, 1, 1, 0], "
     "pad_high = [0, 1, 1, 0]}"},
    {"pool", "%x: f32[1, 28, 28, 128]) -> f32[1, 14, 14, 128]",
     "%y = window_reduce %x {kind = max, window = [1, 2, 2, 1], stride = [1, 2, 2, 1]}"},
    {"rows", "%x: f32[1536, 128]) -> f32[1536, 128]", "%y = softmax %x {axis = 1}"},
    {"rows", "%x: f32[128, 768], %a: f32[768], %b: f32[768]) -> f32[128, 768]",
     "%y = layer_norm %x, %a, %b {axis = 1}"},
    {"rows", "%x: f32[49, 1280]) -> f32[1280]", "%y = reduce %x {kind = sum, axes = [0]}"},
    {"rows", "%x: f32[512, 512]) -> f32[512]", "%y = reduce %x {kind = max, axes = [1]}"},
    {"rows", "%x: f32[197, 384], %a: f32[384], %b: f32[384]) -> f32[197, 384]",
     "%y = layer_norm %x, %a, %b {axis = 1}"},
    {"rows", "%x: f32[600, 197]) -> f32[600, 197]", "%y = softmax %x {axis = 1}"},
    {"elementwise", "%x: f32[128, 1024], %z: f32[128, 1024]) -> f32[128, 1024]", "%y = add %x, %z"},
    {"elementwise", "%x: f32[128, 1536]) -> f32[128, 1536]", "%y = gelu %x"},
    {"elementwise", "%x: f32[128, 12, 64]) -> f32[12, 128, 64]",
     "%y = transpose %x {permutation = [1, 0, 2]}"},
    {"elementwise", "%x: f32[512, 384]) -> f32[384, 512]",
     "%y = transpose %x {permutation = [1, 0]}"},
    {"elementwise", "%x: f32[1, 28, 28, 116]) -> f32[1, 116, 28, 28]",
     "%y = transpose %x {permutation = [0, 3, 1, 2]}"},
    {"elementwise", "%x: f32[196, 512], %z: f32[196, 512]) -> f32[196, 512]",
     "%l = logistic %x\n%h = mul %x, %l\n%y = mul %h, %z"},
};

Result<CalibrationKernel> kernel_of(const CalibrationRow& row, const Target& target,
                                    const Cost& cost, int64_t threads) {
  const std::string text =
      fmt::format("graph @g({} {{\n{}\nreturn %y\n}}\n", row.signature, row.lines);
  const Graph graph = HONE_TRY(prepare(HONE_TRY(parse_graph(text))));
  Plan plan;
  plan.threads = threads;
  plan = HONE_TRY(complete(graph, std::move(plan), target, cost));
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  const FrameEditor& frame = editor->main();
  CalibrationKernel best{.kind = row.kind, .facts = {}, .planned = {}};
  double most = -1;
  for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
    if (!frame.planned().steps[s].is_kernel) continue;
    auto facts = std::make_shared<const KernelFacts>(frame.body(s), frame.kernel(s).hash);
    const Schedule& schedule = plan.schedule.at(facts->hash);
    const double seconds = cost.kernel(facts, threads)->seconds(schedule);
    if (seconds <= most) continue;
    most = seconds;
    best.facts = std::move(facts);
    best.planned = schedule;
  }
  HONE_CHECK(best.facts != nullptr, "{} has no kernel", text);
  return best;
}

}  // namespace

std::span<const CalibrationRow> calibration_rows() { return kRows; }

Result<std::vector<CalibrationKernel>> calibration_kernels(const Target& target, const Cost& cost,
                                                           int64_t threads) {
  std::vector<CalibrationKernel> all;
  std::map<std::string_view, int> of_kind;
  for (const CalibrationRow& row : kRows) {
    all.push_back(HONE_TRY(kernel_of(row, target, cost, threads)));
    all.back().is_held_out = ++of_kind[row.kind] % 3 == 0;
  }
  return all;
}

}  // namespace hone
