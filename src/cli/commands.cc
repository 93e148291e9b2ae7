#include "cli/commands.h"

#include "base/text.h"
#include "cli/command.h"
#include "cli/echo.h"
#include "cli/evaluation.h"
#include "cli/native.h"
#include "ir/op.h"
#include "ir/passes/passes.h"
#include "target/target.h"
#include "zoo/zoo.h"

#include <algorithm>

namespace hone::cli {
namespace {

constexpr Option kCommon[] = {
    {.name = "color",
     .take = Take::word,
     .value = "WHEN",
     .doc = "colour the talk; auto: on a terminal, unless NO_COLOR is set",
     .fallback = "auto",
     .words = "auto|always|never"},
    {.name = "progress",
     .take = Take::word,
     .value = "HOW",
     .doc = "show progress; auto: a bar on a terminal, plain lines elsewhere",
     .fallback = "auto",
     .words = "auto|plain|json|none"},
    {.name = "help", .letter = 'h', .doc = "show the command's help"},
};

constexpr Positional kModel[] = {
    {.name = "MODEL",
     .take = Take::model,
     .doc = "a graph file, an ONNX file, - for the standard input, or zoo:NAME[,OPTION=VALUE]..."}};

constexpr Option kDim = {.name = "dim",
                         .take = Take::text,
                         .value = "NAME=N",
                         .doc = "let the symbol NAME be N",
                         .repeats = true};
constexpr Option kShape = {.name = "shape",
                           .take = Take::text,
                           .value = "NAME=DIMS",
                           .doc = "the shape of an input with symbols: x=1x3x224x224",
                           .repeats = true};

constexpr std::string_view kModelText =
    "A graph file whose weights are in an .npz file finds that file next to itself, and an ONNX "
    "file its external data; --dim and --shape decide open sizes of an ONNX file before it is "
    "read. Options of a zoo model follow its name: zoo:bert_base,size=tiny,length=16 ('hone help "
    "zoo export' lists them).";

// ---- ONNX files that are written ---------------------------------------------------------------

constexpr Option kOpset = {
    .name = "opset",
    .take = Take::integer,
    .value = "N",
    .doc =
        "version of the ops of an ONNX file: 17 to 21, with --primitives from 13 on; the "
        "highest if none is given",
    .low = 13,
    .high = 21};
constexpr Option kPrimitives = {
    .name = "primitives",
    .doc = "spell composites out in an ONNX file, as its readers of old times want them"};
constexpr Option kExternalData = {
    .name = "external-data",
    .doc =
        "put the weights of an ONNX file next to it, in FILE.onnx.data, as is done in any case "
        "where it would exceed 2 GB"};

// ---- zoo ---------------------------------------------------------------------------------------

constexpr Positional kZooName[] = {
    {.name = "NAME", .take = Take::zoo_name, .doc = "a model of 'hone zoo list'"}};

// Those of the model first; zoo_options() leaves those of the file off.
constexpr Option kZooExport[] = {
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "seed of the weights",
     .fallback = "0"},
    {.name = "size",
     .take = Take::word,
     .value = "SIZE",
     .doc = "full: as published; tiny: the same structure in small",
     .fallback = "full",
     .words = "tiny|full"},
    {.name = "batch",
     .take = Take::integer,
     .value = "N",
     .doc = "batch size",
     .low = 1,
     .high = 65536},
    {.name = "length",
     .take = Take::integer,
     .value = "N",
     .doc = "length of sequences",
     .low = 1,
     .high = 65536},
    {.name = "image",
     .take = Take::integer,
     .value = "N",
     .doc = "height and width of images",
     .low = 1,
     .high = 16384},
    {.name = "depth",
     .take = Take::integer,
     .value = "N",
     .doc = "layers; in networks of stages, blocks of every stage",
     .low = 1,
     .high = 4096},
    {.name = "symbolic-batch", .doc = "leave the batch size open, as the symbol N"},
    {.name = "symbolic-length", .doc = "leave the length of sequences open, as the symbol T"},
    {.name = "unroll", .doc = "write recurrent cells out, step by step"},
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "FILE",
     .doc = "where the graph goes: FILE.onnx, or FILE.hone with its weights next to it in FILE.npz "
            "(default: NAME.hone)"},
    kOpset,
    kPrimitives,
    kExternalData,
};
constexpr size_t kZooFileOptions = 4;  // the last ones, from "output" on

