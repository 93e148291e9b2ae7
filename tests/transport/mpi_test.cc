#include "transport/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/transport/collective_cases.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

using tested::Bytes;
using tested::refuses;

TEST(Mpi, IsNamedWhereItIsMissing) {
  EXPECT_THAT(Mpi::start("/no/such/hone_mpi.so"),
              refuses(ErrorCode::unsupported, "MPI ... /no/such/hone_mpi.so"));
}

// tests/cli/mpi.sh starts some of these by mpirun. Each has two devices.
TEST(Mpi, GivesTheBitsThatThreadsGive) {
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) GTEST_SKIP() << "not started by mpirun";
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  Result<std::shared_ptr<Mpi>> mpi = Mpi::start(folder / "hone_mpi.so");
  ASSERT_TRUE(mpi.ok()) << mpi.error().to_string();
  const int32_t devices = 2 * (*mpi)->size(), first = 2 * (*mpi)->rank();
  const auto transport = *join_mpi(*mpi, 2);
  EXPECT_EQ(transport->devices(), devices);
  EXPECT_EQ(transport->peers().size(), static_cast<size_t>((*mpi)->size()));
  const auto local = *make_thread_transport(devices);
  Rng rng(21);  // the same cases in all processes
  for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
    const tested::CollectiveCase drawn = tested::draw_case(rng, devices);
    const std::vector<Bytes> expected =
        tested::run_case(drawn, [&](int32_t) -> Transport& { return *local; });
    EXPECT_EQ(tested::judge(drawn, expected), "");
    const std::vector<Bytes> outputs =
        tested::run_case(drawn, [&](int32_t) -> Transport& { return *transport; });
    for (size_t k = 0; k < drawn.collective.devices.size(); ++k) {
      const int32_t device = drawn.collective.devices[k];
      if (device == first || device == first + 1)
        EXPECT_EQ(outputs[k], expected[k]) << drawn.text();
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
