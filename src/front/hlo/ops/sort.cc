#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "front/hlo/bodies.h"
#include "front/hlo/importer.h"

// Sorting with a comparator of any form. The known ones, lexicographic orders of some operands,
// become hone's sort.

namespace hone::hlo {
namespace {

// An operand that decides, and how.
struct Key {
  uint32_t operand = 0;
  bool descending = false;
  bool total = false;  // reals by their total order, in which zeros and NaN of both signs differ
};
using Keys = std::vector<Key>;  // the first one first

// Reads a comparator of 2N scalars, a0 b0 a1 b1.
class Comparator {
 public:
  explicit Comparator(const Body& body) : region_(*body.region) {
    add(region_, false);
    // Constants may stand outside, where other tools have moved them.
    if (!free_values(region_).empty()) add(body.function->body, true);
  }

  std::optional<Keys> keys() const {
    Keys keys;
    if (region_.results.size() != 1 || !before(region_.results[0], keys)) return std::nullopt;
    return keys;
  }

 private:
  void add(const Region& region, bool constants_alone) {
    for (const Instruction& one : region.instructions)
      if (one.results.size() == 1 && (!constants_alone || one.name == "stablehlo.constant"))
        by_result_.emplace(one.first_result, &one);
  }

  const Instruction* made_by(uint32_t value, std::string_view name) const {
    const auto found = by_result_.find(value);
    return found != by_result_.end() && found->second->name == name ? found->second : nullptr;
  }

  static bool has_word(const Instruction& compare, std::string_view word) {
    if (std::ranges::find(compare.words, word) != compare.words.end()) return true;
    return std::ranges::any_of(
        compare.attributes, [&](const auto& attribute) { return attribute.second.text == word; });
  }

  // A comparison of the two sides of one operand.
  struct Side {
    uint32_t parameter;
    bool canonical;  // -0 made 0, and any NaN one NaN
  };
  std::optional<Side> side(uint32_t value) const {
    const uint32_t first = region_.first_parameter;
    if (value >= first && value < first + region_.parameters.size())
      return Side{value - first, false};
    // select(x != x, nan, select(x == 0, 0, x)), as JAX writes it
    const Instruction* outer = made_by(value, "stablehlo.select");
    if (outer == nullptr || outer->operands.size() != 3) return std::nullopt;
    const Instruction* unequal = made_by(outer->operands[0], "stablehlo.compare");
    const Instruction* inner = made_by(outer->operands[2], "stablehlo.select");
    if (unequal == nullptr || inner == nullptr || inner->operands.size() != 3) return std::nullopt;
    const Instruction* equal = made_by(inner->operands[0], "stablehlo.compare");
    const uint32_t x = inner->operands[2];
    const bool fits = equal != nullptr && has_word(*unequal, "NE") && has_word(*equal, "EQ") &&
                      unequal->operands == std::vector<uint32_t>{x, x} &&
                      equal->operands.size() == 2 && equal->operands[0] == x &&
                      is_zero(equal->operands[1]) && is_zero(inner->operands[1]) &&
                      made_by(outer->operands[1], "stablehlo.constant") != nullptr;
    if (!fits || x < first || x >= first + region_.parameters.size()) return std::nullopt;
    return Side{x - first, true};
  }

  bool is_zero(uint32_t value) const {
    const Instruction* constant = made_by(value, "stablehlo.constant");
    if (constant == nullptr || constant->attributes.empty()) return false;
    const std::string_view text = constant->attributes[0].second.text;
    const Result<double> number = parse_double(text);
    return number.ok() && *number == 0;
  }

  // The key that a comparison with this word compares. Plain comparisons of reals order no NaN:
  // there any place is right, and hone's sort puts them last.
  std::optional<Key> compared(uint32_t value, std::string_view word) const {
    const Instruction* compare = made_by(value, "stablehlo.compare");
    if (compare == nullptr || !has_word(*compare, word) || compare->operands.size() != 2)
      return std::nullopt;
    const std::optional<Side> left = side(compare->operands[0]);
    const std::optional<Side> right = side(compare->operands[1]);
    if (!left || !right || left->parameter % 2 != 0 || right->parameter != left->parameter + 1)
      return std::nullopt;
    const ValueType& type = region_.parameters[left->parameter];
    if (type.kind != ValueType::Kind::tensor) return std::nullopt;
    const bool is_of_reals = is_real(type.type.dtype());
    if (is_of_reals && left->canonical != right->canonical) return std::nullopt;
    return Key{.operand = left->parameter / 2,
               .descending = word == "GT",
               .total = is_of_reals && !left->canonical && has_word(*compare, "TOTALORDER")};
  }

