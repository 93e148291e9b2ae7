#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "measure/timing.h"
#include "prove/generate.h"
#include "session/echo.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// Each with the reason as a comment.
std::string text_of(const std::vector<Rejected>& rejected) {
  std::string text;
  for (const Rejected& one : rejected)
    text += fmt::format("{}# {}\n{}", text.empty() ? "" : "\n", one.why, print(one.rule));
  return text;
}

std::string table_of(const GenerateCounts& counts) {
  TextTable table("lr");
  const auto row = [&](std::string_view what, uint64_t count) {
    table.add_row({std::string(what), fmt::format("{}", count)});
  };
  row("terms made", counts.made);
  row("different terms", counts.distinct);
  row("candidates", counts.candidates);
  row("  the same by other names", counts.renamed);
  row("  true of any common part", counts.common);
  row("  implied by smaller rules", counts.implied);
  row("  not told by the left side", counts.unbound);
  row("  rejected", counts.rejected);
  row("rules", counts.accepted);
  row("  proved for all sizes", counts.proved);
  row("  with a guard that was found", counts.guarded);
  if (counts.spilled > 0) row("bytes that memory did not hold", counts.spilled);
  return table.to_string();
}

// Where the texts of a family go; empty: nowhere.
struct Files {
  std::string rules, proofs, rejected, state;
};

// The options for all families.
GenerateOptions options_of(const Arguments& arguments, Progress& progress, Console& console) {
  GenerateOptions options;
  options.limits.max_terms = static_cast<size_t>(arguments.integer("max-terms"));
  options.limits.memory = static_cast<size_t>(arguments.integer("memory")) << 20;
  std::error_code ignored;
  options.limits.spill = fs::temp_directory_path(ignored);
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.threads = arguments.given("jobs") ? static_cast<int>(arguments.integer("jobs"))
                                            : static_cast<int>(std::thread::hardware_concurrency());
  options.max_candidates = static_cast<size_t>(arguments.integer("max-candidates"));
  options.guards = arguments.given("guards");
  options.progress = &progress;
  options.cancel = &console.cancel();
  return options;
}

Result<GenerateCounts> generate(const Family& family, GenerateOptions options, const Files& files,
                                Console& console) {
  options.prefix = std::string(family.name);
  std::optional<GenerateState> state;
  if (!files.state.empty()) {
    const uint64_t search = hash_string(
        fmt::format("{} {} {} {} {} {} {}", family.name, family.inputs, family.ops,
                    options.limits.max_ops, options.seed, options.guards, options.guard_ops));
    state.emplace(HONE_TRY(GenerateState::open(files.state, search)));
    if (state->known() > 0)
      console.note("{}: {} blocks of candidates are known", family.name, state->known());
    options.state = &*state;
  }
  const Generated generated = HONE_TRY(generate_rules(HONE_TRY(term_ops(family)), options));
  HONE_TRY(write_text(files.rules, print(generated.rules), console));
  if (!files.proofs.empty()) HONE_TRY(write_text(files.proofs, generated.proofs, console));
  if (!files.rejected.empty())
    HONE_TRY(write_text(files.rejected, text_of(generated.rejected), console));
  return generated.counts;
}

std::vector<std::string> row_of(std::string_view family, std::string ops,
                                const GenerateCounts& counts, double seconds, int64_t bytes) {
  std::vector<std::string> row = {std::string(family), std::move(ops)};
  for (uint64_t count : {counts.made, counts.distinct, counts.candidates, counts.accepted,
                         counts.proved, counts.guarded, counts.rejected})
    row.push_back(fmt::format("{}", count));
  row.push_back(fmt::format("{:.1f}", seconds));
  row.push_back(fmt::format("{}", bytes >> 20));
  return row;
}

void add(GenerateCounts& all, const GenerateCounts& counts) {
  all.made += counts.made;
  all.distinct += counts.distinct;
  all.candidates += counts.candidates;
  all.accepted += counts.accepted;
  all.proved += counts.proved;
  all.guarded += counts.guarded;
  all.rejected += counts.rejected;
}

// Each family with the ops that it is declared with, its files in a folder.
Status generate_all(const Arguments& arguments, Console& console) {
  const std::string output = arguments.text("output");
  if (output.empty() || output == "-")
    return usage_error("--all writes several files").with_hint("-o FOLDER");
  for (std::string_view option : {"FAMILY", "proofs", "rejected", "state"})
    if (arguments.given(option))
      return usage_error("{} does not go with --all", option)
          .with_hint("-o FOLDER gets the rules, proofs, rejected candidates and states of all");
  const fs::path folder = output;
  HONE_TRY(make_folders(folder));
  const std::unique_ptr<Progress> progress = console.progress();
  GenerateOptions options = options_of(arguments, *progress, console);
  TextTable table("lrrrrrrrrrr", {"family", "ops", "made", "distinct", "candidates", "rules",
                                  "proved", "guarded", "rejected", "s", "MiB"});
  GenerateCounts all;
  double seconds = 0;
  int64_t bytes = 0;
  for (const Family& family : families()) {
    const std::string base = (folder / family.name).string();
    options.limits.max_ops = family.max_ops;
    if (arguments.given("ops"))
      options.limits.max_ops = std::min(family.max_ops, static_cast<int>(arguments.integer("ops")));
    options.guard_ops = std::max(1, options.limits.max_ops - 1);
    PeakMemory::start();
    const auto began = std::chrono::steady_clock::now();
    const GenerateCounts counts = HONE_TRY(generate(family, options,
                                                    {.rules = base + ".rules",
                                                     .proofs = base + ".proofs",
                                                     .rejected = base + ".rejected",
                                                     .state = base + ".state"},
                                                    console));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const int64_t peak = PeakMemory::bytes();
    table.add_row(
        row_of(family.name, fmt::format("{}", options.limits.max_ops), counts, took.count(), peak));
    add(all, counts);
    seconds += took.count();
    bytes = std::max(bytes, peak);
  }
  table.add_row(row_of("all", "", all, seconds, bytes));
  console.write(table.to_string());
  return {};
}

}  // namespace

Status cmd_rules_generate(const Arguments& arguments, Console& console) {
  if (arguments.given("list")) {
    TextTable table("lrl", {"family", "ops", "terms of"});
    for (const Family& family : families())
      table.add_row(
          {std::string(family.name), fmt::format("{}", family.max_ops), std::string(family.doc)});
    console.write(table.to_string());
    return {};
  }
  if (arguments.given("all")) return generate_all(arguments, console);
  if (!arguments.given("FAMILY"))
    return usage_error("'hone rules generate' needs a FAMILY")
        .with_hint("'hone rules generate --list' lists them");
  const Family family = HONE_TRY(family_named(arguments.text("FAMILY")));
  const Files files = {.rules = arguments.text("output"),
                       .proofs = arguments.text("proofs"),
                       .rejected = arguments.text("rejected"),
                       .state = arguments.text("state")};
  const std::unique_ptr<Progress> progress = console.progress();
  GenerateOptions options = options_of(arguments, *progress, console);
  options.limits.max_ops = static_cast<int>(arguments.integer("ops"));
  const GenerateCounts counts = HONE_TRY(generate(family, options, files, console));
  console.say(trim(table_of(counts)));
  return {};
}

}  // namespace hone::cli
