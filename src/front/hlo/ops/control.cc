#include <algorithm>

#include "base/text.h"
#include "front/hlo/counted.h"
#include "front/hlo/importer.h"
#include "front/hlo/probes.h"

// Loops and branches. Their regions read values from around them, but the regions of hone are
// closed: such values become arguments.

namespace hone::hlo {
namespace {

// Things that regions read from outside: the values that are carried in, and constants, which are
// made anew inside.
class Outside {
 public:
  Outside(Node& n, std::span<const Body> bodies) : importer_(n.importer()), frame_(n.frame()) {
    for (const Body& body : bodies) {
      if (body.region == &body.function->body) continue;  // of a function: it sees nothing
      for (const uint32_t id : free_values(*body.region)) {
        const auto found = frame_.held->find(id);
        if (found == frame_.held->end() || !seen_.emplace(id, found->second).second) continue;
        order_.push_back(id);
        std::vector<Value> leaves;
        append_leaves(found->second, leaves);
        for (const Value& leaf : leaves)
          if (!is_constant(leaf) && !sizes_of(leaf)) carried_.push_back(leaf);
      }
    }
  }

  const std::vector<Value>& carried() const { return carried_; }

  // In a graph of its own, whose parameters the values are.
  std::unordered_map<uint32_t, Held> inside(Builder& inner, std::span<const Value> values) const {
    std::unordered_map<uint32_t, Held> held;
    for (const uint32_t id : order_) held.emplace(id, copied(inner, seen_.at(id), values));
    return held;
  }

 private:
  static NodeId producer(Value v) { return v.builder().graph().producer(v.id()); }
  static bool is_constant(Value v) {
    return v.builder().graph().opcode(producer(v)) == Opcode::constant;
  }

  // A few integers that are sizes are computed anew inside, where ops may need to know them.
  std::optional<Dims> sizes_of(Value v) const {
    constexpr int64_t kMost = kMaxRank;
    if (!importer_.has_open_sizes() || !is_integer(v.dtype()) || !v.type().is_static() ||
        v.type().static_elements() > kMost || v.rank() > 1)
      return std::nullopt;
    std::optional<Dims> sizes = importer_.known_dims(v.builder(), v);
    if (!sizes || std::ranges::all_of(*sizes, [](Dim size) { return size.is_static(); }))
      return std::nullopt;
    return sizes;
  }

  static Value of_sizes(Builder& inner, const Dims& sizes, Type type) {
    std::vector<Value> parts;
    for (const Dim size : sizes)
      parts.push_back(reshape(cast(size_value(inner, size), type.dtype()), {1}));
    return reshape(concat(parts, 0), Dims(type.dims().begin(), type.dims().end()));
  }

  Held copied(Builder& inner, const Held& outer, std::span<const Value>& values) const {
    Held made = {.is_tuple = outer.is_tuple};
    if (outer.value && is_constant(outer.value)) {
      made.value = inner.constant(outer.value.builder().graph().constant(producer(outer.value)));
    } else if (const auto sizes = outer.value ? sizes_of(outer.value) : std::nullopt) {
      made.value = of_sizes(inner, *sizes, outer.value.type());
    } else if (outer.value) {
      made.value = values.front();
      values = values.subspan(1);
    }
    for (const Held& part : outer.parts) made.parts.push_back(copied(inner, part, values));
    return made;
  }

