#include "front/onnx/checks.h"

#include "front/onnx/frame.h"
#include "front/onnx/node.h"

namespace hone::onnx_io {

Type found_type() { return Type::get(DType::f64, {3}); }

Value nothing_found(Builder& builder) { return builder.full(DType::f64, {3}, 0); }

Value first_found(Value first, Value second) {
  return select(compare("ne", slice(first, 0, 0, 1), 0), first, second);
}

void lift_found(Node& n, std::vector<Value>& results, std::span<const int64_t> checks) {
  if (!n.is_checked()) return;
  n.flow().add_check(n.flow().define("", results.back()), checks);
  results.pop_back();
}

void keep_found(std::span<const Value> before, std::vector<Value>& results,
                std::vector<Value>& out) {
  if (before.empty()) return;
  out.push_back(first_found(before.front(), results.back()));
  results.pop_back();
}

// ---- Flows --------------------------------------------------------------------------------------

void Flow::add_check(Slot* found, std::span<const int64_t> numbers) {
  if (numbers.empty()) return;
  found_.push_back(found);
  checks_.insert(checks_.end(), numbers.begin(), numbers.end());
}

Value Flow::found() {
  Value first = nothing_found(builder());
  for (Slot* slot : found_) first = first_found(first, value_of(*slot));
  return first;
}

bool Flow::is_deferred() const {
  return outside_ == nullptr ? kind_ != Kind::model : outside_->is_deferred();
}

// ---- Nodes --------------------------------------------------------------------------------------

bool Node::is_checked() const {
  return frame_.source()->options.checks != nullptr && !flow_.is_deferred();
}

void Node::check(Value numbers, Value wrong, std::string allowed) {
  const std::shared_ptr<OnnxChecks>& checks = frame_.source()->options.checks;
  if (checks == nullptr) return;
  if (flow_.is_deferred()) {
    checks->unseen.push_back({describe(), std::move(allowed)});
    return;
  }
  checks->all.push_back({describe(), std::move(allowed)});
  const auto number = static_cast<int64_t>(checks->all.size());
  // A good one behind them: there may be none.
  const auto with_good = [&](Value x, DType dtype) {
    return concat({reshape(cast(x, dtype), {x.type().elements()}), builder().full(dtype, {1}, 0)},
                  0);
  };
  Value flags = with_good(wrong, DType::i32);
  Value place = argmax(flags, 0);
  const auto entry = [](Value x) { return reshape(cast(x, DType::f64), {1}); };
  Value found = concat({entry(hone::take(flags, place)) * static_cast<double>(number), entry(place),
                        entry(hone::take(with_good(numbers, DType::f64), place))},
                       0);
  flow_.add_check(flow_.define("", found), {&number, 1});
}

}  // namespace hone::onnx_io

namespace hone {

Status OnnxChecks::take(std::vector<Tensor>& outputs) const {
  if (made == 0) return {};
  HONE_CHECK(!outputs.empty(), "checks without an output");
  const Tensor found = std::move(outputs.back());
  outputs.pop_back();
  if (found.real_at(0) == 0) return {};
  const Check& check = all.at(static_cast<size_t>(found.real_at(0)) - 1);
  return bad_input("element {} is {}, want {}", found.real_at(1), found.real_at(2), check.allowed)
      .within(check.node);
}

}  // namespace hone
