#include "program/run.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/rng.h"
#include "program/arena_layout.h"
#include "program/devices.h"
#include "program/frame.h"
#include "program/tiles/calling.h"
#include "program/tiles/interpret.h"
#include "transport/open_collectives.h"
#include "transport/transport.h"

namespace hone {

namespace program {
namespace {

// Where a buffer lies: memory that is only read has no `writable`.
struct Place {
  const std::byte* data = nullptr;
  std::byte* writable = nullptr;

  static Place of(std::byte* data) { return {data, data}; }
  Place behind(int64_t bytes) const {
    return {data + bytes, writable == nullptr ? nullptr : writable + bytes};
  }
};
using Places = std::vector<Place>;

int64_t size_of(Type type) { return type.static_bytes(); }

class Runner {
 public:
  Runner(const Program& program, const ProgramRunOptions& options)
      : program_(program),
        options_(options),
        arena_(program),
        rng_(options.order_seed.value_or(0)) {}

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    const Frame& main = *program_.main;
    constexpr std::byte kGarbage{0xa5};
    const int64_t arena = arena_.bytes(main).front().value();
    if (arena > options_.max_bytes)
      return over_limit("the arena has {} bytes, more than {}", arena, options_.max_bytes);
    memory_.assign(static_cast<size_t>(arena), kGarbage);

    const std::vector<BufferId> ports = buffers_of(main, Role::input);
    if (inputs.size() != ports.size())
      return bad_input("{} tensors are given for {} inputs", inputs.size(), ports.size());
    Places sources, results;
    for (size_t i = 0; i < ports.size(); ++i) {
      const Buffer& port = main.buffers[ports[i]];
      if (inputs[i].type() != port.type)
        return bad_input("%{} is {}, the tensor {}", port.name, port.type.to_string(),
                         inputs[i].type().to_string());
      sources.push_back({inputs[i].bytes().data(), nullptr});
    }
    std::vector<std::vector<std::byte>> outputs;
    for (BufferId b : buffers_of(main, Role::output)) {
      outputs.emplace_back(static_cast<size_t>(size_of(main.buffers[b].type)), kGarbage);
      results.push_back(Place::of(outputs.back().data()));
    }
    collectives_.enter(options_.place);
    if (Status good = execute(main, sources, results, 0); !good.ok()) {
      collectives_.give_up(good.error());
      return std::move(good).error();
    }
    std::vector<Tensor> tensors;
    for (BufferId b : buffers_of(main, Role::output))
      tensors.push_back(Tensor::copy_of(main.buffers[b].type, outputs[tensors.size()]));
    return tensors;
  }

 private:
  // ---- Frames ----------------------------------------------------------------------------------

  Status execute(const Frame& frame, const Places& inputs, const Places& outputs, int64_t base) {
    const Places places = lay_out(frame, inputs, outputs, base);
    const FrameMemory& memory = arena_.memory(frame);
    for (CommandId c : order(frame)) {
      const Command& command = frame.commands[c];
      const int64_t top = base + memory.tops[c].value();
      Status status = std::visit(
          [&](const auto& kind) { return execute(frame, kind, places, top); }, command.kind);
      if (!status.ok())
        return std::move(status).error().within(fmt::format("command '{}'", command.name));
    }
    return {};
  }

  Places lay_out(const Frame& frame, const Places& inputs, const Places& outputs, int64_t base) {
    const FrameMemory& memory = arena_.memory(frame);
    Places places(frame.buffers.size());
    size_t input = 0, output = 0;
    for (BufferId b = 0; b < frame.buffers.size(); ++b) {
      const Buffer& buffer = frame.buffers[b];
      switch (buffer.role) {
        case Role::input: places[b] = inputs[input++]; break;
        case Role::output: places[b] = outputs[output++]; break;
        case Role::constant: places[b] = {buffer.value.bytes().data(), nullptr}; break;
        case Role::temporary:
          places[b] = Place::of(memory_.data() + base + memory.offsets[b].value());
          break;
        case Role::view: break;
      }
    }
    for (BufferId b : buffers_of(frame, Role::view)) {
      const View& view = frame.buffers[b].view;
      places[b] = places[view.of].behind(view.offset.value());
    }
    return places;
  }

