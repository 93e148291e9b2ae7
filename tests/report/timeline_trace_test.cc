#include "report/timeline_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

// "compute 0-1000" by the name of the track, in microseconds.
std::map<std::string, std::vector<std::string>> tracks_of(const Trace& trace) {
  const nlohmann::json read = nlohmann::json::parse(trace.json("timeline"));
  std::map<int64_t, std::string> names;
  std::map<std::string, std::vector<std::string>> tracks;
  for (const nlohmann::json& event : read["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name")
      names[event["tid"].get<int64_t>()] = event["args"]["name"].get<std::string>();
  for (const nlohmann::json& event : read["traceEvents"])
    if (event["ph"] == "X")
      tracks[names.at(event["tid"].get<int64_t>())].push_back(
          fmt::format("{} {:g}-{:g}", event["name"].get<std::string>(), event["ts"].get<double>(),
                      event["ts"].get<double>() + event["dur"].get<double>()));
  return tracks;
}

TEST(TimelineTrace, HasATrackPerDeviceAndLink) {
  const Jobs jobs = {2,
                     {{1e9}, {1e9}},
                     {{.queue = 0, .seconds = 1e-3},
                      {.bytes = 1e6, .route = {{0}, {1}}, .after = {0}},
                      {.bytes = 1e6, .route = {{0}}, .after = {0}},
                      {.queue = 1, .seconds = 2e-3, .after = {1}},
                      {.queue = 1}}};
  const Timeline timeline = Timeline::open(jobs).value();
  Trace trace;
  add_timeline(trace, timeline, jobs,
               {{"device 0", "device 1"}, {"up", "down"}, {"a", "send a", "send b", "c", "none"}});
  const auto tracks = tracks_of(trace);
  EXPECT_EQ(tracks.size(), 5);
  EXPECT_THAT(tracks.at("device 0"), ElementsAre("a 0-1000"));
  EXPECT_THAT(tracks.at("device 1"), ElementsAre("c 3000-5000"));
  EXPECT_THAT(tracks.at("up"), ElementsAre("send a 1000-3000"));
  EXPECT_THAT(tracks.at("up (2)"), ElementsAre("send b 1000-3000"));
  EXPECT_THAT(tracks.at("down"), ElementsAre("send a 1000-3000"));
}

TEST(TimelineTrace, IsBesideThreads) {
  Trace trace;
  trace.add({"step", "load"}, {1000, 3000, 7});
  trace.add({"computing", "k0"}, {1000, 2000, trace.add_track("device \"0\"")});
  const auto tracks = tracks_of(trace);
  EXPECT_THAT(tracks.at("thread 1"), ElementsAre("load 0-2"));
  EXPECT_THAT(tracks.at("device \"0\""), ElementsAre("k0 0-1"));
}

}  // namespace
}  // namespace hone::HONE_FILE
