#include <filesystem>

#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/place_subject.h"
#include "lab/models/judge_placement.h"
#include "lab/models/train_fusion.h"
#include "lab/models/train_placement.h"
#include "session/native.h"

namespace hone::cli {

namespace {

// The policy of --policy, or the one that comes with hone.
Result<PlacePolicy> policy_of(const Arguments& arguments) {
  if (arguments.given("policy")) return PlacePolicy::read(arguments.text("policy"));
  if (const PlacePolicy* const policy = shipped_policy()) return *policy;
  return unsupported("this build has no policy of placement")
      .with_hint("'hone train placement -o FILE' makes one, for --policy FILE");
}

Status train_head(const Arguments& arguments, Console& console) {
  for (const std::string_view option : {"graph", "nodes", "devices"})
    if (arguments.given(option))
      return usage_error("--{} does not go with --fusions, which learns from drawn graphs", option);
  const std::string output = arguments.text("output");
  const PlacePolicy policy = HONE_TRY(policy_of(arguments));
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  FusionTraining options;
  options.steps = arguments.given("steps") ? arguments.integer("steps") : options.steps;
  options.save_every = arguments.integer("save-every");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.folder = output + ".training";
  options.compile = compile_options(native, nullptr);
  options.compile.cancel = &console.cancel();
  options.told = [&console](std::string_view line) { console.say(line); };
  std::error_code failed;
  if (arguments.given("anew")) std::filesystem::remove_all(options.folder, failed);
  const Console::Keeping keeping(console);
  const std::vector<NamedTensor> weights = HONE_TRY(train_fusion(policy, options));
  HONE_TRY(FusionHead::write(output, weights, policy));
  std::filesystem::remove_all(options.folder, failed);
  console.note("wrote {}", output);
  return {};
}

Status eval_joint(const Arguments& arguments, Console& console) {
  const PlacePolicy policy = HONE_TRY(policy_of(arguments));
  std::optional<FusionHead> head;
  if (arguments.given("head")) {
    const std::string file = arguments.text("head");
    const std::string text = HONE_TRY(read_file(file, int64_t{1} << 24));
    head = HONE_TRY(FusionHead::parse(std::as_bytes(std::span(text)), file, policy));
  }
  // The head that comes with hone is of the policy that does.
  const PlacePolicy& asked = arguments.given("policy") ? policy : *shipped_policy();
  console.write(verdicts_text(
      HONE_TRY(judge_joint(asked, head ? &*head : nullptr,
                           {.graphs = arguments.integer("graphs"),
                            .nodes = arguments.integer("nodes"),
                            .trials = arguments.integer("trials"),
                            .seed = static_cast<uint64_t>(arguments.integer("seed")),
                            .cancel = &console.cancel()}))));
  return {};
}

// Room for the edges of the largest problems: four of each node, and more where graphs have more.
int64_t edges_for(std::span<const PlaceProblem> graphs, int64_t nodes) {
  double most = 4;
  for (const PlaceProblem& graph : graphs) {
    size_t uses = 0;
    for (const PlaceTensor& tensor : graph.tensors) uses += tensor.users.size();
    const auto mean = static_cast<double>(uses) / static_cast<double>(graph.nodes.size());
    most = std::max(most, 1.5 * mean);
  }
  return static_cast<int64_t>(most * static_cast<double>(nodes));
}

// The graphs to learn from, and the weights to begin with.
Status take_lessons(PlacementTraining& options, const Arguments& arguments, Console& console) {
  constexpr auto kSegment = static_cast<int64_t>(PolicyShape::kSegment);
  const int64_t segments = (arguments.integer("nodes") + kSegment - 1) / kSegment;
  options.sizes.nodes = segments * kSegment;
  options.sizes.devices = arguments.integer("devices");
  if (arguments.given("policy"))
    options.first_weights = HONE_TRY(PlacePolicy::read(arguments.text("policy"))).weights();
  for (const std::string& path : arguments.list("graph"))
    options.graphs.push_back(HONE_TRY(place_lesson(path, arguments, console)));
  options.sizes.edges = edges_for(options.graphs, options.sizes.nodes);
  return {};
}

}  // namespace

Status cmd_train_placement(const Arguments& arguments, Console& console) {
  namespace fs = std::filesystem;
  if (!arguments.given("output")) return usage_error("-o names the file of the policy");
  if (arguments.given("fusions")) return train_head(arguments, console);
  const std::string output = arguments.text("output");
  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  PlacementTraining options;
  options.steps = arguments.integer("steps");
  options.save_every = arguments.integer("save-every");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  HONE_TRY(take_lessons(options, arguments, console));
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
  if (arguments.given("joint")) return eval_joint(arguments, console);
  if (arguments.given("head")) return usage_error("--head is of --joint");
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
