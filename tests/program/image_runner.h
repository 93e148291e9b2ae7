#pragma once

#include <cstring>
#include <map>
#include <numeric>

#include "program/instantiate.h"
#include "program/tiles/interpret.h"
#include "runtime/image.h"
#include "transport/open_collectives.h"

namespace hone {

// Runs an image as the runtime does, with the interpreter for its kernels. Memory holds garbage
// first, and every place is checked.
class ImageRunner {
 public:
  // `kernels` are those of the program, with numbers.
  ImageRunner(const Image& image, const std::vector<program::Kernel>& kernels)
      : image_(image), kernels_(kernels), trips_(image.loops) {}

  // Outputs may lie in the inputs that are donated to them.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs, bool in_place = false) {
    if (in_place)
      for (const auto& [input, output] : image_.donations) donors_.emplace(output, input);
    arena_.assign(static_cast<size_t>(image_.arena_bytes), kGarbage);
    for (const Tensor& input : inputs) inputs_.push_back(bytes_of_tensor(input));
    for (const Tensor& constant : image_.constants) constants_.push_back(bytes_of_tensor(constant));
    for (const image::Port& port : image_.outputs)
      outputs_.emplace_back(static_cast<size_t>(port.type.static_bytes()), kGarbage);
    HONE_TRY(execute(image_.commands));
    std::vector<Tensor> results;
    for (size_t i = 0; i < outputs_.size(); ++i)
      results.push_back(Tensor::copy_of(image_.outputs[i].type, output(i)));
    return results;
  }

 private:
  static constexpr std::byte kGarbage{0x5a};
  using Bytes = std::vector<std::byte>;

  static Bytes bytes_of_tensor(const Tensor& tensor) {
    return {tensor.bytes().begin(), tensor.bytes().end()};
  }

  Bytes& output(size_t index) {
    const auto donor = donors_.find(static_cast<uint32_t>(index));
    return donor == donors_.end() ? outputs_.at(index) : inputs_.at(donor->second);
  }

  Result<std::span<std::byte>> at(const image::Place& place) {
    Bytes* region = nullptr;
    switch (place.region) {
      case image::Place::Region::input: region = &inputs_.at(place.index); break;
      case image::Place::Region::output: region = &output(place.index); break;
      case image::Place::Region::constant: region = &constants_.at(place.index); break;
      case image::Place::Region::arena: region = &arena_; break;
    }
    int64_t offset = place.offset;
    for (const image::Step& step : place.steps) offset += step.stride * trips_.at(step.loop);
    if (offset < 0 || offset + place.bytes > static_cast<int64_t>(region->size()))
      return bad_input("a place outside of its region");
    return std::span(*region).subspan(static_cast<size_t>(offset),
                                      static_cast<size_t>(place.bytes));
  }

  Status execute(const image::Block& block) {
    for (const image::Command& command : block)
      HONE_TRY(std::visit([&](const auto& kind) { return execute(kind); }, command.kind));
    return {};
  }

  Status execute(const image::Launch& c) {
    const TileProgram& tiles = kernels_[c.kernel].tiles;
    std::vector<Tensor> inputs;
    size_t next = 0;
    size_t behind = 0;
    for (const TileBuffer& buffer : tiles.buffers) {
      if (buffer.role == BufferRole::input) next = behind + 1;
      if (buffer.role == BufferRole::input || buffer.role == BufferRole::update)
        inputs.push_back(Tensor::copy_of(buffer.type, HONE_TRY(at(c.buffers.at(behind)))));
      ++behind;
    }
    for (const Tensor& output : HONE_TRY(interpret(tiles, inputs))) {
      const std::span<std::byte> to = HONE_TRY(at(c.buffers.at(next++)));
      if (to.size() != output.bytes().size()) return bad_input("an output of another size");
      std::ranges::copy(output.bytes(), to.begin());
    }
    for (const TileBuffer& buffer : tiles.buffers) {
      if (buffer.role != BufferRole::shared) continue;
      const std::span<std::byte> shared = HONE_TRY(at(c.buffers.at(next++)));
      if (static_cast<int64_t>(shared.size()) != buffer.type.static_bytes())
        return bad_input("a shared buffer of another size");
      std::ranges::fill(shared, kGarbage);  // it is the kernel's own
    }
    if (next != c.buffers.size()) return bad_input("too many buffers");
    return {};
  }
  Status execute(const image::Copy& c) {
    const std::span<std::byte> from = HONE_TRY(at(c.from)), to = HONE_TRY(at(c.to));
    if (from.size() != to.size()) return bad_input("a copy of another size");
    std::ranges::copy(Bytes(from.begin(), from.end()), to.begin());
    return {};
  }
  Status execute(const image::Branch& c) {
    return execute(HONE_TRY(at(c.condition))[0] != std::byte{0} ? c.on_true : c.on_false);
  }
  Status execute(const image::While& c) {
    for (;;) {
      HONE_TRY(execute(c.test));
      if (HONE_TRY(at(c.condition))[0] == std::byte{0}) return {};
      HONE_TRY(execute(c.body));
    }
  }
  Status execute(const image::Repeat& c) {
    for (int64_t trip = 0; trip < c.trips; ++trip) {
      trips_.at(c.loop) = c.reverse ? c.trips - 1 - trip : trip;
      HONE_TRY(execute(c.body));
    }
    return {};
  }

  Status execute(const image::Start& c) {
    const std::span<std::byte> to = HONE_TRY(at(c.to));
    return collectives_.start(reinterpret_cast<const void*>(uintptr_t{c.number}), c.collective,
                              c.dtype, HONE_TRY(at(c.from)), to, c.result);
  }
  Status execute(const image::Send& c) {
    return collectives_.send(reinterpret_cast<const void*>(uintptr_t{c.number}), c.message,
                             HONE_TRY(at(c.from)), c.value);
  }
  Status execute(const image::Receive& c) {
    const std::span<std::byte> to = HONE_TRY(at(c.to));
    return collectives_.receive(reinterpret_cast<const void*>(uintptr_t{c.number}), c.message, to,
                                c.value);
  }
  Status execute(const image::Wait& c) {
    return collectives_.wait(reinterpret_cast<const void*>(uintptr_t{c.number}));
  }
  Status execute(const image::DeviceIndex& c) {
    std::ranges::fill(HONE_TRY(at(c.to)), std::byte{0});  // of a device without others
    return {};
  }

  OpenCollectives collectives_;
  const Image& image_;
  std::map<uint32_t, uint32_t> donors_;  // by output
  const std::vector<program::Kernel>& kernels_;
  std::vector<int64_t> trips_;  // of the loops that run
  Bytes arena_;
  std::vector<Bytes> inputs_, outputs_, constants_;
};

// One name per phase, for images that only ImageRunner runs.
inline std::vector<KernelCode> nameless_code(const Program& program) {
  std::vector<KernelCode> code;
  for (const program::Kernel& kernel : program.kernels)
    code.push_back({std::make_shared<const std::string>(),
                    std::vector<std::string>(kernel.tiles.phases.size(), kernel.tiles.name)});
  return code;
}

}  // namespace hone
