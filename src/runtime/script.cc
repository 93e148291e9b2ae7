#include "runtime/script.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked_math.h"
#include "base/planted.h"

namespace hone {

namespace {

using image::Block;
using image::Place;
using Instruction = Script::Instruction;
using InstructionKind = Instruction::Kind;

std::string_view region_name(Place::Region region) {
  constexpr std::string_view kNames[] = {"input", "output", "constant", "arena"};
  return kNames[static_cast<size_t>(region)];
}

class Resolver {
 public:
  Resolver(const Image& image, std::span<const Import> imports, Objects objects)
      : image_(image),
        imports_(imports),
        objects_(objects),
        trips_(image.loops),
        is_open_(image.loops) {}

  Result<Script> resolve() {
    if (image_.threads < 1) return bad_input("runs on {} threads", image_.threads);
    HONE_TRY(resolve_memory());
    HONE_TRY(resolve_donations());
    for (const image::Kernel& kernel : image_.kernels) {
      Status status = resolve_kernel(kernel);
      if (!status.ok()) return named("kernel", kernel.name, std::move(status));
    }
    script_.loops = image_.loops;
    script_.collectives.resize(image_.collectives);
    HONE_TRY(resolve(image_.commands));
    if (!open_.empty()) return bad_input("nothing waits for collective {}", *open_.begin());
    return std::move(script_);
  }

 private:
  struct Range {
    uint32_t first;
    uint32_t last;
  };

  static Error named(std::string_view sort, std::string_view name, Status&& status) {
    return std::move(status).error().within(fmt::format("{} '{}'", sort, name));
  }
  uint32_t here() const { return static_cast<uint32_t>(script_.instructions.size()); }
  Instruction& add(Instruction instruction) {
    return script_.instructions.emplace_back(instruction);
  }
  uint32_t origin(std::string_view kernel) {
    script_.origins.push_back({std::string(command_), std::string(kernel)});
    return static_cast<uint32_t>(script_.origins.size() - 1);
  }

  Status resolve_memory();
  Status resolve_donations();
  Status resolve_kernel(const image::Kernel& kernel);
  Result<const ObjectCode*> load(const std::shared_ptr<const std::string>& object);
  Status resolve(const Block& block);
  Status resolve(const image::Launch& launch);
  Status resolve(const image::Copy& copy);
  Status resolve(const image::Start& start);
  Status resolve(const image::Send& send);
  Status resolve(const image::Receive& receive);
  Status resolve(const image::Wait& wait);
  Status resolve(const image::DeviceIndex& index);
  Status begin(uint32_t number);
  Status resolve_message(InstructionKind kind, uint32_t number, const Message& message,
                         const Place& place, const std::string& value);
  Status resolve_closed(const Block& block);
  Status resolve(const image::Branch& branch);
  Status resolve(const image::While& loop);
  Status resolve(const image::Repeat& repeat);
  Result<uint32_t> jump_if_zero(const Place& condition);
  Result<bool> point_to(const Place& place);
  Result<const Script::Base*> base_of(const Place& place) const;
  Status check(const Place& place, const Script::Base& base) const;

