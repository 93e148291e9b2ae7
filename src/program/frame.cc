#include "program/frame.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/planted.h"
#include "program/tiles/calling.h"
#include "runtime/kernel_abi.h"

namespace hone::program {

namespace {

void append(std::vector<BufferId>& list, const std::vector<BufferId>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::vector<BufferId> only(const std::optional<BufferId>& buffer) {
  return buffer ? std::vector{*buffer} : std::vector<BufferId>();
}

void append(std::vector<BufferId>& list, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    list.push_back(change.state);
    if (change.next != change.state) list.push_back(change.next);
  }
}

// Lists of different lengths, and bodies that are missing, which verify() refuses, agree as far as
// they go.
std::vector<Change> changes(const std::vector<BufferId>& state, const std::vector<BufferId>& next,
                            const FrameRef& body) {
  std::vector<std::optional<size_t>> in_place;
  if (body != nullptr) in_place = outputs_in_inputs(*body);
  in_place.resize(std::max(in_place.size(), state.size()));
  std::vector<Change> list;
  for (size_t i = 0; i < std::min(state.size(), next.size()); ++i)
    if (state[i] != next[i] || in_place[i] == list.size()) list.push_back({state[i], next[i]});
  return list;
}

template <class T>
void sort_once(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
}

struct Reads {
  std::vector<BufferId> operator()(const Launch& c) const { return c.inputs; }
  std::vector<BufferId> operator()(const Copy& c) const { return {c.from}; }
  std::vector<BufferId> operator()(const Call& c) const { return c.inputs; }
  std::vector<BufferId> operator()(const Branch& c) const {
    std::vector<BufferId> list = {c.condition};
    append(list, c.inputs);
    return list;
  }
  std::vector<BufferId> operator()(const Loop& c) const { return c.state; }
  std::vector<BufferId> operator()(const Scan& c) const {
    std::vector<BufferId> list = c.state;
    append(list, c.xs);
    return list;
  }
  std::vector<BufferId> operator()(const Start& c) const { return {c.from}; }
  std::vector<BufferId> operator()(const Wait& c) const { return only(c.from); }
  std::vector<BufferId> operator()(const DeviceIndex& /*c*/) const { return {}; }
  std::vector<BufferId> operator()(const Send& c) const { return {c.from}; }
  std::vector<BufferId> operator()(const Receive& /*c*/) const { return {}; }
};

struct Writes {
  std::vector<BufferId> operator()(const Launch& c) const { return c.outputs; }
  std::vector<BufferId> operator()(const Copy& c) const { return {c.to}; }
  std::vector<BufferId> operator()(const Call& c) const { return c.outputs; }
  std::vector<BufferId> operator()(const Branch& c) const { return c.outputs; }
  std::vector<BufferId> operator()(const Loop& c) const {
    std::vector<BufferId> list = {c.condition};
    append(list, changes_of(c));
    return list;
  }
  std::vector<BufferId> operator()(const Scan& c) const {
    std::vector<BufferId> list = c.ys;
    append(list, changes_of(c));
    return list;
  }
  std::vector<BufferId> operator()(const Start& c) const { return {c.to}; }
  std::vector<BufferId> operator()(const Wait& c) const { return only(c.to); }
  std::vector<BufferId> operator()(const DeviceIndex& c) const { return {c.to}; }
  std::vector<BufferId> operator()(const Send& /*c*/) const { return {}; }
  std::vector<BufferId> operator()(const Receive& c) const { return {c.to}; }
};

void collect(const FrameRef& frame, std::unordered_set<const Frame*>& seen,
             std::vector<FrameRef>& out) {
  if (frame == nullptr || !seen.insert(frame.get()).second) return;
  for (const Command& command : frame->commands)
    for (const FrameRef& inner : frames_of(command)) collect(inner, seen, out);
  out.push_back(frame);
}

// The commands that used a stretch of memory last.
struct Use {
  std::optional<CommandId> writer;
  std::vector<CommandId> readers;  // since
};

// A space of addresses, cut where uses begin and end.
class Space {
 public:
  // Calls use(Use&) for each stretch of [begin, end).
  template <class F>
  void each(int64_t begin, int64_t end, const F& use) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    for (auto it = uses_.find(begin); it->first < end; ++it) use(it->second);
  }

 private:
  void cut(int64_t at) {
    auto behind = uses_.upper_bound(at);
    Use before = behind == uses_.begin() ? Use() : std::prev(behind)->second;
    uses_.try_emplace(at, std::move(before));
  }
  std::map<int64_t, Use> uses_;  // by where the stretch begins
};

}  // namespace

