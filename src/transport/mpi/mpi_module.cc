#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "transport/mpi_api.h"

namespace {

constexpr int kTag = 0;
MPI_Comm messages = MPI_COMM_NULL;  // hone's own

bool start() {
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS) return false;
  return given >= MPI_THREAD_SERIALIZED && MPI_Comm_dup(MPI_COMM_WORLD, &messages) == MPI_SUCCESS;
}

void end() {
  MPI_Comm_free(&messages);
  MPI_Finalize();
}

int32_t rank() {
  int own = 0;
  MPI_Comm_rank(messages, &own);
  return own;
}

int32_t size() {
  int count = 0;
  MPI_Comm_size(messages, &count);
  return count;
}

void* send(const void* bytes, size_t count, int32_t to) {
  auto* request = new MPI_Request;
  MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, kTag, messages, request);
  return request;
}

bool has_left(void* handle) {
  auto* request = static_cast<MPI_Request*>(handle);
  int is_done = 0;
  MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
  if (is_done != 0) delete request;
  return is_done != 0;
}

int64_t next_bytes(int32_t from) {
  int is_there = 0, count = 0;
  MPI_Status status;
  MPI_Iprobe(from, kTag, messages, &is_there, &status);
  if (is_there == 0) return -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  return count;
}

void receive(void* bytes, size_t count, int32_t from) {
  MPI_Recv(bytes, static_cast<int>(count), MPI_BYTE, from, kTag, messages, MPI_STATUS_IGNORE);
}

}  // namespace

extern "C" const hone::MpiApi hone_mpi_api = {.start = start,
                                              .end = end,
                                              .rank = rank,
                                              .size = size,
                                              .send = send,
                                              .has_left = has_left,
                                              .next_bytes = next_bytes,
                                              .receive = receive};
