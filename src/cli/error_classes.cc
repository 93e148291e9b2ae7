#include "cli/error_classes.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/help.h"

namespace hone::cli {
namespace {

constexpr ErrorClass kClasses[] = {
    // ---- 1
    {.code = 1,
     .name = "outputs differ from what is expected",
     .cause = "An output of --expect, of 'hone compare' or of a standard's case is further away "
              "than the tolerance.",
     .way_out = "The message has the first element that differs, and the tolerance that would "
                "pass; --rtol and --atol choose one. 'hone check MODEL' says whether native code "
                "or the expectation is off."},
    {.code = 1,
     .name = "native code is less accurate than allowed",
     .cause = "'hone check' and 'hone demo' compare native code with the reference. The distance "
              "is larger than rounding explains (docs/accuracy.md).",
     .way_out = "'hone reduce MODEL' makes a small case of it; please report that."},
    {.code = 1,
     .name = "buffers do not fit into the capacity",
     .cause = "'hone alloc' has proved that the buffers do not fit.",
     .way_out = "It names the buffers and the time: make some of them smaller or shorter. Without "
                "--capacity it finds the least height.",
     .file = "tight.csv",
     .content = "id,lower,upper,size\na,0,2,16\nb,1,3,32\n",
     .example = "hone alloc tight.csv --capacity 40",
     .says = "2 buffers do not fit together into the capacity 40..."},
    // ---- 2
    {.code = 2,
     .name = "a command or an option that does not exist",
     .cause = "A name is misspelled, or the option belongs to another command.",
     .way_out = "The hint has the name that is nearest; 'hone help' lists the commands, and "
                "'hone COMMAND --help' the options of one, with examples.",
     .example = "hone rnu model.onnx",
     .says = "there is no command 'rnu'"},
    {.code = 2,
     .name = "a value that an option does not take",
     .cause = "It is not a number, is outside of its range, or is not one of the option's words.",
     .way_out = "The message has the range or the words; 'hone COMMAND --help', too.",
     .example = "hone run zoo:mlp --isa sse2",
     .says = "..."},
    {.code = 2,
     .name = "options that do not go together",
     .cause = "Two of them say the same, or one has no meaning beside the other.",
     .way_out = "Leave one of them out; the message names both.",
     .example = "hone bench zoo:mlp --runs 3 --seconds 1",
     .says = "--runs and --seconds both say how long to measure"},
    {.code = 2,
     .name = "sizes that are open",
     .cause = "The model has symbols for sizes, and the result of the command depends on them.",
     .way_out = "--dim NAME=N or --shape INPUT=DIMS chooses them; 'hone inspect MODEL' shows them "
                "with their ranges.",
     .example = "hone explain zoo:mlp,size=tiny,symbolic-batch",
     .says = "the cost of kernels depends on the open sizes"},
    {.code = 2,
     .name = "an input that the model does not have, or of another shape",
     .cause = "--input does not name an input, or a size is not the one of the model.",
     .way_out = "'hone inspect MODEL' lists the inputs with their types.",
     .example = "hone run zoo:mlp --input y=f32=1",
     .says = "...the graph has no input 'y'..."},
    // ---- 3
    {.code = 3,
     .name = "a file that cannot be read",
     .cause = "The file does not exist, is a folder, or may not be read.",
     .way_out =
         "Paths are relative to the current folder. The system's reason stands behind the name.",
     .example = "hone run missing.hone",
     .says = "...missing.hone..."},
    {.code = 3,
     .name = "a file that is malformed",
     .cause = "The text or the bytes do not follow the format: a damaged download, another format, "
              "or an edit that went wrong.",
     .way_out = "The place is FILE:LINE:COLUMN or the part of the file; docs/formats describes "
                "each format. 'onnx.checker' of Python says what else is wrong with an ONNX file, "
                "'stablehlo-opt FILE' what is wrong with StableHLO.",
     .file = "bad.hone",
     .content = "graph @f(\n",
     .example = "hone inspect bad.hone",
     .says = "...(bad.hone:2:1)"},
    {.code = 3,
     .name = "a graph that is ill-typed",
     .cause = "Shapes or element types of a node do not fit, as an axis outside of the rank or "
              "operands of different sizes.",
     .way_out = "The message names the node and both numbers. The exporter, or an earlier node, is "
                "at fault.",
     .file = "typed.hone",
     .content = "graph @f(%x: f32[2], %y: f32[3]) -> f32[2] {\n  %z = add %x, %y\n  return %z\n}\n",
     .example = "hone inspect typed.hone",
     .says = "...add..."},
    {.code = 3,
     .name = "values that do not fit the model",
     .cause = "A tensor has another element type than the input, or an index lies outside.",
     .way_out = "Convert the file; 'hone run --checked' names the node whose values are out of "
                "range.",
     .example = "hone run zoo:mlp --input x=1x784xi32=1",
     .says = "...input 'x' holds f32, the literal holds i32..."},
    {.code = 3,
     .name = "a plan that does not fit",
     .cause = "--plan is for another graph, other sizes or another version, or an edit of it "
              "breaks a rule.",
     .way_out =
         "The message has the entry and its line. --plan-lenient drops entries that do not fit, "
         "and decides them again. 'hone compile MODEL --emit plan' writes a plan that fits.",
     .file = "other.plan",
     .content = "plan @other hash 0x0123456789abcdef\n",
     .example = "hone compile zoo:mlp,size=tiny --cache none --plan other.plan",
     .says = "..."},
    {.code = 3,
     .name = "a log that is damaged, or another file",
     .cause = "The file of measurements was overwritten, or is of another program.",
     .way_out = "'hone log verify --repair' keeps the good rows; --no-log does not read the log.",
     .file = "text.db",
     .content = "this is not a log\n",
     .example = "hone log ls --log text.db",
     .says = "...text.db..."},
    {.code = 3,
     .name = "a compiled model that is damaged",
     .cause = "A .honec file was cut or changed: its checksums do not fit.",
     .way_out = "Compile it again: 'hone compile MODEL -o MODEL.honec'.",
     .file = "bad.honec",
     .content = "this is not a compiled model\n",
     .example = "hone run bad.honec",
     .says = "...bad.honec..."},
    // ---- 4
    {.code = 4,
     .name = "an op that hone does not read",
     .cause = "hone has no mapping for the op, its version, or this use of it. docs/onnx-ops.md "
              "and docs/hlo-ops.md list those that it has.",
     .way_out = "Export without the op. An ONNX file may do with another version of the opset. "
                "The message names the node, or the line and column with the uses in the file.",
     .file = "lacking.mlir",
     .content = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                "  %0 = stablehlo.foo %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n",
     .example = "hone inspect lacking.mlir",
     .says = "...stablehlo.foo...(lacking.mlir:2:8)"},
    {.code = 4,
     .name = "a model whose file does not hold all of it",
     .cause = "A program of HLO or StableHLO calls another library, or its text leaves out the "
              "numbers of a constant: 'constant({...})'.",
     .way_out = "'hone inspect' counts its work all the same. --input gives the numbers of a "
                "constant. Export without the library, or print constants whole.",
     .file = "part.hlo",
     .content = "HloModule f\n\nENTRY main {\n  x = f32[2] parameter(0)\n"
                "  c = f32[2] constant({...})\n  ROOT y = f32[2] add(x, c)\n}\n",
     .example = "hone run part.hlo",
     .says = "the model cannot run...(5:14)"},
    {.code = 4,
     .name = "a model of several segments where one graph is needed",
     .cause = "Shapes of the model depend on its data, so it is cut into segments.",
     .way_out = "'hone run', 'bench', 'tune' and 'report' take it. --input may give an input that "
                "decides a branch, which leaves one graph.",
     .file = "two.hone",
     .content = "model @two(%x: f32[4]) -> (%y: f32[4]) {\n"
                "  %a = run %x\n    graph @first(%x: f32[4]) -> f32[4] {\n"
                "      %h = exp %x\n      return %h\n    }\n"
                "  %y = run %a\n    graph @second(%x: f32[4]) -> f32[4] {\n"
                "      %h = tanh %x\n      return %h\n    }\n}\n",
     .example = "hone explain two.hone",
     .says = "..."},
    {.code = 4,
     .name = "a machine without the instructions",
     .cause = "A compiled model, or a target of --target, uses instructions that this processor "
              "does not have. Or the processor is below x86-64-v2.",
     .way_out = "Compile with --isa avx2 or x86-64-v2, or on the machine that will run it."},
    {.code = 4,
     .name = "no GPU that runs it",
     .cause = "There is no NVIDIA driver or GPU, the driver is older than CUDA 12.0, or the GPU is "
              "below sm_80. Or a compiled model has code for CPUs alone, or for other GPUs.",
     .way_out = "'hone doctor' says what is missing (docs/gpu.md). Without --device cuda the CPU "
                "runs the model."},
    // ---- 5
    {.code = 5,
     .name = "not enough memory",
     .cause = "Inputs, outputs and temporaries need more memory than a run may have: half of the "
              "machine's, or that of --memory-limit. It is counted before it is taken.",
     .way_out = "The message has both numbers. Choose smaller sizes (--dim), or allow more with "
                "--memory-limit.",
     .example = "hone run zoo:mlp --input x=1000000x784000xf32=1",
     .says = "...2.9 TiB..."},
    {.code = 5,
     .name = "a GPU that fails",
     .cause = "The memory of the GPU is too small, its driver refuses a call, or the GPU is lost "
              "while a kernel runs. The message has the driver's reason.",
     .way_out = "If memory is missing, the hint says which batch would fit. A GPU that is lost "
                "stays so for the process: start it again. Without --device cuda the CPU runs the "
                "model."},
    {.code = 5,
     .name = "a limit of the format",
     .cause = "A file claims to have more than hone takes: nodes, ranks, elements, bytes, depth "
              "(docs/onnx.md, docs/stablehlo.md). It may be hostile.",
     .way_out = "The message names the limit. Real models are far below all of them."},
    {.code = 5,
     .name = "a full disk, or output that nobody reads",
     .cause = "The system did not take all of the output.",
     .way_out = "Make room, or write elsewhere. Files are replaced as a whole, so the old one is "
                "still there."},
    // ---- 6
    {.code = 6,
     .name = "a fault of hone",
     .cause =
         "A promise within hone was broken, or a signal has ended it. Your model is not at fault.",
     .way_out = "The folder hone-crash-... has the command, the graph and the plan; please report "
                "it. 'hone reduce' makes the case small. Another plan may help until then: "
                "--plan-seed 1, --isa avx2, --no-log."},
    // ---- 130
    {.code = 130,
     .name = "interrupted",
     .cause = "Ctrl-C, or a signal to end. The exit code is 128 and the signal's number: 143 after "
              "SIGTERM and 129 after SIGHUP.",
     .way_out = "Measurements and training so far are kept; the same command goes on from there."},
};

std::string_view meaning_of(int code) {
  for (const ExitCode& exit : exit_codes())
    if (exit.code == code) return exit.meaning;
  return "";
}

// The block that shows the error; a test runs it.
std::string transcript(const ErrorClass& one) {
  std::string text;
  if (!one.file.empty()) text += fmt::format("```{}\n{}```\n\n", one.file, one.content);
  return text + fmt::format("```\n$ {}\n...\nhone: error: {}\n...\n```\n\n", one.example, one.says);
}

}  // namespace

std::span<const ErrorClass> error_classes() { return kClasses; }

std::string errors_text() {
  std::string text;
  int code = 0;
  for (const ErrorClass& one : kClasses) {
    if (one.code != code)
      text += fmt::format("Exit code {}: {}\n\n", one.code, meaning_of(one.code));
    code = one.code;
    text += fmt::format("{}\n{}\n{}\n", one.name, paragraph(one.cause), paragraph(one.way_out));
  }
  return text;
}

std::string errors_markdown() {
  std::string text =
      "# Errors\n\n<!-- Generated by `hone help --errors --markdown`; `./dev docs` writes it anew. "
      "-->\n\nThis page explains the cause of each class of error, and the way out. Every error "
      "goes to the standard error as\n`hone: error: WHAT (WHERE)`. A line `hint:` says what to do. "
      "The exit code tells the kind of error.\n\n";
  int code = 0;
  for (const ErrorClass& one : kClasses) {
    if (one.code != code) text += fmt::format("## {}: {}\n\n", one.code, meaning_of(one.code));
    code = one.code;
    text += fmt::format("### {}\n\n- **Cause.** {}\n- **Way out.** {}\n\n", one.name, one.cause,
                        one.way_out);
    if (!one.example.empty()) text += transcript(one);
  }
  text.pop_back();
  return text;
}

}  // namespace hone::cli