constexpr Example kZooListExamples[] = {{"hone zoo list", "all models"}};
constexpr Example kZooExportExamples[] = {
    {"hone zoo export resnet18 -o resnet18.hone", "writes resnet18.hone and resnet18.npz"},
    {"hone zoo export resnet18 --opset 17 -o resnet18.onnx", "the same as an ONNX file"},
    {"hone zoo export lstm_lm --unroll --length 64 -o lstm.hone", "a recurrence, written out"}};

// ---- target ------------------------------------------------------------------------------------

constexpr std::string_view kTargetText =
    "A target is a machine as data: cores, instructions, caches and rates. Its text may be edited. "
    "Rates of a machine that nobody measured are estimates.";
constexpr Positional kTargetFile[] = {{.name = "FILE",
                                       .take = Take::file,
                                       .doc = "a target file; host, the default: this machine",
                                       .optional = true}};
constexpr Option kIsa = {.name = "isa",
                         .take = Take::word,
                         .value = "LEVEL",
                         .doc = "leave out the instructions above this level",
                         .words = kIsaWords};
constexpr Option kTargetShow[] = {kIsa};
constexpr Option kTargetProbe[] = {
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "FILE",
     .doc = "where the target goes; - is the standard output",
     .fallback = "-"},
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "time of measuring, at most 60; some samples are taken in any case",
     .fallback = "10"},
    kIsa};
constexpr Example kTargetShowExamples[] = {
    {"hone target show", "this machine, with estimated rates"},
    {"hone target show my.target", "a file, checked"},
    {"hone target show my.target --isa avx2 > avx2.target", "the same machine without AVX-512"}};
constexpr Example kTargetListExamples[] = {{"hone target list", "this machine, level by level"}};
constexpr Example kTargetProbeExamples[] = {
    {"hone target probe -o my.target", "measures this machine"},
    {"hone target probe --isa avx2 -o avx2.target", "what code without AVX-512 reaches"}};

// ---- cache -------------------------------------------------------------------------------------

constexpr std::string_view kCacheText =
    "Compiled kernels are kept in a folder, so that each is compiled once on a machine. They may "
    "be "
    "removed at any time. Without --cache it is the folder hone in $XDG_CACHE_HOME, which is "
    "~/.cache by default.";
constexpr Option kCache = {
    .name = "cache", .take = Take::file, .value = "DIR", .doc = "the folder of compiled kernels"};
constexpr Option kCacheOptions[] = {kCache};
constexpr Option kCacheGc[] = {{.name = "limit",
                                .take = Take::integer,
                                .value = "MIB",
                                .doc = "what all entries may have together; 0 removes all",
                                .fallback = "1024",
                                .high = int64_t{1} << 24},
                               kCache};
constexpr Example kCacheLsExamples[] = {{"hone cache ls", "the kernels, last used first"}};
constexpr Example kCacheVerifyExamples[] = {
    {"hone cache verify", "exit code 1 if some were damaged"}};
constexpr Example kCacheGcExamples[] = {{"hone cache gc --limit 100", "keeps 100 MiB"}};

// ---- inspect -----------------------------------------------------------------------------------

constexpr Option kInspect[] = {
    {.name = "format",
     .take = Take::word,
     .value = "FORMAT",
     .doc = "of the report",
     .fallback = "text",
     .words = "text|json"},
    {.name = "dot", .take = Take::file, .value = "FILE", .doc = "also write a Graphviz drawing"},
    kDim,
    kShape,
};
constexpr Example kInspectExamples[] = {
    {"hone inspect model.hone", "inputs, outputs, ops, parameters, work, largest tensors"},
    {"hone inspect model.onnx --dim batch=4", "an ONNX file, one of its open sizes chosen"},
    {"hone inspect zoo:resnet50 --format json", "the same as data"},
    {"hone inspect zoo:mlp --dot mlp.dot", "a drawing; 'dot -Tsvg mlp.dot' renders it"}};

// ---- run ---------------------------------------------------------------------------------------

