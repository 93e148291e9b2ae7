#include "worker/crew.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <system_error>

#include "base/text.h"
#include "compile/honec.h"
#include "transport/threads.h"

namespace hone {
namespace {

// Does it for each of the members at the same time. Error: the first one's by number, in front of
// the others.
Status for_all(size_t count, const std::function<Status(size_t)>& work) {
  std::vector<Status> ends(count);
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    try {
      threads.emplace_back([&, i] { ends[i] = work(i); });
    } catch (const std::system_error& error) {
      ends[i] = over_limit("the system gives no thread: {}", error.what());
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> others;
  const Error* first = nullptr;
  for (const Status& end : ends) {
    if (end.ok()) continue;
    if (first == nullptr)
      first = &end.error();
    else
      others.push_back(end.error().what());
  }
  if (first == nullptr) return {};
  if (others.empty()) return *first;
  return Error(first->code(), fmt::format("{}; {}", first->what(), join(others, "; ")))
      .with_hint(first->hint());
}

// The same for workers that have answered. The first failure ends the work of all others, whose
// errors only repeat it: a worker may wait for the one that is lost.
Status for_all_or_none(size_t count, const std::function<Status(size_t)>& work,
                       const std::function<void(size_t, const Error&)>& give_up) {
  std::mutex mutex;
  std::optional<Error> first;
  const Status all = for_all(count, [&](size_t i) -> Status {
    const Status own = work(i);
    if (own.ok()) return {};
    const std::scoped_lock lock(mutex);
    if (first) return {};
    first = own.error();
    for (size_t other = 0; other < count; ++other)
      if (other != i) give_up(other, *first);
    return {};
  });
  if (first) return *first;
  return all;  // there was no thread
}

WorkerOptions rank_options(const CrewOptions& options) {
  return {.version = options.version,
          .threads = options.threads,
          .memory_limit = options.memory_limit,
          .streams = options.streams};
}

WorkerSeat rank_seat(Transport& group, const Peer& own, uint64_t work) {
  return {.own = own.devices.front(),
          .caller = 0,
          .tag = kRankTag,
          .devices = static_cast<int32_t>(own.devices.size()),
          .group = &group,
          .first = own.devices.front(),
          .work = work};
}

// A device of a worker of a crew, with the program that it runs.
class RemoteCode final : public FarCode {
 public:
  RemoteCode(std::shared_ptr<const Crew> crew, Worker& worker, int32_t device,
             std::shared_ptr<const RemoteProgram> program)
      : crew_(std::move(crew)), worker_(worker), device_(device), program_(std::move(program)) {}

  std::span<const image::Port> inputs() const override { return program_->inputs; }
  std::span<const image::Port> outputs() const override { return program_->outputs; }
  int64_t threads() const override { return program_->threads; }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options) const override {
    return worker_.run(device_, *program_, inputs, outputs, options);
  }

 private:
  const std::shared_ptr<const Crew> crew_;  // has the worker
  Worker& worker_;
  const int32_t device_;
  const std::shared_ptr<const RemoteProgram> program_;
};

// A program as it travels.
struct Packed {
  std::string bytes;
  std::shared_ptr<const RemoteProgram> program;
};

Result<Packed> packed(const Image& image, bool meets, std::string_view version) {
  const HonecProgram program = {.image = &image};
  Packed made = {HONE_TRY(honec_bytes({&program, 1}, version)).joined(), nullptr};
  made.program = std::make_shared<const RemoteProgram>(
      RemoteProgram{.hash = sha256(std::as_bytes(std::span(made.bytes))),
                    .inputs = image.inputs,
                    .outputs = image.outputs,
                    .threads = image.threads,
                    .meets_others = meets});
  return made;
}

}  // namespace

// ---- Making -------------------------------------------------------------------------------------

// It speaks with itself over a transport of its own, as with the others.
struct Crew::OwnRank {
  explicit OwnRank(std::shared_ptr<Transport> group, const CrewOptions& options)
      : group(std::move(group)), programs(options.memory_limit / 2) {}
  ~OwnRank() {
    if (thread.joinable()) thread.join();
  }