  // lt(a, b)
  std::optional<Key> strictly(uint32_t value) const {
    const std::optional<Key> ascending = compared(value, "LT");
    return ascending ? ascending : compared(value, "GT");
  }

  bool is_tie(uint32_t value, const Key& key) const {
    const std::optional<Key> tie = compared(value, "EQ");
    return tie && tie->operand == key.operand && tie->total == key.total;
  }

  // lt(a, b); lt(a, b) or (eq(a, b) and the rest); or eq(a, b) ? the rest : lt(a, b)
  bool before(uint32_t value, Keys& keys) const {
    if (const std::optional<Key> key = strictly(value)) {
      keys.push_back(*key);
      return true;
    }
    if (keys.size() > 16) return false;
    if (const Instruction* choice = made_by(value, "stablehlo.select");
        choice != nullptr && choice->operands.size() == 3) {
      const std::optional<Key> key = strictly(choice->operands[2]);
      return key && is_tie(choice->operands[0], *key) && goes_on(keys, *key, choice->operands[1]);
    }
    const Instruction* either = made_by(value, "stablehlo.or");
    if (either == nullptr || either->operands.size() != 2) return false;
    for (const size_t first : {size_t{0}, size_t{1}}) {
      const std::optional<Key> key = strictly(either->operands[first]);
      const Instruction* rest = made_by(either->operands[1 - first], "stablehlo.and");
      if (!key || rest == nullptr || rest->operands.size() != 2) continue;
      for (const size_t equal : {size_t{0}, size_t{1}})
        if (is_tie(rest->operands[equal], *key) && goes_on(keys, *key, rest->operands[1 - equal]))
          return true;
    }
    return false;
  }

  // The key, then those of the rest.
  bool goes_on(Keys& keys, const Key& key, uint32_t rest) const {
    Keys whole = keys;
    whole.push_back(key);
    if (!before(rest, whole)) return false;
    keys = std::move(whole);
    return true;
  }

