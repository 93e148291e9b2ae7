#include "program/instantiate.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/planted.h"
#include "program/arena_layout.h"
#include "program/frame.h"
#include "program/tiles/bind.h"
#include "program/tiles/calling.h"
#include "program/uniform.h"
#include "runtime/kernel_abi.h"

namespace hone {

namespace program {
namespace {

using Region = image::Place::Region;

struct DimHash {
  size_t operator()(Dim dim) const { return dim.hash(); }
};

// image::Place and image::Step, whose numbers may be expressions.
struct OpenStep {
  uint32_t loop = 0;
  Dim stride = 0;
  bool operator==(const OpenStep&) const = default;
};
struct OpenPlace {
  Region region = Region::arena;
  uint32_t index = 0;
  Dim offset = 0;
  Dim bytes = 0;
  std::vector<OpenStep> steps = {};
  bool operator==(const OpenPlace&) const = default;
};
using OpenPlaces = std::vector<OpenPlace>;

class Instantiation {
 public:
  // `bound` is `program` with numbers for the symbols that have some.
  Instantiation(const Program& program, const Program& bound, const Bindings& bindings)
      : program_(program), bound_(bound), bindings_(bindings), arena_(bound) {}

  Result<OpenImage> run(std::span<const KernelCode> code) {
    agree_ = HONE_TRY(devices_that_agree(bound_));
    image_.name = program_.name;
    image_.threads = program_.threads;
    const Frame& main = *bound_.main;
    open_.arena = arena_.bytes(main);
    for (Dim bytes : open_.arena)
      if (bytes.is_static() && bytes.value() > kMaxImageBytes)
        return over_limit("the arena has more than {} bytes", kMaxImageBytes);
    HONE_TRY(kernels(code));
    const OpenPlaces inputs = ports(main, Role::input, Region::input, image_.inputs);
    const OpenPlaces outputs = ports(main, Role::output, Region::output, image_.outputs);
    donations(main);
    HONE_TRY(frame(main, inputs, outputs, 0, image_.commands));
    return std::move(open_);
  }

 private:
  // The place of a number.
  int64_t number(Dim dim) {
    const auto [known, is_new] =
        numbers_.try_emplace(dim, static_cast<int64_t>(open_.numbers.size()));
    if (is_new) open_.numbers.push_back(dim);
    return known->second;
  }
  image::Place placed(const OpenPlace& place) {
    image::Place made = {.region = place.region,
                         .index = place.index,
                         .offset = number(place.offset),
                         .bytes = number(place.bytes)};
    for (const OpenStep& step : place.steps) made.steps.push_back({step.loop, number(step.stride)});
    return made;
  }

  // ---- Kernels and ports -----------------------------------------------------------------------

  Status kernels(std::span<const KernelCode> code) {
    if (code.size() != program_.kernels.size())
      return bad_input("{} kernels have code, but the program has {}", code.size(),
                       program_.kernels.size());
    for (size_t k = 0; k < code.size(); ++k) {
      const TileProgram& tiles = bound_.kernels[k].tiles;
      if (code[k].phases.size() != tiles.phases.size())
        return bad_input("the code of kernel '{}' has {} phases, not {}", tiles.name,
                         code[k].phases.size(), tiles.phases.size());
      image::Kernel& kernel = image_.kernels.emplace_back();
      kernel.name = tiles.name;
      kernel.object = code[k].object;
      kernel.needs = code[k].needs;
      kernel.scratch_bytes = number(scratch_layout(tiles).bytes);
      for (size_t p = 0; p < tiles.phases.size(); ++p)
        kernel.phases.push_back({code[k].phases[p], number(trips_of(tiles.phases[p], tiles)),
                                 tiles.phases[p].exec == Exec::threads});
      std::vector<int64_t>& symbols = symbols_.emplace_back();
      for (Symbol symbol : symbols_of(program_.kernels[k].tiles))
        symbols.push_back(number(Dim(symbol).bind(bindings_)));
    }
    return {};
  }

