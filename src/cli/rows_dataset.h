#pragma once

#include "base/team.h"
#include "cli/commands.h"
#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands
// 'hone dataset'.

namespace hone::cli::rows {

inline constexpr std::string_view kDataSetText =
    "A data set is a folder with the times of the kernels of some programs, on one machine by many "
    "schedules, for prices to learn from. docs/datasets.md describes it.";
inline constexpr Positional kDataSet[] = {
    {.name = "SET", .take = Take::file, .doc = "the folder of a data set"}};

inline constexpr Positional kBuildModels[] = {
    {.name = "MODEL",
     .take = Take::model,
     .doc = "programs to add: files of models, zoo:NAME[,OPTION=VALUE]..., or zoo for all "
            "models of 'hone zoo list' (default: none, go on with those of the set)",
     .optional = true,
     .repeats = true}};
inline constexpr Option kBuildOwn[] = {
    output_option("the folder; its contents stay", "", "SET"),
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "how long to measure: 90s, 30m, 2h (default: until all is measured)"},
    {.name = "small",
     .doc = "several small sets below the folder, 20 minutes in all and 2 MB as an archive; "
            "programs of the command line come first, then random graphs and the zoo"},
    {.name = "each",
     .take = Take::text,
     .value = "TIME",
     .doc =
         "longest time for one kernel (tile), where slow ones get fewer schedules, or for one pair "
         "of plans (plans), at most a second",
     .fallback = "20s"},
    {.name = "kernels",
     .take = Take::integer,
     .value = "N",
     .doc = "how many kernels to measure: one of each program in turn, the dearest first, but "
            "those of more than 2 ms last (default: all)",
     .low = 1,
     .high = 1'000'000},
    {.name = "schedules",
     .take = Take::integer,
     .value = "N",
     .doc = "schedules to try for each kernel",
     .fallback = "64",
     .low = 4,
     .high = 100'000},
    {.name = "task",
     .take = Take::word,
     .value = "TASK",
     .doc = "tile: kernels by many schedules; fusion: kernels of other groups by the planner's "
            "schedule; layout: whole programs by many layouts; plans: whole plans in turns",
     .fallback = "tile",
     .words = "tile|fusion|layout|plans"},
    {.name = "plans",
     .take = Take::integer,
     .value = "N",
     .doc = "plans of each program, for fusion and layout (default: 400), and for plans (24)",
     .low = 1,
     .high = 1'000'000},
    {.name = "whole",
     .take = Take::integer,
     .value = "N",
     .doc = "plans of each program that are also run whole, for layout",
     .fallback = "50",
     .low = 0,
     .high = 1'000'000},
    {.name = "renew",
     .doc =
         "measure nothing, and write the files of programs again from what is known, for layout"},
    {.name = "cost",
     .take = Take::text,
     .value = "PRICE",
     .doc = "price to store beside times for 'hone eval', for layout; or to plan by, for plans. "
            "It is analytic, learned, or the file of a model (default: learned if there is a model "
            "of this target)"},
    {.name = "random-graphs",
     .take = Take::integer,
     .value = "N",
     .doc = "random graphs to add",
     .fallback = "0",
     .low = 0,
     .high = 100'000},
    {.name = "from",
     .take = Take::file,
     .value = "LOG",
     .doc = "use this log's times of the kernels, under the same conditions, instead of measuring "
            "them again; for plans: run its best plans, too"},
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "seed of schedules, operands and random graphs",
     .fallback = "1"},
    {.name = "threads",
     .take = Take::integer,
     .value = "N",
     .doc = "threads that work on a kernel",
     .fallback = "1",
     .low = 1,
     .high = Team::kMaxThreads},
    kIsaOption,
    {.name = "device",
     .take = Take::text,
     .value = "NAME",
     .doc = "measure the kernels of a GPU: cuda or cuda:N (docs/gpu.md); for tile and fusion "
            "(default: the CPU)"}};
inline constexpr Example kBuildExamples[] = {
    {"hone dataset build zoo -o zoo.set --budget 2h", "all models of the zoo, for one thread"},
    {"hone dataset build -o zoo.set", "goes on with the rest"},
    {"hone dataset build --small model.onnx -o mine", "20 minutes, for this processor"},
    {"hone dataset build model.onnx -o my.set --kernels 20 --isa avx2", "one model, for AVX2"},
    {"hone dataset build zoo -o gpu.set --device cuda --budget 2m", "the kernels of a GPU"}};

inline constexpr Option kInspectSet[] = {
    json_option("write the same as data; - is the standard output, without the tables")};
inline constexpr Example kInspectSetExamples[] = {
    {"hone dataset inspect zoo.set", "counts by kind and by program"}};

inline constexpr Positional kMergeSets[] = {{.name = "SET",
                                             .take = Take::file,
                                             .doc = "a data set, which stays as it is",
                                             .repeats = true}};
inline constexpr Option kMergeOutput[] = {
    output_option("the folder to add to, which may be new", "", "SET")};
inline constexpr Example kMergeExamples[] = {{"hone dataset merge a.set b.set -o both.set",
                                              "two sets of one machine and number of threads"}};

inline constexpr Option kSplitOptions[] = {
    output_option("where the split goes; - is the standard output", "-"),
    {.name = "check",
     .take = Take::file,
     .value = "FILE",
     .doc = "make no split: read this one, and count the kernels of its parts"},
    seed_option("seed of the split"),
    {.name = "validation",
     .take = Take::real,
     .value = "SHARE",
     .doc = "share of the programs; with two families 0 unless it is given",
     .fallback = "0.15"},
    {.name = "test",
     .take = Take::real,
     .value = "SHARE",
     .doc = "share of the programs",
     .fallback = "0.2"}};
inline constexpr Example kSplitExamples[] = {
    {"hone dataset split zoo.set --seed 3 -o 3.split", "programs at random, families together"},
    {"hone dataset split zoo.set --check my.split", "how many kernels each part has"}};

inline constexpr Positional kExportWhat[] = {
    {.name = "WHAT",
     .take = Take::file,
     .doc =
         "a data set; an .npz file or a folder of them; or a file of measurements of TpuGraphs: a "
         "TuningData or a ModuleTuningData"}};
inline constexpr Option kExportOptions[] = {
    output_option("a new folder for the .npz files", "", "FOLDER"),
    {.name = "schema",
     .take = Take::word,
     .value = "WHICH",
     .doc = "hone: the published columns and those of hone; tpu: only the published ones",
     .fallback = "hone",
     .words = "hone|tpu"},
    {.name = "features",
     .take = Take::word,
     .value = "WHICH",
     .doc = "features to write of a file of TpuGraphs: the published ones, or also those that "
            "models need",
     .fallback = "published",
     .words = "published|extended"},
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "put the kernels and layouts of a data set into folders train, valid and test"}};
inline constexpr Example kExportExamples[] = {
    {"hone dataset export zoo.set -o npz --split my.split",
     "a file for each kernel, and each file of layouts"},
    {"hone dataset export zoo.set -o tpu --schema tpu", "for programs that know only TpuGraphs"},
    {"hone dataset export op_tuning_data.pb -o tiles", "measurements of TpuGraphs"}};