// What a model is run on, and what it should give.
constexpr Option kInput = {
    .name = "input",
    .take = Take::text,
    .value = "NAME=VALUE",
    .doc = "one input: @FILE.npy, @FILE.pb, or a type and its numbers: 2x3xf32=1 2 3 4 5 6",
    .repeats = true};
constexpr Option kInputs = {.name = "inputs",
                            .take = Take::file,
                            .value = "FILE.npz",
                            .doc = "inputs by name, from one file"};
constexpr Option kSeed = {.name = "seed",
                          .take = Take::integer,
                          .value = "N",
                          .doc = "of the random numbers for inputs that are not given",
                          .fallback = "0"};
constexpr Option kExpect = {
    .name = "expect",
    .take = Take::file,
    .value = "FILES",
    .doc =
        "compare with a .npz by name, or with .npy and .pb files in the order of the outputs: "
        "a,b"};
constexpr Option kRtol = {.name = "rtol",
                          .take = Take::real,
                          .value = "X",
                          .doc = "relative tolerance of --expect (default: by element type)"};
constexpr Option kAtol = {.name = "atol",
                          .take = Take::real,
                          .value = "X",
                          .doc = "absolute tolerance of --expect (default: by element type)"};

constexpr Option kRun[] = {
    {.name = "backend",
     .take = Take::word,
     .value = "NAME",
     .doc = "what computes: compiled code, or the evaluator that defines what is right",
     .fallback = "native",
     .words = "native|reference"},
    kInput,
    kInputs,
    kSeed,
    kDim,
    kShape,
    {.name = "numerics",
     .take = Take::word,
     .value = "MODE",
     .doc = "of the reference; wide: double, rounded at the end; rounded: at every op; fp32: plain "
            "float",
     .fallback = "wide",
     .words = kNumericsNames},
    kTargetOption,
    kIsaOption,
    kThreadsOption,
    kPlanOption,
    kPlanSeedOption,
    kNativeCacheOption,
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "PATH",
     .doc = "write the outputs: to a .npz, to a .npy (of one output), or into a folder"},
    kExpect,
    kRtol,
    kAtol,
};
constexpr Example kRunExamples[] = {
    {"hone run zoo:resnet18", "random inputs; prints a summary of the outputs"},
    {"hone run mlp.hone --input x=@x.npy -o y.npy", "files in, files out"},
    {"hone run model.onnx --input x=@input_0.pb --expect output_0.pb", "an ONNX test case"},
    {"hone run mlp.hone --input x=@x.npy --expect y.npy --atol 1e-4",
     "exit code 1 if they differ; says which tolerance would pass"},
    {"hone run zoo:mlp,symbolic-batch --dim N=4", "a model with an open batch size"}};

constexpr Positional kDemoModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc, .optional = true}};
constexpr Example kDemoExamples[] = {{"hone demo zoo:bert_base,size=tiny", "a built-in model"}};

// ---- compile -----------------------------------------------------------------------------------

constexpr Option kCompile[] = {
    kDim,
    kShape,
    kTargetOption,
    kIsaOption,
    kThreadsOption,
    kPlanOption,
    kPlanSeedOption,
    kNativeCacheOption,
    {.name = "emit",
     .take = Take::word,
     .value = "FORM",
     .doc = "print this instead of a summary; objects go to a folder, one per kernel",
     .words = "graph|plan|program|tiles|mlir|llvm|asm|object"},
    {.name = "stop-after",
     .take = Take::word,
     .value = "STAGE",
     .doc = "do no more than this",
     .fallback = "image",
     .words = "graph|plan|program|kernels|image"},
    {.name = "time-passes", .doc = "say what each stage took"},
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "PATH",
     .doc = "where the text goes, or the folder of objects; -: the standard output",
     .fallback = "-"}};
constexpr Example kCompileExamples[] = {
    {"hone compile zoo:mlp", "kernels, code and memory of a model"},
    {"hone compile zoo:mlp --emit plan -o mlp.plan", "every decision, as text to edit"},
    {"hone compile zoo:mlp --plan mlp.plan --emit asm", "what the edited plan becomes"}};

// ---- bench -------------------------------------------------------------------------------------

