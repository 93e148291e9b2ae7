#include "program/arena_layout.h"

#include <algorithm>

namespace hone::program {

ArenaLayout::ArenaLayout(const Program& program) {
  for (const FrameRef& frame : all_frames(program.main)) {
    Entry entry;
    entry.memory = memory_of(*frame);
    entry.bytes = entry.memory.bytes.value();
    for (size_t c = 0; c < frame->commands.size(); ++c) {
      const Command& command = frame->commands[c];
      Dim own = 0;
      if (const Launch* launch = std::get_if<Launch>(&command.kind))
        own = shared_bytes(program.kernels[launch->kernel].tiles);
      for (const FrameRef& inner : frames_of(command)) own = std::max(own.value(), bytes(*inner));
      entry.bytes = std::max(entry.bytes, (entry.memory.tops[c] + own).value());
    }
    frames_.emplace(frame.get(), std::move(entry));
  }
}

}  // namespace hone::program
