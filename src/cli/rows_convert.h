#pragma once

#include "cli/rows_model.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of
// commands that write a model.

namespace hone::cli::rows {

// ---- convert -----------------------------------------------------------------------------------

inline constexpr Positional kConvertModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc}};
inline constexpr Option kConvertOwn[] = {output_option(
    "where the graph goes: FILE.onnx, FILE.mlir, FILE.hlo, or FILE.hone with its weights next "
    "to it in FILE.npz; - is the standard output, without large constants")};
inline constexpr auto kConvert = joined(kConvertOwn, kOnnxFile, kSizesOfInputs);
inline constexpr Example kConvertExamples[] = {
    {"hone convert model.onnx -o model.hone", "writes model.hone and model.npz"},
    {"hone convert model.hone --opset 17 -o model.onnx", "a file for other runtimes"},
    {"hone convert model.onnx --shape x=1x3x224x224 -o -", "show the graph"}};

// ---- shrink ------------------------------------------------------------------------------------

inline constexpr Option kShrinkOwn[] = {
    output_option("where the smaller model goes, as for 'hone convert'; none: it is not written"),
    {.name = "to",
     .take = Take::real,
     .value = "OPERATIONS",
     .doc = "divide the largest sizes until a run takes at most this; 1e9 without --divide"},
    {.name = "divide",
     .take = Take::text,
     .value = "WHAT=FACTOR",
     .doc = "divide these sizes, and those that go with them, by the number",
     .repeats = true},
    {.name = "keep",
     .take = Take::text,
     .value = "WHAT",
     .doc = "leave these sizes as they are",
     .repeats = true},
    {.name = "least",
     .take = Take::integer,
     .value = "N",
     .doc = "the smallest size that a division may give",
     .fallback = "2",
     .low = 1,
     .high = 1 << 20}};
inline constexpr auto kShrink = joined(kShrinkOwn, kOnnxFile, kSizesOfInputs);
inline constexpr Example kShrinkExamples[] = {
    {"hone shrink model.onnx", "the sizes that can be divided"},
    {"hone shrink zoo:bert_base,size=tiny --to 1e6 -o small.hone", "a model of less work"},
    {"hone shrink mlp.hone --divide x:1=2 -o small.hone", "half of each row of an input"}};

// ---- grad --------------------------------------------------------------------------------------

inline constexpr Option kGradOwn[] = {
    {.name = "loss",
     .take = Take::text,
     .value = "LOSS",
     .doc = "mse or cross-entropy of the model's first real output (of the input of a last "
            "softmax), or the name of an output that is one number",
     .fallback = "mse"},
    {.name = "optimizer",
     .take = Take::word,
     .value = "NAME",
     .doc = "rule that updates weights by their gradients; none: gradients are outputs, and "
            "nothing is updated",
     .fallback = "sgd",
     .words = "sgd|momentum|adam|adamw|none"},
    {.name = "freeze",
     .take = Take::text,
     .value = "NAME",
     .doc = "a weight that is not trained; a * at the end stands for any rest",
     .repeats = true},
    {.name = "memory",
     .take = Take::text,
     .value = "SIZE",
     .doc = "largest memory for temporaries of a step: 64MiB, or 50% of the memory that it needs; "
            "some values are then computed again; cheap: only those that cost little",
     .fallback = "all"},
    output_option("where the step goes: STEP.hone or STEP.onnx; - is the standard output, without "
                  "large constants")};
inline constexpr auto kGrad = joined(kGradOwn, kSizesOfInputs, kOnnxFile);
inline constexpr Example kGradExamples[] = {
    {"hone grad zoo:mlp --loss cross-entropy --optimizer adam -o step.hone",
     "writes step.hone, and step.state.npz: 'hone bench step.hone --inputs step.state.npz'"},
    {"hone grad zoo:mlp --optimizer none -o -", "shows the graph of the gradients"},
    {"hone grad model.onnx --freeze 'encoder*' -o step.hone", "trains the rest of the model"},
    {"hone grad zoo:resnet18,batch=8,image=64 --memory 60% -o step.hone",
     "a step that takes less memory, and a little longer"}};

}  // namespace hone::cli::rows
