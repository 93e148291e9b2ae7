#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "cli/writable.h"
#include "formats/npz.h"
#include "ir/summary.h"
#include "zoo/digits.h"
#include "zoo/spec.h"

namespace hone::cli {

Status cmd_zoo_list(const Arguments&, Console& console) {
  TextTable table("lrrrll", {"model", "parameters", "MACs", "nodes", "inputs", "summary"});
  for (const ZooEntry& entry : zoo_entries()) {
    const Graph graph = HONE_TRY(build_zoo_model(entry.name));
    const GraphSummary summary = HONE_TRY(summarize(graph));
    std::vector<std::string> inputs;
    for (size_t i = 0; i < std::min<size_t>(summary.inputs.size(), 2); ++i)
      inputs.push_back(summary.inputs[i].type.to_string());
    if (summary.inputs.size() > 2)
      inputs.push_back(fmt::format("{} more", summary.inputs.size() - 2));
    table.add_row({std::string(entry.name), format_count(static_cast<double>(summary.parameters)),
                   format_count(summary.macs), std::to_string(summary.nodes), join(inputs, ", "),
                   std::string(entry.summary)});
  }
  console.write(table.to_string());
  return {};
}

Status cmd_zoo_export(const Arguments& arguments, Console& console) {
  const std::string name = arguments.text("NAME");
  const std::string path =
      arguments.given("output") ? arguments.text("output") : fmt::format("{}.hone", name);
  HONE_TRY(check_writable(path));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  ZooOptions options;
  for (const ZooOption& option : kZooOptions)
    if (arguments.given(option.name))
      HONE_TRY(set_option(options, option, fmt::format("--{}", option.name),
                          arguments.text(option.name)));
  return write_model(model_of(HONE_TRY(build_zoo_model(name, options))), path, console, onnx);
}

namespace {

constexpr int64_t kTestDigits = 2000, kRuns = 16, kRowsOfARun = 128;

Status write_digits(const std::filesystem::path& path, int64_t count, uint64_t seed) {
  // The file's name is a part of the seed: no two files have the same images.
  DigitSet set = draw_digits(count, hash_string(path.filename().native(), seed));
  const NamedTensor arrays[] = {{"image", std::move(set.images)}, {"label", std::move(set.labels)}};
  return write_npz(path, arrays);
}

}  // namespace

Status cmd_zoo_digits(const Arguments& arguments, Console& console) {
  const std::filesystem::path folder =
      arguments.given("output") ? arguments.text("output") : "digits";
  const int64_t samples = arguments.integer("samples");
  const auto seed = static_cast<uint64_t>(arguments.integer("seed"));
  HONE_TRY(make_folders(folder / "runs"));
  HONE_TRY(write_digits(folder / "train.npz", samples, seed));
  HONE_TRY(write_digits(folder / "test.npz", kTestDigits, seed));
  for (int64_t i = 0; i < kRuns; ++i)
    HONE_TRY(write_digits(folder / "runs" / fmt::format("{:02}.npz", i), kRowsOfARun, seed));
  console.note("wrote {}: {} images to learn from, {} to test, {} runs of {}", folder.native(),
               samples, kTestDigits, kRuns, kRowsOfARun);
  return {};
}

}  // namespace hone::cli
