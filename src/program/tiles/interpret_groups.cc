#include <algorithm>

#include "program/tiles/interpreter.h"

// Units of Hopper beside the threads of a block: boxes that are copied, what waits for them, and
// products of warpgroups.

namespace hone::tile {

// From here on a unit of its own acts, beside all threads.
void Interpreter::be_unit(int64_t number) {
  trip_ = static_cast<uint32_t>(agents_.size());
  agents_.push_back({block_, epoch_, kUnits + static_cast<uint32_t>(number)});
}

// The mbarrier, if the thread at hand may use it: another one has made it before a barrier. All
// threads, or another unit, are not the one that made it.
Result<Mbarrier*> Interpreter::mbarrier(const MbarrierPlace& place, bool is_own_thread) {
  const auto found = mbarriers_.find(place);
  if (found == mbarriers_.end())
    return bad_input("mbarrier {} of @{} is used before its beginning", place.second,
                     program_.buffers[place.first].name);
  const Agent& maker = agents_[found->second.maker];
  if (maker.epoch == epoch_ && !(is_own_thread && maker.thread == agents_[trip_].thread))
    return bad_input("mbarrier {} of @{} is used, but no barrier is behind its beginning",
                     place.second, program_.buffers[place.first].name);
  return &found->second;
}

Interpreter::MbarrierPlace Interpreter::place_of(BufferId buffer,
                                                 const std::vector<IndexExpr>& index) const {
  return {buffer, *element(index, {}, memories_[buffer])};
}

Status Interpreter::execute(const MbarrierInit& s) {
  const MbarrierPlace place = place_of(s.buffer, s.index);
  const Mbarrier made = {.arrivals = s.arrivals, .missing = s.arrivals, .maker = trip_};
  if (mbarriers_.emplace(place, made).second) return {};
  return bad_input("mbarrier {} of @{} begins twice", place.second,
                   program_.buffers[s.buffer].name);
}

// A thread that still waits for the last phase would not see that it ended, if this one ends,
// too.
Status Interpreter::execute(const MbarrierExpect& s) {
  const MbarrierPlace place = place_of(s.buffer, s.index);
  Mbarrier& barrier = *HONE_TRY(mbarrier(place, true));
  const std::string& name = program_.buffers[s.buffer].name;
  if (barrier.waited == epoch_)
    return bad_input("mbarrier {} of @{} goes on while threads may wait for its last phase",
                     place.second, name);
  if (barrier.missing == 0)
    return bad_input("a phase of mbarrier {} of @{} has more arrivals than {}", place.second, name,
                     barrier.arrivals);
  --barrier.missing;
  barrier.bytes += s.bytes;
  barrier.try_end();
  return {};
}

Status Interpreter::execute(const TensorCopy& s) {
  const MbarrierPlace barrier = place_of(s.barrier, s.barrier_index);
  HONE_TRY(mbarrier(barrier, false));
  const uint32_t thread = trip_;
  be_unit(0);
  Box box = {.to = s.to, .barrier = barrier};
  BufferState& to = memories_[s.to];
  const int64_t row_size = to.dims.back();
  int64_t first = 0;
  for (size_t i = 0; i < s.to_index.size(); ++i)
    first = first * to.dims[i] + s.to_index[i].at(indices_);
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t column = 0; column < row_size; ++column) {
      const auto at =
          static_cast<size_t>(swizzled_place(to.dtype, (first + row) * row_size + column));
      HONE_TRY(check_unit(s.to, at, true));
      to.is_known[at] = to.is_under_way[at] = true;
      to.writer[at] = trip_;
      box.places.push_back(at);
      box.numbers.push_back(number_of_box(s, row, column));
    }
  if (!options_.lands_late) land(box);
  boxes_.push_back(std::move(box));
  trip_ = thread;
  return {};
}

ScalarNumber Interpreter::number_of_box(const TensorCopy& s, int64_t row, int64_t column) const {
  const BufferState& from = memories_[s.from];
  int64_t offset = 0;
  for (size_t dim = 0; dim < from.dims.size(); ++dim) {
    int64_t at = s.from_index[dim].at(indices_);
    if (static_cast<int>(dim) == s.axis) at += row;
    if (dim + 1 == from.dims.size()) at += column;
    if (at < 0 || at >= from.dims[dim]) return {};
    offset = offset * from.dims[dim] + at;
  }
  return from.elements[static_cast<size_t>(offset)];
}

// An error: this keeps units from the element.
Status Interpreter::check_unit(BufferId buffer, size_t at, bool writes) const {
  const BufferState& memory = memories_[buffer];
  if (memory.is_under_way[at]) return not_waited(buffer, at);
  if (is_contended(buffer, memory.writer[at]) ||
      (writes && is_contended(buffer, memory.reader[at])))
    return contention(buffer, at);
  if (!memory.is_unfenced[at]) return {};
  return bad_input("element {} of @{} is stored by a thread, but no fence is behind that", at,
                   program_.buffers[buffer].name);
}

