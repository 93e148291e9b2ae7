#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the commands
// that search for plans.

namespace hone::cli::rows {

inline constexpr Option kTuneOwn[] = {
    budget_option("how long to search: 90s, 5m, 1h"),
    output_option("also write the plan there; - is the standard output"),
    seed_option("of the random numbers for inputs and searches"),
    {.name = "search",
     .take = Take::text,
     .value = "NAME",
     .doc = "how schedules are looked through (docs/search.md)",
     .fallback = "evolutionary"},
    {.name = "only",
     .take = Take::text,
     .value = "KINDS",
     .doc = "look at these decisions alone: schedules, layouts, groups (and chains) or threads; "
            "several with commas"},
    json_option("write what was found as data; - is the standard output, without the report")};
inline constexpr Option kTuneLog[] = {
    log_option("of measurements (see 'hone log')"),
    {.name = "no-log", .doc = "neither use nor keep what was measured before"}};
inline constexpr Option kTuneMemory[] = {kMemoryLimit};
inline constexpr Option kTuneNative[] = {
    kIsaOption,     kPricesOption,      kCostOption,          kThreadsOption,
    kWithoutOption, kNativeCacheOption, kRewriteBudgetOption, kAssumeRangeOption};
inline constexpr Option kTuneLevel[] = {kLevelOption};
inline constexpr auto kTune =
    joined(kTuneOwn, kTuneLog, kSizesOfInputs, kTuneMemory, kTuneNative, kTuneLevel);
inline constexpr Example kTuneExamples[] = {
    {"hone tune model.onnx", "three minutes; commands that compile take the plan from the log"},
    {"hone tune zoo:mobilenet_v2 --budget 30s --threads 1", "shorter, for one thread"},
    {"hone tune zoo:mlp --budget 10s -o mlp.plan", "the plan as a file"}};

// ---- calibrate ---------------------------------------------------------------------------------

inline constexpr Option kCalibrateOwn[] = {
    budget_option("how long to measure, 90s or 3m; a few kernels are measured in any case"),
    output_option("write the prices there, for --prices, and not into the user's folder; - is the "
                  "standard output"),
    seed_option("of the random numbers for inputs and schedules"),
    {.name = "threads",
     .take = Take::integer,
     .value = "N",
     .doc = "that work on a kernel",
     .fallback = "1",
     .low = 1,
     .high = Team::kMaxThreads}};
inline constexpr Option kCalibrateNative[] = {kIsaOption};
inline constexpr auto kCalibrate = joined(kCalibrateOwn, kTuneLog, kCalibrateNative);
inline constexpr Example kCalibrateExamples[] = {
    {"hone calibrate", "three minutes; commands use the prices if models are faster by them"},
    {"hone calibrate --isa avx2", "for code without AVX-512"},
    {"hone calibrate --budget 1m -o my.prices", "a file, for --prices"}};

// ---- compare -----------------------------------------------------------------------------------

inline constexpr Positional kCompareSubjects[] = {
    kModel[0],
    {.name = "PLAN_A",
     .take = Take::file,
     .doc =
         "a plan: a file, 'default' for the planner's, 'rewritten' for that of the graph that -O3 "
         "finds, 'log' for the best one of the log"},
    {.name = "PLAN_B", .take = Take::file, .doc = "another one, as PLAN_A"}};
inline constexpr Option kCompareOwn[] = {
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "how long to measure; at least six runs of each",
     .fallback = "3"},
    json_option("write what was found as data; - is the standard output, without the report"),
    log_option("that 'log' means")};
inline constexpr auto kCompare = joined(kCompareOwn, kInputOptions, kSizes, kTuneNative);
inline constexpr Example kCompareExamples[] = {
    {"hone compare model.onnx default log", "what tuning has bought"},
    {"hone compare model.onnx default rewritten", "what -O3 buys"},
    {"hone compare model.onnx old.plan new.plan --threads 1", "two files, in turns"}};

// ---- explain -----------------------------------------------------------------------------------

inline constexpr Positional kExplainSubjects[] = {
    kModel[0],
    {.name = "PLAN",
     .take = Take::file,
     .doc = "a file, 'default', 'rewritten' or 'log' (default: the log's plan if it has one)",
     .optional = true}};
inline constexpr Option kExplainOwn[] = {
    {.name = "diff",
     .take = Take::file,
     .value = "PLAN",
     .doc = "tell instead what is different under this plan"},
    {.name = "why",
     .doc = "tell instead what learned prices stand on, and why some are not trusted "
            "(docs/learned-prices.md)"},
    {.name = "top",
     .take = Take::integer,
     .value = "N",
     .doc = "so many kernels, the dearest first",
     .fallback = "10",
     .low = 1,
     .high = 1'000'000},
    json_option("write it as data; - is the standard output, without the report"),
    log_option("of measured times, and of the plan 'log'"),
    {.name = "no-log", .doc = "look at no log"}};
inline constexpr auto kExplain = joined(kExplainOwn, kSizesOfInputs, kTuneNative);
inline constexpr Example kExplainExamples[] = {
    {"hone explain model.onnx --threads 1", "the ten dearest kernels"},
    {"hone explain model.onnx default --diff log", "what tuning has changed"}};

}  // namespace hone::cli::rows
