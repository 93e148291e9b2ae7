#pragma once

#include "base/team.h"
#include "cli/rows_shared.h"
#include "session/evaluation.h"
#include "target/target.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of
// commands that take a model.

namespace hone::cli::rows {

inline constexpr Positional kModel[] = {
    {.name = "MODEL",
     .take = Take::model,
     .doc = "a graph file, an ONNX file, - for the standard input, or zoo:NAME[,OPTION=VALUE]..."}};

inline constexpr Option kDim = {.name = "dim",
                                .take = Take::text,
                                .value = "NAME=N",
                                .doc = "let the symbol NAME be N",
                                .repeats = true};
inline constexpr Option kShape = {.name = "shape",
                                  .take = Take::text,
                                  .value = "NAME=DIMS",
                                  .doc = "the shape of an input with symbols: x=1x3x224x224",
                                  .repeats = true};

inline constexpr Option kSizes[] = {kDim, kShape};

inline constexpr Option kInput = {
    .name = "input",
    .take = Take::text,
    .value = "NAME=VALUE",
    .doc = "one input: @FILE.npy, @FILE.pb, or a type and its numbers: 2x3xf32=1 2 3 4 5 6",
    .repeats = true};
inline constexpr Option kInputs = {.name = "inputs",
                                   .take = Take::file,
                                   .value = "FILE.npz",
                                   .doc = "inputs by name, from one file: .npz or .safetensors"};
// Of commands that do not run the model: for the sizes of the inputs alone.
inline constexpr Option kSizesOfInputs[] = {
    kDim,
    kShape,
    {.name = "input",
     .take = Take::text,
     .value = "NAME=VALUE",
     .doc = "as for 'hone run': open sizes become those of the input",
     .repeats = true},
    {.name = "inputs",
     .take = Take::file,
     .value = "FILE.npz",
     .doc = "the same for inputs by name, from one file"}};

inline constexpr std::string_view kModelText =
    "A graph file whose weights are in an .npz file finds that file next to itself, and an ONNX "
    "file its external data; --dim, --shape and the inputs given decide open sizes of an ONNX file "
    "before it is read. If a command runs or inspects the file, one integer or bool among the "
    "inputs "
    "decides, too: which branch of an If is taken. Options of a zoo model follow its name: "
    "zoo:bert_base,size=tiny,length=16 "
    "('hone help zoo export' lists them). 'hone run', 'bench', 'inspect' and 'check' take compiled "
    "models, FILE.honec, too; options that say how to compile do not go with these.";

// ---- ONNX files that are written ---------------------------------------------------------------

inline constexpr Option kOpset = {
    .name = "opset",
    .take = Take::integer,
    .value = "N",
    .doc =
        "version of the ops of an ONNX file: 17 to 21, with --primitives from 13 on; the "
        "highest if none is given",
    .low = 13,
    .high = 21};
inline constexpr Option kPrimitives = {
    .name = "primitives",
    .doc = "spell composites out in an ONNX file, as its readers of old times want them"};
inline constexpr Option kExternalData = {
    .name = "external-data",
    .doc =
        "put the weights of an ONNX file next to it, in FILE.onnx.data, as is done in any case "
        "where it would exceed 2 GB"};

// ---- Native code ------------------------------------------------------------------------------

inline constexpr Option kTargetOption = {
    .name = "target",
    .take = Take::file,
    .value = "FILE",
    .doc = "the machine to compile for, as 'hone target probe' writes it (default: this one)"};
inline constexpr Option kIsaOption = {.name = "isa",
                                      .take = Take::word,
                                      .value = "LEVEL",
                                      .doc = "use no more of the machine than this",
                                      .words = kIsaWords};
inline constexpr Option kPricesOption = {
    .name = "prices",
    .take = Take::file,
    .value = "FILE",
    .doc =
        "the coefficients that the planner prices kernels by (see 'hone help target prices'); "
        "default: not those that 'hone calibrate' has fitted"};
inline constexpr Option kCostOption = {
    .name = "cost",
    .take = Take::text,
    .value = "PRICE",
    .doc =
        "what the planner prices kernels by: analytic; learned, by the model of this target; "
        "measured, what the log has, else one of the others; or the file of a model (default: "
        "learned if there is a model of this target, else analytic)"};
inline constexpr Option kThreadsOption = {.name = "threads",
                                          .take = Take::integer,
                                          .value = "N",
                                          .doc = "that work on a kernel (default: one per core)",
                                          .low = 1,
                                          .high = Team::kMaxThreads};
inline constexpr Option kPlanOption = {
    .name = "plan",
    .take = Take::file,
    .value = "FILE",
    .doc =
        "decisions, whole or in part, of a graph or of several segments; what it leaves open is "
        "decided as always"};
inline constexpr Option kPlanLenientOption = {
    .name = "plan-lenient",
    .doc =
        "drop entries of --plan that do not fit, each with its line, and decide them anew: after "
        "an edit of a plan, or of its graph"};
inline constexpr Option kPlanSeedOption = {
    .name = "plan-seed",
    .take = Take::integer,
    .value = "N",
    .doc = "draw every decision at random from this seed: to test that any plan computes the same"};
inline constexpr Option kWithoutOption = {
    .name = "without",
    .take = Take::passes,
    .value = "NAME[,NAME]",
    .doc =
        "leave out passes that prepare the graph (integers, phases, "
        "bytes, fold, sink, splats, cse, unshare, donate), or "
        "heuristics of the planner (docs/planner.md)",
    .repeats = true};
inline constexpr Option kNativeCacheOption = {
    .name = "cache",
    .take = Take::file,
    .value = "DIR",
    .doc = "the folder of what is compiled (default: see 'hone help cache ls'); none: no cache"};
inline constexpr Option kFlushOption = {
    .name = "flush-denormals",
    .doc =
        "denormal numbers are 0 in what runs, and products of bf16 and f32 may be made by "
        "instructions that take them for 0, in long sums of f32 by parts that leave out 2^-18 of "
        "each; 'run' and 'bench' print how far that changes outputs"};
inline constexpr Option kLogOption = log_option(
    "what was measured before: the best plan it knows is taken (default: see 'hone log')");
inline constexpr Option kNoLogOption = {.name = "no-log",
                                        .doc = "plan anew, whatever was measured before"};
inline constexpr Option kLevelOption = {
    .name = "optimize",
    .letter = 'O',
    .take = Take::word,
    .value = "LEVEL",
    .doc =
        "2: plan the graph as it is; 3: first look for a cheaper graph that computes the same, by "
        "rewrite rules (docs/optimize.md)",
    .fallback = "2",
    .words = "2|3"};
inline constexpr Option kRewriteBudgetOption = {.name = "rewrite-budget",
                                                .take = Take::text,
                                                .value = "TIME",
                                                .doc = "how long to look for rewrites",
                                                .fallback = "30s"};
inline constexpr Option kAssumeRangeOption = {
    .name = "assume-range",
    .take = Take::text,
    .value = "1e+-K",
    .doc =
        "elements of inputs are 0 or have magnitudes between 1e-K and 1e+K: more rewrites are "
        "then known not to overflow (docs/optimize.md)"};
inline constexpr Option kNative[] = {
    kLogOption,         kNoLogOption,    kTargetOption,        kIsaOption,
    kPricesOption,      kCostOption,     kThreadsOption,       kPlanOption,
    kPlanLenientOption, kPlanSeedOption, kWithoutOption,       kNativeCacheOption,
    kFlushOption,       kLevelOption,    kRewriteBudgetOption, kAssumeRangeOption};

inline constexpr Option kVerify[] = {
    {.name = "verify",
     .doc = "of a compiled model, read all weights and check them, too, before anything else"}};

// ---- inspect -----------------------------------------------------------------------------------

inline constexpr Option kInspectOwn[] = {
    {.name = "format",
     .take = Take::word,
     .value = "FORMAT",
     .doc = "of the report",
     .fallback = "text",
     .words = "text|json"},
    {.name = "dot", .take = Take::output, .value = "FILE", .doc = "also write a Graphviz drawing"},
};
inline constexpr auto kInspect = joined(kInspectOwn, kSizesOfInputs, kVerify);
inline constexpr Example kInspectExamples[] = {
    {"hone inspect model.hone", "inputs, outputs, ops, parameters, work, largest tensors"},
    {"hone inspect model.onnx --dim batch=4", "an ONNX file, one of its open sizes chosen"},
    {"hone inspect zoo:resnet50 --format json", "the same as data"},
    {"hone inspect zoo:mlp --dot mlp.dot", "a drawing; 'dot -Tsvg mlp.dot' renders it"}};

// ---- run ---------------------------------------------------------------------------------------

// What a model is run on, and what it should give.
inline constexpr Option kSeed = seed_option("of the random numbers for inputs that are not given");
inline constexpr Option kMemoryLimit = {
    .name = "memory-limit",
    .take = Take::integer,
    .value = "MIB",
    .doc =
        "memory that inputs, weights, outputs and all on the way to them may take together; 0: no "
        "limit (default: half of what the machine has)",
    .high = int64_t{1} << 24};
inline constexpr Option kInputOptions[] = {kInput, kInputs, kSeed, kMemoryLimit};
inline constexpr Option kExpect = {
    .name = "expect",
    .take = Take::file,
    .value = "FILES",
    .doc =
        "compare with a .npz by name, or with .npy and .pb files in the order of the outputs: "
        "a,b"};
inline constexpr Option kRtol = {
    .name = "rtol",
    .take = Take::real,
    .value = "X",
    .doc = "relative tolerance of expected outputs (default: 1e-3 for f32; docs/accuracy.md)"};
inline constexpr Option kAtol = {
    .name = "atol",
    .take = Take::real,
    .value = "X",
    .doc =
        "absolute tolerance of expected outputs (default: 1e-5 of their largest number for f32)"};

inline constexpr Option kExpectations[] = {kExpect, kRtol, kAtol};

inline constexpr Option kRunBackend[] = {
    {.name = "backend",
     .take = Take::word,
     .value = "NAME",
     .doc = "what computes: compiled code, or the evaluator that defines what is right",
     .fallback = "native",
     .words = "native|reference"}};
inline constexpr Option kRunNumerics[] = {
    {.name = "numerics",
     .take = Take::word,
     .value = "MODE",
     .doc = "of the reference; wide: double, rounded at the end; rounded: at every op; fp32: plain "
            "float",
     .fallback = "wide",
     .words = kNumericsNames}};
inline constexpr Option kTraceOption[] = {
    {.name = "trace",
     .take = Take::output,
     .value = "FILE",
     .doc = "write what was done and when, by thread: stages and kernels compiled, launches by "
            "kernel and layer; JSON for ui.perfetto.dev"}};
inline constexpr Option kRunOutput[] = {output_option(
    "write the outputs: to a .npz, to a .npy (of one output), or into a folder", "", "PATH")};
inline constexpr Option kChecked[] = {
    {.name = "checked",
     .doc = "of an ONNX file: stop at values for which the standard has no result, such as indices "
            "out of range, and name the node"}};
inline constexpr auto kRun = joined(kRunBackend, kInputOptions, kSizes, kRunNumerics, kNative,
                                    kChecked, kVerify, kTraceOption, kRunOutput, kExpectations);
inline constexpr Example kRunExamples[] = {
    {"hone run zoo:resnet18", "random inputs; prints a summary of the outputs"},
    {"hone run model.honec --verify", "what 'hone compile' wrote, its weights checked"},
    {"hone run mlp.hone --input x=@x.npy -o y.npy", "files in, files out"},
    {"hone run model.onnx --input x=@input_0.pb --expect output_0.pb", "an ONNX test case"},
    {"hone run mlp.hone --input x=@x.npy --expect y.npy --atol 1e-4",
     "exit code 1 if they differ; says which tolerance would pass"},
    {"hone run zoo:mlp,symbolic-batch --dim N=4", "a model with an open batch size"},
    {"hone run model.onnx --trace trace.json", "compiling and a run, for ui.perfetto.dev"}};

inline constexpr Positional kDemoModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc, .optional = true}};
inline constexpr Option kDemoMemory[] = {kMemoryLimit};
inline constexpr auto kDemo = joined(kSizes, kDemoMemory, kNative);
inline constexpr Example kDemoExamples[] = {
    {"hone demo zoo:bert_base,size=tiny", "a built-in model"},
    {"hone demo zoo:mlp,symbolic-batch --dim N=8 --threads 1", "a size and the threads chosen"}};

