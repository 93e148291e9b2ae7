#include "program/tiles/serial.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "target/gpu.h"

namespace hone {

namespace {

using namespace tile;

class Serializer {
 public:
  explicit Serializer(TileProgram program) : program_(std::move(program)) {}

  TileProgram run() && {
    for (const Loop& phase : program_.phases)
      threads_ = std::max(threads_, block_threads(phase, program_));
    if (threads_ == 0) return std::move(program_);
    for (TileBuffer& buffer : program_.buffers) {
      is_own_.push_back(buffer.role == BufferRole::own);
      is_swizzled_.push_back(std::exchange(buffer.is_swizzled, false));
      if (is_own_.back()) buffer.type = of_all_threads(buffer.type);
      if (is_own_.back() || buffer.role == BufferRole::block) buffer.role = BufferRole::scratch;
    }
    for (Loop& phase : program_.phases) {
      phase_threads_ = block_threads(phase, program_);
      if (phase.exec == Exec::blocks) serialize_blocks(phase);
    }
    return std::move(program_);
  }

 private:
  Type of_all_threads(Type type) const {
    Dims dims = {threads_};
    for (Dim dim : type.dims()) dims.push_back(dim);
    return Type::get(type.dtype(), dims);
  }

  void serialize_blocks(Loop& loop) {
    loop.exec = Exec::threads;
    Loop* inner = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body[0].kind) : nullptr;
    if (inner != nullptr && inner->exec == Exec::blocks)
      serialize_blocks(*inner);
    else
      loop.body = serialized(std::move(loop.body));
  }

  // The statements between the threads loops.
  Block serialized(Block body) {
    Block result;
    for (Statement& statement : body) {
      if (orders_alone(statement)) continue;
      if (const auto* combine = std::get_if<WarpCombine>(&statement.kind)) {
        add_combination(*combine, result);
        continue;
      }
      if (const auto* vote = std::get_if<BlockVote>(&statement.kind)) {
        add_vote(*vote, result);
        continue;
      }
      if (const auto* product = std::get_if<WarpProduct>(&statement.kind)) {
        add_product(*product, result);
        continue;
      }
      if (const auto* product = std::get_if<GroupProduct>(&statement.kind)) {
        add_product(*product, result);
        continue;
      }
      auto& loop = std::get<Loop>(statement.kind);
      if (loop.exec == Exec::threads) {
        loop.exec = Exec::loop;
        do_at_once(loop.index, loop.body);
        own_by(loop.index, loop.body);
      } else {
        loop.body = serialized(std::move(loop.body));
      }
      result.push_back(std::move(statement));
    }
    return result;
  }

  // True if the statement says no more than when something is done: here it is done at once.
  static bool orders_alone(const Statement& statement) {
    return std::visit(
        []<class S>(const S&) {
          return std::is_same_v<S, Barrier> || std::is_same_v<S, CopyGroup> ||
                 std::is_same_v<S, CopyWait> || std::is_same_v<S, MbarrierInit> ||
                 std::is_same_v<S, MbarrierExpect> || std::is_same_v<S, MbarrierWait> ||
                 std::is_same_v<S, ProxyFence> || std::is_same_v<S, KernelWait>;
        },
        statement.kind);
  }

  // Memory of a thread is a row of the memory of all, and swizzled numbers stay where they are.
  void own_by(Index thread, Block& body) const {
    const auto own = [&](BufferId buffer, std::vector<IndexExpr>& index) {
      if (is_swizzled_[buffer])
        index = swizzled_index(program_.buffers[buffer].type.dtype(), std::move(index));
      if (is_own_[buffer]) index.insert(index.begin(), IndexExpr::iter(thread));
    };
    for (Statement& statement : body) {
      if (auto* load = std::get_if<Load>(&statement.kind)) own(load->buffer, load->index);
      if (auto* store = std::get_if<Store>(&statement.kind)) own(store->buffer, store->index);
      if (auto* loop = std::get_if<Loop>(&statement.kind)) own_by(thread, loop->body);
    }
  }

  // A copy in the background is done when it is started, and threads load what others name.
  void do_at_once(Index thread, Block& body) {
    Block result;
    for (Statement& statement : body) {
      if (auto* loop = std::get_if<Loop>(&statement.kind)) do_at_once(thread, loop->body);
      if (orders_alone(statement)) continue;
      if (const auto* box = std::get_if<TensorCopy>(&statement.kind))
        add_box(*box, result);
      else if (const auto* copy = std::get_if<AsyncCopy>(&statement.kind))
        add_copy(*copy, result);
      else if (const auto* load = std::get_if<MatrixLoad>(&statement.kind))
        add_matrices(thread, *load, result);
      else
        result.push_back(std::move(statement));
    }
    body = std::move(result);
  }

