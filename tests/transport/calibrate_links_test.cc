#include "transport/calibrate_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "target/topology.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

class Calibrate : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Of, Calibrate, testing::ValuesIn(kLocalTransports),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(Calibrate, MeasuresThisMachine) {
  const LinkCalibration calibration = *calibrate_links(GetParam(), {.seconds = 0.05});
  EXPECT_EQ(calibration.transport, GetParam());
  for (const LinkFit& fit : {calibration.alone, calibration.in_windows}) {
    EXPECT_LT(fit.latency, 1);
    EXPECT_GT(fit.bytes_per_second, 1e6);
  }
  EXPECT_GT(calibration.one_pair, 1e6);
  EXPECT_GT(calibration.two_pairs, 1e6);
}

TEST_P(Calibrate, EndsWhenItIsCancelled) {
  CancelToken cancel;
  cancel.cancel();
  EXPECT_THAT(calibrate_links(GetParam(), {.seconds = 10, .cancel = &cancel}),
              refuses(ErrorCode::interrupted, "stopped"));
}

// The other end may be another process, and be wrong.
TEST(AnswerLink, RefusesRoundsThatAreTooLarge) {
  struct {
    int64_t bytes = 0;
    int32_t messages = 0, rounds = 1;
  } rounds;
  for (const auto& [bytes, messages] : std::vector<std::pair<int64_t, int32_t>>{
           {int64_t{1} << 40, 1}, {0, 1}, {8, 0}, {8, 33}, {2 << 20, 32}}) {
    const LocalGroup fresh = *LocalGroup::join(TransportKind::threads, 2);
    rounds.bytes = bytes, rounds.messages = messages;
    (void)*fresh.of(0).send({0, 1, 0}, std::as_bytes(std::span(&rounds, 1)), "asks");
    EXPECT_THAT(
        answer_link(fresh.of(1), 0, 1),
        refuses(ErrorCode::bad_input, fmt::format("{} messages of {} bytes", messages, bytes)));
  }
}

TEST(CalibratedSystem, HasRoutesOfTheMeasuredLatency) {
  const LinkCalibration calibration = {.transport = TransportKind::tcp,
                                       .alone = {.latency = 3e-5, .bytes_per_second = 2e9},
                                       .in_windows = {},
                                       .two_pairs = 3e9};
  for (const int64_t devices : {1, 2, 5}) {
    const System system = *calibrated_system(calibration, devices, *host_target());
    EXPECT_EQ(system.device_count(), devices);
    EXPECT_EQ(*parse_system(print(system), "a test"), system);
    const Topology topology(system);
    for (int64_t to = 1; to < devices; ++to)
      EXPECT_NEAR(topology.latency(topology.route(0, to)), 3e-5, 1e-12);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
