#include <algorithm>
#include <limits>

#include "front/hlo/bodies.h"
#include "front/hlo/importer.h"
#include "ir/reference/evaluate.h"

// Reductions of pairs, a value and its place, that find an extreme: argmax and argmin as the
// exporters write them.

namespace hone::hlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Counts along the axis, from 0.
bool counts_along(Value x, int64_t axis) {
  const Graph& graph = x.builder().graph();
  NodeId node = graph.producer(x.id());
  if (graph.opcode(node) == Opcode::broadcast) {
    if (graph.op(node).ints("map") != Ints{axis}) return false;
    const ValueId inner = graph.operands(node)[0];
    if (graph.type(inner).dim(0) != x.type().dim(static_cast<int>(axis))) return false;
    node = graph.producer(inner);
    axis = 0;
  }
  return graph.opcode(node) == Opcode::iota && graph.op(node).integer("axis") == axis;
}

// Which of two pairs a body picks, where the left place is the lower one.
struct Picks {
  enum class Nans : uint8_t {
    win,      // and stay
    vanish,   // are taken for the least
    restart,  // win, and lose to all that follows
  };
  bool greatest = false;
  bool last = false;  // among equals the right one
  Nans nans = Nans::win;
};

// One trial of a body: the values of both sides, and the side that it picked.
struct Trial {
  double left = 0;
  double right = 0;
  bool is_right = false;

  bool is_nan() const { return left != left || right != right; }
};

// True if the body compares and chooses, and does nothing else.
bool only_orders(const Region& region) {
  constexpr std::string_view kOrders[] = {"stablehlo.compare", "stablehlo.select",
                                          "stablehlo.tuple", "stablehlo.minimum",
                                          "stablehlo.maximum"};
  constexpr std::string_view kOfBools[] = {"stablehlo.and", "stablehlo.or", "stablehlo.xor",
                                           "stablehlo.not"};
  return std::ranges::all_of(region.instructions, [&](const Instruction& one) {
    if (std::ranges::find(kOrders, one.name) != std::ranges::end(kOrders)) return true;
    return std::ranges::find(kOfBools, one.name) != std::ranges::end(kOfBools) &&
           one.results.size() == 1 && one.results[0].kind == ValueType::Kind::tensor &&
           is_bool(one.results[0].type.dtype());
  });
}

// A body that only compares and chooses depends on the order of its operands and on nothing else.
// So all orders of two values and of the places 10 and 20 show what it does. Empty: it picks a
// value without its place, or changes one.
std::vector<Trial> trials(Node& n, const Body& body) {
  constexpr int64_t kLeft = 10, kRight = 20;
  const DType type = n.in(0).dtype();
  std::vector<double> numbers = {1, 2, kLeft, 12, 13, kRight, 25, 26};
  if (is_real(type))
    for (const double special : {0.0, -0.0, -kInfinity, kInfinity, kNan})
      numbers.push_back(special);
  std::vector<Trial> all;
  std::vector<double> left, right;
  for (const double a : numbers)
    for (const double b : numbers) {
      all.push_back({a, b});
      left.push_back(a);
      right.push_back(b);
    }
  const auto count = static_cast<int64_t>(all.size());
  const Type values = Type::get(type, {count});
  const Type places = Type::get(n.in(1).dtype(), {count});
  Builder b("body");
  const std::vector<Value> arguments = {b.parameter("", values), b.parameter("", places),
                                        b.parameter("", values), b.parameter("", places)};
  const std::vector<Value> picked = n.apply_in(b, body, arguments, {count});
  if (picked.size() != 2 || picked[0].type() != values || picked[1].type() != places) return {};
  const Result<Graph> graph = b.finish(picked);
  if (!graph.ok()) return {};
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(values, left), Tensor::from_integers(places, Ints(all.size(), kLeft)),
      Tensor::from_reals(values, right), Tensor::from_integers(places, Ints(all.size(), kRight))};
  const Result<std::vector<Tensor>> results = evaluate(*graph, inputs);
  if (!results.ok()) return {};
  for (int64_t i = 0; i < count; ++i) {
    Trial& trial = all[static_cast<size_t>(i)];
    const int64_t place = (*results)[1].integer_at(i);
    trial.is_right = place == kRight;
    const double want = trial.is_right ? trial.right : trial.left;
    const double got = (*results)[0].real_at(i);
    const bool same = got == want || (got != got && want != want);
    if (!same || (place != kLeft && place != kRight)) return {};
  }
  return all;
}

// Both sides are NaN, the left one alone, or the right one alone.
bool all_pick(std::span<const Trial> trials, bool left_nan, bool right_nan, bool is_right) {
  return std::ranges::all_of(trials, [&](const Trial& trial) {
    const bool counts = (trial.left != trial.left) == left_nan &&
                        (trial.right != trial.right) == right_nan && trial.is_nan();
    return !counts || trial.is_right == is_right;
  });
}

