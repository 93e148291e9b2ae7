#pragma once

#include <cstddef>
#include <cstdint>

// The functions of MPI that hone calls, as a module of its own exports them (mpi/mpi_module.cc). So
// hone works without MPI, too. One thread at a time calls these functions.

namespace hone {

struct MpiApi {
  static constexpr uint32_t kVersion = 1;  // of this table
  static constexpr const char* kSymbol = "hone_mpi_api";

  uint32_t version = kVersion;
  // Once in a process. False: MPI lets not even one thread at a time call it.
  bool (*start)() = nullptr;
  void (*end)() = nullptr;  // returns when all processes call it
  int32_t (*rank)() = nullptr;
  int32_t (*size)() = nullptr;
  // Messages between two processes keep their order. The bytes stay until has_left() is true, which
  // frees the handle. At most kMostBytes, for a count is an int.
  void* (*send)(const void* bytes, size_t count, int32_t to) = nullptr;
  bool (*has_left)(void* handle) = nullptr;
  // The bytes of the next message from a process, which has come whole; negative: there is none.
  int64_t (*next_bytes)(int32_t from) = nullptr;
  void (*receive)(void* bytes, size_t count, int32_t from) = nullptr;
};
inline constexpr size_t kMostMpiBytes = size_t{1} << 30;

}  // namespace hone
