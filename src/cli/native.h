#pragma once

#include <vector>

#include "cli/arguments.h"
#include "session/native.h"
#include "session/source.h"

// The options of native code.

namespace hone::cli {

class Console;

// With -O3: find_rewrites, by the prices and the cache of the options.
Status take_level(NativeOptions& options, const Arguments& arguments, Console& console);
// The same at any level. margin: of what is cheaper by a smaller part, nothing is taken.
Status take_rewrites(NativeOptions& options, double margin, const Arguments& arguments,
                     Console& console);

// Where nothing else is said, what is compiled is kept in the user's folder, or nowhere.
enum class DefaultCache : uint8_t { user, none };
// The cache that --cache names; null: nothing is kept. A folder that is not safe is an error if the
// user named it. One that cannot be written to costs time, nothing else.
Result<std::unique_ptr<CompileCache>> cache_of(const Arguments& arguments, DefaultCache fallback,
                                               Console& console);

// The log's best plans and first times, where nobody says how to plan; or the command says itself
// which plan. `timed`: long kernels of which the log has no times are timed, too.
enum class LogPlans : uint8_t { taken, timed, left };
// --target, --isa, --threads, --plan, --plan-seed, --without, --cache.
Result<NativeOptions> native_options(const Arguments& arguments, Console& console,
                                     DefaultCache cache = DefaultCache::user,
                                     LogPlans plans = LogPlans::taken);
// The same for a target in place of this machine; without --target and --isa.
Result<NativeOptions> native_options_for(const Target& target, const Arguments& arguments,
                                         Console& console, DefaultCache cache, LogPlans plans);
// The same for each level of instructions that code is wanted for, the best first: several with
// --isa all. GPUs of --target's list come first, with sm_80, and the CPU behind them; if a plan is
// given, its GPU alone.
Result<std::vector<NativeOptions>> native_levels(const Arguments& arguments, Console& console);
// The plans of a file, in place of those of --plan; for as many threads as --threads says.
Status take_plans(NativeOptions& options, const std::string& file, std::string_view option,
                  const Arguments& arguments, Console& console);

// The graphs of a model with the sizes that the command line says, and the plans that it gives.
struct GivenGraphs {
  Model model;
  std::vector<const Graph*> graphs;      // of the model
  std::vector<const PlacedPlan*> plans;  // by graph, of the options; null: none
  // "# segment 2 of 3: body"; empty: there is but one.
  std::string heading(size_t i) const;
};
Result<GivenGraphs> given_graphs(const Source& source, const NativeOptions& options,
                                 Console& console);

// For what is not compiled: an error if one of them is given.
Status refuse_native_options(const Arguments& arguments);

}  // namespace hone::cli
