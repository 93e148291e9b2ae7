#include "front/hlo/counted.h"

#include <algorithm>

namespace hone::hlo {
namespace {

std::optional<int64_t> integer_of(const Graph& graph, ValueId v) {
  const NodeId node = graph.producer(v);
  if (graph.opcode(node) != Opcode::constant) return std::nullopt;
  const Tensor& tensor = graph.constant(node);
  if (tensor.elements() != 1 || !is_integer(tensor.dtype())) return std::nullopt;
  return tensor.integer_at(0);
}

// A product of a row and of a value that no trip changes. All trips are one product before the
// loop, whose rows the body takes.
struct Lifted {
  NodeId dot;
  size_t state = 0;  // the stack of the rows
  size_t row = 0;    // its operand that is a row
  Value other = {};  // the other one, outside
};

// The part of a state of the loop in the scan.
struct Role {
  enum class Kind : uint8_t { counter, carried, scanned, stacked };
  Kind kind = Kind::carried;
  bool backward = false;     // the last row first
  std::vector<NodeId> rows;  // scanned: the slices that take a row; stacked: the update
};

class Counted {
 public:
  Counted(Node& n, std::span<const Value> initial, const Graph& condition, const Graph& body)
      : n_(n), initial_(initial), condition_(condition), body_(body), users_(body) {}

  bool counts();
  std::vector<Value> scanned();

 private:
  using Kind = Role::Kind;

  ValueId input(size_t state) const { return body_.inputs()[state]; }
  ValueId output(size_t state) const { return body_.outputs()[state]; }
  bool is_input_alone(ValueId v) const { return std::ranges::count(body_.outputs(), v) == 1; }

  std::optional<bool> backward(ValueId v) const;
  std::optional<bool> row_place(NodeId node, Type stack, Type row, size_t first_start) const;
  Role role_of(size_t state) const;
  std::optional<size_t> state_of_row(ValueId v) const;
  Value outside(ValueId v) const;
  void find_lifted();
  void find_needed();
  bool is_taken(const Role& role) const;
  Value stack(size_t state) const;
  Value product(const Lifted& one) const;
  std::vector<Value> copied(Builder& inner, std::span<const Value> arguments) const;