  static OpenPlaces ports(const Frame& main, Role role, Region region,
                          std::vector<image::Port>& out) {
    OpenPlaces places;
    for (BufferId b : buffers_of(main, role)) {
      const Buffer& buffer = main.buffers[b];
      places.push_back({.region = region,
                        .index = static_cast<uint32_t>(out.size()),
                        .bytes = bytes_of(buffer.type)});
      out.push_back({buffer.name, buffer.type});
    }
    return places;
  }

  void donations(const Frame& main) {
    const std::vector<BufferId> inputs = buffers_of(main, Role::input);
    const std::vector<BufferId> outputs = buffers_of(main, Role::output);
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      const std::optional<BufferId> donor = main.buffers[outputs[i]].donor;
      if (!donor) continue;
      const auto at = std::ranges::find(inputs, *donor) - inputs.begin();
      image_.donations.push_back({static_cast<uint32_t>(at), i});
    }
  }

  // ---- Places
  // --------------------------------------------------------------------------------------

  static OpenPlace part(OpenPlace place, Dim offset, Dim bytes) {
    place.offset += offset;
    place.bytes = bytes;
    return place;
  }

  uint32_t constant(const Frame& frame, BufferId b) {
    const auto next = static_cast<uint32_t>(image_.constants.size());
    const auto [known, is_new] = constants_.try_emplace({&frame, b}, next);
    if (is_new) image_.constants.push_back(frame.buffers[b].value);
    return known->second;
  }

  OpenPlaces lay_out(const Frame& frame, const OpenPlaces& inputs, const OpenPlaces& outputs,
                     Dim base) {
    const FrameMemory& memory = arena_.memory(frame);
    OpenPlaces places(frame.buffers.size());
    size_t input = 0, output = 0;
    for (BufferId b = 0; b < frame.buffers.size(); ++b) {
      const Buffer& buffer = frame.buffers[b];
      const Dim bytes = bytes_of(buffer.type);
      switch (buffer.role) {
        case Role::input: places[b] = inputs[input++]; break;
        case Role::output: places[b] = outputs[output++]; break;
        case Role::constant:
          places[b] = {.region = Region::constant, .index = constant(frame, b), .bytes = bytes};
          break;
        case Role::temporary:
          places[b] = {.offset = base + memory.offsets[b], .bytes = bytes};
          break;
        case Role::view: break;
      }
    }
    for (BufferId b : buffers_of(frame, Role::view)) {
      const Buffer& buffer = frame.buffers[b];
      places[b] = part(places[buffer.view.of], buffer.view.offset, bytes_of(buffer.type));
    }
    return places;
  }

  static OpenPlaces pick(const OpenPlaces& places, const std::vector<BufferId>& buffers) {
    OpenPlaces list;
    for (BufferId b : buffers) list.push_back(places[b]);
    return list;
  }

  // ---- Commands --------------------------------------------------------------------------------

  Status frame(const Frame& frame, const OpenPlaces& inputs, const OpenPlaces& outputs, Dim base,
               image::Block& out) {
    HONE_TRY(count());
    const OpenPlaces places = lay_out(frame, inputs, outputs, base);
    const FrameMemory& memory = arena_.memory(frame);
    for (size_t c = 0; c < frame.commands.size(); ++c) {
      name_ = frame.commands[c].name;
      frame_ = &frame;
      HONE_TRY(std::visit(
          [&](const auto& kind) { return add(kind, places, base + memory.tops[c], out); },
          frame.commands[c].kind));
    }
    return {};
  }

  template <class Kind>
  Status push(image::Block& out, std::string name, Kind kind) {
    HONE_TRY(count());
    out.push_back({std::move(name), std::move(kind)});
    return {};
  }
  Status count() {
    if (++count_ <= kMaxImageCommands) return {};
    return over_limit("more than {} commands, frames written out", kMaxImageCommands);
  }

