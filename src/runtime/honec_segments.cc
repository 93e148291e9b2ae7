#include "runtime/honec_segments.h"

#include "runtime/honec_layout.h"

namespace hone::honec {

namespace {

class SegmentReader {
 public:
  explicit SegmentReader(Cursor& in) : in_(in) {}

  Result<SegmentTree> tree() {
    SegmentTree tree;
    tree.units = HONE_TRY(names("units"));
    tree.values = HONE_TRY(names("values"));
    tree.outputs = HONE_TRY(values());
    tree.steps = HONE_TRY(steps());
    HONE_TRY(in_.end());
    return tree;
  }

 private:
  Result<std::vector<std::string>> names(std::string_view what) {
    std::vector<std::string> names;
    const int64_t count = HONE_TRY(in_.count(what, Cursor::kNumber));
    for (int64_t i = 0; i < count; ++i) names.push_back(HONE_TRY(in_.text("a name")));
    return names;
  }
  Result<uint32_t> value() { return in_.index("a value"); }
  Result<std::vector<uint32_t>> values() {
    std::vector<uint32_t> list;
    const int64_t count = HONE_TRY(in_.count("values", Cursor::kNumber));
    for (int64_t i = 0; i < count; ++i) list.push_back(HONE_TRY(value()));
    return list;
  }

  Result<std::vector<segments::Step>> steps() {
    if (depth_ == kMaxDepth) return in_.at(fmt::format("steps {} deep", kMaxDepth));
    ++depth_;
    std::vector<segments::Step> steps;
    const int64_t count = HONE_TRY(in_.count("steps", 4 * Cursor::kNumber));
    for (int64_t i = 0; i < count; ++i) steps.push_back(HONE_TRY(step()));
    --depth_;
    return steps;
  }
  Result<segments::Body> body() {
    segments::Body body;
    body.steps = HONE_TRY(steps());
    body.results = HONE_TRY(values());
    return body;
  }
  Result<segments::Step> step() {
    switch (HONE_TRY(in_.number("the kind of a step", 0, 2))) {
      case 0: return segments::Step{HONE_TRY(unit())};
      case 1: return segments::Step{HONE_TRY(branch())};
      default: return segments::Step{HONE_TRY(loop())};
    }
  }
  Result<segments::Unit> unit() {
    segments::Unit unit;
    unit.unit = HONE_TRY(in_.index("a unit"));
    unit.inputs = HONE_TRY(values());
    unit.outputs = HONE_TRY(values());
    const int64_t crops = HONE_TRY(in_.count("cuts", 3 * Cursor::kNumber));
    for (int64_t i = 0; i < crops; ++i) {
      segments::Crop& crop = unit.crops.emplace_back();
      crop.output = HONE_TRY(in_.index("an output"));
      crop.axis = HONE_TRY(in_.index("an axis"));
      crop.count = HONE_TRY(in_.index("an output"));
    }
    return unit;
  }
  Result<segments::If> branch() {
    segments::If branch;
    branch.condition = HONE_TRY(value());
    branch.on_true = HONE_TRY(body());
    branch.on_false = HONE_TRY(body());
    branch.results = HONE_TRY(values());
    return branch;
  }
  Result<segments::Loop> loop() {
    segments::Loop loop;
    for (uint32_t* v : {&loop.trip_count, &loop.condition, &loop.counter, &loop.next_condition})
      *v = HONE_TRY(value());
    const int64_t carried = HONE_TRY(in_.count("values", 2 * Cursor::kNumber));
    for (int64_t i = 0; i < carried; ++i) {
      segments::Loop::Carried& one = loop.carried.emplace_back();
      one.value = HONE_TRY(value());
      one.initial = HONE_TRY(value());
    }
    loop.grown = HONE_TRY(values());
    loop.body = HONE_TRY(body());
    loop.results = HONE_TRY(values());
    return loop;
  }

  Cursor& in_;
  int depth_ = 0;
};

}  // namespace

Result<SegmentTree> read_segments(Cursor& in) { return SegmentReader(in).tree(); }

}  // namespace hone::honec
