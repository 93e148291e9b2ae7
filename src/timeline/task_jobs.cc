#include "timeline/task_jobs.h"

#include <algorithm>

#include "program/arena_layout.h"
#include "program/tiles/calling.h"

namespace hone {

TaskJobs add_tasks(SystemJobs& jobs, int64_t device, const TaskList& list,
                   std::span<const std::optional<double>> seconds,
                   std::span<const uint32_t> begin) {
  HONE_CHECK(seconds.size() == list.tasks.size(), "{} tasks, seconds of {}", list.tasks.size(),
             seconds.size());
  TaskJobs made;
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    const Task& task = list.tasks[i];
    std::vector<uint32_t> after;
    for (const uint32_t before : task.after) after.push_back(made.tasks[before]);
    if (after.empty()) after.assign(begin.begin(), begin.end());
    jobs.name(task.name);
    made.tasks.push_back(seconds[i] ? jobs.compute(device, *seconds[i], std::move(after))
                                    : jobs.join(std::move(after)));
  }
  std::vector<uint32_t> all = made.tasks;
  if (all.empty()) all.assign(begin.begin(), begin.end());
  made.end = jobs.join(std::move(all));
  return made;
}

// ---- Memory ------------------------------------------------------------------------------------

namespace {

class ProgramBuffers {
 public:
  ProgramBuffers(const Program& program, uint32_t device, std::span<const uint32_t> commands)
      : program_(program), layout_(program), device_(device), commands_(commands) {}

  Result<std::vector<HeldBuffer>> all() {
    const program::Frame& frame = *program_.main;
    const std::vector<std::vector<uint32_t>> users = users_in(frame);
    for (program::BufferId b = 0; b < frame.buffers.size(); ++b) {
      const program::Buffer& buffer = frame.buffers[b];
      if (buffer.role == program::Role::view) continue;
      HeldBuffer held = {device_, HONE_TRY(number(bytes_of(buffer.type), buffer.name))};
      if (buffer.role == program::Role::temporary) {
        if (users[b].empty()) continue;
        held.maker = users[b].front();
        held.users = users[b];
      }
      buffers_.push_back(std::move(held));
    }
    for (program::CommandId c = 0; c < frame.commands.size(); ++c)
      HONE_TRY(add_own_memory(frame.commands[c], commands_[c]));
    return std::move(buffers_);
  }

 private:
  static Result<int64_t> number(const Dim& bytes, std::string_view what) {
    if (bytes.is_static()) return bytes.value();
    return unsupported("'{}' has {} bytes; the memory over time is of sizes that are numbers", what,
                       bytes.to_string());
  }

  // The jobs of the commands that touch each buffer, in the order of the commands.
  std::vector<std::vector<uint32_t>> users_in(const program::Frame& frame) const {
    std::vector<std::vector<uint32_t>> users(frame.buffers.size());
    for (program::CommandId c = 0; c < frame.commands.size(); ++c) {
      const program::Accesses accesses = program::accesses_of(frame, frame.commands[c]);
      for (const std::vector<program::BufferId>* list : {&accesses.reads, &accesses.writes})
        for (const program::BufferId b : *list) users[b].push_back(commands_[c]);
    }
    return users;
  }

  // It lies behind the temporaries while the command runs (program.h, Frame).
  Status add_own_memory(const program::Command& command, uint32_t job) {
    int64_t most = 0;
    if (const auto* launch = std::get_if<program::Launch>(&command.kind))
      most = HONE_TRY(
          number(program::shared_bytes(program_.kernels[launch->kernel].tiles), command.name));
    for (const program::FrameRef& inner : program::frames_of(command))
      for (const Dim& bytes : layout_.bytes(*inner))
        most = std::max(most, HONE_TRY(number(bytes, inner->name)));
    if (most > 0) buffers_.push_back({device_, most, job, {job}});
    return {};
  }

  const Program& program_;
  const program::ArenaLayout layout_;
  const uint32_t device_;
  const std::span<const uint32_t> commands_;
  std::vector<HeldBuffer> buffers_;
};

}  // namespace

Result<std::vector<HeldBuffer>> held_buffers(const Program& program, uint32_t device,
                                             std::span<const uint32_t> commands) {
  HONE_CHECK(commands.size() == program.main->commands.size(), "{} commands, jobs of {}",
             program.main->commands.size(), commands.size());
  return ProgramBuffers(program, device, commands).all();
}

}  // namespace hone