  Status add(const Launch& c, const OpenPlaces& places, Dim top, image::Block& out) {
    image::Launch launch = {c.kernel, {}, symbols_[c.kernel]};
    for (BufferId b : c.inputs) launch.buffers.push_back(placed(places[b]));
    for (BufferId b : c.outputs) launch.buffers.push_back(placed(places[b]));
    for (const TileBuffer& buffer : bound_.kernels[c.kernel].tiles.buffers) {
      if (buffer.role != BufferRole::shared) continue;
      launch.buffers.push_back(placed({.offset = top, .bytes = bytes_of(buffer.type)}));
      top += aligned(bytes_of(buffer.type));
    }
    return push(out, name_, std::move(launch));
  }

  Status add(const Copy& c, const OpenPlaces& places, Dim /*top*/, image::Block& out) {
    return copy(out, name_, places[c.from], places[c.to]);
  }
  // No copy is needed where an output lies in its donor.
  Status copy(image::Block& out, const std::string& name, const OpenPlace& from,
              const OpenPlace& to) {
    if (HONE_PLANT(donor_copy, from == to, from.region == Region::input)) return {};
    return push(out, name, image::Copy{placed(from), placed(to)});
  }

  // If devices agree on their branches only where they are a certain number, the collectives of all
  // of them name each one. So the runtime refuses other numbers.
  SpmdCollective pinned(SpmdCollective spmd) const {
    if (spmd.group_size != agree_ || !spmd.groups.empty()) return spmd;
    for (int32_t device = 0; device < agree_; ++device) spmd.groups.push_back(device);
    return spmd;
  }

  // Within one frame, written out once, the number of a start is that of its wait.
  Status add(const Start& c, const OpenPlaces& places, Dim /*top*/, image::Block& out) {
    const Buffer& to = frame_->buffers[c.to];
    image::Start start = {image_.collectives++,   pinned(c.collective), to.type.dtype(),
                          placed(places[c.from]), placed(places[c.to]), to.name};
    numbers_of_starts_[&c] = start.number;
    return push(out, name_, std::move(start));
  }
  Status add(const Send& c, const OpenPlaces& places, Dim /*top*/, image::Block& out) {
    image::Send send = {image_.collectives++, c.message, placed(places[c.from]),
                        frame_->buffers[c.from].name};
    numbers_of_starts_[&c] = send.number;
    return push(out, name_, std::move(send));
  }
  Status add(const Receive& c, const OpenPlaces& places, Dim /*top*/, image::Block& out) {
    image::Receive receive = {image_.collectives++, c.message, placed(places[c.to]),
                              frame_->buffers[c.to].name};
    numbers_of_starts_[&c] = receive.number;
    return push(out, name_, std::move(receive));
  }
  Status add(const Wait& c, const OpenPlaces& /*places*/, Dim /*top*/, image::Block& out) {
    const uint32_t number =
        std::visit([&](const auto& begun) { return numbers_of_starts_.at(&begun); },
                   frame_->commands[c.start].kind);
    return push(out, name_, image::Wait{number});
  }
  Status add(const DeviceIndex& c, const OpenPlaces& places, Dim /*top*/, image::Block& out) {
    return push(out, name_, image::DeviceIndex{placed(places[c.to])});
  }

  Status add(const Call& c, const OpenPlaces& places, Dim top, image::Block& out) {
    return frame(*c.frame, pick(places, c.inputs), pick(places, c.outputs), top, out);
  }

  Status add(const Branch& c, const OpenPlaces& places, Dim top, image::Block& out) {
    const std::string name = name_;
    const OpenPlaces inputs = pick(places, c.inputs), outputs = pick(places, c.outputs);
    image::Branch branch;
    branch.condition = placed(places[c.condition]);
    HONE_TRY(frame(*c.on_true, inputs, outputs, top, branch.on_true));
    HONE_TRY(frame(*c.on_false, inputs, outputs, top, branch.on_false));
    return push(out, name, std::move(branch));
  }

  Status add(const Loop& c, const OpenPlaces& places, Dim top, image::Block& out) {
    const std::string name = name_;
    const std::vector<Change> changes = changes_of(c);
    const OpenPlaces state = pick(places, c.state), next = pick(places, next_of(changes));
    image::While loop;
    loop.condition = placed(places[c.condition]);
    HONE_TRY(frame(*c.test, state, {places[c.condition]}, top, loop.test));
    HONE_TRY(frame(*c.body, state, next, top, loop.body));
    HONE_TRY(advance(name, changes, places, loop.body));
    return push(out, name, std::move(loop));
  }