constexpr Option kBench[] = {kSeed,
                             kInput,
                             kInputs,
                             kDim,
                             kShape,
                             kTargetOption,
                             kIsaOption,
                             kThreadsOption,
                             kPlanOption,
                             kPlanSeedOption,
                             kNativeCacheOption,
                             {.name = "seconds",
                              .take = Take::real,
                              .value = "S",
                              .doc = "how long to measure",
                              .fallback = "3"},
                             {.name = "profile",
                              .doc = "measure as long again, and tell the kernels that take "
                                     "longest"}};
constexpr Example kBenchExamples[] = {
    {"hone bench zoo:resnet50", "random inputs, all cores"},
    {"hone bench zoo:bert_base --threads 1 --profile", "where the time goes"},
    {"hone bench model.onnx --threads 1 --isa avx2", "less of the machine"}};

// ---- check, convert and conformance ------------------------------------------------------------

constexpr Option kCheck[] = {kInput,          kInputs,           kSeed,          kDim,
                             kShape,          kExpect,           kRtol,          kAtol,
                             kTargetOption,   kIsaOption,        kThreadsOption, kPlanOption,
                             kPlanSeedOption, kNativeCacheOption};
constexpr Example kCheckExamples[] = {
    {"hone check model.onnx", "random inputs; how far native code and the reference are apart"},
    {"hone check mlp.hone --inputs x.npz --expect y.npy --rtol 1e-3",
     "exit code 1 if one of them is not within the tolerance"}};

constexpr Positional kConvertModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc}};
constexpr Option kConvert[] = {
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "FILE",
     .doc =
         "where the graph goes: FILE.onnx, or FILE.hone with its weights next to it in FILE.npz; "
         "- is the standard output, without large constants"},
    kOpset,
    kPrimitives,
    kExternalData,
    kDim,
    kShape,
};
constexpr Example kConvertExamples[] = {
    {"hone convert model.onnx -o model.hone", "writes model.hone and model.npz"},
    {"hone convert model.hone --opset 17 -o model.onnx", "a file for other runtimes"},
    {"hone convert model.onnx --shape x=1x3x224x224 -o -", "show the graph"}};

constexpr Positional kCaseFolders[] = {{.name = "DIR",
                                        .take = Take::file,
                                        .doc = "a folder that is a test case, or has some below",
                                        .repeats = true}};
constexpr Option kCaseRtol = {.name = "rtol",
                              .take = Take::real,
                              .value = "X",
                              .doc = "relative tolerance of real outputs",
                              .fallback = "1e-3"};
constexpr Option kCaseAtol = {.name = "atol",
                              .take = Take::real,
                              .value = "X",
                              .doc = "absolute tolerance of real outputs",
                              .fallback = "1e-7"};
constexpr Option kCaseMemory = {.name = "memory-limit",
                                .take = Take::integer,
                                .value = "MIB",
                                .doc = "memory of a case; 0: no limit",
                                .fallback = "4096",
                                .high = int64_t{1} << 24};
constexpr Option kCaseBackend = {.name = "backend",
                                 .take = Take::word,
                                 .value = "NAME",
                                 .doc = "what computes",
                                 .fallback = "reference",
                                 .words = "reference|native"};
constexpr Option kConformance[] = {
    kCaseBackend,
    kIsaOption,
    kPlanSeedOption,
    kNativeCacheOption,
    {.name = "constants",
     .doc = "turn the inputs into constants of the graphs, and fold them before they are run"},
    {.name = "symbolic",
     .doc = "turn the sizes of inputs into symbols where the model can be typed"},
    {.name = "filter",
     .take = Take::text,
     .value = "GLOB",
     .doc = "run the cases whose path below DIR matches: '*conv*'"},
    {.name = "jobs",
     .letter = 'j',
     .take = Take::integer,
     .value = "N",
     .doc = "cases that run at a time (default: one per core)",
     .low = 1,
     .high = 1024},
    {.name = "time-limit",
     .take = Take::real,
     .value = "S",
     .doc = "seconds for a case; 0: no limit",
     .fallback = "60"},
    kCaseMemory,
    kCaseRtol,
    kCaseAtol,
    {.name = "json",
     .take = Take::file,
     .value = "FILE",
     .doc = "write counts and a row for each case; - is the standard output, without the report"},
    {.name = "markdown", .take = Take::file, .value = "FILE", .doc = "the same as a document"},
    {.name = "verbose", .doc = "print a line for each case"},
};
constexpr Example kConformanceExamples[] = {
    {"hone conformance /usr/share/libonnx-testdata/data/node --json node.json",
     "the ONNX standard's cases, as Debian has them"},
    {"hone conformance cases --filter '*conv*' --symbolic --verbose",
     "some of them, line by line"}};

