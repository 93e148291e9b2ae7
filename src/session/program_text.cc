#include "session/program_text.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "compile/gpu_kernels.h"
#include "ir/text_parser.h"
#include "program/device_memory.h"
#include "program/devices.h"
#include "program/frame.h"
#include "program/run.h"
#include "runtime/device_runs.h"
#include "transport/threads.h"

namespace hone {
namespace {

using program::Buffer;
using program::BufferId;
using program::Frame;
using program::Role;

// Calls act(name of the port, its type) for each of all devices.
template <class Act>
void for_ports(const DevicePrograms& programs, int32_t devices, Role role, const Act& act) {
  for (int32_t device = 0; device < devices; ++device) {
    const Frame& main = *programs.of(device).main;
    for (const BufferId b : program::buffers_of(main, role))
      act(name_on(main.buffers[b].name, static_cast<size_t>(device), static_cast<size_t>(devices)),
          main.buffers[b].type);
  }
}

Status check_static(const Program& program) {
  for (const program::FrameRef& frame : program::all_frames(program.main))
    if (const std::vector<Symbol> open = program::symbols_of(*frame); !open.empty())
      return unsupported("program '{}' has the open size {}", excerpt(program.name),
                         open.front().name())
          .with_hint("hone compile MODEL --dim NAME=N --emit program");
  return {};
}

}  // namespace

bool begins_like_programs(std::string_view beginning) {
  TextParser text(beginning, {});
  return text.eat("program") && text.peek().kind == TokenKind::global;
}

Error are_programs(std::string_view name) {
  return unsupported("'{}' is a text of programs: it has no graph", excerpt(name))
      .with_hint("'hone run FILE' and 'hone check FILE' take it");
}

Result<DevicePrograms> parse_programs(std::string_view text, const std::string& where) {
  DevicePrograms programs = HONE_TRY(parse_device_programs(text, {.file = where}));
  Status good = verify(programs);
  for (const Program& program : programs.programs)
    if (good.ok()) good = check_static(program);
  if (!good.ok()) return std::move(good).error().within(where);
  return programs;
}

Result<DevicePrograms> load_programs(const std::string& path) {
  const MappedFile file = HONE_TRY(MappedFile::open(path));
  return parse_programs(file.text(), path);
}

std::string name_on(std::string_view port, size_t device, size_t devices) {
  return devices == 1 ? std::string(port) : fmt::format("{}@{}", port, device);
}

Graph signature_of(const DevicePrograms& programs, int32_t devices) {
  Graph signature(programs.programs.front().name);
  for_ports(programs, devices, Role::input,
            [&](const std::string& name, Type type) { signature.add_parameter(type, name); });
  return signature;
}

std::vector<std::string> output_names(const DevicePrograms& programs, int32_t devices) {
  std::vector<std::string> names;
  for_ports(programs, devices, Role::output,
            [&](std::string name, Type) { names.push_back(std::move(name)); });
  return names;
}

std::vector<uint32_t> program_of_each(const DevicePrograms& programs, int32_t devices) {
  if (!programs.of_device.empty()) return programs.of_device;
  return std::vector<uint32_t>(static_cast<size_t>(devices), 0);
}

// ---- Proofs -------------------------------------------------------------------------------------

Result<std::string> proofs(const DevicePrograms& programs, int32_t devices, const System* system) {
  HONE_TRY(check_no_deadlock(programs, devices));
  if (system != nullptr) HONE_TRY(check_memory(programs, *system));
  const std::vector<uint32_t> of_each = program_of_each(programs, devices);
  TextTable table("lrrrrrr", {"program", "devices", "weights", "inputs and outputs", "temporaries",
                              "messages", "memory"});
  for (size_t i = 0; i < programs.programs.size(); ++i) {
    const Program& program = programs.programs[i];
    const DeviceMemory memory = HONE_TRY(device_memory(program, devices));
    table.add_row({excerpt(program.name), std::to_string(std::ranges::count(of_each, i)),
                   format_bytes(memory.weights), format_bytes(memory.ports),
                   format_bytes(memory.arena), format_bytes(memory.messages),
                   format_bytes(memory.total())});
  }
  std::string text = table.to_string();
  text += devices == 1 ? "the device waits for no other one\n"
                       : fmt::format("no device of {} waits for ever\n", devices);
  if (system != nullptr)
    text += fmt::format("each device of '{}' has the memory that it needs\n", system->name);
  return text;
}

// ---- Running ------------------------------------------------------------------------------------

Result<std::vector<ProgramCode>> codes_of(const DevicePrograms& programs,
                                          const NativeOptions& options, const Face& face) {
  HONE_TRY(check_runs_here(options, face.labels));
  const KernelOptions kernels = {.cache = options.cache.get(),
                                 .progress = face.progress,
                                 .cancel = face.cancel,
                                 .observer = options.kernel_observer};
  std::vector<ProgramCode> made;
  for (const Program& program : programs.programs) {
    GpuCode code;
    if (options.target.gpu)
      code = HONE_TRY(compile_gpu_kernels(program, options.target, default_pool(), kernels));
    else
      code.code =
          HONE_TRY(compile_kernels(program.kernels, options.target, default_pool(), kernels));
    Image image = HONE_TRY(image_of(program, code.gpu, {}, code.code));
    made.push_back({std::move(image), std::move(code.gpu)});
  }
  return made;
}

Result<std::vector<Image>> images_of(const DevicePrograms& programs, const NativeOptions& options,
                                     const Face& face) {
  HONE_TRY(check_runs_here(options.target, face.labels));
  std::vector<Image> images;
  for (ProgramCode& one : HONE_TRY(codes_of(programs, options, face))) {
    images.push_back(std::move(one.image));
  }
  return images;
}

Result<std::vector<Tensor>> interpret(const DevicePrograms& programs, int32_t devices,
                                      std::span<const Tensor> inputs, int64_t max_bytes,
                                      const Face& face) {
  const auto count = static_cast<size_t>(devices);
  std::vector<DeviceShare> shares(count);
  std::vector<std::span<const Tensor>> own(count);
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const Frame& main = *programs.of(static_cast<int32_t>(i)).main;
    const size_t needed = program::buffers_of(main, Role::input).size();
    if (needed > inputs.size() - next)
      return bad_input("{} inputs are given; device {} has none of them", inputs.size(), i);
    shares[i].name = std::to_string(i);
    own[i] = inputs.subspan(next, needed);
    next += needed;
  }
  std::unique_ptr<Transport> transport;
  if (devices > 1) transport = HONE_TRY(make_thread_transport(devices));
  const std::unique_ptr<JobThreads> threads = HONE_TRY(JobThreads::make(count));
  std::vector<std::vector<Tensor>> made(count);
  HONE_TRY(run_devices(
      shares, *threads, transport.get(), {.cancel = face.cancel},
      [&](size_t i, const RunOptions& options) -> Status {
        made[i] = HONE_TRY(run(programs.of(static_cast<int32_t>(i)), own[i],
                               {.max_bytes = max_bytes / devices, .place = options.place}));
        return {};
      }));
  std::vector<Tensor> outputs;
  for (std::vector<Tensor>& each : made) std::ranges::move(each, std::back_inserter(outputs));
  return outputs;
}

}  // namespace hone