  Status start(const CrewOptions& options) {
    link = HONE_TRY(make_thread_transport(2));
    try {
      thread = std::thread([this, options] {
        WorkerSeat seat = rank_seat(*group, group->peers().front(), options.work);
        seat.own = kWorkerDevice;
        seat.caller = kCallerDevice;
        seat.tag = 0;
        (void)serve_caller(*link, programs, rank_options(options), seat);
      });
    } catch (const std::system_error& error) {
      return over_limit("the system gives no thread: {}", error.what());
    }
    return {};
  }

  const std::shared_ptr<Transport> group;
  std::shared_ptr<Transport> link;
  KeptPrograms programs;
  std::thread thread;
};

// The own rank's last words come before its thread is waited for.
Crew::~Crew() { members_.clear(); }

void Crew::add(std::shared_ptr<Worker> worker, Host host, std::string_view name) {
  const int32_t first = devices(), count = host.devices;
  for (int32_t i = 0; i < count; ++i)
    names_.push_back(count == 1 ? std::string(name) : fmt::format("{}, device {}", name, i));
  members_.push_back({std::move(worker), std::move(host), first});
}

Result<std::shared_ptr<Crew>> Crew::call(const std::vector<Host>& hosts, std::string_view secret,
                                         const CrewOptions& options) {
  int64_t devices = 0;
  for (const Host& host : hosts) devices += host.devices;
  if (devices > kMaxWorkerDevices)
    return over_limit("{} devices; there are at most {}", devices, kMaxWorkerDevices);
  std::vector<std::shared_ptr<Worker>> workers(hosts.size());
  HONE_TRY(for_all(
      hosts.size(),
      [&](size_t i) -> Status {
        workers[i] =
            HONE_TRY(Worker::call(hosts[i].address, secret, options.version, options.streams));
        return {};
      }));
  std::shared_ptr<Crew> crew(new Crew());
  crew->version_ = options.version;
  for (size_t i = 0; i < hosts.size(); ++i)
    crew->add(std::move(workers[i]), hosts[i], to_string(hosts[i].address));
  return crew;
}

Result<std::shared_ptr<Crew>> Crew::lead(std::shared_ptr<Transport> group, std::string_view noun,
                                         const CrewOptions& options) {
  const std::vector<Peer> peers = group->peers();
  if (peers.empty() || !peers.front().is_here)
    return bad_input("the first {} of a group leads it; this is another one", noun);
  std::shared_ptr<Crew> crew(new Crew());
  crew->version_ = options.version;
  crew->own_ = std::make_unique<OwnRank>(group, options);
  HONE_TRY(crew->own_->start(options));
  Status greeted;
  for (size_t i = 0; i < peers.size() && greeted.ok(); ++i) {
    CallerSeat seat = {.work = options.work};
    if (i > 0)
      seat = {.own = 0, .worker = peers[i].devices.front(), .tag = kRankTag, .work = options.work};
    Result<std::shared_ptr<Worker>> worker =
        Worker::greet(i == 0 ? crew->own_->link : group, options.version, seat);
    if (worker.ok())
      crew->add(*std::move(worker), {{}, static_cast<int32_t>(peers[i].devices.size())},
                fmt::format("{} {}", noun, i));
    else
      greeted = worker.error();
  }
  if (greeted.ok()) return crew;
  group->cancel(greeted.error());
  crew->own_->link->cancel(greeted.error());
  return greeted.error();
}

std::vector<const Worker*> Crew::workers() const {
  std::vector<const Worker*> all;
  for (const Member& member : members_) all.push_back(member.worker.get());
  return all;
}

// ---- Programs -----------------------------------------------------------------------------------

// Workers of hosts that meet join a group of their own; ranks have one.
Status Crew::start(bool meet) {
  if (met_ && (own_ != nullptr || *met_ == meet)) return {};
  if (met_) return unsupported("the workers run a program of another kind already");
  WorkerGroup group;
  if (meet && own_ == nullptr) {
    for (const Member& member : members_) group.hosts.push_back(member.host);
    group.work = HONE_TRY(random_digest());
  }
  HONE_TRY(for_all_or_none(
      members_.size(),
      [&](size_t i) -> Status {
        WorkerGroup own = group;
        own.process = static_cast<int32_t>(i);
        const Member& member = members_[i];
        return member.worker->start(member.host.devices, group.hosts.empty() ? nullptr : &own);
      },
      [&](size_t i, const Error& reason) { members_[i].worker->give_up(reason); }));
  met_ = meet;
  return {};
}

// Each worker gets the programs of its devices. The shares have no rows.
Result<std::vector<DeviceShare>> Crew::send(std::span<const Image> images,
                                            std::span<const uint32_t> of_device, bool meet) {
  HONE_TRY(start(meet));
  std::vector<Packed> sent;
  for (const Image& image : images) sent.push_back(HONE_TRY(packed(image, meet, version_)));
  std::vector<std::set<size_t>> needed(members_.size());
  std::vector<DeviceShare> shares;
  size_t member = 0;
  for (size_t i = 0; i < of_device.size(); ++i) {
    while (static_cast<int32_t>(i) >= members_[member].first + members_[member].host.devices)
      ++member;
    needed[member].insert(of_device[i]);
    shares.push_back(
        {.name = names_[i],
         .code = nullptr,
         .far = std::make_shared<const RemoteCode>(shared_from_this(), *members_[member].worker,
                                                   static_cast<int32_t>(i) - members_[member].first,
                                                   sent[of_device[i]].program)});
  }
  HONE_TRY(for_all_or_none(
      members_.size(),
      [&](size_t i) -> Status {
        for (const size_t program : needed[i])
          HONE_TRY(members_[i].worker->load(std::as_bytes(std::span(sent[program].bytes)),
                                            sent[program].program->hash));
        return {};
      },
      [&](size_t i, const Error& reason) { members_[i].worker->give_up(reason); }));
  return shares;
}

Result<std::shared_ptr<const ManyDevices>> Crew::load(const DividedCode& code) {
  const std::span<const BatchDivision::Share> divided = code.division.shares;
  const bool meet = exchange_data(code.images);
  if (std::ssize(divided) > devices() || (meet && std::ssize(divided) < devices()))
    return bad_input("{} devices have rows, and there are {}", divided.size(), devices())
        .with_hint("run it on as many devices as have rows");
  HONE_TRY(check(code.division, code.inputs, code.outputs));
  HONE_TRY(check_meetings(code.images));
  std::vector<uint32_t> of_device;
  for (const BatchDivision::Share& share : divided) of_device.push_back(share.code);
  std::vector<DeviceShare> shares = HONE_TRY(send(code.images, of_device, meet));
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i].first = divided[i].first;
    shares[i].count = divided[i].count;
  }
  return ManyDevices::make(divided_ports(code.inputs, code.division.inputs),
                           divided_ports(code.outputs, code.division.outputs), code.division.rows,
                           std::move(shares));
}

Result<std::shared_ptr<const EachDevice>> Crew::load_each(std::span<const Image> images,
                                                          std::span<const uint32_t> of_device) {
  if (std::ssize(of_device) != devices())
    return bad_input("the programs are for {} devices, and there are {}", of_device.size(),
                     devices());
  for (const uint32_t image : of_device)
    if (image >= images.size())
      return bad_input("a device has program {} of {}", image, images.size());
  std::vector<DeviceShare> shares = HONE_TRY(send(images, of_device, exchange_data(images)));
  return std::make_shared<const EachDevice>(std::move(shares));
}

Status serve_rank(Transport& group, const CrewOptions& options) {
  for (const Peer& peer : group.peers()) {
    if (!peer.is_here) continue;
    KeptPrograms programs(options.memory_limit / 2);
    return serve_caller(group, programs, rank_options(options),
                        rank_seat(group, peer, options.work));
  }
  return bad_input("this process has no device of the group");
}

}  // namespace hone
