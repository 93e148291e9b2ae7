#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "plan/planned.h"
#include "plan/value_names.h"

// A plan that is edited decision by decision, keyed by ids. Edits alone decide what is legal: a
// named Plan is read by applying its lines as edits (edit_read.cc), all before what follows from
// them is worked out. A single edit touches the steps and values that it is about, is refused with
// a reason, and is undone exactly:
//
//   std::unique_ptr<PlanEditor> plan = HONE_TRY(PlanEditor::open(graph, Plan(), target));
//   const Undo undo = HONE_TRY(plan->main().set_layout(v, Layout{...}));
//   plan->undo(undo);  // and what came later
//
// The named Plan is its text: open(graph, plan->to_plan(), target) gives the same plan, up to the
// numbers of steps and copies.

namespace hone {

// A place in the list of changes.
struct Undo {
  size_t changes = 0;
};

// The kernel of a step. Zeros: the step is none.
struct KernelKey {
  uint64_t graph = 0;  // structural_hash() of the body's graph: the same whatever the layouts are
  uint64_t hash = 0;   // kernel_hash() of the body
  bool operator==(const KernelKey&) const = default;
};

class PlanEditor;

// A graph or a region. A step keeps its number until one before it goes: the last takes that.
class FrameEditor {
 public:
  // `planned` is of this graph, or has nothing but the graph and read() comes next. `is_said`: a
  // region has a plan, if only an empty one.
  FrameEditor(PlanEditor& whole, PlannedGraph planned, bool is_said);

  const PlannedGraph& planned() const { return planned_; }
  GraphView view() const { return planned_.view(); }
  UsersView users() const { return planned_.users(users_); }
  const KernelKey& kernel(uint32_t step) const { return kernels_[step]; }
  KernelBody body(uint32_t step) const { return body_of(planned_, users(), planned_.steps[step]); }
  // The frames of the regions, by the keys of Plan::region.
  const std::map<std::string, std::unique_ptr<FrameEditor>>& regions() const { return regions_; }
  PlanEditor& whole() const { return whole_; }
  bool is_said() const { return is_said_; }

  // Sets the layout of the value and of all that lies in its memory. Nothing: the layout is open,
  // and row-major until somebody decides.
  Result<Undo> set_layout(ValueId v, const std::optional<Layout>& layout);
  // The node of the step, which is in no group yet, is a kernel.
  Result<Undo> form(uint32_t step);
  // The nodes of both are one kernel, with the name of the first that has one.
  Result<Undo> join(uint32_t a, uint32_t b);
  // The nodes, some of the step's but not all, are a kernel of their own, the last step.
  Result<Undo> split(uint32_t step, std::vector<NodeId> nodes);
  // A node that becomes a view stands alone in its group, which goes. A node that stops being a
  // view becomes a kernel of its own. A slice, and the parts of a concat, have the layout of the
  // memory that they lie in. The layouts that were said of them are dropped, and said again when
  // they leave it.
  Result<Undo> set_view(NodeId n, Said said);
  Result<Undo> set_in_place(NodeId n, Said said);
  // The readers read a copy of the value, which is the last value from now on. The copy of a
  // constant is a constant, any other one has a kernel of its own.
  Result<Undo> add_copy(std::string name, ValueId of, std::vector<NodeId> readers);
  // Removes a copy that is a constant or alone in its kernel.
  Result<Undo> remove_copy(ValueId copy);
  // Sets the messages of a collective that exchanges data. Nothing: they are open.
  Result<Undo> set_collective(NodeId n, const std::optional<CollectiveSchedule>& schedule);
  // Sets the order of steps, as far as it is given.
  Result<Undo> set_order(std::vector<uint32_t> order);
  // Where values lie is open again. As long as it is not, all edits of groups, memory and order
  // look at all places.
  Undo clear_offsets();

  // Without schedules and threads, which are those of the whole plan.
  Plan to_plan() const;

 private:
  friend class PlanEditor;
  friend Result<PlannedGraph> planned(const Plan& plan, const Graph& graph);

  // The parts that an edit may have changed.
  struct Touched {
    std::vector<NodeId> nodes;     // their results may lie elsewhere
    std::vector<ValueId> values;   // their memory may be another
    std::vector<uint32_t> steps;   // their ports may be others
    bool may_close_cycle = false;  // a step may wait for itself now
  };

