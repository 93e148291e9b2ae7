#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/text.h"
#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"
#include "tensor/tensor.h"

// The consequence of a Plan: kernels, buffers, and commands with dependencies. It holds everything
// that a run needs but machine code. Lowering computes it (lower/lower.h); prices, memory planning,
// the runner (run.h) and the back end read it.

namespace hone {

namespace program {

using BufferId = uint32_t;   // position in Frame::buffers
using KernelId = uint32_t;   // position in Program::kernels
using CommandId = uint32_t;  // position in Frame::commands

enum class Role : uint8_t {
  input,      // only read
  output,     // written, and may be read back
  constant,   // only read
  temporary,  // memory of the frame
  view,       // a part of another buffer, written if that may be
};
std::string_view name(Role role);

// From `offset` bytes on. The base is no view.
struct View {
  BufferId of = 0;
  Dim offset = 0;
};

struct Buffer {
  std::string name;  // of the value that it holds
  Type type;         // of the memory, the layout applied; row-major
  Role role = Role::temporary;
  Tensor value = {};                   // of constants
  View view = {};                      // of views
  std::optional<int64_t> offset = {};  // of temporaries: bytes into the frame's memory, if decided
  // Of outputs: an input of this type that may lie in the same memory, as whoever runs the frame
  // likes. A copy brings it here, or a kernel whose output may lie in that input reads it where it
  // writes; nothing reads it once the output was written otherwise.
  std::optional<BufferId> donor = {};
};

// Runs a kernel on buffers for its inputs and outputs, in the order of TileProgram::buffers. What
// it updates was written before.
struct Launch {
  KernelId kernel = 0;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
};

struct Copy {
  BufferId from = 0;
  BufferId to = 0;  // of the same number of bytes
};

struct Frame;
using FrameRef = std::shared_ptr<const Frame>;

// Runs a frame.
struct Call {
  FrameRef frame;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
};

// Runs one of two frames on the same buffers.
struct Branch {
  BufferId condition = 0;  // bool[]
  FrameRef on_true;
  FrameRef on_false;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
};

// while (test(state)) { next = body(state); state = next; }
// The state's buffers hold the first values before, the last ones after. A state that is its own
// `next` is changed where it lies, if the body has an output that may lie in it; otherwise it stays
// as it is: it is only read, and the body has no output for it.
struct Loop {
  FrameRef test;  // writes `condition`
  FrameRef body;
  BufferId condition = 0;  // bool[]
  std::vector<BufferId> state;
  std::vector<BufferId> next;
};

// for each of `trips` steps, from the last to the first if `reverse`:
// (next, ys[step]) = body(state, xs[step]); state = next.
// A step's part of xs and ys is one of `trips` equal runs of bytes, which the body takes in place.
// A state may be its own `next`, as in a Loop.
struct Scan {
  FrameRef body;
  Dim trips = 0;
  bool reverse = false;
  std::vector<BufferId> state;
  std::vector<BufferId> next;
  std::vector<BufferId> xs;
  std::vector<BufferId> ys;
};

struct Command {
  std::string name;  // of the kernel or value, for people
  std::variant<Launch, Copy, Call, Branch, Loop, Scan> kind;
  std::vector<CommandId> after;  // earlier commands that must have ended, in order
};

// A list of commands over buffers of its own. The main frame is the graph, the others its regions.
// Temporaries either all have offsets or none; without, each has memory of its own. What a command
// needs for itself (shared buffers of its kernel, memory of the frame that it runs) lies behind all
// temporaries that are alive while it runs.
struct Frame {
  std::string name;
  std::vector<Buffer> buffers;  // inputs, outputs, then the others
  std::vector<Command> commands;
};

struct Kernel {
  uint64_t hash = 0;  // of what it computes: tiles_hash()
  TileProgram tiles;  // their names differ within a program
  // What it was built by, as the plan has it, and from, with its symbols: what prices look at.
  // Program texts need not tell by what, and do not tell from what.
  std::optional<Schedule> schedule = {};
  std::shared_ptr<const KernelBody> body = nullptr;
};

}  // namespace program

struct Program {
  std::string name;
  int64_t threads = 1;
  std::vector<program::Kernel> kernels;
  program::FrameRef main;
};

// Frames inside of each other.
inline constexpr int kMaxFrameDepth = 192;

// Kernels and frames with all that runs need: types of buffers, views inside of their base, every
// buffer written before it is read, dependencies complete, no two temporaries in one place at once.
Status verify(const Program& program);

// docs/formats/program-text.md describes the language. What is printed is read back as the same.
std::string print(const Program& program, const PrintOptions& options = {});
Result<Program> parse_program(std::string_view text, const ParseOptions& options = {});

// Replaces the symbols that are bound, in kernels too.
Result<Program> specialize(const Program& program, const Bindings& bindings);

// Of a kernel's text without its name.
uint64_t tiles_hash(const TileProgram& tiles);

}  // namespace hone
