#pragma once

#include "cli/rows_price.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the commands
// that train and judge models of whole plans.

namespace hone::cli::rows {

inline constexpr std::string_view kTrainPlansText =
    "Networks on the graph of a plan's tasks, and of the memory that they use, learn what "
    "the sum of prices of kernels misses. With a learned price of the target, the planner "
    "makes a few plans then and takes one by it, if choices for programs that networks had "
    "not seen gained. A second call goes on with training (docs/learned-prices.md).";
inline constexpr std::string_view kEvalPlansText =
    "Trains as 'hone train plans' does and keeps nothing. For each program, a network that "
    "has not seen it orders its plans. The table has the share of pairs in the right order "
    "by the sum of prices and by it, and the gains of its choice and of the fastest plan.";

inline constexpr Positional kPlansOfSets[] = {
    {.name = "SET",
     .take = Take::file,
     .doc = "folders of data sets of one target with plans: 'hone dataset build --task plans'",
     .repeats = true}};
inline constexpr Option kPlanNetworks[] = {
    {.name = "members",
     .take = Take::integer,
     .value = "N",
     .doc = "networks of a model, each of which lacks a part of the programs",
     .fallback = "4",
     .low = 2,
     .high = 64},
    {.name = "epochs",
     .take = Take::integer,
     .value = "N",
     .doc = "how often a network sees all pairs of plans",
     .fallback = "60",
     .low = 1,
     .high = 10'000},
    seed_option("seed of first weights, parts and orders")};
// Steps run on one thread, so that sums have one order.
inline constexpr Option kTrainPlansNative[] = {kNativeCacheOption};
inline constexpr Option kTrainPlansOwn[] = {
    output_option("write the model there, and not into the user's folder"),
    {.name = "anew", .doc = "ignore earlier training, and begin with the first step"}};
inline constexpr auto kTrainPlans = joined(kTrainPlansOwn, kPlanNetworks, kTrainPlansNative);
inline constexpr Example kTrainPlansExamples[] = {
    {"hone train plans set", "commands that plan rank their best plans from then on"},
    {"hone train plans set -o my.plans", "a file, to look at"}};
inline constexpr Option kEvalPlansOwn[] = {
    json_option("write what was found as data; - is the standard output, without the table")};
inline constexpr auto kEvalPlans = joined(kEvalPlansOwn, kPlanNetworks, kTrainPlansNative);
inline constexpr Example kEvalPlansExamples[] = {
    {"hone eval plans set", "choices of networks for programs that they have not seen"}};

}  // namespace hone::cli::rows
