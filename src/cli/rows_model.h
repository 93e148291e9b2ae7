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
     .doc = "a file (ONNX, StableHLO, HLO, GGUF or a graph), - for the standard input, or "
            "zoo:NAME[,OPTION=VALUE]..."}};

inline constexpr Option kDim = {.name = "dim",
                                .take = Take::text,
                                .value = "NAME=N",
                                .doc = "the size of an open dim, by its symbol: batch=8",
                                .repeats = true};
inline constexpr Option kShape = {.name = "shape",
                                  .take = Take::text,
                                  .value = "NAME=DIMS",
                                  .doc = "the shape of an input with open dims: x=1x3x224x224",
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
// Commands that do not run the model take only the sizes of the inputs.
inline constexpr Option kSizesOfInputs[] = {
    kDim,
    kShape,
    {.name = "input",
     .take = Take::text,
     .value = "NAME=VALUE",
     .doc = "as for 'hone run': open sizes become the sizes of the input",
     .repeats = true},
    {.name = "inputs",
     .take = Take::file,
     .value = "FILE.npz",
     .doc = "the same for inputs by name, from one file"}};

inline constexpr std::string_view kModelText =
    "A graph file finds the .npz file with its weights next to itself, and an ONNX file its "
    "external data. --dim, --shape and the given inputs decide open sizes of an ONNX file before "
    "it is read. If a command runs or inspects the file, one integer or bool among the inputs also "
    "decides which branch of an If is taken. Options of a zoo model follow its name: "
    "zoo:bert_base,size=tiny,length=16 ('hone help zoo export' lists them). 'hone run', 'bench', "
    "'inspect' and 'check' also take compiled models, FILE.honec; options that say how to compile "
    "do not go with these. 'hone run' and 'check' take texts of programs of devices as well "
    "(docs/devices.md).";

// ---- ONNX files that are written ---------------------------------------------------------------

inline constexpr Option kOnnxFile[] = {
    {.name = "opset",
     .take = Take::integer,
     .value = "N",
     .doc = "version of the ops of an ONNX file: 17 to 21, with --primitives from 13 on; the "
            "highest if none is given",
     .low = 13,
     .high = 21},
    {.name = "primitives",
     .doc = "write primitive ops in place of composites to an ONNX file, for old readers; products "
            "read all weights, in place of MatMulNBits"},
    {.name = "external-data",
     .doc = "put the weights of an ONNX file next to it, in FILE.onnx.data; a file above 2 GB "
            "always does"}};

// ---- Levels of precision -----------------------------------------------------------------------

constexpr Option error_option(std::string_view fallback) {
  return {
      .name = "error",
      .take = Take::real,
      .value = "E",
      .doc =
          "largest error of a model with fewer bits: the root mean square of the difference "
          "over that of the f32 output, of the worst output of the worst run (docs/quantize.md)",
      .fallback = fallback};
}
inline constexpr Option kLevelOptions[] = {
    {.name = "to",
     .take = Take::word,
     .value = "LEVEL",
     .doc =
         "the level of all layers that can have it; auto: for each layer the level that saves most "
         "time, by price, for its error",
     .fallback = "auto",
     .words = "auto|int8|w8|w4|w2|bf16|f16|tf32"},
    {.name = "data",
     .take = Take::file,
     .value = "DIR",
     .doc = "arrays to calibrate and check on: a .npz or .safetensors file with the inputs of one "
            "run by name, or a .npy file with the only input. Every fourth file is for the check "
            "(default: random inputs)"},
    {.name = "drop",
     .take = Take::text,
     .value = "P%",
     .doc = "in place of --error: the share of right answers that may be lost, by --labels; "
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
     .doc = "how many weights of w4 and w2 share a scale: a power of 2",
     .fallback = "32",
     .low = 16,
     .high = 256}};
inline constexpr Option kErrorAsked[] = {error_option("")};

// ---- Native code ------------------------------------------------------------------------------

inline constexpr Option kTargetOption = {.name = "target",
                                         .take = Take::file,
                                         .value = "FILE",
                                         .doc =
                                             "the machine to compile for: a file of 'hone target "
                                             "probe', or a GPU by name: sm_80, sm_89, "
                                             "sm_90; a file takes several (default: this machine)"};
inline constexpr Option kIsaOption = {.name = "isa",
                                      .take = Take::word,
                                      .value = "LEVEL",
                                      .doc = "use no instructions above this level",
                                      .words = kIsaWords};
inline constexpr Option kPricesOption = {
    .name = "prices",
    .take = Take::file,
    .value = "FILE",
    .doc =
        "coefficients of the planner's prices, in place of those that 'hone calibrate' has fitted "
        "(see 'hone help target prices')"};
inline constexpr Option kCostOption = {
    .name = "cost",
    .take = Take::text,
    .value = "PRICE",
    .doc =
        "price of kernels for the planner: analytic; learned, by the model of this target; "
        "measured, by the log, or else by the others; or the file of a model. The default is "
        "learned if there is a model of this target, else analytic"};
inline constexpr Option kSureOption = {
    .name = "sure",
    .take = Take::real,
    .value = "P",
    .doc =
        "the analytic price's choices stay unless learned prices have a cheaper one with at least "
        "this probability, from 0.5 to 0.999 (docs/learned-prices.md)",
    .fallback = "0.9"};
inline constexpr Option kNoMeasureOption = {
    .name = "no-measure",
    .doc =
        "choose by prices alone: neither time schedules of long kernels nor use such times of "
        "the log (docs/tuning.md)"};
inline constexpr Option kThreadsOption = {
    .name = "threads",
    .take = Take::integer,
    .value = "N",
    .doc = "threads that work on a kernel (default: one per core)",
    .low = 1,
    .high = Team::kMaxThreads};
inline constexpr Option kPlanOption = {
    .name = "plan",
    .take = Take::file,
    .value = "FILE",
    .doc =
        "a plan, complete or partial, of a graph or of several segments; the planner completes it"};
inline constexpr Option kPlanLenientOption = {
    .name = "plan-lenient",
    .doc =
        "drop entries of --plan that do not fit, print their lines, and decide them again: after "
        "an edit of a plan, or of its graph"};
inline constexpr Option kPlanSeedOption = {
    .name = "plan-seed",
    .take = Take::integer,
    .value = "N",
    .doc = "draw every decision at random from this seed, to test that any plan computes the same"};
inline constexpr Option kWithoutOption = {
    .name = "without",
    .take = Take::passes,
    .value = "NAME[,NAME]",
    .doc =
        "leave out passes that prepare the graph (integers, phases, "
        "bytes, fold, sink, splats, spelled, late, between, cse, first, unshare, donate), or "
        "heuristics of the planner (docs/planner.md)",
    .repeats = true};
inline constexpr Option kNativeCacheOption = {
    .name = "cache",
    .take = Take::file,
    .value = "DIR",
    .doc = "the folder of compiled code (default: see 'hone help cache ls'); none: no cache"};
inline constexpr Option kFlushOption = {
    .name = "flush-denormals",
    .doc =
        "take denormal numbers for 0. Products of bf16 and f32 may use instructions that do so, "
        "and long sums of f32 may leave out 2^-18 of each part. 'run' and 'bench' print how far "
        "outputs change"};
inline constexpr Option kLogOption =
    log_option("the log; commands use the best plan that it has (default: see 'hone help log ls')");
inline constexpr Option kNoLogOption = {.name = "no-log", .doc = "ignore the log, and plan again"};
inline constexpr Option kLevelOption = {.name = "optimize",
                                        .letter = 'O',
                                        .take = Take::word,
                                        .value = "LEVEL",
                                        .doc =
                                            "2: plan the graph as it is; 3: first look for a "
                                            "cheaper graph by rewrite rules (docs/optimize.md)",
                                        .fallback = "2",
                                        .words = "2|3"};
inline constexpr Option kRewriteBudgetOption = {.name = "rewrite-budget",
                                                .take = Take::text,
                                                .value = "TIME",
                                                .doc = "time to look for rewrites",
                                                .fallback = "30s"};
inline constexpr Option kAssumeRangeOption = {
    .name = "assume-range",
    .take = Take::text,
    .value = "1e+-K",
    .doc =
        "assume that elements of inputs are 0 or have magnitudes between 1e-K and 1e+K; then more "
        "rewrites are known not to overflow (docs/optimize.md)"};
inline constexpr Option kNative[] = {
    kLogOption,         kNoLogOption,         kTargetOption,     kIsaOption,         kPricesOption,
    kCostOption,        kSureOption,          kNoMeasureOption,  kThreadsOption,     kPlanOption,
    kPlanLenientOption, kPlanSeedOption,      kWithoutOption,    kNativeCacheOption, kFlushOption,
    kLevelOption,       kRewriteBudgetOption, kAssumeRangeOption};

inline constexpr Option kDevicesOption = {
    .name = "devices",
    .take = Take::text,
    .value = "N",
    .doc =
        "divide the batch among N devices, parts of this machine; or a list: cpu,cpu or cuda:0,cpu "
        "(docs/devices.md)"};
inline constexpr Option kDeviceOption = {
    .name = "device",
    .take = Take::text,
    .value = "NAME",
    .doc = "the only device: cpu; or a GPU, cuda or cuda:N (docs/gpu.md)"};
inline constexpr Option kDevices[] = {
    kDevicesOption,
    kDeviceOption,
    {.name = "batch",
     .take = Take::text,
     .value = "INPUT[:DIM]",
     .doc = "an input that has the batch, along dim 0 or this one (default: the first input that "
            "has a dim, and those with the same dim 0)",
     .repeats = true}};
inline constexpr Option kMesh[] = {
    {.name = "mesh",
     .take = Take::text,
     .value = "AXES",
     .doc = "devices as a grid with named axes, as in x=2,y=4; values are divided along them, and "
            "not the batch alone (docs/sharding.md; default: that of the plan or the graph)"},
    {.name = "shard",
     .take = Take::text,
     .value = "HOW",
     .doc = "auto: how values are divided is chosen by price; a file: a plan of 'hone shard'; "
            "NAME=DIMS: how one value is divided, as in 'x=[x, -]'",
     .repeats = true}};
inline constexpr Option kMeshSearch[] = {
    {.name = "memory",
     .take = Take::text,
     .value = "BYTES",
     .doc = "the most that a device of the mesh may use, as in 16GiB (default: what the system "
            "says)"},
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "the time of the search for a sharding (default: 10s)"}};
inline constexpr Option kTransport[] = {
    {.name = "transport",
     .take = Take::word,
     .value = "TRANSPORT",
     .doc =
         "devices are threads of this process, or processes that it starts, which share memory or "
         "speak TCP; or mpi: those that mpirun has started (docs/workers.md)",
     .fallback = "threads",
     .words = "threads|shared|tcp|mpi"}};

