#include "tune/kernel_uses.h"

#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "cost/analytic.h"
#include "cost/program_price.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

// A launch in a loop counts once for each of its steps.
TEST(KernelUses, WeighAsMuchAsTheLaunchesOfARun) {
  const Target target = host_target().value();
  const AnalyticCost cost(target);
  for (std::string_view model : {"mlp", "lstm", "gnmt"}) {
    SCOPED_TRACE(model);
    CompileOptions options;
    options.plan.threads = 1;
    Compilation compilation(build_zoo_model(model, {.size = ZooSize::tiny}).value(), target,
                            options);
    const Program& program = **compilation.program();
    double weight = 0;
    for (const KernelUse& use : kernel_uses(program, cost)) weight += use.weight;
    const double launches = price(program, cost)->launches;
    EXPECT_GT(weight, 0.9 * launches);  // the rest has no schedule to choose
    EXPECT_LT(weight, (1 + 1e-9) * launches);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
