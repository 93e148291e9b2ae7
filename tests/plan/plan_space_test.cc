#include "plan/plan_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rewrite/prepare.h"
#include "tests/plan/plan_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

// The edits of a kind, by the names of what they are about.
std::vector<std::string> names(const FrameEditor& frame, EditKind kind) {
  const GraphView graph = frame.view();
  const auto step = [&](uint32_t s) { return label(graph, frame.planned().steps[s]); };
  std::vector<std::string> names;
  for (const OpenEdit& edit : PlanSpace(frame).edits(kind)) {
    switch (kind) {
      case EditKind::layout:
      case EditKind::copy:
      case EditKind::remove_copy: names.emplace_back(graph.name(ValueId{edit.subject})); break;
      case EditKind::form: names.push_back(step(edit.subject)); break;
      case EditKind::join: names.push_back(step(edit.subject) + " " + step(edit.other)); break;
      default: names.push_back(step_name(graph, NodeId{edit.subject}));
    }
  }
  return names;
}

TEST(PlanSpace, ListsWhatIsOpen) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[4, 8] donate 0) -> f32[8, 4] {
    %a = exp %x
    %b = reshape %a {dims = [8, 4]}
    %c = sort %b {axis = 0}
    %d = neg %c
    return %d
  })")
                          .value();
  const std::unique_ptr<PlanEditor> plan = PlanEditor::open(graph, Plan(), target()).value();
  FrameEditor& frame = plan->main();
  EXPECT_THAT(names(frame, EditKind::form), ElementsAre("%a", "%b", "%c", "%d"));
  EXPECT_THAT(names(frame, EditKind::view), ElementsAre("b"));
  EXPECT_THAT(names(frame, EditKind::layout), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(frame, EditKind::copy), ElementsAre("x", "a", "b", "c"));
  EXPECT_THAT(names(frame, EditKind::split), IsEmpty());
  EXPECT_THAT(names(frame, EditKind::remove_copy), IsEmpty());

  for (const OpenEdit& edit : PlanSpace(frame).edits(EditKind::form))
    ASSERT_TRUE(frame.form(edit.subject).ok());
  EXPECT_THAT(names(frame, EditKind::form), IsEmpty());
  ASSERT_THAT(names(frame, EditKind::join), ElementsAre("@k4 @k5"));
  Rng rng(1);
  ASSERT_TRUE(apply(frame, PlanSpace(frame).edits(EditKind::join)[0], rng).ok());
  EXPECT_THAT(names(frame, EditKind::split), ElementsAre("a", "b"));
  EXPECT_THAT(names(frame, EditKind::view), IsEmpty());
  EXPECT_THAT(names(frame, EditKind::layout), ElementsAre("b", "c"));
}

// Whatever a plan says so far, what is not listed is refused, and what is listed and done can be
// undone.
TEST(PlanSpace, ListsAllThatFits) {
  int done = 0, refused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed})).value();
    const std::unique_ptr<PlanEditor> plan = PlanEditor::open(graph, Plan(), target()).value();
    FrameEditor& frame = plan->main();
    Rng rng(seed);
    for (int i = 0; i < 8; ++i)
      if (std::vector<OpenEdit> open = PlanSpace(frame).edits(); !open.empty())
        std::ignore = apply(frame, rng.pick(open), rng);
    const Plan before = plan->to_plan();
    const std::vector<OpenEdit> open = PlanSpace(frame).edits();
    const auto is_listed = [&](OpenEdit edit) {
      return std::ranges::find(open, edit) != open.end();
    };
    for (EditKind kind : {EditKind::layout, EditKind::remove_copy}) {
      for (uint32_t v = 0; v < frame.view().value_count(); ++v) {
        // A copy that was removed leaves its number.
        if (frame.view().is_copy(ValueId{v}) && frame.users().of(ValueId{v}).empty()) continue;
        const Result<Undo> edit = apply(frame, {kind, v}, rng);
        if (edit.ok()) {
          EXPECT_TRUE(is_listed({kind, v})) << frame.view().name(ValueId{v});
          plan->undo(*edit);
        }
      }
    }
    for (EditKind kind : {EditKind::view, EditKind::in_place, EditKind::split}) {
      for (NodeId n : frame.view().nodes()) {
        if (frame.view().is_copy(n)) continue;
        const bool has_step = frame.planned().step_of[n.index] != kNoStep;
        if (!has_step && (kind == EditKind::split || !frame.planned().is_view(n))) continue;
        const Result<Undo> edit = apply(frame, {kind, n.index}, rng);
        if (!edit.ok()) continue;
        EXPECT_TRUE(is_listed({kind, n.index})) << step_name(frame.view(), n);
        plan->undo(*edit);
      }
    }
    for (const OpenEdit& edit : open) {
      const Result<Undo> undo = apply(frame, edit, rng);
      ++(undo.ok() ? done : refused);
      if (undo.ok()) plan->undo(*undo);
    }
    EXPECT_EQ(plan->to_plan(), before);
  }
  EXPECT_GT(done, 2 * refused);
}

}  // namespace
}  // namespace hone::HONE_FILE