std::optional<Picks> picks_of(std::span<const Trial> trials, bool is_of_reals) {
  if (trials.empty()) return std::nullopt;
  const auto fit = [&](const Picks& picks) {
    return std::ranges::all_of(trials, [&](const Trial& trial) {
      if (trial.is_nan()) return true;
      if (trial.left == trial.right) return trial.is_right == picks.last;
      return trial.is_right ==
             (picks.greatest ? trial.right > trial.left : trial.right < trial.left);
    });
  };
  for (const bool greatest : {false, true})
    for (const bool last : {false, true}) {
      Picks picks = {.greatest = greatest, .last = last};
      if (!fit(picks)) continue;
      if (!is_of_reals) return picks;
      if (all_pick(trials, false, true, false)) {
        picks.nans = Picks::Nans::vanish;
        return picks;
      }
      if (!all_pick(trials, false, true, true)) return std::nullopt;
      if (all_pick(trials, true, false, false) && all_pick(trials, true, true, last)) return picks;
      picks.nans = Picks::Nans::restart;
      const bool restarts =
          all_pick(trials, true, false, true) && all_pick(trials, true, true, true);
      return restarts ? std::optional(picks) : std::nullopt;
    }
  return std::nullopt;
}

// The least value of a type, where the greatest is looked for, and the greatest otherwise.
double neutral(const Picks& picks) { return picks.greatest ? -kInfinity : kInfinity; }

std::vector<Value> by_op(Value x, int64_t axis, const Picks& picks, DType place) {
  const std::string kind = picks.greatest ? "max" : "min";
  return {reduce(kind, x, {axis}),
          x.builder().op(Opcode::arg_reduce, {x},
                         {{"kind", kind}, {"axis", axis}, {"last", picks.last}, {"dtype", place}})};
}

// A NaN is taken when it comes, and lost to its successor: what stands after the last one counts.
// Where nothing does, the NaN itself is the result.
struct AfterNans {
  Value masked;    // the least up to the last NaN
  Value last_nan;  // its place; -1: there is none
  Value is_end;    // it stands at the end
};
AfterNans after_nans(Value x, int64_t axis, const Picks& picks, DType place) {
  Builder& b = x.builder();
  const Value places = iota(b, place, x.dims(), static_cast<int>(axis));
  const Value last_nan =
      reduce("max", select(compare("ne", x, x), places, b.scalar(place, -1)), {axis});
  const Value spread = unsqueeze(last_nan, static_cast<int>(axis));
  const Value masked = select(compare("gt", places, broadcast_to(spread, x.dims())), x,
                              b.scalar(x.dtype(), neutral(picks)));
  const auto end = static_cast<double>(x.type().static_dims()[static_cast<size_t>(axis)] - 1);
  return {masked, last_nan, compare("eq", last_nan, end)};
}

}  // namespace

std::vector<Value> extreme_and_place(Node& n, const Body& body, const Ints& axes) {
  const Value x = n.in(0);
  const DType place = n.in(1).dtype();
  const bool fits = axes.size() == 1 && (is_real(x.dtype()) || is_integer(x.dtype())) &&
                    is_integer(place) && !is_storage_only(x.dtype()) && !is_storage_only(place) &&
                    x.type().elements().range().low > 0 && counts_along(n.in(1), axes[0]) &&
                    n.in(2).type() == Type::scalar(x.dtype()) &&
                    n.in(3).type() == Type::scalar(place) && only_orders(*body.region);
  if (!fits) return {};
  const std::optional<Tensor> first = n.known(n.in(2));
  const std::optional<Tensor> first_place = n.known(n.in(3));
  if (!first || !first_place || first_place->integer_at(0) != 0) return {};
  if (is_real(x.dtype()) && first->real_at(0) != first->real_at(0)) return {};
  const std::optional<Picks> picks = picks_of(trials(n, body), is_real(x.dtype()));
  if (!picks) return {};

  // The value to begin with stands to the left of all elements.
  const bool is_neutral = is_identity(picks->greatest ? "max" : "min", *first);
  const auto begun = [&](std::vector<Value> made) {
    if (is_neutral) return made;
    const Dims rest = made[0].dims();
    const std::vector<Value> both = {spread(n.in(2), rest), spread(n.in(3), rest), made[0],
                                     made[1]};
    return n.apply(body, both, &rest);
  };
  switch (picks->nans) {
    case Picks::Nans::win: return begun(by_op(x, axes[0], *picks, place));
    case Picks::Nans::vanish: {
      if (picks->last) return {};  // the last of the least may not be a NaN
      const Value least = x.builder().scalar(x.dtype(), neutral(*picks));
      return begun(by_op(select(compare("ne", x, x), least, x), axes[0], *picks, place));
    }
    case Picks::Nans::restart: break;
  }
  if (!x.type().is_static() || !is_signed(place)) return {};
  const AfterNans after = after_nans(x, axes[0], *picks, place);
  const std::vector<Value> found = by_op(after.masked, axes[0], *picks, place);
  const std::vector<Value> whole = begun(found);
  const Value next = after.last_nan + 1.0;
  const Value is_whole = compare("eq", next, 0.0);
  const Value value = select(is_whole, whole[0], found[0]);
  const Value at = select(is_whole, whole[1], maximum(found[1], next));
  return {select(after.is_end, x.builder().scalar(x.dtype(), kNan), value),
          select(after.is_end, after.last_nan, at)};
}

}  // namespace hone::hlo
