#include "cli/commands.h"

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/rows_assign.h"
#include "cli/rows_bench.h"
#include "cli/rows_convert.h"
#include "cli/rows_dataset.h"
#include "cli/rows_language.h"
#include "cli/rows_learn.h"
#include "cli/rows_log.h"
#include "cli/rows_machine.h"
#include "cli/rows_memory.h"
#include "cli/rows_model.h"
#include "cli/rows_place.h"
#include "cli/rows_quantize.h"
#include "cli/rows_rules.h"
#include "cli/rows_shard.h"
#include "cli/rows_tests.h"
#include "cli/rows_tune.h"
#include "cli/rows_zoo.h"
#include "ir/op.h"
#include "rewrite/passes.h"
#include "session/echo.h"
#include "session/evaluation.h"
#include "zoo/spec.h"

namespace hone::cli {

using namespace rows;

namespace {

constexpr Option kCommon[] = {
    {.name = "color",
     .take = Take::word,
     .value = "WHEN",
     .doc = "colour messages; auto: on a terminal, unless NO_COLOR is set",
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

// ---- opt, ops and the rest ---------------------------------------------------------------------

constexpr Positional kOptModel[] = {
    {.name = "MODEL", .take = Take::model, .doc = kModel[0].doc, .optional = true}};
constexpr Option kOptOwn[] = {
    {.name = "pass",
     .letter = 'p',
     .take = Take::passes,
     .value = "PASSES",
     .doc = "the passes to run, in order: fold,cse,dce",
     .repeats = true},
    {.name = "output",
     .letter = 'o',
     .take = Take::output,
     .value = "FILE",
     .doc = "where the graph goes: FILE.hone or FILE.onnx; - is the standard output, without large "
            "constants",
     .fallback = "-"},
    {.name = "print-changed", .doc = "show the graph after each pass that changed it"},
    {.name = "time-passes", .doc = "show the time of each pass"},
    {.name = "verify-each", .doc = "check the graph after every pass, not only at the end"},
    {.name = "list", .doc = "list the passes"}};
constexpr auto kOpt = joined(kOptOwn, kOnnxFile);
constexpr Example kOptExamples[] = {
    {"hone opt --list", "list the passes"},
    {"hone opt model.hone --pass fold,cse,dce -o small.hone --time-passes", "run three"}};

constexpr Positional kOpsName[] = {
    {.name = "NAME", .take = Take::op, .doc = "show this op alone", .optional = true}};
constexpr Option kOps[] = {
    {.name = "onnx", .doc = "list the ONNX ops that are imported"},
    {.name = "hlo", .doc = "list the ops of StableHLO and HLO that are imported"},
    {.name = "markdown",
     .doc = "print docs/ops.md; with --onnx, docs/onnx-ops.md; with --hlo, docs/hlo-ops.md"}};
constexpr Example kOpsExamples[] = {
    {"hone ops", "all ops, by family"},
    {"hone ops reduce", "operands, attributes and semantics"},
    {"hone ops --onnx", "the ONNX ops that are imported, with the versions that changed them"},
    {"hone ops --hlo", "the ops of StableHLO and HLO that are imported"}};

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
constexpr Option kHelp[] = {
    {.name = "errors", .doc = "explain each class of error: its cause, and what to do"},
    {.name = "markdown", .doc = "print docs/cli.md, or with --errors docs/errors.md"}};
constexpr Example kHelpExamples[] = {{"hone help run", "the same as 'hone run --help'"},
                                     {"hone help --errors", "causes of errors, and ways out"}};
constexpr Example kVersionExamples[] = {{"hone version", ""}};
constexpr Example kHoneExamples[] = {
    {"hone", "describe, compile, check and measure a small network"},
    {"hone run model.onnx", "compile a model, and run it on random inputs"},
    {"hone bench model.onnx", "measure its speed"},
    {"hone compile model.onnx -o model.honec", "one file to run, without the compiler"}};

// The commands that stand alone, in the order of help; families such as 'hone log' are in rows_*.h.

constexpr Command kDemoCommands[] = {
    {.name = "",
     .summary = "Describe, compile, check and measure a small model",
     .examples = kHoneExamples,
     .run = &cmd_demo},
    {.name = "demo",
     .summary = "Describe, compile, check and measure a model",
     .text =
         "Describes the model, compiles it for this machine, compares its outputs with the "
         "reference on random inputs, and measures it. It uses a cache only if --cache names one.",
     .positionals = kDemoModel,
     .options = kDemo,
     .examples = kDemoExamples,
     .run = &cmd_demo},
};

constexpr Command kDoctorCommand[] = {
    {.name = "doctor",
     .summary = "Say what this machine has, what hone would use, and what is missing",
     .text = "Looks at the processor, the memory, the folders where hone keeps compiled code and "
             "measurements, and the programs that some commands call. The end lists problems, each "
             "with what to do. It changes nothing.",
     .options = kDoctor,
     .examples = kDoctorExamples,
     .run = &cmd_doctor},
};

constexpr Command kInspectAndRun[] = {
    {.name = "inspect",
     .summary = "Describe a model",
     .text = kModelText,
     .positionals = kModel,
     .options = kInspect,
     .examples = kInspectExamples,
     .run = &cmd_inspect},
    {.name = "run",
     .summary = "Run a model, and compare its outputs with given ones",
     .text = kModelText,
     .positionals = kModel,
     .options = kRun,
     .examples = kRunExamples,
     .run = &cmd_run},
};

constexpr Command kWorkerToCalibrate[] = {
    {.name = "worker",
     .summary = "Run models for callers on other hosts",
     .text = kWorkerText,
     .options = kWorker,
     .examples = kWorkerExamples,
     .run = &cmd_worker},
    {.name = "compile",
     .summary = "Compile a model to native code, and show any stage of it",
     .text = "Compiling has four stages. The model is prepared (primitive ops, constants folded), "
             "planned (every decision), and lowered to a program of kernels; then the kernels are "
             "compiled. docs/plan.md and docs/program.md describe what is printed. Open sizes may "
             "stay open, up to the kernels. A model of several segments is shown segment by "
             "segment. -o FILE.honec writes a compiled model, one file that the runtime loads "
             "without a compiler (docs/formats/honec.md). It has code for all values of open "
             "sizes; --sizes names sizes that get code of their own.",
     .positionals = kModel,
     .options = kCompile,
     .examples = kCompileExamples,
     .run = &cmd_compile},
    {.name = "space",
     .summary = "Count the choices that searches have in a model's plan",
     .text = "Prints for each different kernel how many schedules each algorithm has, and how many "
             "values each decision has at most. Then it prints for each kind of edit of the plan "
             "how many edits are open, and how many values they have. The plan is that of --plan, "
             "completed. Layouts are counted as far as kernels can use them; choices that depend "
             "on too much are not counted. docs/search.md explains how searches use them.",
     .positionals = kModel,
     .options = kSpace,
     .examples = kSpaceExamples,
     .run = &cmd_space},
    {.name = "bench",
     .summary = "Measure a model's native code",
     .text = "Compiles the model and runs it until the time is over, at least three times. Prints "
             "what it measured (threads, target, sizes), the shortest run, the median, and the "
             "times that 90 % and 99 % of the runs do not exceed. Open sizes have to be chosen. "
             "--vs runs two sides in turns, and gives the ratio with an interval of 99 % "
             "confidence. --record and --baseline compare with other times. Where nothing "
             "changed, at most 1 of 100 series is an alarm (docs/measuring.md). --profile names "
             "the layers that take longest, by the nodes of an ONNX file. For each it prints the "
             "command of the plan that computes it (see 'hone compile --emit plan'), its price, "
             "and its share of the target's f32 peak. The peak is an estimate unless --target "
             "gives a measured one.",
     .positionals = kBenchModel,
     .options = kBench,
     .examples = kBenchExamples,
     .run = &cmd_bench},
    {.name = "tune",
     .summary = "Find a faster plan for a model by measuring, and remember it",
     .text = "Looks for layouts, groups, chains, threads and schedules that are faster than the "
             "planner's, and measures them on this machine. It keeps the best plan in the log if "
             "that plan is surely faster than the default, with the same outputs, when both run in "
             "turns. The default is the fastest of the plans that default, fitted and learned "
             "prices choose. Each candidate is compiled and measured in a process of its own, and "
             "its results are checked first. Ctrl-C keeps the best plan so far. Measurements of "
             "earlier calls are used again (docs/tuning.md).",
     .positionals = kModel,
     .options = kTune,
     .examples = kTuneExamples,
     .run = &cmd_tune},
    {.name = "calibrate",
     .summary = "Fit the planner's prices to this machine",
     .text =
         "Measures some schedules of small kernels of each kind, and fits the coefficients of "
         "the analytic price to their times. The kernels that prices are least sure of and that "
         "models have most come first. Every third kernel is held out of the fit. For these and "
         "the others it prints how well prices order schedules, and how far prices are from "
         "times, before and after. Last layers of a learned price move, too, if that is better "
         "for kernels that are left out. Then whole models that no price was fitted to run in "
         "turns under the plans of both prices. The fitted prices are kept if some models are "
         "surely faster by them and none is surely slower. Otherwise prices stay as they are. "
         "Commands that plan for this target use the kept prices, and say so. Measurements of "
         "earlier calls are used again. The file is in $HONE_PRICES, or in the folder "
         "hone/prices of $XDG_DATA_HOME, which is ~/.local/share by default (docs/cost.md).",
     .options = kCalibrate,
     .examples = kCalibrateExamples,
     .run = &cmd_calibrate},
};

constexpr Command kCompareToGrad[] = {
    {.name = "compare",
     .summary = "Run a model under two plans in turns, and say which is faster",
     .text = "Runs both plans on the same inputs in a process of its own. It compares the outputs "
             "of the second with those of the first; the exit code is 1 if they differ. Then it "
             "prints how many times as fast the second is, with an interval of 99 % confidence. If "
             "the interval contains 1, neither is known to be faster.",
     .positionals = kCompareSubjects,
     .options = kCompare,
     .examples = kCompareExamples,
     .run = &cmd_compare},
    {.name = "explain",
     .summary = "Explain for each kernel what a plan chose, its price, and the alternatives",
     .text = "Describes each different kernel, the dearest first. It prints the layers that the "
             "kernel computes, its schedule, its price and the terms of that price, and the times "
             "that the log has of this very code. It prints the times that no schedule beats: all "
             "operations at the target's f32 peak, and all operands once at the rate of memory. "
             "Then it prints the cheapest schedule found of each other algorithm. If the planner "
             "would decide otherwise, it prints the planner's schedule and the gain of the change. "
             "--diff prints the differences to another plan.",
     .positionals = kExplainSubjects,
     .options = kExplain,
     .examples = kExplainExamples,
     .run = &cmd_explain},
    {.name = "report",
     .summary = "Write a page for a browser that shows a model's speed and its causes",
     .text =
         "Compiles, runs and measures the model, and writes one HTML file. The page compares the "
         "speed with the planner's plan and ONNX Runtime. It shows a roofline of the kernels, time "
         "by kernel and by layer, and memory over time. It shows predicted and measured times with "
         "the progress of tuning, and the graph of the plan. It names the machine and the commands "
         "that make the page again. The file loads nothing. If something fails, the page says so "
         "and shows the rest, and the exit code is that of the failure (docs/report.md).",
     .positionals = kModel,
     .options = kReport,
     .examples = kReportExamples,
     .run = &cmd_report},
    {.name = "check",
     .summary = "Compare a model's native code with the reference, and with expected outputs",
     .text = "Evaluates the model with the reference in three modes: wide (double, the oracle), "
             "rounded and fp32 (see 'hone help run'). It also compiles and runs the model. The "
             "distance of rounded and fp32 from wide shows how much of a difference rounding "
             "explains. Native code may be four times as far from wide as fp32 is, or four units "
             "in the last place of the largest number of its type. An output that fails in one run "
             "is judged by nine (docs/accuracy.md). --expect compares all four with expected "
             "outputs, and native outputs have to agree with these.",
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
    {.name = "shrink",
     .summary = "Divide the sizes of a model, so that the reference can run it",
     .text = "Sizes that belong together are divided by the same number: an op's access relation "
             "says which do. The sizes of a reshape keep their product. A size stays if a constant "
             "of integers or bools has it, or an op fixes it. Constants of reals are cut. "
             "Dims are named by an input (x:0), by their size (4096), or by kind. Kinds are layers "
             "(steps of a scan), width (sums run over it) and batch (the others). An element of an "
             "input counts as 16 operations. Without -o the table alone is printed: the largest "
             "size of each group of dims, before and now. docs/shrink.md has an example.",
     .positionals = kConvertModel,
     .options = kShrink,
     .examples = kShrinkExamples,
     .run = &cmd_shrink},
    {.name = "quantize",
     .summary = "Compute the layers of a model with fewer bits, within an error",
     .text =
         "A layer is a product of data by constant weights. Measures the error of the outputs if "
         "one layer alone changes, prices its time, and chooses levels until the whole has the "
         "error that is allowed. The model that is written is checked on runs that calibration "
         "did not see. ONNX files get QuantizeLinear and DequantizeLinear, and other runtimes "
         "load them. docs/quantize.md explains the table.",
     .positionals = kConvertModel,
     .options = kQuantize,
     .examples = kQuantizeExamples,
     .run = &cmd_quantize},
    {.name = "grad",
     .summary = "Make a training step of a model",
     .text =
         "Derives the loss by the model's weights and updates them. The step is a graph that 'hone "
         "run', 'hone check' and 'hone bench' take. Its inputs are the model's, the target (or "
         "labels), the rate, the number of steps done, and the weights and the optimizer's states, "
         "which it donates. Its outputs are the loss, and the weights and states of the next step. "
         "STEP.state.npz gets the weights and states of the first step, for --inputs. Norms keep "
         "their means and variances. docs/learning.md has an example.",
     .positionals = kConvertModel,
     .options = kGrad,
     .examples = kGradExamples,
     .run = &cmd_grad},
};

constexpr Command kConformanceToOptimize[] = {
    {.name = "conformance",
     .summary = "Run test cases in the ONNX standard's form",
     .text = "A case is a folder with model.onnx and test_data_set_N/input_M.pb and output_M.pb. "
             "It may have input_M.npy and output_M.npy, there or beside the model; names.json may "
             "name them. Each case runs in a process of its own. It passes, is wrong (other "
             "outputs, or called malformed), is unsupported (refused, with a reason) or crashed (a "
             "fault, out of time, out of memory). Real outputs must be within the tolerance, and "
             "others equal. The result of each op is rounded to its element type.",
     .positionals = kCaseFolders,
     .options = kConformance,
     .examples = kConformanceExamples,
     .run = &cmd_conformance},
    {.name = "fuzz",
     .summary = "Compare native code of random graphs and plans with the reference",
     .text = "Each seed is a small random graph, mostly with a random plan, for one of the levels "
             "of instructions. Prints how often each value of each decision came up. Graphs of any "
             "op are compared with the reference's rounded mode, those of continuous ops by the "
             "accuracy that 'hone check' asks for. A case is unstable if the reference's own modes "
             "disagree. docs/testing.md says more.",
     .options = kFuzz,
     .examples = kFuzzExamples,
     .run = &cmd_fuzz},
    {.name = "reduce",
     .summary = "Make a failing case smaller",
     .text =
         "Removes outputs, nodes, sizes and decisions as long as the case fails in the same way: "
         "other outputs, an error, a fault, or a crash. A model becomes a case with its inputs, "
         "which are random unless they are given. Its outputs are compared by the accuracy that "
         "'hone check' asks for. --plan, --isa and options of inputs and sizes are for models.",
     .positionals = kCaseOrModel,
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
    {.name = "optimize",
     .summary = "Rewrite a model into one that computes the same and costs less",
     .text =
         "Looks for a cheaper graph by rewrite rules that are proved for all sizes: merged "
         "products and convolutions, folded norms, cancelled movement. An e-graph applies all "
         "rules at once, and a queue of graphs applies them one by one. The price of a graph is "
         "that of the default plan that 'hone compile' would make. The result is never dearer than "
         "the model. Ctrl-C ends the search with the best graph so far (docs/optimize.md).",
     .positionals = kConvertModel,
     .options = kOptimize,
     .examples = kOptimizeExamples,
     .run = &cmd_optimize},
};

constexpr Command kAllocToHelp[] = {
    {.name = "alloc",
     .summary = "Place buffers in memory",
     .text = "Reads a table of buffers, each with a size and the time that it is in use. Gives "
             "them offsets such that buffers in use at the same time do not overlap, within a "
             "capacity or as low as possible. If they do not fit, it says which ones, and when. "
             "docs/formats/memory-csv.md describes the table.",
     .positionals = kAllocFile,
     .options = kAlloc,
     .examples = kAllocExamples,
     .run = &cmd_alloc},
    {.name = "assign",
     .summary = "Take one option per node, at the least cost within limits of usage",
     .text = "Reads a problem: nodes with options, costs of options and of pairs of them, and "
             "usages, whose sum must not pass a limit at any moment. Looks for the cheapest "
             "solution, and shows a bound that no solution is below. Ctrl-C ends it with the best "
             "so far. docs/assign.md explains it, docs/formats/assign-json.md the format.",
     .positionals = kAssignFile,
     .options = kAssign,
     .examples = kAssignExamples,
     .run = &cmd_assign},
    {.name = "place",
     .summary = "Place the nodes of a graph on the devices of a system",
     .text =
         "Reads a problem: nodes with times and memory, tensors between them, and devices with "
         "links. Looks for a device and an order for each node, so that a step ends early or no "
         "device is busy for long, and the memory fits. The timeline of the system judges all. "
         "It shows a bound that no placement is below. docs/placement.md explains it.",
     .positionals = kPlaceFile,
     .options = kPlace,
     .examples = kPlaceExamples,
     .run = &cmd_place},
    {.name = "shard",
     .summary = "Divide the values of a model among the devices of a mesh",
     .text =
         "Say of a few values how they are divided, and the rest follows. Say nothing, and it is "
         "chosen by price. Shows who holds what, what devices exchange and why, and what all of "
         "them compute. -o writes the program that each device runs, or the plan. "
         "docs/sharding.md explains it.",
     .positionals = kModel,
     .options = kShard,
     .examples = kShardExamples,
     .run = &cmd_shard},
    {.name = "ops",
     .summary = "Describe the ops",
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
    {.name = "version",
     .summary = "Print the version",
     .examples = kVersionExamples,
     .run = &cmd_version},
    {.name = "help",
     .summary = "Print help, also about one command",
     .positionals = kTopic,
     .options = kHelp,
     .examples = kHelpExamples,
     .run = &cmd_help},
};

// In the order of help.
constexpr auto kCommands =
    joined(kDemoCommands, kZooCommands, kDoctorCommand, kTargetCommands, kSystemCommands,
           kCacheCommands, kLogCommands, kInspectAndRun, kLanguageCommands, kWorkerToCalibrate,
           kDataSetCommands, kCompareToGrad, kTrainCommands, kEvalCommands, kConformanceToOptimize,
           kRulesCommands, kAllocToHelp);

// Commands that hone calls in child processes. Help does not list them.
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
    {1, "a comparison failed, or buffers do not fit"},
    {2, "the command line is wrong"},
    {3, "a file is malformed, or its graph ill-typed"},
    {4, "valid, but not supported"},
    {5, "a limit of size, time, memory or disk was hit, or a GPU or a peer was lost"},
    {6, "a fault of hone; the path of a reproducer is printed"},
    {130, "interrupted (143 by SIGTERM, 129 by SIGHUP)"},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }
std::span<const Option> common_options() { return kCommon; }
std::span<const ExitCode> exit_codes() { return kExitCodes; }

const Command* find_command(std::string_view name) {
  const std::span<const Command> tables[] = {kCommands, kHiddenCommands};
  for (std::span<const Command> table : tables)
    for (const Command& command : table)
      if (command.name == name) return &command;
  return nullptr;
}

bool is_hidden(const Command& command) {
  return std::any_of(std::begin(kHiddenCommands), std::end(kHiddenCommands),
                     [&](const Command& hidden) { return &hidden == &command; });
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
  if (name.ends_with(".honec"))
    hint = "'hone run', 'bench', 'inspect' and 'check' take a compiled model";
  if (hint.empty()) hint = "'hone help' lists the commands";
  return usage_error("there is no command '{}'", excerpt(name)).with_hint(hint);
}

}  // namespace hone::cli
