#include "compile/honec_values.h"
#include "runtime/honec_layout.h"

namespace hone::honec {

namespace {

class SegmentWriter {
 public:
  Result<std::string> write(const SegmentTree& tree) {
    names(tree.units);
    names(tree.values);
    values(tree.outputs);
    HONE_TRY(steps(tree.steps));
    return out_.take();
  }

 private:
  void names(const std::vector<std::string>& names) {
    out_.count(names.size());
    for (const std::string& name : names) out_.text(name);
  }
  void values(const std::vector<uint32_t>& values) {
    out_.count(values.size());
    for (uint32_t v : values) out_.number(v);
  }
  Status steps(const std::vector<segments::Step>& steps) {
    if (depth_ == kMaxDepth)
      return unsupported("a compiled model has segments at most {} deep", kMaxDepth);
    ++depth_;
    out_.count(steps.size());
    for (const segments::Step& step : steps) {
      out_.count(step.kind.index());
      HONE_TRY(std::visit([this](const auto& kind) { return one(kind); }, step.kind));
    }
    --depth_;
    return {};
  }
  Status body(const segments::Body& body) {
    HONE_TRY(steps(body.steps));
    values(body.results);
    return {};
  }
  Status one(const segments::Unit& unit) {
    out_.number(unit.unit);
    values(unit.inputs);
    values(unit.outputs);
    out_.count(unit.crops.size());
    for (const segments::Crop& crop : unit.crops)
      for (uint32_t number : {crop.output, crop.axis, crop.count}) out_.number(number);
    return {};
  }
  Status one(const segments::If& branch) {
    out_.number(branch.condition);
    HONE_TRY(body(branch.on_true));
    HONE_TRY(body(branch.on_false));
    values(branch.results);
    return {};
  }
  Status one(const segments::Loop& loop) {
    for (uint32_t v : {loop.trip_count, loop.condition, loop.counter, loop.next_condition})
      out_.number(v);
    out_.count(loop.carried.size());
    for (const segments::Loop::Carried& carried : loop.carried) {
      out_.number(carried.value);
      out_.number(carried.initial);
    }
    values(loop.grown);
    HONE_TRY(body(loop.body));
    values(loop.results);
    return {};
  }

  Values out_;
  int depth_ = 0;
};

}  // namespace

Result<std::string> text_of(const SegmentTree& tree) { return SegmentWriter().write(tree); }

}  // namespace hone::honec