// ---- compile -----------------------------------------------------------------------------------

inline constexpr Option kIsaOfFiles = {
    .name = "isa",
    .take = Take::word,
    .value = "LEVEL",
    .doc =
        "use no more of the machine than this; all: a compiled model gets code for the target, for "
        "the target without extensions, and for each level below",
    .words = "x86-64-v2|avx2|avx512|all"};
inline constexpr Option kNativeOfFiles[] = {
    kLogOption,         kNoLogOption,    kTargetOption,        kIsaOfFiles,
    kPricesOption,      kCostOption,     kThreadsOption,       kPlanOption,
    kPlanLenientOption, kPlanSeedOption, kWithoutOption,       kNativeCacheOption,
    kFlushOption,       kLevelOption,    kRewriteBudgetOption, kAssumeRangeOption};
inline constexpr Option kCompileOwn[] = {
    {.name = "sizes",
     .take = Take::text,
     .value = "NAME=N[,NAME=N]",
     .doc = "of a compiled model: have code for these sizes; given several times, for each of them",
     .repeats = true},
    {.name = "emit",
     .take = Take::word,
     .value = "FORM",
     .doc = "print this instead of a summary; objects go to a folder, one per kernel; library: "
            "libNAME.so or libNAME.a for C, and NAME.h (docs/library.md)",
     .words = "graph|plan|program|tiles|mlir|llvm|asm|object|library"},
    {.name = "stop-after",
     .take = Take::word,
     .value = "STAGE",
     .doc = "do no more than this (default: image; kernels if sizes are open)",
     .words = "graph|plan|program|kernels|image"},
    {.name = "time-passes",
     .doc = "say what each stage and each pass that prepares the graph took"},
    output_option("the compiled model, FILE.honec; with --emit where the text goes, the folder of "
                  "objects, or the library; -: the standard output",
                  "-", "PATH")};
