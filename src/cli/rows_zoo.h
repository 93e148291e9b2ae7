#pragma once

#include "cli/commands.h"
#include "cli/rows_model.h"
#include "zoo/spec.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands 'hone zoo'.

namespace hone::cli::rows {

inline constexpr Positional kZooName[] = {
    {.name = "NAME", .take = Take::zoo_name, .doc = "a model of 'hone zoo list'"}};

inline constexpr Option kZooOutput[] = {
    output_option("where the graph goes: FILE.onnx, or FILE.hone with its weights next to it in "
                  "FILE.npz (default: NAME.hone)")};
inline constexpr auto kZooFile = joined(kZooOutput, kOnnxFile);

// The options of the model come first.
inline constexpr auto kZooExport = [] {
  std::array<Option, std::size(kZooOptions) + std::size(kZooFile)> all;
  size_t next = 0;
  for (const ZooOption& one : kZooOptions) {
    const bool is_flag = one.kind == ZooOption::Kind::flag;
    const bool is_word = one.kind == ZooOption::Kind::word;
    all[next++] = {.name = one.name,
                   .take = is_flag   ? Take::nothing
                           : is_word ? Take::word
                                     : Take::integer,
                   .value = is_flag ? "" : one.value,
                   .doc = one.doc,
                   .fallback = one.fallback,
                   .words = one.words,
                   .low = one.low,
                   .high = one.high};
  }
  for (const Option& one : kZooFile) all[next++] = one;
  return all;
}();

inline constexpr Option kZooDigits[] = {
    {.name = "output",
     .letter = 'o',
     .take = Take::output_path,
     .value = "FOLDER",
     .doc = "where the files go (default: digits)"},
    {.name = "samples",
     .take = Take::integer,
     .value = "N",
     .doc = "images to learn from",
     .fallback = "4000",
     .low = 1,
     .high = 1'000'000},
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "seed of the drawings",
     .fallback = "0",
     .low = 0},
};

inline constexpr Example kZooListExamples[] = {{"hone zoo list", "all models"}};
inline constexpr Example kZooExportExamples[] = {
    {"hone zoo export resnet18 -o resnet18.hone", "writes resnet18.hone and resnet18.npz"},
    {"hone zoo export resnet18 --opset 17 -o resnet18.onnx", "the same as an ONNX file"},
    {"hone zoo export lstm --unroll --length 64 -o lstm.hone", "a recurrence, written out"}};

inline constexpr Example kZooDigitsExamples[] = {
    {"hone zoo digits -o digits", "digits/train.npz, digits/test.npz and digits/runs"},
    {"hone zoo digits -o others --seed 1 --samples 500", "other drawings of the same task"}};

inline constexpr Command kZooCommands[] = {
    {.name = "zoo list",
     .summary = "List the built-in models",
     .text = "Parameters and multiply-adds are those of the full size at batch 1.",
     .examples = kZooListExamples,
     .run = &cmd_zoo_list},
    {.name = "zoo export",
     .summary = "Write a built-in model to files",
     .text = "The weights are random numbers of a sensible scale, and depend only on the seed. A "
             "size that is not given is the model's own.",
     .positionals = kZooName,
     .options = kZooExport,
     .examples = kZooExportExamples,
     .run = &cmd_zoo_export},
    {.name = "zoo digits",
     .summary = "Draw a labelled set of digits, to train and judge small models",
     .text =
         "Each image is a digit of a few strokes. Its points, size, slope and width are random, "
         "and it has noise. The arrays are image f32[N, 256], 16 by 16 pixels, and label "
         "i64[N]. "
         "train.npz and test.npz are for 'hone train'. The folder runs has 16 files of 128 "
         "other images each, for --data of 'hone quantize' (docs/quantize.md).",
     .options = kZooDigits,
     .examples = kZooDigitsExamples,
     .run = &cmd_zoo_digits},
};

}  // namespace hone::cli::rows
