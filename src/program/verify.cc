#include <algorithm>
#include <map>
#include <set>

#include "program/frame.h"
#include "program/instantiate.h"
#include "program/program.h"
#include "program/tiles/calling.h"
#include "program/uniform.h"
#include "runtime/kernel_abi.h"

namespace hone {

namespace program {
namespace {

class FrameVerifier {
 public:
  FrameVerifier(const Program& program, const Frame& frame) : program_(program), frame_(frame) {}

  Status run() {
    HONE_TRY(buffers());
    HONE_TRY(offsets());
    is_written_.resize(frame_.buffers.size());
    is_given_away_.resize(frame_.buffers.size());
    parts_.resize(frame_.buffers.size());
    for (CommandId c = 0; c < frame_.commands.size(); ++c) {
      Status status = command(c);
      if (!status.ok()) return std::move(status).error().within(place(c));
    }
    if (!open_.empty())
      return bad_input("nothing waits for it").within(place(open_.begin()->first));
    for (BufferId b : buffers_of(frame_, Role::output))
      if (!is_known(b)) return bad_input("output %{} is never written", buffer(b).name);
    HONE_TRY(places());
    return order();
  }

 private:
  std::string place(CommandId c) const {
    return fmt::format("command {} '{}'", c, frame_.commands[c].name);
  }
  const Buffer& buffer(BufferId b) const { return frame_.buffers[b]; }
  Type type(BufferId b) const { return frame_.buffers[b].type; }

  // ---- Buffers ---------------------------------------------------------------------------------

  Status buffers() const {
    std::set<std::string_view> names;
    Role last = Role::input;
    for (const Buffer& b : frame_.buffers) {
      if (!b.type) return bad_input("%{} has no type", b.name);
      if (!names.insert(b.name).second) return bad_input("two buffers are called %{}", b.name);
      const Role role = std::min(b.role, Role::constant);
      if (role < last) return bad_input("{} %{} comes after later ones", name(b.role), b.name);
      last = role;
      if (b.role == Role::constant && (!b.value || b.value.type() != b.type))
        return bad_input("constant %{} has no value of its type", b.name);
      if (b.role == Role::view) HONE_TRY(view(b));
    }
    return donors();
  }

  Status donors() const {
    std::set<BufferId> seen;
    for (const Buffer& b : frame_.buffers) {
      if (!b.donor) continue;
      if (b.role != Role::output)
        return bad_input("{} %{} lies in other memory", name(b.role), b.name);
      if (*b.donor >= frame_.buffers.size() || buffer(*b.donor).role != Role::input)
        return bad_input("output %{} lies in memory that is not an input's", b.name);
      if (type(*b.donor) != b.type)
        return bad_input("output %{} is {}, but the input that it lies in is {}", b.name,
                         b.type.to_string(), type(*b.donor).to_string());
      if (!seen.insert(*b.donor).second)
        return bad_input("two outputs lie in input %{}", buffer(*b.donor).name);
    }
    return {};
  }

  Status view(const Buffer& b) const {
    if (b.view.of >= frame_.buffers.size())
      return bad_input("%{} is a view, but does not say of what", b.name);
    const Buffer& base = buffer(b.view.of);
    if (base.role == Role::view)
      return bad_input("%{} is a view of the view %{}", b.name, base.name);
    if (provably_le(0, b.view.offset) &&
        provably_le(b.view.offset + bytes_of(b.type), bytes_of(base.type)))
      return {};
    return bad_input("view %{} is not inside of %{}", b.name, base.name);
  }

  Status offsets() const {
    std::optional<bool> has_offset;
    for (const Buffer& b : frame_.buffers) {
      if (b.role != Role::temporary) {
        if (b.offset) return bad_input("{} %{} has an offset", name(b.role), b.name);
        continue;
      }
      if (has_offset.value_or(b.offset.has_value()) != b.offset.has_value())
        return bad_input("some buffers, such as %{}, have an offset and some have none", b.name);
      has_offset = b.offset.has_value();
      if (!b.offset) continue;
      if (!b.type.is_static()) return bad_input("%{} has an offset and no fixed size", b.name);
      if (*b.offset < 0 || *b.offset % kBufferAlignment != 0)
        return bad_input("%{} lies at {}, which is not a multiple of {}", b.name, *b.offset,
                         kBufferAlignment);
      if (*b.offset > kMaxImageBytes)
        return over_limit("%{} lies at {}; memory ends at {}", b.name, *b.offset, kMaxImageBytes);
    }
    return {};
  }