  const Image& image_;
  std::span<const Import> imports_;
  const Objects objects_;
  std::map<const std::string*, const ObjectCode*> loaded_;
  std::vector<Range> kernels_;   // their phases
  uint32_t first_base_[4] = {};  // of each region
  std::vector<int64_t> trips_;   // of each loop, 0: there is none yet
  std::vector<bool> is_open_;    // of each loop: around what is resolved now
  std::set<uint32_t> started_;   // collectives
  std::set<uint32_t> open_;      // those that nothing has waited for yet
  std::string_view command_;     // the innermost that is resolved now
  Script script_;
};

// ---- Memory and kernels ------------------------------------------------------------------------

Status Resolver::resolve_memory() {
  using enum Place::Region;
  if (image_.arena_bytes < 0) return bad_input("an arena cannot have {} bytes", image_.arena_bytes);
  const auto begin = [&](Place::Region region) {
    first_base_[static_cast<size_t>(region)] = static_cast<uint32_t>(script_.bases.size());
  };
  begin(arena);
  script_.bases.push_back({arena, 0, image_.arena_bytes});
  begin(constant);
  for (uint32_t i = 0; i < image_.constants.size(); ++i) {
    if (!image_.constants[i]) return bad_input("constant {} is empty", i);
    script_.bases.push_back({constant, i, image_.constants[i].byte_size()});
  }
  script_.first_port = static_cast<uint32_t>(script_.bases.size());
  for (auto [region, ports] :
       {std::pair(input, &image_.inputs), std::pair(output, &image_.outputs)}) {
    begin(region);
    for (uint32_t i = 0; i < ports->size(); ++i) {
      const image::Port& port = (*ports)[i];
      if (!port.type || !port.type.is_static()) {
        return bad_input("{} '{}' has the type {}, which is not static", region_name(region),
                         port.name, port.type ? port.type.to_string() : "none");
      }
      script_.bases.push_back({region, i, port.type.static_bytes()});
    }
  }
  return {};
}

Status Resolver::resolve_donations() {
  script_.donors.resize(image_.outputs.size());
  std::vector<bool> is_donor(image_.inputs.size());
  for (const auto& [input, output] : image_.donations) {
    if (input >= image_.inputs.size() || output >= image_.outputs.size())
      return bad_input("input {} or output {} does not exist", input, output);
    if (is_donor[input] || script_.donors[output])
      return bad_input("input {} or output {} is donated twice", input, output);
    const Type from = image_.inputs[input].type, to = image_.outputs[output].type;
    if (from != to)
      return bad_input("output '{}' is {}, but the input that is donated to it is {}",
                       image_.outputs[output].name, to.to_string(), from.to_string());
    is_donor[input] = true;
    script_.donors[output] = input;
  }
  return {};
}

Status Resolver::resolve_kernel(const image::Kernel& kernel) {
  if (kernel.scratch_bytes < 0)
    return bad_input("scratch cannot have {} bytes", kernel.scratch_bytes);
  if (!kernel.object && objects_ == Objects::of_all) return bad_input("the kernel has no object");
  const ObjectCode* code = kernel.object ? HONE_TRY(load(kernel.object)) : nullptr;
  const uint32_t first = static_cast<uint32_t>(script_.phases.size());
  for (const image::Phase& phase : kernel.phases) {
    const void* function = code == nullptr ? nullptr : code->function(phase.symbol);
    if (function == nullptr && code != nullptr)
      return bad_input("its object has no function '{}'", phase.symbol);
    if (phase.trips < 0) return bad_input("'{}' has {} trips", phase.symbol, phase.trips);
    script_.phases.push_back(
        {reinterpret_cast<PhaseFn>(const_cast<void*>(function)), phase.trips, phase.is_parallel});
  }
  kernels_.push_back({first, static_cast<uint32_t>(script_.phases.size())});
  script_.scratch_bytes = std::max(script_.scratch_bytes, kernel.scratch_bytes);
  return {};
}

Result<const ObjectCode*> Resolver::load(const std::shared_ptr<const std::string>& object) {
  const ObjectCode*& code = loaded_[object.get()];
  if (code == nullptr) {
    const std::span bytes(object->data(), object->size());
    script_.objects.push_back(HONE_TRY(ObjectCode::load(std::as_bytes(bytes), imports_)));
    code = script_.objects.back().get();
  }
  return code;
}

// ---- Commands ----------------------------------------------------------------------------------

Status Resolver::resolve(const Block& block) {
  for (const image::Command& command : block) {
    command_ = command.name;
    Status status = std::visit([&](const auto& kind) { return resolve(kind); }, command.kind);
    if (!status.ok()) return named("command", command.name, std::move(status));
  }
  return {};
}

Status Resolver::resolve(const image::Launch& launch) {
  if (launch.kernel >= kernels_.size()) {
    return bad_input("launches kernel {} of {}", launch.kernel, kernels_.size());
  }
  Instruction instruction = {.kind = InstructionKind::launch};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = static_cast<uint32_t>(launch.buffers.size());
  for (const Place& place : launch.buffers) instruction.moves |= HONE_TRY(point_to(place));
  instruction.first = kernels_[launch.kernel].first;
  instruction.last = kernels_[launch.kernel].last;
  instruction.origin = origin(image_.kernels[launch.kernel].name);
  instruction.symbols = static_cast<uint32_t>(script_.symbols.size());
  script_.symbols.insert(script_.symbols.end(), launch.symbols.begin(), launch.symbols.end());
  instruction.last_symbol = static_cast<uint32_t>(script_.symbols.size());
  add(instruction);
  return {};
}

Status Resolver::resolve(const image::Copy& copy) {
  using enum Place::Region;
  if (copy.from.bytes != copy.to.bytes) {
    return bad_input("copies {} bytes to {}", copy.from.bytes, copy.to.bytes);
  }
  if (copy.to.region == input || copy.to.region == constant) {
    return bad_input("writes to {} {}", region_name(copy.to.region), copy.to.index);
  }
  Instruction instruction = {.kind = InstructionKind::copy};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = 2;
  instruction.moves = HONE_TRY(point_to(copy.from));
  instruction.moves |= HONE_TRY(point_to(copy.to));
  instruction.count = copy.from.bytes;
  instruction.origin = origin("");
  add(instruction);
  return {};
}

Status Resolver::resolve(const image::Start& start) {
  using enum Place::Region;
  HONE_TRY(begin(start.number));
  if (start.to.region == input || start.to.region == constant)
    return bad_input("writes to {} {}", region_name(start.to.region), start.to.index);
  HONE_TRY(hone::check(start.collective));
  HONE_TRY(moved_elements(start.collective, start.dtype, start.from.bytes, start.to.bytes));
  Instruction instruction = {.kind = InstructionKind::start, .first = start.number};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = 2;
  instruction.moves = HONE_TRY(point_to(start.from));
  instruction.moves |= HONE_TRY(point_to(start.to));
  instruction.origin = origin("");
  add(instruction);
  script_.collectives[start.number] = {start.collective, start.dtype, start.from.bytes,
                                       start.to.bytes, start.result};
  return {};
}

// Something that a wait ends.
Status Resolver::begin(uint32_t number) {
  if (number >= script_.collectives.size())
    return bad_input("starts collective {} of {}", number, script_.collectives.size());
  if (!started_.insert(number).second)
    return bad_input("starts collective {}, as another command does", number);
  open_.insert(number);
  return {};
}

Status Resolver::resolve(const image::Send& send) {
  return resolve_message(InstructionKind::send, send.number, send.message, send.from, send.value);
}

Status Resolver::resolve(const image::Receive& receive) {
  using enum Place::Region;
  if (receive.to.region == input || receive.to.region == constant)
    return bad_input("writes to {} {}", region_name(receive.to.region), receive.to.index);
  return resolve_message(InstructionKind::receive, receive.number, receive.message, receive.to,
                         receive.value);
}

Status Resolver::resolve_message(InstructionKind kind, uint32_t number, const Message& message,
                                 const Place& place, const std::string& value) {
  HONE_TRY(begin(number));
  HONE_TRY(hone::check(message));
  Instruction instruction = {.kind = kind, .first = number};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = 1;
  instruction.moves = HONE_TRY(point_to(place));
  instruction.origin = origin("");
  add(instruction);
  const bool sends = kind == InstructionKind::send;
  script_.collectives[number] = {{},    DType::u8, sends ? place.bytes : 0, sends ? 0 : place.bytes,
                                 value, message};
  return {};
}

Status Resolver::resolve(const image::Wait& wait) {
  if (open_.erase(wait.number) == 0)
    return bad_input("waits for collective {}, which is not under way", wait.number);
  add({.kind = InstructionKind::wait, .first = wait.number, .origin = origin("")});
  return {};
}

Status Resolver::resolve(const image::DeviceIndex& index) {
  using enum Place::Region;
  if (index.to.bytes != 8) return bad_input("writes the device into {} bytes", index.to.bytes);
  if (index.to.region == input || index.to.region == constant)
    return bad_input("writes to {} {}", region_name(index.to.region), index.to.index);
  Instruction instruction = {.kind = InstructionKind::device_index};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = 1;
  instruction.moves = HONE_TRY(point_to(index.to));
  add(instruction);
  return {};
}

// A block that may run several times or not at all ends the collectives that it starts, and no
// others.
Status Resolver::resolve_closed(const Block& block) {
  const std::set<uint32_t> before = std::exchange(open_, {});
  HONE_TRY(resolve(block));
  if (!open_.empty()) return bad_input("nothing waits for collective {}", *open_.begin());
  open_ = before;
  return {};
}

// The instruction, whose target is to be set.
Result<uint32_t> Resolver::jump_if_zero(const Place& condition) {
  if (condition.bytes != 1) return bad_input("a condition has {} bytes, not 1", condition.bytes);
  Instruction instruction = {.kind = InstructionKind::jump_if_zero};
  instruction.pointer = static_cast<uint32_t>(script_.pointers.size());
  instruction.pointers = 1;
  instruction.moves = HONE_TRY(point_to(condition));
  const uint32_t place = here();
  add(instruction);
  return place;
}

Status Resolver::resolve(const image::Branch& branch) {
  const uint32_t test = HONE_TRY(jump_if_zero(branch.condition));
  HONE_TRY(resolve_closed(HONE_PLANT(branches_swapped, branch.on_true, branch.on_false)));
  const uint32_t end = here();
  add({.kind = InstructionKind::jump});
  script_.instructions[test].target = here();
  HONE_TRY(resolve_closed(HONE_PLANT(branches_swapped, branch.on_false, branch.on_true)));
  script_.instructions[end].target = here();
  return {};
}

Status Resolver::resolve(const image::While& loop) {
  const uint32_t begin = here();
  HONE_TRY(resolve_closed(loop.test));
  const uint32_t test = HONE_TRY(jump_if_zero(loop.condition));
  HONE_TRY(resolve_closed(loop.body));
  add({.kind = InstructionKind::jump, .target = begin});
  script_.instructions[test].target = here();
  return {};
}

Status Resolver::resolve(const image::Repeat& repeat) {
  if (repeat.loop >= trips_.size()) {
    return bad_input("names loop {}, but there are {}", repeat.loop, trips_.size());
  }
  if (repeat.trips < 0) return bad_input("has {} trips", repeat.trips);
  if (repeat.trips == 0) return {};
  if (trips_[repeat.loop] != 0)
    return bad_input("is loop {}, which another command is", repeat.loop);
  trips_[repeat.loop] = repeat.trips;
  is_open_[repeat.loop] = true;
  const int64_t last = repeat.trips - 1;
  add({.kind = InstructionKind::enter, .first = repeat.loop, .count = repeat.reverse ? last : 0});
  const uint32_t body = here();
  HONE_TRY(resolve_closed(repeat.body));
  add({.kind = InstructionKind::next,
       .target = body,
       .first = repeat.loop,
       .count = repeat.reverse ? 0 : last,
       .step = repeat.reverse ? -1 : 1});
  is_open_[repeat.loop] = false;
  return {};
}

// ---- Places ------------------------------------------------------------------------------------

// Adds a pointer to the place; true if it moves.
Result<bool> Resolver::point_to(const Place& place) {
  const Script::Base* base = HONE_TRY(base_of(place));
  HONE_TRY(check(place, *base));
  const uint32_t first = static_cast<uint32_t>(script_.steps.size());
  for (const image::Step& step : place.steps) script_.steps.push_back(step);
  script_.pointers.push_back({static_cast<uint32_t>(base - script_.bases.data()), place.offset,
                              place.bytes, first, static_cast<uint32_t>(script_.steps.size())});
  return script_.pointers.back().moves();
}

Result<const Script::Base*> Resolver::base_of(const Place& place) const {
  const size_t region = static_cast<size_t>(place.region);
  if (region >= std::size(first_base_))
    return bad_input("a place is in region {}, which does not exist", region);
  const size_t index = size_t{first_base_[region]} + place.index;
  if (index >= script_.bases.size() || script_.bases[index].region != place.region) {
    return bad_input("there is no {} {}", region_name(place.region), place.index);
  }
  return &script_.bases[index];
}

// Every trip of the loops around it is inside of the base.
Status Resolver::check(const Place& place, const Script::Base& base) const {
  if (place.bytes < 0) return bad_input("a place cannot have {} bytes", place.bytes);
  std::optional<int64_t> low = place.offset;
  std::optional<int64_t> high = checked_add(place.offset, place.bytes);
  for (const image::Step& step : place.steps) {
    if (step.loop >= is_open_.size() || !is_open_[step.loop]) {
      return bad_input("a place moves with loop {}, which is not around it", step.loop);
    }
    const std::optional<int64_t> way = checked_mul(step.stride, trips_[step.loop] - 1);
    std::optional<int64_t>& end = step.stride < 0 ? low : high;
    end = way && end ? checked_add(*end, *way) : std::nullopt;
  }
  if (!low || !high || *low < 0 || *high > base.bytes) {
    return bad_input("{} bytes at {} of {} {} go beyond its {} bytes{}", place.bytes, place.offset,
                     region_name(place.region), place.index, base.bytes,
                     place.steps.empty() ? "" : " in some trip");
  }
  return {};
}

}  // namespace

Result<Script> resolve(const Image& image, std::span<const Import> imports, Objects objects) {
  return Resolver(image, imports, objects).resolve();
}

}  // namespace hone