inline constexpr auto kCompile = joined(kSizesOfInputs, kNativeOfFiles, kTraceOption, kCompileOwn);
inline constexpr Example kCompileExamples[] = {
    {"hone compile zoo:mlp", "kernels, code and memory of a model"},
    {"hone compile model.onnx -o model.honec", "one file to run, without the compiler"},
    {"hone compile model.onnx --isa all -o model.honec", "the same for older processors, too"},
    {"hone compile model.onnx --sizes batch=1 --sizes batch=8 -o model.honec", "for two sizes"},
    {"hone compile model.onnx --trace trace.json", "what compiling took, for ui.perfetto.dev"},
    {"hone compile model.onnx --emit library -o libmodel.so", "a library for C, and model.h"},
    {"hone compile zoo:mlp --emit plan -o mlp.plan", "every decision, as text to edit"},
    {"hone compile zoo:mlp --plan mlp.plan --emit asm", "what the edited plan becomes"}};

// ---- space -------------------------------------------------------------------------------------

inline constexpr Option kSpaceOwn[] = {{.name = "json", .doc = "print it as data"}};
inline constexpr auto kSpace = joined(kSizesOfInputs, kNative, kSpaceOwn);
inline constexpr Example kSpaceExamples[] = {
    {"hone space zoo:mlp", "schedules of each kernel, edits of the plan"},
    {"hone space model.onnx --plan model.plan --threads 1", "what is open around a plan"}};