  Node& n_;
  std::span<const Value> initial_;
  const Graph& condition_;
  const Graph& body_;
  const Users users_;
  size_t counter_ = 0;
  int64_t trips_ = 0;
  std::vector<Role> roles_;
  bool is_backward_ = false;  // all rows are
  bool needs_counter_ = false;
  std::vector<Lifted> lifted_;
  std::vector<bool> given_;   // nodes of the body whose results the scan's body takes as rows
  std::vector<bool> needed_;  // nodes of the body that the scan's body has, too, or is given
};

bool Counted::counts() {
  if (body_.outputs().size() != initial_.size() || condition_.outputs().size() != 1 ||
      condition_.shardings() != nullptr || body_.shardings() != nullptr)
    return false;
  const NodeId test = condition_.producer(condition_.outputs()[0]);
  if (condition_.opcode(test) != Opcode::compare || condition_.op(test).word("direction") != "lt")
    return false;
  const std::optional<int64_t> limit = integer_of(condition_, condition_.operands(test)[1]);
  const auto at = std::ranges::find(condition_.inputs(), condition_.operands(test)[0]);
  if (!limit || *limit < 1 || *limit > INT32_MAX || at == condition_.inputs().end()) return false;
  counter_ = static_cast<size_t>(at - condition_.inputs().begin());
  if (initial_[counter_].rank() != 0) return false;
  trips_ = *limit;

  const Value first = initial_[counter_];
  if (integer_of(first.builder().graph(), first.id()) != 0) return false;
  const NodeId next = body_.producer(output(counter_));
  if (body_.opcode(next) != Opcode::add) return false;
  const std::span<const ValueId> sides = body_.operands(next);
  return (sides[0] == input(counter_) && integer_of(body_, sides[1]) == 1) ||
         (sides[1] == input(counter_) && integer_of(body_, sides[0]) == 1);
}

// True: a value counts from the last row back; false: from the first on. None: it does something
// else. The counter is at least 0, so a choice for negative numbers is none.
std::optional<bool> Counted::backward(ValueId v) const {
  if (v == input(counter_)) return false;
  const NodeId node = body_.producer(v);
  const std::span<const ValueId> in = body_.operands(node);
  switch (body_.opcode(node)) {
    case Opcode::select: {
      const NodeId test = body_.producer(in[0]);
      const bool is_negative =
          body_.opcode(test) == Opcode::compare && body_.op(test).word("direction") == "lt" &&
          body_.operands(test)[0] == in[2] && integer_of(body_, body_.operands(test)[1]) == 0;
      return is_negative ? backward(in[2]) : std::nullopt;
    }
    case Opcode::sub: {
      if (integer_of(body_, in[0]) == trips_ - 1 && backward(in[1]) == false) return true;
      const NodeId inner = body_.producer(in[0]);
      const bool fits = integer_of(body_, in[1]) == 1 && body_.opcode(inner) == Opcode::sub &&
                        integer_of(body_, body_.operands(inner)[0]) == trips_ &&
                        backward(body_.operands(inner)[1]) == false;
      return fits ? std::optional(true) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// Where a slice or an update of one whole row stands, as `backward` tells it.
std::optional<bool> Counted::row_place(NodeId node, Type stack, Type row,
                                       size_t first_start) const {
  if (stack.rank() == 0 || row.rank() != stack.rank() || !stack.dim(0).is(trips_) ||
      !row.dim(0).is(1))
    return std::nullopt;
  const std::span<const ValueId> starts = body_.operands(node).subspan(first_start);
  for (int i = 1; i < stack.rank(); ++i)
    if (stack.dim(i) != row.dim(i) || integer_of(body_, starts[static_cast<size_t>(i)]) != 0)
      return std::nullopt;
  return backward(starts[0]);
}

Role Counted::role_of(size_t state) const {
  if (state == counter_) return {.kind = Kind::counter, .backward = false, .rows = {}};
  const ValueId in = input(state), out = output(state);
  const Type type = body_.type(in);
  const std::span<const NodeId> readers = users_.of(in);
  Role role;
  if (in == out && is_input_alone(in) && !readers.empty()) {
    for (const NodeId reader : readers) {
      if (body_.opcode(reader) != Opcode::dynamic_slice || body_.operands(reader)[0] != in)
        return {};
      const std::optional<bool> place =
          row_place(reader, type, body_.type(body_.result(reader)), 1);
      if (!place || (!role.rows.empty() && *place != role.backward)) return {};
      role.backward = *place;
      role.rows.push_back(reader);
    }
    role.kind = Kind::scanned;
    return role;
  }
  const NodeId update = body_.producer(out);
  const bool is_update = body_.opcode(update) == Opcode::dynamic_update &&
                         body_.operands(update)[0] == in && readers.size() == 1 &&
                         users_.of(out).empty() && is_input_alone(out) && !users_.is_output(in);
  if (!is_update) return {};
  const std::optional<bool> place =
      row_place(update, type, body_.type(body_.operands(update)[1]), 2);
  if (!place) return {};
  return {.kind = Kind::stacked, .backward = *place, .rows = {update}};
}

// The stack whose row this is, perhaps in another shape.
std::optional<size_t> Counted::state_of_row(ValueId v) const {
  NodeId node = body_.producer(v);
  while (body_.opcode(node) == Opcode::reshape) node = body_.producer(body_.operands(node)[0]);
  for (size_t i = 0; i < roles_.size(); ++i)
    if (roles_[i].kind == Kind::scanned && std::ranges::count(roles_[i].rows, node) > 0) return i;
  return std::nullopt;
}

// The value before the loop, if it is the same in all trips.
Value Counted::outside(ValueId v) const {
  const NodeId node = body_.producer(v);
  if (body_.opcode(node) == Opcode::constant) return n_.builder().constant(body_.constant(node));
  for (size_t i = 0; i < roles_.size(); ++i)
    if (v == input(i) && v == output(i) && roles_[i].kind == Kind::carried) return initial_[i];
  return {};
}

void Counted::find_lifted() {
  constexpr int64_t kMostElements = int64_t{1} << 27;  // of a stack of products
  for (const NodeId node : body_.nodes()) {
    if (body_.opcode(node) != Opcode::dot || !body_.op(node).ints("lhs_batch").empty()) continue;
    const Type type = body_.type(body_.result(node));
    if (!type.is_static() || type.static_elements() > kMostElements / trips_) continue;
    for (const size_t row : {size_t{0}, size_t{1}}) {
      const std::optional<size_t> state = state_of_row(body_.operands(node)[row]);
      if (!state) continue;
      if (const Value other = outside(body_.operands(node)[1 - row])) {
        lifted_.push_back({node, *state, row, other});
        break;
      }
    }
  }
}

// Marks what the scan's body computes. Rows are given, and so need no place.
void Counted::find_needed() {
  needed_.assign(body_.node_count(), false);
  given_.assign(body_.node_count(), false);
  for (const Role& role : roles_)
    if (role.kind == Kind::scanned)
      for (const NodeId row : role.rows) given_[row.index] = true;
  for (const Lifted& one : lifted_) given_[one.dot.index] = true;
  std::vector<ValueId> left;
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i].kind == Kind::carried) left.push_back(output(i));
    if (roles_[i].kind == Kind::stacked) left.push_back(body_.operands(roles_[i].rows[0])[1]);
  }
  while (!left.empty()) {
    const ValueId v = left.back();
    left.pop_back();
    if (v.is_none()) continue;
    needs_counter_ = needs_counter_ || v == input(counter_);
    const NodeId node = body_.producer(v);
    if (needed_[node.index]) continue;
    needed_[node.index] = true;
    if (given_[node.index]) continue;
    for (const ValueId operand : body_.operands(node)) left.push_back(operand);
  }
}

bool Counted::is_taken(const Role& role) const {
  return role.kind == Kind::scanned &&
         std::ranges::any_of(role.rows, [&](NodeId row) { return needed_[row.index]; });
}

// The products of all trips. A row's dims follow that of the trips.
Value Counted::product(const Lifted& one) const {
  const Op op = body_.op(one.dot);
  const Type row = body_.type(body_.operands(one.dot)[one.row]);
  Dims dims = {trips_};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  const Value rows = reshape(stack(one.state), dims);
  Ints of_row = op.ints(one.row == 0 ? "lhs_contract" : "rhs_contract");
  for (int64_t& axis : of_row) ++axis;
  const Ints of_other = op.ints(one.row == 0 ? "rhs_contract" : "lhs_contract");
  const Value made = rows.builder().op(Opcode::dot, {rows, one.other},
                                       {{"lhs_contract", of_row},
                                        {"rhs_contract", of_other},
                                        {"accumulate", std::string(op.word("accumulate"))}});
  if (one.row == 0) return made;
  // The dims of the other operand come first in the body.
  const int free_of_row = row.rank() - static_cast<int>(of_row.size());
  Ints order = {0};
  for (int i = 1 + free_of_row; i < made.rank(); ++i) order.push_back(i);
  for (int i = 1; i <= free_of_row; ++i) order.push_back(i);
  return transpose(made, order);
}

Value Counted::stack(size_t state) const {
  const bool turned = roles_[state].backward != is_backward_;
  return turned ? reverse(initial_[state], {0}) : initial_[state];
}

// The body with rows as arguments: next states, then rows of the stacked results.
std::vector<Value> Counted::copied(Builder& inner, std::span<const Value> arguments) const {
  Importer::leave_on_failure(inner);
  std::vector<Value> values(body_.value_count());
  size_t next = 0;
  for (size_t i = 0; i < roles_.size(); ++i)
    if (roles_[i].kind == Kind::carried) values[input(i).index] = arguments[next++];
  if (needs_counter_) values[input(counter_).index] = arguments[next++];
  for (const Role& role : roles_) {
    if (!is_taken(role)) continue;
    const Value row = unsqueeze(arguments[next++], 0);
    for (const NodeId node : role.rows) values[body_.result(node).index] = row;
  }
  for (const Lifted& one : lifted_) values[body_.result(one.dot).index] = arguments[next++];
  for (const NodeId node : body_.nodes()) {
    if (!needed_[node.index] || values[body_.result(node).index]) continue;
    if (body_.opcode(node) == Opcode::constant) {
      values[body_.result(node).index] = inner.constant(body_.constant(node));
      continue;
    }
    std::vector<Value> operands;
    for (const ValueId v : body_.operands(node))
      operands.push_back(v.is_none() ? Value() : values[v.index]);
    const std::span<const GraphRef> regions = body_.regions(node);
    const std::vector<Value> made =
        inner.ops(body_.op(node), operands, {regions.begin(), regions.end()});
    for (size_t i = 0; i < made.size(); ++i) values[body_.result(node, i).index] = made[i];
  }
  std::vector<Value> results;
  for (size_t i = 0; i < roles_.size(); ++i)
    if (roles_[i].kind == Kind::carried) results.push_back(values[output(i).index]);
  for (const Role& role : roles_)
    if (role.kind == Kind::stacked)
      results.push_back(squeeze(values[body_.operands(role.rows[0])[1].index], 0));
  return results;
}

std::vector<Value> Counted::scanned() {
  bool any_row = false;
  is_backward_ = true;
  for (size_t i = 0; i < initial_.size(); ++i) {
    roles_.push_back(role_of(i));
    if (roles_[i].rows.empty()) continue;
    any_row = true;
    is_backward_ = is_backward_ && roles_[i].backward;
  }
  is_backward_ = is_backward_ && any_row;
  find_lifted();
  find_needed();
  std::erase_if(lifted_, [&](const Lifted& one) { return !needed_[one.dot.index]; });
  const bool any_taken =
      std::ranges::any_of(roles_, [&](const Role& role) { return is_taken(role); });
  needs_counter_ = needs_counter_ || (!any_taken && lifted_.empty());

  Builder& b = n_.builder();
  const Value first = initial_[counter_];
  std::vector<Value> carried, stacks;
  for (size_t i = 0; i < roles_.size(); ++i)
    if (roles_[i].kind == Kind::carried) carried.push_back(initial_[i]);
  if (needs_counter_) {
    const Value counted = iota(b, first.dtype(), {trips_}, 0);
    stacks.push_back(is_backward_ ? reverse(counted, {0}) : counted);
  }
  for (size_t i = 0; i < roles_.size(); ++i)
    if (is_taken(roles_[i])) stacks.push_back(stack(i));
  for (const Lifted& one : lifted_) stacks.push_back(product(one));
  const std::vector<Value> made = scan(
      carried, stacks, [&](Builder& inner, std::span<const Value> in) { return copied(inner, in); },
      is_backward_);

  std::vector<Value> results;
  size_t next = 0, row = carried.size();
  for (size_t i = 0; i < roles_.size(); ++i) {
    switch (roles_[i].kind) {
      case Kind::counter:
        results.push_back(b.constant(
            Tensor::from_integers(Type::scalar(first.dtype()), std::vector<int64_t>{trips_})));
        break;
      case Kind::carried: results.push_back(made[next++]); break;
      case Kind::scanned: results.push_back(initial_[i]); break;
      case Kind::stacked: {
        const Value rows = made[row++];
        results.push_back(roles_[i].backward == is_backward_ ? rows : reverse(rows, {0}));
      }
    }
  }
  return results;
}

}  // namespace

std::optional<std::vector<Value>> as_scan(Node& n, std::span<const Value> initial,
                                          const Graph& condition, const Graph& body) {
  Counted loop(n, initial, condition, body);
  if (!loop.counts()) return std::nullopt;
  return loop.scanned();
}

}  // namespace hone::hlo