  // Temporaries that live at the same time do not overlap.
  Status places() const {
    struct Live {
      int64_t end;
      BufferId buffer;
    };
    const std::vector<CommandSpan> lives = lifetimes(frame_);
    std::vector<std::vector<BufferId>> begins(frame_.commands.size()), ends(frame_.commands.size());
    for (BufferId b : buffers_of(frame_, Role::temporary)) {
      if (lives[b].first > lives[b].last || !buffer(b).offset || size(b) == 0) continue;
      begins[lives[b].first].push_back(b);
      ends[lives[b].last].push_back(b);
    }
    std::map<int64_t, Live> live;  // by offset
    for (size_t c = 0; c < frame_.commands.size(); ++c) {
      for (BufferId b : begins[c]) {
        const int64_t begin = *buffer(b).offset, end = begin + size(b);
        auto behind = live.lower_bound(begin);
        auto other = behind != live.end() && behind->first < end ? behind : live.end();
        if (behind != live.begin() && std::prev(behind)->second.end > begin)
          other = std::prev(behind);
        if (other != live.end())
          return bad_input("%{} and %{} overlap, but command {} '{}' needs both",
                           buffer(other->second.buffer).name, buffer(b).name, c,
                           frame_.commands[c].name);
        live.emplace(begin, Live{end, b});
      }
      for (BufferId b : ends[c]) live.erase(*buffer(b).offset);
    }
    return {};
  }
  int64_t size(BufferId b) const { return bytes_of(type(b)).value(); }

  // ---- Order -----------------------------------------------------------------------------------

  Status order() const {
    const std::vector<std::vector<CommandId>> needed = dependencies(frame_, program_.kernels);
    for (CommandId c = 0; c < needed.size(); ++c)
      for (CommandId before : needed[c])
        if (!comes_after(c, before))
          return bad_input("command {} '{}' does not wait for command {} '{}', but must", c,
                           frame_.commands[c].name, before, frame_.commands[before].name);
    return {};
  }

  bool comes_after(CommandId c, CommandId before) const {
    const std::vector<CommandId>& direct = frame_.commands[c].after;
    if (std::ranges::binary_search(direct, before)) return true;
    std::set<CommandId> open(direct.begin(), direct.end());  // none before `before`
    while (!open.empty() && *open.rbegin() > before) {
      const CommandId last = *open.rbegin();
      open.erase(last);
      const std::vector<CommandId>& after = frame_.commands[last].after;
      open.insert(std::ranges::lower_bound(after, before), after.end());
    }
    return open.contains(before);
  }

  // ---- Commands --------------------------------------------------------------------------------

  Status command(CommandId c) {
    const Command& command = frame_.commands[c];
    for (size_t i = 0; i < command.after.size(); ++i)
      if (command.after[i] >= c || (i > 0 && command.after[i] <= command.after[i - 1]))
        return bad_input("it waits for {}", command.after[i]);
    for (const std::vector<BufferId>& list : {reads_of(command), writes_of(command)})
      for (BufferId b : list)
        if (b >= frame_.buffers.size()) return bad_input("there is no buffer {}", b);
    for (const FrameRef& inner : frames_of(command))
      if (inner == nullptr) return bad_input("a frame is missing");
    HONE_TRY(std::visit([&](const auto& kind) { return check(kind); }, command.kind));
    HONE_TRY(exchanges(c));
    return memory(command);
  }

  // Between a start and its wait nothing touches what comes, and nothing writes what goes.
  Status exchanges(CommandId c) {
    const Command& command = frame_.commands[c];
    if (const Wait* wait = std::get_if<Wait>(&command.kind)) {
      const auto open = open_.find(wait->start);
      if (open == open_.end())
        return bad_input(
            "it waits for command {}, which begins nothing, or another command waited for it",
            wait->start);
      if (wait->from != open->second.from || wait->to != open->second.to)
        return bad_input("it waits for command {}, which has other buffers", wait->start);
      open_.erase(open);
    }
    const Accesses accesses = accesses_of(frame_, command);
    const auto uses = [&](const std::vector<BufferId>& list, const std::optional<BufferId>& b) {
      return b && std::ranges::binary_search(list, place_of(frame_, *b));
    };
    for (const auto& [number, open] : open_) {
      const bool reads = uses(accesses.reads, open.to);
      if (reads || uses(accesses.writes, open.to))
        return bad_input("%{} is {} before command {} is waited for, which still writes it",
                         buffer(*open.to).name, reads ? "read" : "written", number);
      if (uses(accesses.writes, open.from))
        return bad_input("%{} is written before command {} is waited for, which still reads it",
                         buffer(*open.from).name, number);
    }
    if (const Start* start = std::get_if<Start>(&command.kind))
      open_[c] = {c, start->from, start->to};
    else if (const Send* send = std::get_if<Send>(&command.kind))
      open_[c] = {c, send->from, {}};
    else if (const Receive* receive = std::get_if<Receive>(&command.kind))
      open_[c] = {c, {}, receive->to};
    return {};
  }