  // Commands that have nothing to wait for, one after another.
  std::vector<CommandId> order(const Frame& frame) {
    const auto count = static_cast<CommandId>(frame.commands.size());
    std::vector<CommandId> order, ready;
    std::vector<size_t> open(count);
    std::vector<std::vector<CommandId>> followers(count);
    for (CommandId c = 0; c < count; ++c) {
      open[c] = frame.commands[c].after.size();
      for (CommandId before : frame.commands[c].after) followers[before].push_back(c);
      if (open[c] == 0) ready.push_back(c);
    }
    while (!ready.empty()) {
      auto next = options_.order_seed
                      ? ready.begin() + rng_.between(0, static_cast<int64_t>(ready.size()) - 1)
                      : std::ranges::min_element(ready);
      const CommandId c = *next;
      ready.erase(next);
      order.push_back(c);
      for (CommandId follower : followers[c])
        if (--open[follower] == 0) ready.push_back(follower);
    }
    return order;
  }

  // ---- Commands --------------------------------------------------------------------------------

  static Places pick(const Places& places, const std::vector<BufferId>& buffers) {
    Places list;
    for (BufferId b : buffers) list.push_back(places[b]);
    return list;
  }

  static void copy(Place from, Place to, Type type) {
    if (from.data == to.data) return;  // the output lies in its donor
    std::memcpy(to.writable, from.data, static_cast<size_t>(size_of(type)));
  }
  static void advance(const Frame& frame, std::span<const Change> changes, const Places& places) {
    for (const auto& [state, next] : changes)
      copy(places[next], places[state], frame.buffers[next].type);
  }

  Status execute(const Frame& frame, const Launch& c, const Places& places, int64_t /*top*/) {
    std::vector<Tensor> inputs;
    const TileProgram& tiles = program_.kernels[c.kernel].tiles;
    for (BufferId b : c.inputs) inputs.push_back(tensor(frame.buffers[b].type, places[b]));
    size_t result = 0;
    for (const TileBuffer& buffer : tiles.buffers) {
      if (!is_result(buffer.role)) continue;
      const BufferId b = c.outputs[result++];
      if (buffer.role == BufferRole::update) inputs.push_back(tensor(buffer.type, places[b]));
    }
    const std::vector<Tensor> outputs = HONE_TRY(interpret(tiles, inputs));
    for (size_t i = 0; i < outputs.size(); ++i)
      copy({outputs[i].bytes().data(), nullptr}, places[c.outputs[i]], outputs[i].type());
    return {};
  }
  static Tensor tensor(Type type, Place place) {
    return Tensor::copy_of(type, {place.data, static_cast<size_t>(size_of(type))});
  }

  Status execute(const Frame& frame, const Copy& c, const Places& places, int64_t /*top*/) {
    copy(places[c.from], places[c.to], frame.buffers[c.from].type);
    return {};
  }