  Status add(const Scan& c, const OpenPlaces& places, Dim top, image::Block& out) {
    const std::string name = name_;
    const std::vector<Change> changes = changes_of(c);
    const OpenPlaces state = pick(places, c.state), next = pick(places, next_of(changes));
    image::Repeat repeat;
    repeat.loop = image_.loops++;
    repeat.trips = number(c.trips);
    repeat.reverse = c.reverse;
    OpenPlaces inputs = state, outputs = next;
    add_steps(c.xs, *c.body, Role::input, places, repeat, inputs);
    add_steps(c.ys, *c.body, Role::output, places, repeat, outputs);
    HONE_TRY(frame(*c.body, inputs, outputs, top, repeat.body));
    HONE_TRY(advance(name, changes, places, repeat.body));
    return push(out, name, std::move(repeat));
  }

  // A step's part of each stack, for the ports that have none yet.
  static void add_steps(const std::vector<BufferId>& stacks, const Frame& body, Role role,
                        const OpenPlaces& places, const image::Repeat& repeat, OpenPlaces& ports) {
    const std::vector<BufferId> buffers = buffers_of(body, role);
    for (BufferId b : stacks) {
      const Dim bytes = bytes_of(body.buffers[buffers[ports.size()]].type);
      OpenPlace& place = ports.emplace_back(part(places[b], 0, bytes));
      place.steps.push_back({repeat.loop, HONE_PLANT(step_stride, bytes, Dim(0))});
    }
  }

  Status advance(const std::string& name, std::span<const Change> changes, const OpenPlaces& places,
                 image::Block& out) {
    for (const auto& [state, next] : changes)
      HONE_TRY(copy(out, name, places[next], places[state]));
    return {};
  }

  const Program& program_;
  const Program& bound_;
  const Bindings& bindings_;
  ArenaLayout arena_;
  int32_t agree_ = 0;
  OpenImage open_;
  Image& image_ = open_.image;
  std::unordered_map<Dim, int64_t, DimHash> numbers_;
  std::vector<std::vector<int64_t>> symbols_;  // by kernel
  std::map<std::pair<const Frame*, BufferId>, uint32_t> constants_;
  // Each start, send and receive, by its address: its number as it was written out last.
  std::map<const void*, uint32_t> numbers_of_starts_;
  const Frame* frame_ = nullptr;  // of the command at hand
  std::string name_;              // of the command at hand
  int64_t count_ = 0;             // of commands and of frames that are written out
};

Error of_program(Error error, const Program& program) {
  return std::move(error).within(fmt::format("program '{}'", program.name));
}

// Checks that all symbols have numbers.
Status check_bound(const Program& bound) {
  std::vector<Symbol> free;
  for (const Kernel& kernel : bound.kernels)
    for (Symbol symbol : symbols_of(kernel.tiles)) free.push_back(symbol);
  for (const FrameRef& frame : all_frames(bound.main))
    for (Symbol symbol : symbols_of(*frame)) free.push_back(symbol);
  if (free.empty()) return {};
  return bad_input("'{}' has no value", free[0].name());
}

}  // namespace
}  // namespace program

Result<Image> instantiate(const Program& program, const Bindings& bindings,
                          std::span<const KernelCode> code) {
  auto run = [&]() -> Result<Image> {
    const Program bound = HONE_TRY(specialize(program, bindings));
    HONE_TRY(program::check_bound(bound));
    return bound_image(HONE_TRY(program::Instantiation(program, bound, bindings).run(code)), {});
  };
  Result<Image> image = run();
  if (image.ok()) return image;
  return program::of_program(std::move(image).error(), program);
}

Result<OpenImage> instantiate_open(const Program& program, std::span<const KernelCode> code) {
  const Bindings none;
  Result<OpenImage> image = program::Instantiation(program, program, none).run(code);
  if (image.ok()) return image;
  return program::of_program(std::move(image).error(), program);
}

}  // namespace hone