constexpr Positional kCaseFolder[] = {
    {.name = "FOLDER", .take = Take::file, .doc = "a folder that is a test case"}};
constexpr Option kCaseOptions[] = {{.name = "mode",
                                    .take = Take::word,
                                    .value = "MODE",
                                    .doc = "how inputs are treated",
                                    .fallback = "plain",
                                    .words = "plain|constants|symbolic"},
                                   kCaseBackend,
                                   kIsaOption,
                                   kPlanSeedOption,
                                   kNativeCacheOption,
                                   kCaseMemory,
                                   kCaseRtol,
                                   kCaseAtol};

// ---- fuzz and reduce ---------------------------------------------------------------------------

constexpr Option kFuzzSeed = {.name = "seed",
                              .take = Take::integer,
                              .value = "N",
                              .doc = "of the first case; the others follow",
                              .fallback = "0",
                              .low = 0};
constexpr Option kFuzzCount = {.name = "count",
                               .take = Take::integer,
                               .value = "N",
                               .doc = "how many cases",
                               .fallback = "1000",
                               .low = 1,
                               .high = int64_t{1} << 40};
constexpr Option kFuzzIsa = {.name = "isa",
                             .take = Take::word,
                             .value = "LEVEL",
                             .doc = "the cases take turns among the levels up to this",
                             .words = kIsaWords};
constexpr Option kCaseTime = {.name = "time-limit",
                              .take = Take::real,
                              .value = "S",
                              .doc = "seconds for a case while it is reduced; 0: no limit",
                              .fallback = "60"};
constexpr Option kFuzz[] = {
    kFuzzSeed,
    kFuzzCount,
    kFuzzIsa,
    {.name = "jobs",
     .letter = 'j',
     .take = Take::integer,
     .value = "N",
     .doc = "processes at a time (default: one per core)",
     .low = 1,
     .high = 1024},
    {.name = "save",
     .take = Take::file,
     .value = "DIR",
     .doc = "where cases that fail go, as SEED.case and reduced as SEED.reduced.case",
     .fallback = "hone-fuzz"},
    {.name = "at-least",
     .take = Take::integer,
     .value = "N",
     .doc = "fail if a value of a decision came up fewer times",
     .fallback = "0",
     .low = 0},
    {.name = "no-reduce", .doc = "save cases that fail as they are"},
    kCaseTime};
constexpr Option kFuzzCases[] = {kFuzzSeed, kFuzzCount, kFuzzIsa};
constexpr Example kFuzzExamples[] = {
    {"hone fuzz --count 30000 --at-least 100", "what ./dev sweep runs"},
    {"hone fuzz --seed 1234 --count 1", "one case again"}};

constexpr Positional kCase[] = {
    {.name = "CASE", .take = Take::file, .doc = "a case as hone fuzz saves it"}};
constexpr Option kReduce[] = {{.name = "output",
                               .letter = 'o',
                               .take = Take::file,
                               .value = "FILE",
                               .doc = "where the smaller case goes",
                               .fallback = "-"},
                              kCaseTime};
constexpr Example kReduceExamples[] = {
    {"hone reduce hone-fuzz/1234.case -o small.case", "the least that still fails"}};

// ---- opt, ops and the rest ---------------------------------------------------------------------