  void add_copy(const AsyncCopy& s, Block& out) {
    const DType dtype = program_.buffers[s.to].type.dtype();
    const Scalar zero = scalar(dtype);
    out.push_back({is_real(dtype) ? Number{zero, 0.0} : Number{zero, int64_t{0}}});
    std::vector<IndexExpr> from = s.from_index, to = s.to_index;
    std::vector<Guard> guards = s.guards;
    for (int64_t i = 0; i < s.count; ++i) {
      if (i > 0) {
        from.back() = from.back() + IndexExpr(1);
        to.back() = to.back() + IndexExpr(1);
        // It always holds: a piece lies inside where its first element does.
        const Type type = program_.buffers[s.from].type;
        guards = s.guards;
        guards.push_back({from.back(), 0, type.dim(type.rank() - 1)});
      }
      const Scalar number = scalar(dtype);
      const std::optional<Scalar> otherwise =
          guards.empty() ? std::nullopt : std::optional<Scalar>(zero);
      out.push_back({Load{number, s.from, from, guards, otherwise}});
      out.push_back({Store{s.to, to, number}});
    }
  }

  // Element by element, of those that lie inside.
  void add_box(const TensorCopy& s, Block& out) {
    const Type from = program_.buffers[s.from].type;
    const Index row = add_index("row", s.rows),
                column = add_index("column", swizzled_row(from.dtype()));
    std::vector<IndexExpr> from_index = s.from_index, to_index = s.to_index;
    IndexExpr& first = from_index[static_cast<size_t>(s.axis)];
    first = first + IndexExpr::iter(row);
    from_index.back() = from_index.back() + IndexExpr::iter(column);
    to_index.back() = to_index.back() + IndexExpr::iter(row);
    to_index.push_back(IndexExpr::iter(column));
    std::vector<Guard> guards;
    for (int dim = 0; dim < from.rank(); ++dim)
      guards.push_back({from_index[static_cast<size_t>(dim)], 0, from.dim(dim)});
    const Scalar zero = scalar(from.dtype()), number = scalar(from.dtype());
    Block body;
    body.push_back({Number{zero, 0.0}});
    body.push_back({Load{number, s.from, from_index, guards, zero}});
    body.push_back({Store{s.to, to_index, number}});
    out.push_back(nested({column, row}, std::move(body)));
  }

  // Each number is a word of the row that another thread of the warp names.
  void add_matrices(Index thread, const MatrixLoad& s, Block& out) {
    const IndexExpr t = IndexExpr::iter(thread), lane = mod(t, kWarpLanes);
    const int64_t numbers = numbers_of(program_.buffers[s.to]);
    const int64_t elements = 32 / bits(program_.buffers[s.from].type.dtype());  // of a word
    for (int64_t m = 0; m < s.count; ++m) {
      std::vector<IndexExpr> named = identity_index(static_cast<int>(program_.indices.size()));
      named[static_cast<size_t>(thread)] =
          floordiv(t, kWarpLanes) * kWarpLanes + IndexExpr(kMatrixRows * m) + floordiv(lane, 4);
      std::vector<IndexExpr> from, to = s.to_index;
      for (const IndexExpr& each : s.from_index) from.push_back(each.substitute(named));
      from.back() = from.back() + mod(t, 4) * elements;
      if (m >= numbers) to.back() = to.back() + IndexExpr(m / numbers);
      to.push_back(m % numbers);
      const Scalar word = scalar(DType::u32);
      if (elements == 1) {
        const Scalar number = scalar(DType::f32);
        out.push_back({Load{number, s.from, from}});
        out.push_back({Compute{word, Op::get(Opcode::bitcast, {{"dtype", DType::u32}}), {number}}});
      } else {
        out.push_back({Load{.result = word, .buffer = s.from, .index = from, .is_word = true}});
      }
      out.push_back({Store{s.to, to, word}});
    }
  }

