/* MPI's own collectives, for bench_collectives, which compiles it by mpicc and runs it by mpirun.
   Prints a line for each: its name, the bytes of the whole vector, and the seconds of the slowest
   process, from one collective to the next. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, KINDS };
static const char* const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                    "broadcast"};

static void run(int kind, float* in, float* out, int elements, int size) {
  const int part = elements / size;
  switch (kind) {
    case ALL_REDUCE: MPI_Allreduce(in, out, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case ALL_GATHER:
      MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case REDUCE_SCATTER:
      MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case ALL_TO_ALL:
      MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case BROADCAST: MPI_Bcast(out, elements, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
  }
}

int main(int argc, char** argv) {
  int rank = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long bytes = 1 << 10; bytes <= 64 << 20; bytes *= 16) {
    float* in = calloc(1, bytes);
    float* out = calloc(1, bytes);
    const long wanted = (8 << 20) / bytes;
    const int repeats = wanted < 3 ? 3 : wanted > 300 ? 300 : (int)wanted;
    if (in == NULL || out == NULL) return 1;
    for (int kind = 0; kind < KINDS; ++kind) {
      run(kind, in, out, (int)(bytes / 4), size); /* warms up */
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < repeats; ++i) run(kind, in, out, (int)(bytes / 4), size);
      double own = (MPI_Wtime() - begin) / repeats, slowest = 0;
      MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("%s %ld %.9f\n", names[kind], bytes, slowest);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
