#include "program/tiles/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "ir/reference/scalar_op.h"
#include "program/tiles/access_counter.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "target/gpu.h"

namespace hone {

namespace {

using namespace tile;

constexpr int64_t kMaxBufferElements = int64_t{1} << 28;
constexpr uint32_t kNobody = UINT32_MAX;

// The content of a buffer, and who touched it.
struct BufferState {
  std::vector<ScalarNumber> elements;
  std::vector<bool> is_known;
  // Per element, in this phase: the trip of the threads loops that wrote it, and one that read it.
  std::vector<uint32_t> writer, reader;
  std::vector<bool> is_under_way;  // by a copy that nobody has waited for
  std::vector<bool> is_unfenced;   // stored by a thread: other units do not see it yet
  Ints dims;
  DType dtype;
  bool is_swizzled;
  size_t
      per_thread;  // elements of each thread of a block, which follow each other; 0: all have all

  // `owners` threads have one each; 0: all threads have one together.
  BufferState(const TileBuffer& buffer, int64_t owners)
      : elements(static_cast<size_t>(buffer.type.static_elements() * std::max<int64_t>(owners, 1))),
        is_known(elements.size()),
        writer(elements.size(), kNobody),
        reader(elements.size(), kNobody),
        is_under_way(elements.size()),
        is_unfenced(elements.size()),
        dims(buffer.type.static_dims()),
        dtype(buffer.type.dtype()),
        is_swizzled(buffer.is_swizzled),
        per_thread(owners == 0 ? 0 : static_cast<size_t>(buffer.type.static_elements())) {}
  void next_phase() {
    std::ranges::fill(writer, kNobody);
    std::ranges::fill(reader, kNobody);
  }
};

// The phases of an mbarrier.
struct Mbarrier {
  int64_t arrivals = 0;  // of a phase
  int64_t missing = 0;   // of them, in this phase
  int64_t bytes = 0;     // that have to come in it; below 0: that came before they were expected
  int64_t ended = 0;     // phases
  uint32_t maker = 0;    // agent
  std::optional<uint32_t> waited = {};  // epoch in which threads waited last

  void try_end() {
    if (missing > 0 || bytes != 0) return;
    ++ended;
    missing = arrivals;
  }
  bool has_ended(int64_t parity) const { return ended % 2 != parity; }
};

class Interpreter {
 public:
  Interpreter(const TileProgram& program, const InterpretOptions& options)
      : program_(program),
        options_(options),
        scalars_(program.scalars.size()),
        indices_(program.indices.size()),
        output_in_(program.buffers.size()),
        counter_(program, options.counts),
        rng_(options.seed) {
    for (BufferId b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].donor) output_in_[*program.buffers[b].donor] = b;
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    for (const TileBuffer& buffer : program_.buffers) {
      if (!buffer.type.is_static())
        return unsupported("@{} is {}; sizes must be numbers", buffer.name,
                           buffer.type.to_string());
      const int64_t owners = buffer.role == BufferRole::own ? most_threads() : 0;
      if (buffer.type.static_elements() > kMaxBufferElements / std::max<int64_t>(owners, 1))
        return over_limit("@{} has more than {} elements", buffer.name, kMaxBufferElements);
      memories_.emplace_back(buffer, owners);
    }
    HONE_TRY(read(inputs));
    for (const Loop& phase : program_.phases) {
      block_threads_ = block_threads(phase, program_);
      for (size_t i = 0; i < memories_.size(); ++i) {
        memories_[i].next_phase();
        if (program_.buffers[i].role == BufferRole::scratch) forget(memories_[i]);
      }
      trip_ = 0;
      agents_.assign(1, {});
      HONE_TRY(execute(phase));
    }
    return outputs();
  }

 private:
  // ---- Memory ----------------------------------------------------------------------------------

  static void forget(BufferState& memory) {
    memory.is_known.assign(memory.is_known.size(), false);
    memory.is_unfenced.assign(memory.is_unfenced.size(), false);
    memory.next_phase();
  }

