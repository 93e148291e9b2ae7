#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the commands
// that train networks, prices and policies.

namespace hone::cli::rows {

// ---- train -------------------------------------------------------------------------------------

inline constexpr Positional kTrainText[] = {
    {.name = "TRAIN", .take = Take::file, .doc = "data, layers, loss and optimizer, as text"}};
inline constexpr Option kTrainOwn[] = {
    output_option("the folder of checkpoints and results (default: TRAIN without its ending)", "",
                  "FOLDER"),
    {.name = "anew", .doc = "ignore the checkpoints, and begin with the first step"}};
inline constexpr Option kTrainNative[] = {kIsaOption, kPricesOption, kThreadsOption, kWithoutOption,
                                          kNativeCacheOption};
inline constexpr Option kTrainDevices[] = {
    kDevicesOption,
    kDeviceOption,
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "plan the sums of gradients, or stages, for this system: a system file, or a name and "
            "sizes such as ring:2 (default: the links of this machine)"}};
inline constexpr Option kTrainPipeline[] = {
    {.name = "pipeline",
     .take = Take::text,
     .value = "STAGES|FILE",
     .doc =
         "this number of stages compute a step, each on devices of its own. auto: as many as are "
         "best, on the devices of --system. A file: a plan, such as step.pipeline of a folder "
         "(docs/sharding.md)"}};
inline constexpr auto kTrain = joined(kTrainOwn, kTrainDevices, kMesh, kMeshSearch, kTrainPipeline,
                                      kPipelineChoice, kTransport, kTrainNative);
inline constexpr Example kTrainExamples[] = {
    {"hone train digits.train", "writes digits/model.hone; a second call trains on"},
    {"hone train digits.train -o try2 --anew --threads 1", "another folder, from the first step"},
    {"hone train digits.train -o try3 --devices 2", "two devices share the samples of each batch"},
    {"hone train digits.train -o try4 --mesh x=2 --shard auto",
     "two devices divide all values, weights too"},
    {"hone train digits.train -o try5 --pipeline 2 --micro-batches 4",
     "two stages, which four parts of a batch pass"},
    {"hone train digits.train -o try6 --device cuda", "a GPU takes the steps"}};

// ---- train cost, eval --------------------------------------------------------------------------

inline constexpr Option kTrainCostNetworks[] = {{.name = "members",
                                                 .take = Take::integer,
                                                 .value = "N",
                                                 .doc = "networks of a model",
                                                 .fallback = "5",
                                                 .low = 2,
                                                 .high = 32},
                                                {.name = "epochs",
                                                 .take = Take::integer,
                                                 .value = "N",
                                                 .doc = "how often a network sees all kernels",
                                                 .fallback = "6",
                                                 .low = 1,
                                                 .high = 10'000},
                                                {.name = "seed",
                                                 .take = Take::integer,
                                                 .value = "N",
                                                 .doc = "seed of first weights, parts and orders",
                                                 .fallback = "0",
                                                 .low = 0}};
inline constexpr Positional kTrainCostData[] = {
    {.name = "DATA",
     .take = Take::file,
     .doc = "the folder of a data set (docs/datasets.md), which --budget may create (default with "
            "--budget: one in the user's folder); several of different processors: the model is "
            "for all",
     .optional = true,
     .repeats = true}};
inline constexpr Option kTrainCostOwn[] = {
    output_option("write the model there, for --cost, and not into the user's folder"),
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "measure this machine first, in four fifths of this time, 15m or 1h: DATA goes on, or "
            "begins with all models of the zoo"},
    {.name = "from",
     .take = Take::file,
     .value = "MODEL",
     .doc = "begin with the networks of this model, which may be of another target: a file, "
            "shipped (the one that comes with hone; the default with --budget), or none (random "
            "numbers)"},
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "learn only from the programs of its part train (docs/datasets.md)"},
    {.name = "anew", .doc = "ignore earlier training, and begin with the first step"}};
inline constexpr Option kTrainCostNative[] = {kThreadsOption, kNativeCacheOption};
inline constexpr Option kTrainCostIsa[] = {kIsaOption};
inline constexpr auto kTrainCost =
    joined(kTrainCostOwn, kTrainCostNetworks, kTrainCostIsa, kTrainCostNative);
