#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"

// Random bits as a function of a state: Threefry and Philox, with the numbers that XLA gives.

namespace hone::hlo {
namespace {

Value word_of_bits(Builder& b, uint64_t number) {
  return b.constant(
      Tensor::from_integers(Type::scalar(DType::u64), Ints{static_cast<int64_t>(number)}));
}

Value word_of_state(Value state, int64_t i) { return reshape(slice(state, 0, i, i + 1), {}); }

Value low_half(Value x) { return binary(Opcode::and_, x, word_of_bits(x.builder(), 0xFFFFFFFF)); }
Value high_half(Value x) { return binary(Opcode::shift_right, x, word_of_bits(x.builder(), 32)); }

// Both halves, of 32 bits each, as one.
Value joined_halves(Value low, Value high) {
  return binary(Opcode::or_, low,
                binary(Opcode::shift_left, high, word_of_bits(low.builder(), 32)));
}

// The bits as integers of a type that may be narrower or signed.
Value as_stated(Value bits, DType type) {
  const DType pattern = pattern_type(type);
  const Value narrow = cast(bits, pattern);
  return pattern == type ? narrow
                         : narrow.builder().op(Opcode::bitcast, {narrow}, {{"dtype", type}});
}

Value row_of_state(std::span<const Value> words) {
  std::vector<Value> parts;
  for (const Value word : words) parts.push_back(reshape(word, {1}));
  return concat(parts, 0);
}

struct RandomBits {
  Value next_state;
  Value bits;
};

// The dim along which two words of a block alternate: the first even one, else the largest.
size_t split_dim(const Ints& dims) {
  const auto even = std::ranges::find_if(dims, [](int64_t size) { return size % 2 == 0; });
  const auto found = even != dims.end() ? even : std::ranges::max_element(dims);
  return static_cast<size_t>(found - dims.begin());
}

// Element i of 64 bits encrypts counter + i. Smaller ones take the two words of a block apart.
RandomBits by_threefry(Value state, Type type) {
  Builder& b = state.builder();
  const Value key = word_of_state(state, 0), counter = word_of_state(state, 1);
  const auto words = [&](int64_t blocks) {
    return b.op(Opcode::rng_bits, {key, counter},
                {{"dtype", DType::u32}, {"dims", Dims{blocks, 2}}});
  };
  const auto after = [&](int64_t blocks) {
    const Value next[] = {key, counter + word_of_bits(b, static_cast<uint64_t>(blocks))};
    return row_of_state(next);
  };
  const Dims dims(type.dims().begin(), type.dims().end());
  if (bits(type.dtype()) == 64) {
    const int64_t count = type.static_elements();
    const Value wide = cast(words(count), DType::u64);
    const Value both = joined_halves(slice(wide, 1, 0, 1), slice(wide, 1, 1, 2));
    return {after(count), as_stated(reshape(both, dims), type.dtype())};
  }
  Ints halved = type.static_dims();
  if (halved.empty()) halved = {1};
  const size_t at = split_dim(halved);
  const int64_t whole = halved[at];
  halved[at] = (whole + 1) / 2;
  int64_t blocks = 1;
  for (const int64_t size : halved) blocks *= size;
  // [..., half, ..., 2] to [..., half, 2, ...]
  Dims apart(halved.begin(), halved.end()), together = apart;
  apart.emplace_back(2);
  together[at] = 2 * halved[at];
  Ints order;
  for (size_t i = 0; i < halved.size(); ++i) {
    order.push_back(static_cast<int64_t>(i));
    if (i == at) order.push_back(static_cast<int64_t>(halved.size()));
  }
  const Value alternating = reshape(transpose(reshape(words(blocks), apart), order), together);
  const Value cut = slice(alternating, static_cast<int>(at), 0, whole);
  return {after(blocks), as_stated(reshape(cut, dims), type.dtype())};
}

// Four words of 32 bits for each block: ten rounds of Philox-4x32 on a counter of 128 bits. Its
// high half is the third word of the state, or the key if there are two.
RandomBits by_philox(Value state, Type type) {
  Builder& b = state.builder();
  const bool has_high = state.type().static_elements() == 3;
  const Value key = word_of_state(state, 0), low = word_of_state(state, 1);
  const Value high = has_high ? word_of_state(state, 2) : key;
  const int64_t count = type.static_elements();
  const int64_t words = bits(type.dtype()) == 64 ? 2 * count : count;
  const int64_t blocks = (words + 3) / 4;
  const auto carried = [&](Value sum) { return cast(compare("lt", sum, low), DType::u64); };
  const Value lows = low + iota(b, DType::u64, {blocks}, 0);
  const Value highs = high + carried(lows);
  Value x0 = low_half(lows), x1 = high_half(lows), x2 = low_half(highs), x3 = high_half(highs);
  Value key0 = low_half(key), key1 = high_half(key);
  for (int round = 0; round < 10; ++round) {
    const Value first = x0 * word_of_bits(b, 0xD2511F53), second = x2 * word_of_bits(b, 0xCD9E8D57);
    x0 = binary(Opcode::xor_, binary(Opcode::xor_, high_half(second), x1), key0);
    x2 = binary(Opcode::xor_, binary(Opcode::xor_, high_half(first), x3), key1);
    x1 = low_half(second);
    x3 = low_half(first);
    key0 = low_half(key0 + word_of_bits(b, 0x9E3779B9));
    key1 = low_half(key1 + word_of_bits(b, 0xBB67AE85));
  }
  std::vector<Value> columns;
  for (const Value x : {x0, x1, x2, x3}) columns.push_back(reshape(x, {blocks, 1}));
  Value made = reshape(concat(columns, 1), {4 * blocks});
  if (bits(type.dtype()) == 64) {
    const Value pairs = reshape(made, {2 * blocks, 2});
    made = reshape(joined_halves(slice(pairs, 1, 0, 1), slice(pairs, 1, 1, 2)), {2 * blocks});
  }
  made = reshape(slice(made, 0, 0, count), Dims(type.dims().begin(), type.dims().end()));
  const Value next = low + word_of_bits(b, static_cast<uint64_t>(blocks));
  std::vector<Value> state_words = {key, next};
  if (has_high) state_words.push_back(high + carried(next));
  return {row_of_state(state_words), as_stated(made, type.dtype())};
}

}  // namespace

std::vector<Value> map_rng_bit_generator(Node& n) {
  n.need(1);
  const Value state = n.in();
  std::string_view algorithm = n.word("rng_algorithm|algorithm", "DEFAULT");
  algorithm.remove_prefix(std::min(algorithm.find_last_of(' ') + 1, algorithm.size()));
  const Type type = n.static_result(1);
  const bool threefry = algorithm == "THREE_FRY" || algorithm == "rng_three_fry";
  const bool is_state = state.type() == Type::get(DType::u64, {2}) ||
                        (!threefry && state.type() == Type::get(DType::u64, {3}));
  if (!is_state)
    n.refuse(bad_input("the state must be u64[2]{}, but is {}", threefry ? "" : " or u64[3]",
                       state.type().to_string()));
  if (!is_integer(type.dtype()) || is_storage_only(type.dtype()))
    n.refuse(unsupported("of {} is not handled; of integers it is", name(type.dtype())));
  constexpr int64_t kMostBits = int64_t{1} << 34;
  if (type.static_elements() > kMostBits)
    n.refuse(over_limit("there are more than {} random numbers", kMostBits));
  // XLA takes Philox on CPUs, if the program leaves the choice.
  const RandomBits made = threefry ? by_threefry(state, type) : by_philox(state, type);
  return {made.next_state, made.bits};
}

}  // namespace hone::hlo