std::vector<BufferId> reads_of(const Command& command) { return std::visit(Reads(), command.kind); }
std::vector<BufferId> writes_of(const Command& command) {
  return std::visit(Writes(), command.kind);
}

std::vector<Change> changes_of(const Loop& loop) {
  return changes(loop.state, loop.next, loop.body);
}
std::vector<Change> changes_of(const Scan& scan) {
  return changes(scan.state, scan.next, scan.body);
}
std::vector<Change> changes_of(const Command& command) {
  if (const Loop* loop = std::get_if<Loop>(&command.kind)) return changes_of(*loop);
  if (const Scan* scan = std::get_if<Scan>(&command.kind)) return changes_of(*scan);
  return {};
}

std::vector<BufferId> next_of(std::span<const Change> changes) {
  std::vector<BufferId> list;
  for (const Change& change : changes) list.push_back(change.next);
  return list;
}

BufferId base_of(const Frame& frame, BufferId buffer) {
  return frame.buffers[buffer].role == Role::view ? frame.buffers[buffer].view.of : buffer;
}

BufferId place_of(const Frame& frame, BufferId buffer) {
  const BufferId base = base_of(frame, buffer);
  return frame.buffers[base].donor.value_or(base);
}

std::vector<std::optional<size_t>> outputs_in_inputs(const Frame& frame) {
  std::vector<std::optional<size_t>> by_buffer(frame.buffers.size()), by_input;
  size_t output = 0;
  for (const Buffer& buffer : frame.buffers) {
    if (buffer.role != Role::output) continue;
    if (buffer.donor && *buffer.donor < by_buffer.size()) by_buffer[*buffer.donor] = output;
    ++output;
  }
  for (BufferId b : buffers_of(frame, Role::input)) by_input.push_back(by_buffer[b]);
  return by_input;
}

Accesses accesses_of(const Frame& frame, const Command& command) {
  Accesses accesses = {reads_of(command), writes_of(command)};
  for (std::vector<BufferId>* list : {&accesses.reads, &accesses.writes}) {
    for (BufferId& buffer : *list) buffer = place_of(frame, buffer);
    sort_once(*list);
  }
  return accesses;
}

std::vector<BufferId> buffers_of(const Frame& frame, Role role) {
  std::vector<BufferId> list;
  for (BufferId b = 0; b < frame.buffers.size(); ++b)
    if (frame.buffers[b].role == role) list.push_back(b);
  return list;
}

std::vector<FrameRef> frames_of(const Command& command) {
  if (const Call* c = std::get_if<Call>(&command.kind)) return {c->frame};
  if (const Branch* c = std::get_if<Branch>(&command.kind)) return {c->on_true, c->on_false};
  if (const Loop* c = std::get_if<Loop>(&command.kind)) return {c->test, c->body};
  if (const Scan* c = std::get_if<Scan>(&command.kind)) return {c->body};
  return {};
}

bool begins_exchange(const Command& command) {
  return std::holds_alternative<Start>(command.kind) ||
         std::holds_alternative<Send>(command.kind) ||
         std::holds_alternative<Receive>(command.kind);
}

bool talks(const Command& command) {
  const auto is_own = [](const Command& one) {
    return begins_exchange(one) || std::holds_alternative<Wait>(one.kind);
  };
  if (is_own(command)) return true;
  std::unordered_set<const Frame*> seen;
  std::vector<FrameRef> frames;
  for (const FrameRef& frame : frames_of(command)) collect(frame, seen, frames);
  return std::ranges::any_of(
      frames, [&](const FrameRef& frame) { return std::ranges::any_of(frame->commands, is_own); });
}

std::vector<FrameRef> all_frames(const FrameRef& main) {
  std::unordered_set<const Frame*> seen;
  std::vector<FrameRef> frames;
  collect(main, seen, frames);
  return frames;
}

std::vector<Symbol> symbols_of(const Frame& frame) {
  std::vector<Symbol> symbols;
  auto add = [&](Dim dim) {
    if (dim.is_static()) return;
    for (Symbol symbol : dim.symbols())
      if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
  };
  for (const Buffer& buffer : frame.buffers) {
    std::ranges::for_each(buffer.type.dims(), add);
    add(buffer.view.offset);
  }
  for (const Command& command : frame.commands)
    if (const Scan* scan = std::get_if<Scan>(&command.kind)) add(scan->trips);
  return symbols;
}

