#include "cli/commands.h"

#include "base/text.h"
#include "cli/command.h"
#include "cli/echo.h"
#include "ir/op.h"
#include "ir/passes/passes.h"
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
     .doc = "a graph file, - for the standard input, or zoo:NAME[,OPTION=VALUE]..."}};

constexpr Option kDim = {.name = "dim",
                         .take = Take::text,
                         .value = "NAME=N",
                         .doc = "let the symbol NAME be N",
                         .repeats = true};

constexpr std::string_view kModelText =
    "A graph file whose weights are in an .npz file finds that file next to itself. Options of a "
    "zoo model follow its name: zoo:bert_base,size=tiny,length=16 ('hone help zoo export' lists "
    "them).";

// ---- zoo ---------------------------------------------------------------------------------------

constexpr Positional kZooName[] = {
    {.name = "NAME", .take = Take::zoo_name, .doc = "a model of 'hone zoo list'"}};

// Those of the model first; zoo_options() leaves the output off.
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
     .doc = "where the graph goes; its weights go next to it, to FILE.npz (default: NAME.hone)"},
};

constexpr Example kZooListExamples[] = {{"hone zoo list", "all models"}};
constexpr Example kZooExportExamples[] = {
    {"hone zoo export resnet18 -o resnet18.hone", "writes resnet18.hone and resnet18.npz"},
    {"hone zoo export lstm_lm --unroll --length 64 -o lstm.hone", "a recurrence, written out"}};

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
};
constexpr Example kInspectExamples[] = {
    {"hone inspect model.hone", "inputs, outputs, ops, parameters, work, largest tensors"},
    {"hone inspect zoo:resnet50 --format json", "the same as data"},
    {"hone inspect zoo:mlp --dot mlp.dot", "a drawing; 'dot -Tsvg mlp.dot' renders it"}};

// ---- run ---------------------------------------------------------------------------------------

constexpr Option kRun[] = {
    {.name = "backend",
     .take = Take::word,
     .value = "NAME",
     .doc = "what computes",
     .fallback = "reference",
     .words = "reference"},
    {.name = "input",
     .take = Take::text,
     .value = "NAME=VALUE",
     .doc = "one input: @FILE.npy, or a type and its numbers: 2x3xf32=1 2 3 4 5 6",
     .repeats = true},
    {.name = "inputs",
     .take = Take::file,
     .value = "FILE.npz",
     .doc = "inputs by name, from one file"},
    {.name = "seed",
     .take = Take::integer,
     .value = "N",
     .doc = "of the random numbers for inputs that are not given",
     .fallback = "0"},
    kDim,
    {.name = "shape",
     .take = Take::text,
     .value = "NAME=DIMS",
     .doc = "the shape of an input with symbols: x=1x3x224x224",
     .repeats = true},
    {.name = "numerics",
     .take = Take::word,
     .value = "MODE",
     .doc = "wide: double, rounded at the end; rounded: at every op; fp32: plain float",
     .fallback = "wide",
     .words = "wide|rounded|fp32"},
    {.name = "output",
     .letter = 'o',
     .take = Take::file,
     .value = "PATH",
     .doc = "write the outputs: to a .npz, to a .npy (of one output), or into a folder"},
    {.name = "expect",
     .take = Take::file,
     .value = "FILES",
     .doc = "compare with a .npz by name, or with .npy files in the order of the outputs: a,b"},
    {.name = "rtol",
     .take = Take::real,
     .value = "X",
     .doc = "relative tolerance of --expect (default: by element type)"},
    {.name = "atol",
     .take = Take::real,
     .value = "X",
     .doc = "absolute tolerance of --expect (default: by element type)"},
};
constexpr Example kRunExamples[] = {
    {"hone run zoo:resnet18", "random inputs; prints a summary of the outputs"},
    {"hone run mlp.hone --input x=@x.npy -o y.npy", "files in, files out"},
    {"hone run mlp.hone --input x=@x.npy --expect y.npy --atol 1e-4",
     "exit code 1 if they differ; says which tolerance would pass"},
    {"hone run zoo:mlp,symbolic-batch --dim N=4", "a model with an open batch size"}};

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
     .doc = "where the graph goes; - is the standard output, without large constants",
     .fallback = "-"},
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
constexpr Option kOps[] = {{.name = "markdown", .doc = "print docs/ops.md"}};
constexpr Example kOpsExamples[] = {{"hone ops", "all ops, by family"},
                                    {"hone ops reduce", "operands, attributes and semantics"}};

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
     .summary = "Build a small model, evaluate it with the reference, report",
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
  return std::span(kZooExport).first(std::size(kZooExport) - 1);
}
std::span<const ExitCode> exit_codes() { return kExitCodes; }

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands)
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
