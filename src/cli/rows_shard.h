#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that divides the values of a graph among devices.

namespace hone::cli::rows {

inline constexpr Option kShardOwn[] = {
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "the devices that prices are for: a system file, or a name such as ring:8 (default: "
            "parts of this machine)"},
    {.name = "target",
     .take = Take::file,
     .value = "FILE",
     .doc = "the target of each device of a system with a name (default: this machine)"},
    kCoreSearchOption,
    seed_option("seed of what is random"),
    {.name = "all", .doc = "list all values, not only inputs, constants and outputs"},
    {.name = "train",
     .doc = "divide a training step of the model, as 'hone grad' makes it, and not the model"},
    {.name = "loss",
     .take = Take::text,
     .value = "LOSS",
     .doc = "with --train: mse or cross-entropy of the first real output, or the name of an output "
            "that is one number",
     .fallback = "mse"},
    {.name = "optimizer",
     .take = Take::word,
     .value = "NAME",
     .doc = "with --train: rule that updates weights by their gradients",
     .fallback = "adam",
     .words = "sgd|momentum|adam|adamw"},
    {.name = "pipeline",
     .take = Take::text,
     .value = "STAGES",
     .doc = "divide the nodes into this number of stages, which micro-batches pass one behind the "
            "other; auto: as many as are best. --mesh is that of each stage, whose devices divide "
            "its values (default: as many devices as are best)"},
    {.name = "batch",
     .take = Take::text,
     .value = "INPUT[:DIM]",
     .doc = "with --pipeline: an input that has the batch, along dim 0 or this one (default: the "
            "first input that has a dim, and those with the same dim 0)",
     .repeats = true},
    output_option("where the program of one device goes, if it is FILE.hone or -; else the plan. A "
                  "pipeline has a plan alone")};
inline constexpr auto kShard = joined(kMesh, kMeshSearch, kShardOwn, kPipelineChoice, kSizes);
inline constexpr Example kShardExamples[] = {
    {"hone shard model.onnx --mesh x=4 -o model.shard",
     "all values divided by price among four devices; the plan as a text"},
    {"hone shard model.onnx --system torus:2x4 --memory 16GiB",
     "the same for eight devices of a system"},
    {"hone shard model.onnx --train --pipeline auto --system ring:4",
     "stages, micro-batches and schedule of a training step on four devices"},
    {"hone shard model.onnx --train --pipeline 2 --mesh x=2 --memory 16GiB",
     "two stages of two devices each, which divide weights where memory asks for it"},
    {"hone shard step.hone --pipeline 2 -o step.pipeline",
     "two stages, for 'hone run step.hone --pipeline step.pipeline'"},
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-]",
     "the batch in two halves: who holds what, and what devices exchange"},
    {"hone shard model.onnx --mesh batch=2 --shard x=[batch,-] -o part.hone",
     "the program that each of the two devices runs"}};

}  // namespace hone::cli::rows
