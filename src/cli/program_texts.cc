#include "cli/program_texts.h"

#include <algorithm>

#include "base/text.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/machines.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/processes.h"
#include "front/front_end.h"
#include "session/memory.h"
#include "transport/threads.h"

namespace hone::cli {
namespace {

// Options that do not say how to plan a model.
constexpr std::string_view kTaken[] = {"input",     "inputs", "seed",    "memory-limit", "target",
                                       "isa",       "cache",  "devices", "device",       "hosts",
                                       "transport", "secret", "system",  "output",       "expect",
                                       "rtol",      "atol"};

Status check_options(const Arguments& arguments) {
  for (const Option& option : arguments.command().options)
    if (arguments.given(option.name) && std::ranges::find(kTaken, option.name) == std::end(kTaken))
      return usage_error("--{} is for models; {} is a text of programs", option.name,
                         excerpt(arguments.text("MODEL")));
  return {};
}

// As many as the text says, the command line, or the system; else one.
Result<int32_t> devices_of(const DevicePrograms& programs, const Processes& processes,
                           const Arguments& arguments, const System* system) {
  int64_t devices = programs.devices().value_or(0);
  const auto agree = [&](int64_t others, std::string_view who) -> Status {
    if (devices != 0 && devices != others)
      return usage_error("{} is for {} devices, but {} {}", excerpt(arguments.text("MODEL")),
                         devices, who, others);
    devices = others;
    return {};
  };
  if (processes.crew != nullptr) {
    HONE_TRY(agree(processes.crew->devices(), "the processes have"));
  } else {
    const std::vector<std::string> names = HONE_TRY(given_devices(arguments));
    if (!names.empty()) HONE_TRY(agree(std::ssize(names), "the command line says"));
  }
  if (system != nullptr)
    HONE_TRY(agree(system->device_count(), fmt::format("'{}' has", excerpt(system->name))));
  if (devices > kMaxWorkerDevices)
    return over_limit("{} devices; at most {} run together", devices, kMaxWorkerDevices);
  return static_cast<int32_t>(std::max<int64_t>(devices, 1));
}

}  // namespace

bool names_programs(const Arguments& arguments) {
  return arguments.takes("MODEL") && begins_like_programs(file_beginning(arguments.text("MODEL")));
}

Result<GivenPrograms> given_programs(const Processes& processes, const Arguments& arguments,
                                     Console& console) {
  HONE_TRY(check_options(arguments));
  HONE_TRY(check_devices(arguments));
  std::optional<System> system;
  if (arguments.given("system")) system = HONE_TRY(load_system(arguments.text("system"), ""));
  if (system) HONE_TRY(check_has_no_gpu(*system));
  const System* const of_devices = system ? &*system : nullptr;
  GivenPrograms given;
  given.programs = HONE_TRY(load_programs(arguments.text("MODEL")));
  given.devices = HONE_TRY(devices_of(given.programs, processes, arguments, of_devices));
  given.proofs = HONE_TRY(proofs(given.programs, given.devices, of_devices));
  given.outputs = output_names(given.programs, given.devices);
  Given values = HONE_TRY(given_values(arguments, console));
  given.inputs = HONE_TRY(given_inputs(signature_of(given.programs, given.devices), values,
                                       arguments, Engine::native, console));
  return given;
}

Result<std::shared_ptr<const Runnable>> GivenPrograms::code(const Processes& processes,
                                                            const Arguments& arguments,
                                                            Console& console) const {
  const NativeOptions native =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left));
  const std::vector<Image> images = HONE_TRY(images_of(programs, native, console.face()));
  std::shared_ptr<Crew> crew = processes.crew;
  if (crew == nullptr) {
    const CrewOptions own = {.version = HONE_VERSION, .memory_limit = inputs.memory_left.native};
    crew = HONE_TRY(Crew::lead(HONE_TRY(make_thread_transport(devices)), "process", own));
  }
  return Result<std::shared_ptr<const Runnable>>(
      HONE_TRY(crew->load_each(images, program_of_each(programs, devices))));
}

}  // namespace hone::cli