  Status execute(const Frame& frame, const Start& c, const Places& places, int64_t /*top*/) {
    const Type from = frame.buffers[c.from].type, to = frame.buffers[c.to].type;
    return collectives_.start(
        &c, c.collective, from.dtype(), {places[c.from].data, static_cast<size_t>(size_of(from))},
        {places[c.to].writable, static_cast<size_t>(size_of(to))}, frame.buffers[c.to].name);
  }
  Status execute(const Frame& frame, const Send& c, const Places& places, int64_t /*top*/) {
    const Buffer& from = frame.buffers[c.from];
    return collectives_.send(
        &c, c.message, {places[c.from].data, static_cast<size_t>(size_of(from.type))}, from.name);
  }
  Status execute(const Frame& frame, const Receive& c, const Places& places, int64_t /*top*/) {
    const Buffer& to = frame.buffers[c.to];
    return collectives_.receive(
        &c, c.message, {places[c.to].writable, static_cast<size_t>(size_of(to.type))}, to.name);
  }
  // A start, send or receive is known by its address.
  Status execute(const Frame& frame, const Wait& c, const Places& /*places*/, int64_t /*top*/) {
    return std::visit([&](const auto& begun) { return collectives_.wait(&begun); },
                      frame.commands[c.start].kind);
  }
  Status execute(const Frame& /*frame*/, const DeviceIndex& c, const Places& places,
                 int64_t /*top*/) {
    const auto device = static_cast<int64_t>(options_.place.device);
    std::memcpy(places[c.to].writable, &device, sizeof device);
    return {};
  }

  Status execute(const Frame& /*frame*/, const Call& c, const Places& places, int64_t top) {
    return execute(*c.frame, pick(places, c.inputs), pick(places, c.outputs), top);
  }

  Status execute(const Frame& /*frame*/, const Branch& c, const Places& places, int64_t top) {
    const Frame& chosen = is_true(places[c.condition]) ? *c.on_true : *c.on_false;
    return execute(chosen, pick(places, c.inputs), pick(places, c.outputs), top);
  }
  static bool is_true(Place condition) { return *condition.data != std::byte{0}; }

  Status execute(const Frame& frame, const Loop& c, const Places& places, int64_t top) {
    const std::vector<Change> changes = changes_of(c);
    const Places state = pick(places, c.state), next = pick(places, next_of(changes));
    for (int64_t iteration = 0;; ++iteration) {
      HONE_TRY(execute(*c.test, state, {places[c.condition]}, top));
      if (!is_true(places[c.condition])) return {};
      if (iteration == options_.max_iterations)
        return over_limit("the loop did not end within {} iterations", iteration);
      HONE_TRY(execute(*c.body, state, next, top));
      advance(frame, changes, places);
    }
  }

  Status execute(const Frame& frame, const Scan& c, const Places& places, int64_t top) {
    const int64_t trips = c.trips.value();
    const std::vector<Change> changes = changes_of(c);
    for (int64_t trip = 0; trip < trips; ++trip) {
      const int64_t step = c.reverse ? trips - 1 - trip : trip;
      Places inputs = pick(places, c.state), outputs = pick(places, next_of(changes));
      auto part = [&](BufferId b) {
        return places[b].behind(size_of(frame.buffers[b].type) / trips * step);
      };
      for (BufferId b : c.xs) inputs.push_back(part(b));
      for (BufferId b : c.ys) outputs.push_back(part(b));
      HONE_TRY(execute(*c.body, inputs, outputs, top));
      advance(frame, changes, places);
    }
    return {};
  }

  const Program& program_;
  const ProgramRunOptions& options_;
  ArenaLayout arena_;
  Rng rng_;
  std::vector<std::byte> memory_;
  OpenCollectives collectives_;
};

Status check_static(const Program& program) {
  for (const FrameRef& frame : all_frames(program.main))
    for (Symbol symbol : symbols_of(*frame))
      return unsupported("'{}' has no value; sizes must be numbers", symbol.name());
  return {};
}

}  // namespace
}  // namespace program

Result<std::vector<Tensor>> run(const Program& program, std::span<const Tensor> inputs,
                                const ProgramRunOptions& options) {
  HONE_TRY(program::check_static(program));
  HONE_TRY(check(options.place));
  HONE_TRY(check_devices(program, devices_of(options.place)));
  Result<std::vector<Tensor>> results = program::Runner(program, options).run(inputs);
  if (results.ok()) return results;
  // The other devices must not wait for this one.
  if (options.place.transport != nullptr) options.place.transport->cancel(results.error());
  return std::move(results).error().within(fmt::format("program '{}'", program.name));
}

}  // namespace hone