constexpr Positional kOptModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc, .optional = true}};
constexpr Option kOpt[] = {
    {.name = "pass",
     .letter = 'p',
     .take = Take::passes,
     .value = "PASSES",
     .doc = "the passes to run, in order: fold,cse,dce",
     .repeats = true},
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "FILE",
     .doc = "where the graph goes: FILE.hone or FILE.onnx; - is the standard output, without large "
            "constants",
     .fallback = "-"},
    kOpset,
    kPrimitives,
    kExternalData,
    {.name = "print-changed", .doc = "show the graph after each pass that changed it"},
    {.name = "time-passes", .doc = "show the time of each pass"},
    {.name = "verify-each", .doc = "check the graph after every pass, not only at the end"},
    {.name = "list", .doc = "list the passes"},
};
constexpr Example kOptExamples[] = {
    {"hone opt --list", "what there is"},
    {"hone opt model.hone --pass fold,cse,dce -o small.hone --time-passes", "run three"}};

constexpr Positional kOpsName[] = {
    {.name = "NAME", .take = Take::op, .doc = "show this op alone", .optional = true}};
constexpr Option kOps[] = {
    {.name = "onnx", .doc = "list the ONNX ops that are imported"},
    {.name = "markdown", .doc = "print docs/ops.md; with --onnx, docs/onnx-ops.md"}};
constexpr Example kOpsExamples[] = {
    {"hone ops", "all ops, by family"},
    {"hone ops reduce", "operands, attributes and semantics"},
    {"hone ops --onnx", "what of ONNX is imported, by the versions that changed it"}};

constexpr Positional kShell[] = {
    {.name = "SHELL", .take = Take::word, .doc = "bash, zsh or fish", .words = "bash|zsh|fish"}};
constexpr Example kCompletionsExamples[] = {
    {"source <(hone completions bash)", "in ~/.bashrc"},
    {"hone completions zsh > ~/.zfunc/_hone", "a folder of $fpath"},
    {"hone completions fish > ~/.config/fish/completions/hone.fish", ""}};
constexpr Example kManExamples[] = {{"hone man | man -l -", "read it"}};

constexpr Positional kTopic[] = {{.name = "COMMAND",
                                  .take = Take::command,
                                  .doc = "show the help of this command",
                                  .optional = true,
                                  .repeats = true}};
constexpr Option kHelp[] = {{.name = "markdown", .doc = "print docs/cli.md"}};

