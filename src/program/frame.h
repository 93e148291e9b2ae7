#pragma once

#include <span>
#include <vector>

#include "program/program.h"

// Facts that follow from the buffers and commands of a frame.

namespace hone::program {

// The memory that a command touches. A view counts as its base, an output as its donor. In order,
// each once.
struct Accesses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};
Accesses accesses_of(const Frame& frame, const Command& command);
// The buffers as the command names them, views included.
std::vector<BufferId> reads_of(const Command& command);
std::vector<BufferId> writes_of(const Command& command);

// A state of a loop that changes, and the buffer of its next value. In place both are the same.
struct Change {
  BufferId state = 0;
  BufferId next = 0;
};
std::vector<Change> changes_of(const Loop& loop);
std::vector<Change> changes_of(const Scan& scan);
std::vector<Change> changes_of(const Command& command);  // of no loop: none
// The outputs of the body, without its parts of stacks (Scan::ys).
std::vector<BufferId> next_of(std::span<const Change> changes);

BufferId base_of(const Frame& frame, BufferId buffer);
// The buffer whose memory this one uses: the base of a view, the donor of an output.
BufferId place_of(const Frame& frame, BufferId buffer);
std::vector<BufferId> buffers_of(const Frame& frame, Role role);
// Per input: the output whose donor it is, as a position among the outputs.
std::vector<std::optional<size_t>> outputs_in_inputs(const Frame& frame);
std::vector<FrameRef> frames_of(const Command& command);
// True if it begins something that a wait ends: a collective or a message.
bool begins_exchange(const Command& command);
// True if the command, or a frame that it runs, exchanges data with other devices.
bool talks(const Command& command);
// `main` and all frames that it runs, directly or not: each once, before the frames that run it.
std::vector<FrameRef> all_frames(const FrameRef& main);

std::vector<Symbol> symbols_of(const Frame& frame);  // in order of first appearance

// The first and the last command that use a temporary. first > last: it is unused.
struct CommandSpan {
  CommandId first = 1;
  CommandId last = 0;
};
std::vector<CommandSpan> lifetimes(const Frame& frame);  // per buffer

// Where temporaries lie, in bytes from the start of the frame's memory.
struct FrameMemory {
  std::vector<Dim> offsets;  // per buffer; of others than temporaries 0
  // Per command: where its own memory begins, behind all temporaries that are alive then.
  std::vector<Dim> tops;
  Dim bytes = 0;  // of the temporaries; like tops a multiple of kBufferAlignment
};
FrameMemory memory_of(const Frame& frame);

Dim aligned(Dim bytes);  // up to the next multiple of kBufferAlignment
// Bytes of the shared buffers of a kernel, each aligned to kBufferAlignment.
Dim shared_bytes(const TileProgram& tiles);

// Per command: the earlier commands that touch memory that it writes, or that wrote memory that it
// reads. Commands that must precede one of these are left out.
std::vector<std::vector<CommandId>> dependencies(const Frame& frame,
                                                 std::span<const Kernel> kernels);

}  // namespace hone::program