inline constexpr Option kSecretOption = {
    .name = "secret",
    .take = Take::file,
    .value = "FILE",
    .doc = "a secret of 16 bytes or more, which the workers know; it is not sent"};
inline constexpr Option kHosts[] = {
    {.name = "hosts",
     .take = Take::file,
     .value = "FILE",
     .doc = "run it on workers ('hone worker'), whose devices divide the batch; a line of the file "
            "is an address and a number of devices: 10.0.0.2:5000 4"},
    kSecretOption};
inline constexpr Option kVerify[] = {
    {.name = "verify", .doc = "check all weights of a compiled model first"}};

// ---- inspect -----------------------------------------------------------------------------------

inline constexpr Option kInspectOwn[] = {
    {.name = "format",
     .take = Take::word,
     .value = "FORMAT",
     .doc = "format of the report",
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

// The inputs of a model, and its expected outputs.
inline constexpr Option kSeed = seed_option("seed of the random inputs");
inline constexpr Option kMemoryLimit = {
    .name = "memory-limit",
    .take = Take::integer,
    .value = "MIB",
    .doc =
        "largest memory of inputs, weights, outputs and temporaries together; 0: no limit "
        "(default: half of the machine's memory)",
    .high = int64_t{1} << 24};
inline constexpr Option kInputOptions[] = {kInput, kInputs, kSeed, kMemoryLimit};
inline constexpr Option kExpect = {.name = "expect",
                                   .take = Take::file,
                                   .value = "FILES",
                                   .doc =
                                       "compare the outputs with an .npz by name, or with .npy and "
                                       ".pb files in the order of the outputs: a,b"};
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
     .doc = "compiled code, or the evaluator that defines what is right",
     .fallback = "native",
     .words = "native|reference"}};
