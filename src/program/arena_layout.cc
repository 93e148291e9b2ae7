#include "program/arena_layout.h"

#include <algorithm>

namespace hone::program {

namespace {

// One of those of which the largest counts, unless another one is provably as large.
void add_candidate(std::vector<Dim>& all, Dim bytes) {
  for (Dim one : all)
    if (provably_le(bytes, one)) return;
  std::erase_if(all, [&](Dim one) { return provably_le(one, bytes); });
  all.push_back(bytes);
}

}  // namespace

ArenaLayout::ArenaLayout(const Program& program) {
  for (const FrameRef& frame : all_frames(program.main)) {
    Entry entry;
    entry.memory = memory_of(*frame);
    entry.bytes = {entry.memory.bytes};
    for (size_t c = 0; c < frame->commands.size(); ++c) {
      const Command& command = frame->commands[c];
      if (const Launch* launch = std::get_if<Launch>(&command.kind))
        add_candidate(entry.bytes,
                      entry.memory.tops[c] + shared_bytes(program.kernels[launch->kernel].tiles));
      for (const FrameRef& inner : frames_of(command))
        for (Dim own : bytes(*inner)) add_candidate(entry.bytes, entry.memory.tops[c] + own);
    }
    frames_.emplace(frame.get(), std::move(entry));
  }
}

}  // namespace hone::program