inline constexpr Example kTrainCostExamples[] = {
    {"hone train cost --budget 15m", "a machine that hone has no model of"},
    {"hone train cost set", "commands that plan use the model from then on"},
    {"hone train cost set -o my.model", "a file, for --cost"},
    {"hone train cost set --from shipped", "from little data of another machine"},
    {"hone train cost zen3.set xeon.set -o all.model", "a model for all processors"}};
inline constexpr Option kGraphNetwork[] = {
    {.name = "passing",
     .take = Take::word,
     .value = "LAYER",
     .doc = "layer by which nodes of a graph hear of their neighbours (default: sage)",
     .words = "sage|gat|gin"},
    {.name = "reduction",
     .take = Take::word,
     .value = "HOW",
     .doc = "how the nodes of a graph give one score. columns: mean, largest and sum of their "
            "columns. additive: a number of each node, added up. lstm: its state behind the last "
            "node. transformer: the mean behind such a layer (default: columns for kernels, "
            "additive for layouts)",
     .words = "columns|additive|lstm|transformer"},
    {.name = "compare",
     .doc = "let configurations of a graph that are scored together look at one another first, and "
            "score the best 32 again, together; not with additive scores"},
    {.name = "skeleton",
     .doc = "add the network's score to the logarithm of the plan's price, for layouts; not with "
            "segments"},
    {.name = "segments",
     .take = Take::integer,
     .value = "N",
     .doc = "train and score additive models by segments of this many nodes, for graphs that do "
            "not fit into memory (default: whole graphs)",
     .low = 1,
     .high = 100'000'000},
    {.name = "loss",
     .take = Take::word,
     .value = "LOSS",
     .doc = "loss of training on graphs (default: logistic for kernels, weighted for layouts)",
     .words = "logistic|weighted|hinge|list_mle|log_squared|mixed"},
    {.name = "hops",
     .take = Take::integer,
     .value = "N",
     .doc = "keep the nodes of a graph within this many edges of a configurable node, and condense "
            "the rest; -1: keep all (default: 1 for layouts)",
     .low = -1,
     .high = 1000}};
inline constexpr Positional kTrainLayoutData[] = {
    {.name = "DATA",
     .take = Take::file,
     .doc = "a data set with layouts, a folder of .npz files of the schema of TpuGraphs, one such "
            "file, or raw measurements (.pb)"}};
inline constexpr Option kTrainLayoutOwn[] = {
    output_option("the model"),
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "learn only from the programs of its part train (docs/datasets.md)"},
    {.name = "epochs",
     .take = Take::integer,
     .value = "N",
     .doc = "how often the network sees all graphs",
     .fallback = "30",
     .low = 1,
     .high = 10'000},
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "seed of first weights and orders",
     .fallback = "0",
     .low = 0}};
inline constexpr auto kTrainLayout = joined(kTrainLayoutOwn, kGraphNetwork, kTrainCostNative);
inline constexpr Example kTrainLayoutExamples[] = {
    {"hone train layout set -o layouts.model", "a set of 'hone dataset build --task layout'"},
    {"hone train layout set --split my.split -o layouts.model", "from some of its programs"}};
inline constexpr Option kTrainPlacementOwn[] = {
    output_option("the policy"),
    {.name = "steps",
     .take = Take::integer,
     .value = "N",
     .doc = "drawn problems to learn from, one in each step",
     .fallback = "10000",
     .low = 1,
     .high = 100'000'000},
    {.name = "save-every",
     .take = Take::integer,
     .value = "N",
     .doc = "steps between checkpoints, from which a second call goes on",
     .fallback = "250",
     .low = 1,
     .high = 1'000'000},
    seed_option("seed of first weights, problems and samples"),
    {.name = "fusions",
     .doc = "train the head that proposes fusions, for --policy, which stays as it is"},
    {.name = "policy",
     .take = Take::file,
     .value = "FILE",
     .doc = "the policy to go on from; with --fusions the one that stays as it is (default: no "
            "policy, and with --fusions the one that comes with hone)"},
    {.name = "graph",
     .take = Take::model,
     .value = "FILE",
     .doc = "a model, or a problem as for 'hone place', to learn from: every second problem is one "
            "of these, or a part of one, on a drawn system",
     .repeats = true},
    {.name = "nodes",
     .take = Take::integer,
     .value = "N",
     .doc = "nodes of the largest problems, in whole segments of 64",
     .fallback = "128",
     .low = 128,
     .high = 4096},
    {.name = "devices",
     .take = Take::integer,
     .value = "N",
     .doc = "devices of the largest problems",
     .fallback = "6",
     .low = 2,
     .high = 16},
    {.name = "anew", .doc = "ignore earlier training, and begin with the first step"}};
