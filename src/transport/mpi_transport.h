#pragma once

#include <filesystem>
#include <memory>

#include "transport/mpi_api.h"
#include "transport/streams.h"

// Processes that mpirun has started. MPI starts them and moves bytes, nothing more: frames, order
// and faults are those of the other transports between processes (streams.h).

namespace hone {

// MPI in this process: at most once, and then until the process ends.
class Mpi {
 public:
  // From the module that the build made where there is MPI. Error: unsupported; it names the file.
  static Result<std::shared_ptr<Mpi>> start(const std::filesystem::path& module);
  // Waits for the others, unless the run has failed: then mpirun ends them all.
  ~Mpi();
  Mpi(const Mpi&) = delete;

  const MpiApi& api() const { return api_; }
  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  // Whoever has an error says so: a process that is lost never comes to the end.
  void fail() { has_failed_ = true; }

 private:
  explicit Mpi(const MpiApi& api);

  const MpiApi& api_;
  int32_t rank_ = 0;
  int32_t size_ = 0;
  bool has_failed_ = false;
};

// All processes of mpirun join, once. Each has as many devices as this says, by rank; or all have
// the same number.
Result<std::unique_ptr<Transport>> join_mpi(std::shared_ptr<Mpi> mpi,
                                            const std::vector<int32_t>& devices,
                                            const StreamOptions& options = {});
Result<std::unique_ptr<Transport>> join_mpi(std::shared_ptr<Mpi> mpi, int32_t devices_of_each,
                                            const StreamOptions& options = {});

}  // namespace hone
