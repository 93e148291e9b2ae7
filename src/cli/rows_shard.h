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
         "the devices as a grid with named axes, as in x=2,y=4 (default: that of the plan, of the "
         "graph or of the system)"},
    {.name = "shard",
     .take = Take::text,
     .value = "NAME=DIMS",
     .doc = "how the value of that name is divided, as in 'tokens=[x, -]'; auto: what nobody says "
            "is chosen by price; a file: a plan (default: auto)",
     .repeats = true},
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "the devices that prices are for: a system file, or a name such as ring:8 (default: "
            "parts of this machine)"},
    {.name = "target",
     .take = Take::file,
     .value = "FILE",
     .doc = "the target of each device of a system with a name (default: this machine)"},
    {.name = "memory",
     .take = Take::text,
     .value = "BYTES",
     .doc = "the most that a device may use, as in 16GiB (default: what the system says)"},
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "the time of the search",
     .fallback = "10s"},
    seed_option("seed of what is random"),
    {.name = "all", .doc = "list all values, not only inputs, constants and outputs"},
    output_option("where the program of one device goes, if it is FILE.hone or -; else the plan")};
inline constexpr auto kShard = joined(kShardOwn, kSizes);
inline constexpr Example kShardExamples[] = {
    {"hone shard model.onnx --mesh x=4 -o model.shard",
     "all values divided by price among four devices; the plan as a text"},
    {"hone shard model.onnx --system torus:2x4 --memory 16GiB",
     "the same for eight devices of a system"},
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-]",
     "the batch in two halves: who holds what, and what devices exchange"},
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-] -o part.hone",
     "the program that each of the two devices runs"}};

}  // namespace hone::cli::rows