constexpr Command kCommands[] = {
    {.name = "",
     .summary = "Take a small model the whole way: compile, check, measure",
     .run = &cmd_demo},
    {.name = "demo",
     .summary = "Take a model the whole way: compile, check, measure",
     .text =
         "Describes the model, compiles it for this machine, holds its outputs for random inputs "
         "against the reference, and measures it.",
     .positionals = kDemoModel,
     .examples = kDemoExamples,
     .run = &cmd_demo},
    {.name = "zoo list",
     .summary = "List the built-in models",
     .text = "Parameters and multiply-adds are those of the full size at batch 1.",
     .examples = kZooListExamples,
     .run = &cmd_zoo_list},
    {.name = "zoo export",
     .summary = "Write a built-in model to files",
     .text = "The weights are random, of a sensible scale, and a function of the seed alone. A "
             "size that is not given is the model's own.",
     .positionals = kZooName,
     .options = kZooExport,
     .examples = kZooExportExamples,
     .run = &cmd_zoo_export},
    {.name = "target show",
     .summary = "Print a machine as text",
     .text = kTargetText,
     .positionals = kTargetFile,
     .options = kTargetShow,
     .examples = kTargetShowExamples,
     .run = &cmd_target_show},
    {.name = "target list",
     .summary = "List what this machine can be compiled as",
     .text = "One line for each level of instructions that it has; 'hone target show --isa LEVEL' "
             "shows one.",
     .examples = kTargetListExamples,
     .run = &cmd_target_list},
    {.name = "target probe",
     .summary = "Measure this machine",
     .text = "Measures operations per second by element type, what a core reads from each cache "
             "and from memory, and the time to start work on all cores. Each figure is what one "
             "sample of ten reaches, so that other work on the machine matters little; it still "
             "is best to leave the machine alone meanwhile.",
     .options = kTargetProbe,
     .examples = kTargetProbeExamples,
     .run = &cmd_target_probe},
    {.name = "cache ls",
     .summary = "List the kernels that are compiled already",
     .text = kCacheText,
     .options = kCacheOptions,
     .examples = kCacheLsExamples,
     .run = &cmd_cache_ls},
    {.name = "cache verify",
     .summary = "Check all compiled kernels, and remove damaged ones",
     .text = kCacheText,
     .options = kCacheOptions,
     .examples = kCacheVerifyExamples,
     .run = &cmd_cache_verify},
    {.name = "cache gc",
     .summary = "Remove the compiled kernels that were not used for longest",
     .text = kCacheText,
     .options = kCacheGc,
     .examples = kCacheGcExamples,
     .run = &cmd_cache_gc},
    {.name = "inspect",
     .summary = "Say what is in a model",
     .text = kModelText,
     .positionals = kModel,
     .options = kInspect,
     .examples = kInspectExamples,
     .run = &cmd_inspect},
    {.name = "run",
     .summary = "Run a model, and compare the outputs if asked to",
     .text = kModelText,
     .positionals = kModel,
     .options = kRun,
     .examples = kRunExamples,
     .run = &cmd_run},
    {.name = "compile",
     .summary = "Make native code of a model, and show any stage of it",
     .text = "A model is prepared (primitive ops, constants folded), planned (every decision), "
             "lowered to a program of kernels, and its kernels are compiled. docs/plan.md and "
             "docs/program.md describe what is printed.",
     .positionals = kModel,
     .options = kCompile,
     .examples = kCompileExamples,
     .run = &cmd_compile},
    {.name = "bench",
     .summary = "Measure a model's native code",
     .text = "Compiles the model, runs it until the time is over, at least three times, and prints "
             "the median of the runs after the first. --profile names the kernels that take "
             "longest, the first command of the plan (see 'hone compile --emit plan') that "
             "launches each, "
             "and the key of its schedule; and tells how many operations it does a second, also as "
             "a share of "
             "the f32 peak of the target: an estimate, if --target gives no measured one.",
     .positionals = kModel,
     .options = kBench,
     .examples = kBenchExamples,
     .run = &cmd_bench},
    {.name = "check",
     .summary = "Hold a model's native code against the reference, and against what is expected",
     .text = "Evaluates the model with the reference in three modes, wide (double, the oracle), "
             "rounded and fp32, see 'hone help run', and compiles and runs it. The distance of "
             "rounded and fp32 from wide says how much of a difference rounding explains; native "
             "code may be four times as far from wide as fp32 is, or four units in the last place "
             "of the largest number. With --expect, all four are compared with that, too.",
     .positionals = kModel,
     .options = kCheck,
     .examples = kCheckExamples,
     .run = &cmd_check},
    {.name = "convert",
     .summary = "Write a model in another format",
     .text = kModelText,
     .positionals = kConvertModel,
     .options = kConvert,
     .examples = kConvertExamples,
     .run = &cmd_convert},
    {.name = "conformance",
     .summary = "Run test cases in the ONNX standard's form",
     .text =
         "A case is a folder with model.onnx and test_data_set_N/input_M.pb and output_M.pb, or "
         "input_M.npy and output_M.npy there or beside the model, whose names may stand in "
         "names.json. Each runs in a process of its own and passes, is wrong (other outputs, "
         "or called malformed), is unsupported (refused, with a reason) or crashed (a fault, "
         "no time, no memory). Real outputs must be within the tolerance, which is at "
         "least a unit in the last place, and others equal; what each op computes is rounded to "
         "its element type.",
     .positionals = kCaseFolders,
     .options = kConformance,
     .examples = kConformanceExamples,
     .run = &cmd_conformance},
    {.name = "fuzz",
     .summary = "Hold native code of random graphs under random plans against the reference",
     .text =
         "Each seed is a small random graph, mostly with a random plan, for one of the levels of "
         "instructions. Prints how often each value of each decision came up. Graphs of any op "
         "are held to the reference's rounded mode, those of continuous ops to the accuracy "
         "that 'hone check' asks for. A case is unstable if the reference's own modes disagree. "
         "docs/testing.md says more.",
     .options = kFuzz,
     .examples = kFuzzExamples,
     .run = &cmd_fuzz},
    {.name = "reduce",
     .summary = "Make a case that fails smaller",
     .text = "Takes away outputs, nodes, sizes and decisions as long as the case fails in the same "
             "way: other outputs, an error, a fault, or a crash.",
     .positionals = kCase,
     .options = kReduce,
     .examples = kReduceExamples,
     .run = &cmd_reduce},
    {.name = "opt",
     .summary = "Run graph passes",
     .text = kModelText,
     .positionals = kOptModel,
     .options = kOpt,
     .examples = kOptExamples,
     .run = &cmd_opt},
    {.name = "ops",
     .summary = "Say what the ops are",
     .positionals = kOpsName,
     .options = kOps,
     .examples = kOpsExamples,
     .run = &cmd_ops},
    {.name = "completions",
     .summary = "Print a shell's completion script",
     .positionals = kShell,
     .examples = kCompletionsExamples,
     .run = &cmd_completions},
    {.name = "man", .summary = "Print the manual page", .examples = kManExamples, .run = &cmd_man},
    {.name = "version", .summary = "Print the version", .run = &cmd_version},
    {.name = "help",
     .summary = "Print help, also about one command",
     .positionals = kTopic,
     .options = kHelp,
     .run = &cmd_help},
};