// ---- bench -------------------------------------------------------------------------------------

inline constexpr Option kBenchOwn[] = {
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "how long to measure; at least three runs",
     .fallback = "3"},
    {.name = "runs",
     .take = Take::integer,
     .value = "N",
     .doc = "measure so many runs instead",
     .low = 1,
     .high = int64_t{1} << 30},
    {.name = "warmup",
     .take = Take::integer,
     .value = "N",
     .doc = "runs before that do not count, after the one that compiles",
     .fallback = "3",
     .high = int64_t{1} << 30},
    {.name = "vs",
     .take = Take::file,
     .value = "PLAN",
     .doc =
         "measure the model under this plan, too, in turns, and say how much longer it takes; "
         "'onnxruntime': ONNX Runtime, if node or Python has it; of a compiled model, another one, "
         "FILE.honec"},
    json_option("write the figures as data; - is the standard output, without the report"),
    {.name = "donate",
     .doc = "give up the inputs that the model may change in place, as a decoder does with its "
            "caches, an optimizer with its states: an output in their memory is the next run's "
            "input"},
    {.name = "profile", .doc = "measure as long again, and tell the layers that take longest"}};
inline constexpr auto kBench =
    joined(kInputOptions, kSizes, kNative, kBenchOwn, kTraceOption, kVerify);
