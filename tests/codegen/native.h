#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "codegen/codegen.h"
#include "program/tiles/calling.h"
#include "runtime/kernel_abi.h"
#include "runtime/object_code.h"
#include "tensor/tensor.h"

namespace hone {

// Every level of x86-64 that this machine has: paths for other machines are tested on it.
inline std::vector<Target> host_targets() {
  const Target host = host_target().value();
  std::vector<Target> targets;
  for (Isa isa : kIsas)
    if (isa <= host.isa) targets.push_back(restricted(host, isa));
  return targets;
}

// Compiles the kernel and calls it, each phase in `parts`.
inline Result<std::vector<Tensor>> run_native(const TileProgram& program,
                                              std::span<const Tensor> inputs, const Target& target,
                                              int64_t parts = 1) {
  const std::string object = HONE_TRY(compile_tiles(program, target, "kernel"));
  const std::vector<std::string> symbols = phase_symbols(program, "kernel");
  const auto code = HONE_TRY(ObjectCode::load(std::as_bytes(std::span<const char>(object))));
  const Dim scratch_bytes = scratch_layout(program).bytes;
  std::vector<std::vector<std::byte>> memories;
  std::vector<void*> buffers;
  auto allocate = [&](int64_t bytes) {
    // Memory that nobody writes is found by its pattern.
    memories.emplace_back(static_cast<size_t>(bytes + 2 * kBufferAlignment), std::byte{0xa5});
    auto address = reinterpret_cast<uintptr_t>(memories.back().data());
    address = (address + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return reinterpret_cast<std::byte*>(address);
  };
  size_t next = 0;
  for (const TileBuffer& buffer : program.buffers) {
    if (!is_passed(buffer.role)) continue;
    // An output that may lie in an input does; inputs come first.
    std::byte* memory = buffer.donor ? static_cast<std::byte*>(buffers[*buffer.donor])
                                     : allocate(buffer.type.static_bytes());
    const bool has_value = buffer.role == BufferRole::input || buffer.role == BufferRole::update;
    if (has_value && buffer.type.static_bytes() > 0)
      std::memcpy(memory, inputs[next].bytes().data(), inputs[next].bytes().size());
    if (has_value) ++next;
    buffers.push_back(memory);
  }
  std::byte* scratch = allocate(scratch_bytes.value());
  for (size_t i = 0; i < program.phases.size(); ++i) {
    const auto phase = reinterpret_cast<PhaseFn>(const_cast<void*>(code->function(symbols[i])));
    if (phase == nullptr) return bad_input("the object lacks {}", symbols[i]);
    const int64_t trips = trips_of(program.phases[i], program).value();
    const int64_t pieces = program.phases[i].exec == Exec::threads ? parts : 1;
    for (int64_t piece = 0; piece < pieces; ++piece)
      phase(buffers.data(), nullptr, scratch, trips * piece / pieces, trips * (piece + 1) / pieces);
  }
  std::vector<Tensor> outputs;
  size_t position = 0;
  for (const TileBuffer& buffer : program.buffers) {
    if (!is_passed(buffer.role)) continue;
    const auto* memory = static_cast<const std::byte*>(buffers[position++]);
    if (is_result(buffer.role))
      outputs.push_back(
          Tensor::copy_of(buffer.type, {memory, static_cast<size_t>(buffer.type.static_bytes())}));
  }
  return outputs;
}

}  // namespace hone
