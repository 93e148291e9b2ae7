#include "cost/program_price.h"

#include <algorithm>
#include <unordered_map>

#include "program/frame.h"
#include "program/tiles/calling.h"

namespace hone {

namespace program {
namespace {

// The price of a frame.
struct Sum {
  double launches = 0, copies = 0, commands = 0;

  double total() const { return launches + copies + commands; }
  void add(const Sum& other, double times = 1) {
    launches += times * other.launches;
    copies += times * other.copies;
    commands += times * other.commands;
  }
};

class Pricer {
 public:
  Pricer(const Program& program, const Cost& cost, const Bindings& sizes)
      : program_(program), cost_(cost), sizes_(sizes) {}

  Result<ProgramPrice> run() {
    for (const Kernel& kernel : program_.kernels) kernel_.push_back(HONE_TRY(launch(kernel)));
    for (const FrameRef& frame : all_frames(program_.main)) {
      Sum sum;
      for (const Command& command : frame->commands) {
        sum.commands += cost_.command();
        sum.add(std::visit([&](const auto& kind) { return of(*frame, kind); }, command.kind));
      }
      frames_.emplace(frame.get(), sum);
    }
    const Sum& all = frames_.at(program_.main.get());
    return ProgramPrice{all.launches, all.copies, all.commands, std::move(kernel_)};
  }

 private:
  Result<double> launch(const Kernel& kernel) const {
    if (kernel.body == nullptr || !kernel.schedule)
      return unsupported("nobody knows what kernel '{}' was built from", kernel.tiles.name)
          .with_hint("prices are of programs that were lowered from a plan");
    if (sizes_.empty()) return launch(*kernel.body, *kernel.schedule);
    KernelBody body = *kernel.body;
    body.graph = HONE_TRY(specialize(body.graph, sizes_));
    return launch(body, *kernel.schedule);
  }
  double launch(const KernelBody& body, const Schedule& schedule) const {
    return cost_.launch(body, schedule, program_.threads);
  }

  double number(Dim dim) const {
    return static_cast<double>(std::max<int64_t>(dim.bind(sizes_).range().high, 0));
  }
  Sum copy(const Frame& frame, BufferId buffer) const {
    return {.copies = cost_.copy(number(bytes_of(frame.buffers[buffer].type)))};
  }
  const Sum& of(const FrameRef& frame) const { return frames_.at(frame.get()); }

  Sum of(const Frame& /*frame*/, const Launch& c) const { return {.launches = kernel_[c.kernel]}; }
  Sum of(const Frame& frame, const Copy& c) const {
    // Whoever runs the frame decides whether there is one; most who donate do so to have none.
    return frame.buffers[c.to].donor == c.from ? Sum() : copy(frame, c.to);
  }
  Sum of(const Frame& /*frame*/, const Call& c) const { return of(c.frame); }
  Sum of(const Frame& /*frame*/, const Branch& c) const {
    return std::max(of(c.on_true), of(c.on_false),
                    [](const Sum& a, const Sum& b) { return a.total() < b.total(); });
  }
  Sum of(const Frame& frame, const Loop& c) const {
    Sum sum = round(frame, c.body, changes_of(c));
    sum.add(of(c.test));
    Sum all = of(c.test);
    all.add(sum, kAssumedTrips);
    return all;
  }
  Sum of(const Frame& frame, const Scan& c) const {
    Sum all;
    all.add(round(frame, c.body, changes_of(c)), number(c.trips));
    return all;
  }
  Sum round(const Frame& frame, const FrameRef& body, const std::vector<Change>& changes) const {
    Sum sum = of(body);
    for (const auto& [state, next] : changes)
      if (state != next) sum.add(copy(frame, state));
    return sum;
  }

  const Program& program_;
  const Cost& cost_;
  const Bindings& sizes_;
  std::vector<double> kernel_;
  std::unordered_map<const Frame*, Sum> frames_;  // those that others run come first
};

}  // namespace
}  // namespace program

Result<ProgramPrice> price(const Program& program, const Cost& cost, const Bindings& sizes) {
  return program::Pricer(program, cost, sizes).run();
}

}  // namespace hone
