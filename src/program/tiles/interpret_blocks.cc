#include <algorithm>
#include <bit>
#include <cmath>

#include "program/tiles/interpreter.h"
#include "target/gpu.h"

// Threads of a block work together, or one after another: those of a warp in order, warps in any
// order.

namespace hone::tile {

// All accesses behind it belong to another time.
Status Interpreter::execute(const Barrier& /*s*/) {
  ++epoch_;
  if (options_.counts != nullptr) ++options_.counts->barriers;
  return {};
}

Status Interpreter::execute(const WarpCombine& s) {
  BufferState& memory = memories_[s.buffer];
  const DType dtype = program_.buffers[s.buffer].type.dtype();
  const DType types[] = {dtype, dtype};
  ScalarOp combine(Op::get(s.combine), types, dtype);
  std::vector<size_t> places;
  for (thread_ = 0; thread_ < block_threads_; ++thread_) {
    places.push_back(*element(s.index, {}, memory));
    if (!memory.is_known[places.back()])
      return bad_input("@{} of thread {} is combined before it is written",
                       program_.buffers[s.buffer].name, thread_);
  }
  thread_ = 0;
  for (size_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    std::vector<ScalarNumber> next;
    for (size_t t = 0; t < places.size(); ++t) {
      const ScalarNumber both[] = {memory.elements[places[t]],
                                   memory.elements[places[t ^ distance]]};
      next.push_back(combine(both));
    }
    for (size_t t = 0; t < places.size(); ++t) memory.elements[places[t]] = next[t];
  }
  return {};
}

Status Interpreter::execute(const BlockVote& s) {
  const BufferState& memory = memories_[s.buffer];
  int64_t any = 0;
  for (thread_ = 0; thread_ < block_threads_; ++thread_) {
    const size_t at = *element(s.at, {}, memory);
    if (!memory.is_known[at])
      return bad_input("thread {} votes by @{} before it is written", thread_,
                       program_.buffers[s.buffer].name);
    if (memory.elements[at].integer != 0) any = 1;
  }
  thread_ = 0;
  indices_[static_cast<size_t>(s.index)] = any;
  return execute(Barrier());
}

Error Interpreter::not_waited(BufferId buffer, size_t element) const {
  return bad_input("element {} of @{} is used before its copy was waited for", element,
                   program_.buffers[buffer].name);
}

Status Interpreter::execute(const AsyncCopy& s) {
  BufferState &to = memories_[s.to], &from = memories_[s.from];
  const size_t first = *element(s.to_index, {}, to);
  const std::optional<size_t> source = element(s.from_index, s.guards, from);
  note(&s.to_index, s.to, first, s.count);
  if (source) note(&s.from_index, s.from, *source, s.count);
  for (size_t i = 0; i < static_cast<size_t>(s.count); ++i) {
    const size_t at = first + i;
    if (to.is_under_way[at]) return not_waited(s.to, at);
    if (is_contended(s.to, to.writer[at]) || is_contended(s.to, to.reader[at]))
      return contention(s.to, at);
    if (source && !from.is_known[*source + i])
      return bad_input("element {} of @{} is read before it is written", *source + i,
                       program_.buffers[s.from].name);
    to.elements[at] = source ? from.elements[*source + i] : ScalarNumber{};
    to.is_known[at] = to.is_under_way[at] = to.is_unfenced[at] = true;
    to.writer[at] = trip_;
    copies_.push_back({s.to, at, thread_, groups_});
  }
  return {};
}

Status Interpreter::execute(const CopyGroup& /*s*/) {
  ++groups_;
  return {};
}

// Only the thread that copied has the numbers, until there is a barrier.
Status Interpreter::execute(const CopyWait& s) {
  std::map<int64_t, uint32_t> agents;  // by thread
  std::erase_if(copies_, [&](const Copied& copy) {
    if (copy.group + s.open >= groups_) return false;
    const auto [agent, is_new] = agents.try_emplace(copy.thread, agents_.size());
    if (is_new) agents_.push_back({block_, epoch_, static_cast<uint32_t>(copy.thread)});
    memories_[copy.buffer].is_under_way[copy.element] = false;
    memories_[copy.buffer].writer[copy.element] = agent->second;
    return true;
  });
  return {};
}

// The memory of a block goes to the next one.
Status Interpreter::no_copies_left() const {
  if (copies_.empty() && boxes_.empty()) return {};
  const auto [buffer, at] = copies_.empty() ? std::pair(boxes_[0].to, boxes_[0].places[0])
                                            : std::pair(copies_[0].buffer, copies_[0].element);
  return bad_input("a block ends before element {} of @{}, which is copied, was waited for", at,
                   program_.buffers[buffer].name);
}

// A thread reads from the rows that other threads of its warp name.
Status Interpreter::execute(const MatrixLoad& s) {
  const BufferState& from = memories_[s.from];
  const int64_t bits_of_each = bits(program_.buffers[s.from].type.dtype());
  const int64_t lane = thread_ % kWarpLanes, warp = thread_ - lane;
  if (lane < kMatrixRows * s.count)
    note(&s, s.from, *element(s.from_index, {}, from), kMatrixRowBytes * 8 / bits_of_each);
  const int64_t numbers = memories_[s.to].dims.back();
  std::vector<uint32_t> words;
  for (int64_t m = 0; m < s.count; ++m) {
    indices_[thread_index_] = warp + kMatrixRows * m + lane / 4;
    const size_t row = *element(s.from_index, {}, from);
    words.push_back(
        HONE_TRY(read_word(s.from, row + static_cast<size_t>(lane % 4 * 32 / bits_of_each))));
  }
  indices_[thread_index_] = thread_;
  for (int64_t m = 0; m < s.count; ++m) {
    std::vector<IndexExpr> index = s.to_index;
    if (m >= numbers) index.back() = index.back() + IndexExpr(m / numbers);
    index.push_back(m % numbers);
    const size_t at = *element(index, {}, memories_[s.to]);
    memories_[s.to].elements[at] = {0, words[static_cast<size_t>(m)]};
    memories_[s.to].is_known[at] = true;
  }
  return {};
}

Status Interpreter::execute(const WarpProduct& s) {
  for (int64_t warp = 0; warp < block_threads_; warp += kWarpLanes) HONE_TRY(multiply(s, warp));
  thread_ = 0;
  return {};
}

Status Interpreter::multiply(const WarpProduct& s, int64_t warp) {
  for (int64_t row = 0; row < kProductRows; ++row) {
    for (int64_t column = 0; column < kProductColumns; ++column) {
      double& sum = HONE_TRY(factor(s.sums, s.sums_index, warp, place_of_sum(row, column)))->real;
      for (int64_t word = 0; word < kProductWords; ++word) {
        const auto l = static_cast<uint32_t>(
            HONE_TRY(factor(s.lhs, s.lhs_index, warp, place_of_row(row, word)))->integer);
        const auto r = static_cast<uint32_t>(
            HONE_TRY(factor(s.rhs, s.rhs_index, warp, place_of_column(column, word)))->integer);
        for (int part = 0; part < (s.numbers == DType::f32 ? 1 : 2); ++part)
          sum = next_sum(sum + part_of(s.numbers, l, part) * part_of(s.numbers, r, part));
      }
    }
  }
  return {};
}

double Interpreter::next_sum(double exact) const {
  const double rounded = round_to(DType::f32, exact);
  if (!options_.cuts_sums || std::abs(rounded) <= std::abs(exact)) return rounded;
  return std::nextafter(static_cast<float>(rounded), 0.0F);
}

// The number that a thread of a warp has there.
Result<ScalarNumber*> Interpreter::factor(BufferId buffer, std::vector<IndexExpr> index,
                                          int64_t warp, LanePlace place) {
  BufferState& memory = memories_[buffer];
  thread_ = warp + place.lane;
  index.push_back(place.number);
  const size_t at = *element(index, {}, memory);
  if (!memory.is_known[at])
    return bad_input("@{} of thread {} is multiplied before it is written",
                     program_.buffers[buffer].name, thread_);
  return &memory.elements[at];
}

double Interpreter::part_of(DType numbers, uint32_t word, int part) {
  if (numbers == DType::f32) return std::bit_cast<float>(word & kFactorBits);
  const uint32_t half = part == 0 ? word & 0xffff : word >> 16;
  if (numbers == DType::bf16) return std::bit_cast<float>(half << 16);
  return decode_real(DType::f16, half);
}

// The threads of a block, warp by warp in any order.
Status Interpreter::run_threads(const Loop& s) {
  const int64_t extent = program_.indices[static_cast<size_t>(s.index)].high.value();
  std::vector<int64_t> warps;
  for (int64_t warp = 0; warp * kWarpLanes < extent; ++warp) warps.push_back(warp);
  rng_.shuffle(warps);
  thread_index_ = static_cast<size_t>(s.index);
  for (int64_t warp : warps) {
    const int64_t end = std::min((warp + 1) * kWarpLanes, extent);
    for (thread_ = warp * kWarpLanes; thread_ < end; ++thread_) {
      counter_.next_thread();
      trip_ = static_cast<uint32_t>(agents_.size());
      agents_.push_back({block_, epoch_, static_cast<uint32_t>(thread_)});
      indices_[static_cast<size_t>(s.index)] = thread_;
      forget_scratch();
      HONE_TRY(execute(s.body));
    }
    thread_ = 0;
    counter_.end_warp();
  }
  return {};
}

// Other blocks run at the same time: barriers are for one.
void Interpreter::start_block() {
  ++block_;
  epoch_ = 0;
  mbarriers_.clear();
  for (size_t i = 0; i < memories_.size(); ++i) {
    const BufferRole role = program_.buffers[i].role;
    if (role == BufferRole::block || role == BufferRole::own) forget(memories_[i]);
  }
}

}  // namespace hone::tile