void Interpreter::land(Box& box) {
  BufferState& to = memories_[box.to];
  for (size_t i = 0; i < box.places.size(); ++i) to.elements[box.places[i]] = box.numbers[i];
  Mbarrier& barrier = mbarriers_.at(box.barrier);
  box.phase = barrier.ended;
  barrier.bytes -= std::ssize(box.places) * bits(to.dtype) / 8;
  barrier.try_end();
}

Status Interpreter::execute(const MbarrierWait& s) {
  const MbarrierPlace place = place_of(s.buffer, s.index);
  Mbarrier& barrier = *HONE_TRY(mbarrier(place, false));
  const int64_t parity = s.parity.at(indices_);
  rng_.shuffle(boxes_);
  for (Box& box : boxes_)
    if (!barrier.has_ended(parity) && box.barrier == place && !box.phase) land(box);
  if (!barrier.has_ended(parity))
    return bad_input(
        "a wait for mbarrier {} of @{} never ends: its phase {} lacks {} arrivals "
        "and {} bytes",
        place.second, program_.buffers[s.buffer].name, barrier.ended, barrier.missing,
        barrier.bytes);
  barrier.waited = epoch_;
  std::erase_if(boxes_, [&](const Box& box) {
    if (box.barrier != place || box.phase.value_or(barrier.ended) >= barrier.ended) return false;
    BufferState& to = memories_[box.to];
    for (size_t at : box.places) {
      to.is_under_way[at] = false;
      to.writer[at] = to.reader[at] = kNobody;  // all threads have it
    }
    return true;
  });
  return {};
}

Status Interpreter::execute(const ProxyFence& /*s*/) {
  for (BufferState& memory : memories_)
    for (size_t at = 0; at < memory.is_unfenced.size(); ++at)
      if (!memory.is_under_way[at]) memory.is_unfenced[at] = false;
  return {};
}

Status Interpreter::execute(const GroupProduct& s) {
  const int64_t groups = block_threads_ / kGroupThreads, numbers = memories_[s.lhs].dims.back();
  statements_ += groups * kGroupRows * s.columns * numbers;
  if (statements_ > options_.max_statements)
    return over_limit("more than {} statements", options_.max_statements);
  for (int64_t group = 0; group < groups; ++group) {
    be_unit(group);
    const std::vector<double> lhs =
        HONE_TRY(lines_of(s.lhs, s.lhs_index, group * kGroupRows, kGroupRows, s.lhs_across));
    const std::vector<double> rhs =
        HONE_TRY(lines_of(s.rhs, s.rhs_index, 0, s.columns, s.rhs_across));
    for (int64_t row = 0; row < kGroupRows; ++row)
      for (int64_t column = 0; column < s.columns; ++column) {
        const LanePlace place = place_of_group_sum(row, column);
        double& sum =
            HONE_TRY(group_sum(s, group * kGroupThreads + place.lane, place.number))->real;
        for (int64_t k = 0; k < numbers; ++k)
          sum = next_sum(sum + lhs[static_cast<size_t>(row * numbers + k)] *
                                   rhs[static_cast<size_t>(column * numbers + k)]);
      }
  }
  thread_ = 0;
  return {};
}

// Lines of an operand, one after the other, that a unit reads. It begins `first` rows behind the
// index.
Result<std::vector<double>> Interpreter::lines_of(BufferId buffer,
                                                  const std::vector<IndexExpr>& index,
                                                  int64_t first, int64_t lines, bool is_across) {
  BufferState& memory = memories_[buffer];
  const int64_t numbers = memory.dims.back();
  int64_t begin = 0;
  for (size_t i = 0; i < index.size(); ++i) begin = begin * memory.dims[i] + index[i].at(indices_);
  begin = (begin + first) * numbers;
  std::vector<double> all;
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < numbers; ++k) {
      const int64_t row = is_across ? line / numbers * numbers + k : line;
      const int64_t place = begin + row * numbers + (is_across ? line % numbers : k);
      const auto at = static_cast<size_t>(swizzled_place(memory.dtype, place));
      if (!memory.is_known[at])
        return bad_input("element {} of @{} is multiplied before it is written", at,
                         program_.buffers[buffer].name);
      HONE_TRY(check_unit(buffer, at, false));
      memory.reader[at] = trip_;
      const double number = memory.elements[at].real;
      const bool is_cut = memory.dtype == DType::f32;
      all.push_back(
          is_cut ? part_of(DType::f32, std::bit_cast<uint32_t>(static_cast<float>(number)), 0)
                 : number);
    }
  return all;
}

Result<ScalarNumber*> Interpreter::group_sum(const GroupProduct& s, int64_t thread,
                                             int64_t number) {
  std::vector<IndexExpr> index = s.sums_index;
  index.push_back(number / 4);
  return factor(s.sums, std::move(index), thread, {0, number % 4});
}

}  // namespace hone::tile