  // A command writes only buffers that may be written, each once. It reads no buffer before it is
  // written, and no donor after the output in it has changed.
  Status memory(const Command& command) {
    for (BufferId b : reads_of(command)) {
      if (!is_known(b)) return bad_input("%{} is read before it is written", buffer(b).name);
      if (is_given_away_[base_of(frame_, b)])
        return bad_input("%{} is read after an output that lies in it has changed", buffer(b).name);
    }
    const std::vector<BufferId> writes = writes_of(command);
    for (BufferId b : writes) {
      const BufferId base = base_of(frame_, b);
      if (buffer(base).role != Role::output && buffer(base).role != Role::temporary)
        return bad_input("{} %{} is written", name(buffer(base).role), buffer(b).name);
    }
    HONE_TRY(apart(command, writes));
    for (BufferId b : writes) {
      if (b != base_of(frame_, b) && !is_written_[b]) parts_[base_of(frame_, b)].push_back(b);
      is_written_[b] = true;
    }
    return {};
  }

  // True if the buffer has its contents: it was written, or its base was, or all parts that it
  // consists of.
  bool is_known(BufferId b) {
    const BufferId base = base_of(frame_, b);
    const Role role = buffer(base).role;
    if (role == Role::input || role == Role::constant || is_written_[b] || is_written_[base])
      return true;
    const Dim end = begin(b) + bytes_of(type(b));
    Dim at = begin(b);
    for (bool goes_on = true; goes_on && !provably_le(end, at);) {
      goes_on = false;
      for (BufferId part : parts_[base]) {
        const Dim behind = begin(part) + bytes_of(type(part));
        if (!provably_le(begin(part), at) || !provably_lt(at, behind)) continue;
        at = behind;
        goes_on = true;
      }
    }
    is_written_[b] = provably_le(end, at);
    return is_written_[b];
  }
  Dim begin(BufferId b) const {
    return buffer(b).role == Role::view ? buffer(b).view.offset : Dim(0);
  }

  // The buffers that a command writes overlap no other buffer that it writes or reads. Exceptions
  // are states of loops, and donors on their way to their outputs, by a copy or a kernel.
  Status apart(const Command& command, const std::vector<BufferId>& writes) {
    if (is_from_donor(command)) return {};
    std::multimap<BufferId, BufferId> written;  // by place
    for (BufferId b : writes) {
      const BufferId place = place_of(frame_, b);
      if (overlaps(b, place, written)) return bad_input("%{} is written twice", buffer(b).name);
      written.emplace(place, b);
      is_given_away_[place] = buffer(place).role == Role::input;
    }
    std::vector<BufferId> reads = reads_of(command);
    for (const Change& change : changes_of(command))
      reads.erase(std::ranges::find(reads, change.state));
    for (BufferId b : donors_of(command)) reads.erase(std::ranges::find(reads, b));
    for (BufferId b : reads)
      if (overlaps(b, place_of(frame_, b), written))
        return bad_input("%{} is read and written", buffer(b).name);
    return {};
  }

  bool overlaps(BufferId b, BufferId place,
                const std::multimap<BufferId, BufferId>& written) const {
    const auto [first, last] = written.equal_range(place);
    return std::any_of(first, last, [&](const auto& entry) {
      const BufferId other = entry.second;
      const bool is_apart = provably_le(begin(b) + bytes_of(type(b)), begin(other)) ||
                            provably_le(begin(other) + bytes_of(type(other)), begin(b));
      return b == other || !is_apart;
    });
  }

  // Inputs of a kernel whose output lies there, if the kernel lets it.
  std::vector<BufferId> donors_of(const Command& command) const {
    const Launch* launch = std::get_if<Launch>(&command.kind);
    if (launch == nullptr) return {};
    std::vector<BufferId> list;
    size_t result = 0;
    for (const TileBuffer& b : program_.kernels[launch->kernel].tiles.buffers) {
      if (!is_result(b.role)) continue;
      const Buffer& output = buffer(launch->outputs[result++]);
      if (b.donor && output.donor == launch->inputs[*b.donor]) list.push_back(*output.donor);
    }
    return list;
  }