// What hone calls in child processes; help does not list it.
constexpr Command kHiddenCommands[] = {
    {.name = "conformance-case",
     .summary = "Run one test case in this process, and print its outcome as JSON",
     .positionals = kCaseFolder,
     .options = kCaseOptions,
     .run = &cmd_conformance_case},
    {.name = "fuzz-cases",
     .summary = "Run random cases in this process, and print their outcomes",
     .options = kFuzzCases,
     .run = &cmd_fuzz_cases},
    {.name = "reduce-case",
     .summary = "Run one case in this process, and print its outcome",
     .positionals = kCase,
     .run = &cmd_reduce_case},
};

constexpr ExitCode kExitCodes[] = {
    {0, "done"},
    {1, "a comparison failed"},
    {2, "the command line is wrong"},
    {3, "a file is malformed, or its graph ill-typed"},
    {4, "valid, but not supported"},
    {5, "a limit of size, time or memory was hit"},
    {6, "a fault of hone; the path of a reproducer is printed"},
    {130, "interrupted"},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }
std::span<const Option> common_options() { return kCommon; }
std::span<const Option> zoo_options() {
  return std::span(kZooExport).first(std::size(kZooExport) - kZooFileOptions);
}
std::span<const ExitCode> exit_codes() { return kExitCodes; }

const Command* find_command(std::string_view name) {
  const std::span<const Command> tables[] = {kCommands, kHiddenCommands};
  for (std::span<const Command> table : tables)
    for (const Command& command : table)
      if (command.name == name) return &command;
  return nullptr;
}

bool is_group(std::string_view name) {
  const std::string prefix = fmt::format("{} ", name);
  return std::any_of(std::begin(kCommands), std::end(kCommands),
                     [&](const Command& command) { return command.name.starts_with(prefix); });
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands)
    if (!command.name.empty()) names.push_back(command.name);
  return names;
}

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.insert(options.end(), std::begin(kCommon), std::end(kCommon));
  return options;
}

std::vector<std::string> known_words(Take take, std::string_view words) {
  std::vector<std::string> known;
  switch (take) {
    case Take::word:
      for (std::string_view word : split(words, '|')) known.emplace_back(word);
      break;
    case Take::zoo_name:
      for (const ZooEntry& entry : zoo_entries()) known.emplace_back(entry.name);
      break;
    case Take::op:
      for (int i = 0; i < kOpcodeCount; ++i) known.emplace_back(name(static_cast<Opcode>(i)));
      break;
    case Take::passes:
      for (const Pass& pass : all_passes()) known.emplace_back(pass.name);
      break;
    case Take::command:
      for (std::string_view name : command_names())
        for (std::string_view word : split(name, ' '))
          if (std::find(known.begin(), known.end(), word) == known.end()) known.emplace_back(word);
      break;
    default: break;
  }
  return known;
}

Error unknown_command(std::string_view name) {
  std::vector<std::string_view> names = command_names();
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "'hone help' lists the commands";
  return usage_error("there is no command '{}'", excerpt(name)).with_hint(hint);
}

}  // namespace hone::cli