  // Sum by sum, words in turn: warp, row, column, word are loops.
  void add_product(const WarpProduct& s, Block& out) {
    const Index warp = add_index("warp", threads_ / kWarpLanes),
                row = add_index("row", kProductRows), column = add_index("column", kProductColumns),
                word = add_index("word", kProductWords);
    const IndexExpr w = IndexExpr::iter(warp), i = IndexExpr::iter(row),
                    j = IndexExpr::iter(column), k = IndexExpr::iter(word);
    const auto place = [&](const std::vector<IndexExpr>& index, const IndexExpr& lane,
                           const IndexExpr& number) {
      std::vector<IndexExpr> whole = of(w * kWarpLanes + lane, index);
      whole.push_back(number);
      return whole;
    };
    const std::vector<IndexExpr> sum_at =
        place(s.sums_index, mod(i, 8) * 4 + floordiv(j, 2), floordiv(i, 8) * 2 + mod(j, 2));
    Block words;
    const Scalar l = scalar(DType::u32), r = scalar(DType::u32), before = scalar(DType::f32);
    words.push_back({Load{before, s.sums, sum_at}});
    words.push_back(
        {Load{l, s.lhs,
              place(s.lhs_index, mod(i, 8) * 4 + mod(k, 4), floordiv(i, 8) + floordiv(k, 4) * 2)}});
    words.push_back({Load{r, s.rhs, place(s.rhs_index, j * 4 + mod(k, 4), floordiv(k, 4))}});
    Scalar sum = before;
    for (int part = 0; part < (s.numbers == DType::f32 ? 1 : 2); ++part) {
      const Scalar a = factor(s.numbers, l, part, words), b = factor(s.numbers, r, part, words);
      const Scalar next = scalar(DType::f32);
      words.push_back({Fma{next, a, b, sum}});
      sum = next;
    }
    words.push_back({Store{s.sums, sum_at, sum}});
    out.push_back(nested({word, column, row, warp}, std::move(words)));
  }

  // Loops, from inside out.
  static Statement nested(std::initializer_list<Index> indices, Block body) {
    for (Index index : indices) {
      Loop loop = {.index = index, .exec = Exec::loop, .body = std::move(body)};
      body.clear();
      body.push_back({std::move(loop)});
    }
    return std::move(body[0]);
  }

  // Sum by sum, numbers in turn: group, row, column, number are loops.
  void add_product(const GroupProduct& s, Block& out) {
    const Index group = add_index("group", phase_threads_ / kGroupThreads),
                row = add_index("row", kGroupRows), column = add_index("column", s.columns),
                number = add_index("number", swizzled_row(s.numbers));
    const IndexExpr g = IndexExpr::iter(group), i = IndexExpr::iter(row),
                    j = IndexExpr::iter(column), k = IndexExpr::iter(number);
    std::vector<IndexExpr> sum_at =
        of(g * kGroupThreads + floordiv(i, 16) * 32 + mod(i, 8) * 4 + floordiv(mod(j, 8), 2),
           s.sums_index);
    sum_at.push_back(floordiv(j, 8));
    sum_at.push_back(mod(floordiv(i, 8), 2) * 2 + mod(j, 2));
    Block body;
    const auto factor_at = [&](BufferId buffer, std::vector<IndexExpr> index, const IndexExpr& line,
                               bool is_across) {
      const int64_t lines = swizzled_row(s.numbers);
      index.back() = index.back() + (is_across ? floordiv(line, lines) * lines + k : line);
      index.push_back(is_across ? mod(line, lines) : k);
      const Scalar half = scalar(s.numbers), real = scalar(DType::f32);
      body.push_back({Load{half, buffer, swizzled_index(s.numbers, std::move(index))}});
      if (s.numbers == DType::f32) {
        const Scalar word = scalar(DType::u32);
        body.push_back({Compute{word, Op::get(Opcode::bitcast, {{"dtype", DType::u32}}), {half}}});
        return factor(s.numbers, word, 0, body);
      }
      body.push_back({Compute{real, Op::get(Opcode::cast, {{"dtype", DType::f32}}), {half}}});
      return real;
    };
    const Scalar before = scalar(DType::f32), next = scalar(DType::f32);
    const Scalar l = factor_at(s.lhs, s.lhs_index, g * kGroupRows + i, s.lhs_across),
                 r = factor_at(s.rhs, s.rhs_index, j, s.rhs_across);
    body.push_back({Load{before, s.sums, sum_at}});
    body.push_back({Fma{next, l, r, before}});
    body.push_back({Store{s.sums, sum_at, next}});
    out.push_back(nested({number, column, row, group}, std::move(body)));
  }

  // One of the numbers of a word, as f32.
  Scalar factor(DType numbers, Scalar word, int part, Block& out) {
    const auto add = [&](Op op, DType dtype, std::vector<Scalar> operands) {
      const Scalar result = scalar(dtype);
      out.push_back({Compute{result, std::move(op), std::move(operands)}});
      return result;
    };
    const auto number = [&](int64_t value) {
      const Scalar result = scalar(DType::u32);
      out.push_back({Number{result, value}});
      return result;
    };
    const auto to = [](Opcode opcode, DType dtype) { return Op::get(opcode, {{"dtype", dtype}}); };
    if (numbers == DType::f32) {
      word = add(Op::get(Opcode::and_), DType::u32, {word, number(int64_t{kFactorBits})});
      return add(to(Opcode::bitcast, DType::f32), DType::f32, {word});
    }
    const Scalar sixteen = number(16);
    if (numbers == DType::bf16) {
      word = part == 0
                 ? add(Op::get(Opcode::shift_left), DType::u32, {word, sixteen})
                 : add(Op::get(Opcode::and_), DType::u32, {word, number(int64_t{0xffff0000})});
      return add(to(Opcode::bitcast, DType::f32), DType::f32, {word});
    }
    if (part == 1) word = add(Op::get(Opcode::shift_right), DType::u32, {word, sixteen});
    const Scalar half = add(to(Opcode::cast, DType::u16), DType::u16, {word});
    const Scalar real = add(to(Opcode::bitcast, DType::f16), DType::f16, {half});
    return add(to(Opcode::cast, DType::f32), DType::f32, {real});
  }

