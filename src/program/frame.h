#pragma once

#include <span>
#include <vector>

#include "program/program.h"

// What follows from a frame's buffers and commands.

namespace hone::program {

// Memory: a view counts as its base, an output as its donor. In order, none twice in a list.
struct Accesses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};
Accesses accesses_of(const Frame& frame, const Command& command);
// Also views, as the command names them.
std::vector<BufferId> reads_of(const Command& command);
std::vector<BufferId> writes_of(const Command& command);

// A state of a loop that changes, and where its next value comes: in place, if it is the state.
struct Change {
  BufferId state = 0;
  BufferId next = 0;
};
std::vector<Change> changes_of(const Loop& loop);
std::vector<Change> changes_of(const Scan& scan);
std::vector<Change> changes_of(const Command& command);  // of no loop: none
// What the body writes, but for its part of stacks.
std::vector<BufferId> next_of(std::span<const Change> changes);

BufferId base_of(const Frame& frame, BufferId buffer);
// The base; of an output that may lie in an input's memory the input.
BufferId place_of(const Frame& frame, BufferId buffer);
std::vector<BufferId> buffers_of(const Frame& frame, Role role);
// Per input: the output that may lie in it, by its position among the outputs.
std::vector<std::optional<size_t>> outputs_in_inputs(const Frame& frame);
std::vector<FrameRef> frames_of(const Command& command);
// All frames below, each once, those that others run before them; `main` last.
std::vector<FrameRef> all_frames(const FrameRef& main);

std::vector<Symbol> symbols_of(const Frame& frame);  // in order of first appearance

// The commands from the first to the last that use a temporary; first > last: nobody does.
struct Lifetime {
  CommandId first = 1;
  CommandId last = 0;
};
std::vector<Lifetime> lifetimes(const Frame& frame);  // per buffer

// Where temporaries lie, in bytes from the start of the frame's memory.
struct Memory {
  std::vector<Dim> offsets;  // per buffer; of others than temporaries 0
  // Per command: where the memory begins that it needs for itself, behind all temporaries that are
  // alive.
  std::vector<Dim> tops;
  Dim bytes = 0;  // of the temporaries; like tops a multiple of kBufferAlignment
};
Memory memory_of(const Frame& frame);

Dim aligned(Dim bytes);  // up to the next multiple of kBufferAlignment
// Bytes of the shared buffers of a kernel, each aligned to kBufferAlignment.
Dim shared_bytes(const TileProgram& tiles);

// Per command: those before it that touch memory that it writes, or that wrote memory that it
// reads, but for those that have to come before one of these.
std::vector<std::vector<CommandId>> dependencies(const Frame& frame,
                                                 std::span<const Kernel> kernels);

}  // namespace hone::program