inline constexpr auto kTrainPlacement = joined(kTrainPlacementOwn, kTrainCostNative);
inline constexpr Example kTrainPlacementExamples[] = {
    {"hone train placement -o my.policy --steps 20", "a second call goes on where the first ended"},
    {"hone train placement -o my.policy --steps 20 --seed 1 --anew", "other problems"},
    {"hone train placement -o my.policy --graph zoo:mlp,size=tiny --nodes 192 --steps 20 --anew",
     "from a model, too, and larger problems"},
    {"hone train placement --fusions -o my.head --steps 20", "which fusions to make"}};
inline constexpr std::string_view kEvalPlacementText =
    "Prints four figures for each placer. They are its step over that of the best "
    "quick rival, the mean gap to the bound, the time, and the problems where it is the "
    "best. Searches begin at the best quick rival. Problems are of the families that policies "
    "learn from, and of families and Systems that they do not see (docs/placement.md).";
inline constexpr Option kEvalPlacement[] = {
    {.name = "policy",
     .take = Take::file,
     .value = "FILE",
     .doc = "a file of 'hone train placement' (default: the one that comes with hone)"},
    {.name = "graphs",
     .take = Take::integer,
     .value = "N",
     .doc = "problems of each sort: seen, and held out from training",
     .fallback = "20",
     .low = 1,
     .high = 10'000},
    {.name = "nodes",
     .take = Take::integer,
     .value = "N",
     .doc = "nodes of the largest ones",
     .fallback = "200",
     .low = 16,
     .high = 100'000},
    {.name = "trials",
     .take = Take::integer,
     .value = "N",
     .doc = "placements that each search judges",
     .fallback = "1000",
     .low = 1,
     .high = 100'000'000},
    {.name = "chips",
     .take = Take::integer,
     .value = "N",
     .doc = "compare searches on multi-chip modules of this many chips, by the trials as samples",
     .low = 2,
     .high = 64},
    {.name = "joint",
     .doc = "compare fusions, devices and order decided together and one after another"},
    {.name = "head",
     .take = Take::file,
     .value = "FILE",
     .doc = "for --joint: a file of 'hone train placement --fusions' (default: the one that comes "
            "with hone)"},
    seed_option("seed of the problems")};
inline constexpr Example kEvalPlacementExamples[] = {
    {"hone eval placement --joint --graphs 1 --nodes 30 --trials 60", "together or in stages"},
    {"hone eval placement --graphs 2 --nodes 60 --trials 100", "a quick look"},
    {"hone eval placement --chips 4 --graphs 2 --nodes 60 --trials 20", "multi-chip modules"}};
inline constexpr Positional kEvalData[] = {
    {.name = "DATA",
     .take = Take::file,
     .doc = "the folder of a data set (docs/datasets.md), or graphs as for 'hone train layout'"}};
inline constexpr Option kEvalOwn[] = {
    {.name = "task",
     .take = Take::word,
     .value = "TASK",
     .doc = "part of a data set to judge by: kernels by schedules, kernels in absolute time, or "
            "programs by layouts",
     .fallback = "tile",
     .words = "tile|fusion|layout"},
    {.name = "model",
     .take = Take::file,
     .value = "FILE",
     .doc = "judge this model, by programs that it has not learned from"},
    {.name = "splits",
     .take = Take::integer,
     .value = "N",
     .doc = "models to train, each judged by other programs",
     .fallback = "5",
     .low = 1,
     .high = 100},
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "in place of --splits: learn from the other parts of this split, and judge by its part "
            "test; separate several by commas. Not for graphs that are left out in turn, nor for "
            "one graph"},
    json_option("write what was found as data; - is the standard output, without the table")};
inline constexpr auto kEval = joined(kEvalOwn, kTrainCostNetworks, kGraphNetwork, kTrainCostNative);
inline constexpr Example kEvalExamples[] = {
    {"hone eval set --model my.model", "judge a model by other programs"},
    {"hone eval set --splits 5", "judge models of such data"},
    {"hone eval set --task fusion", "how far prices are from times"},
    {"hone eval op_tuning_data.pb", "kernels of TpuGraphs, each left out of training in turn"}};

}  // namespace hone::cli::rows