  Status read(std::span<const Tensor> inputs) {
    size_t next = 0;
    for (size_t i = 0; i < memories_.size(); ++i) {
      const TileBuffer& buffer = program_.buffers[i];
      if (buffer.role != BufferRole::input && buffer.role != BufferRole::update) continue;
      if (next == inputs.size()) return bad_input("there is no tensor for @{}", buffer.name);
      const Tensor& tensor = inputs[next++];
      if (tensor.type() != buffer.type)
        return bad_input("@{} is {}, the tensor {}", buffer.name, buffer.type.to_string(),
                         tensor.type().to_string());
      BufferState& memory = memories_[i];
      memory.is_known.assign(memory.is_known.size(), true);
      for (size_t e = 0; e < memory.elements.size(); ++e) {
        const auto at = static_cast<int64_t>(e);
        if (is_real(tensor.dtype()))
          memory.elements[e].real = tensor.real_at(at);
        else
          memory.elements[e].integer = tensor.integer_at(at);
      }
    }
    if (next < inputs.size())
      return bad_input("{} tensors are given for {} inputs", inputs.size(), next);
    return {};
  }

  Result<std::vector<Tensor>> outputs() const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < memories_.size(); ++i) {
      const TileBuffer& buffer = program_.buffers[i];
      if (!is_result(buffer.role)) continue;
      const BufferState& memory = memories_[i];
      if (auto gap = std::ranges::find(memory.is_known, false); gap != memory.is_known.end())
        return bad_input("element {} of @{} is never written", gap - memory.is_known.begin(),
                         buffer.name);
      std::vector<double> reals;
      std::vector<int64_t> integers;
      for (const ScalarNumber& element : memory.elements) {
        reals.push_back(element.real);
        integers.push_back(element.integer);
      }
      tensors.push_back(is_real(buffer.type.dtype())
                            ? Tensor::from_reals(buffer.type, reals)
                            : Tensor::from_integers(buffer.type, integers));
    }
    return tensors;
  }

  // The element that an access is to; none: a guard does not hold.
  std::optional<size_t> element(const std::vector<IndexExpr>& index,
                                const std::vector<Guard>& guards, const BufferState& memory) const {
    for (const Guard& guard : guards) {
      const int64_t value = guard.value.at(indices_);
      if (value < guard.lower.value() || value >= guard.upper.value()) return std::nullopt;
    }
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const int64_t at = index[axis].at(indices_);
      HONE_CHECK(at >= 0 && at < memory.dims[axis], "index {} is outside of 0..{}", at,
                 memory.dims[axis] - 1);
      offset = offset * memory.dims[axis] + at;
    }
    if (memory.is_swizzled) offset = swizzled_place(memory.dtype, offset);
    return memory.per_thread * static_cast<size_t>(thread_) + static_cast<size_t>(offset);
  }

  int64_t most_threads() const {
    int64_t most = 0;
    for (const Loop& phase : program_.phases) most = std::max(most, block_threads(phase, program_));
    return most;
  }

  bool is_contended(BufferId buffer, uint32_t other) const {
    const BufferRole role = program_.buffers[buffer].role;
    if (role == BufferRole::scratch || role == BufferRole::own || other == kNobody) return false;
    if (block_threads_ == 0) return other != trip_;
    const Agent &a = agents_[other], &b = agents_[trip_];
    return a.block != b.block || (a.epoch == b.epoch && a.thread != b.thread);
  }
  Error contention(BufferId buffer, size_t element) const {
    return bad_input("two trips of a parallel loop touch element {} of @{}", element,
                     program_.buffers[buffer].name);
  }

  // ---- Statements ------------------------------------------------------------------------------

  Status execute(const Block& body) {
    statements_ += std::max<int64_t>(std::ssize(body), 1);  // trips without any take time, too
    if (statements_ > options_.max_statements)
      return over_limit("more than {} statements", options_.max_statements);
    for (const Statement& statement : body)
      HONE_TRY(std::visit([&](const auto& s) { return execute(s); }, statement.kind));
    return {};
  }

  Status execute(const Number& s) {
    if (const double* real = std::get_if<double>(&s.value))
      scalars_[s.result] = {round_to(program_.scalars[s.result], *real), 0};
    else
      scalars_[s.result] = {0, wrap_to(program_.scalars[s.result], std::get<int64_t>(s.value))};
    return {};
  }

  Status execute(const Position& s) {
    scalars_[s.result] = {0, wrap_to(program_.scalars[s.result], s.value.at(indices_))};
    return {};
  }

  Status execute(const Compute& s) {
    auto op = ops_.find(&s);
    if (op == ops_.end()) {
      std::vector<DType> types;
      for (Scalar operand : s.operands) types.push_back(program_.scalars[operand]);
      op = ops_.emplace(&s, ScalarOp(s.op, types, program_.scalars[s.result])).first;
    }
    operands_.clear();
    for (Scalar operand : s.operands) operands_.push_back(scalars_[operand]);
    scalars_[s.result] = op->second(operands_);
    return {};
  }

  Status execute(const Fma& s) {
    const DType dtype = program_.scalars[s.result];
    const double product = scalars_[s.a].real * scalars_[s.b].real;
    scalars_[s.result].real = round_to(dtype, product + scalars_[s.c].real);
    return {};
  }

  Status execute(const Quad& s) {
    const auto a = static_cast<uint32_t>(scalars_[s.a].integer);
    const auto b = static_cast<uint32_t>(scalars_[s.b].integer);
    int64_t sum = scalars_[s.c].integer;
    for (int shift = 0; shift < 32; shift += 8)
      sum += int64_t{a >> shift & 0xff} * static_cast<int8_t>(b >> shift & 0xff);
    scalars_[s.result].integer = wrap_to(DType::i32, sum);
    return {};
  }

  Status execute(const Pair& s) {
    const auto flushed = [](double sum) {
      const auto number = static_cast<float>(sum);
      return std::fpclassify(number) == FP_SUBNORMAL ? std::copysign(0.0, sum) : double{number};
    };
    double sum = scalars_[s.c].real;
    for (bool is_second : {false, true})
      sum = flushed(sum + half(scalars_[s.a], is_second) * half(scalars_[s.b], is_second));
    scalars_[s.result].real = sum;
    return {};
  }

  Status execute(const Choose& s) {
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    int64_t value = scalars_[s.value].integer;
    if (program_.scalars[s.value] == DType::u64 && value < 0) value = INT64_MAX;
    indices_[static_cast<size_t>(s.index)] =
        std::clamp(value, index.low.value(), index.high.value() - 1);
    return {};
  }

  Status execute(const Load& s) {
    BufferState& memory = memories_[s.buffer];
    const std::optional<size_t> at = element(s.index, s.guards, memory);
    if (!at) {
      scalars_[s.result] = scalars_[*s.otherwise];
      return {};
    }
    const auto width = static_cast<size_t>(bits(program_.buffers[s.buffer].type.dtype()));
    note(&s, s.buffer, *at, s.is_word ? static_cast<int64_t>(32 / width) : 1);
    if (!s.is_word) return read(s.buffer, *at, scalars_[s.result]);
    Result<uint32_t> word = read_word(s.buffer, *at);
    if (!word.ok()) return std::move(word).error();
    scalars_[s.result] = {0, *word};
    return {};
  }

  // 32 bits of neighbours, the first one in the lowest.
  Result<uint32_t> read_word(BufferId buffer, size_t at) {
    const DType dtype = program_.buffers[buffer].type.dtype();
    const auto width = static_cast<size_t>(bits(dtype));
    uint32_t word = 0;
    for (size_t i = 0; i * width < 32; ++i) {
      ScalarNumber element;
      HONE_TRY(read(buffer, at + i, element));
      const uint32_t own = width == 8 ? static_cast<uint32_t>(element.integer & 0xff)
                                      : static_cast<uint32_t>(encode_real(dtype, element.real));
      word |= own << width * i;
    }
    return word;
  }

  Status read(BufferId buffer, size_t at, ScalarNumber& number) {
    BufferState& memory = memories_[buffer];
    if (!memory.is_known[at])
      return bad_input("element {} of @{} is read before it is written", at,
                       program_.buffers[buffer].name);
    if (memory.is_under_way[at]) return not_waited(buffer, at);
    if (is_contended(buffer, memory.writer[at])) return contention(buffer, at);
    if (const std::optional<BufferId> output = output_in_[buffer];
        output && memories_[*output].is_known[at])
      return bad_input("element {} of @{} is read when @{}, which may lie there, has changed", at,
                       program_.buffers[buffer].name, program_.buffers[*output].name);
    memory.reader[at] = trip_;
    number = memory.elements[at];
    return {};
  }

  Status execute(const Store& s) {
    BufferState& memory = memories_[s.buffer];
    const std::optional<size_t> at = element(s.index, s.guards, memory);
    if (!at) return {};
    if (memory.is_under_way[*at]) return not_waited(s.buffer, *at);
    if (is_contended(s.buffer, memory.writer[*at]) || is_contended(s.buffer, memory.reader[*at]))
      return contention(s.buffer, *at);
    note(&s, s.buffer, *at);
    memory.writer[*at] = trip_;
    memory.is_known[*at] = memory.is_unfenced[*at] = true;
    memory.elements[*at] = scalars_[s.value];
    return {};
  }

  static double half(const ScalarNumber& word, bool is_second) {
    const auto bits = static_cast<uint32_t>(word.integer);
    const double number = std::bit_cast<float>(is_second ? bits & 0xffff0000U : bits << 16);
    return std::fpclassify(static_cast<float>(number)) == FP_SUBNORMAL ? 0 : number;
  }

  void add_products(const Product& s, const ScalarNumber& lhs, const ScalarNumber& rhs,
                    ScalarNumber& sum) const {
    const auto dtype = [&](BufferId id) { return program_.buffers[id].type.dtype(); };
    if (dtype(s.sums) == DType::f32) {
      for (bool second : {false, true})
        sum.real = round_to(DType::f32, sum.real + half(lhs, second) * half(rhs, second));
      return;
    }
    const auto byte = [&](BufferId id, const ScalarNumber& word, int i) {
      return wrap_to(dtype(id) == DType::i32 ? DType::i8 : DType::u8, word.integer >> 8 * i);
    };
    for (int i = 0; i < 4; ++i)
      sum.integer = wrap_to(DType::i32, sum.integer + byte(s.lhs, lhs, i) * byte(s.rhs, rhs, i));
  }

  Status execute(const Product& s) {
    BufferState &sums = memories_[s.sums], &lhs = memories_[s.lhs], &rhs = memories_[s.rhs];
    const auto known = [&](BufferId id, const BufferState& memory, int64_t at) -> Status {
      if (memory.is_known[static_cast<size_t>(at)]) return {};
      return bad_input("element {} of @{} is read before it is written", at,
                       program_.buffers[id].name);
    };
    const int64_t parts = lhs.dims[1], depth = 16 * lhs.dims[2];
    const int64_t rows = lhs.dims[3], columns = rhs.dims[3];
    const int64_t a = s.lhs_block.at(indices_), b = s.rhs_block.at(indices_);
    statements_ += rows * columns * depth * parts;
    if (statements_ > options_.max_statements)
      return over_limit("more than {} statements", options_.max_statements);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t to = (s.sums_block.at(indices_) * rows + i) * columns + j;
        ScalarNumber& sum = sums.elements[static_cast<size_t>(to)];
        if (!s.is_first) HONE_TRY(known(s.sums, sums, to));
        if (s.is_first) sum = {};
        sums.is_known[static_cast<size_t>(to)] = true;
        for (int64_t p = 0; p < parts; ++p) {
          for (int64_t q = 0; p + q < parts; ++q) {
            for (int64_t w = 0; w < depth; ++w) {
              const int64_t l =
                  (((a * parts + p) * (depth / 16) + w / 16) * rows + i) * 16 + w % 16;
              const int64_t r = ((b * parts + q) * depth + w) * columns + j;
              HONE_TRY(known(s.lhs, lhs, l));
              HONE_TRY(known(s.rhs, rhs, r));
              add_products(s, lhs.elements[static_cast<size_t>(l)],
                           rhs.elements[static_cast<size_t>(r)], sum);
            }
          }
        }
      }
    }
    return {};
  }

  // ---- Blocks of threads -----------------------------------------------------------------------

  // All accesses behind it belong to another time.
  Status execute(const Barrier& /*s*/) {
    ++epoch_;
    if (options_.counts != nullptr) ++options_.counts->barriers;
    return {};
  }

  Status execute(const WarpCombine& s) {
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

  // ---- Copies in the background ----------------------------------------------------------------

  Error not_waited(BufferId buffer, size_t element) const {
    return bad_input("element {} of @{} is used before its copy was waited for", element,
                     program_.buffers[buffer].name);
  }

  Status execute(const AsyncCopy& s) {
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
      to.elements[at] = source ? from.elements[*source + i] : ScalarNumber{};
      to.is_known[at] = to.is_under_way[at] = to.is_unfenced[at] = true;
      to.writer[at] = trip_;
      copies_.push_back({s.to, at, thread_, groups_});
    }
    return {};
  }

  Status execute(const CopyGroup& /*s*/) {
    ++groups_;
    return {};
  }

  // Only the thread that copied has the numbers, until there is a barrier.
  Status execute(const CopyWait& s) {
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
  Status no_copies_left() const {
    if (copies_.empty() && boxes_.empty()) return {};
    const auto [buffer, at] = copies_.empty() ? std::pair(boxes_[0].to, boxes_[0].places[0])
                                              : std::pair(copies_[0].buffer, copies_[0].element);
    return bad_input("a block ends before element {} of @{}, which is copied, was waited for", at,
                     program_.buffers[buffer].name);
  }

  // ---- Matrices of warps -----------------------------------------------------------------------

  // A thread reads from the rows that other threads of its warp name.
  Status execute(const MatrixLoad& s) {
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

  // ---- Products of warps -----------------------------------------------------------------------

  Status execute(const WarpProduct& s) {
    for (int64_t warp = 0; warp < block_threads_; warp += kWarpLanes) HONE_TRY(multiply(s, warp));
    thread_ = 0;
    return {};
  }

  Status multiply(const WarpProduct& s, int64_t warp) {
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

  double next_sum(double exact) const {
    const double rounded = round_to(DType::f32, exact);
    if (!options_.cuts_sums || std::abs(rounded) <= std::abs(exact)) return rounded;
    return std::nextafter(static_cast<float>(rounded), 0.0F);
  }

  // The number that a thread of a warp has there.
  Result<ScalarNumber*> factor(BufferId buffer, std::vector<IndexExpr> index, int64_t warp,
                               LanePlace place) {
    BufferState& memory = memories_[buffer];
    thread_ = warp + place.lane;
    index.push_back(place.number);
    const size_t at = *element(index, {}, memory);
    if (!memory.is_known[at])
      return bad_input("@{} of thread {} is multiplied before it is written",
                       program_.buffers[buffer].name, thread_);
    return &memory.elements[at];
  }

  // ---- Copies and products on Hopper -----------------------------------------------------------

  // From here on a unit of its own acts, beside all threads.
  void be_unit(int64_t number) {
    trip_ = static_cast<uint32_t>(agents_.size());
    agents_.push_back({block_, epoch_, kUnits + static_cast<uint32_t>(number)});
  }

  // The mbarrier, if the thread at hand may use it: another one has made it before a barrier. All
  // threads, or another unit, are not the one that made it.
  using MbarrierPlace = std::pair<BufferId, size_t>;
  Result<Mbarrier*> mbarrier(const MbarrierPlace& place, bool is_own_thread) {
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
  MbarrierPlace place_of(BufferId buffer, const std::vector<IndexExpr>& index) const {
    return {buffer, *element(index, {}, memories_[buffer])};
  }

  Status execute(const MbarrierInit& s) {
    const MbarrierPlace place = place_of(s.buffer, s.index);
    const Mbarrier made = {.arrivals = s.arrivals, .missing = s.arrivals, .maker = trip_};
    if (mbarriers_.emplace(place, made).second) return {};
    return bad_input("mbarrier {} of @{} begins twice", place.second,
                     program_.buffers[s.buffer].name);
  }

  // A thread that still waits for the last phase would not see that it ended, if this one ends,
  // too.
  Status execute(const MbarrierExpect& s) {
    const MbarrierPlace place = place_of(s.buffer, s.index);
    Mbarrier& barrier = *HONE_TRY(mbarrier(place, true));
    const std::string& name = program_.buffers[s.buffer].name;
    if (barrier.waited == epoch_)
      return bad_input("mbarrier {} of @{} goes on while threads may wait for its last phase",
                       place.second, name);
    if (barrier.missing == 0)
      return bad_input("a phase of mbarrier {} of @{} has more arrivals than {}", place.second,
                       name, barrier.arrivals);
    --barrier.missing;
    barrier.bytes += s.bytes;
    barrier.try_end();
    return {};
  }

  Status execute(const TensorCopy& s) {
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

  ScalarNumber number_of_box(const TensorCopy& s, int64_t row, int64_t column) const {
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
  Status check_unit(BufferId buffer, size_t at, bool writes) const {
    const BufferState& memory = memories_[buffer];
    if (memory.is_under_way[at]) return not_waited(buffer, at);
    if (is_contended(buffer, memory.writer[at]) ||
        (writes && is_contended(buffer, memory.reader[at])))
      return contention(buffer, at);
    if (!memory.is_unfenced[at]) return {};
    return bad_input("element {} of @{} is stored by a thread, but no fence is behind that", at,
                     program_.buffers[buffer].name);
  }

  struct Box {
    BufferId to = 0;
    std::pair<BufferId, size_t> barrier = {};
    std::vector<size_t> places = {};
    std::vector<ScalarNumber> numbers = {};
    std::optional<int64_t> phase = {};  // of its mbarrier, in which it has come
  };
  void land(Box& box) {
    BufferState& to = memories_[box.to];
    for (size_t i = 0; i < box.places.size(); ++i) to.elements[box.places[i]] = box.numbers[i];
    Mbarrier& barrier = mbarriers_.at(box.barrier);
    box.phase = barrier.ended;
    barrier.bytes -= std::ssize(box.places) * bits(to.dtype) / 8;
    barrier.try_end();
  }

  Status execute(const MbarrierWait& s) {
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

  Status execute(const ProxyFence& /*s*/) {
    for (BufferState& memory : memories_)
      for (size_t at = 0; at < memory.is_unfenced.size(); ++at)
        if (!memory.is_under_way[at]) memory.is_unfenced[at] = false;
    return {};
  }

  Status execute(const GroupProduct& s) {
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
  Result<std::vector<double>> lines_of(BufferId buffer, const std::vector<IndexExpr>& index,
                                       int64_t first, int64_t lines, bool is_across) {
    BufferState& memory = memories_[buffer];
    const int64_t numbers = memory.dims.back();
    int64_t begin = 0;
    for (size_t i = 0; i < index.size(); ++i)
      begin = begin * memory.dims[i] + index[i].at(indices_);
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
        all.push_back(memory.elements[at].real);
      }
    return all;
  }

  Result<ScalarNumber*> group_sum(const GroupProduct& s, int64_t thread, int64_t number) {
    std::vector<IndexExpr> index = s.sums_index;
    index.push_back(number / 4);
    return factor(s.sums, std::move(index), thread, {0, number % 4});
  }

  static double part_of(DType numbers, uint32_t word, int part) {
    if (numbers == DType::f32) return std::bit_cast<float>(word & kFactorBits);
    const uint32_t half = part == 0 ? word & 0xffff : word >> 16;
    if (numbers == DType::bf16) return std::bit_cast<float>(half << 16);
    return decode_real(DType::f16, half);
  }

  // The threads of a block, warp by warp in any order.
  Status run_threads(const Loop& s) {
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

  // Notes where a thread of a block accesses memory: this many neighbours.
  void note(const void* statement, BufferId buffer, size_t element, int64_t count = 1) {
    if (block_threads_ > 0) counter_.note(statement, buffer, element, count);
  }

  Status execute(const Loop& s) {
    if (s.exec == Exec::threads && block_threads_ > 0) return run_threads(s);
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    const int64_t extent = index.high.value();
    const bool in_order = s.exec == Exec::loop &&
                          (s.carried.empty() || std::ranges::any_of(s.carried, [](const Carry& c) {
                             return !c.combine.has_value();
                           }));
    for (const Carry& carry : s.carried) scalars_[carry.inside] = scalars_[carry.initial];
    const int64_t first = index.span ? std::max<int64_t>(index.span->first.at(indices_), 0) : 0;
    const int64_t end = index.span ? std::min(index.span->end.at(indices_), extent) : extent;
    for (int64_t trip = first; trip < end; ++trip) {
      indices_[static_cast<size_t>(s.index)] =
          options_.backwards && !in_order ? first + end - 1 - trip : trip;
      if (s.exec == Exec::threads) {
        ++trip_;
        forget_scratch();
      }
      if (s.exec == Exec::blocks) start_block();
      HONE_TRY(execute(s.body));
      if (s.exec == Exec::blocks) HONE_TRY(no_copies_left());
      std::vector<ScalarNumber> next;
      for (const Carry& carry : s.carried) next.push_back(scalars_[carry.next]);
      for (size_t i = 0; i < next.size(); ++i) scalars_[s.carried[i].inside] = next[i];
    }
    for (const Carry& carry : s.carried) scalars_[carry.result] = scalars_[carry.inside];
    return {};
  }

  // Other blocks run at the same time: barriers are for one.
  void start_block() {
    ++block_;
    epoch_ = 0;
    mbarriers_.clear();
    for (size_t i = 0; i < memories_.size(); ++i) {
      const BufferRole role = program_.buffers[i].role;
      if (role == BufferRole::block || role == BufferRole::own) forget(memories_[i]);
    }
  }

  void forget_scratch() {
    for (size_t i = 0; i < memories_.size(); ++i)
      if (program_.buffers[i].role == BufferRole::scratch) forget(memories_[i]);
  }

  const TileProgram& program_;
  const InterpretOptions& options_;
  std::vector<BufferState> memories_;
  std::vector<ScalarNumber> scalars_;
  std::vector<int64_t> indices_;
  std::vector<std::optional<BufferId>> output_in_;  // by input: the output that may lie in it
  std::map<const Compute*, ScalarOp> ops_;
  std::vector<ScalarNumber> operands_;
  uint32_t trip_ = 0;  // of the threads loops of the phase, counted over all of them
  // In a phase of blocks loops a trip is an agent: a thread between two barriers.
  struct Agent {
    uint32_t block = 0, epoch = 0, thread = 0;
  };
  std::vector<Agent> agents_;
  int64_t block_threads_ = 0;  // 0: the phase has no blocks loops
  uint32_t block_ = 0, epoch_ = 0;
  int64_t thread_ = 0;
  size_t thread_index_ = 0;  // of the threads loop that a block runs
  struct Copied {
    BufferId buffer = 0;
    size_t element = 0;
    int64_t thread = 0, group = 0;
  };
  std::vector<Copied> copies_;                           // under way
  int64_t groups_ = 0;                                   // of copies that are closed
  static constexpr uint32_t kUnits = uint32_t{1} << 16;  // no threads of a block
  std::vector<Box> boxes_;                               // that are copied
  std::map<MbarrierPlace, Mbarrier> mbarriers_;          // of the block
  AccessCounter counter_;
  Rng rng_;
  int64_t statements_ = 0;
};

}  // namespace

Result<std::vector<Tensor>> interpret(const TileProgram& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options) {
  Result<std::vector<Tensor>> results = Interpreter(program, options).run(inputs);
  if (results.ok()) return results;
  return std::move(results).error().within(fmt::format("tiles '{}'", program.name));
}

}  // namespace hone
