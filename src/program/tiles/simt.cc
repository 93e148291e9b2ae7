#include "program/tiles/simt.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "program/tiles/calling.h"

namespace hone {

namespace {

using namespace tile;

// With as many trips a GPU is busy: 132 processors with 2,048 threads each hold four times as many.
constexpr int64_t kManyTrips = int64_t{1} << 16;

bool is_side_by_side(const Loop& loop) {
  return loop.exec == Exec::unroll || loop.exec == Exec::lanes;
}

// The buffers that a phase reads and writes.
struct Accesses {
  std::vector<bool> loaded, stored;  // by buffer
  explicit Accesses(const TileProgram& program)
      : loaded(program.buffers.size()), stored(program.buffers.size()) {}

  void add(const Block& body) {
    for (const Statement& statement : body)
      std::visit([&](const auto& s) { add(s); }, statement.kind);
  }
  void add(const Load& s) { loaded[s.buffer] = true; }
  void add(const Store& s) { stored[s.buffer] = true; }
  void add(const Product& s) {
    loaded[s.lhs] = loaded[s.rhs] = loaded[s.sums] = stored[s.sums] = true;
  }
  void add(const Loop& s) { add(s.body); }
  template <class S>
  void add(const S&) {}
};

class Former {
 public:
  explicit Former(TileProgram program) : program_(std::move(program)) {}

  TileProgram run() && {
    for (Loop& phase : program_.phases) form(phase);
    return std::move(program_);
  }

 private:
  // The threads loops, and below them the loops that may become such: each alone in the one before,
  // but for statements that may as well stand in it.
  struct Nest {
    std::vector<Loop> threads, others;
    Block body;
  };

  void form(Loop& phase) {
    if (phase.exec == Exec::blocks) {
      for (Statement& statement : phase.body) lanes_take_turns(statement);
      return;
    }
    Accesses accesses(program_);
    accesses.add(phase.body);
    Nest nest = nest_of(std::move(phase), accesses);
    const bool is_many = has_many_trips(nest);
    std::vector<Loop> registers;
    for (Loop& loop : nest.others)
      if (loop.exec == Exec::unroll)
        (is_many ? registers : nest.threads).push_back(std::move(loop));
    for (Loop& loop : nest.others)
      if (loop.exec == Exec::lanes) nest.threads.push_back(std::move(loop));
    for (Statement& statement : nest.body) take_turns(statement);
    if (nest.threads.empty()) nest.threads.push_back(single_trip());
    for (Loop& loop : nest.threads) loop.exec = Exec::threads;
    std::ranges::move(registers, std::back_inserter(nest.threads));
    for (size_t i = nest.threads.size(); i-- > 0;) {
      Loop& loop = nest.threads[i];
      loop.body = std::move(nest.body);
      nest.body.clear();
      if (i > 0)
        nest.body.push_back({std::move(loop)});
      else
        phase = std::move(loop);
    }
  }

  Nest nest_of(Loop phase, const Accesses& accesses) const {
    Nest nest;
    const bool may_divide = !shares_memory(accesses);
    nest.body.push_back({std::move(phase)});
    while (!nest.body.empty()) {
      const Loop* next = std::get_if<Loop>(&nest.body.back().kind);
      const bool is_threads = next != nullptr && next->exec == Exec::threads;
      const bool divides = next != nullptr && is_side_by_side(*next) && may_divide &&
                           next->carried.empty() && all_may_sink(nest.body, accesses);
      if (!is_threads && !divides) break;
      Loop loop = std::move(std::get<Loop>(nest.body.back().kind));
      nest.body.pop_back();
      std::ranges::move(loop.body, std::back_inserter(nest.body));
      loop.body.clear();
      (is_threads ? nest.threads : nest.others).push_back(std::move(loop));
    }
    return nest;
  }

  // True if two trips of unroll or lanes loops may meet in memory that the threads of a trip have
  // for themselves, or in a byte.
  bool shares_memory(const Accesses& accesses) const {
    for (BufferId id = 0; id < program_.buffers.size(); ++id) {
      const TileBuffer& buffer = program_.buffers[id];
      const bool is_scratch = buffer.role == BufferRole::scratch;
      if (is_scratch && (accesses.loaded[id] || accesses.stored[id])) return true;
      if (accesses.stored[id] && bits(buffer.type.dtype()) < 8) return true;
    }
    return false;
  }

  // True if all but the last statement may be done anew in each trip of the last one.
  bool all_may_sink(const Block& body, const Accesses& accesses) const {
    return std::all_of(body.begin(), body.end() - 1, [&](const Statement& statement) {
      if (std::holds_alternative<Store>(statement.kind) ||
          std::holds_alternative<Product>(statement.kind) ||
          std::holds_alternative<Loop>(statement.kind))
        return false;
      const Load* load = std::get_if<Load>(&statement.kind);
      return load == nullptr || (!accesses.stored[load->buffer] && !is_donor(load->buffer));
    });
  }

  bool is_donor(BufferId id) const {
    return std::ranges::any_of(program_.buffers,
                               [&](const TileBuffer& buffer) { return buffer.donor == id; });
  }

  // True if the threads are many although only lanes join them. Symbolic sizes count as large ones.
  bool has_many_trips(const Nest& nest) const {
    Dim trips = 1;
    const auto count = [&](const std::vector<Loop>& loops) {
      for (const Loop& loop : loops)
        if (loop.exec != Exec::unroll)
          trips = trips * program_.indices[static_cast<size_t>(loop.index)].high;
    };
    count(nest.threads);
    count(nest.others);
    return !trips.is_static() || trips.value() >= kManyTrips;
  }

  // In blocks, registers are what the program says they are.
  static void lanes_take_turns(Statement& statement) {
    Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr) return;
    if (loop->exec == Exec::lanes) loop->exec = Exec::loop;
    for (Statement& inner : loop->body) lanes_take_turns(inner);
  }

  void take_turns(Statement& statement) const {
    Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr) return;
    if (loop->exec == Exec::lanes || !loop->carried.empty()) loop->exec = Exec::loop;
    for (Statement& inner : loop->body) take_turns(inner);
  }

  Loop single_trip() {
    std::string free = "once";
    for (int n = 2;
         std::ranges::find(program_.indices, free, &TileIndex::name) != program_.indices.end(); ++n)
      free = fmt::format("once_{}", n);
    program_.indices.push_back({.name = std::move(free), .low = 0, .high = 1});
    return {.index = static_cast<Index>(program_.indices.size() - 1),
            .exec = Exec::threads,
            .body = {}};
  }

  TileProgram program_;
};

}  // namespace

TileProgram simt_form(const TileProgram& program) { return Former(program).run(); }

}  // namespace hone
