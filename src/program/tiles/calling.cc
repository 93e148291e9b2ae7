#include "program/tiles/calling.h"

#include "base/planted.h"

namespace hone {

Dim bytes_of(Type type) { return ceildiv(type.elements() * bits(type.dtype()), 8); }

ScratchLayout scratch_layout(const TileProgram& program) {
  constexpr int64_t kAlignment = 64;
  ScratchLayout layout;
  for (const TileBuffer& buffer : program.buffers) {
    const bool is_scratch = buffer.role == BufferRole::scratch;
    layout.offsets.push_back(is_scratch ? HONE_PLANT(scratch_offset, layout.bytes, Dim(0)) : 0);
    if (is_scratch) layout.bytes += ceildiv(bytes_of(buffer.type), kAlignment) * kAlignment;
  }
  return layout;
}

Dim trips_of(const tile::Loop& phase, const TileProgram& program) {
  Dim trips = 1;
  for (const tile::Loop* loop = &phase; loop != nullptr && loop->exec == Exec::threads;) {
    trips = trips * program.indices[static_cast<size_t>(loop->index)].high;
    loop = loop->body.size() == 1 ? std::get_if<tile::Loop>(&loop->body[0].kind) : nullptr;
  }
  return trips;
}

}  // namespace hone