  bool is_from_donor(const Command& command) const {
    const Copy* copy = std::get_if<Copy>(&command.kind);
    return copy != nullptr && buffer(copy->to).donor == copy->from;
  }

  Status check(const Launch& c) {
    if (c.kernel >= program_.kernels.size()) return bad_input("there is no kernel {}", c.kernel);
    const TileProgram& tiles = program_.kernels[c.kernel].tiles;
    std::vector<Type> inputs, outputs;
    for (const TileBuffer& b : tiles.buffers) {
      if (b.role == BufferRole::input) inputs.push_back(b.type);
      if (!is_result(b.role)) continue;
      const size_t result = outputs.size();
      outputs.push_back(b.type);
      if (b.role == BufferRole::update && result < c.outputs.size() && !is_known(c.outputs[result]))
        return bad_input("%{} is updated before it is written", buffer(c.outputs[result]).name);
    }
    HONE_TRY(same_types("inputs", tiles.name, inputs, c.inputs));
    return same_types("outputs", tiles.name, outputs, c.outputs);
  }

  Status check(const Copy& c) const {
    if (bytes_of(type(c.from)) == bytes_of(type(c.to))) return {};
    return bad_input("%{} is {}, %{} {}", buffer(c.from).name, type(c.from).to_string(),
                     buffer(c.to).name, type(c.to).to_string());
  }

  Status check(const Start& c) const {
    HONE_TRY(hone::check(c.collective));
    const Type from = type(c.from), to = type(c.to);
    if (from.dtype() != to.dtype())
      return bad_input("%{} is {}, %{} {}", buffer(c.from).name, from.to_string(),
                       buffer(c.to).name, to.to_string());
    const CollectiveKind kind = c.collective.kind;
    const bool gathers = kind == CollectiveKind::all_gather;
    const bool scatters = kind == CollectiveKind::reduce_scatter;
    if (bytes_of(to) * (scatters ? c.collective.group_size : 1) !=
        bytes_of(from) * (gathers ? c.collective.group_size : 1))
      return bad_input("'{}' does not make {} of {}", to_string(c.collective), to.to_string(),
                       from.to_string());
    if (kind == CollectiveKind::all_to_all && !bytes_of(from).divisible_by(c.collective.group_size))
      return bad_input("{} does not divide into {} parts of whole bytes", from.to_string(),
                       c.collective.group_size);
    if (combines(kind) && !can_combine(c.collective.combine, from.dtype()))
      return unsupported("a {} of {}", name(c.collective.combine), name(from.dtype()));
    return {};
  }
  Status check(const Wait& c) const {
    if (c.start < frame_.commands.size()) return {};
    return bad_input("there is no command {}", c.start);
  }
  static Status check(const Send& c) { return hone::check(c.message); }
  static Status check(const Receive& c) { return hone::check(c.message); }
  Status check(const DeviceIndex& c) const {
    if (type(c.to) == Type::scalar(DType::i64)) return {};
    return bad_input("%{} is {}, not a number of a device", buffer(c.to).name,
                     type(c.to).to_string());
  }

  Status check(const Call& c) const { return ports(*c.frame, c.inputs, c.outputs); }

  Status check(const Branch& c) const {
    HONE_TRY(condition(c.condition));
    HONE_TRY(ports(*c.on_true, c.inputs, c.outputs));
    return ports(*c.on_false, c.inputs, c.outputs);
  }

  Status check(const Loop& c) const {
    HONE_TRY(condition(c.condition));
    HONE_TRY(state_count(c.state, c.next));
    HONE_TRY(ports(*c.test, c.state, {c.condition}));
    return ports(*c.body, c.state, next_of(changes_of(c)));
  }

  Status check(const Scan& c) const {
    if (!provably_le(0, c.trips)) return bad_input("it makes {} steps", c.trips.to_string());
    HONE_TRY(state_count(c.state, c.next));
    HONE_TRY(same_types("outputs", c.body->name, types_of(c.state), c.next));
    HONE_TRY(steps(c, Role::input, c.state, c.xs));
    return steps(c, Role::output, next_of(changes_of(c)), c.ys);
  }

  static Status state_count(const std::vector<BufferId>& state, const std::vector<BufferId>& next) {
    if (next.size() == state.size()) return {};
    return bad_input("{} values become {}", state.size(), next.size());
  }