inline constexpr Example kBenchExamples[] = {
    {"hone bench zoo:resnet50", "random inputs, all cores"},
    {"hone bench zoo:bert_base --threads 1 --profile", "where the time goes"},
    {"hone bench zoo:bert_base --trace trace.json", "compiling, and ten runs, for ui.perfetto.dev"},
    {"hone bench zoo:gpt2_decode --donate", "a step that adds to its caches in place"},
    {"hone bench zoo:mlp,symbolic-batch --dim N=16", "sizes that are open have to be chosen"},
    {"hone bench model.onnx --vs onnxruntime", "both in turns, and the ratio with its interval"},
    {"hone bench model.onnx --threads 1 --isa avx2", "less of the machine"},
    {"hone bench new.honec --vs old.honec", "two compiled models in turns"}};

// ---- report ------------------------------------------------------------------------------------

inline constexpr Option kReportOwn[] = {
    output_option("where the page goes; - is the standard output", "report.html"),
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "how long to measure, for each of the comparisons; at least three runs",
     .fallback = "2"},
    {.name = "alone", .doc = "leave ONNX Runtime out"},
    json_option("also write what the page shows as data; - is the standard output")};
inline constexpr auto kReport = joined(kReportOwn, kInputOptions, kSizes, kNative);
inline constexpr Example kReportExamples[] = {
    {"hone report model.onnx -o report.html", "one file for a browser, which needs nothing else"},
    {"hone report zoo:mlp --threads 1 --seconds 0.5 --alone", "a quick one of a built-in model"},
    {"hone report model.onnx --plan model.plan", "this plan, and how much faster it is"}};

// ---- check, convert and conformance ------------------------------------------------------------

inline constexpr Option kOrigin[] = {
    {.name = "model",
     .take = Take::model,
     .value = "MODEL",
     .doc = "of a compiled model: the model that it was made of, whose outputs are right"}};
inline constexpr auto kCheck =
    joined(kInputOptions, kSizes, kExpectations, kNative, kOrigin, kVerify);
inline constexpr Example kCheckExamples[] = {
    {"hone check model.onnx", "random inputs; how far native code and the reference are apart"},
    {"hone check mlp.hone --inputs x.npz --expect y.npy --rtol 1e-3",
     "exit code 1 if one of them is not within the tolerance"},
    {"hone check model.honec --model model.onnx", "whether a file computes what the model says"}};

inline constexpr Positional kConvertModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc}};
inline constexpr Option kConvertOwn[] = {
    output_option(
        "where the graph goes: FILE.onnx, or FILE.hone with its weights next to it in FILE.npz; "
        "- is the standard output, without large constants"),
    kOpset,
    kPrimitives,
    kExternalData,
};
inline constexpr auto kConvert = joined(kConvertOwn, kSizesOfInputs);
inline constexpr Example kConvertExamples[] = {
    {"hone convert model.onnx -o model.hone", "writes model.hone and model.npz"},
    {"hone convert model.hone --opset 17 -o model.onnx", "a file for other runtimes"},
    {"hone convert model.onnx --shape x=1x3x224x224 -o -", "show the graph"}};

// ---- grad --------------------------------------------------------------------------------------

