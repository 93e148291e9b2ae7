#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the commands
// that search for plans.

namespace hone::cli::rows {

inline constexpr Option kTuneOwn[] = {
    budget_option("time to search: 90s, 5m, 1h"),
    output_option("also write the plan to this file; - is the standard output"),
    seed_option("seed of random inputs and searches"),
    {.name = "search",
     .take = Take::text,
     .value = "NAME",
     .doc = "search of schedules (docs/search.md)",
     .fallback = "evolutionary"},
    {.name = "only",
     .take = Take::text,
     .value = "KINDS",
     .doc = "change only these decisions: schedules, layouts, groups (and chains) or threads; "
            "separate several by commas"},
    json_option("write the result as data; - is the standard output, without the report")};
inline constexpr Option kTuneLog[] = {
    log_option("the log of measurements (see 'hone help log ls')"),
    {.name = "no-log", .doc = "neither read nor write the log"}};
inline constexpr Option kTuneMemory[] = {kMemoryLimit};
inline constexpr Option kTuneNative[] = {
    kIsaOption,     kPricesOption,      kCostOption,          kSureOption,       kThreadsOption,
    kWithoutOption, kNativeCacheOption, kRewriteBudgetOption, kAssumeRangeOption};
inline constexpr Option kTuneLevel[] = {kLevelOption};
inline constexpr Option kTuneDevice[] = {kDeviceOption};
inline constexpr auto kTune = joined(kTuneOwn, kTuneLog, kSizesOfInputs, kTuneMemory, kTuneNative,
                                     kTuneLevel, kErrorAsked, kLevelOptions, kTuneDevice);
inline constexpr Example kTuneExamples[] = {
    {"hone tune model.onnx", "three minutes; commands that compile take the plan from the log"},
    {"hone tune zoo:mobilenet_v2 --budget 30s --threads 1", "shorter, for one thread"},
    {"hone tune zoo:mlp --budget 10s -o mlp.plan", "the plan as a file"},
    {"hone tune model.onnx --to w8 --error 0.1", "with fewer bits, within an error"}};

// ---- calibrate ---------------------------------------------------------------------------------

inline constexpr Option kCalibrateOwn[] = {
    budget_option("time to measure, 90s or 3m; a few kernels are always measured"),
    output_option("write the prices to this file, for --prices, and not into the user's folder; - "
                  "is the standard output"),
    seed_option("seed of random inputs and schedules"),
    {.name = "threads",
     .take = Take::integer,
     .value = "N",
     .doc = "threads that work on a kernel",
     .fallback = "1",
     .low = 1,
     .high = Team::kMaxThreads}};
inline constexpr Option kCalibrateNative[] = {kIsaOption};
inline constexpr auto kCalibrate = joined(kCalibrateOwn, kTuneLog, kCalibrateNative);
inline constexpr Example kCalibrateExamples[] = {
    {"hone calibrate", "three minutes; commands use the prices if models are faster with them"},
    {"hone calibrate --isa avx2", "for code without AVX-512"},
    {"hone calibrate --budget 1m -o my.prices", "a file, for --prices"}};

// ---- compare -----------------------------------------------------------------------------------

inline constexpr Positional kCompareSubjects[] = {
    kModel[0],
    {.name = "PLAN_A",
     .take = Take::file,
     .doc = "a plan: a file; 'default', the planner's; 'rewritten', that of the graph that -O3 "
            "finds; 'log', the best one of the log"},
    {.name = "PLAN_B", .take = Take::file, .doc = "another one, as PLAN_A"}};
inline constexpr Option kCompareOwn[] = {
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "seconds to measure; at least six runs of each",
     .fallback = "3"},
    json_option("write the result as data; - is the standard output, without the report"),
    log_option("the log that 'log' means")};
inline constexpr auto kCompare = joined(kCompareOwn, kInputOptions, kSizes, kTuneNative);
inline constexpr Example kCompareExamples[] = {
    {"hone compare model.onnx default log", "the gain of tuning"},
    {"hone compare model.onnx default rewritten", "the gain of -O3"},
    {"hone compare model.onnx old.plan new.plan --threads 1", "two files, in turns"}};

// ---- explain -----------------------------------------------------------------------------------

inline constexpr Positional kExplainSubjects[] = {
    kModel[0],
    {.name = "PLAN",
     .take = Take::file,
     .doc = "a file, 'default', 'rewritten' or 'log' (default: the log's plan if it has one); of a "
            "file that places kernels on devices it tells what devices and links do",
     .optional = true}};
inline constexpr Option kExplainOwn[] = {
    {.name = "plot",
     .take = Take::output,
     .value = "FILE",
     .doc = "for a plan that places kernels on devices: draw devices, memory and links over time, "
            "as SVG"},
    {.name = "diff",
     .take = Take::file,
     .value = "PLAN",
     .doc = "print the differences to this plan instead"},
    {.name = "why",
     .doc = "print the data behind learned prices instead, and why some are not trusted "
            "(docs/learned-prices.md)"},
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "tell where the time goes if each device of this system runs the model: a system file, "
            "or a name and sizes such as ring:8 (docs/timeline.md)"},
    {.name = "trace",
     .take = Take::output,
     .value = "FILE",
     .doc = "with --system or --devices: write a trace with a track for each device and link, for "
            "ui.perfetto.dev"},
    {.name = "top",
     .take = Take::integer,
     .value = "N",
     .doc = "how many kernels to print, the dearest first; with --system: rows of each table",
     .fallback = "10",
     .low = 1,
     .high = 1'000'000},
    json_option("write the explanation as data; - is the standard output, without the report"),
    log_option("the log of measured times, and of the plan 'log'"),
    {.name = "no-log", .doc = "do not read the log"}};
inline constexpr Option kExplainTarget[] = {kTargetOption};
inline constexpr auto kExplain = joined(kExplainOwn, kDevices, kMesh, kMeshSearch, kPipeline,
                                        kSizesOfInputs, kTuneNative, kExplainTarget);
inline constexpr Example kExplainExamples[] = {
    {"hone explain model.onnx --threads 1", "the ten dearest kernels"},
    {"hone explain model.onnx default --diff log", "the changes of tuning"},
    {"hone explain model.onnx --target sm_90", "the kernels of a GPU, and which the CPU runs"},
    {"hone explain model.onnx --system ring:4", "the model on four devices at once"},
    {"hone explain zoo:mlp,batch=8 --devices 2", "two parts of this machine divide the batch"},
    {"hone explain zoo:mlp,batch=8 --mesh x=2 --shard auto",
     "who holds what, what moves and why, and what other shardings cost"},
    {"hone explain step.hone --pipeline step.pipeline",
     "the stages of a pipeline, the order of each device, and what other orders cost"}};

}  // namespace hone::cli::rows