  // The frame's ports are the state, then one step's part of each stack.
  Status steps(const Scan& c, Role role, const std::vector<BufferId>& state,
               const std::vector<BufferId>& stacks) const {
    const std::vector<BufferId> list = buffers_of(*c.body, role);
    std::vector<Type> types;
    for (BufferId b : list) types.push_back(c.body->buffers[b].type);
    if (types.size() != state.size() + stacks.size())
      return bad_input("@{} has {} {}s, not {}", c.body->name, types.size(), name(role),
                       state.size() + stacks.size());
    const size_t first = state.size();
    HONE_TRY(same_types(role == Role::input ? "inputs" : "outputs", c.body->name,
                        std::vector(types.begin(), types.begin() + static_cast<int64_t>(first)),
                        state));
    for (size_t i = 0; i < stacks.size(); ++i)
      if (type(stacks[i]).dtype() != types[first + i].dtype() ||
          bytes_of(type(stacks[i])) != bytes_of(types[first + i]) * c.trips)
        return bad_input("%{} is {}, which is not {} times {}", buffer(stacks[i]).name,
                         type(stacks[i]).to_string(), c.trips.to_string(),
                         types[first + i].to_string());
    return {};
  }

  Status condition(BufferId b) const {
    if (type(b) == Type::scalar(DType::boolean)) return {};
    return bad_input("condition %{} is {}", buffer(b).name, type(b).to_string());
  }

  Status ports(const Frame& inner, const std::vector<BufferId>& inputs,
               const std::vector<BufferId>& outputs) const {
    auto types = [&](Role role) {
      std::vector<Type> list;
      for (BufferId b : buffers_of(inner, role)) list.push_back(inner.buffers[b].type);
      return list;
    };
    HONE_TRY(same_types("inputs", inner.name, types(Role::input), inputs));
    return same_types("outputs", inner.name, types(Role::output), outputs);
  }

  std::vector<Type> types_of(const std::vector<BufferId>& list) const {
    std::vector<Type> types;
    for (BufferId b : list) types.push_back(type(b));
    return types;
  }

  Status same_types(std::string_view what, std::string_view callee, const std::vector<Type>& wanted,
                    const std::vector<BufferId>& given) const {
    if (wanted.size() != given.size())
      return bad_input("@{} has {} {}, {} are given", callee, wanted.size(), what, given.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      if (type(given[i]) != wanted[i])
        return bad_input("@{} has {} {}: %{} is {}", callee, what, wanted[i].to_string(),
                         buffer(given[i]).name, type(given[i]).to_string());
    return {};
  }

  const Program& program_;
  const Frame& frame_;
  std::map<CommandId, Wait> open_;  // what nothing has waited for yet, with the wait that fits
  std::vector<bool> is_written_;
  std::vector<std::vector<BufferId>> parts_;  // by base: views that were written
  std::vector<bool> is_given_away_;           // inputs: an output that may lie in it has changed
};

// `frames` has those that others run before them.
Status check_depth(const std::vector<FrameRef>& frames) {
  std::map<const Frame*, int> depths;
  for (const FrameRef& frame : frames) {
    int& depth = depths[frame.get()];
    for (const Command& command : frame->commands)
      for (const FrameRef& inner : frames_of(command)) depth = std::max(depth, depths[inner.get()]);
    if (++depth > kMaxFrameDepth)
      return over_limit("frames are nested more than {} deep", kMaxFrameDepth);
  }
  return {};
}

Status check(const Program& program) {
  if (program.threads < 1) return bad_input("the program runs on {} threads", program.threads);
  std::set<std::string_view> names;
  for (const Kernel& kernel : program.kernels) {
    HONE_TRY(verify(kernel.tiles));
    if (!names.insert(kernel.tiles.name).second)
      return bad_input("two kernels are called '{}'", kernel.tiles.name);
    if (kernel.hash != tiles_hash(kernel.tiles))
      return bad_input("the hash of kernel '{}' is wrong", kernel.tiles.name);
  }
  names.clear();
  if (program.main == nullptr) return bad_input("there is no main frame");
  const std::vector<FrameRef> frames = all_frames(program.main);
  HONE_TRY(check_depth(frames));
  for (const FrameRef& frame : frames) {
    if (!names.insert(frame->name).second)
      return bad_input("two frames are called '{}'", frame->name);
    Status status = FrameVerifier(program, *frame).run();
    if (!status.ok())
      return std::move(status).error().within(fmt::format("frame '{}'", frame->name));
  }
  // Devices that took different ways would wait for each other for ever.
  HONE_TRY(devices_that_agree(program));
  return {};
}

}  // namespace
}  // namespace program

Status verify(const Program& program) {
  Status status = program::check(program);
  if (status.ok()) return status;
  return std::move(status).error().within(fmt::format("program '{}'", program.name));
}

}  // namespace hone
