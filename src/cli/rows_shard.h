#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that divides the values of a graph among devices.

namespace hone::cli::rows {

inline constexpr Option kShardOwn[] = {
    {.name = "mesh",
     .take = Take::text,
     .value = "AXES",
     .doc =
         "the devices as a grid with named axes, as in x=2,y=4 (default: the mesh of the graph)"},
    {.name = "shard",
     .take = Take::text,
     .value = "NAME=DIMS",
     .doc = "how the value of that name is divided, as in 'tokens=[x, -]' (may be repeated)",
     .repeats = true},
    {.name = "all", .doc = "list all values, not only inputs, constants and outputs"},
    output_option("where the program of one device goes: FILE.hone, or - for the standard output")};
inline constexpr auto kShard = joined(kShardOwn, kSizes);
inline constexpr Example kShardExamples[] = {
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-]",
     "the batch in two halves: who holds what, and what devices exchange"},
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-] -o part.hone",
     "the program that each of the two devices runs"}};

}  // namespace hone::cli::rows
