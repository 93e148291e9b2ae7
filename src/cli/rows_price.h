#pragma once

#include "cli/rows_train.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that judges learned prices.

namespace hone::cli::rows {

inline constexpr std::string_view kEvalPriceText =
    "Models learn from a part of the sets, and are judged by the rest. A first table is of "
    "processors that are left out, a second one of families of programs, a third one of "
    "both. They are the tables of 'hone eval', by kind of kernel. A set that was made "
    "without a probe gets the rates that its kernels imply. --plans says how fast "
    "models are here for one of their default plan by the analytic price. It plans by the "
    "learned price that comes with hone and by the one of this machine, if there is one, "
    "and tunes (docs/learned-prices.md).";
inline constexpr Positional kEvalPriceData[] = {
    {.name = "SET",
     .take = Take::file,
     .doc = "folders of data sets, of three processors at least, or of two with --on",
     .optional = true,
     .repeats = true}};
inline constexpr Option kEvalPriceOwn[] = {
    {.name = "on",
     .take = Take::text,
     .value = "SETS",
     .doc = "sets of processors that no model learns from, separated by commas; without it each "
            "processor is left out in turn"},
    {.name = "parts",
     .take = Take::integer,
     .value = "N",
     .doc = "parts of the programs, families together, each of which is left out in turn",
     .fallback = "3",
     .low = 2,
     .high = 32},
    {.name = "without-target", .doc = "networks that see no features of the target, to compare"},
    {.name = "plans",
     .take = Take::text,
     .value = "MODEL",
     .doc = "measure the default plans of this model here, on one thread: a file or zoo:NAME",
     .repeats = true},
    {.name = "model",
     .take = Take::file,
     .value = "FILE",
     .doc =
         "plan by the learned price of this file, in place of the one that comes with hone, with "
         "--plans"},
    {.name = "seconds",
     .take = Take::integer,
     .value = "S",
     .doc = "seconds for the plans of a model and a price, with --plans",
     .fallback = "6",
     .low = 1,
     .high = 3600},
    {.name = "tuned",
     .take = Take::integer,
     .value = "S",
     .doc = "seconds to tune each model, with --plans; 0: none is tuned",
     .fallback = "60",
     .low = 0,
     .high = 86'400},
    json_option("write what was found as data; - is the standard output, without the table")};
inline constexpr auto kEvalPrice = joined(kEvalPriceOwn, kTrainCostNetworks, kTrainCostNative);
inline constexpr Example kEvalPriceExamples[] = {
    {"hone eval price zen3.set xeon.set", "families left out; of three processors one, too"},
    {"hone eval price --plans zoo:squeezenet --plans model.onnx --tuned 0",
     "how fast plans are here"}};

}  // namespace hone::cli::rows
