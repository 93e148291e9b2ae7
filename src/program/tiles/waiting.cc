#include "program/tiles/waiting.h"

#include <algorithm>

namespace hone {

namespace {

using namespace tile;

// Finds what has to be behind the wait: all but constants, and memory that kernels do not share.
class Waiter {
 public:
  explicit Waiter(const TileProgram& program) {
    for (const TileBuffer& buffer : program.buffers)
      may_use_.push_back(buffer.is_constant || buffer.role == BufferRole::block ||
                         buffer.role == BufferRole::own);
  }

  void wait_in(Loop& loop) const {
    Loop* inner = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body[0].kind) : nullptr;
    if (inner != nullptr && inner->exec == loop.exec) return wait_in(*inner);
    const auto at = std::ranges::find_if(
        loop.body, [&](const Statement& statement) { return has_to_wait(statement); });
    loop.body.insert(at, {KernelWait()});
  }

 private:
  bool has_to_wait(const Statement& statement) const {
    return std::visit([&](const auto& s) { return !may_come_before(s); }, statement.kind);
  }
  bool may_come_before(const Loop& s) const {
    return std::ranges::none_of(s.body, [&](const Statement& each) { return has_to_wait(each); });
  }
  bool may_come_before(const AsyncCopy& s) const { return may_use_[s.from]; }
  bool may_come_before(const TensorCopy& s) const { return may_use_[s.from]; }
  template <class S>
  bool may_come_before(const S& s) const {
    if constexpr (requires { s.buffer; })
      return may_use_[s.buffer];
    else
      return !std::is_same_v<S, Product>;
  }

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
