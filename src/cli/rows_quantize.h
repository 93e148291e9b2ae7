#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that makes a model less exact and faster.

namespace hone::cli::rows {

inline constexpr Option kQuantizeOwn[] = {
    output_option("where the model goes: FILE.onnx, or FILE.hone with its weights next to it in "
                  "FILE.npz; none: it is not written"),
    {.name = "to",
     .take = Take::word,
     .value = "LEVEL",
     .doc = "the level of all layers that bear it; auto: for each layer the level that saves most "
            "time, by price, for its error",
     .fallback = "auto",
     .words = "auto|int8|w8|w4|bf16|f16"},
    {.name = "data",
     .take = Take::file,
     .value = "DIR",
     .doc = "arrays to calibrate and check on: a .npz or .safetensors file with the inputs of one "
            "run by name, or a .npy file with the only input. Every fourth file is for the check "
            "(default: random inputs)"},
    {.name = "error",
     .take = Take::real,
     .value = "E",
     .doc =
         "largest error: the root mean square of the difference over that of the f32 output; the "
         "worst output and run count",
     .fallback = "0.01"},
    {.name = "drop",
     .take = Take::text,
     .value = "P%",
     .doc = "in the place of --error: the share of right answers that may be lost, by --labels; "
            "without labels the share of rows whose largest element may be at another place"},
    {.name = "labels",
     .take = Take::text,
     .value = "NAME",
     .doc = "the array of --data that has the right answers: an integer per row of the first "
            "output of two dims"},
    {.name = "trials",
     .take = Take::integer,
     .value = "N",
     .doc = "choices of levels to measure beside the greedy one, by evolution",
     .fallback = "32",
     .low = 0,
     .high = 100'000},
    {.name = "keep",
     .take = Take::text,
     .value = "NAME",
     .doc = "a layer that stays f32, by the name of its result; a * at the end stands for any rest",
     .repeats = true},
    {.name = "group",
     .take = Take::integer,
     .value = "N",
     .doc = "how many weights of w4 share a scale: a power of 2",
     .fallback = "32",
     .low = 16,
     .high = 256},
    seed_option("seed of random inputs"),
    {.name = "page",
     .take = Take::output,
     .value = "FILE.html",
     .doc = "write a page for a browser: the front of all choices and a row for each layer"},
    json_option("write the table as data; - is the standard output"),
    kOpset,
    kPrimitives,
    kExternalData};
inline constexpr Option kQuantizeNative[] = {kTargetOption, kIsaOption, kPricesOption, kCostOption,
                                             kThreadsOption};
inline constexpr Option kQuantizeMemory[] = {kMemoryLimit};
inline constexpr auto kQuantize = joined(kQuantizeOwn, kSizes, kQuantizeMemory, kQuantizeNative);
inline constexpr Example kQuantizeExamples[] = {
    {"hone quantize model.onnx --to int8 --error 0.1 --data samples -o small.onnx",
     "bytes, calibrated on arrays of a folder"},
    {"hone quantize zoo:mlp,size=tiny --to w8 -o small.hone", "weights of 8 bits, random inputs"},
    {"hone quantize model.onnx --to w8 --keep y", "the table alone, one layer as it is"}};

}  // namespace hone::cli::rows