  const Region& region_;
  std::unordered_map<uint32_t, const Instruction*> by_result_;
};

// Numbers whose ascending order is the descending one of these.
Value inverted(Value x) {
  if (!is_real(x.dtype())) return unary(Opcode::not_, x);
  const Value plain =
      total_order(select(compare("eq", x, 0.0), x.builder().scalar(x.dtype(), 0), x));
  const auto greatest = integer_limits(plain.dtype()).highest;
  const Value nan =
      x.builder().constant(Tensor::from_integers(Type::scalar(plain.dtype()), Ints{greatest}));
  return unary(Opcode::not_, select(compare("ne", x, x), nan, plain));
}

// Hone's sort has one direction: where keys differ in theirs, all become ascending.
std::vector<Value> by_keys(Node& n, const Keys& keys, int64_t axis) {
  const bool mixed = std::ranges::any_of(
      keys, [&](const Key& key) { return key.descending != keys[0].descending; });
  std::vector<Value> operands;
  for (const Key& key : keys) {
    const Value x = key.total ? total_order(n.in(key.operand)) : n.in(key.operand);
    operands.push_back(mixed && key.descending ? inverted(x) : x);
  }
  operands.insert(operands.end(), n.operands().begin(), n.operands().end());
  std::vector<Value> sorted = n.builder().ops(Opcode::sort, operands,
                                              {{"axis", axis},
                                               {"descending", !mixed && keys[0].descending},
                                               {"keys", static_cast<int64_t>(keys.size())}});
  return {sorted.begin() + static_cast<int64_t>(keys.size()), sorted.end()};
}

Value shifted(Value x, int axis, int64_t size, bool to_next) {
  return to_next ? concat({slice(x, axis, 1, size), slice(x, axis, size - 1, size)}, axis)
                 : concat({slice(x, axis, 0, 1), slice(x, axis, 0, size - 1)}, axis);
}

// Any comparator: neighbours change places, even pairs and odd pairs in turns, as often as there
// are elements. Only a right one that comes before its left one moves, so the order is stable.
std::vector<Value> by_neighbours(Node& n, const Body& body, int axis) {
  const Value first = n.in();
  const Dims dims = first.dims();
  const int64_t size = first.type().static_dims()[static_cast<size_t>(axis)];
  if (size < 2) return n.operands();
  const Value steps = iota(n.builder(), DType::i64, {size}, 0);
  return scan(n.operands(), std::vector<Value>{steps}, [&](Builder& b, std::span<const Value> in) {
    const std::span<const Value> state = in.first(in.size() - 1);
    std::vector<Value> here_next, before_here, nexts, befores;
    for (const Value& x : state) {
      nexts.push_back(shifted(x, axis, size, true));
      befores.push_back(shifted(x, axis, size, false));
      here_next.insert(here_next.end(), {nexts.back(), x});
      before_here.insert(before_here.end(), {x, befores.back()});
    }
    const Value place = iota(b, DType::i64, dims, axis);
    const Value turn = binary(Opcode::rem, place + in.back(), 2.0);
    const Value is_left = binary(Opcode::and_, compare("eq", turn, 0.0),
                                 compare("lt", place, static_cast<double>(size - 1)));
    const Value is_right =
        binary(Opcode::and_, compare("eq", turn, 1.0), compare("gt", place, 0.0));
    const std::vector<Value> next_first = n.apply_in(b, body, here_next, dims);
    const std::vector<Value> first_here = n.apply_in(b, body, before_here, dims);
    if (next_first.size() != 1 || !is_bool(next_first[0].dtype()))
      n.refuse(bad_input("the comparator must give one bool"));
    const Value takes_next = binary(Opcode::and_, is_left, next_first[0]);
    const Value takes_before = binary(Opcode::and_, is_right, first_here[0]);
    std::vector<Value> moved;
    for (size_t i = 0; i < state.size(); ++i)
      moved.push_back(select(takes_next, nexts[i], select(takes_before, befores[i], state[i])));
    return moved;
  });
}

}  // namespace

std::vector<Value> map_sort(Node& n) {
  const Body body = n.body(0, "to_apply");
  const size_t count = n.operands().size();
  const int rank = n.in().rank();
  int64_t axis = n.integer("dimension|dimensions", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) n.refuse(bad_input("dim {} is outside of rank {}", axis, rank));
  for (size_t i = 0; i < count; ++i)
    if (n.in(i).dims() != n.in().dims())
      n.refuse(bad_input("the operands 0 and {} differ in shape", i));
  if (body.region->parameters.size() != 2 * count)
    n.refuse(bad_input("the comparator takes {} values, but must take two for each of {} operands",
                       body.region->parameters.size(), count));
  const std::optional<Keys> keys = Comparator(body).keys();
  const bool storage = keys && std::ranges::any_of(*keys, [&](const Key& key) {
                         return is_storage_only(n.in(key.operand).dtype());
                       });
  if (keys && !storage) return by_keys(n, *keys, axis);
  if (!n.in().dim(static_cast<int>(axis)).is_static())
    n.refuse(unsupported("by such a comparator along an open size is not handled"));
  return by_neighbours(n, body, static_cast<int>(axis));
}

// The largest along the last dim, and their places: among equals the lower place comes first.
std::vector<Value> map_top_k(Node& n) {
  n.need(1);
  const Value x = n.in();
  const int64_t k = n.integer("k", -1);
  const bool smallest = n.word("largest") == "false";
  if (x.rank() == 0) n.refuse(bad_input("of a scalar is not defined"));
  const int axis = x.rank() - 1;
  if (k < 0 || k > x.type().static_dims().back())
    n.refuse(bad_input("k is {}, but the last dim has {}", k, x.type().static_dims().back()));
  const Value places = iota(n.builder(), DType::i32, x.dims(), axis);
  const std::vector<Value> sorted = sort(std::vector<Value>{x, places}, axis, !smallest);
  return {slice(sorted[0], axis, 0, k), slice(sorted[1], axis, 0, k)};
}

}  // namespace hone::hlo