  // In five steps, each by way of memory, so that no thread sees what the step itself changes.
  void add_combination(const WarpCombine& s, Block& out) {
    const DType dtype = program_.buffers[s.buffer].type.dtype();
    const BufferId between = memory_between(dtype);
    for (int64_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
      add_turns(out, [&](const IndexExpr& t) -> Block {
        const IndexExpr other =
            floordiv(t, 2 * distance) * (2 * distance) + mod(t + IndexExpr(distance), 2 * distance);
        const Scalar a = scalar(dtype), b = scalar(dtype), both = scalar(dtype);
        return {{Load{a, s.buffer, of(t, s.index)}},
                {Load{b, s.buffer, of(other, s.index)}},
                {Compute{both, Op::get(s.combine), {a, b}}},
                {Store{between, {t}, both}}};
      });
      add_turns(out, [&](const IndexExpr& t) -> Block {
        const Scalar moved = scalar(dtype);
        return {{Load{moved, between, {t}}}, {Store{s.buffer, of(t, s.index), moved}}};
      });
    }
  }

  void add_vote(const BlockVote& s, Block& out) {
    const Index thread = add_index("turn", phase_threads_);
    const auto word = [&] { return scalar(DType::u32); };
    const Scalar none = word(), so_far = word(), own = word(), next = word(), any = word();
    out.push_back({Number{none, int64_t{0}}});
    Block body;
    body.push_back({Load{own, s.buffer, of(IndexExpr::iter(thread), s.at)}});
    body.push_back({Compute{next, Op::get(Opcode::or_), {so_far, own}}});
    out.push_back({Loop{.index = thread,
                        .exec = Exec::loop,
                        .carried = {{none, so_far, next, any, Opcode::or_}},
                        .body = std::move(body)}});
    out.push_back({Choose{s.index, any}});
  }

  Index add_index(std::string_view name, int64_t extent) {
    program_.indices.push_back({.name = free_name(name), .low = 0, .high = extent});
    return static_cast<Index>(program_.indices.size() - 1);
  }

  template <class Make>
  void add_turns(Block& out, const Make& make) {
    const Index index = add_index("turn", threads_);
    out.push_back({Loop{.index = index, .exec = Exec::loop, .body = make(IndexExpr::iter(index))}});
  }

  static std::vector<IndexExpr> of(const IndexExpr& thread, const std::vector<IndexExpr>& index) {
    std::vector<IndexExpr> whole = {thread};
    whole.insert(whole.end(), index.begin(), index.end());
    return whole;
  }

  BufferId memory_between(DType dtype) {
    const auto found = between_.find(dtype);
    if (found != between_.end()) return found->second;
    std::string free = fmt::format("between_{}", name(dtype));
    while (std::ranges::find(program_.buffers, free, &TileBuffer::name) != program_.buffers.end())
      free += "_";
    program_.buffers.push_back({free, Type::get(dtype, {threads_}), BufferRole::scratch});
    is_own_.push_back(false);
    is_swizzled_.push_back(false);
    const auto id = static_cast<BufferId>(program_.buffers.size() - 1);
    between_[dtype] = id;
    return id;
  }

  std::string free_name(std::string_view base) {
    std::string free(base);
    const auto is_taken = [&] {
      return std::ranges::find(program_.indices, free, &TileIndex::name) != program_.indices.end();
    };
    while (is_taken()) free = fmt::format("{}_{}", base, ++names_);
    return free;
  }

  Scalar scalar(DType dtype) {
    program_.scalars.push_back(dtype);
    return static_cast<Scalar>(program_.scalars.size() - 1);
  }

  TileProgram program_;
  int64_t threads_ = 0;        // of a block, at most
  int64_t phase_threads_ = 0;  // of a block of the phase at hand
  std::vector<bool> is_own_, is_swizzled_;
  std::map<DType, BufferId> between_;
  int64_t names_ = 0;
};

}  // namespace

TileProgram serial_form(const TileProgram& program) { return Serializer(program).run(); }

}  // namespace hone
