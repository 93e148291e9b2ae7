#include "io/onnx/flow.h"
#include "io/onnx/frame.h"
#include "io/onnx/node.h"

// Values without a meaning: what a check computes, and what is said of it.

namespace hone::onnx_io {

bool Node::is_checked() const { return frame_.source()->options.checks != nullptr; }

// Whether there is one, the place of the first, and the number itself: f64[3].
void Node::check(Value numbers, Value wrong, std::string allowed) {
  if (!is_checked()) return;
  OnnxChecks& checks = *frame_.source()->options.checks;
  if (flow_.kind() != Flow::Kind::model) {
    checks.unseen.push_back({describe(), std::move(allowed)});
    return;
  }
  // A good one behind them: there may be none.
  const auto with_good = [&](Value x, DType dtype) {
    return concat({reshape(cast(x, dtype), {x.type().elements()}), builder().full(dtype, {1}, 0)},
                  0);
  };
  Value flags = with_good(wrong, DType::i32);
  Value place = argmax(flags, 0);
  const auto entry = [](Value x) { return reshape(cast(x, DType::f64), {1}); };
  Value found = concat({entry(hone::take(flags, place)), entry(place),
                        entry(hone::take(with_good(numbers, DType::f64), place))},
                       0);
  flow_.add_check(flow_.define(fmt::format("check_{}", checks.made.size()), found));
  checks.made.push_back({describe(), std::move(allowed)});
}

}  // namespace hone::onnx_io

namespace hone {

Status OnnxChecks::take(std::vector<Tensor>& outputs) const {
  HONE_CHECK(outputs.size() >= made.size(), "{} outputs with {} checks", outputs.size(),
             made.size());
  const size_t first = outputs.size() - made.size();
  for (size_t i = 0; i < made.size(); ++i) {
    const Tensor& found = outputs[first + i];
    if (found.real_at(0) == 0) continue;
    return bad_input("element {} is {}, want {}", found.real_at(1), found.real_at(2),
                     made[i].allowed)
        .within(made[i].node);
  }
  outputs.resize(first);
  return {};
}

}  // namespace hone
