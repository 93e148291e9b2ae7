#include <algorithm>
#include <map>
#include <utility>

#include "base/planted.h"
#include "transport/moves.h"

// From moves to programs. Each device keeps a list of the transfers that it has begun. Before a
// step touches memory that one of them still uses, it waits for that one, and adds what came.
// A round begins all its receives, then its sends, and both wait only for transfers of earlier
// rounds: the programs cannot deadlock.

namespace hone {
namespace {

// The caller may give the same memory as input and as output.
bool may_work_in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}

class Weaver {
 public:
  Weaver(DeviceProgram program, int64_t named_scratch, bool in_place)
      : program_(std::move(program)), named_(named_scratch), in_place_(in_place) {
    program_.scratch = named_scratch;
  }

  void begin_round() { round_ = program_.tickets; }

  void send(const Move& move, int32_t peer, uint32_t tag) {
    if (HONE_PLANT(send_early, true, false)) settle_writers_of(move.source, round_);
    const int32_t ticket = program_.tickets++;
    open_.emplace(ticket, Open{true, move.source, move});
    program_.steps.push_back(
        {.kind = StepKind::send, .peer = peer, .tag = tag, .ticket = ticket, .from = move.source});
  }

  void receive(const Move& move, int32_t peer, uint32_t tag) {
    StepPart place = move.target;
    if (move.adds)
      place = scratch_for(move.target.count);
    else
      settle_users_of(move.target, program_.tickets);
    const int32_t ticket = program_.tickets++;
    open_.emplace(ticket, Open{false, place, move});
    program_.steps.push_back(
        {.kind = StepKind::receive, .peer = peer, .tag = tag, .ticket = ticket, .to = place});
  }

  void copy(const Move& move) {
    settle_writers_of(move.source, program_.tickets);
    settle_users_of(move.target, program_.tickets);
    program_.steps.push_back({.kind = StepKind::copy, .to = move.target, .from = move.source});
  }

  DeviceProgram end() {
    while (!open_.empty()) settle(open_.begin()->first);
    return std::move(program_);
  }

 private:
  struct Open {
    bool sends;
    StepPart place;  // whose bytes move
    Move move;
  };

  bool overlap(const StepPart& a, const StepPart& b) const {
    const bool share = a.room == b.room ||
                       (in_place_ && a.room != StepRoom::scratch && b.room != StepRoom::scratch);
    return share && a.begin < b.end() && b.begin < a.end();
  }

  template <class Uses>
  void settle_if(const Uses& uses) {
    std::vector<int32_t> found;
    for (const auto& [ticket, open] : open_)
      if (uses(ticket, open)) found.push_back(ticket);
    for (const int32_t ticket : found) settle(ticket);
  }
  // Before a part is read: the first receives have written it.
  void settle_writers_of(const StepPart& part, int32_t tickets) {
    settle_if([&](int32_t ticket, const Open& open) {
      return ticket < tickets && !open.sends && overlap(open.move.target, part);
    });
  }
  // Before a part is written: nobody reads it any more, and the first receives have written it.
  void settle_users_of(const StepPart& part, int32_t tickets) {
    settle_if([&](int32_t ticket, const Open& open) {
      if (open.sends) return overlap(open.place, part);
      return ticket < tickets &&
             (overlap(open.move.target, part) || (open.move.adds && overlap(open.move.own, part)));
    });
  }

  // Transfers of later rounds use nothing that this one writes: they would have settled it.
  void settle(int32_t ticket) {
    const auto found = open_.find(ticket);
    if (found == open_.end()) return;  // another one needed it settled before
    const Open open = found->second;
    program_.steps.push_back({.kind = StepKind::wait, .ticket = ticket});
    if (!open.sends && open.move.adds) {
      settle_writers_of(open.move.own, ticket);
      settle_users_of(open.move.target, ticket);
      program_.steps.push_back({.kind = StepKind::add,
                                .to = open.move.target,
                                .from = open.move.own,
                                .other = open.place});
    }
    open_.erase(ticket);
  }

  // The lowest place that no open receive has.
  StepPart scratch_for(int64_t count) {
    std::vector<StepPart> used;
    for (const auto& [ticket, open] : open_)
      if (!open.sends && open.move.adds) used.push_back(open.place);
    std::ranges::sort(used, {}, &StepPart::begin);
    int64_t begin = named_;
    for (const StepPart& part : used) {
      if (part.begin - begin >= count) break;
      begin = std::max(begin, part.end());
    }
    program_.scratch = std::max(program_.scratch, begin + count);
    return {StepRoom::scratch, begin, count};
  }

  DeviceProgram program_;
  std::map<int32_t, Open> open_;  // by ticket: in the order in which they began
  int32_t round_ = 0;             // the first ticket of this round
  int64_t named_;                 // scratch that the moves themselves name
  bool in_place_;                 // input and output may be the same memory
};

StepPart piece_of(const StepPart& part, int64_t begin, int64_t count) {
  return {part.room, part.begin + begin, count};
}

// The pieces of a round one after another, so that the first pieces of all moves go first.
std::vector<Move> cut(const std::vector<Move>& round, int32_t pieces) {
  std::vector<Move> cut;
  for (int32_t i = 0; i < pieces; ++i) {
    for (const Move& move : round) {
      const int64_t count = move.source.count;
      const int64_t size = (count + pieces - 1) / pieces;
      const int64_t begin = std::min(i * size, count), length = std::min(size, count - begin);
      if (length == 0) continue;
      Move piece = move;
      piece.source = piece_of(move.source, begin, length);
      piece.target = piece_of(move.target, begin, length);
      if (move.adds) piece.own = piece_of(move.own, begin, length);
      cut.push_back(piece);
    }
  }
  return cut;
}

}  // namespace

std::vector<DeviceProgram> weave(const Moves& moves, int32_t pieces, uint32_t tag) {
  const Collective& collective = moves.collective();
  std::vector<Weaver> weavers;
  for (int32_t i = 0; i < moves.members(); ++i)
    weavers.emplace_back(DeviceProgram{.device = collective.devices[static_cast<size_t>(i)],
                                       .input = input_elements(collective, i),
                                       .output = output_elements(collective, i),
                                       .steps = {}},
                         moves.scratch(), may_work_in_place(collective.kind));
  const auto weaver = [&](int32_t member) -> Weaver& {
    return weavers[static_cast<size_t>(member)];
  };
  const auto device = [&](int32_t member) {
    return collective.devices[static_cast<size_t>(member)];
  };
  for (const std::vector<Move>& round : moves.rounds()) {
    const std::vector<Move> cut_round = cut(round, pieces);
    for (int32_t i = 0; i < moves.members() && moves.keeps(i); ++i) weaver(i).begin_round();
    for (const Move& move : cut_round)
      if (move.from != move.to && moves.keeps(move.to))
        weaver(move.to).receive(move, device(move.from), tag);
    for (const Move& move : cut_round)
      if (move.from != move.to && moves.keeps(move.from))
        weaver(move.from).send(move, device(move.to), tag);
    for (const Move& move : cut_round)
      if (move.from == move.to) weaver(move.from).copy(move);
  }
  std::vector<DeviceProgram> programs;
  for (Weaver& each : weavers) programs.push_back(each.end());
  return programs;
}

}  // namespace hone
