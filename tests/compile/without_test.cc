#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "rewrite/passes.h"
#include "tests/base/share_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

Result<std::vector<Tensor>> run_without(const Graph& graph, std::vector<std::string> passes,
                                        std::span<const Tensor> inputs) {
  static const Target target = host_target().value();
  static const std::shared_ptr<Team> team = Team::create({.threads = 1}).value();
  CompileOptions options = {.team = team};
  options.plan.threads = 1;
  options.prepare.without = std::move(passes);
  Compilation compilation(graph, target, options);
  const std::shared_ptr<const Executable> code = HONE_TRY(compilation.executable());
  return code->run(inputs);
}

TEST(Without, EachOptionalPassAndAllOfThemModelsComputeTheSame) {
  std::vector<std::vector<std::string>> choices = {{}};
  for (const Pass& pass : all_passes()) {
    if (pass.use != PassUse::optional) continue;
    choices.push_back({std::string(pass.name)});
    choices[0].emplace_back(pass.name);
  }
  uint64_t number = 0;
  for (std::string_view model : {"mlp", "squeezenet", "lstm"}) {
    const Graph graph = build_zoo_model(model, {.size = ZooSize::tiny}).value();
    const std::vector<Tensor> inputs = random_inputs(graph, 0).value();
    const std::vector<Tensor> want = run_without(graph, {}, inputs).value();
    for (const std::vector<std::string>& passes : choices) {
      if (!tested::in_share(number++, 12)) continue;
      SCOPED_TRACE(testing::Message() << model << " " << testing::PrintToString(passes));
      const Result<std::vector<Tensor>> got = run_without(graph, passes, inputs);
      ASSERT_TRUE(got.ok()) << got.error().to_string();
      for (int64_t i = 0; i < want[0].elements(); ++i)
        ASSERT_NEAR(want[0].real_at(i), (*got)[0].real_at(i), 1e-4);
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
