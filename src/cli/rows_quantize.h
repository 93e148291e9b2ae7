#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that makes a model less exact and faster.

namespace hone::cli::rows {

inline constexpr Option kQuantizeOwn[] = {
    output_option("where the model goes: FILE.onnx, or FILE.hone with its weights next to it in "
                  "FILE.npz; none: it is not written"),
    error_option("0.01"),
    seed_option("seed of random inputs"),
    {.name = "page",
     .take = Take::output,
     .value = "FILE.html",
     .doc = "write a page for a browser: the front of all choices and a row for each layer"},
    json_option("write the table as data; - is the standard output")};
inline constexpr Option kQuantizeNative[] = {kTargetOption, kIsaOption,     kPricesOption,
                                             kCostOption,   kThreadsOption, kDeviceOption};
inline constexpr Option kQuantizeMemory[] = {kMemoryLimit};
inline constexpr auto kQuantize =
    joined(kQuantizeOwn, kOnnxFile, kLevelOptions, kSizes, kQuantizeMemory, kQuantizeNative);
inline constexpr Example kQuantizeExamples[] = {
    {"hone quantize model.onnx --to int8 --error 0.1 --data samples -o small.onnx",
     "bytes, calibrated on arrays of a folder"},
    {"hone quantize zoo:mlp,size=tiny --to w8 -o small.hone", "weights of 8 bits, random inputs"},
    {"hone quantize model.onnx --device cuda --error 1e-3", "measured on the GPU, tf32 and others"},
    {"hone quantize model.onnx --to w8 --keep y", "the table alone, one layer as it is"}};

}  // namespace hone::cli::rows