  Importer& importer_;
  Frame& frame_;
  std::vector<uint32_t> order_;
  std::unordered_map<uint32_t, Held> seen_;
  std::vector<Value> carried_;
};

std::vector<Value> leaves_of(std::span<const Held> all) {
  std::vector<Value> leaves;
  for (const Held& one : all) append_leaves(one, leaves);
  return leaves;
}

// Runs a body in a graph of its own. The first values are its arguments, of these structures.
std::vector<Value> run_inside(Node& n, Builder& inner, const Body& body,
                              std::span<const Held> shapes, const Outside& outside,
                              std::span<const Value> arguments, std::span<const Value> carried) {
  Importer::leave_on_failure(inner);
  std::unordered_map<uint32_t, Held> held = outside.inside(inner, carried);
  std::vector<Held> given;
  for (const Held& shape : shapes) given.push_back(from_leaves(shape, arguments));
  Frame frame = {&inner, n.frame().function, &held, n.frame().lifted};
  std::vector<Value> results = leaves_of(n.importer().call(frame, body, std::move(given)));
  n.importer().keep_shardings(inner);
  return results;
}

std::vector<Value> joined(std::span<const Value> a, std::span<const Value> b) {
  std::vector<Value> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

std::vector<Held> held_operands(Node& n, size_t first) {
  std::vector<Held> all;
  for (size_t i = first; i < n.instruction().operands.size(); ++i) all.push_back(n.held(i));
  return all;
}

struct Branches {
  std::vector<Body> bodies;
  std::vector<std::vector<Held>> arguments;  // of each
};

// One branch after the other: if it is number k, else the next one. The last one takes what is
// left.
std::vector<Value> choose(Node& n, Builder& b, const Branches& branches, const Outside& outside,
                          size_t k, Value number, std::span<const Value> values) {
  const auto take = [&](Builder& inner, std::span<const Value> all) {
    size_t first = 0;
    for (size_t i = 0; i < k; ++i) first += leaves_of(branches.arguments[i]).size();
    const size_t count = leaves_of(branches.arguments[k]).size();
    const size_t carried = all.size() - outside.carried().size();
    return run_inside(n, inner, branches.bodies[k], branches.arguments[k], outside,
                      all.subspan(first, count), all.subspan(carried));
  };
  if (k + 1 == branches.bodies.size()) return take(b, values);
  const Value here = compare("eq", number, static_cast<double>(k));
  const std::vector<Value> arguments = joined(std::vector<Value>{number}, values);
  return if_else(
      here, arguments,
      [&](Builder& inner, std::span<const Value> in) { return take(inner, in.subspan(1)); },
      [&](Builder& inner, std::span<const Value> in) {
        Importer::leave_on_failure(inner);
        return choose(n, inner, branches, outside, k + 1, in[0], in.subspan(1));
      });
}

}  // namespace

std::vector<Value> map_nothing(Node&) { return {}; }

std::vector<Value> map_loop(Node& n) {
  const Body bodies[] = {n.body(0, "condition"), n.body(1, "body")};
  const Outside outside(n, bodies);
  const std::vector<Held> shapes = held_operands(n, 0);
  const std::vector<Value> state = n.operands();
  for (const Body& body : bodies)
    if (body.region->parameters.size() != shapes.size())
      n.refuse(bad_input("a region of the loop takes {} values, but the state has {}",
                         body.region->parameters.size(), shapes.size()));
  const LoopProbes probes(n, bodies[1]);
  const size_t count = state.size();
  const size_t carried = outside.carried().size();
  const std::vector<Value> initial = joined(joined(state, outside.carried()), probes.initial());
  if (initial.empty()) n.refuse(unsupported("a loop without a state is not handled"));
  std::vector<Type> types;
  for (const Value& one : initial) types.push_back(one.type());
  Builder& b = n.builder();
  const GraphRef condition =
      b.region("condition", types, [&](Builder& inner, std::span<const Value> in) {
        return run_inside(n, inner, bodies[0], shapes, outside, in.first(count),
                          in.subspan(count, carried));
      });
  const GraphRef body = b.region("body", types, [&](Builder& inner, std::span<const Value> in) {
    const std::vector<Value> next = run_inside(n, inner, bodies[1], shapes, outside,
                                               in.first(count), in.subspan(count, carried));
    return joined(joined(next, in.subspan(count, carried)),
                  probes.after(inner, in.subspan(count + carried)));
  });
  std::optional<std::vector<Value>> counted = as_scan(n, initial, *condition, *body);
  std::vector<Value> results =
      counted ? *counted : b.ops(Opcode::while_, initial, {}, {condition, body});
  probes.end(std::span(results).subspan(count + carried));
  results.resize(count);
  return results;
}

std::vector<Value> map_conditional(Node& n) {
  constexpr size_t kMostBranches = 64;
  Branches branches;
  const Instruction& instruction = n.instruction();
  const Attribute* listed = n.find("branch_computations");
  const bool names = n.find("true_computation") != nullptr;
  const size_t count = names               ? 2
                       : listed != nullptr ? listed->items.size()
                                           : instruction.regions.size();
  if (count == 0 || count > kMostBranches)
    n.refuse(over_limit("it has {} branches; 1 to {} are handled", count, kMostBranches));
  for (size_t i = 0; i < count; ++i) {
    if (names)
      branches.bodies.push_back(n.body(count, i == 0 ? "true_computation" : "false_computation"));
    else
      branches.bodies.push_back(n.body(i, "branch_computations"));
    branches.arguments.emplace_back();
    if (listed != nullptr || names) branches.arguments.back() = {n.held(i + 1)};
    if (branches.bodies[i].region->parameters.size() != branches.arguments[i].size())
      n.refuse(
          bad_input("branch {} takes {} values", i, branches.bodies[i].region->parameters.size()));
  }
  if (n.held(0).is_tuple || n.in(0).rank() != 0) n.refuse(bad_input("the choice must be a scalar"));
  Value number = n.in(0);
  // True takes the first branch.
  if (is_bool(number.dtype()))
    number = select(number, n.builder().scalar(DType::i32, 0), n.builder().scalar(DType::i32, 1));
  const Outside outside(n, branches.bodies);
  std::vector<Value> values;
  for (const std::vector<Held>& each : branches.arguments) values = joined(values, leaves_of(each));
  values = joined(values, outside.carried());
  return choose(n, n.builder(), branches, outside, 0, number, values);
}

}  // namespace hone::hlo
