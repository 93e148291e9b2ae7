#include "transport/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

TEST(Hosts, AreReadLineByLine) {
  const std::vector<Host> hosts =
      *parse_hosts("# two of them\n10.0.0.2:5000 4\n\n  [::1]:6000\t1  # here\r\n", "a.hosts");
  EXPECT_EQ(hosts, (std::vector<Host>{{{"10.0.0.2", 5000}, 4}, {{"::1", 6000}, 1}}));
}

TEST(Hosts, NameTheLineThatIsWrong) {
  const auto fails = [](std::string_view text, ErrorCode code, const char* words) {
    EXPECT_THAT(parse_hosts(text, "a.hosts"), refuses(code, words)) << text;
  };
  fails("", ErrorCode::bad_input, "a.hosts ... no host");
  fails("# none\n", ErrorCode::bad_input, "no host");
  fails("a:1 1\na:2\n", ErrorCode::bad_input, "a.hosts:2 ... 'a:2'");
  fails("a:1 1 1\n", ErrorCode::bad_input, "a.hosts:1");
  fails("a 1\n", ErrorCode::bad_input, "a.hosts:1 ... port");
  fails("a:0 1\n", ErrorCode::bad_input, "a.hosts:1 ... port");
  fails("a:1 0\n", ErrorCode::bad_input, "a.hosts:1 ... devices");
  fails("a:1 x\n", ErrorCode::bad_input, "a.hosts:1 ... devices");
  fails("a:1 1\nb:1 1\na:1 2\n", ErrorCode::bad_input, "a.hosts:3 ... a:1 ... twice");
  fails("a:1 65536\nb:1 1\n", ErrorCode::limit, "a.hosts:2 ... 65537 devices");
  fails(std::string((1 << 20) + 1, ' '), ErrorCode::limit, "a.hosts ... 1048577 bytes");
}

TEST(Secret, HasNoWhiteSpaceAtItsEnd) {
  EXPECT_EQ(*parse_secret("0123456789abcdef\n", "s"), "0123456789abcdef");
  EXPECT_THAT(parse_secret("0123456789abcde\n\n", "s"),
              refuses(ErrorCode::bad_input, "15 bytes ... 16"));
}

}  // namespace
}  // namespace hone::HONE_FILE
