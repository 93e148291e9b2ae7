#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of
// commands that measure a model.

namespace hone::cli::rows {

// ---- bench -------------------------------------------------------------------------------------

inline constexpr Positional kBenchModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc, .optional = true}};
inline constexpr Option kBenchOwn[] = {
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "seconds to measure; at least three runs",
     .fallback = "3"},
    {.name = "runs",
     .take = Take::integer,
     .value = "N",
     .doc = "measure this many runs instead",
     .low = 1,
     .high = int64_t{1} << 30},
    {.name = "warmup",
     .take = Take::integer,
     .value = "N",
     .doc = "runs before these, which do not count, after the one that compiles",
     .fallback = "3",
     .high = int64_t{1} << 30},
    {.name = "vs",
     .take = Take::file,
     .value = "PLAN",
     .doc = "also measure the model under this plan, in turns, and print the ratio; a compiled "
            "model: another FILE.honec; or an engine of Python: onnxruntime, openvino, torch, "
            "inductor, best"},
    {.name = "python",
     .take = Take::text,
     .value = "PROGRAM",
     .doc = "the Python that has the engines of --vs; default: $HONE_PYTHON, or python3"},
    json_option("write the figures as data; - is the standard output, without the report"),
    {.name = "donate",
     .doc = "donate the inputs that the model may change in place: caches of a decoder, states of "
            "an optimizer; an output in their memory is the next run's input"},
    {.name = "profile", .doc = "measure as long again, and print the layers that take longest"},
    {.name = "record",
     .take = Take::output,
     .value = "FILE",
     .doc = "add sessions of this model to a baseline, which is made if it is missing"},
    {.name = "sessions",
     .take = Take::integer,
     .value = "N",
     .doc = "sessions that --record adds; they share the seconds",
     .fallback = "5",
     .low = 1,
     .high = 1000},
    {.name = "baseline",
     .take = Take::file,
     .value = "FILE",
     .doc = "measure the models of a baseline again, and fail if one of them has become slower"},
    {.name = "fail-below",
     .take = Take::real,
     .value = "SPEED",
     .doc = "the least share of the recorded speed that is not an alarm",
     .fallback = "0.95"}};
inline constexpr auto kBench =
    joined(kInputOptions, kSizes, kNative, kDevices, kMesh, kMeshSearch, kPipeline, kTransport,
           kSystemOfDevices, kHosts, kBenchOwn, kTraceOption, kVerify);
inline constexpr Example kBenchExamples[] = {
    {"hone bench zoo:resnet50", "random inputs, all cores"},
    {"hone bench zoo:bert_base --threads 1 --profile", "where the time goes"},
    {"hone bench zoo:bert_base --trace trace.json", "compiling, and ten runs, for ui.perfetto.dev"},
    {"hone bench zoo:gpt2_decode --donate", "a step that adds to its caches in place"},
    {"hone bench zoo:mlp,symbolic-batch --dim N=16", "sizes that are open have to be chosen"},
    {"hone bench model.onnx --vs onnxruntime", "both in turns, and the ratio with its interval"},
    {"hone bench model.onnx --vs best", "the engines that are installed, in turns"},
    {"hone bench model.onnx --threads 1 --isa avx2", "less of the machine"},
    {"hone bench zoo:mlp --threads 1 --record speed.json", "five sessions, for later"},
    {"hone bench --baseline speed.json --fail-below 0.9", "exit code 1 if a model is slower"},
    {"hone bench zoo:mlp,batch=8 --devices 2", "and what each device does in a run"},
    {"hone bench step.hone --pipeline step.pipeline", "stages, each on devices of its own"},
    {"hone bench new.honec --vs old.honec", "two compiled models in turns"}};

// ---- report ------------------------------------------------------------------------------------

inline constexpr Option kReportOwn[] = {
    output_option("where the page goes; - is the standard output", "report.html"),
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "seconds to measure for each comparison; at least three runs",
     .fallback = "2"},
    {.name = "alone", .doc = "leave ONNX Runtime out"},
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "draw a run on the devices of this system, by price, and measure nothing: a system "
            "file, or a name and sizes such as ring:8"},
    json_option("also write the page's figures as data; - is the standard output")};
inline constexpr auto kReport =
    joined(kReportOwn, kInputOptions, kSizes, kNative, kDevices, kMesh, kMeshSearch);
inline constexpr Example kReportExamples[] = {
    {"hone report model.onnx -o report.html", "one file for a browser, which needs nothing else"},
    {"hone report zoo:mlp --threads 1 --seconds 0.5 --alone", "a quick one of a built-in model"},
    {"hone report model.onnx --plan model.plan", "this plan, and how much faster it is"},
    {"hone report model.onnx --device cuda", "on a GPU, and what the CPU beside it runs"},
    {"hone report zoo:mlp,batch=8 --devices 2", "two devices divide the batch, by price"},
    {"hone report zoo:mlp,batch=8 --mesh x=2 --shard auto",
     "two devices divide all values: who holds what, and what moves"}};

}  // namespace hone::cli::rows