inline constexpr Option kRunNumerics[] = {
    {.name = "numerics",
     .take = Take::word,
     .value = "MODE",
     .doc = "rounding of the reference; wide: double, rounded at the end; rounded: at every op; "
            "fp32: plain float",
     .fallback = "wide",
     .words = kNumericsNames}};
inline constexpr Option kTraceOption[] = {
    {.name = "trace",
     .take = Take::output,
     .value = "FILE",
     .doc = "write a trace by thread: stages and kernels compiled, launches by kernel and layer; "
            "JSON for ui.perfetto.dev"}};
inline constexpr Option kRunOutput[] = {output_option(
    "write the outputs: to a .npz, to a .npy (of one output), or into a folder", "", "PATH")};
inline constexpr Option kChecked[] = {
    {.name = "checked",
     .doc = "stop at values for which the ONNX standard has no result, such as indices out of "
            "range, and name the node"}};
inline constexpr Option kSystemOfDevices[] = {
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "plan what devices exchange for this system, and prove that programs of devices fit "
            "its memory: a system file, or a name and sizes such as ring:2 (docs/devices.md)"}};
inline constexpr Option kQuickStart[] = {
    {.name = "quick-start",
     .take = Take::word,
     .value = "WHEN",
     .doc = "run on code that is compiled quickly, and then make the code that later runs use; "
            "auto: where the outputs come sooner so. Both compute the same bits (docs/runtime.md)",
     .fallback = "never",
     .words = "auto|always|never"}};
