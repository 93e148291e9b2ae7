#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "compile/divided_code.h"
#include "runtime/many_devices.h"
#include "transport/hosts.h"
#include "worker/each_device.h"
#include "worker/remote_model.h"
#include "worker/serve.h"

// Devices of several processes that run one program: those of workers on other hosts, or those of a
// group of ranks, of which this process is the first. The caller divides inputs and joins outputs,
// as it does with devices of its own (ManyDevices).

namespace hone {

struct CrewOptions {
  std::string version;                      // of hone: all have the same
  uint64_t work = 0;                        // of ranks: the hash of their command line
  std::optional<int64_t> threads = {};      // of ranks: HonecOptions
  int64_t memory_limit = int64_t{4} << 30;  // bytes of a rank
  StreamOptions streams = {.join_seconds = kCallSeconds};
};

class Crew : public std::enable_shared_from_this<Crew> {
 public:
  // The workers at these addresses, called at the same time. Error: each one that does not answer
  // is named.
  static Result<std::shared_ptr<Crew>> call(const std::vector<Host>& hosts, std::string_view secret,
                                            const CrewOptions& options);
  // The ranks of a group; this process is the first one, and all others call serve_rank(). `noun`
  // is for names: "rank" gives "rank 1".
  static Result<std::shared_ptr<Crew>> lead(std::shared_ptr<Transport> group, std::string_view noun,
                                            const CrewOptions& options);
  ~Crew();
  Crew(const Crew&) = delete;

  std::span<const std::string> names() const { return names_; }  // of the devices
  int32_t devices() const { return static_cast<int32_t>(names_.size()); }
  // The workers, for what they can do and what they were sent.
  std::vector<const Worker*> workers() const;

  // Sends each worker the programs of its devices, unless it has them. Collectives are of all
  // devices. One call at a time.
  Result<std::shared_ptr<const ManyDevices>> load(const DividedCode& code);
  // A program for each device: `of_device` has indices of images. The devices are known not to wait
  // for each other for ever (program/devices.h).
  Result<std::shared_ptr<const EachDevice>> load_each(std::span<const Image> images,
                                                      std::span<const uint32_t> of_device);

 private:
  struct Member {
    std::shared_ptr<Worker> worker;
    Host host;  // a rank's has no address
    int32_t first = 0;
  };
  // This process as a rank that it calls itself.
  struct OwnRank;

  Crew() = default;
  void add(std::shared_ptr<Worker> worker, Host host, std::string_view name);
  Status start(bool meet);
  Result<std::vector<DeviceShare>> send(std::span<const Image> images,
                                        std::span<const uint32_t> of_device, bool meet);

  std::unique_ptr<OwnRank> own_;
  std::vector<Member> members_;
  std::vector<std::string> names_;
  std::string version_;
  std::optional<bool> met_;  // start() was called so
};

// A rank other than the first: returns when the first one has done its work. Error: a peer is lost,
// or the first one has given up.
Status serve_rank(Transport& group, const CrewOptions& options);

}  // namespace hone
