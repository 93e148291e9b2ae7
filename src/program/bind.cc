#include "program/tiles/bind.h"

#include <map>

#include "program/frame.h"
#include "program/program.h"

namespace hone {

namespace program {
namespace {

class Binder {
 public:
  explicit Binder(const Bindings& bindings) : bindings_(bindings) {}

  Result<FrameRef> frame(const FrameRef& source) {
    for (Symbol symbol : symbols_of(*source))
      if (auto found = bindings_.find(symbol.name()); found != bindings_.end())
        HONE_TRY(check_binding(symbol, found->second));
    Frame frame = *source;
    for (Buffer& buffer : frame.buffers) {
      buffer.type = HONE_TRY(buffer.type.bind(bindings_));
      buffer.view.offset = buffer.view.offset.bind(bindings_);
    }
    for (Command& command : frame.commands)
      std::visit([&](auto& kind) { change(kind); }, command.kind);
    return bound_[source.get()] = std::make_shared<const Frame>(std::move(frame));
  }

 private:
  void change(Launch& /*c*/) const {}
  void change(Copy& /*c*/) const {}
  void change(Call& c) const { c.frame = bound_.at(c.frame.get()); }
  void change(Branch& c) const {
    c.on_true = bound_.at(c.on_true.get());
    c.on_false = bound_.at(c.on_false.get());
  }
  void change(Loop& c) const {
    c.test = bound_.at(c.test.get());
    c.body = bound_.at(c.body.get());
  }
  void change(Start& /*c*/) const {}
  void change(Wait& /*c*/) const {}
  void change(DeviceIndex& /*c*/) const {}
  void change(Send& /*c*/) const {}
  void change(Receive& /*c*/) const {}
  void change(Scan& c) const {
    c.body = bound_.at(c.body.get());
    c.trips = c.trips.bind(bindings_);
  }

  const Bindings& bindings_;
  std::map<const Frame*, FrameRef> bound_;
};

}  // namespace
}  // namespace program

Result<Program> specialize(const Program& program, const Bindings& bindings) {
  Program bound = program;
  for (program::Kernel& kernel : bound.kernels) {
    kernel.tiles = HONE_TRY(specialize(kernel.tiles, bindings));
    kernel.hash = tiles_hash(kernel.tiles);
  }
  program::Binder binder(bindings);
  for (const program::FrameRef& frame : program::all_frames(program.main))
    bound.main = HONE_TRY(binder.frame(frame));
  return bound;
}

}  // namespace hone
