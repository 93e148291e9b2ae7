#include "learn/events.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace hone::HONE_FILE {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

TEST(Events, ScalarsAreProtobufMessages) {
  EXPECT_EQ(hex(scalar_event(1, 300, "loss", 0.5)),
            "09000000000000f03f"  // wall_time = 1
            "10ac02"              // step = 300
            "2a0d"                // summary
            "0a0b"                // its value
            "0a046c6f7373"        // tag
            "150000003f");        // simple_value
}

TEST(Events, FilesBeginWithTheirVersion) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  EventWriter writer = EventWriter::create(folder.path() / "run").value();
  ASSERT_TRUE(writer.add(7, "loss", 0.25).ok());
  const std::string file = read_file(writer.path(), 1000).value();
  // length, its checksum, wall_time and "brain.Event:2", checksum
  ASSERT_GT(file.size(), 40u);
  EXPECT_EQ(static_cast<size_t>(file[0]), 9 + 2 + 13u);
  EXPECT_EQ(file.substr(8 + 4 + 9 + 2, 13), "brain.Event:2");
  const std::string second = file.substr(8 + 4 + 24 + 4);
  const std::string event = second.substr(12, static_cast<size_t>(second[0]));
  EXPECT_EQ(second, event_record(event));
  EXPECT_NE(event.find("loss"), std::string::npos);
}

TEST(Events, TwoWritersHaveTwoFiles) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  EXPECT_NE(EventWriter::create(folder.path()).value().path(),
            EventWriter::create(folder.path()).value().path());
  EXPECT_FALSE(EventWriter::create("/dev/null/run").ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
