#pragma once

#include "cli/rows_model.h"
#include "cli/rows_shared.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of
// commands that test hone.

namespace hone::cli::rows {

inline constexpr Positional kCaseFolders[] = {
    {.name = "DIR",
     .take = Take::file,
     .doc =
         "a test case, or a folder with test cases below; a text of StableHLO may hold its answers",
     .repeats = true}};
inline constexpr Option kCaseMemory = {.name = "memory-limit",
                                       .take = Take::integer,
                                       .value = "MIB",
                                       .doc = "memory of a case; 0: no limit",
                                       .fallback = "4096",
                                       .high = int64_t{1} << 24};
inline constexpr Option kCaseBackend = {.name = "backend",
                                        .take = Take::word,
                                        .value = "NAME",
                                        .doc = "the evaluator, or compiled code",
                                        .fallback = "reference",
                                        .words = "reference|native"};
inline constexpr Option kConformance[] = {
    kCaseBackend,
    kDeviceOption,
    kIsaOption,
    kPlanSeedOption,
    kNativeCacheOption,
    {.name = "constants",
     .doc = "turn the inputs into constants of the graphs, and fold them before they are run"},
    {.name = "symbolic",
     .doc = "turn the sizes of inputs into symbols where the model can be typed"},
    {.name = "filter",
     .take = Take::text,
     .value = "GLOB",
     .doc = "run the cases whose path below DIR matches: '*conv*'"},
    {.name = "jobs",
     .letter = 'j',
     .take = Take::integer,
     .value = "N",
     .doc = "cases that run at a time (default: one per core)",
     .low = 1,
     .high = 1024},
    {.name = "time-limit",
     .take = Take::real,
     .value = "S",
     .doc = "seconds for a case; 0: no limit",
     .fallback = "60"},
    kCaseMemory,
    kRtol,
    kAtol,
    json_option(
        "write counts and a row for each case; - is the standard output, without the report"),
    {.name = "markdown", .take = Take::output, .value = "FILE", .doc = "the same as a document"},
    {.name = "verbose", .doc = "print a line for each case"},
};
inline constexpr Example kConformanceExamples[] = {
    {"hone conformance /usr/share/libonnx-testdata/data/node --json node.json",
     "the ONNX standard's cases, as Debian has them"},
    {"hone conformance cases --device cuda", "the same on a GPU"},
    {"hone conformance cases --filter '*conv*' --symbolic --verbose",
     "some of them, line by line"}};

inline constexpr Positional kCaseFolder[] = {
    {.name = "FOLDER", .take = Take::file, .doc = "a folder that is a test case"}};
inline constexpr Option kCaseOptions[] = {{.name = "mode",
                                           .take = Take::word,
                                           .value = "MODE",
                                           .doc = "how inputs are treated",
                                           .fallback = "plain",
                                           .words = "plain|constants|symbolic"},
                                          {.name = "program",
                                           .take = Take::text,
                                           .value = "NAME",
                                           .doc = "the function of a file that is the case"},
                                          kCaseBackend,
                                          kDeviceOption,
                                          kIsaOption,
                                          kPlanSeedOption,
                                          kNativeCacheOption,
                                          kCaseMemory,
                                          kRtol,
                                          kAtol};

// ---- fuzz and reduce ---------------------------------------------------------------------------

inline constexpr Option kFuzzSeed = {.name = "seed",
                                     .take = Take::integer,
                                     .value = "N",
                                     .doc = "seed of the first case; the others follow",
                                     .fallback = "0",
                                     .low = 0};
inline constexpr Option kFuzzCount = {.name = "count",
                                      .take = Take::integer,
                                      .value = "N",
                                      .doc = "how many cases",
                                      .fallback = "1000",
                                      .low = 1,
                                      .high = int64_t{1} << 40};
inline constexpr Option kFuzzIsa = {.name = "isa",
                                    .take = Take::word,
                                    .value = "LEVEL",
                                    .doc = "the cases take turns among the levels up to this",
                                    .words = kIsaWords};
inline constexpr Option kFuzzDerived = {.name = "derived", .doc = "each graph has gradients"};
inline constexpr Option kCaseTime = {.name = "time-limit",
                                     .take = Take::real,
                                     .value = "S",
                                     .doc = "seconds for a case while it is reduced; 0: no limit",
                                     .fallback = "60"};
inline constexpr Option kFuzz[] = {
    kFuzzSeed,
    kFuzzCount,
    kFuzzIsa,
    kFuzzDerived,
    {.name = "jobs",
     .letter = 'j',
     .take = Take::integer,
     .value = "N",
     .doc = "processes at a time (default: one per core)",
     .low = 1,
     .high = 1024},
    {.name = "save",
     .take = Take::output_path,
     .value = "DIR",
     .doc = "where cases that fail go, as SEED.case and reduced as SEED.reduced.case",
     .fallback = "hone-fuzz"},
    {.name = "at-least",
     .take = Take::integer,
     .value = "N",
     .doc = "fail if a value of a decision came up fewer times",
     .fallback = "0",
     .low = 0},
    {.name = "no-reduce", .doc = "save cases that fail as they are"},
    kCaseTime};
inline constexpr Option kFuzzCases[] = {kFuzzSeed, kFuzzCount, kFuzzIsa, kFuzzDerived};
inline constexpr Example kFuzzExamples[] = {
    {"hone fuzz --count 30000 --at-least 100", "the cases of ./dev sweep"},
    {"hone fuzz --derived --count 5000", "only derivatives"},
    {"hone fuzz --seed 1234 --count 1", "one case again"}};

inline constexpr Positional kCase[] = {
    {.name = "CASE", .take = Take::file, .doc = "a case as 'hone fuzz' saves it"}};
inline constexpr Positional kCaseOrModel[] = {
    {.name = "CASE",
     .take = Take::model,
     .doc = "a case as 'hone fuzz' saves it; or a model: FILE.hone, FILE.onnx, FILE.mlir or "
            "zoo:NAME"}};
inline constexpr Option kReduceOwn[] = {output_option("where the smaller case goes", "-"),
                                        kCaseTime};
// A case says these itself.
inline constexpr Option kReduceModel[] = {kPlanOption, kIsaOption};
inline constexpr auto kReduce = joined(kReduceOwn, kReduceModel, kInputOptions, kSizes);
inline constexpr Example kReduceExamples[] = {
    {"hone reduce hone-fuzz/1234.case -o small.case", "the smallest case that still fails"},
    {"hone reduce hone-crash-1234abcd/graph.hone --plan hone-crash-1234abcd/given.plan",
     "the same from the reproducer of a fault"}};

}  // namespace hone::cli::rows
