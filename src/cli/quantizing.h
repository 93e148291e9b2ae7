#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "cli/batches.h"
#include "quantize/choose.h"
#include "session/source.h"

// The options that choose levels of precision (kLevelOptions): those of `hone quantize`, and of the
// commands that compile what it would write.

namespace hone::cli {

class Console;

Result<quantize::QuantizeOptions> quantize_options(const Arguments& arguments);

// The arrays of --data, and how to run graphs. The options and the console outlive it.
struct Samples {
  quantize::Batches batches;
  quantize::QuantizeMachine machine;
};
Result<Samples> samples_of(const Graph& graph, const Arguments& arguments, int64_t seed,
                           const NativeOptions& native, Console& console);
// A choice by them.
struct Levels {
  Samples samples;
  quantize::QuantizeResult result;
};
Result<Levels> chosen_levels(const Graph& graph, const quantize::QuantizeOptions& options,
                             const Arguments& arguments, int64_t seed, const NativeOptions& native,
                             Console& console);
// The model as one graph whose sizes are numbers.
Result<Model> model_to_measure(const Source& source, std::string_view who, Console& console);

double share_of(int64_t part, int64_t all);  // 0 of none
// "error 0.004, largest difference 0.1, equal best answers 99.0 %"
std::string difference_text(const quantize::Difference& difference);

// A model whose layers have the levels of --error or --drop.
struct Lowered {
  Source source;
  std::string said;  // the levels and the measured error, in one line
};
// Nothing if neither is given; the console is told.
Result<std::optional<Lowered>> lowered_source(const Source& source, const Arguments& arguments,
                                              int64_t seed, const NativeOptions& native,
                                              Console& console);
// A plan keeps the line as a comment.
std::string with_levels(const std::string& said, std::string plan);
std::optional<std::string> levels_of_plan(std::string_view plan);

}  // namespace hone::cli