std::vector<CommandSpan> lifetimes(const Frame& frame) {
  std::vector<CommandSpan> lives(frame.buffers.size());
  for (CommandId c = 0; c < frame.commands.size(); ++c) {
    const Accesses accesses = accesses_of(frame, frame.commands[c]);
    for (const std::vector<BufferId>* list : {&accesses.reads, &accesses.writes})
      for (BufferId buffer : *list) {
        if (lives[buffer].first > lives[buffer].last) lives[buffer].first = c;
        lives[buffer].last = c;
      }
  }
  return lives;
}

Dim aligned(Dim bytes) { return ceildiv(bytes, kBufferAlignment) * kBufferAlignment; }

FrameMemory memory_of(const Frame& frame) {
  FrameMemory memory;
  std::vector<Dim> ends;
  bool is_decided = false;
  for (const Buffer& buffer : frame.buffers) {
    Dim& offset = memory.offsets.emplace_back(0);
    Dim& end = ends.emplace_back(0);
    if (buffer.role != Role::temporary) continue;
    is_decided = buffer.offset.has_value();
    offset = is_decided ? *buffer.offset : memory.bytes;
    end = offset + aligned(bytes_of(buffer.type));
    memory.bytes = is_decided ? std::max(memory.bytes.value(), end.value()) : end;
  }
  memory.tops.assign(frame.commands.size(), is_decided ? 0 : memory.bytes);
  if (!is_decided) return memory;
  const std::vector<CommandSpan> lives = lifetimes(frame);
  std::vector<std::vector<int64_t>> born(frame.commands.size()), dead(frame.commands.size());
  for (BufferId b : buffers_of(frame, Role::temporary)) {
    if (lives[b].first > lives[b].last) continue;
    born[lives[b].first].push_back(ends[b].value());
    dead[lives[b].last].push_back(ends[b].value());
  }
  std::multiset<int64_t> alive = {0};  // where they end
  for (size_t c = 0; c < frame.commands.size(); ++c) {
    alive.insert(born[c].begin(), born[c].end());
    memory.tops[c] = HONE_PLANT(inner_memory, *alive.rbegin(), 0);
    for (int64_t end : dead[c]) alive.erase(alive.find(end));
  }
  return memory;
}

Dim shared_bytes(const TileProgram& tiles) {
  Dim bytes = 0;
  for (const TileBuffer& buffer : tiles.buffers)
    if (buffer.role == BufferRole::shared) bytes += aligned(bytes_of(buffer.type));
  return bytes;
}

namespace {

bool needs_memory(const Command& command, std::span<const Kernel> kernels) {
  if (const Launch* launch = std::get_if<Launch>(&command.kind))
    return std::ranges::any_of(kernels[launch->kernel].tiles.buffers,
                               [](const TileBuffer& b) { return b.role == BufferRole::shared; });
  return !frames_of(command).empty();
}

}  // namespace

std::vector<std::vector<CommandId>> dependencies(const Frame& frame,
                                                 std::span<const Kernel> kernels) {
  std::vector<std::vector<CommandId>> all;
  const FrameMemory memory = memory_of(frame);
  Space arena;
  Use links;  // each command that talks writes them, so that all devices have one order
  std::vector<Use> uses(frame.buffers.size());  // of buffers that lie nowhere in the arena
  auto each = [&](BufferId b, const auto& use) {
    const Buffer& buffer = frame.buffers[b];
    if (buffer.role != Role::temporary || !buffer.offset) return use(uses[b]);
    arena.each(*buffer.offset, *buffer.offset + bytes_of(buffer.type).value(), use);
  };
  for (CommandId c = 0; c < frame.commands.size(); ++c) {
    const Accesses accesses = accesses_of(frame, frame.commands[c]);
    std::vector<CommandId> after;
    auto write = [&](Use& use) {
      if (use.writer) after.push_back(*use.writer);
      after.insert(after.end(), use.readers.begin(), use.readers.end());
      use = {c, {}};
    };
    for (BufferId buffer : accesses.reads)
      each(buffer, [&](Use& use) {
        if (use.writer) after.push_back(*use.writer);
        use.readers.push_back(c);
      });
    for (BufferId buffer : accesses.writes) each(buffer, write);
    if (talks(frame.commands[c])) write(links);
    // Without offsets nothing else lies in this space.
    if (needs_memory(frame.commands[c], kernels)) {
      const Dim top = memory.tops[c];
      arena.each(top.is_static() ? top.value() : 0, kDimLimit, write);
    }
    std::erase(after, c);
    sort_once(after);
    all.push_back(std::move(after));
  }
  return all;
}

}  // namespace hone::program
