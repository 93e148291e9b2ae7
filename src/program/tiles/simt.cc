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
constexpr int64_t kNeighbours = 4;  // 16 bytes of f32, which are one access

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
    if (registers.empty() && may_take_neighbours(nest))
      registers.push_back(take_neighbours(nest.threads.back(), nest.body));
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

  // ---- Neighbours ------------------------------------------------------------------------------

  // True if each thread may have four neighbours, and what it stores lies side by side: so it
  // stores them at once. Enough threads are left.
  bool may_take_neighbours(const Nest& nest) const {
    const Loop& loop = nest.threads.back();
    const Dim extent = program_.indices[static_cast<size_t>(loop.index)].high;
    Dim trips = 1;
    for (const Loop& each : nest.threads)
      trips = trips * program_.indices[static_cast<size_t>(each.index)].high;
    if (!trips.is_static() || !extent.divisible_by(kNeighbours) ||
        trips.value() < kNeighbours * kManyTrips)
      return false;
    return std::ranges::all_of(nest.body, [&](const Statement& statement) {
      if (const Store* store = std::get_if<Store>(&statement.kind))
        return store->guards.empty() && goes_along(store->index, loop.index) &&
               program_.buffers[store->buffer].role != BufferRole::scratch &&
               bits(program_.buffers[store->buffer].type.dtype()) >= 8;
      if (const Load* load = std::get_if<Load>(&statement.kind))
        return load->guards.empty() && !load->is_word && !is_donor(load->buffer) &&
               program_.buffers[load->buffer].role != BufferRole::scratch &&
               !stores_to(nest.body, load->buffer);
      return std::holds_alternative<Number>(statement.kind) ||
             std::holds_alternative<Position>(statement.kind) ||
             std::holds_alternative<Compute>(statement.kind) ||
             std::holds_alternative<Fma>(statement.kind);
    });
  }

  static bool stores_to(const Block& body, BufferId buffer) {
    return std::ranges::any_of(body, [&](const Statement& statement) {
      const Store* store = std::get_if<Store>(&statement.kind);
      return store != nullptr && store->buffer == buffer;
    });
  }

  static bool goes_along(const std::vector<IndexExpr>& index, Index loop) {
    return !index.empty() && index.back().coefficient(loop) == 1 &&
           std::none_of(index.begin(), index.end() - 1,
                        [&](const IndexExpr& each) { return each.mentions(loop); });
  }

  // A quarter of the trips, and a loop over the neighbours that each has.
  Loop take_neighbours(Loop& loop, Block& body) {
    const auto position = static_cast<size_t>(loop.index);
    std::string free = program_.indices[position].name + "_next";
    while (std::ranges::find(program_.indices, free, &TileIndex::name) != program_.indices.end())
      free += "_";
    const auto next = static_cast<Index>(program_.indices.size());
    program_.indices.push_back({.name = std::move(free), .low = 0, .high = kNeighbours});
    std::vector<IndexExpr> iters = identity_index(next + 1);
    iters[position] = IndexExpr::iter(loop.index) * kNeighbours + IndexExpr::iter(next);
    program_.indices[position].high = ceildiv(program_.indices[position].high, kNeighbours);
    const auto move = [&](IndexExpr& expr) { expr = expr.substitute(iters); };
    for (Statement& statement : body) {
      if (auto* store = std::get_if<Store>(&statement.kind))
        std::ranges::for_each(store->index, move);
      if (auto* load = std::get_if<Load>(&statement.kind)) std::ranges::for_each(load->index, move);
      if (auto* number = std::get_if<Position>(&statement.kind)) move(number->value);
    }
    return {.index = next, .exec = Exec::unroll, .body = {}};
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
