#include <algorithm>

#include "program/frame.h"
#include "program/lower/lowering.h"
#include "program/tiles/calling.h"

// Where collectives and messages are waited for.

namespace hone::program {

namespace {

// The memory of a buffer: places of temporaries, or a whole buffer that lies elsewhere.
struct Stretch {
  BufferId place = 0;
  bool is_placed = false;
  int64_t begin = 0;  // if it is placed
  int64_t end = 0;

  bool overlaps(const Stretch& other) const {
    if (place == other.place) return true;
    return is_placed && other.is_placed && begin < other.end && other.begin < end;
  }
};

class Waits {
 public:
  explicit Waits(const Frame& frame) : frame_(frame) {}

  std::vector<Command> add() {
    for (const Command& command : frame_.commands) {
      const Accesses accesses = accesses_of(frame_, command);
      wait_if([&](const Open& open) {
        return touches(accesses.reads, open.to) || touches(accesses.writes, open.to) ||
               touches(accesses.writes, open.from);
      });
      const auto number = static_cast<CommandId>(made_.size());
      if (const Start* start = std::get_if<Start>(&command.kind))
        open_.push_back({number, command.name, start->from, start->to});
      else if (const Send* send = std::get_if<Send>(&command.kind))
        open_.push_back({number, command.name, send->from, std::nullopt});
      else if (const Receive* receive = std::get_if<Receive>(&command.kind))
        open_.push_back({number, command.name, std::nullopt, receive->to});
      made_.push_back(command);
    }
    wait_if([](const Open&) { return true; });
    return std::move(made_);
  }

 private:
  struct Open {
    CommandId start;
    std::string name;
    std::optional<BufferId> from, to;
  };

  Stretch stretch(BufferId b) const {
    const BufferId place = place_of(frame_, b);
    const Buffer& buffer = frame_.buffers[place];
    if (buffer.role != Role::temporary || !buffer.offset) return {place};
    return {place, true, *buffer.offset, *buffer.offset + aligned(bytes_of(buffer.type)).value()};
  }
  bool touches(const std::vector<BufferId>& buffers, const std::optional<BufferId>& open) const {
    if (!open) return false;
    const Stretch memory = stretch(*open);
    return std::ranges::any_of(buffers, [&](BufferId b) { return stretch(b).overlaps(memory); });
  }
  template <class Is>
  void wait_if(const Is& is) {
    std::erase_if(open_, [&](const Open& open) {
      if (!is(open)) return false;
      made_.push_back({open.name, Wait{open.start, open.from, open.to}, {}});
      return true;
    });
  }

  const Frame& frame_;
  std::vector<Open> open_;  // in the order of their starts
  std::vector<Command> made_;
};

}  // namespace

std::vector<Command> with_waits(const Frame& frame) {
  return std::ranges::any_of(frame.commands, begins_exchange) ? Waits(frame).add() : frame.commands;
}

}  // namespace hone::program
