#include <filesystem>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "lab/models/judge_placement.h"
#include "lab/models/train_placement.h"
#include "session/native.h"

namespace hone::cli {

Status cmd_train_placement(const Arguments& arguments, Console& console) {
  namespace fs = std::filesystem;
  if (!arguments.given("output")) return usage_error("-o names the file of the policy");
  const std::string output = arguments.text("output");
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  PlacementTraining options;
  options.steps = arguments.integer("steps");
  options.save_every = arguments.integer("save-every");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.folder = output + ".training";
  options.compile = compile_options(native, nullptr);
  options.compile.cancel = &console.cancel();
  options.told = [&console](std::string_view line) { console.say(line); };
  std::error_code failed;
  if (arguments.given("anew")) fs::remove_all(options.folder, failed);
  const Console::Keeping keeping(console);
  const std::vector<NamedTensor> weights = HONE_TRY(train_placement(options));
  HONE_TRY(PlacePolicy::write(output, weights));
  fs::remove_all(options.folder, failed);
  console.note("wrote {}", output);
  return {};
}

Status cmd_eval_placement(const Arguments& arguments, Console& console) {
  const std::string file = arguments.text("policy");
  std::optional<PlacePolicy> given;
  if (!file.empty()) given = HONE_TRY(PlacePolicy::read(file));
  const PlacePolicy* const policy = given ? &*given : shipped_policy();
  if (policy == nullptr)
    return unsupported("this build has no policy of placement")
        .with_hint("'hone train placement -o FILE' makes one, for --policy FILE");
  const PlacementTrial trial = {.graphs = arguments.integer("graphs"),
                                .nodes = arguments.integer("nodes"),
                                .trials = arguments.integer("trials"),
                                .seed = static_cast<uint64_t>(arguments.integer("seed")),
                                .cancel = &console.cancel()};
  if (arguments.given("chips")) {
    const ChipVerdicts verdicts = HONE_TRY(judge_chips(*policy, arguments.integer("chips"), trial));
    console.write(verdicts_text(verdicts));
    console.note("{} of {} problems are compared: some search found a placement there",
                 verdicts.compared, verdicts.count);
    return {};
  }
  console.write(verdicts_text(HONE_TRY(judge_placement(*policy, trial))));
  return {};
}

}  // namespace hone::cli
