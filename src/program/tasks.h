#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/loop_state.h"
#include "plan/edit.h"
#include "program/program.h"

// The tasks of a plan or a program, one after another, as plain data. A price adds them up
// (cost/task_price.h), and a plan has them without being lowered. Profiles, traces and reports
// find here which bytes a command moves, where it stands, and how often a run has it.

namespace hone {

// The part of the machine that a task occupies.
enum class Resource : uint8_t {
  cores,   // those that kernels run on
  memory,  // a copy
  links,   // messages to other devices: a collective begins, or is waited for
  host,    // nothing of its own: what it runs has tasks
};

// Rounds of a loop, one after another. A while loop, of which nobody knows how often it runs,
// counts kAssumedTrips of them.
struct Rounds {
  Dim trips = 0;
  std::vector<size_t> lists = {};  // run in each round: the body, then the test
  std::vector<Dim> copies = {};    // bytes of what a round leaves to where the next one reads it
};

struct Task {
  std::string name;  // of the kernel or the value, for people
  Resource resource = Resource::host;
  int64_t commands = 1;                // that begin, one after another
  std::vector<uint64_t> kernels = {};  // launched, by kernel_hash(): these price them
  std::vector<Dim> copies = {};        // bytes of each copy
  Dim moved = 0;                   // bytes that its kernels, copies and collectives read and write
  std::vector<size_t> lists = {};  // run once, by position in Tasks::lists
  bool is_branch = false;          // one of these lists runs, and not all
  std::optional<Rounds> rounds = {};
  std::vector<uint32_t> after = {};  // tasks of the list that must have ended, ascending
};

// The tasks of a graph or of a region. The order alone says where values change in place and which
// memory was used before: tasks that need a value or its memory stand after it.
struct TaskList {
  std::string name;  // of the region, "loop.body", or of the graph
  std::vector<Task> tasks;
};

struct Tasks {
  std::vector<TaskList> lists;  // that others run come first; the last is the graph's
};

// Makes the tasks that lower() would make of a plan, whole or not. A node without a group is a
// kernel of its own. Without a whole order, steps come after those that they need. A scan over
// parts of less than a byte pads them; that is left out. `after` is what a task needs. A kernel
// moves each operand once, as the graph has it: unpadded, and whole even if it reads a part.
Tasks tasks_of(const PlanEditor& plan);
// `after` has the tasks that use the same memory before, too. A collective has a second task, its
// wait, which moves nothing. A kernel of which nobody knows what
// it was built from goes by the hash of its text.
Tasks tasks_of(const Program& program);

// The hash by which tasks name the kernel.
uint64_t task_kernel(const program::Kernel& kernel);

// The tasks of all lists, as a run begins them the first time: those of a list follow the task that
// runs it.
std::vector<const Task*> in_order(const Tasks& tasks);
// The tasks that launch kernels, by name; a name that several have is left out.
std::map<std::string_view, const Task*> launches_by_name(const Tasks& tasks);
// How often a run launches each kernel, if both lists of a branch run and trips are the most.
std::unordered_map<uint64_t, double> launches_of(const Tasks& tasks);

// The parts of the list of a frame, for who keeps them while a plan is edited; without `after` and
// `moved`.
struct RegionTasks {
  const FrameEditor* frame = nullptr;
  size_t list = 0;
};
// `regions` are those of the step's node; none: somebody else plans them.
Task task_of(const FrameEditor& frame, uint32_t step, std::span<const RegionTasks> regions);
// Before the steps: of inputs that are changed in place. Behind them: of outputs that lie
// elsewhere, but for those that a loop does not ask for. The values go with the tasks.
struct PortTask {
  Task task;
  ValueId value;
};
std::vector<PortTask> input_tasks(const FrameEditor& frame);
std::vector<PortTask> output_tasks(const FrameEditor& frame, const std::vector<bool>& left_out);

}  // namespace hone