inline constexpr Option kGradOwn[] = {
    {.name = "loss",
     .take = Take::text,
     .value = "LOSS",
     .doc = "mse or cross-entropy (of a last softmax: of what it reads) of the model's first real "
            "output, or the name of an output that is one number",
     .fallback = "mse"},
    {.name = "optimizer",
     .take = Take::word,
     .value = "NAME",
     .doc = "how weights follow their gradients; none: gradients are outputs, nothing is updated",
     .fallback = "sgd",
     .words = "sgd|momentum|adam|adamw|none"},
    {.name = "freeze",
     .take = Take::text,
     .value = "NAME",
     .doc = "a weight that stays as it is; a * at the end stands for any rest",
     .repeats = true},
    {.name = "memory",
     .take = Take::text,
     .value = "SIZE",
     .doc = "what a step may take for temporaries: 64MiB, or 50% of what it takes by itself; it "
            "then computes some values again instead of storing them; cheap: those that cost "
            "little",
     .fallback = "all"},
    output_option("where the step goes: STEP.hone or STEP.onnx; - is the standard output, without "
                  "large constants")};
inline constexpr Option kGradFile[] = {kOpset, kPrimitives, kExternalData};
inline constexpr auto kGrad = joined(kGradOwn, kSizesOfInputs, kGradFile);
inline constexpr Example kGradExamples[] = {
    {"hone grad zoo:mlp --loss cross-entropy --optimizer adam -o step.hone",
     "writes step.hone, and step.state.npz: 'hone bench step.hone --inputs step.state.npz'"},
    {"hone grad zoo:mlp --optimizer none -o -", "shows the graph of the gradients"},
    {"hone grad model.onnx --freeze 'encoder*' -o step.hone", "trains the rest of the model"},
    {"hone grad zoo:resnet18,batch=8,image=64 --memory 60% -o step.hone",
     "a step that takes less memory, and a little longer"}};

// ---- train -------------------------------------------------------------------------------------

inline constexpr Positional kTrainText[] = {
    {.name = "TRAIN", .take = Take::file, .doc = "what is trained, as text"}};
inline constexpr Option kTrainOwn[] = {
    output_option("the folder of checkpoints and results (default: TRAIN without its ending)", "",
                  "FOLDER"),
    {.name = "anew", .doc = "begin with the first step, whatever the folder holds"}};
inline constexpr Option kTrainNative[] = {kIsaOption, kPricesOption, kThreadsOption, kWithoutOption,
                                          kNativeCacheOption};
inline constexpr auto kTrain = joined(kTrainOwn, kTrainNative);
inline constexpr Example kTrainExamples[] = {
    {"hone train digits.train", "writes digits/model.hone; a second call trains on"},
    {"hone train digits.train -o try2 --anew --threads 1", "another folder, from the first step"}};

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
                                                 .doc = "of first weights, parts and orders",
                                                 .fallback = "0",
                                                 .low = 0}};
inline constexpr Positional kTrainCostData[] = {
    {.name = "DATA",
     .take = Take::file,
     .doc = "the folder of a data set (docs/datasets.md); with --budget a new or an old one "
            "(default: with --budget one in the user's folder)",
     .optional = true}};
inline constexpr Option kTrainCostOwn[] = {
    output_option("write the model there, for --cost, and not into the user's folder"),
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "measure this machine first, in four fifths of so long, 15m or 1h: DATA goes on, or "
            "is begun with all models of the zoo"},
    {.name = "from",
     .take = Take::file,
     .value = "MODEL",
     .doc =
         "go on from the networks of this model, which may be of another target: a file, or "
         "one that comes with hone, as zen4-avx512; none: from random numbers. With --budget "
         "it is the one that comes with hone for such instructions and fits best what is measured"},
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "learn from the programs of its part train alone (docs/datasets.md)"},
    {.name = "anew", .doc = "begin with the first step, whatever was trained before"}};
inline constexpr Option kTrainCostNative[] = {kThreadsOption, kNativeCacheOption};
inline constexpr Option kTrainCostIsa[] = {kIsaOption};
inline constexpr auto kTrainCost =
    joined(kTrainCostOwn, kTrainCostNetworks, kTrainCostIsa, kTrainCostNative);
