#include "cli/processes.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/division.h"
#include "cli/hosts.h"
#include "cli/local_processes.h"
#include "cli/memory_limit.h"
#include "cli/pipelines.h"
#include "cli/program_texts.h"
#include "cli/sharding.h"
#include "cli/wait_teller.h"
#include "session/memory.h"

namespace hone::cli {
namespace {

constexpr std::string_view kMpi = "mpi";

// A number that mpirun tells each process in its environment: Open MPI, or MPICH and its kin.
int64_t told_by_mpirun(std::initializer_list<const char*> names) {
  for (const char* each : names)
    if (const char* const text = std::getenv(each))
      if (const Result<int64_t> number = parse_int(text); number.ok() && *number > 0)
        return *number;
  return 0;
}
int64_t ranks_of_mpirun() { return told_by_mpirun({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}); }
int64_t ranks_of_this_host() {
  return told_by_mpirun({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
}

std::string transport_of(const Arguments& arguments) { return arguments.text("transport"); }

Status check_processes(const Arguments& arguments) {
  const std::string transport = transport_of(arguments);
  if (transport != kMpi && ranks_of_mpirun() > 1)
    return usage_error("mpirun has started {} processes, and each of them would do all the work",
                       ranks_of_mpirun())
        .with_hint("--transport mpi divides it among them");
  if (arguments.given("transport") && arguments.given("hosts"))
    return usage_error("--transport is of this machine; --hosts is TCP");
  if (arguments.given("secret") && !arguments.given("hosts"))
    return usage_error("--secret is for the workers of --hosts");
  return {};
}

// The devices that --devices, a mesh or a pipeline says; none: nothing is said.
Result<std::optional<int64_t>> said_devices(const Arguments& arguments) {
  if (arguments.given("devices"))
    return std::optional(std::ssize(
        HONE_TRY(parse_devices(arguments.text("devices"), "--devices"))));
  if (arguments.given("pipeline")) return std::optional(HONE_TRY(devices_of_pipeline(arguments)));
  if (!names_sharding(arguments)) return std::optional<int64_t>();
  const ShardRequest request = HONE_TRY(given_shards(arguments));
  const MeshRef mesh = request.plan ? request.plan->mesh : request.mesh;
  if (mesh == nullptr) return std::optional<int64_t>();
  return std::optional(std::ssize(
      HONE_TRY(parse_devices(std::to_string(mesh->device_count()), "--mesh"))));
}

// All ranks run the same command.
uint64_t hash_of_command() {
  const Result<std::string> line = read_file("/proc/self/cmdline", int64_t{1} << 24);
  if (!line.ok()) return 0;
  return Hasher().add_range(line->substr(line->find('\0') + 1)).value();
}

CrewOptions crew_options(const Arguments& arguments, Console& console, int64_t ranks_here) {
  CrewOptions options = {
      .version = HONE_VERSION,
      .work = hash_of_command(),
      .memory_limit = memory_limit(limited_face(arguments, console)) / ranks_here};
  if (arguments.given("threads")) options.threads = arguments.integer("threads");
  return options;
}

// ---- Workers of hosts ---------------------------------------------------------------------------

// The first devices of the file, as many as are wanted.
Result<std::vector<Host>> hosts_with(std::vector<Host> hosts, int64_t wanted,
                                     const std::string& file) {
  int64_t there = 0;
  for (Host& host : hosts) {
    host.devices = static_cast<int32_t>(std::min<int64_t>(host.devices, wanted - there));
    there += host.devices;
  }
  if (there < wanted)
    return usage_error("{} devices are wanted, and the hosts of {} have {}", wanted, excerpt(file),
                       there);
  std::erase_if(hosts, [](const Host& host) { return host.devices == 0; });
  return hosts;
}

Result<Processes> processes_of_hosts(const Arguments& arguments, Console& console) {
  const std::string secret = HONE_TRY(given_secret(arguments));
  std::vector<Host> hosts = HONE_TRY(given_hosts(arguments));
  Processes made;
  for (const Host& host : hosts) made.devices += host.devices;
  if (const std::optional<int64_t> said = HONE_TRY(said_devices(arguments))) {
    made.devices = *said;
    hosts = HONE_TRY(hosts_with(std::move(hosts), made.devices, arguments.text("hosts")));
  }
  CrewOptions options = crew_options(arguments, console, 1);
  options.work = 0;
  made.crew = HONE_TRY(Crew::call(hosts, secret, options));
  const std::vector<const Worker*> workers = made.crew->workers();
  made.threads_elsewhere = INT64_MAX;
  for (size_t i = 0; i < workers.size(); ++i)
    made.threads_elsewhere = std::min(
        made.threads_elsewhere, std::max<int64_t>(1, workers[i]->threads() / hosts[i].devices));
  return made;
}

// ---- Ranks --------------------------------------------------------------------------------------

Status with_local_processes(const Arguments& arguments, Console& console,
                            const std::function<Status(const Processes&)>& work) {
  const std::optional<int64_t> said = HONE_TRY(said_devices(arguments));
  if (!said)
    return usage_error("--transport {} needs --devices", transport_of(arguments))
        .with_hint(fmt::format("--devices 2 --transport {}", transport_of(arguments)));
  const auto devices = static_cast<int32_t>(*said);
  const CrewOptions options = crew_options(arguments, console, devices);
  const TransportKind kind =
      transport_of(arguments) == "tcp" ? TransportKind::tcp : TransportKind::shared_memory;
  const std::unique_ptr<LocalProcesses> others = HONE_TRY(LocalProcesses::start(
      kind, devices, [&](Transport& group) { return serve_rank(group, options); }));
  Processes made = {.crew = nullptr, .devices = devices, .devices_here = devices};
  made.crew = HONE_TRY(Crew::lead(HONE_TRY(others->join()), "process", options));
  return work(made);
}

// As even as it gets.
Result<std::vector<int32_t>> devices_of_ranks(const Arguments& arguments, int32_t ranks) {
  const int64_t devices = HONE_TRY(said_devices(arguments)).value_or(ranks);
  if (devices < ranks)
    return usage_error("{} devices are wanted, and mpirun has started {} processes", devices,
                       ranks);
  std::vector<int32_t> of_each;
  for (int32_t i = 0; i < ranks; ++i)
    of_each.push_back(static_cast<int32_t>(devices / ranks + (i < devices % ranks ? 1 : 0)));
  return of_each;
}

Status with_ranks(Mpi& mpi, std::shared_ptr<Transport> group, const CrewOptions& options,
                  int64_t ranks_here, const std::function<Status(const Processes&)>& work) {
  if (mpi.rank() != 0) {
    const Status served = serve_rank(*group, options);
    return served.ok() ? served : Error(served.error()).about(fmt::format("rank {}", mpi.rank()));
  }
  Processes made = {.crew = nullptr, .devices = group->devices()};
  made.devices_here = made.devices / mpi.size() * ranks_here;
  made.crew = HONE_TRY(Crew::lead(std::move(group), "rank", options));
  return work(made);
}

Status with_mpi(const Arguments& arguments, Console& console,
                const std::function<Status(const Processes&)>& work) {
  const std::shared_ptr<Mpi> mpi =
      HONE_TRY(started_mpi("mpirun -n 2 hone run MODEL --transport mpi"));
  const int64_t here = ranks_of_this_host();
  const int64_t ranks_here = here > 0 ? here : mpi->size();
  const CrewOptions options = crew_options(arguments, console, ranks_here);
  const auto run = [&]() -> Status {
    const std::vector<int32_t> devices = HONE_TRY(devices_of_ranks(arguments, mpi->size()));
    return with_ranks(*mpi, HONE_TRY(join_mpi(mpi, devices)), options, ranks_here, work);
  };
  const Status done = run();
  if (!done.ok()) mpi->fail();
  return done;
}

}  // namespace

Result<std::shared_ptr<Mpi>> started_mpi(std::string_view hint) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::shared_ptr<Mpi> mpi = HONE_TRY(Mpi::start(folder / "hone_mpi.so"));
  if (mpi->size() < 2)
    return usage_error("--transport mpi is between processes of mpirun, and this is the only one")
        .with_hint(hint);
  return mpi;
}

Status with_processes(const Arguments& arguments, Console& console,
                      const std::function<Status(const Processes&)>& work) {
  HONE_TRY(check_processes(arguments));
  HONE_TRY(check_devices(arguments));
  // Other processes are made before: a copy of this one must not have its threads.
  const auto told_work = [&](const Processes& processes) {
    const bool are_several = processes.crew != nullptr || names_devices(arguments) ||
                             names_sharding(arguments) || names_programs(arguments) ||
                             arguments.given("pipeline");
    std::optional<WaitTeller> teller;
    if (are_several) teller.emplace(*console.face().progress);
    return work(processes);
  };
  if (arguments.given("hosts")) return told_work(HONE_TRY(processes_of_hosts(arguments, console)));
  const std::string transport = transport_of(arguments);
  if (transport == kMpi) return with_mpi(arguments, console, told_work);
  if (transport != "threads") return with_local_processes(arguments, console, told_work);
  return told_work(Processes());
}

}  // namespace hone::cli