inline constexpr Command kDataSetCommands[] = {
    {.name = "dataset build",
     .summary = "Measure many schedules of the kernels of some programs",
     .text = "Plans each program as 'hone compile' does, and takes its different kernels of 5 us "
             "(on a GPU 1 us) "
             "and more. For each kernel it measures schedules that searches visit: half are "
             "random, half come from an evolution by times. Each measurement is on disk at once, "
             "so an interrupted build goes on where it was, and a later build adds to the set. A "
             "set is for one target and one number of threads (docs/datasets.md).",
     .positionals = kBuildModels,
     .options = kBuildOwn,
     .examples = kBuildExamples,
     .run = &cmd_dataset_build},
    {.name = "dataset inspect",
     .summary = "Count the kernels of a data set, by kind and by program",
     .text = kDataSetText,
     .positionals = kDataSet,
     .options = kInspectSet,
     .examples = kInspectSetExamples,
     .run = &cmd_dataset_inspect},
    {.name = "dataset merge",
     .summary = "Add data sets of one target and number of threads to another one",
     .text = kDataSetText,
     .positionals = kMergeSets,
     .options = kMergeOutput,
     .examples = kMergeExamples,
     .run = &cmd_dataset_merge},
    {.name = "dataset export",
     .summary = "Write a data set, or measurements of TpuGraphs, as arrays in its schema",
     .text = "Writes one .npz file for each kernel with its schedules, or for each module with its "
             "layouts. Names, types, axes and numbers of opcodes are those of TpuGraphs. Columns "
             "of hone stand behind the published ones; files that have them say their names and a "
             "version. 'hone dataset export --schema tpu' says which are lost (docs/datasets.md).",
     .positionals = kExportWhat,
     .options = kExportOptions,
     .examples = kExportExamples,
     .run = &cmd_dataset_export},
    {.name = "dataset split",
     .summary = "Divide the programs of a data set into train, validation and test",
     .text = "A split is a text with a line for each program, such as 'test zoo:resnet50'. Each "
             "program is in one part. A kernel that programs of several parts have counts only for "
             "the first of test, validation and train (docs/datasets.md).",
     .positionals = kDataSet,
     .options = kSplitOptions,
     .examples = kSplitExamples,
     .run = &cmd_dataset_split},
};

}  // namespace hone::cli::rows