inline constexpr Example kTrainCostExamples[] = {
    {"hone train cost --budget 15m", "of a machine that hone has no model of"},
    {"hone train cost set", "commands that plan use the model from then on"},
    {"hone train cost set -o my.model", "a file, for --cost"},
    {"hone train cost set --from zen4-avx512", "from little data of another machine"}};
inline constexpr Option kGraphNetwork[] = {
    {.name = "passing",
     .take = Take::word,
     .value = "LAYER",
     .doc = "of graphs: how nodes hear of their neighbours (default: sage)",
     .words = "sage|gat|gin"},
    {.name = "reduction",
     .take = Take::word,
     .value = "HOW",
     .doc = "of graphs: what makes one score of all nodes: mean, largest and sum of their columns; "
            "a number of each, added up; the state of an lstm behind the last one; the mean behind "
            "a transformer layer (default: columns for kernels, additive for layouts)",
     .words = "columns|additive|lstm|transformer"},
    {.name = "compare",
     .doc = "of graphs: configurations that are scored together look at one another before, and "
            "the best 32 are scored once more, together; not of additive scores"},
    {.name = "skeleton",
     .doc = "of layouts: a score is the logarithm of the plan's price and what the network adds; "
            "not by segments"},
    {.name = "segments",
     .take = Take::integer,
     .value = "N",
     .doc = "of graphs that do not fit into memory: train and score additive models by segments of "
            "so many nodes (default: graphs as a whole)",
     .low = 1,
     .high = 100'000'000},
    {.name = "loss",
     .take = Take::word,
     .value = "LOSS",
     .doc = "of graphs: what training makes small (default: logistic for kernels, weighted for "
            "layouts)",
     .words = "logistic|weighted|hinge|list_mle|log_squared|mixed"},
    {.name = "hops",
     .take = Take::integer,
     .value = "N",
     .doc = "of graphs: keep what is so many edges from a configurable node, and condense the "
            "rest; -1: keep all (default: 1 for layouts)",
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
     .doc = "learn from the programs of its part train alone (docs/datasets.md)"},
    {.name = "epochs",
     .take = Take::integer,
     .value = "N",
     .doc = "how often it sees all graphs",
     .fallback = "30",
     .low = 1,
     .high = 10'000},
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "of first weights and orders",
     .fallback = "0",
     .low = 0}};
inline constexpr auto kTrainLayout = joined(kTrainLayoutOwn, kGraphNetwork, kTrainCostNative);
inline constexpr Example kTrainLayoutExamples[] = {
    {"hone train layout set -o layouts.model", "from what 'hone dataset build --task layout' made"},
    {"hone train layout set --split my.split -o layouts.model", "from some of its programs"}};
inline constexpr Positional kEvalData[] = {
    {.name = "DATA",
     .take = Take::file,
     .doc = "the folder of a data set (docs/datasets.md), or graphs as for 'hone train layout'"}};
inline constexpr Option kEvalOwn[] = {
    {.name = "task",
     .take = Take::word,
     .value = "TASK",
     .doc = "of a data set: kernels by schedules, kernels in absolute time, or programs by layouts",
     .fallback = "tile",
     .words = "tile|fusion|layout"},
    {.name = "model",
     .take = Take::file,
     .value = "FILE",
     .doc = "judge this model, by programs that it has not learned from"},
    {.name = "splits",
     .take = Take::integer,
     .value = "N",
     .doc = "train so many models, each to be judged by other programs",
     .fallback = "5",
     .low = 1,
     .high = 100},
    {.name = "split",
     .take = Take::file,
     .value = "FILE",
     .doc = "in place of these: judge by its part test what learns from the others; several go "
            "with commas. Not of graphs that are left out in turn, or of one alone"},
    json_option("write what was found as data; - is the standard output, without the table")};
inline constexpr auto kEval = joined(kEvalOwn, kTrainCostNetworks, kGraphNetwork, kTrainCostNative);
inline constexpr Example kEvalExamples[] = {
    {"hone eval set --model my.model", "how good a model is for other programs"},
    {"hone eval set --splits 5", "how good models of such data are"},
    {"hone eval set --task fusion", "how far prices are from times"},
    {"hone eval op_tuning_data.pb", "of kernels of TpuGraphs, each left out of training in turn"}};

}  // namespace hone::cli::rows