  template <class Change>
  Result<Undo> attempt(const Change& change);
  template <class List, class Value>
  void set(List PlannedGraph::* list, size_t at, Value value);
  template <class List>
  void push(List PlannedGraph::* list, typename List::value_type value);
  template <class List>
  void pop(List PlannedGraph::* list);
  void set_step(uint32_t at, Step step);
  void set_kernel(uint32_t at, KernelKey key);
  uint32_t add_step(Step step);
  void remove_step(uint32_t at, Touched& touched);
  void take_name(const std::string& name);
  void drop_name(const std::string& name);
  std::string fresh_kernel();
  void push_value(ValueId v);
  void pop_value();

  // Applies the lines of a plan but for copies, schedules and threads. Groups, layouts, order and
  // offsets are looked at by check_whole().
  Status read(const Plan& plan);
  Status read_copies(const std::map<std::string, Copy>& copies);
  Status read_views(const std::map<std::string, bool>& views);
  Status read_group(const Group& group);
  Status read_in_place(const std::map<std::string, bool>& in_place);
  Status read_layouts(const std::map<std::string, Layout>& layouts);
  Status read_collectives(const std::map<std::string, CollectiveSchedule>& collectives);
  Status read_order(const std::vector<std::string>& order);
  Status read_offsets(const std::map<std::string, int64_t>& offsets);
  Status check_whole() const;
  Status may_join(NodeId n, const Step& step) const;
  Status add_open_steps();
  void begin();
  Touched everything() const;

  std::vector<ValueId> placed_by(NodeId n) const;
  Status say_in_place(NodeId n, Said said, Touched& touched);
  Status view_on(NodeId n, Touched& touched);
  void view_off(NodeId n, Touched& touched);
  Status concat_on(NodeId n, Touched& touched);
  void concat_off(NodeId n, Touched& touched);
  void in_place_on(NodeId n, Touched& touched);
  void in_place_off(NodeId n, Touched& touched);
  void touch_update(NodeId n, Touched& touched) const;
  Status check_step(uint32_t step) const;
  Status reads_again(std::span<const NodeId> readers, Touched& touched);
  Touched touched_by_copy(ValueId of, std::span<const NodeId> readers) const;
  void replace_order(std::vector<uint32_t> order);
  Status put_order(std::vector<uint32_t> order);
  void join_in_order(uint32_t into, uint32_t joined);
  void insert_in_order(uint32_t step);
  void set_offset(ValueId v, int64_t offset);

  // Lets all that follows from decisions follow, and checks it.
  Status follow(Touched touched);
  void follow_places(Touched& touched);
  void follow_ports(Touched& touched);
  void follow_memory(std::vector<ValueId>& values);
  std::vector<uint32_t> follow_layouts(std::span<const ValueId> values);
  void append_ports(ValueId v, std::vector<uint32_t>& steps) const;
  void follow_updates(const Touched& touched);
  Status check_groups(std::span<const uint32_t> steps) const;
  Status check_memory(std::span<const ValueId> values) const;
  Status check_views(std::span<const ValueId> values) const;
  Status check_updates(const Touched& touched) const;
  Status check_update(NodeId n) const;
  Status check_inputs() const;
  Status check_order(std::span<const uint32_t> steps, bool may_close_cycle) const;
  Status check_positions(std::span<const uint32_t> steps,
                         const std::vector<uint32_t>& position) const;
  bool reads(uint32_t reader, uint32_t step) const;
  bool reads_as_view(uint32_t reader, uint32_t step) const;
  bool may_lie_between(uint32_t a, uint32_t b) const;
  std::vector<uint32_t> positions() const;
  Status check_all_can_run() const;
  std::vector<uint32_t> waiting() const;
  Status check_no_cycle(uint32_t step, const std::vector<uint32_t>& position) const;
  Status check_ways_back(std::span<const uint32_t> steps) const;
  Error cycle(std::span<const uint32_t> steps) const;
  Status check_places() const;
  std::vector<uint32_t> followers(uint32_t step) const;
  Status rehash(uint32_t step, bool is_new_graph);
  Status rehash_all(std::vector<uint32_t> steps);
  Status hash_all();