inline constexpr int64_t kMostRepeats = 1000;
inline constexpr Option kRepeat[] = {
    {.name = "repeat",
     .take = Take::integer,
     .value = "N",
     .doc = "with a plan that places kernels on devices: N runs, one behind the other. A device "
            "begins the next one while others compute the last one. Random inputs are of --seed, "
            "--seed + 1, and so on; outputs are NAME#1, NAME#2, and so on (docs/placement.md)",
     .low = 1,
     .high = kMostRepeats}};
inline constexpr Option kPipeline[] = {
    {.name = "pipeline",
     .take = Take::file,
     .value = "FILE",
     .doc =
         "the stages of a pipeline, each on devices of its own: a plan of 'hone shard --pipeline' "
         "(docs/sharding.md)"}};
// How prices choose a pipeline.
inline constexpr Option kPipelineChoice[] = {
    {.name = "micro-batches",
     .take = Take::integer,
     .value = "N",
     .doc = "with --pipeline: parts of the batch (default: as many as are best)",
     .low = 1,
     .high = 256},
    {.name = "schedule",
     .take = Take::word,
     .value = "NAME",
     .doc = "with --pipeline: the order of work of a device (default: the best one)",
     .words = "gpipe|1f1b|interleaved"}};
inline constexpr auto kRun =
    joined(kRunBackend, kInputOptions, kSizes, kRunNumerics, kNative, kQuickStart, kRepeat,
           kDevices, kMesh, kMeshSearch, kPipeline, kTransport, kSystemOfDevices, kChecked, kVerify,
           kTraceOption, kHosts, kRunOutput, kExpectations, kErrorAsked, kLevelOptions);
inline constexpr Example kRunExamples[] = {
    {"hone run zoo:resnet18", "random inputs; prints a summary of the outputs"},
    {"hone run model.honec --verify", "a compiled model, its weights checked"},
    {"hone run mlp.hone --input x=@x.npy -o y.npy", "files in, files out"},
    {"hone run model.onnx --input x=@input_0.pb --expect output_0.pb", "an ONNX test case"},
    {"hone run mlp.hone --input x=@x.npy --expect y.npy --atol 1e-4",
     "exit code 1 if they differ; says which tolerance would pass"},
    {"hone run zoo:mlp,symbolic-batch --dim N=4", "a model with an open batch size"},
    {"hone run zoo:mlp,batch=8 --devices 2", "each of two parts of the machine computes 4 rows"},
    {"hone run zoo:mlp,batch=8 --devices 2 --transport shared", "the same in two processes"},
    {"hone run zoo:mlp,batch=8 --mesh x=2 --shard auto", "values divided by price"},
    {"hone run model.onnx --device cuda --error 1e-3",
     "fewer bits where they save time; says how "
     "large the error is"},
    {"hone run model.onnx --trace trace.json", "compiling and a run, for ui.perfetto.dev"},
    {"hone run model.honec --hosts my.hosts --secret my.secret", "on a worker"}};

// ---- worker ------------------------------------------------------------------------------------

inline constexpr std::string_view kWorkerText =
    "Callers send it compiled models, and inputs; it sends the outputs back. A model is sent once, "
    "and kept by its hash. One caller is served after another. Whoever knows the secret can run "
    "any code here, for a compiled model is machine code; data are not encrypted. So use a network "
    "that you trust. It ends when it is interrupted.";
inline constexpr Option kWorker[] = {
    {.name = "listen",
     .take = Take::text,
     .value = "PORT",
     .doc = "a port of the loopback, or ADDRESS:PORT; 0 is any free port"},
    kSecretOption,
    kThreadsOption,
    kMemoryLimit};
inline constexpr Example kWorkerExamples[] = {
    {"hone worker --listen 5000 --secret my.secret", "for callers on this machine"},
    {"hone worker --listen 10.0.0.2:5000 --secret my.secret", "for callers in a network"}};

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
        "use no instructions above this level; all: a compiled model gets code for the target, for "
        "the target without extensions, and for each level below; none: code for GPUs alone",
    .words = "x86-64-v2|avx2|avx512|all|none"};
