#include "program/tiles/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "program/tiles/calling.h"
#include "program/tiles/interpreter.h"

namespace hone::tile {

Interpreter::Interpreter(const TileProgram& program, const InterpretOptions& options)
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

Result<std::vector<Tensor>> Interpreter::run(std::span<const Tensor> inputs) {
  for (const TileBuffer& buffer : program_.buffers) {
    if (!buffer.type.is_static())
      return unsupported("@{} is {}; sizes must be numbers", buffer.name, buffer.type.to_string());
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

void Interpreter::forget(BufferState& memory) {
  memory.is_known.assign(memory.is_known.size(), false);
  memory.is_unfenced.assign(memory.is_unfenced.size(), false);
  memory.next_phase();
}

Status Interpreter::read(std::span<const Tensor> inputs) {
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

Result<std::vector<Tensor>> Interpreter::outputs() const {
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
    tensors.push_back(is_real(buffer.type.dtype()) ? Tensor::from_reals(buffer.type, reals)
                                                   : Tensor::from_integers(buffer.type, integers));
  }
  return tensors;
}

// The element that an access is to; none: a guard does not hold.
std::optional<size_t> Interpreter::element(const std::vector<IndexExpr>& index,
                                           const std::vector<Guard>& guards,
                                           const BufferState& memory) const {
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

int64_t Interpreter::most_threads() const {
  int64_t most = 0;
  for (const Loop& phase : program_.phases) most = std::max(most, block_threads(phase, program_));
  return most;
}

bool Interpreter::is_contended(BufferId buffer, uint32_t other) const {
  const BufferRole role = program_.buffers[buffer].role;
  if (role == BufferRole::scratch || role == BufferRole::own || other == kNobody) return false;
  if (block_threads_ == 0) return other != trip_;
  const Agent &a = agents_[other], &b = agents_[trip_];
  return a.block != b.block || (a.epoch == b.epoch && a.thread != b.thread);
}

Error Interpreter::contention(BufferId buffer, size_t element) const {
  return bad_input("two trips of a parallel loop touch element {} of @{}", element,
                   program_.buffers[buffer].name);
}

Status Interpreter::execute(const Block& body) {
  statements_ += std::max<int64_t>(std::ssize(body), 1);  // trips without any take time, too
  if (statements_ > options_.max_statements)
    return over_limit("more than {} statements", options_.max_statements);
  for (const Statement& statement : body)
    HONE_TRY(std::visit([&](const auto& s) { return execute(s); }, statement.kind));
  return {};
}

Status Interpreter::execute(const Number& s) {
  if (const double* real = std::get_if<double>(&s.value))
    scalars_[s.result] = {round_to(program_.scalars[s.result], *real), 0};
  else
    scalars_[s.result] = {0, wrap_to(program_.scalars[s.result], std::get<int64_t>(s.value))};
  return {};
}

Status Interpreter::execute(const Position& s) {
  scalars_[s.result] = {0, wrap_to(program_.scalars[s.result], s.value.at(indices_))};
  return {};
}

Status Interpreter::execute(const Compute& s) {
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

Status Interpreter::execute(const Fma& s) {
  const DType dtype = program_.scalars[s.result];
  const double product = scalars_[s.a].real * scalars_[s.b].real;
  scalars_[s.result].real = round_to(dtype, product + scalars_[s.c].real);
  return {};
}

Status Interpreter::execute(const Quad& s) {
  const auto a = static_cast<uint32_t>(scalars_[s.a].integer);
  const auto b = static_cast<uint32_t>(scalars_[s.b].integer);
  int64_t sum = scalars_[s.c].integer;
  for (int shift = 0; shift < 32; shift += 8)
    sum += int64_t{a >> shift & 0xff} * static_cast<int8_t>(b >> shift & 0xff);
  scalars_[s.result].integer = wrap_to(DType::i32, sum);
  return {};
}

Status Interpreter::execute(const Pair& s) {
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

Status Interpreter::execute(const Choose& s) {
  const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
  int64_t value = scalars_[s.value].integer;
  if (program_.scalars[s.value] == DType::u64 && value < 0) value = INT64_MAX;
  indices_[static_cast<size_t>(s.index)] =
      std::clamp(value, index.low.value(), index.high.value() - 1);
  return {};
}

Status Interpreter::execute(const Load& s) {
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
Result<uint32_t> Interpreter::read_word(BufferId buffer, size_t at) {
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

Status Interpreter::read(BufferId buffer, size_t at, ScalarNumber& number) {
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

Status Interpreter::execute(const Store& s) {
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

double Interpreter::half(const ScalarNumber& word, bool is_second) {
  const auto bits = static_cast<uint32_t>(word.integer);
  const double number = std::bit_cast<float>(is_second ? bits & 0xffff0000U : bits << 16);
  return std::fpclassify(static_cast<float>(number)) == FP_SUBNORMAL ? 0 : number;
}

void Interpreter::add_products(const Product& s, const ScalarNumber& lhs, const ScalarNumber& rhs,
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

Status Interpreter::execute(const Product& s) {
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
            const int64_t l = (((a * parts + p) * (depth / 16) + w / 16) * rows + i) * 16 + w % 16;
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

// Notes where a thread of a block accesses memory: this many neighbours.
void Interpreter::note(const void* statement, BufferId buffer, size_t element, int64_t count) {
  if (block_threads_ > 0) counter_.note(statement, buffer, element, count);
}

Status Interpreter::execute(const Loop& s) {
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

void Interpreter::forget_scratch() {
  for (size_t i = 0; i < memories_.size(); ++i)
    if (program_.buffers[i].role == BufferRole::scratch) forget(memories_[i]);
}

}  // namespace hone::tile

namespace hone {

Result<std::vector<Tensor>> interpret(const TileProgram& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options) {
  Result<std::vector<Tensor>> results = tile::Interpreter(program, options).run(inputs);
  if (results.ok()) return results;
  return std::move(results).error().within(fmt::format("tiles '{}'", program.name));
}

}  // namespace hone