  PlanEditor& whole_;
  const Graph& graph_;
  const Users users_;
  PlannedGraph planned_;
  std::vector<KernelKey> kernels_;              // by step
  std::unordered_set<std::string> step_names_;  // of kernels and commands
  ValueNames names_;                            // of the graph and copies
  const bool is_said_;
  size_t next_kernel_ = 0;           // names below are taken, or were
  uint32_t new_in_order_ = kNoStep;  // a step that needs a place in the order
  size_t updates_ = 0;               // nodes that work in place
  size_t offsets_ = 0;               // values that have one
  std::map<std::string, std::unique_ptr<FrameEditor>> regions_;
};

// Tells whether the plan is for the target; and, as far as it says, for the graph, target and
// threads.
Status check_target(const Plan& plan, const Target& target);
Status check_header(const Plan& plan, const Graph& graph, const Target& target);

class PlanEditor {
 public:
  // The graph and the target live as long. An error names the line that does not fit.
  static Result<std::unique_ptr<PlanEditor>> open(const Graph& graph, const Plan& plan,
                                                  const Target& target);
  // An editor of one frame alone, without its regions, for whoever has planned it.
  static std::unique_ptr<PlanEditor> over(PlannedGraph planned, const Target& target,
                                          int64_t threads);
  PlanEditor(const PlanEditor&) = delete;

  const Target& target() const { return target_; }
  FrameEditor& main() { return *main_; }
  const FrameEditor& main() const { return *main_; }
  std::optional<int64_t> threads() const { return plan_.threads; }
  // Null: the plan leaves it open.
  const Schedule* schedule(uint64_t kernel) const;
  // The kernels that are decided, and their first steps.
  struct Kernels {
    std::unordered_map<uint64_t, std::pair<const FrameEditor*, uint32_t>> by_hash;
    bool all_known = true;  // the plan leaves no group and no layout open
  };
  Kernels kernels() const;

  Result<Undo> set_threads(std::optional<int64_t> threads);
  // Sets the schedule of the step's kernel and of all equal ones. It goes with the last of them.
  Result<Undo> set_schedule(const FrameEditor& frame, uint32_t step,
                            std::optional<Schedule> schedule);

  Undo now() const { return {journal_.size()}; }
  void undo(Undo to);
  // Edits so far can no longer be undone, and take no memory.
  void commit() { journal_.clear(); }
  Plan to_plan() const;

  // Called whenever the kernel of a step is another, also when that is undone; kNoStep: something
  // else of the frame changed, but not how values lie. One may watch.
  using Watcher = std::function<void(const FrameEditor& frame, uint32_t step)>;
  void watch(Watcher watcher) {
    HONE_CHECK(!watcher || !watcher_, "a plan is watched already");
    watcher_ = std::move(watcher);
  }

 private:
  friend class FrameEditor;
  friend Result<PlannedGraph> planned(const Plan& plan, const Graph& graph);
  PlanEditor(const Plan& plan, const Target& target);

  Result<std::unique_ptr<FrameEditor>> open_frame(const Graph& graph, const Plan& plan,
                                                  bool is_said);
  Result<std::unique_ptr<FrameEditor>> open_region(const RegionRef& region, const Plan* plan);
  Status read_schedules(const std::map<uint64_t, Schedule>& schedules);
  Status check_schedule(const Schedule& schedule, const FrameEditor& frame, uint32_t step) const;
  void tell(const FrameEditor& frame, uint32_t step) const {
    if (watcher_) watcher_(frame, step);
  }
  void tell_all(const FrameEditor& frame, uint64_t kernel) const;
  // Reading a plan is not undone.
  template <class Change>
  void later(Change change) {
    if (!is_reading_) journal_.emplace_back(std::move(change));
  }
  // A step's kernel goes, a kernel comes.
  void leave(uint64_t kernel);
  Status enter(uint64_t kernel, const FrameEditor& frame, uint32_t step);
  void put_schedule(uint64_t kernel, std::optional<Schedule> schedule);
  void count(uint64_t kernel, int change);

  const Target& target_;
  Plan plan_;                                     // header, threads, schedules
  std::unordered_map<uint64_t, uint32_t> steps_;  // that have the kernel
  std::unique_ptr<FrameEditor> main_;
  std::vector<std::function<void()>> journal_;  // how to change things back
  bool is_reading_ = true;
  Watcher watcher_;
};

}  // namespace hone
