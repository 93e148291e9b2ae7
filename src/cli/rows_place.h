#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that places nodes on devices.

namespace hone::cli::rows {

inline constexpr Positional kPlaceFile[] = {
    {.name = "FILE",
     .take = Take::model,
     .doc = "a model; or a problem, if it ends in .place, .json or .txt; - is a problem on the "
            "standard input"}};
inline constexpr Option kPlaceOwn[] = {
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "the devices: a system file, or a name such as ring:8 (default: those of the file, or "
            "--devices for tasks; a model needs it)"},
    {.name = "target",
     .take = Take::file,
     .value = "FILE",
     .doc = "the target of each device of a system with a name (default: this machine)"},
    {.name = "devices",
     .take = Take::integer,
     .value = "N",
     .doc = "equal devices for a graph of tasks, each with a link to each other one",
     .fallback = "4",
     .low = 1,
     .high = 256},
    {.name = "goal",
     .take = Take::word,
     .value = "GOAL",
     .doc = "the number that is to be small: the end of a step, or the load of the busiest device "
            "when many runs follow each other",
     .fallback = "step",
     .words = "step|load"},
    {.name = "by",
     .take = Take::text,
     .value = "PLACER",
     .doc =
         "one way to place alone: one, contiguous, heft, etf, sct, critical, multilevel, ideals, "
         "policy, annealing, guided, chain, integer, metis or genetic (default: the quick ones, "
         "then "
         "annealing)"},
    {.name = "policy",
     .take = Take::file,
     .value = "FILE",
     .doc = "weights of the learned policy, of 'hone train placement' (default: those that come "
            "with hone)"},
    {.name = "compiled",
     .doc = "run the policy as a program that hone compiles for the sizes of this graph; its "
            "numbers differ from plain code's by rounding alone"},
    {.name = "fuse",
     .take = Take::word,
     .value = "yes|no",
     .doc = "for problems with fusions: which are made is decided with devices and order; no: none",
     .fallback = "yes",
     .words = "yes|no"},
    {.name = "tune",
     .take = Take::integer,
     .value = "N",
     .doc = "first tune the policy for this graph, in N steps; the search begins at the best "
            "placement of all steps, and 'policy' and 'guided' use the tuned policy",
     .fallback = "0",
     .low = 0,
     .high = 50},
    kNativeCacheOption,
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "stop after this many seconds with the best so far; 0: no search behind what is quick",
     .fallback = "10"},
    {.name = "trials",
     .take = Take::integer,
     .value = "N",
     .doc = "stop after this many placements: if time does not end it before, the same seed then "
            "gives the same one; 0: no limit",
     .fallback = "0"},
    seed_option("seed of what is random"),
    {.name = "check",
     .take = Take::file,
     .value = "FILE",
     .doc = "judge this placement, and look for no other"},
    {.name = "from",
     .take = Take::file,
     .value = "FILE",
     .doc = "begin at this placement: the result is never worse"},
    {.name = "problem",
     .take = Take::output,
     .value = "FILE",
     .doc =
         "write the problem itself: .json and .txt are the formats of others, all else is hone's "
         "text"},
    {.name = "plan",
     .take = Take::file,
     .value = "FILE",
     .doc = "a plan of the model: its kernels are the nodes, and its devices are kept"},
    {.name = "cost",
     .take = Take::text,
     .value = "PRICE",
     .doc = "price of the kernels of a model: analytic; learned, by the model of each target; or "
            "the file of a model",
     .fallback = "analytic"},
    {.name = "explain",
     .take = Take::integer,
     .value = "N",
     .doc = "tables of N rows each: devices with time and memory, links with what they carry, and "
            "why the longest nodes are where they are",
     .fallback = "0",
     .low = 0,
     .high = 1000},
    {.name = "plot",
     .take = Take::output,
     .value = "FILE",
     .doc = "draw devices, memory and links over time, as SVG"},
    output_option("where the nodes of each device go, in their order. A model has a plan, if the "
                  "name ends in .plan, or else programs of its devices. - is the standard output")};
inline constexpr auto kPlace = joined(kPlaceOwn, kSizes);
inline constexpr Example kPlaceExamples[] = {
    {"hone place graph.json --goal load --seconds 1 -o split.json",
     "the nodes of each device, the busiest one as little busy as can be"},
    {"hone place tasks.txt --devices 4 --seconds 1", "a graph of tasks on four devices"},
    {"hone place graph.json --goal load --check split.json", "judges a split; says why it is none"},
    {"hone place graph.json --check split.json --explain 5 --plot split.svg",
     "why nodes are where they are, and a drawing"},
    {"hone place tasks.txt --by heft --problem tasks.place", "one placer, and hone's own text"},
    {"hone place model.onnx --system ring:2 --seconds 1 -o placed.program",
     "a program for each device"},
    {"hone place model.onnx --system local:2 --seconds 1 -o placed.plan",
     "a plan with devices, for 'hone run --plan'"}};

}  // namespace hone::cli::rows