inline constexpr Option kNativeOfFiles[] = {
    kLogOption,         kNoLogOption,         kTargetOption,     kIsaOfFiles,        kPricesOption,
    kCostOption,        kSureOption,          kNoMeasureOption,  kThreadsOption,     kPlanOption,
    kPlanLenientOption, kPlanSeedOption,      kWithoutOption,    kNativeCacheOption, kFlushOption,
    kLevelOption,       kRewriteBudgetOption, kAssumeRangeOption};
inline constexpr Option kCompileOwn[] = {
    {.name = "sizes",
     .take = Take::text,
     .value = "NAME=N[,NAME=N]",
     .doc = "sizes that get code of their own in a compiled model",
     .repeats = true},
    {.name = "emit",
     .take = Take::word,
     .value = "FORM",
     .doc = "print this form instead of a summary; objects go to a folder, one per kernel; "
            "library: libNAME.so or libNAME.a for C, and NAME.h (docs/library.md)",
     .words = "graph|plan|program|tiles|mlir|llvm|asm|object|library"},
    {.name = "stop-after",
     .take = Take::word,
     .value = "STAGE",
     .doc = "stop after this stage (default: image; kernels if sizes are open)",
     .words = "graph|plan|program|kernels|image"},
    {.name = "time-passes",
     .doc = "print the time of each stage and of each pass that prepares the graph"},
    {.name = "system",
     .take = Take::file,
     .value = "SYSTEM",
     .doc = "plan what devices exchange for this system: a system file, or a name and sizes such "
            "as ring:8 (docs/plan.md)"},
    output_option("the compiled model, FILE.honec; with --emit the text, the folder of objects, or "
                  "the library; -: the standard output",
                  "-", "PATH")};
inline constexpr auto kCompile =
    joined(kSizesOfInputs, kNativeOfFiles, kDevices, kMesh, kMeshSearch, kTraceOption, kCompileOwn,
           kErrorAsked, kLevelOptions);
inline constexpr Example kCompileExamples[] = {
    {"hone compile zoo:mlp", "kernels, code and memory of a model"},
    {"hone compile model.onnx -o model.honec", "one file to run, without the compiler"},
    {"hone compile model.onnx --isa all -o model.honec", "the same for older processors, too"},
    {"hone compile model.onnx --target sm_90 -o model.honec", "for NVIDIA GPUs, and the CPU"},
    {"hone compile model.onnx --sizes batch=1 --sizes batch=8 -o model.honec", "for two sizes"},
    {"hone compile zoo:mlp,batch=8 --devices 2 -o mlp.honec", "a file that two devices run"},
    {"hone compile model.onnx --to w8 --error 0.1 --data samples -o model.honec",
     "with fewer bits, within an error"},
    {"hone compile model.onnx --trace trace.json", "a trace of compiling, for ui.perfetto.dev"},
    {"hone compile model.onnx --emit library -o libmodel.so", "a library for C, and model.h"},
    {"hone compile zoo:mlp --emit plan -o mlp.plan", "every decision, as text to edit"},
    {"hone compile zoo:mlp --plan mlp.plan --emit asm", "the code of an edited plan"}};

// ---- space -------------------------------------------------------------------------------------

inline constexpr Option kSpaceOwn[] = {{.name = "json", .doc = "print it as data"}};
inline constexpr auto kSpace = joined(kSizesOfInputs, kNative, kSpaceOwn);
inline constexpr Example kSpaceExamples[] = {
    {"hone space zoo:mlp", "schedules of each kernel, edits of the plan"},
    {"hone space model.onnx --plan model.plan --threads 1", "the edits that are open in a plan"}};

// ---- check -------------------------------------------------------------------------------------

inline constexpr Option kOrigin[] = {
    {.name = "model",
     .take = Take::model,
     .value = "MODEL",
     .doc = "the source of a compiled model, whose outputs are right"}};
inline constexpr auto kCheck =
    joined(kInputOptions, kSizes, kExpectations, kNative, kDevices, kMesh, kMeshSearch, kPipeline,
           kTransport, kSystemOfDevices, kHosts, kOrigin, kVerify);
inline constexpr Example kCheckExamples[] = {
    {"hone check model.onnx", "random inputs; the distance of native code from the reference"},
    {"hone check mlp.hone --inputs x.npz --expect y.npy --rtol 1e-3",
     "exit code 1 if one of them is not within the tolerance"},
    {"hone check zoo:mlp,batch=3 --devices 2", "two devices, with 2 rows and 1 row"},
    {"hone check model.honec --model model.onnx", "a compiled file against its source"}};

}  // namespace hone::cli::rows
