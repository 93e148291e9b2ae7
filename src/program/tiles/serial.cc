#include "program/tiles/serial.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/tiles/calling.h"
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
      if (is_own_.back()) buffer.type = of_all_threads(buffer.type);
      if (is_own_.back() || buffer.role == BufferRole::block) buffer.role = BufferRole::scratch;
    }
    for (Loop& phase : program_.phases)
      if (phase.exec == Exec::blocks) serialize_blocks(phase);
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
      if (std::holds_alternative<Barrier>(statement.kind)) continue;
      if (const auto* combine = std::get_if<WarpCombine>(&statement.kind)) {
        add_combination(*combine, result);
        continue;
      }
      auto& loop = std::get<Loop>(statement.kind);
      if (loop.exec == Exec::threads) {
        loop.exec = Exec::loop;
        own_by(loop.index, loop.body);
      } else {
        loop.body = serialized(std::move(loop.body));
      }
      result.push_back(std::move(statement));
    }
    return result;
  }

  // Memory of a thread is a row of the memory of all.
  void own_by(Index thread, Block& body) const {
    const auto own = [&](BufferId buffer, std::vector<IndexExpr>& index) {
      if (is_own_[buffer]) index.insert(index.begin(), IndexExpr::iter(thread));
    };
    for (Statement& statement : body) {
      if (auto* load = std::get_if<Load>(&statement.kind)) own(load->buffer, load->index);
      if (auto* store = std::get_if<Store>(&statement.kind)) own(store->buffer, store->index);
      if (auto* loop = std::get_if<Loop>(&statement.kind)) own_by(thread, loop->body);
    }
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

  template <class Make>
  void add_turns(Block& out, const Make& make) {
    program_.indices.push_back({.name = free_name("turn"), .low = 0, .high = threads_});
    const auto index = static_cast<Index>(program_.indices.size() - 1);
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
  int64_t threads_ = 0;  // of a block, at most
  std::vector<bool> is_own_;
  std::map<DType, BufferId> between_;
  int64_t names_ = 0;
};

}  // namespace

TileProgram serial_form(const TileProgram& program) { return Serializer(program).run(); }

}  // namespace hone
