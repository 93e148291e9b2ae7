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
#include "transport/spmd.h"

// A Program is what a complete Plan comes to: kernels, buffers, and commands with dependencies. It
// holds everything that a run needs except machine code. Lowering computes it (lower/lower.h);
// prices, memory planning, the runner (run.h) and the back end read it.

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
  view,       // a part of another buffer, written only if that may be written
};
std::string_view name(Role role);

// The part of `of` that begins at byte `offset`. `of` is not a view itself.
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
  // For outputs: the input of this type in whose memory this output may lie, if the runner of the
  // frame wants it. Either a copy brings the input here, or a kernel reads the input where it
  // writes. After any other write to the output nothing reads the input.
  std::optional<BufferId> donor = {};
};

// Runs a kernel. The buffers are in the order of TileProgram::buffers. A buffer that the kernel
// updates was written before.
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
// The buffers of `state` hold the first values before the loop and the last ones after it. A state
// that is its own `next` changes in place, if the body has an output whose donor it is. Otherwise
// it stays as it is: the body only reads it, and has no output for it.
struct Loop {
  FrameRef test;  // writes `condition`
  FrameRef body;
  BufferId condition = 0;  // bool[]
  std::vector<BufferId> state;
  std::vector<BufferId> next;
};

// for each of `trips` steps, from the last to the first if `reverse`:
// (next, ys[step]) = body(state, xs[step]); state = next.
// Each step uses one of `trips` equal runs of bytes of xs and ys, in place. A state may be its own
// `next`, as in a Loop.
struct Scan {
  FrameRef body;
  Dim trips = 0;
  bool reverse = false;
  std::vector<BufferId> state;
  std::vector<BufferId> next;
  std::vector<BufferId> xs;
  std::vector<BufferId> ys;
};

// Begins a collective with other devices, which run the same program: they meet in the n-th one
// that each begins. It reads `from` and writes `to` until its wait. In between no command touches
// `to` or writes `from`.
struct Start {
  SpmdCollective collective;
  BufferId from = 0;
  BufferId to = 0;
};

// Begins a message to the device `peer`. Until its wait no command writes `from`. The n-th message
// of a sender, a receiver and a tag is what the n-th receive of the same takes.
struct Send {
  Message message;
  BufferId from = 0;
};

// Begins to take a message from the device `peer`, of as many bytes as `to` has. Until its wait no
// command touches `to`.
struct Receive {
  Message message;
  BufferId to = 0;
};

// Returns when the collective or the message of an earlier command of the frame is complete.
struct Wait {
  CommandId start = 0;
  std::optional<BufferId> from =
      {};  // those of the command: a send has no `to`, a receive no `from`
  std::optional<BufferId> to = {};
};

// Writes the number of the device that runs the program.
struct DeviceIndex {
  BufferId to = 0;  // i64[]
};

struct Command {
  std::string name;  // of the kernel or value, for people
  std::variant<Launch, Copy, Call, Branch, Loop, Scan, Start, Wait, DeviceIndex, Send, Receive>
      kind;
  std::vector<CommandId> after;  // earlier commands that must have ended, in order
};

// A list of commands with buffers of its own. Each collective and each message that it starts is
// waited for in it, and starts and waits have one order, also those of the frames that it runs. The
// main frame stands for the graph, the others for its regions. Either all temporaries have offsets
// or none has; without offsets each has memory of its own. A command's own memory (shared buffers
// of its kernel, the frame that it runs) lies behind all temporaries that are alive while it runs.
struct Frame {
  std::string name;
  std::vector<Buffer> buffers;  // inputs, outputs, then the others
  std::vector<Command> commands;
};

struct Kernel {
  uint64_t hash = 0;  // of what it computes: tiles_hash()
  TileProgram tiles;  // their names differ within a program
  // The schedule and the body, with its symbols, that the kernel was built from: prices read them.
  // Texts of programs may leave the schedule out, and never have the body.
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

// How deep frames may run other frames.
inline constexpr int kMaxFrameDepth = 192;

// Proves that the program can run. Types of buffers fit, views lie inside of their base, and every
// buffer is written before it is read. Dependencies are complete, and temporaries that are needed
// at the same time do not overlap. Collectives are begun and waited for in one order, and nothing
// touches their memory meanwhile.
Status verify(const Program& program);

// docs/formats/program-text.md describes the language. A printed program is read back as the same.
std::string print(const Program& program, const PrintOptions& options = {});
Result<Program> parse_program(std::string_view text, const ParseOptions& options = {});

// Replaces the symbols that are bound, in kernels too.
Result<Program> specialize(const Program& program, const Bindings& bindings);

// Hashes a kernel's text without its name.
uint64_t tiles_hash(const TileProgram& tiles);

}  // namespace hone
