#include "runtime/segments.h"

#include "base/text.h"

namespace hone {

namespace {

using namespace segments;

class Check {
 public:
  Check(const SegmentTree& tree, const std::vector<UnitArity>& units)
      : tree_(tree), units_(units) {}

  Status steps(const std::vector<Step>& list) const {
    for (const Step& step : list)
      HONE_TRY(std::visit([this](const auto& kind) { return one(kind); }, step.kind));
    return {};
  }

  Status value(uint32_t v) const {
    if (v < tree_.values.size()) return {};
    return bad_input("value {} does not exist: there are {}", v, tree_.values.size());
  }
  Status values(const std::vector<uint32_t>& list) const {
    for (uint32_t v : list) HONE_TRY(value(v));
    return {};
  }

 private:
  Status value_or_none(uint32_t v) const { return v == kNone ? Status() : value(v); }
  static Status count(std::string_view what, size_t given, size_t wanted) {
    if (given == wanted) return {};
    return bad_input("{} {} are given, but {} are needed", given, what, wanted);
  }

  Status one(const Unit& unit) const {
    if (unit.unit >= units_.size())
      return bad_input("unit {} does not exist: there are {}", unit.unit, units_.size());
    HONE_TRY(count("inputs of a unit", unit.inputs.size(), units_[unit.unit].inputs));
    HONE_TRY(count("outputs of a unit", unit.outputs.size(), units_[unit.unit].outputs));
    HONE_TRY(values(unit.inputs));
    for (uint32_t v : unit.outputs) HONE_TRY(value_or_none(v));
    for (const segments::Crop& crop : unit.crops)
      if (crop.output >= unit.outputs.size() || crop.count >= unit.outputs.size())
        return bad_input("a cut of output {} to output {}, of {}", crop.output, crop.count,
                         unit.outputs.size());
    return {};
  }
  Status body(const segments::Body& body, size_t results) const {
    HONE_TRY(steps(body.steps));
    HONE_TRY(values(body.results));
    return count("results of a body", body.results.size(), results);
  }
  Status one(const If& branch) const {
    HONE_TRY(value(branch.condition));
    HONE_TRY(body(branch.on_true, branch.results.size()));
    HONE_TRY(body(branch.on_false, branch.results.size()));
    return values(branch.results);
  }
  Status one(const Loop& loop) const {
    for (uint32_t v : {loop.trip_count, loop.condition, loop.counter, loop.next_condition})
      HONE_TRY(value_or_none(v));
    for (const Loop::Carried& carried : loop.carried) {
      HONE_TRY(value(carried.value));
      HONE_TRY(value(carried.initial));
    }
    HONE_TRY(values(loop.grown));
    HONE_TRY(values(loop.results));
    HONE_TRY(
        count("results of a loop", loop.results.size(), loop.carried.size() + loop.grown.size()));
    return body(loop.body, loop.results.size());
  }

  const SegmentTree& tree_;
  const std::vector<UnitArity>& units_;
};

}  // namespace

Status check(const SegmentTree& tree, size_t inputs, std::vector<UnitArity> units) {
  if (tree.units.size() != units.size())
    return bad_input("{} units have names, of {}", tree.units.size(), units.size());
  if (tree.values.size() < inputs)
    return bad_input("{} values, but {} inputs", tree.values.size(), inputs);
  const Check check(tree, units);
  HONE_TRY(check.values(tree.outputs));
  return check.steps(tree.steps);
}

}  // namespace hone
