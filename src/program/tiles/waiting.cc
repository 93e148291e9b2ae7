#include "program/tiles/waiting.h"

#include <algorithm>

namespace hone {

namespace {

using namespace tile;

// Calls `use` with each buffer that the statement names.
template <class Use>
void each_buffer(const Statement& statement, const Use& use);
template <class Use>
void each_buffer(const Loop& s, const Use& use) {
  for (const Statement& each : s.body) each_buffer(each, use);
}
template <class S, class Use>
void each_buffer(const S& s, const Use& use) {
  if constexpr (requires { s.buffer; }) use(s.buffer);
  if constexpr (requires { s.to; }) use(s.to);
  if constexpr (requires { s.from; }) use(s.from);
  if constexpr (requires { s.barrier; }) use(s.barrier);
  if constexpr (requires { s.sums; }) use(s.sums), use(s.lhs), use(s.rhs);
}
template <class Use>
void each_buffer(const Statement& statement, const Use& use) {
  std::visit([&](const auto& s) { each_buffer(s, use); }, statement.kind);
}

// Finds what has to be behind the wait: all but constants, and memory that kernels do not share.
class Waiter {
 public:
  explicit Waiter(const TileProgram& program) : program_(program) {
    for (const TileBuffer& buffer : program.buffers)
      may_use_.push_back(buffer.is_constant || buffer.role == BufferRole::block ||
                         buffer.role == BufferRole::own);
  }

  void wait_in(Loop& loop) const {
    Loop* inner = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body[0].kind) : nullptr;
    if (inner != nullptr && inner->exec == loop.exec) return wait_in(*inner);
    const auto place = std::ranges::find_if(
        loop.body, [&](const Statement& statement) { return has_to_wait(statement); });
    const auto at = place - loop.body.begin();
    const auto moved = loop.exec == Exec::blocks ? move_constants(loop.body, at) : 0;
    loop.body.insert(loop.body.begin() + at + moved, {KernelWait()});
  }

 private:
  bool has_to_wait(const Statement& statement) const {
    bool waits = false;
    each_buffer(statement, [&](BufferId buffer) { waits = waits || !may_use_[buffer]; });
    return waits;
  }

  // Threads loops that follow the first one that has to wait come before it, as far as they read
  // constants, and share no memory with those that they pass. So a block fetches the weights of its
  // first steps before it waits. Says how many have moved.
  int64_t move_constants(Block& body, int64_t at) const {
    std::vector<bool> passed(program_.buffers.size());
    int64_t moved = 0;
    for (auto next = at; next < std::ssize(body); ++next) {
      Statement& statement = body[static_cast<size_t>(next)];
      // Copies that come to an earlier group are waited for as early as that one.
      if (std::holds_alternative<CopyGroup>(statement.kind)) continue;
      const Loop* loop = std::get_if<Loop>(&statement.kind);
      if (loop == nullptr || loop->exec != Exec::threads) break;
      bool is_apart = !has_to_wait(statement);
      each_buffer(statement, [&](BufferId buffer) { is_apart = is_apart && !passed[buffer]; });
      if (!is_apart) {
        each_buffer(statement, [&](BufferId buffer) { passed[buffer] = true; });
        continue;
      }
      std::rotate(body.begin() + at + moved, body.begin() + next, body.begin() + next + 1);
      ++moved;
    }
    return moved;
  }

  const TileProgram& program_;
  std::vector<bool> may_use_;  // by buffer
};

}  // namespace

bool has_wait(const Loop& phase) {
  return std::ranges::any_of(phase.body, [](const Statement& statement) {
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    return loop != nullptr ? has_wait(*loop) : std::holds_alternative<KernelWait>(statement.kind);
  });
}

TileProgram waiting_form(TileProgram program) {
  const Waiter waiter(program);
  for (Loop& phase : program.phases) waiter.wait_in(phase);
  return program;
}

}  // namespace hone
